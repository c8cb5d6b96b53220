"""Small data sets that come with scikit-learn, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets

from proxmargin.files.tables.matrices import PlainMatrix

EMBEDDED: dict[str, Callable[[], Any]] = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}


def read(name: str) -> PlainMatrix:
    """The set with its feature names and its classes as words."""
    bunch = EMBEDDED[name]()
    labels = np.asarray(bunch.target_names).astype(str)[bunch.target]
    return PlainMatrix(name, np.asarray(bunch.data), labels, [str(n) for n in bunch.feature_names])
