"""The data as the kernels of paths hold them: `Dense`, or `Compressed` by columns.

Of dense data with more features than samples the columns that may enter the model are cached, by
columns and centred (`proxmargin.compiled.paths.candidates`); others are read in place. Kernels are
compiled once for `Dense` and once for `Compressed`; what differs between them is in the functions
on stores (`proxmargin.compiled.paths.products`, `proxmargin.compiled.paths.gram`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from proxmargin.compiled.products.columns import Compressed

__all__ = ["ColumnCache", "Dense", "is_compressed"]


class Dense(NamedTuple):
    """A matrix with contiguous lines.

    Attributes
    ----------
    lines : (n_samples, n_features), or its transpose
    by_rows : bool
        Lines are samples.
    caches : bool
    """

    lines: Any
    by_rows: bool
    caches: bool


class ColumnCache(NamedTuple):
    """Contiguous copies of the most recently used columns of data that are stored by rows.

    Attributes
    ----------
    columns : (capacity, n_samples)
    owner : (capacity,) integers
        Feature of each copy, -1 where there is none.
    place : (n_features,) integers
        Index of the copy of each feature, -1 where it has none.
    """

    columns: Any
    owner: Any
    place: Any


def is_compressed(store: Any) -> bool:
    """Whether this type, which an overload is compiled for, is `Compressed`."""
    return getattr(store, "instance_class", None) is Compressed
