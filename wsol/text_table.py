"""Rows of cells as aligned text: the one table of the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from wsol.printable import printable


def text_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of cells as aligned text, the first row as the head; the `left` first columns to the left.

    >>> print(text_table([["name", "count"], ["robin", "3"], ["jay", "12"]]))
    name   count
    -----  -----
    robin      3
    jay       12
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "  ".join("-" * w for w in widths), *map(line, rows[1:])])


def html_table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """The same as an HTML table, for notebooks."""
    from html import escape

    def cells(row: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"

    head = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(cells(row, "td") for row in rows[1:])
    return f"<table>{head}<thead>{cells(rows[0], 'th')}</thead><tbody>{body}</tbody></table>"
