"""Data files that hold a matrix: features are known by position, perhaps also by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError
from proxmargin.files.tables.column import array_column
from proxmargin.files.tables.contents import FeatureMatrix, Table, TableRequest, Wanted
from proxmargin.files.tables.labels import class_labels
from proxmargin.files.tables.width import refuse_too_wide
from proxmargin.files.wording import listed, plural

# Solvers index features with 32-bit integers; a larger width comes from a damaged file.
MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class PlainMatrix:
    """A matrix with labels beside it.

    Attributes
    ----------
    source : str
    X : ndarray or csr_array
    y : ndarray or None
    feature_names : list of str or None
    trailing_zeros_implied : bool
        Whether the format leaves out trailing columns of zeros, as svmlight does, so that a file
        may show fewer columns than the model has.
    """

    source: str
    X: FeatureMatrix
    y: NDArray[Any] | None
    feature_names: list[str] | None = None
    trailing_zeros_implied: bool = False
    last_feature: Callable[[], str] | None = None

    def __post_init__(self) -> None:
        _refuse_sizes(self)

    def table(self, request: TableRequest) -> Table:
        """The matrix and its labels; there is no column to choose as the target."""
        if request.target is not None:
            raise DataError(
                f"{self.source}: the labels are stored beside the features; "
                f"the target {request.target!r} cannot be chosen."
            )
        if request.ignore:
            raise DataError(
                f"{self.source}: only columns of tables can be ignored, and this is a matrix."
            )
        _refuse_nonfinite(self.X, self.source, request.blanks)
        if request.groups is not None:
            raise DataError(
                f"{self.source}: only a column of a table can hold groups, and this is a matrix."
            )
        if request.weights is not None:
            raise DataError(
                f"{self.source}: only a column of a table can hold weights, and this is a matrix."
            )
        if self.y is None:
            if request.labelled:
                raise DataError(f"{self.source}: no labels: the array 'y' is missing.")
            return Table(self.X, None, self.feature_names, None, self.source)
        y = class_labels(array_column("y", self.y), self.source)
        if request.labelled:
            refuse_too_wide(self.source, int(self.X.shape[1]), y, self.last_feature)
        return Table(self.X, y, self.feature_names, "y", self.source)

    def for_model(self, wanted: Wanted) -> Table:
        """The columns by name where both sides have names, otherwise all, if as many."""
        if wanted.ids is not None:
            raise DataError(
                f"{self.source}: only a column of a table can be kept (ids={wanted.ids!r}), and "
                "this is a matrix."
            )
        table = self.table(
            TableRequest(wanted.target, labelled=False, ignore=wanted.ignore, blanks=wanted.blanks)
        )
        if table.feature_names is None or wanted.feature_names is None:
            return same_width(table, wanted, may_pad=self.trailing_zeros_implied)
        return _by_name(table, list(wanted.feature_names))


def same_width(table: Table, wanted: Wanted, *, may_pad: bool) -> Table:
    """The table if it has the model's number of columns; sparse ones can be padded."""
    width = int(table.X.shape[1])
    names = None if wanted.feature_names is None else list(wanted.feature_names)
    if width == wanted.n_features:
        return replace(table, feature_names=names)
    if width < wanted.n_features and may_pad:
        return replace(table, X=_padded(table.X, wanted.n_features), feature_names=names)
    raise DataError(
        f"{table.source}: the file has {plural(width, 'feature column')} and the model "
        f"{wanted.n_features}"
        + ("." if may_pad else "; without names on both sides the numbers must agree.")
    )


def _padded(X: Any, width: int) -> sp.csr_array:
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def _by_name(table: Table, names: list[str]) -> Table:
    where = {name: j for j, name in enumerate(table.feature_names or [])}
    missing = [name for name in names if name not in where]
    if missing:
        raise DataError(
            f"{table.source}: {plural(len(missing), 'column')} of the model not in the file: "
            f"{listed(missing)}."
        )
    columns = [where[name] for name in names]
    return replace(table, X=table.X[:, columns], feature_names=names)


def _refuse_sizes(data: PlainMatrix) -> None:
    rows, columns = data.X.shape
    if rows == 0 or columns == 0:
        raise DataError(f"{data.source}: no data: {rows} rows, {columns} feature columns.")
    if columns > MAX_FEATURES:
        raise DataError(
            f"{data.source}: {columns} feature columns, more than the {MAX_FEATURES} that can be "
            "used; the file is probably damaged."
        )
    if data.y is not None and data.y.shape != (rows,):
        raise DataError(f"{data.source}: {rows} rows but labels of shape {data.y.shape}.")
    names = data.feature_names
    if names is not None and (len(names) != columns or len(set(names)) != columns):
        raise DataError(
            f"{data.source}: {columns} feature columns need as many different names, "
            f"and there are {len(set(names))}."
        )


def _refuse_nonfinite(X: FeatureMatrix, source: str, blanks: bool) -> None:
    values = X.data if isinstance(X, sp.csr_array) else X
    if np.isfinite(values).all() or (blanks and not np.isinf(values).any()):
        return
    entries = sp.coo_array(X)  # an entry that is not finite is never dropped as a zero
    bad = np.flatnonzero(~np.isfinite(entries.data))
    row, column = (int(where[bad[0]]) for where in entries.coords)
    raise DataError(
        f"{source}: {plural(bad.size, 'missing or infinite value')}; the first is in row "
        f"{row + 1}, feature column {column + 1} (both counted from 1)."
    )
