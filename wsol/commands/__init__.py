"""The commands, one file each, in the order that `wsol --help` lists them.

A command module has `HELP` (one line), `DESCRIPTION` (with examples), `add_arguments(parser)` and
`run(args)`. It is imported whenever the parser is built, so what is slow to import waits inside `run`.
"""

COMMANDS: tuple[str, ...] = (
    "demo",
    "init",
    "configs",
    "data",
    "model",
    "train",
    "classify",
    "refine",
    "evaluate",
    "score",
    "compare",
    "analyze",
    "visualize",
    "report",
    "localize",
    "serve",
    "discover",
    "export",
    "pack",
    "push",
    "list",
    "doctor",
)
