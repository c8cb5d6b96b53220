"""The gaps of kernel SVMs: of models of LIBSVM, and against their duals' own optimum."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.kernel_grid import CELLS, GAPS, Cell, Found, _best_intercept, _row, certified
from sklearn.svm import SVC

rng = np.random.default_rng(3)
X = rng.random((120, 3))
y = np.where(np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(120) > 1.0, 1.0, -1.0)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_models_of_libsvm_are_certified_and_worse_ones_are_not(kernel: str) -> None:
    cell = Cell("", kernel, 0.7, 2.0)
    settings = {"kernel": kernel, "gamma": 0.7, "C": 2.0, "degree": 3, "coef0": 1.0}
    model = SVC(**settings, tol=1e-8).fit(X, y)
    parts = model.dual_coef_[0], model.support_, float(model.intercept_[0])
    assert -1e-12 <= certified(cell, X, y, *parts) <= 1e-6
    loose = SVC(**settings, tol=0.5).fit(X, y)
    given = loose.dual_coef_[0], loose.support_, float(loose.intercept_[0])
    assert certified(cell, X, y, *given) > 1e-4
    assert certified(cell, X, y, 0.5 * parts[0], *parts[1:]) > 1e-2
    assert certified(cell, X, y, 9.0 * parts[0], *parts[1:]) > 1e-2


def test_the_best_intercept_is_a_minimum() -> None:
    scores = rng.standard_normal(120)

    def hinges(b: float) -> float:
        return float(np.maximum(1.0 - y * (scores + b), 0.0).sum())

    best = hinges(_best_intercept(y, scores))
    assert all(best <= hinges(b) + 1e-9 for b in np.concatenate([y - scores, [-9.0, 0.0, 9.0]]))


def test_a_row_has_the_ratio_to_the_fastest_other_package() -> None:
    ours = Found({gap: (1.0, gap) for gap in GAPS}, 10, 0.5)
    others = Found({GAPS[0]: (4.0, 1e-4)}), Found(missing="it is not installed")
    found = dict(zip(("proxmargin", "LIBSVM", "sklearnex"), (ours, *others), strict=True))
    row = _row(CELLS[0], (2000, 256), found)
    assert row[3:7] == ["1.00", "4.00", "it is not installed", "0.25"]
    assert row[7:] == ["1.00", "-", "it is not installed", "", "0.50"]
