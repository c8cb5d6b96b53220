"""Tables of the page: what a cell shows and what it is sorted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proxmargin.reports import formats

__all__ = ["Cell", "HtmlColumn", "HtmlTable"]


@dataclass(frozen=True)
class HtmlColumn:
    """A heading. Columns of numbers are aligned right and sorted by value."""

    title: str
    number: bool = True
    why: str = ""


@dataclass(frozen=True)
class Cell:
    """The words in a cell, and the number that they are sorted and downloaded by, if any."""

    text: str
    value: float | None = None
    note: str = ""

    @classmethod
    def of(cls, value: Any, form: Any = formats.score) -> Cell:
        return cls(form(value), value if formats.known(value) else None)


@dataclass(frozen=True)
class HtmlTable:
    """Rows of cells; the first cell of a row is its heading.

    Attributes
    ----------
    name : str
        Names the element and the file of a download: letters, digits and hyphens.
    caption : str
    sorted_by : int or None
        The column that the rows are in order of, and ``descending``.
    """

    name: str
    caption: str
    columns: Sequence[HtmlColumn]
    rows: Sequence[Sequence[Cell]]
    sorted_by: int | None = None
    descending: bool = False
