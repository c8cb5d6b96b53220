"""The order of the rows and of the columns, and the names of the classes, change no model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    HuberizedSVC,
    LogisticRegression,
    MarginFDA,
    MarginMPM,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)

Array = NDArray[np.float64]
MODELS = (SVC, L2SVC, LogisticRegression, NuSVC, DWD, MarginFDA, MarginMPM)
# of scores over the largest one: the square root of the gap, as scores are not strongly convex
NEAR = 2e-3


def overlapping(n: int, separation: float) -> tuple[Array, NDArray[Any]]:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
    X[:, 0] += separation * y
    return X, y


def with_repeats(n: int) -> tuple[Array, NDArray[Any]]:
    X, y = overlapping(n, 1.0)
    return np.round(X), y


def breast_cancer() -> tuple[Array, NDArray[Any]]:
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


DATA = {
    "moons": lambda: make_moons(80, noise=0.2, random_state=0),
    "noise": lambda: overlapping(120, 0.0),
    "overlapping": lambda: overlapping(150, 1.0),
    "repeats": lambda: with_repeats(100),
    "breast cancer": breast_cancer,
}


def smooth(left: Array, right: Array) -> Array:
    return np.asarray(rbf_kernel(left, right, 0.3))


@pytest.mark.pairwise
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", smooth, laplacian_kernel])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("make", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_columns_and_names_of_classes_in_another_order(
    make: Any, data: str, kernel: Any
) -> None:
    if data == "breast cancer" and kernel not in ("linear", "rbf"):
        pytest.skip("seconds, and nothing that the others do not have")
    X, y = DATA[data]()
    scores = make(kernel=kernel).fit(X, y).decision_function(X)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    moved, back = X[rows], np.argsort(rows)
    names = np.array(["b", "a"])[y]  # the other way round
    for other, labels, order, sign in (
        (moved, y[rows], back, 1.0),
        (X[:, columns], y, slice(None), 1.0),
        (X, names, slice(None), -1.0),
    ):
        found = make(kernel=kernel).fit(other, labels).decision_function(other)[order]
        np.testing.assert_allclose(sign * found, scores, atol=NEAR * np.abs(scores).max())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [HuberizedSVC, SparseLogisticRegression, SquaredHingeSVC])
def test_an_empty_model_of_equal_classes_predicts_the_first(make: Any, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(99 - 99 % n_classes, 5)), np.arange(99 - 99 % n_classes) % n_classes
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(y.size)
        weights = np.full(y.size, 0.1)
        model = make(alpha=50.0, multi_class="ovr").fit(X[order], y[order], weights)
        assert not model.coef_.any()
        assert (model.predict(X) == 0).all()
