"""What the parsers of several subcommands share; counts and folds that can be."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Facts

Commands = Any  # what add_subparsers returns has no public name

FOLDS = 5  # of a choice that fit makes
TIME = "time"  # of rows that are in its order


def subcommand(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], summary: str
) -> argparse.ArgumentParser:
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


def add_group(parser: argparse.ArgumentParser, title: str, settings: Facts, *options: str) -> None:
    """A group of these options, by default all that have settings."""
    group = parser.add_argument_group(title)
    for option in options or settings:
        group.add_argument(option, **settings[option])


class Note(UserWarning):
    """What was done, which is no reason to worry."""


class Elsewhere(argparse.Action):
    """An option of other commands, which this one answers with what to do: its ``const``."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(str(self.const))


def add_elsewhere(parser: argparse.ArgumentParser, option: str, why: str) -> None:
    parser.add_argument(option, nargs="?", action=Elsewhere, const=why, help=argparse.SUPPRESS)


def _seed(text: str) -> int:
    if not (text.isdecimal() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"a whole number from 0 to 2**32 - 1, and not {text!r}")
    return int(text)


def add_seed(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        default=0,
        help="of what is drawn by chance: folds, halves, permutations (default: 0)",
    )


def add_splits(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Which rows are held out together."""
    group.add_argument(
        "--splits",
        choices=("shuffled", TIME),
        default="shuffled",
        help="stratified folds of shuffled rows (default), or for rows in the order of time: each "
        "fold tests later rows than it trains on",
    )


# options with numbers, and the least that each can be
LEAST = {"folds": 2, "cv": 2, "repeats": 1, "pairs": 1, "n_alphas": 1, "n_strengths": 1, "q": 1}


def check_counts(arguments: argparse.Namespace) -> None:
    """Raise ValueError that names the option, of any command, whose number cannot be."""
    for name, least in (*LEAST.items(), ("permutations", getattr(arguments, "fewest", 1))):
        count = getattr(arguments, name, None)
        if count is not None and count < least:
            needs = f"it must be at least {least}"
            why = "cross-validation needs at least 2 folds" if least == 2 else needs
            raise ValueError(f"{flag_of(name)} {count}: {why}")
    if getattr(arguments, "jobs", None) == 0:
        raise ValueError("--jobs 0: at least one job does the work; -1: one for each core")


READ = ("data", "model", "labels")  # arguments of commands whose files are inputs
WRITTEN = ("output", "report", "csv", "plot", "checkpoint")  # and those whose files are made


def check_outputs(arguments: argparse.Namespace) -> None:
    """Raise ValueError that names the option that would write over a file that is read."""
    for name in WRITTEN:
        written = getattr(arguments, name, None)
        for read in (each for kind in READ for each in _listed(getattr(arguments, kind, None))):
            if written and Path(read).exists() and Path(read).resolve() == Path(written).resolve():
                raise ValueError(f"{flag_of(name)} {written}: that file is read, name another")


def _listed(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def check_folds(arguments: argparse.Namespace, table: Table, option: str, folds: int) -> None:
    """Raise ValueError that names the option where rows or groups are too few for its folds."""
    import numpy as np

    from proxmargin.data.inputs.targets import refuse_small_classes

    y, given = np.asarray(table.y), f"{option} {folds}"
    if getattr(arguments, "splits", None) == TIME:
        if y.size <= folds:
            raise ValueError(f"{given} in time needs {folds + 1} rows, and there are {y.size}")
    elif table.groups is not None:
        count = np.unique(table.groups).size
        if count < folds:
            raise ValueError(f"{given} needs as many groups, and there are {count}")
    else:
        classes, counts = np.unique(y, return_counts=True)
        if counts.max() < folds:  # those of one smaller class are a warning
            refuse_small_classes(
                classes, counts, folds, f"{given} needs", ", or ask for fewer folds"
            )


def folds_of(arguments: argparse.Namespace, folds: int | None) -> Any:
    """A number of shuffled folds (None: the usual one), or a splitter in time."""
    if getattr(arguments, "splits", None) != TIME:
        return folds
    from sklearn.model_selection import TimeSeriesSplit

    return TimeSeriesSplit(FOLDS if folds is None else folds)


def number(text: str, what: str = "a number") -> float:
    """Type of an option, whose error is a sentence."""
    try:
        return float(text)
    except ValueError:
        told = f"{what} such as 0.1, with a decimal point, and not {text!r}"
        raise argparse.ArgumentTypeError(told) from None


def flag_of(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"
