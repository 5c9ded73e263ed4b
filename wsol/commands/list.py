"""`wsol list`: everything that a config can name."""

from __future__ import annotations

import argparse
import textwrap

HELP = "what a config can name: backbones, drop blocks, heads, attentions, data sets, protocols"
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
    kinds = [args.kind] if args.kind else list(REGISTRIES)
    print("\n\n".join(_describe(kind) for kind in kinds))
    if args.kind == "protocols":
        from wsol.scoring.protocols import protocol_table

        print("\n" + protocol_table())


def _describe(kind: str) -> str:
    """One kind as text: name, summary, and the options with their defaults below."""
    from wsol.registry import REGISTRIES

    registry = REGISTRIES[kind]
    width = max(len(name) for name in registry.entries()) + 2
    lines = [kind.upper()]
    for name, entry in registry.entries().items():
        lines.append(f"  {name:<{width}}{entry.summary}")
        member = name + "NAME" if name.endswith(":") else name
        options = [
            o.name if o.required else f"{o.name}={_short(o.default)}"
            for o in registry.options(member).values()
        ]
        if options:
            lines += textwrap.wrap(
                "options: " + ", ".join(options),
                width=108,
                initial_indent=" " * (width + 2),
                subsequent_indent=" " * (width + 11),
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
