"""Whether the order of the rows carries information, which shuffled folds hide.

Under rows in random order the covariance of a feature with a cosine over their positions is a sum
over a random permutation. Cosines of a uniform variable are strictly sub-Gaussian, so that
``2 exp(-z^2 / 2)`` bounds the p-value of ``z = sqrt(n) r`` for features of any distribution.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import EPS
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.types import Array, Values

WAVES = 8  # half periods of the fastest cosine: a trend, and blocks as long as a quarter of it
LEVEL = 0.01  # of false alarms, for all features and cosines together (Bonferroni)
LEAST = 0.1  # correlation below which a drift of many rows is too small to matter
MOST_ENTRIES = 1 << 22  # of the rows that are looked at, evenly spaced
FEWEST_ROWS = 500
BETWEEN = ("proxmargin", "sklearn", "joblib")  # modules between a caller and a fit
BLOCK_ENTRIES = 1 << 17  # that are converted at a time: 1 MB


class RowOrderWarning(UserWarning):
    """The order of the rows carries information."""


class Drift(NamedTuple):
    """What changes most along the rows."""

    column: int | None  # a feature; None: the classes
    correlation: float  # with a trend or a slow wave


def drift(X: Values, codes: NDArray[np.integer]) -> Drift | None:
    """The strongest drift of the classes, or of a feature (of ``X``, dense or sparse or None)
    within them; None where chance explains it. Classes in one block each, as many files have them,
    are no drift."""
    n_classes = int(codes.max()) + 1
    if np.count_nonzero(np.diff(codes)) >= n_classes:
        found = _Waves.of(np.zeros(codes.size, np.intp)).strongest(np.eye(n_classes)[codes])
        if found is not None:
            return found._replace(column=None)
    if X is None:
        return None
    step = max(1, X.shape[0] // max(FEWEST_ROWS, MOST_ENTRIES // max(X.shape[1], 1)))
    kept = slice(step // 2, None, step)
    return _Waves.of(codes[kept].astype(np.intp)).strongest(X if step == 1 else X[kept])


class _Waves(NamedTuple):
    """Cosines over the positions of the rows within their classes."""

    values: Array  # (n_samples, WAVES)
    members: Array  # (n_samples, n_classes); zero in classes too small for the cosines
    sizes: Array  # (n_classes,), zero where they are too small

    @classmethod
    def of(cls, codes: NDArray[np.intp]) -> _Waves:
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
        first = np.cumsum(sizes) - sizes
        place = np.empty(codes.size, np.intp)
        place[order] = np.arange(codes.size) - first[codes[order]]
        position = np.pi * (place + 0.5) / sizes[codes]
        values = np.sqrt(2.0) * np.cos(position[:, None] * np.arange(1, WAVES + 1))
        usable = sizes > WAVES
        values[~usable[codes]] = 0.0
        return cls(values, np.eye(sizes.size)[codes] * usable, np.where(usable, sizes, 0.0))

    def strongest(self, X: Values) -> Drift | None:
        """The column with the largest correlation with one of the cosines."""
        best, column = 0.0, -1
        width = max(1, BLOCK_ENTRIES // len(self.values))
        step = X.shape[1] if hasattr(X, "tocsr") else width
        for start in range(0, X.shape[1], max(step, 1)):
            part = X if hasattr(X, "tocsr") else np.array(X[:, start : start + step], np.float64)
            z = self._statistics(part)
            if z.size and z.max() > best:
                best, column = float(z.max()), start + int(z.argmax())
        chance = 2.0 * np.exp(-0.5 * best**2) * X.shape[1] * WAVES
        correlation = best / float(np.sqrt(max(self.sizes.sum(), 1.0)))
        if chance < LEVEL and correlation > LEAST:
            return Drift(column, min(correlation, 1.0))
        return None

    def _statistics(self, columns: Any) -> Array:
        """The largest ``|z|`` of each column; 0 for constant ones."""
        with np.errstate(all="ignore"):  # entries that are not finite are for others to refuse
            if not hasattr(columns, "tocsr"):
                columns -= columns.mean(axis=0)  # squares lose digits far from zero
            squared = columns.power(2) if hasattr(columns, "tocsr") else columns**2
            squares = self.members.T @ squared
            means = self.members.T @ columns / np.maximum(self.sizes, 1.0)[:, None]
            within = np.maximum(squares - self.sizes[:, None] * means**2, 0.0)
            variance = (self.sizes / np.maximum(self.sizes - 1.0, 1.0)) @ within
            z = np.abs(columns.T @ self.values).max(axis=1) / np.sqrt(variance)
        varies = variance > len(self.values) * EPS * squares.sum(axis=0)
        return np.where(varies & np.isfinite(z), z, 0.0)


def warn_of_row_order(X: Any, codes: NDArray[np.integer], names: Sequence[Any] | None) -> None:
    """Warn once where the order of the rows carries information; ``names``: of the features."""
    found = drift(X, codes)
    if found is not None and not _is_of_told_rows():
        warnings.warn(told(found, names), RowOrderWarning, stacklevel=users_level())


_TOLD: set[tuple[str, int]] = set()  # calls of scikit-learn that have been warned of


def _is_of_told_rows() -> bool:
    """Whether this is a further fit of a cross-validation by scikit-learn, whose folds are parts of
    rows that were told of; it is known by the caller's line."""
    frame, within = sys._getframe(2), False
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        within |= frame.f_globals["__name__"].startswith("sklearn.")
        frame = frame.f_back
    call = frame.f_code.co_filename, frame.f_lineno
    again = within and call in _TOLD
    _TOLD.update([call] if within else [])
    return again


def told(found: Drift, names: Sequence[object] | None = None) -> str:
    """The sentence about a drift."""
    what = "the classes change"
    if found.column is not None:
        name = f"x{found.column}" if names is None else names[found.column]
        what = f"feature {str(name)!r} changes"
    return (
        f"the order of the rows carries information: {what} along them (correlation "
        f"{found.correlation:.2f}), which shuffled rows do not tell. If later rows are to be "
        "predicted from earlier ones hold out the last ones: cv=TimeSeriesSplit(5) of "
        "sklearn.model_selection (on the command line: --splits time); if rows of one patient or "
        "batch follow each other give groups"
    )
