"""Errors of files, the words of their messages, and the libraries that reading needs."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Formatter
from types import ModuleType
from typing import Any

from proxmargin.runtime.brief import brief, users_level, with_page
from proxmargin.runtime.optional import optional


class DataError(ValueError):
    """A data file that cannot be read as a table for classification."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)
        with_page(self, "#files")


class ModelFileError(ValueError):
    """A model that cannot be saved, or a file that is not a readable model."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)
        with_page(self, "#files")


class UnwritableModelError(ModelFileError, OSError):
    """A valid model that cannot be written to its path."""


# An error message stays readable when it names a handful of culprits and counts the rest.
NAMED_AT_MOST = 8


def listed(items: Iterable[object], *, quote: bool = True, at_most: int = NAMED_AT_MOST) -> str:
    """The items as prose: ``'a', 'b' and 3 more``."""
    words = [brief(repr(str(item)) if quote else item) for item in items]
    if len(words) > at_most:
        return f"{', '.join(words[:at_most])} and {len(words) - at_most} more"
    return ", ".join(words)


def plural(count: int, noun: str) -> str:
    """``1 column``, ``2 columns``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class _Words(Formatter):
    """Places of messages: ``{names:listed}``, ``{lines:plain}`` without quotes, ``{names:count}``,
    ``{n:of row}``."""

    def format_field(self, value: Any, form: str) -> str:
        if form in ("listed", "plain"):
            return listed(value, quote=form == "listed")
        if form == "count":
            return str(len(value))
        return plural(value, form[3:]) if form[:3] == "of " else str(format(value, form))


@cache
def messages() -> dict[str, Any]:
    """What is said of tables: by name the sentence and, where there is one, what to type; and what
    ``begins`` files of which one of these is said."""
    path = Path(__file__).with_name("messages.toml")
    return tomllib.loads(path.read_text("utf-8"))


def said(message: str, source: object = "", **places: object) -> str:
    """A message of the table ``messages.toml`` about a source."""
    words = _Words().vformat("; ".join(messages()[message]), (), places)
    return f"{source}: {words}" if source else words


def refused(message: str, source: object = "", **places: object) -> DataError:
    """The error with that message."""
    return DataError(f"{said(message, source, **places)}.")


def warn(sentence: str) -> None:
    """Warn the user's line, which is the first one outside."""
    warnings.warn(sentence, UserWarning, stacklevel=users_level())


def warned(message: str, source: object = "", **places: object) -> None:
    """Warn with that message."""
    warn(f"{said(message, source, **places)}.")


def library(name: str) -> ModuleType:
    """A library that reading needs, or one of its modules; raises DataError if it is missing."""
    try:
        return optional(name, "Reading this file")
    except ImportError as error:
        raise DataError(str(error)) from error


def pandas() -> ModuleType:
    return library("pandas")
