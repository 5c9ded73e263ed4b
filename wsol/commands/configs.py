"""`wsol configs`: the configs that come with the package."""

from __future__ import annotations

import argparse

from wsol.commands.subcommands import add_subcommands

HELP = "list the configs that come with wsol, or copy one to change it"
DESCRIPTION = """\
Print the configs that come with wsol, with one line each. 'wsol train NAME' and 'wsol model NAME' take such
a name where there is no file of that name.

  wsol configs                              all of them
  wsol configs copy cub/vgg16_adl_gpca      copy one, and those that it extends, into ./configs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_subcommands(parser, ("copy",), "wsol.commands.configs_{}", metavar="VERB")


def run(args: argparse.Namespace) -> None:
    from wsol.shipped_configs import shipped_configs

    found = shipped_configs()
    width = max(map(len, found), default=0) + 2
    for config in found.values():
        print(f"{config.name:<{width}}{config.summary}")
