"""Labels, groups and weights of samples; text columns as one feature per level."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.contents import FeatureMatrix, Table, is_number, is_text
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


def written_labels(column: Any) -> Any:
    """Text as numbers or booleans where all of it is that and no digit gets lost."""
    if column.isna().any():
        return column  # these are no labels yet
    places, words = pandas().factorize(column)
    meant = _meant([word.strip() for word in words])
    return column if meant is None else pandas().Series(meant[places], name=column.name)


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


def class_labels(labels: NDArray[Any], name: str, source: str) -> NDArray[Any]:
    """The labels, one per sample: str, bool or integers (also of whole floats); other numbers as
    they are. DataError: one is missing or infinite, or they are measurements. Warns once of classes
    that differ in blanks or case only, or are words for a missing value."""
    _refuse_missing(
        labels, name, source, "target", "labels", ", or choose another target column (target=NAME)"
    )
    if labels.dtype.kind not in "fiub":
        words = _as_words(labels, name, source)
        _warn_of_slips(np.unique(words).tolist(), name, source)
        return words
    # numbers beyond the integers are compared with integers, and scikit-learn warns when most
    # labels are distinct: small tables are allowed to be
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        kind = type_of_target(labels)
    if kind == "continuous":
        raise DataError(
            f"{source}: the target {name!r} holds {plural(len(np.unique(labels)), 'value')} "
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


def group_names(column: Any, source: str) -> NDArray[Any]:
    """The group of each sample: numbers, or text as it is written. Raises DataError: the group of a
    sample is missing or infinite."""
    groups, role = column.to_numpy(), "column of groups"
    _refuse_missing(groups, column.name, source, role, "groups")
    return groups if groups.dtype.kind in "fiub" else _as_words(groups, column.name, source, role)


def _as_words(
    labels: NDArray[Any], name: str, source: str, role: str = "target"
) -> NDArray[np.str_]:
    """Labels as an array of strings, each of which takes as much room as the longest."""
    lengths = np.fromiter(map(len, labels.tolist()), dtype=np.int64)
    # held at once: the words, those without blanks around them, and those in their order
    short = shortage(3 * 4 * int(lengths.max(initial=0)) * lengths.size)
    if short:
        raise DataError(
            f"{source}: the {role} {name!r} has a label of {lengths.max()} characters in "
            f"row {lengths.argmax() + 1} (counting data rows from 1); labels of that length need "
            f"{short}: choose another column, or shorten the label."
        )
    return labels.astype(str)


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
    labels: NDArray[Any], name: str, source: str, role: str, entries: str, way_out: str = ""
) -> None:
    # text is missing where it is no string
    unusable = np.flatnonzero(
        ~np.isfinite(labels)
        if labels.dtype.kind in "fiub"
        else [not isinstance(label, str) for label in labels.tolist()]
    )
    if unusable.size:
        raise DataError(
            f"{source}: the {role} {name!r} is missing or infinite in "
            f"{plural(unusable.size, 'row')} (row {listed(unusable + 1, quote=False)}, counting "
            f"data rows from 1); remove these rows or fill in their {entries}{way_out}."
        )


def sample_weights(column: Any, source: str) -> NDArray[np.float64]:
    """The weights, one a sample, as floats. Raises DataError: a weight is missing, infinite,
    negative or no number, by data row (from 1); or all are zero."""
    if is_text(column.dtype):
        row = _first_word(column)
        raise DataError(
            f"{source}: the weights {column.name!r} must be numbers, and row {row + 1} (counting "
            f"data rows from 1) holds {column.iloc[row][:40]!r}."
        )
    weights = column.to_numpy(dtype=np.float64)
    for kind, wrong in (
        ("missing", np.isnan(weights)),
        ("infinite", np.isinf(weights)),
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


def features_of(frame: Any) -> list[Feature]:
    """All features of a training table: text columns give one per level, in sorted order."""
    found = []
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        levels = sorted(frame[name].dropna().unique()) if is_text(dtype) else [None]
        found += [Feature(name, level) for level in levels]
    return found


def feature_matrix(features: Sequence[Feature], frame: Any, source: str) -> FeatureMatrix:
    """The matrix of the features; a level without a feature gives zeros. Float32 where every
    numeric column is at most that wide, else float64. DataError: too little memory."""
    numeric = [j for j, feature in enumerate(features) if feature.level is None]
    numbers = frame
    if len(numeric) < frame.shape[1] or len(numeric) < len(features):
        numbers = frame[[features[j].column for j in numeric]]
    kinds = set(numbers.dtypes)
    narrow = {np.dtype(np.float16), np.dtype(np.float32)}
    dtype = np.float32 if kinds and kinds <= narrow else np.float64
    shape = (len(frame), len(features))
    dense_share = len({f.column for f in features}) / max(len(features), 1)
    if dense_share >= _DENSE_FROM:
        short = shortage(shape[0] * shape[1] * np.dtype(dtype).itemsize)
        if short:
            raise DataError(
                f"{source}: {shape[0]} rows of {shape[1]} features need {short}; use fewer."
            )
        X = np.zeros(shape, dtype=dtype)
        X[:, slice(None) if len(numeric) == shape[1] else numeric] = numbers.to_numpy()
        for rows, columns in _indicators(features, frame):
            X[rows, columns] = 1.0
        return X
    values: NDArray[Any] = numbers.to_numpy(dtype=dtype)
    filled = np.nonzero(values)
    places = [(filled[0], np.array(numeric, dtype=np.intp)[filled[1]])]
    places += _indicators(features, frame)
    entries: NDArray[Any] = np.ones(sum(rows.size for rows, _ in places), dtype=dtype)
    entries[: filled[0].size] = values[filled]
    rows, columns = (np.concatenate(each) for each in zip(*places, strict=True))
    return sp.coo_array((entries, (rows, columns)), shape=shape).tocsr()


def _indicators(
    features: Sequence[Feature], frame: Any
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each column of text the rows with a level that is a feature, and its position."""
    positions: dict[str, dict[str, int]] = {}
    for j, feature in enumerate(features):
        if feature.level is not None:
            positions.setdefault(feature.column, {})[feature.level] = j
    for column, levels in positions.items():
        text = frame[column] if is_text(frame[column].dtype) else frame[column].map(str)
        found = text.astype(object).map(levels).fillna(-1).to_numpy(dtype=np.intp)
        rows = np.flatnonzero((found >= 0) & frame[column].notna().to_numpy())
        yield rows, found[rows]


def refuse_text(frame: Any, source: str, *, way_out: str) -> None:
    text = _text_columns(frame)
    if text:
        raise DataError(
            f"{source}: {plural(len(text), 'column')} not numeric: "
            f"{listed(map(_example, text), quote=False)}; {way_out}."
        )


def warn_of_stray_text(frame: Any, source: str) -> None:
    """Warn, once, of text columns most of whose cells are numbers: they become levels, too."""
    text = _text_columns(frame)
    shares = {column.name: float(_numbers_among(column)[1].mean()) for column in text}
    stray = [column for column in text if _MOSTLY < shares[column.name] < 1.0]
    if stray:
        warnings.warn(
            f"{source}: {plural(len(stray), 'column')} of numbers with cells that are none: "
            f"{listed(map(_example, stray), quote=False)}; each value becomes a feature of its "
            "own: correct these cells, or ignore the columns.",
            UserWarning,
            stacklevel=users_level(),
        )


def _text_columns(frame: Any) -> list[Any]:
    """The columns of text that hold anything."""
    names = (n for n, dtype in zip(frame.columns, frame.dtypes, strict=True) if is_text(dtype))
    return [frame[name] for name in names if frame[name].notna().any()]


def _numbers_among(column: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows of cells that are not missing, and whether each is a number."""
    present = np.flatnonzero(column.notna())
    cells = column.iloc[present].tolist()  # with a decimal point or comma: it is not known
    return present, np.array([is_number(cell, ",") for cell in cells], dtype=bool)


def _first_word(column: Any) -> int:
    """The row of the first cell that is no number."""
    present, numbers = _numbers_among(column)
    return int(present[numbers.argmin()])


def _example(column: Any) -> str:
    """The first cell that is no number; where there are others, how many cells are numbers."""
    present, numbers = _numbers_among(column)
    row = int(present[numbers.argmin()])
    mixed = numbers.any() and not numbers.all()
    others = f"; {numbers.sum()} of {present.size} cells are numbers" if mixed else ""
    return f"{column.name!r} (row {row + 1} holds {column.iloc[row][:40]!r}{others})"


def refuse_unusable_cells(frame: Any, source: str, blanks: bool = False) -> None:
    """Refuse infinite cells, and missing ones unless ``blanks`` are to be kept. By data row (from
    1) and column name."""
    if not blanks:
        _refuse_cells(frame.isna(), source, "missing", _FILL)
    floats = frame.select_dtypes("floating")
    values = floats.to_numpy()
    if not np.isfinite(values).all():
        infinite = pandas().DataFrame(np.isinf(values), columns=floats.columns)
        _refuse_cells(infinite, source, "infinite", _CORRECT)


def _refuse_cells(mask: Any, source: str, kind: str, way_out: str) -> None:
    counts = mask.to_numpy().sum(axis=0)
    total = int(counts.sum())
    if total:
        cells = [
            f"row {row + 1}, column {mask.columns[j]!r}"
            for j in np.flatnonzero(counts)[:_CELLS_NAMED]
            for row in np.flatnonzero(mask.iloc[:, j])[:_CELLS_NAMED]
        ][:_CELLS_NAMED]
        more = f" and {total - len(cells)} more" if total > len(cells) else ""
        raise DataError(
            f"{source}: {plural(total, kind + ' value')}: {'; '.join(cells)}{more} "
            f"(counting data rows from 1); {way_out}."
        )
