"""Names from files as text for a terminal: a name may hold control characters, which a terminal obeys."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with each character that cannot be printed as an escape.

    >>> print(printable("a\x1b[31m bird\n"))
    a\x1b[31m bird\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
