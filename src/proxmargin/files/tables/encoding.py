"""From named columns to a feature matrix: numbers as they are, text as one feature per level."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, listed, plural
from proxmargin.files.tables.contents import Column, FeatureMatrix, is_number
from proxmargin.models.fitting.frames import users_level
from proxmargin.runtime.memory import shortage

# Below this share of entries that can be non-zero, a one-hot matrix is stored sparse.
_DENSE_FROM = 0.1
# Missing cells are searched for in every column, but a message names only the first few.
_CELLS_NAMED = 5
# Share of numbers among its cells above which a column of text was probably meant to be numbers.
_MOSTLY = 0.5
# What to do about cells that cannot be used.
_CORRECT = "remove these rows or fill in the values"
_FILL = (
    f"{_CORRECT}: --impute median (or mean, constant) on the command line, "
    "compare(..., preprocess=SimpleImputer()) in Python"
)


@dataclass(frozen=True)
class Feature:
    """One feature: a numeric column, or the indicator that a column equals a level."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column}={self.level}"


def features_of(columns: Sequence[Column]) -> list[Feature]:
    """All features of a training table: text columns give one per level, in sorted order."""
    found = []
    for column in columns:
        present = column.values[~column.missing]
        levels = [None] if column.is_numeric else sorted(set(present.tolist()))
        found += [Feature(column.name, level) for level in levels]
    return found


def feature_matrix(
    features: Sequence[Feature], columns: Mapping[str, Column], source: str
) -> FeatureMatrix:
    """The matrix whose column j is ``features[j]``.

    A level that no feature names gives zeros. Float32 is kept where every numeric column is
    at most that wide; everything else is float64.

    Raises DataError: there is not enough memory for it.
    """
    n_samples = len(next(iter(columns.values())).values)
    kinds = {columns[f.column].values.dtype for f in features if f.level is None}
    narrow = {np.dtype(np.float16), np.dtype(np.float32)}
    dtype = np.float32 if kinds and kinds <= narrow else np.float64
    dense_share = len({f.column for f in features}) / max(len(features), 1)
    if dense_share >= _DENSE_FROM:
        short = shortage(n_samples * len(features) * np.dtype(dtype).itemsize)
        if short:
            raise DataError(
                f"{source}: {n_samples} rows of {len(features)} features need {short}; use fewer."
            )
        return _dense(features, columns, np.zeros((n_samples, len(features)), dtype=dtype))
    return _sparse(features, columns, n_samples, dtype)


def _dense(
    features: Sequence[Feature], columns: Mapping[str, Column], X: NDArray[Any]
) -> NDArray[Any]:
    for j, feature in enumerate(features):
        if feature.level is None:
            X[:, j] = _numbers_of(columns[feature.column])
    for column, positions in _levels(features).items():
        rows, where = _indicators(columns[column], positions)
        X[rows, where] = 1.0
    return X


def _numbers_of(column: Column) -> NDArray[Any]:
    """The values of a numeric column, NaN where they are missing."""
    if not column.missing.any():
        return column.values
    wide = np.result_type(column.values.dtype, np.float16)
    return np.where(column.missing, np.nan, column.values.astype(wide))


def _sparse(
    features: Sequence[Feature], columns: Mapping[str, Column], n_samples: int, dtype: Any
) -> sp.csr_array:
    rows, where, values = [], [], []
    for j, feature in enumerate(features):
        if feature.level is None:
            numbers = _numbers_of(columns[feature.column]).astype(dtype)
            filled = np.flatnonzero(numbers)
            rows.append(filled)
            where.append(np.full(filled.size, j))
            values.append(numbers[filled])
    for column, positions in _levels(features).items():
        filled, at = _indicators(columns[column], positions)
        rows.append(filled)
        where.append(at)
        values.append(np.ones(filled.size, dtype=dtype))
    triplets = (np.concatenate(values), (np.concatenate(rows), np.concatenate(where)))
    return sp.coo_array(triplets, shape=(n_samples, len(features))).tocsr()


def _levels(features: Sequence[Feature]) -> dict[str, dict[str, int]]:
    positions: dict[str, dict[str, int]] = {}
    for j, feature in enumerate(features):
        if feature.level is not None:
            positions.setdefault(feature.column, {})[feature.level] = j
    return positions


def _indicators(
    column: Column, positions: Mapping[str, int]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    found = np.array(
        [positions.get(text, -1) for text in map(str, column.values.tolist())], dtype=np.intp
    )
    rows = np.flatnonzero((found >= 0) & ~column.missing)
    return rows, found[rows]


def refuse_text(columns: Sequence[Column], source: str, *, way_out: str) -> None:
    text = [column for column in columns if not column.is_numeric]
    if text:
        raise DataError(
            f"{source}: {plural(len(text), 'column')} not numeric: "
            f"{listed(map(_example, text), quote=False)}; {way_out}."
        )


def warn_of_stray_text(columns: Sequence[Column], source: str) -> None:
    """Warn, once, of text columns most of whose cells are numbers: they become levels, too."""
    text = [column for column in columns if not column.is_numeric]
    numbers = {column.name: _numbers_among(column)[1] for column in text}
    shares = {name: float(each.mean()) for name, each in numbers.items() if each.size}
    stray = [column for column in text if _MOSTLY < shares.get(column.name, 0.0) < 1.0]
    if stray:
        warnings.warn(
            f"{source}: {plural(len(stray), 'column')} of numbers with cells that are none: "
            f"{listed(map(_example, stray), quote=False)}; each value becomes a feature of its "
            "own: correct these cells, or ignore the columns.",
            UserWarning,
            stacklevel=users_level(),
        )


def _numbers_among(column: Column) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows of cells that are not missing, and whether each is a number."""
    present = np.flatnonzero(~column.missing)
    cells = column.values[present].tolist()  # with a decimal point or comma: it is not known
    return present, np.array([is_number(cell, ",") for cell in cells], dtype=bool)


def _example(column: Column) -> str:
    """The first cell that is no number; where there are others, how many cells are numbers."""
    present, numbers = _numbers_among(column)
    row = int(present[numbers.argmin()])
    mixed = numbers.any() and not numbers.all()
    others = f"; {numbers.sum()} of {present.size} cells are numbers" if mixed else ""
    return f"{column.name!r} (row {row + 1} holds {str(column.values[row])[:40]!r}{others})"


def refuse_unusable_cells(columns: Sequence[Column], source: str, blanks: bool = False) -> None:
    """Refuse infinite cells, and missing ones unless ``blanks`` are to be kept. By data row (from
    1) and column name."""
    if not blanks:
        _refuse_cells({c.name: c.missing for c in columns}, source, "missing", _FILL)
    _refuse_cells({c.name: c.infinite() for c in columns}, source, "infinite", _CORRECT)


def _refuse_cells(
    masks: Mapping[str, NDArray[np.bool_]], source: str, kind: str, way_out: str
) -> None:
    counts = {name: int(np.count_nonzero(mask)) for name, mask in masks.items()}
    total = sum(counts.values())
    if total:
        cells = [
            f"row {row + 1}, column {name!r}"
            for name, mask in masks.items()
            if counts[name]
            for row in np.flatnonzero(mask)[:_CELLS_NAMED]
        ][:_CELLS_NAMED]
        more = f" and {total - len(cells)} more" if total > len(cells) else ""
        raise DataError(
            f"{source}: {plural(total, kind + ' value')}: {'; '.join(cells)}{more} "
            f"(counting data rows from 1); {way_out}."
        )
