"""Labels, groups and weights of samples; text columns as one feature per level."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.contents import Column, FeatureMatrix, Table, is_number
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.memory import free_bytes, shortage

# Beyond this, float64 no longer tells neighbouring integers apart.
_EXACT_INTEGERS = 2.0**53

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity)", re.IGNORECASE)
# digits that a conversion to a number would lose: leading zeros, and those beyond 18
_CODE = re.compile(r"[+-]?(0\d+|\d{19,})")
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}

# What a target column is usually called; used when the caller names none.
TARGET_NAMES = frozenset({"target", "label", "class", "y"})
# classes above which the last column is hardly the target, if no one has named it
_MANY_CLASSES = 20

# what people write where they do not know; CSV files have some of these as missing values already
_UNKNOWN = frozenset(
    {"", "?", "-", ".", "*", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "missing"}
)


def written_labels(column: Column) -> Column:
    """Text as numbers or booleans where all of it is that and no digit gets lost."""
    if column.missing.any():
        return column  # these are no labels yet
    places, words = pandas().factorize(column.values)
    meant = _meant([word.strip() for word in words])
    return Column(column.name, column.values if meant is None else meant[places], column.missing)


def _meant(words: list[str]) -> NDArray[Any] | None:
    """The numbers or booleans that distinct words denote, or None if they are just words."""
    if any(_CODE.fullmatch(word) for word in words):
        return None
    if all(word in _TRUTH for word in words):
        return np.array([_TRUTH[word] for word in words])
    if all(_WHOLE.fullmatch(word) for word in words):
        return np.array([int(word) for word in words])
    if all(_NUMBER.fullmatch(word) for word in words):
        return np.array([float(word) for word in words])
    return None


def class_labels(column: Column, source: str) -> NDArray[Any]:
    """The labels, one per sample: str, bool or integers (also of whole floats); other numbers as
    they are. DataError: one is missing or infinite, or they are measurements. Warns once of classes
    that differ in blanks or case only, or are words for a missing value."""
    _refuse_missing(
        column, source, "target", "labels", ", or choose another target column (target=NAME)"
    )
    if not column.is_numeric:
        words = _as_words(column, source)
        _warn_of_slips(np.unique(words).tolist(), column.name, source)
        return words
    labels = column.values
    # numbers beyond the integers are compared with integers, and scikit-learn warns when most
    # labels are distinct: small tables are allowed to be
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        kind = type_of_target(labels)
    if kind == "continuous":
        raise DataError(
            f"{source}: the target {column.name!r} holds {plural(len(np.unique(labels)), 'value')} "
            "that are not whole numbers, which looks like a measurement and not like classes; "
            "choose another target column (target=NAME), or turn the values into classes first."
        )
    exact = labels.astype(np.float64)  # half precision has no number as large
    whole = np.all(np.abs(exact) < _EXACT_INTEGERS) and np.all(exact == np.trunc(exact))
    return labels.astype(np.int64) if labels.dtype.kind == "f" and whole else labels


def warn_of_default_target(table: Table, source: str) -> None:
    """Warn where the last column, which no one has named, is hardly one of classes."""
    name = table.target_name
    if table.y is None or name is None or name.lower() in TARGET_NAMES:
        return
    classes, counts = np.unique(table.y, return_counts=True)
    if classes.size > _MANY_CLASSES or (classes.size > 2 and counts.min() == 1):
        warnings.warn(
            f"{source}: the last column, {name!r}, is taken for the target, and has {classes.size} "
            f"classes, {np.count_nonzero(counts == 1)} of them with one sample; if another column "
            "has the labels, name it (target=NAME).",
            UserWarning,
            stacklevel=users_level(),
        )


def group_names(column: Column, source: str) -> NDArray[Any]:
    """The group of each sample: numbers, or text as it is written. Raises DataError: the group of a
    sample is missing or infinite."""
    _refuse_missing(column, source, "column of groups", "groups")
    return column.values if column.is_numeric else _as_words(column, source, "column of groups")


def _as_words(column: Column, source: str, role: str = "target") -> NDArray[np.str_]:
    """Labels as an array of strings, each of which takes as much room as the longest."""
    lengths = np.fromiter(map(len, column.values.tolist()), dtype=np.int64)
    # held at once: the words, those without blanks around them, and those in their order
    short = shortage(3 * 4 * int(lengths.max(initial=0)) * lengths.size)
    if short:
        raise DataError(
            f"{source}: the {role} {column.name!r} has a label of {lengths.max()} characters in "
            f"row {lengths.argmax() + 1} (counting data rows from 1); labels of that length need "
            f"{short}: choose another column, or shorten the label."
        )
    return column.values.astype(str)


def _warn_of_slips(classes: list[str], name: str, source: str) -> None:
    alike: dict[str, list[str]] = {}
    for label in classes:
        alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    doubts = [
        f"{' and '.join(map(repr, same))} differ only in blanks or case"
        for same in alike.values()
        if len(same) > 1
    ] + [
        f"{label!r} looks like a missing value"
        for label in classes
        if label.strip().casefold() in _UNKNOWN
    ]
    if doubts:
        warnings.warn(
            f"{source}: of the classes in the target {name!r}, {listed(doubts, quote=False)}; "
            "each is a class of its own.",
            UserWarning,
            stacklevel=users_level(),
        )


def _refuse_missing(
    column: Column, source: str, role: str, entries: str, way_out: str = ""
) -> None:
    unusable = np.flatnonzero(column.missing | column.infinite())
    if unusable.size:
        raise DataError(
            f"{source}: the {role} {column.name!r} is missing or infinite in "
            f"{plural(unusable.size, 'row')} (row {listed(unusable + 1, quote=False)}, counting "
            f"data rows from 1); remove these rows or fill in their {entries}{way_out}."
        )


def sample_weights(column: Column, source: str) -> NDArray[np.float64]:
    """The weights, one a sample, as floats. Raises DataError: a weight is missing, infinite,
    negative or no number, by data row (from 1); or all are zero."""
    if not column.is_numeric:
        numbers = np.array([is_number(cell) for cell in column.values.tolist()], dtype=bool)
        row = int(np.flatnonzero(~column.missing & ~numbers)[0])
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


# vectors as long as the coefficients that a fit holds at once: 5 to 16, depending on the solver
_VECTORS = 8
_REMEDY = "choose fewer features, check that the target holds classes, or use more memory"


def refuse_too_wide(
    source: str, n_features: int, y: NDArray[Any], last_feature: Callable[[], str] | None = None
) -> None:
    """Refuse features and classes whose coefficients do not fit into the free memory.
    ``last_feature`` says where the last one is from, where one entry makes many features."""
    vector = 8 * _VECTORS * n_features
    if vector * max(len(y), 1) <= free_bytes():
        return  # however many classes there are
    classes = int(np.unique(y).size)
    short = shortage(vector * (1 if classes <= 2 else classes))
    if short:
        remedy = last_feature() if last_feature else _REMEDY
        raise DataError(
            f"{source}: a model of {plural(n_features, 'feature')} and {classes} classes needs "
            f"{short}; {remedy}."
        )


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
    """The matrix of the features; a level without a feature gives zeros. Float32 where every
    numeric column is at most that wide, else float64. DataError: too little memory."""
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
