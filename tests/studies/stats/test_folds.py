"""Tests over folds: against SciPy's t-test, a posterior by quadrature, and another package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, ttest_rel
from scipy.stats import t as student
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

from proxmargin.stats import (
    bayesian_correlated_ttest,
    corrected_resampled_interval,
    corrected_resampled_ttest,
    friedman,
    holm,
)

SCORES = np.random.default_rng(0).normal([0.80, 0.82, 0.70], 0.03, (10, 3))
SHARE = 0.1


def test_the_statistic_is_that_of_pairs_with_the_variance_of_overlapping_folds() -> None:
    result = corrected_resampled_ttest(SCORES, test_share=SHARE)
    for first, second in ((0, 1), (0, 2), (2, 1)):
        plain = ttest_rel(SCORES[:, first], SCORES[:, second])
        shrunk = plain.statistic / np.sqrt(1 + 10 * SHARE / (1 - SHARE))
        assert result.statistic[first, second] == pytest.approx(shrunk, rel=1e-9)
        inside = result.low[first, second] < 0 < result.high[first, second]
        assert inside == (result.pvalue[first, second] > 0.05)


def test_the_posterior_is_that_of_correlated_normal_differences() -> None:
    # differences ~ N(mu, sigma^2 ((1 - rho) I + rho 11')), prior 1 / sigma^2: by quadrature
    difference = SCORES[:, 0] - SCORES[:, 1]
    shape = (1 - SHARE) * np.eye(10) + SHARE
    means = difference.mean() + np.linspace(-0.25, 0.25, 1001)
    sigmas = difference.std(ddof=1) * np.exp(np.linspace(-2.0, 3.0, 120))  # even in log(sigma^2)
    residuals = difference - means[:, None]
    density = sum(multivariate_normal(np.zeros(10), s**2 * shape).pdf(residuals) for s in sigmas)
    density /= density.sum()
    result = bayesian_correlated_ttest(SCORES, test_share=SHARE, rope=0.01)
    assert result.better[0, 1] == pytest.approx(density[means > 0.01].sum(), abs=2e-3)
    assert result.worse[0, 1] == pytest.approx(density[means < -0.01].sum(), abs=2e-3)


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
def test_probabilities_are_those_of_baycomp(rope: float) -> None:
    baycomp = pytest.importorskip("baycomp")
    ours = bayesian_correlated_ttest(SCORES, test_share=SHARE, rope=rope)
    theirs = baycomp.two_on_single(SCORES[:, 1], SCORES[:, 0], rope=rope)
    theirs = theirs if rope else (theirs[0], 0.0, theirs[1])
    pair = ours.better[1, 0], ours.equal[1, 0], ours.worse[1, 0]
    np.testing.assert_allclose(pair, theirs, rtol=1e-9, atol=1e-12)


def test_probabilities_sum_to_one_and_mirror() -> None:
    result = bayesian_correlated_ttest(SCORES, test_share=SHARE)
    np.testing.assert_allclose(result.better + result.equal + result.worse, 1.0)
    np.testing.assert_allclose(result.better, result.worse.T, atol=1e-15)
    mirrored = bayesian_correlated_ttest(-SCORES, test_share=SHARE, higher_is_better=False)
    np.testing.assert_allclose(mirrored.better, result.better, atol=1e-15)


def test_differences_without_spread_are_certain() -> None:
    scores = np.tile([0.9, 0.8, 0.9], (5, 1))
    frequentist = corrected_resampled_ttest(scores, test_share=0.2)
    assert frequentist.statistic[0, 1] == np.inf
    assert frequentist.pvalue[0, 1] == 0.0
    assert (frequentist.statistic[0, 2], frequentist.pvalue[0, 2]) == (0.0, 1.0)
    bayesian = bayesian_correlated_ttest(scores, test_share=0.2)
    assert (bayesian.better[0, 1], bayesian.equal[0, 2], bayesian.worse[1, 0]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("first", "second"), [(0.8, 0.7), (0.9, 0.8), (0.3, 0.2), (0.5, 0.4)])
def test_a_difference_without_spread_that_is_the_rope_is_within_it(
    first: float, second: float
) -> None:
    # by rounding 0.8 - 0.7 is above 0.1 and 0.9 - 0.8 is below
    scores = np.tile([first, second], (5, 1))
    at = bayesian_correlated_ttest(scores, test_share=0.2, rope=0.1)
    assert (at.better[0, 1], at.equal[0, 1], at.worse[0, 1]) == (0.0, 1.0, 0.0)
    assert (at.better[1, 0], at.equal[1, 0], at.worse[1, 0]) == (0.0, 1.0, 0.0)
    inside = bayesian_correlated_ttest(scores, test_share=0.2, rope=0.1 - 1e-9)
    assert (inside.better[0, 1], inside.worse[1, 0]) == (1.0, 1.0)


def test_masked_entries_are_refused() -> None:
    masked = np.ma.masked_array(SCORES, mask=np.zeros(SCORES.shape, dtype=bool))
    # a mask that masks nothing changes nothing
    plain = corrected_resampled_ttest(SCORES, test_share=SHARE)
    same = corrected_resampled_ttest(masked, test_share=SHARE)
    np.testing.assert_array_equal(same.pvalue, plain.pvalue)
    masked[3, 1] = np.ma.masked
    for call in (
        lambda: corrected_resampled_ttest(masked, test_share=SHARE),
        lambda: corrected_resampled_interval(masked, test_share=SHARE),
        lambda: bayesian_correlated_ttest(masked, test_share=SHARE),
        lambda: friedman(masked),
        lambda: holm(np.ma.masked_array([0.1, 0.2], mask=[True, False])),
    ):
        with pytest.raises(ValueError, match="has a masked entry in row"):
            call()


def test_intervals_cover_under_repeated_folds() -> None:
    # differences with the correlation that the correction assumes: 95 % intervals cover
    rng = np.random.default_rng(1)
    shared, own = rng.standard_normal((2, 400, 1)), rng.standard_normal((2, 400, 20))
    scores = np.sqrt(SHARE) * shared + np.sqrt(1 - SHARE) * own
    covered = 0
    for first, second in zip(*scores, strict=True):
        table = np.column_stack((first, second))
        result = corrected_resampled_ttest(table, test_share=SHARE)
        covered += result.low[0, 1] < 0 < result.high[0, 1]
    assert 0.92 < covered / 400 < 0.98


def test_a_frame_has_a_row_for_each_pair() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SCORES, columns=["a", "b", "c"])
    for result in (
        corrected_resampled_ttest(frame, test_share=SHARE),
        bayesian_correlated_ttest(frame, test_share=SHARE),
    ):
        assert result.to_frame()["first"].tolist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_share": 0.0}, "1 / k"),
        ({"test_share": 1.0}, "1 / k"),
        ({"test_share": "a"}, "test_share='a'"),
        ({"test_share": None}, "test_share=None"),
        ({"test_share": 0.1, "confidence": 95}, "confidence=95"),
        ({"test_share": 0.1, "confidence": "a"}, "confidence='a'"),
    ],
)
def test_shares_outside_0_and_1_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corrected_resampled_ttest(SCORES, **options)


def test_a_rope_that_is_no_length_is_refused() -> None:
    for rope in (-0.1, np.nan, np.inf, "a", None, True):
        with pytest.raises(ValueError, match="rope must be"):
            bayesian_correlated_ttest(SCORES, test_share=SHARE, rope=rope)  # type: ignore[arg-type]


def test_a_direction_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(ValueError, match="higher_is_better must be True or False"):
        bayesian_correlated_ttest(SCORES, test_share=SHARE, higher_is_better="no")  # type: ignore[arg-type]


def test_differences_that_vary_by_rounding_are_certain() -> None:
    steps = np.arange(1, 9) / 10
    scores = np.column_stack((steps + 0.1, steps))  # 0.1 each, in eight roundings
    assert corrected_resampled_ttest(scores, test_share=0.2).pvalue[0, 1] == 0.0
    large = np.vstack((scores, [[1e6 + 0.1, 1e6]]))
    assert corrected_resampled_ttest(large, test_share=0.2).pvalue[0, 1] == 0.0


@pytest.mark.slow
def test_the_printed_example_of_scikit_learn() -> None:
    # "Statistical comparison of models using grid search": t-values of all pairs, one-sided p,
    # probabilities of rbf against linear with a region of 0.01
    X, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    kernels = ({"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "poly"}, {"degree": 2})
    models = [SVC(random_state=0, **{"kernel": "poly", **kernel}) for kernel in kernels]
    scores = np.column_stack(
        [cross_val_score(model, X, y, cv=folds, scoring="roc_auc") for model in models]
    )
    found = corrected_resampled_ttest(scores, test_share=0.1)
    pairs = found.statistic[np.triu_indices(4, 1)]
    np.testing.assert_allclose(pairs, [0.750, 1.657, 4.565, 1.111, 4.276, 3.851], atol=5e-4)
    assert found.pvalue[0, 1] / 2 == pytest.approx(0.227, abs=5e-4)
    probable = bayesian_correlated_ttest(scores, test_share=0.1, rope=0.01)
    triple = probable.better[0, 1], probable.equal[0, 1], probable.worse[0, 1]
    np.testing.assert_allclose(triple, [0.500, 0.432, 0.068], atol=5e-4)


def test_intervals_are_those_of_scipy_with_the_corrected_error() -> None:
    found = corrected_resampled_interval(SCORES, test_share=SHARE, confidence=0.9)
    for model, scores in enumerate(SCORES.T):
        error = np.sqrt(1 / 10 + SHARE / (1 - SHARE)) * scores.std(ddof=1)
        theirs = student.interval(0.9, df=9, loc=scores.mean(), scale=error)
        assert (found.low[model], found.high[model]) == pytest.approx(theirs)
    alone = corrected_resampled_interval(SCORES[:, 1], test_share=SHARE, confidence=0.9)
    assert float(alone.low) == pytest.approx(found.low[1], rel=1e-14)


def test_intervals_of_bad_scores_are_refused() -> None:
    for scores in ([0.5], [[0.5, np.nan], [0.4, 0.3]], np.zeros((2, 2, 2)), "a"):
        with pytest.raises(ValueError, match="scores"):
            corrected_resampled_interval(scores, test_share=SHARE)
