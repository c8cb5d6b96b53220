"""The interface of data files: their contents, and requests for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.tables.column import Column

FeatureMatrix: TypeAlias = "NDArray[Any] | sp.csr_array"


@dataclass(frozen=True, eq=False)
class Table:
    """Samples, labels and names, ready for an estimator.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), float64 or float32
    y : ndarray of shape (n_samples,), or None where the file carries no labels
    feature_names : list of str, or None where the format has no names
    target_name : str or None
        The column the labels came from.
    source : str
        The path or the name of the embedded set, for messages.
    groups : ndarray of shape (n_samples,), or None
        The group of each sample, where a column of groups was asked for.
    weights : float ndarray of shape (n_samples,), or None
        The weight of each sample, where a column of weights was asked for.
    ids : Column or None
        The column that was to be kept beside the features.
    """

    X: FeatureMatrix
    y: NDArray[Any] | None
    feature_names: list[str] | None
    target_name: str | None
    source: str
    groups: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    ids: Column | None = None

    def describe(self) -> dict[str, Any]:
        """Plain facts about the table, ready to print or to write as JSON."""
        rows, columns = (int(size) for size in self.X.shape)
        return {
            "source": self.source,
            "rows": rows,
            "columns": columns,
            "dtype": str(self.X.dtype),
            "sparse": bool(sp.issparse(self.X)),
            "density": _nonzeros(self.X) / (rows * columns) if rows and columns else 0.0,
            "named_features": self.feature_names is not None,
            "target": self.target_name,
            "classes": None if self.y is None else _class_counts(self.y),
        }


@dataclass(frozen=True)
class TableRequest:
    """What a training table should look like (see `proxmargin.read_data`)."""

    target: str | int | None = None
    encode: bool = False
    labelled: bool = True
    ignore: Sequence[str | int] = ()
    groups: str | int | None = None
    weights: str | int | None = None
    blanks: bool = False


@dataclass(frozen=True)
class Wanted:
    """The columns a fitted model needs: by name where it knows names, otherwise by count.

    ``ignore`` are columns that are neither features nor the target, and ``ids`` is one that is to
    be kept as it is.
    """

    feature_names: Sequence[str] | None
    n_features: int
    target: str | int | None = None
    ignore: Sequence[str | int] = ()
    ids: str | int | None = None
    blanks: bool = False


class TableSource(Protocol):
    """An opened data file: the same two questions whatever the format."""

    def table(self, request: TableRequest) -> Table:
        """All features and the labels."""

    def for_model(self, wanted: Wanted) -> Table:
        """The features of a fitted model, in its order; labels where the file has them."""


def _nonzeros(X: FeatureMatrix) -> int:
    return int(np.count_nonzero(X.data if sp.issparse(X) else X))


def _class_counts(y: NDArray[Any]) -> dict[str, int]:
    classes, counts = np.unique(y, return_counts=True)
    return {str(label): int(count) for label, count in zip(classes, counts, strict=True)}
