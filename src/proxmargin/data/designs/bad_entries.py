"""The first entry of data that is no number of modest size, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class Entry(NamedTuple):
    """An entry of the data, counted from 0."""

    row: int
    column: int
    value: float


def bad_entry(X: Any, most: float) -> Entry | None:
    """The first entry of an array or sparse matrix that is NaN, infinite or beyond ``most``."""
    is_sparse: bool = sparse.issparse(X)
    entries = X.data if is_sparse else X
    # two reductions without temporaries; they propagate NaN and infinities
    if not entries.size or max(-float(entries.min()), float(entries.max())) <= most:
        return None
    return first_entry(X, lambda sizes: ~(sizes <= most))


def first_entry(X: Any, is_meant: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> Entry:
    """The first entry whose absolute value satisfies ``is_meant``; there must be one."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        listed = X.tocsr().tocoo()
        entry = int(np.argmax(is_meant(np.abs(listed.data.astype(np.float64)))))
        return Entry(int(listed.row[entry]), int(listed.col[entry]), float(listed.data[entry]))
    step = 1 << 12
    for start in range(0, X.shape[0], step):
        meant = is_meant(np.abs(X[start : start + step].astype(np.float64)))
        if meant.any():
            row, column = np.argwhere(meant)[0]
            return Entry(start + int(row), int(column), float(X[start + row, column]))
    raise AssertionError("called without such an entry")


def sentence(
    entry: Entry, most: float, *, place: str = "", name: str | None = None, advice: str = ""
) -> str:
    """What is wrong with an entry.

    Parameters
    ----------
    most : float
        The largest admissible absolute value.
    place : str
        File and row group, or block, that the row is counted in.
    name : str, optional
        Of its column.
    advice : str
        How to bring finite entries into the range.
    """
    row, column, value = entry
    kind = "NaN" if np.isnan(value) else "infinity (inf)" if np.isinf(value) else f"{value:g}"
    named = f"{column} ({name!r})" if name is not None else str(column)
    beyond = "" if np.isnan(value) else f", beyond {most:g}"
    if np.isfinite(value) and advice:
        beyond = f"{beyond}, where products overflow: {advice}"
    where = f"{place}, row {row}" if place else f"row {row}"
    return f"Input X contains {kind} in {where}, column {named} (counted from 0){beyond}"
