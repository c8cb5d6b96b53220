"""The statistics are those of SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn.metrics import roc_auc_score

from proxmargin.models.permutations.labelings import OF_PROJECTIONS, spread_of_t


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


def test_classes_on_two_points_are_as_far_apart_as_rounding_allows() -> None:
    second = np.array([[True], [False], [True], [False], [False]])
    found = OF_PROJECTIONS["t"](np.where(second, 3.0, -1.0), second)[0]
    assert np.isfinite(found)
    assert found > 1e14


def test_the_spread_within_classes_follows_from_t() -> None:
    rng = np.random.default_rng(0)
    up, down = rng.standard_normal((200, 1)) + 5.0, rng.standard_normal((200, 1)) * 2.0
    second = np.repeat([[True], [False]], 200, axis=0)
    t = OF_PROJECTIONS["t"](np.concatenate([up, down]), second)
    pooled = np.sqrt((up.var(ddof=1) + down.var(ddof=1)) / 2)  # classes of one size
    expected = pooled / (up.mean() - down.mean())
    np.testing.assert_allclose(spread_of_t(t, np.array([200, 200])), expected)
    assert spread_of_t(np.zeros(1), np.array([2, 3]))[0] == np.inf


def test_auc_counts_rounded_scores_as_ties() -> None:
    projections = np.array([[1.0], [1.0 + 2e-16], [1.0 - 1e-16], [2.0]])
    second = np.array([[True], [False], [False], [True]])
    assert OF_PROJECTIONS["auc"](projections, second) == pytest.approx(0.75)
