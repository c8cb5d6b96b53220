"""Validation of input, with an error message that names the parameter or the entry."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from proxmargin.data.datasets import Dataset
from proxmargin.data.designs.blocks.device import in_memory
from proxmargin.data.designs.samples import canonical, first_entry, is_missing, sentence
from proxmargin.data.inputs.aligned import (
    as_objects,
    check_objects,
    needs_numbers,
    refuse_masked,
    refuse_mixed,
    refuse_other_order,
)
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import LARGEST
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Array, Estimator, Matrix, Record, Values

OF_ENTRIES = ("could not convert", "setting an array element")  # of errors of NumPy
# names of types whose entries NumPy turns into counts of a unit, into a part of them, or not at all
NO_NUMBERS = ("date", "time", "duration", "period", "interval", "complex")
LARGEST_OFFSET = 1e70  # of a score; the same limit as for entries of the data


@dataclass(frozen=True)
class Magnitudes:
    """The admissible range of the largest absolute entry of the data."""

    least: float  # for data that are not all zero; single entries may be smaller
    most: float
    # the range with ``standardize=True``, where that is a choice
    standardized: Magnitudes | None = None

    def advice(self, largest: float) -> str:
        """How to bring data with this largest absolute entry into the range."""
        other = self.standardized
        helps = other is not None and other.least <= largest <= other.most
        return "rescale the features" + (", or set standardize=True" if helps else "")


# If data are standardised, or only multiplied by coefficients, only squares must not overflow.
RESCALED = Magnitudes(1e-140, 1e140)
# Methods multiply up to four entries of the data: a curvature ``g'X'Xg`` at a slope ``g = X'a``.
# Fourth powers of the largest entry stay within the range of float64, 1e-308 to 1.8e308, with 28
# decimal orders left for sums over samples and features and for terms that underflow.
AS_THEY_ARE = Magnitudes(1e-70, 1e70, standardized=RESCALED)
ANY_SIZE = replace(RESCALED, least=0.0)


def takes_objects(estimator: Estimator) -> bool:
    """Whether an estimator compares samples by a function alone."""
    return bool(getattr(estimator, "_takes_objects", False))


def validated(estimator: Estimator, X: Any, y: Any) -> tuple[Values, Values]:
    """Validated features and labels for a fit, copied only if they must be converted. Raises
    ValueError: wrong shapes, fewer than two samples, no features, entries that are not finite
    numbers (with their row and column) or whose products leave the range of float64, labels that
    are not classes."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    y = y if isinstance(y, np.ndarray) else in_memory(y)
    if _are_plain(X, y):
        estimator.n_features_in_ = X.shape[1]
        for name in ("feature_names_in_", "_column_labels"):  # of an earlier fit
            estimator.__dict__.pop(name, None)
    else:
        refuse_masked("X", X)
        _refuse_no_numbers(X)
        _check_lengths(X, y)
        check_labels(y, X)
        if hasattr(X, "columns"):
            _check_column_names(X)
        objects = as_objects(X) if takes_objects(estimator) else None
        if objects is not None:
            return objects, _labels_of_objects(estimator, objects, y)
        given = X
        X, y = _converted(estimator, X, y, ensure_min_samples=2)
        _note_columns(estimator, given)
    if not _are_few_integers(y):
        check_classification_targets(y)
    return _checked_entries(estimator, X, magnitudes_for(estimator)), y


def _are_plain(X: Values, y: Values) -> bool:
    """Whether X and y are arrays that scikit-learn would take as they are, which it tells in a
    fifth of the time of a fit to a hundred samples; no label is missing."""
    is_table = type(X) is np.ndarray and X.ndim == 2 and X.shape[0] > 1 and X.shape[1] > 0
    plain = is_table and X.dtype in (np.float64, np.float32)
    if not (plain and type(y) is np.ndarray and y.shape == X.shape[:1]):
        return False
    return y.dtype.kind in "iu" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))


def _note_columns(estimator: Estimator, X: Features) -> None:
    """Keep the labels of columns that scikit-learn takes for no names: those that are not text."""
    columns = getattr(X, "columns", None)
    if columns is not None and not hasattr(estimator, "feature_names_in_"):
        estimator._column_labels = list(columns)
    else:
        estimator.__dict__.pop("_column_labels", None)


def _labels_of_objects(estimator: Estimator, objects: Values, y: Labels) -> Values:
    """The validated labels of samples that are objects, of which an estimator notes no features."""
    check_objects(estimator, objects)
    if len(objects) < 2:
        raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required")
    for name in ("n_features_in_", "feature_names_in_", "_column_labels"):
        estimator.__dict__.pop(name, None)
    labels: Values = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def check_labels(y: object, X: object) -> None:
    """Raise ValueError for a label that is missing (None, NaN, masked), with its row, for numbers
    among text, and for labels that name the rows of ``X`` in another order."""
    refuse_masked("y", y)
    refuse_other_order("y", y, X)
    column = np.asarray(y)
    if column.dtype.kind == "c":
        raise ValueError(f"y holds {column.dtype}, which is no label: give whole numbers or text")
    if isinstance(y, list | tuple) and column.dtype.kind == "U" and column.ndim == 1:
        refuse_mixed("y", y)  # which the array made text
    if column.dtype.kind not in "fO" or column.ndim not in (1, 2):
        return
    if column.dtype == object:
        entries = column.ravel().tolist()
        missing = np.array([is_missing(each) for each in entries])
    else:
        missing = np.isnan(column.ravel())
    if missing.any():
        row = int(missing.argmax())
        what = "y has" if column.ravel()[row] is None else "Input y contains NaN:"
        raise ValueError(
            f"{what} no label in row {row} (counted from 0): leave such rows out, or label them"
        )
    if column.dtype == object:
        refuse_mixed("y", entries)
        if entries and not isinstance(entries[0], Number | str | bytes):
            raise ValueError(
                f"y holds {shown(entries[0])} in row 0, of the type {type(entries[0]).__name__}, "
                "which is no label: give text, such as y.astype(str) of pandas, or whole numbers"
            )


def _refuse_no_numbers(X: Any) -> None:
    """Raise ValueError for a column of dates, durations or intervals, of which arrays of numbers
    would hold nanoseconds since 1970, or of complex numbers."""
    if type(X) is np.ndarray and X.dtype.kind not in "mMc":
        return
    names = getattr(X, "columns", None) if hasattr(X, "dtypes") else None
    dtypes = [getattr(X, "dtype", None)] if names is None else list(X.dtypes)
    kinds = {each: str(each).lower().removeprefix("sparse[") for each in set(dtypes)}
    column = next((k for k, each in enumerate(dtypes) if kinds[each].startswith(NO_NUMBERS)), None)
    if column is None:
        return
    named = "" if names is None else f" in column {column} ({str(names[column])!r})"
    ways = "days since a date, the month, or the middle of an interval, or leave it out"
    said = f"X holds {dtypes[column]}{named}, which is no number: give numbers, such as "
    if "complex" in kinds[dtypes[column]]:  # the start is scikit-learn's
        said, ways = f"Complex data not supported: {said}", "X.real and X.imag, or abs(X)"
    raise ValueError(said + ways)


def _check_column_names(X: Any) -> None:
    """Raise ValueError for two columns of a data frame with one name."""
    names = [str(each) for each in X.columns]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has {names.count(repeated[0])} columns of the name {repeated[0]!r}: rename them, "
            "so that each name is that of one column"
        )


def magnitudes_for(estimator: Estimator) -> Magnitudes:
    """The admissible range of the largest entry of the data of a fit."""
    return RESCALED if getattr(estimator, "standardize", True) else AS_THEY_ARE


def validated_features(estimator: Estimator, X: Any) -> Values:
    """Validated features for a prediction by a fitted estimator."""
    refuse_masked("X", X)
    _refuse_no_numbers(X)
    if takes_objects(estimator) and not hasattr(estimator, "n_features_in_"):
        objects = as_objects(X)
        if objects is None:
            raise ValueError(
                f"X holds no objects, and this {type(estimator).__name__} was fitted to objects: "
                "give a list or an array of such"
            )
        return objects
    if not _is_as_in_fit(estimator, X):
        X = _converted(estimator, X, None, reset=False)
    return _checked_entries(estimator, X, ANY_SIZE)


def _is_as_in_fit(estimator: Estimator, X: Features) -> bool:
    """Whether scikit-learn would return these rows as they are, which takes it longer than the
    scores of one row."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.shape[1:] == (getattr(estimator, "n_features_in_", None),)
        and len(X) > 0
        and not hasattr(estimator, "feature_names_in_")
    )


def validated_weights(sample_weight: Any, X: Features) -> NDArray[np.float64] | None:
    """Sample weights: finite, non-negative, not all zero; None stays None."""
    if sample_weight is None:
        return None
    rows = np.empty((_num_samples(X), 0))  # scikit-learn asks X for its library, too
    given = _floats("sample_weight", sample_weight)
    weights: NDArray[np.float64] = _check_sample_weight(
        given if given.ndim else float(given), rows, dtype=np.float64
    )
    if np.any(weights < 0):
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must be >= 0, got {weights[row]:g} in row {row} (counted from 0)"
        )
    if weights.max(initial=0.0) > LARGEST:
        row = int(np.argmax(weights))
        raise ValueError(
            f"sample_weight must be at most {LARGEST:g}, got {weights[row]:g} in row {row} "
            "(counted from 0): only ratios of weights matter"
        )
    if not np.any(weights):  # recent versions of scikit-learn raise above
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def _floats(name: str, values: Values) -> Array:
    """The values of the samples. ValueError that names them: text, complex numbers, dates."""
    try:
        found = np.asarray(in_memory(values))
        if found.dtype.kind in "biufO":
            return found.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be one number a sample: could not convert {shown(values)}")


def offset_argument(offset: object) -> Record:
    """The argument ``offset`` of a method, which those of subclasses may lack; empty for None."""
    return {} if offset is None else {"offset": offset}


def validated_offset(offset: Any, X: Features) -> NDArray[np.float64]:
    """The validated offset, one finite number a sample, (n_samples,); zeros for 0. Raises
    ValueError: another shape, or an entry that is not a number of modest size (with its row)."""
    column = _floats("offset", offset)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    rows = _num_samples(X)
    column = np.zeros(rows) if column.ndim == 0 and column == 0 else column
    if column.shape != (rows,):
        raise ValueError(
            f"offset must be one number a sample, ({rows},) here, got an array of shape "
            f"{column.shape}"
        )
    wrong = ~(np.abs(column) <= LARGEST_OFFSET)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise ValueError(
            f"offset must hold finite numbers of at most {LARGEST_OFFSET:g}, got {column[row]:g} "
            f"in row {row} (counted from 0)"
        )
    return column


def _are_few_integers(y: Values) -> bool:
    """Whether all labels are integers, and at most two or half as many as there are samples: valid
    classes. `check_classification_targets` takes a millisecond, as long as a fit to a small
    microarray."""
    if y.dtype.kind not in "iuf":
        return False
    low, high = int(y.min()), int(y.max())
    if 2 * (high - low + 1) > y.size:
        return bool(np.all((y == low) | (y == high)))
    return y.dtype.kind != "f" or bool(np.all(y == np.trunc(y)))


def _check_lengths(X: Features, y: Labels) -> None:
    """Raise if the numbers of samples and labels differ; other wrong shapes are reported later."""
    try:
        rows, labels = _num_samples(X), _num_samples(y)
    except TypeError:
        return
    if getattr(X, "ndim", 2) != 2:
        return
    if rows != labels:
        raise ValueError(
            f"y has {labels} labels but X has {rows} rows: inconsistent numbers of samples"
        )


def _converted(estimator: Estimator, X: Values, y: Labels | None, **options: object) -> Matrix:
    if isinstance(X, Dataset):
        raise ValueError(
            "X is a data set on disk, which only fit, predict and score of single linear models "
            "take: here all rows are needed in memory"
        )
    is_array = isinstance(X, np.ndarray)
    X = X if is_array else in_memory(X)
    arguments = {"X": X} if y is None else {"X": X, "y": y}
    try:
        return validate_data(
            estimator,
            **arguments,
            # of an array the answer does not matter, and tags take longer than its other checks
            accept_sparse=not is_array and get_tags(estimator).input_tags.sparse and ["csr", "csc"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            accept_large_sparse=True,
            **options,
        )
    except (TypeError, ValueError) as error:
        objects = as_objects(X)
        if objects is not None and objects.ndim == 1:
            raise needs_numbers(estimator, objects) from error
        raise _located(error, X) from error


def _located(error: Exception, X: Features) -> Exception:
    """The error with the row and column of the entry that could not be converted."""
    of_entry = isinstance(error, TypeError) or any(each in str(error) for each in OF_ENTRIES)
    if not of_entry or sparse.issparse(X):
        return error
    cells = np.asarray(X, dtype=object)
    for row, line in enumerate(cells if cells.ndim == 2 else []):
        for column, cell in enumerate(line):
            try:
                float(cell)
            except (TypeError, ValueError):
                names = getattr(X, "columns", None)
                named = column if names is None else f"{column} ({str(names[column])!r})"
                where = f"row {row}, column {named} (counted from 0)"
                said = f"X holds {shown(cell)} in {where}: could not convert it to a number"
                # scikit-learn has a TypeError with NumPy's words for objects
                is_type = isinstance(error, TypeError)
                return TypeError(f"{said}: {error}") if is_type else ValueError(said)
    return error


def _checked_entries(estimator: Estimator, X: Any, allowed: Magnitudes) -> Values:
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        X = copy(X)  # shares the arrays; `check_format` may drop unused capacity of the caller's
        X.check_format(full_check=True)
        X = canonical(X)
        entries = X.data
    else:
        entries = X
    if entries.size and not _are_modest(entries, allowed):
        # two reductions without temporaries; they propagate NaN and infinities
        low, high = float(entries.min()), float(entries.max())
        largest = max(-low, high)
        if not (np.isfinite(low) and np.isfinite(high)) or largest > allowed.most:
            raise ValueError(_first_bad_entry(estimator, X, largest, allowed))
        if 0.0 < largest < allowed.least:
            raise ValueError(_all_too_small(estimator, X, largest, allowed))
    return X


def _are_modest(entries: Values, allowed: Magnitudes) -> bool:
    """A quick sufficient test that every entry is finite and the largest one in the range. By the
    sum of squares, which is NaN or large if an entry is, and small if all are."""
    if entries.dtype != np.float64 or not entries.flags.forc:
        return False
    flat = entries.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(entries.size * allowed.least**2 <= np.vdot(flat, flat) <= allowed.most**2)


def _first_bad_entry(estimator: Estimator, X: Values, largest: float, allowed: Magnitudes) -> str:
    entry = first_entry(X, lambda sizes: ~(sizes <= allowed.most))
    names = getattr(estimator, "feature_names_in_", ())
    name = names[entry.column] if entry.column < len(names) else None
    return sentence(entry, allowed.most, name=name, advice=allowed.advice(largest))


def _all_too_small(estimator: Estimator, X: Values, largest: float, allowed: Magnitudes) -> str:
    row, column, value = first_entry(X, lambda sizes: sizes == largest)
    names = getattr(estimator, "feature_names_in_", ())
    named = f"{column} ({names[column]!r})" if column < len(names) else str(column)
    return (
        f"Input X contains nothing larger than {abs(value):g} in row {row}, column "
        f"{named} (counted from 0), below {allowed.least:g}, where "
        f"products underflow: {allowed.advice(largest)}"
    )
