"""The options of the commands, by the table of them; counts, folds and files that can be."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from proxmargin.models.fitting.registry import model_names

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Facts

AUTO = "auto"  # a strength that cross-validation chooses, or a scaling that depends on the data
FOLDS = 5  # of a choice that fit makes
OF_TABLES = ("roles", "cells", "written")  # sections
TIME = "time"  # of rows that are in its order


class Note(UserWarning):
    """What was done, which is no reason to worry."""


def number(text: str, what: str = "a number") -> float:
    """Type of an option, whose error is a sentence."""
    try:
        return float(text)
    except ValueError:
        told = f"{what} such as 0.1, with a decimal point, and not {text!r}"
        raise argparse.ArgumentTypeError(told) from None


def _number_or_auto(text: str) -> float | str:
    return AUTO if text == AUTO else number(text, f"{AUTO!r} or a number")


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _json_or_word(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, _json_or_word(value)


def _seed(text: str) -> int:
    if not (text.isdecimal() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"a whole number from 0 to 2**32 - 1, and not {text!r}")
    return int(text)


TYPES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "number": number,
    "auto": _number_or_auto,
    "number or word": _number_or_word,
    "JSON or word": _json_or_word,
    "assignment": _assignment,
    "seed": _seed,
}


class Elsewhere(argparse.Action):
    """An option of other commands, which this one answers with what to do: its ``const``."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(str(self.const))


@cache
def table() -> Facts:
    """The commands and the sections of their options."""
    return tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))


def parameters() -> list[str]:
    """The parameters of estimators that have an option."""
    plain = {"action", "choices"}  # of those that are no single value
    options = table()["sections"]["parameters"].items()
    return [_name_of(o) for o, told in options if o != "title" and not plain & {*told}]


def _name_of(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def add_sections(parser: argparse.ArgumentParser, *sections: str) -> None:
    """Groups of options: a section, or, after a colon, some options of one."""
    least: dict[str, int] = {}
    for section in sections:
        name, _, chosen = section.partition(": ")
        told = table()["sections"][name]
        group = parser.add_argument_group(told["title"]) if "title" in told else parser
        for words in chosen.split() or (each for each in told if each != "title"):
            given = dict(told[words])
            if "elsewhere" in given:
                given = {"nargs": "?", "action": Elsewhere, "const": given["elsewhere"]}
                given["help"] = argparse.SUPPRESS
            if given.get("action") == "boolean":
                given["action"] = argparse.BooleanOptionalAction
            if "type" in given:
                given["type"] = TYPES[given["type"]]
            bound = given.pop("least", None)
            given["help"] = given["help"].replace("{models}", ", ".join(sorted(model_names())))
            made = group.add_argument(*words.split(), **given)
            if bound is not None:
                least[made.dest] = bound
    parser.set_defaults(least=least)


def check_counts(arguments: argparse.Namespace) -> None:
    """Raise ValueError that names the option, of any command, whose number cannot be."""
    for name, least in arguments.least.items():
        count = getattr(arguments, name)
        if count is not None and count < least:
            needs = f"it must be at least {least}"
            why = "cross-validation needs at least 2 folds" if least == 2 else needs
            raise ValueError(f"{flag_of(name)} {count}: {why}")
    if getattr(arguments, "jobs", None) == 0:
        raise ValueError("--jobs 0: at least one job does the work; -1: one for each core")


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


def flag_of(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"
