"""Samples and values with labels of their own: objects, and values by feature or by sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.data.designs.samples import is_missing
from proxmargin.data.inputs.kinds import Features
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Estimator, Values

SHOWN_CHARACTERS = 60  # characters of an object that an error shows
SHOWN = 3  # features that an error names


def as_objects(X: Features) -> Values | None:
    """Samples that are no rows of numbers, as an array (n_samples, ...); None for rows of numbers.
    An array keeps its shape; a list becomes a one-dimensional array of its items."""
    if sparse.issparse(X) or isinstance(X, str | bytes | Mapping) or not hasattr(X, "__len__"):
        return None
    if isinstance(X, list | tuple):
        rows = X and (isinstance(X[0], list | tuple | Number) or hasattr(X[0], "__array__"))
        if not X or (rows and _are_numbers(X)):
            return None
        return np.fromiter(X, dtype=object, count=len(X))
    if _are_numbers(X):
        return None
    found = np.asarray(X)
    return found if found.dtype.kind in "biuf" else found.astype(object)


def check_objects(estimator: Estimator, objects: Values) -> None:
    """Raise ValueError if the parameters of the estimator ask for numbers."""
    if getattr(estimator, "standardize", False):
        raise ValueError(
            f"standardize=True needs rows of numbers, and X holds objects such as "
            f"{shown(objects[0], SHOWN_CHARACTERS)}: set standardize=False"
        )


def needs_numbers(estimator: Estimator, objects: Values) -> ValueError:
    """The error for samples that an estimator cannot compare."""
    name, kernel = type(estimator).__name__, getattr(estimator, "kernel", None)
    if kernel is None:
        needs = f"{name} needs rows of numbers"
    elif callable(kernel):
        needs = f"this {name} was fitted to rows of numbers"
    else:
        needs = (
            f"{name} with kernel={kernel!r} needs rows of numbers: a function of two lists of such "
            "objects, kernel(A, B), may compare them"
        )
    return ValueError(f"X holds objects such as {shown(objects[0], SHOWN_CHARACTERS)}, and {needs}")


def _are_numbers(X: Features) -> bool:
    """Whether samples are rows of numbers, or what is wrong with them is told of such."""
    try:
        values = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    if values.dtype.kind not in "OUS" or not values.size:
        return values.ndim <= 2
    if values.ndim == 1:
        return isinstance(values[0], Number)
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return values.ndim == 2


def refuse_masked(name: str, values: object) -> None:
    """Raise ValueError for a masked entry of a masked array, whose mask nothing else reads."""
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        return
    row, *column = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
    where = f"{row}, column {column[0]}" if column else f"{row}"
    raise ValueError(
        f"{name} has a masked entry in row {where} (counted from 0): leave such rows out, or give "
        f"{name}.filled(value)"
    )


def by_sample(name: str, values: Any, X: Any) -> Any:
    """Values of the samples in the order of the rows of ``X``; ``name`` is that of the argument. A
    pandas object with another index than ``X`` is put into its order; all others are in it already,
    and so are all if ``X`` has no index. Raises ValueError with the label of a row of ``X`` without
    an entry, or of a repeated one, and for a masked entry."""
    refuse_masked(name, values)
    given, rows = _index_of(values), _index_of(X)
    if given is None or rows is None or len(given) != len(rows) or given.equals(rows):
        return values  # other lengths are refused with both numbers
    for index, owner in ((rows, "X"), (given, name)):
        if not index.is_unique:
            repeated = index[index.duplicated()].tolist()[0]
            raise ValueError(
                f"{name} has another index than X, and {owner} has several rows {repeated!r}: "
                f"give {name}.to_numpy(), in the order of the rows of X"
            )
    places = given.get_indexer(rows)
    if np.any(places < 0):
        label = rows.tolist()[int(np.argmax(places < 0))]
        raise ValueError(
            f"{name} has no entry for row {label!r} of X: give it the index of X, or "
            f"{name}.to_numpy() if it is in the order of the rows of X"
        )
    return values.iloc[places]


def refuse_other_order(name: str, values: object, X: object) -> None:
    """Raise ValueError for a pandas object that is read in its own order and has the index of ``X``
    in another one: which of both is meant cannot be known."""
    given, rows = _index_of(values), _index_of(X)
    if given is None or rows is None or len(given) != len(rows) or given.equals(rows):
        return
    if given.is_unique and not np.any(given.get_indexer(rows) < 0):
        raise ValueError(
            f"{name} has the index of X in another order: give {name}.loc[X.index], or "
            f"{name}.to_numpy() if it is in the order of the rows of X"
        )


def by_class(name: str, values: Any, classes: Any) -> Any:
    """A matrix of the classes, (n_classes, n_classes), in the order of ``classes``; ``name`` is
    that of the parameter. A pandas data frame has it by its labels, anything else is in order.
    Raises ValueError with the labels of rows or columns that are not those of the classes, and for
    a masked entry."""
    refuse_masked(name, values)
    if _index_of(values) is None or getattr(values, "ndim", 0) != 2:
        return values
    places = []
    for what, labels in (("row", values.index), ("column", values.columns)):
        found = labels.get_indexer(classes) if labels.is_unique else np.array([-1])
        others = np.delete(np.arange(len(labels)), found[found >= 0])
        if others.size or np.any(found < 0):
            wanted, held = shown(np.asarray(classes).tolist()), shown(labels.tolist())
            raise ValueError(
                f"{name} must have one {what} for each class, {wanted}, got the {what}s {held}: "
                f"label both with the classes, or give {name}.to_numpy(), in the order of classes_"
            )
        places.append(found)
    return values.iloc[places[0], places[1]]


def by_feature(
    name: str,
    values: Any,
    n_features: int,
    labels: Sequence[Any] | None,
    missing: float | None = None,
) -> Any:
    """Values of the features in the order of the features; ``name`` is that of the parameter.

    A mapping or pandas Series has them by the names of the features (``labels``, or numbers from
    0); one that is numbered from 0, a mapping for all features, where names are words or there are
    none, has them in the order of the features. Others are returned as they are. A mapping may
    leave out features, whose value is ``missing``. Raises ValueError: a name that is none of a
    feature, or is repeated, or a feature without a value.
    """
    if not is_labelled(values):
        return values
    mapped = isinstance(values, Mapping)
    numbered = [*(values if mapped else values.index)] == [*range(len(values))]
    if numbered and (labels is None or all(isinstance(each, str) for each in labels)):
        if not mapped:
            return values
        if len(values) == n_features:
            return [*values.values()]
    if mapped:
        of, entries = dict(values), missing
    else:
        index = _index_of(values)
        if not index.is_unique:
            repeated = index[index.duplicated()][0]
            raise ValueError(f"{name} has several entries for feature {repeated!r}")
        of, entries = dict(zip(index.tolist(), values.tolist(), strict=True)), None
    features = range(n_features) if labels is None else labels
    known = set(features)
    unknown = [each for each in of if each not in known]
    if unknown:
        told = ", ".join(repr(each) for each in features[:SHOWN])
        told += ", ..." if len(features) > SHOWN else ""
        near = get_close_matches(str(unknown[0]), map(str, features), 1)
        told += f": did you mean {near[0]!r}?" if near else ""
        without = "X has no feature names: its features are" if labels is None else "X has"
        raise ValueError(
            f"{name} names {unknown[0]!r}, which is no feature of X: {without} {told}"
            + ("; give X as a data frame" if labels is None else "")
            + ("" if isinstance(values, Mapping) else f", or give {name}.to_numpy()")
        )
    absent = [each for each in features if each not in of]
    if absent and entries is None:
        advice = "a dict may leave features out" if missing is not None else "name every feature"
        raise ValueError(f"{name} has no entry for feature {absent[0]!r}: {advice}")
    return [of.get(each, entries) for each in features]


def is_labelled(values: Any) -> bool:
    """Whether values are given by names: a mapping, or a pandas Series."""
    return isinstance(values, Mapping) or (
        _index_of(values) is not None and getattr(values, "ndim", 0) == 1
    )


def as_dict(values: Any) -> Any:
    """Labelled values as a dictionary."""
    return dict(values) if isinstance(values, Mapping) else values.to_dict()


def feature_labels(estimator: Estimator) -> Sequence[Any] | None:
    """The names of the features that an estimator was fitted to; None if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    found: Sequence[Any] | None = getattr(estimator, "_column_labels", None)
    return found if names is None else names.tolist()


def _index_of(values: object) -> Any:
    """The index of a pandas object, or None."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "get_indexer") else None


NUMBER = "number"
TEXT = "string"


def checked_groups(groups: object, count: int) -> tuple[Values | None, NDArray[np.intp]]:
    """The groups, (n_samples,), as an array, and as numbers in their order: all zero without
    groups. ValueError: another shape, a sample without a group, several types (with the row)."""
    if groups is None:
        return None, np.zeros(count, dtype=np.intp)
    given = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    given = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
    if given.shape != (count,):
        raise ValueError(f"groups must have one entry a sample, ({count},), got {given.shape}")
    if given.dtype.kind not in "biuUS":
        entries = given.astype(object).tolist()
        kinds = [_kind(each) for each in entries]
        if None in kinds:
            raise ValueError(
                f"groups has no value in row {kinds.index(None)} (counted from 0): leave such rows "
                "out, or give them a group"
            )
        refuse_mixed("groups", entries)
        if kinds[0] in (NUMBER, TEXT):
            given = np.array(entries)
    try:
        return given, np.unique(given, return_inverse=True)[1].astype(np.intp)
    except TypeError as error:
        raise ValueError(f"groups must be numbers or text, which have an order: {error}") from error


def refuse_mixed(name: str, entries: Sequence[object]) -> None:
    """Raise ValueError for entries of several types, which have no order, with their rows."""
    if len(set(map(type, entries))) < 2:
        return
    kinds = [_kind(each) for each in entries]
    row = next((k for k, kind in enumerate(kinds) if kind != kinds[0]), None)
    if row is not None:
        raise ValueError(
            f"{name} must be of one type: row {row} (counted from 0) has {entries[row]!r}, a "
            f"{kinds[row]}, and row 0 has {entries[0]!r}, a {kinds[0]}"
        )


def _kind(value: object) -> str | None:
    """The type of an entry; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, Number | np.bool_):
        return NUMBER
    return TEXT if isinstance(value, str) else type(value).__name__
