"""`wsol list`: everything that a config can name."""

from __future__ import annotations

import argparse
import textwrap

HELP = "what a config can name: backbones, heads, attentions, data sets, protocols and the like"
DESCRIPTION = """\
Print every component that a config can name, with one line each and its options.

  wsol list                 everything
  wsol list attentions      one kind
  wsol list protocols       the protocols and how they differ
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help="one kind only (default: all of them)")


def run(args: argparse.Namespace) -> None:
    from wsol.errors import ConfigError
    from wsol.registry import REGISTRIES, suggest

    if args.kind is not None and args.kind not in REGISTRIES:
        raise ConfigError(f"unknown kind {args.kind!r}{suggest(args.kind, REGISTRIES)}")
    print("\n\n".join(_describe(kind) for kind in ([args.kind] if args.kind else REGISTRIES)))
    if args.kind == "protocols":
        from wsol.scoring.protocols import describe_protocols
        from wsol.text_table import text_table

        print("\n" + text_table(describe_protocols(), left=99))


def _describe(kind: str) -> str:
    """One kind as text: name, summary, and the options with their defaults below."""
    from wsol.listing import list_components

    found = list_components(kind)
    width = max((len(one.name) for one in found), default=0) + 2
    lines = [kind.upper()]
    for one in found:
        lines.append(f"  {one.name:<{width}}{one.summary}")
        if one.options:
            lines += textwrap.wrap(
                "options: " + ", ".join(one.options),
                width=108,
                initial_indent=" " * (width + 2),
                subsequent_indent=" " * (width + 11),
                break_on_hyphens=False,
            )
    return "\n".join(lines)
