"""Values that carry labels of their own: of the features, or of the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["by_feature", "by_sample", "feature_labels", "is_labelled", "note_columns"]

SHOWN = 3  # features that an error names


def by_sample(name: str, values: Any, X: Any) -> Any:
    """Values of the samples in the order of the rows of ``X``.

    Parameters
    ----------
    name : str
        Of the argument, for errors.
    values : (n_samples,) or None
        A pandas object with another index than ``X`` is put into the order of ``X``; all others
        are in that order already, and so are all if ``X`` has no index.

    Raises
    ------
    ValueError
        A row of ``X`` has no entry, or labels are repeated; names the first one.
    """
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


def by_feature(
    name: str,
    values: Any,
    n_features: int,
    labels: Sequence[Any] | None,
    missing: float | None = None,
) -> Any:
    """Values of the features in the order of the features.

    Parameters
    ----------
    name : str
        Of the parameter, for errors.
    values : mapping, pandas Series, or anything else, which is returned as it is
        By the names of the features. A Series that is numbered from 0 names none if the features
        have names, and is returned as it is too.
    labels : (n_features,), optional
        The names; numbers from 0 for features without names.
    missing : float, optional
        The value of features that a mapping leaves out; without it all have to be there.

    Raises
    ------
    ValueError
        A name that is none of a feature, or is repeated, or a feature without a value.
    """
    if not is_labelled(values):
        return values
    if isinstance(values, Mapping):
        of, entries = dict(values), missing
    else:
        index = _index_of(values)
        numbered = np.array_equal(np.asarray(index), np.arange(len(index)))
        if numbered and (labels is None or all(isinstance(each, str) for each in labels)):
            return values
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
    return np.array([of.get(each, entries) for each in features])


def is_labelled(values: Any) -> bool:
    """Whether values are given by names: a mapping, or a pandas Series."""
    return isinstance(values, Mapping) or (
        _index_of(values) is not None and getattr(values, "ndim", 0) == 1
    )


def feature_labels(estimator: Any) -> Sequence[Any] | None:
    """The names of the features that an estimator was fitted to; None if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    found: Sequence[Any] | None = getattr(estimator, "_column_labels", None)
    return found if names is None else names.tolist()


def note_columns(estimator: Any, X: Any) -> None:
    """Keep the labels of columns that scikit-learn takes for no names: those that are not text."""
    columns = getattr(X, "columns", None)
    if columns is not None and not hasattr(estimator, "feature_names_in_"):
        estimator._column_labels = list(columns)
    else:
        estimator.__dict__.pop("_column_labels", None)


def _index_of(values: Any) -> Any:
    """The index of a pandas object, or None."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "get_indexer") else None
