"""The rows of folds, as splitters give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["row_numbers"]


def row_numbers(fold: int, part: Any, count: int) -> NDArray[np.intp]:
    """A training or test part as row numbers.

    Parameters
    ----------
    fold : int
        Its number, for messages.
    part : row numbers or a mask
    count : int
        How many rows there are.

    Raises
    ------
    ValueError
        It is neither, or has rows beyond the data.
    """
    given = np.asarray(part)
    if given.size and given.dtype.kind not in "biu":
        raise ValueError(
            f"cv: fold {fold} has rows of type {given.dtype}: give row numbers, or a mask"
        )
    rows = np.flatnonzero(given) if given.dtype == np.bool_ else given.astype(np.intp)
    beyond = rows[(rows < -count) | (rows >= count)]
    if beyond.size or (given.dtype == np.bool_ and given.size != count):
        what = f"row {beyond[0]}" if beyond.size else f"a mask of {given.size} rows"
        raise ValueError(f"cv: fold {fold} has {what}, but X has {count} rows")
    return rows
