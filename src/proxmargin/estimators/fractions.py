"""Parameters given as numbers, or as fractions of the largest value that the data admit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from proxmargin.inputs.validation import check_strength
from proxmargin.runtime.brief import shown

__all__ = ["OfMax", "number_or_fraction"]


@dataclass(frozen=True)
class OfMax:
    """A fraction of a maximum that depends on the data."""

    fraction: float

    def of(self, largest: float) -> float:
        """The fraction of ``largest``; where that is infinite, ``fraction / (1 - fraction)``."""
        if np.isinf(largest):
            return self.fraction / (1.0 - self.fraction)
        return self.fraction * largest


def number_or_fraction(name: str, value: Any, *, low_open: bool) -> float | OfMax:
    """A number >= 0 (or > 0), or a string such as ``'0.5max'`` with a fraction in (0, 1).

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    if isinstance(value, str):
        text = value.removesuffix("max")
        try:
            fraction = float(text)
        except ValueError:
            fraction = np.nan
        if text == value or not 0.0 < fraction < 1.0:
            raise ValueError(
                f"{name} must be a number, or a fraction of the largest admissible value such as "
                f"'0.5max' (strictly between 0 and 1), got {shown(value)}"
            )
        return OfMax(fraction)
    check_strength(name, value, low=0.0, low_open=low_open)
    return float(value)
