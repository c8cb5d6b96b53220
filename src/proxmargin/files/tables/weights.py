"""Weights of the samples from a column of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import DataError
from proxmargin.files.tables.column import Column
from proxmargin.files.wording import listed, plural

__all__ = ["sample_weights"]


def sample_weights(column: Column, source: str) -> NDArray[np.float64]:
    """The weights, one a sample, as floats.

    Raises
    ------
    DataError
        A weight is missing, infinite, negative or no number, by data row (from 1); or all are zero.
    """
    if not column.is_numeric:
        row = int(np.flatnonzero(~column.missing & ~_are_numbers(column))[0])
        raise DataError(
            f"{source}: the weights {column.name!r} must be numbers, and row {row + 1} (counting "
            f"data rows from 1) holds {str(column.values[row])[:40]!r}."
        )
    weights = np.where(column.missing, 0.0, column.values.astype(np.float64))
    for kind, wrong in (
        ("missing", column.missing),
        ("infinite", column.infinite()),
        ("negative", weights < 0),
    ):
        rows = np.flatnonzero(wrong)
        if rows.size:
            raise DataError(
                f"{source}: the weights {column.name!r} are {kind} in {plural(rows.size, 'row')} "
                f"(row {listed(rows + 1, quote=False)}, counting data rows from 1); a weight of 0 "
                "leaves a row out."
            )
    if not weights.any():
        raise DataError(f"{source}: the weights {column.name!r} are all zero.")
    return weights


def _are_numbers(column: Column) -> NDArray[np.bool_]:
    return np.array([_is_number(cell) for cell in column.values.tolist()], dtype=bool)


def _is_number(cell: object) -> bool:
    """As pandas reads numbers: without the underscores that Python allows."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return "_" not in str(cell)
