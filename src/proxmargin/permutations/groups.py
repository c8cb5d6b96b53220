"""Groups of samples, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.permutations.labelings import Codes

__all__ = ["checked_groups"]

MISSING = ("NAType", "NaTType")  # of pandas, which equal nothing or have no truth value
NUMBER = "number"
TEXT = "string"


def checked_groups(groups: Any, count: int) -> tuple[NDArray[Any] | None, Codes]:
    """The groups as an array, and as numbers in their order: all zero where there are none.

    Parameters
    ----------
    groups : (n_samples,) or None
    count : int
        How many samples there are.

    Raises
    ------
    ValueError
        Another shape; a sample without a group; groups of several types (with the row).
    """
    if groups is None:
        return None, np.zeros(count, dtype=np.intp)
    given = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    if given.shape != (count,):
        raise ValueError(f"groups must have one entry a sample, ({count},), got {given.shape}")
    if given.dtype.kind not in "biuUS":
        entries = given.astype(object).tolist()
        if _checked_kind(entries) in (NUMBER, TEXT):
            given = np.array(entries)
    try:
        return given, np.unique(given, return_inverse=True)[1].astype(np.intp)
    except TypeError as error:
        raise ValueError(f"groups must be numbers or text, which have an order: {error}") from error


def _checked_kind(entries: Sequence[Any]) -> str | None:
    """The type that all entries have."""
    kinds = [_kind(each) for each in entries]
    if None in kinds:
        raise ValueError(
            f"groups has no value in row {kinds.index(None)} (counted from 0): leave such rows "
            "out, or give them a group"
        )
    row = next((k for k, kind in enumerate(kinds) if kind != kinds[0]), None)
    if row is not None:
        raise ValueError(
            f"groups must be of one type: row {row} (counted from 0) has {entries[row]!r}, a "
            f"{kinds[row]}, and row 0 has {entries[0]!r}, a {kinds[0]}"
        )
    return kinds[0]


def _kind(value: Any) -> str | None:
    """The type of an entry; None if it is missing."""
    name = type(value).__name__
    if value is None or name in MISSING or value != value:
        return None
    if isinstance(value, Number | np.bool_):
        return NUMBER
    return TEXT if isinstance(value, str) else name
