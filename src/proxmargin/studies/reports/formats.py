"""Numbers as words of the page, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

NONE = "–"  # where there is no number
MINUS = "−"
SMALL_P = 0.001  # p-values below are told as that


def known(value: Any) -> TypeGuard[float]:
    """Whether there is a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def score(value: Any, digits: int = 3) -> str:
    if not known(value):
        return NONE
    text = f"{value:.{digits}f}"
    # a difference that rounds to nothing has no sign
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def interval(low: Any, high: Any) -> str:
    """``0.940 to 0.980``, which no line end divides."""
    both = known(low) and known(high)
    return f"{score(low)}\u00a0to\u00a0{score(high)}" if both else NONE


def p_value(value: Any) -> str:
    if not known(value):
        return NONE
    return f"< {SMALL_P}" if value < SMALL_P else f"{value:.3f}"


def percent(value: Any) -> str:
    return f"{100 * value:.0f} %" if known(value) else NONE


def seconds(value: Any) -> str:
    if not known(value):
        return NONE
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def gap(value: Any) -> str:
    return f"{value:.1e}".replace("e-0", "e-").replace("-", MINUS) if known(value) else NONE


def count(value: Any) -> str:
    """A mean number of things: with a decimal only where it has one."""
    if not known(value):
        return NONE
    return f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.1f}"


def setting(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def joined(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, final = words or [""]
    return f"{', '.join(first)} and {final}" if first else final


# -- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """The words in a cell, and the number that they are sorted and downloaded by, if any."""

    text: str
    value: float | None = None

    @classmethod
    def of(cls, value: Any, form: Any = score) -> Cell:
        return cls(form(value), value if known(value) else None)


@dataclass(frozen=True)
class HtmlColumn:
    """A heading, and the cell of a row. Columns of numbers are aligned right, sorted by value."""

    title: str
    cell: Callable[[Any], Cell]
    number: bool = True
    why: str = ""


def number_column(title: str, of: Any, form: Any = score, why: str = "") -> HtmlColumn:
    """A column of numbers; ``of`` is a key of a row, or a function of it."""
    return HtmlColumn(title, lambda row: Cell.of(_part(row, of), form), why=why)


def word_column(title: str, of: Any, why: str = "") -> HtmlColumn:
    return HtmlColumn(title, lambda row: Cell(str(_part(row, of))), number=False, why=why)


def _part(row: Any, of: Any) -> Any:
    return of(row) if callable(of) else row.get(of)


@dataclass(frozen=True)
class HtmlTable:
    """Rows of cells; the first cell of a row is its heading."""

    name: str  # of the element and the file of a download: letters, digits and hyphens
    caption: str
    columns: Sequence[HtmlColumn]
    rows: list[list[Cell]]
    sorted_by: int | None = None  # the column that the rows are in order of
    descending: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        columns: Sequence[HtmlColumn],
        rows: Iterable[Any],
        **order: Any,
    ) -> HtmlTable:
        cells = [[column.cell(row) for column in columns] for row in rows]
        return cls(name, caption, columns, cells, **order)
