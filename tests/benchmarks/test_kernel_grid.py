"""The gaps of kernel SVMs: of models of LIBSVM, and against their duals' own optimum."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.kernel_grid import (
    CELLS,
    GAPS,
    Cell,
    Found,
    _best_intercept,
    _explained,
    _row,
    certified,
)
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


def test_where_another_package_is_faster_a_sentence_has_the_shares_of_our_time() -> None:
    cell = Cell("some", "rbf", 0.7, 2.0)
    slow, fast = GAPS
    ours = Found({gap: (1.0, gap) for gap in GAPS}, tols=dict.fromkeys(GAPS, 1e-6))
    other = Found({slow: (0.5, 1e-4), fast: (4.0, 1e-7)})
    found = {"proxmargin": ours, "LIBSVM": other, "sklearnex": Found(missing="it is not installed")}
    (sentence,) = _explained(cell, X, y, found)
    assert sentence.startswith("- some, rbf 0.7, C = 2, gap 0.001: 2.00 times LIBSVM; of a ")
    for part in ("kernel values and products", "steps of the solver", "checks of", "certificates"):
        assert part in sentence
    parts = [int(word.rstrip("%")) for word in sentence.split() if word.endswith("%")]
    assert len(parts) == 5
    assert parts == sorted(parts, reverse=True)
    assert sum(parts) == pytest.approx(100, abs=3)
