"""Values in messages, as JSON has them, and in tables of text; the line that warnings name."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from html import escape
from typing import Any, TypeVar, cast

Work = TypeVar("Work", bound=Callable[..., Any])

LONGEST = 200  # characters of a value in a message
CUT = " [...]"


def brief(value: object, at_most: int = LONGEST) -> str:
    """The text of a value on one line, cut where it is longer."""
    line = " ".join(str(value).split())
    return line if len(line) <= at_most else line[: at_most - len(CUT)] + CUT


PAGE = "https://github.com/proxmargin/proxmargin/blob/main/docs/errors.md"


def with_page(error: Exception, section: str = "") -> None:
    """Note, below the message in a traceback and once, the page that says what to type."""
    note = f"What messages mean, and what to type: {PAGE}{section}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def with_pages(work: Work) -> Work:
    """A function of users, whose errors of values and types are noted `with_page`."""

    @wraps(work)
    def noted(*args: object, **kwargs: object) -> Any:
        try:
            return work(*args, **kwargs)
        except (TypeError, ValueError) as error:
            with_page(error)
            raise

    return cast(Work, noted)


def shown(value: object, at_most: int = LONGEST) -> str:
    """A value as it is typed, `brief`."""
    return brief(repr(value), at_most)


def plain(value: object) -> Any:
    """Values that JSON has: arrays as lists, None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


# borders in notebooks, readable on light and dark pages; the words say the same
MET = "#2e8b57"  # sea green: every tolerance was met
UNMET = "#d2691e"  # chocolate: one was not
NEUTRAL = "#888888"  # grey: nothing is met or missed
LINE = (
    '<div class="proxmargin-line" style="margin:0.4em 0;padding:0.1em 0.6em;'
    'border-left:3px solid {colour};font-family:monospace;font-size:0.9em">{text}</div>'
)


def html_line(text: str, colour: str = NEUTRAL) -> str:
    """A line of a notebook, with a border of that colour."""
    return LINE.format(colour=colour, text=escape(text))


GUTTER = "  "


@dataclass(frozen=True)
class Listing:
    """Rows of words under headings; the first column is aligned left, the others right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def plain(self) -> str:
        """Aligned text, one line a row."""
        lines = [self.headings, *self.rows]
        widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
        return "\n".join(_line(cells, widths) for cells in lines)

    def html(self) -> str:
        """A table for a notebook, which has a style for it."""
        tags = [("th", self.headings), *(("td", row) for row in self.rows)]
        lines = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in tags)
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def number(value: object, form: str = ".4g") -> str:
    """A number in the given form; a dash where there is none."""
    missing = value is None or value != value
    return "-" if missing else format(value, form)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return GUTTER.join(padded).rstrip()


def users_level() -> int:
    """The ``stacklevel`` with which a warning of the caller names the first line outside."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("proxmargin."):
        if frame.f_back is None:
            break
        level, frame = level + 1, frame.f_back
    return level
