"""The statistics are those of SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
from scipy.stats import ttest_ind
from sklearn.metrics import roc_auc_score

from proxmargin.permutations.statistics import OF_PROJECTIONS


def test_each_labeling_has_the_statistic_of_a_reference() -> None:
    rng = np.random.default_rng(0)
    projections = np.round(rng.standard_normal((30, 8)), 1)  # with ties
    second = rng.random((30, 8)) < 0.4
    found = {name: statistic(projections, second) for name, statistic in OF_PROJECTIONS.items()}
    for k, (each, up) in enumerate(zip(projections.T, second.T, strict=True)):
        np.testing.assert_allclose(found["auc"][k], roc_auc_score(up, each))
        expected = ttest_ind(each[up], each[~up], equal_var=False).statistic
        np.testing.assert_allclose(found["t"][k], expected)
        np.testing.assert_allclose(found["mean-difference"][k], each[up].mean() - each[~up].mean())


def test_projections_without_spread_have_a_statistic_of_zero() -> None:
    flat, second = np.ones((5, 1)), np.array([[True], [False], [True], [False], [False]])
    assert OF_PROJECTIONS["t"](flat, second)[0] == 0.0
    assert OF_PROJECTIONS["mean-difference"](flat, second)[0] == 0.0
    assert OF_PROJECTIONS["auc"](flat, second)[0] == 0.5
