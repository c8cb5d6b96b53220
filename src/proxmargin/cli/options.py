"""Options that several subcommands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Dialect, Table

__all__ = [
    "Commands",
    "add_columns",
    "add_common",
    "add_data",
    "add_ignore",
    "add_impute",
    "add_target",
    "add_text",
    "add_weights",
    "dialect_of",
    "filled",
    "filled_table_of",
    "subcommand",
    "table_of",
]

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
    add_columns(parser)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Which columns are labels and features, and how a text table is written."""
    add_target(parser)
    add_ignore(parser)
    parser.add_argument(
        "--encode",
        action="store_true",
        help="turn columns of text into one feature per level; otherwise they are refused",
    )
    add_text(parser)


def add_impute(parser: argparse.ArgumentParser) -> None:
    """What becomes of missing cells."""
    parser.add_argument(
        "--impute",
        choices=("median", "mean", "constant"),
        help="fill in missing cells by the median or the mean of the column, or by zero; "
        "otherwise they are refused. Cells of text become zeros in all levels",
    )


def add_text(parser: argparse.ArgumentParser) -> None:
    """How a text table is written."""
    group = parser.add_argument_group("text tables (defaults: as written by most programs)")
    group.add_argument(
        "--sep",
        metavar="CHAR",
        help="between the cells; 'tab' for a tab (default: a comma, and a tab in .tsv files)",
    )
    group.add_argument(
        "--decimal", metavar="CHAR", default=".", help="before the fraction of a number"
    )
    group.add_argument(
        "--encoding", metavar="NAME", default="utf-8", help="such as latin-1 (default: utf-8)"
    )
    group.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="the first line is data; columns are called 0, 1, ...",
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        metavar="COL",
        help="the column with the labels, by name or position (default: the one called target, "
        "label, class or y, else the last)",
    )


def add_ignore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ignore",
        metavar="COL",
        action="append",
        default=[],
        help="a column that is no feature, by name or position; may be given again",
    )


def add_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights",
        metavar="COL",
        help="a column with the weights of the samples, by name or position; it is no feature",
    )


def table_of(arguments: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from proxmargin.files.tables.table import read_data

    return read_data(
        arguments.data,
        target=arguments.target,
        encode=arguments.encode,
        ignore=arguments.ignore,
        groups=getattr(arguments, "groups", None),
        blanks=getattr(arguments, "impute", None) is not None,
        weights=getattr(arguments, "weights", None),
        dialect=dialect_of(arguments),
    )


def filled_table_of(arguments: argparse.Namespace) -> tuple[Table, Any]:
    """The data with missing cells filled in, and the imputer that does so; None without one."""
    return filled(table_of(arguments), arguments)


def filled(table: Table, arguments: argparse.Namespace) -> tuple[Table, Any]:
    """The same for data that have been read."""
    if arguments.impute is None:
        return table, None
    from dataclasses import replace

    from proxmargin.inputs.preprocessing import imputer

    transformer = imputer(arguments.impute).fit(table.X)
    return replace(table, X=transformer.transform(table.X)), transformer


def dialect_of(arguments: argparse.Namespace) -> Dialect:
    """How the text tables are written that the arguments name."""
    from proxmargin.files.tables.contents import Dialect

    separator = {"tab": "\t", "\\t": "\t"}.get(arguments.sep, arguments.sep)
    return Dialect(separator, arguments.decimal, arguments.encoding, arguments.header)
