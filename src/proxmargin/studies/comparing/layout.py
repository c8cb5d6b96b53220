"""Tables of text, printed plainly here and in colour by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


def number(value: Any, form: str = ".4g") -> str:
    """A number in the given form; a dash where there is none."""
    missing = value is None or value != value
    return "-" if missing else format(value, form)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return GUTTER.join(padded).rstrip()
