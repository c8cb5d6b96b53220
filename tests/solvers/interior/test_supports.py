"""Dual coordinates of the interior point method, as exact as support vectors need them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC as KernelSVC
from sklearn.svm import NuSVC as KernelNuSVC

from proxmargin import SVC, NuSVC


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(SVC(C=0.1), KernelSVC(C=0.1)), (NuSVC(nu=0.3), KernelNuSVC(nu=0.3))],
    ids=["SVC", "NuSVC"],
)
def test_the_support_vectors_are_those_of_scikit_learn(kernel: str, ours, theirs) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours.set_params(kernel=kernel, gamma=0.05, solver="interior-point")
    ours.set_params(tol=1e-6 if kernel == "linear" else 1e-9).fit(X, y)
    theirs.set_params(kernel=kernel, gamma=0.05, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
