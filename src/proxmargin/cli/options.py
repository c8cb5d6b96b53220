"""Options that several subcommands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxmargin.files.table import Table

__all__ = ["Commands", "add_common", "add_data", "subcommand", "table_of"]

Commands = Any  # what add_subparsers returns has no public name


def subcommand(commands: Commands, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    """A parser for one subcommand, with its summary as help and description."""
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    made.set_defaults(run=run)
    return made


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every subcommand."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_data(parser: argparse.ArgumentParser) -> None:
    """The data and how to read them."""
    parser.add_argument("data", metavar="DATA", help="a data file or the name of an embedded set")
    add_target(parser)
    parser.add_argument(
        "--encode",
        action="store_true",
        help="turn columns of text into one feature per level; otherwise they are refused",
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        metavar="COL",
        help="the column with the labels, by name or position (default: the one called target, "
        "label, class or y, else the last)",
    )


def table_of(arguments: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from proxmargin.files.table import read_data

    return read_data(arguments.data, target=arguments.target, encode=arguments.encode)
