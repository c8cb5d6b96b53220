"""Whether data can be those that a model was fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names

from proxmargin.datasets import Dataset
from proxmargin.designs.samples import holds_objects
from proxmargin.inputs.validation import check_labels

__all__ = ["check_data", "check_support"]

SAME_SUPPORT = 1e-12  # relative difference up to which rows of the data are support vectors
LISTED = 5  # classes that an error names


def check_data(model: Any, X: Any, y: Any) -> None:
    """Raise ValueError if the columns or the classes are not those of a fitted model."""
    if isinstance(X, Dataset):
        return  # names and labels are its own, and checked as it is opened for the model
    if hasattr(model, "feature_names_in_"):
        _check_feature_names(model, X, reset=False)
    if y is None:
        raise ValueError("y must be the labels that the model was fitted to, got None")
    check_labels(y)
    given, own = np.unique(np.asarray(y)), np.asarray(model.classes_)
    for labels, told in (
        (_without(given, own), "are none of the model's classes"),
        (_without(own, given), "are classes of the model that y lacks"),
    ):
        if labels:
            names = ", ".join(map(str, labels[:LISTED])) + (", ..." if labels[LISTED:] else "")
            raise ValueError(f"y must be the labels that the model was fitted to: {names} {told}")


def _without(labels: Any, others: Any) -> list[Any]:
    known = set(others.tolist())
    return [label for label in labels.tolist() if label not in known]


def check_support(rows: Any, support_vectors: Any) -> None:
    """Raise unless these rows of the data are the support vectors of the model."""
    apart = rows.shape != support_vectors.shape
    if not apart and holds_objects(rows):
        pairs = zip(rows, support_vectors, strict=True)
        apart = not all(one is other or np.array_equal(one, other) for one, other in pairs)
    elif not apart and rows.shape[0]:
        apart = abs(rows - support_vectors).max() > SAME_SUPPORT * abs(support_vectors).max()
    if apart:
        raise ValueError("X must be the data that the model was fitted to: the rows differ")
