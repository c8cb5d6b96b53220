"""Evidence: against SciPy, baycomp and the tests over folds, and where scores have no spread."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from proxmargin.stats import (
    bayesian_correlated_ttest,
    corrected_resampled_interval,
    corrected_resampled_ttest,
    holm,
)
from proxmargin.studies.comparing.evidence import Evidence, Traits
from proxmargin.studies.comparing.metrics import MetricRange, basis_of

NAMES = ("a", "b", "c")
SCORES = np.random.default_rng(0).normal([0.80, 0.82, 0.60], 0.03, (10, 3))
TENFOLD = 1 / 9  # of ten folds, tested by trained


def test_intervals_and_tests_are_those_of_the_statistics_of_folds() -> None:
    found = Evidence.of(SCORES, NAMES, test_ratio=TENFOLD)
    means = corrected_resampled_interval(SCORES, test_share=0.1)
    np.testing.assert_allclose([found.low, found.high], [means.low, means.high])
    tests = corrected_resampled_ttest(SCORES, test_share=0.1)
    probable = bayesian_correlated_ttest(SCORES, test_share=0.1)
    best = 1
    assert found.best == "b"
    np.testing.assert_allclose(found.difference, tests.difference[:, best])
    np.testing.assert_allclose(found.difference_low[[0, 2]], tests.low[[0, 2], best])
    np.testing.assert_allclose(found.difference_high[[0, 2]], tests.high[[0, 2], best])
    for name in ("p", "p_holm", "p_equal"):  # none of a model against itself
        assert np.isnan(getattr(found, name)).tolist() == [False, True, False]
    np.testing.assert_allclose(found.p[[0, 2]], tests.pvalue[[0, 2], best])
    np.testing.assert_allclose(found.p_equal[[0, 2]], probable.equal[[0, 2], best])
    assert found.pairs is not None
    np.testing.assert_allclose(found.pairs.p_worse[[0, 2], best], probable.worse[[0, 2], best])
    of_pairs = holm(tests.pvalue[np.triu_indices(3, 1)])
    np.testing.assert_allclose(found.p_holm[[0, 2]], np.asarray(of_pairs)[[0, 2]])
    assert found.equivalent == ("b", "a")
    assert found.row("c")["equivalent"] is False


def test_probabilities_are_those_of_baycomp() -> None:
    baycomp = pytest.importorskip("baycomp")
    scores = np.random.default_rng(1).normal([0.80, 0.82], 0.03, (20, 2))
    found = Evidence.of(scores, ("a", "b"), test_ratio=1 / 9, repeats=2)
    theirs = baycomp.two_on_single(scores[:, 1], scores[:, 0], rope=0.01, runs=2)
    assert found.pairs is not None
    assert found.p_equal[0] == pytest.approx(theirs[1], rel=1e-9)
    assert found.pairs.p_worse[0, 1] == pytest.approx(theirs[0], rel=1e-9)


def test_of_equal_means_the_simplest_is_the_best() -> None:
    scores = np.array([[0.8, 0.7], [0.7, 0.8], [0.6, 0.6]])
    traits = [Traits(features=2.0), Traits(features=1.0)]
    assert Evidence.of(scores, ("a", "b"), test_ratio=0.5, traits=traits).best == "b"
    assert Evidence.of(scores, ("a", "b"), test_ratio=0.5).best == "a"


def test_losses_mirror_scores() -> None:
    up = Evidence.of(SCORES, NAMES, test_ratio=TENFOLD)
    down = Evidence.of(-SCORES, NAMES, larger_is_better=False, test_ratio=TENFOLD)
    assert (down.best, down.equivalent) == (up.best, up.equivalent)
    np.testing.assert_allclose(down.difference, -up.difference)
    np.testing.assert_allclose(down.low, -up.high)
    for name in ("p", "p_holm", "p_equal"):
        np.testing.assert_allclose(getattr(down, name), getattr(up, name))


def test_the_order_of_the_models_does_not_matter() -> None:
    there, back = [2, 0, 1], [1, 2, 0]
    up = Evidence.of(SCORES, NAMES, test_ratio=TENFOLD)
    moved = Evidence.of(SCORES[:, there], [NAMES[each] for each in there], test_ratio=TENFOLD)
    assert moved.equivalent == up.equivalent
    np.testing.assert_allclose(moved.p_holm[back], up.p_holm)


def test_an_accuracy_of_one_is_as_certain_as_its_rows_allow() -> None:
    basis = basis_of("accuracy", [30, 20])
    found = Evidence.of(np.ones((5, 2)), ("a", "b"), test_ratio=0.25, basis=basis)
    exact = binomtest(50, 50).proportion_ci(0.95, method="exact")
    assert (found.low[0], found.high[0]) == pytest.approx((exact.low, exact.high))
    assert found.p_holm[1] == 1.0
    assert found.difference_low[1] < 0 < found.difference_high[1]
    assert found.p_equal[1] < 1


def test_equal_shares_of_every_fold_are_no_certainty() -> None:
    basis = basis_of("accuracy", [25, 25])
    scores = np.tile([0.9, 0.8], (5, 1))
    found = Evidence.of(scores, ("a", "b"), test_ratio=0.25, basis=basis)
    exact = binomtest(45, 50).proportion_ci(0.95, method="exact")
    assert (found.low[0], found.high[0]) == pytest.approx((exact.low, exact.high))
    # five rows all in favour of a: the exact test of McNemar has p = 1/16
    assert 0.05 < found.p[1] < 0.15
    assert found.equivalent == ("a", "b")


def test_a_difference_that_is_the_same_on_every_fold_is_as_certain_as_its_signs() -> None:
    scores = np.tile([1.5, 1.4, 1.4], (5, 1))
    found = Evidence.of(scores, NAMES, test_ratio=0.25)
    assert found.p[1] == pytest.approx(1 / 16)
    assert found.difference_low[1] < -0.1 < 0 < found.difference_high[1]
    repeated = Evidence.of(np.tile(scores, (10, 1)), NAMES, test_ratio=0.25, repeats=10)
    assert repeated.p[1] == pytest.approx(1 / 16)  # repetitions reuse the rows
    # also where nobody says that they are repetitions, as of random splits
    untold = Evidence.of(np.tile(scores, (10, 1)), NAMES, test_ratio=0.25)
    assert untold.p[1] == pytest.approx(1 / 16)


def test_identical_scores_are_equal() -> None:
    scores = np.random.default_rng(2).normal(size=(5, 1)) * np.ones((1, 3))
    found = Evidence.of(scores, NAMES, test_ratio=0.25)
    for each in (found.p, found.p_holm, found.p_equal):
        assert each[1:].tolist() == [1.0, 1.0]
    assert found.equivalent == NAMES


def test_intervals_stay_within_the_range_of_the_metric() -> None:
    scores = np.array([[0.0, 1.0], [0.3, 0.6]])
    found = Evidence.of(
        scores, ("a", "b"), test_ratio=1.0, basis=basis_of("balanced_accuracy", [9, 9])
    )
    assert found.low.min() == 0.0
    assert found.high.max() == 1.0
    loss = Evidence.of(
        scores,
        ("a", "b"),
        test_ratio=1.0,
        basis=basis_of("log_loss", [9, 9]),
        larger_is_better=False,
    )
    assert loss.low.min() == 0.0
    assert loss.high.min() > 1.0


def test_two_splits_say_little() -> None:
    found = Evidence.of([[0.9, 0.80], [0.8, 0.71]], ("a", "b"), test_ratio=1.0)
    assert found.equivalent == ("a", "b")
    assert found.high[0] - found.low[0] > 1


def test_one_split_says_so() -> None:
    found = Evidence.of([[0.9, 0.1]], ("a", "b"), test_ratio=1.0)
    assert (found.best, found.equivalent) == ("a", ("a", "b"))
    assert np.isnan(found.low).all()
    assert "one split" in found.notes[-1]
    with_rows = Evidence.of(
        [[0.9, 0.1]], ("a", "b"), test_ratio=1.0, basis=basis_of("accuracy", [5, 5])
    )
    assert with_rows.low[0] == pytest.approx(binomtest(9, 10).proportion_ci(0.95).low)


def test_one_model_has_an_interval_and_no_test() -> None:
    found = Evidence.of(SCORES[:, :1], ("a",), test_ratio=TENFOLD)
    assert (found.best, found.equivalent, found.recommended) == ("a", ("a",), "a")
    assert found.low[0] < found.mean[0] < found.high[0]
    assert found.difference[0] == 0.0
    assert np.isnan(found.p[0])


def test_a_model_without_all_splits_is_left_out_and_named() -> None:
    scores = SCORES.copy()
    scores[2:6, 0] = np.nan
    found = Evidence.of(scores, NAMES, test_ratio=TENFOLD)
    assert (found.best, found.left_out, found.n_splits) == ("b", ("a",), 10)
    assert np.isnan(found.row("a")["mean"])
    assert "not judged, because scores are missing or infinite: a" in found.notes
    assert found.row("c")["mean"] == pytest.approx(SCORES[:, 2].mean())


def test_a_model_with_infinite_losses_is_left_out() -> None:
    scores = SCORES.copy()
    scores[2, 0] = np.inf
    found = Evidence.of(scores, NAMES, test_ratio=TENFOLD, larger_is_better=False)
    assert (found.best, found.left_out, found.n_splits) == ("c", ("a",), 10)


def test_a_split_that_was_not_finished_is_left_out() -> None:
    scores = SCORES.copy()
    scores[7, 1:] = np.nan
    scores[8:] = np.nan
    found = Evidence.of(scores, NAMES, test_ratio=TENFOLD)
    assert (found.left_out, found.n_splits) == ((), 7)
    assert "7 of 10 splits are judged" in found.notes[0]


def test_nothing_finished_is_no_evidence() -> None:
    found = Evidence.of(np.full((5, 3), np.nan), NAMES, test_ratio=0.25)
    assert (found.best, found.recommended, found.equivalent) == (None, None, ())
    assert found.left_out == NAMES
    assert found.pairs is None


def test_equal_models_are_seldom_told_apart_although_the_best_is_picked() -> None:
    rng = np.random.default_rng(3)
    shared, own = rng.standard_normal((300, 1, 12)), rng.standard_normal((300, 50, 12))
    claims = naive = 0
    for scores in np.sqrt(0.2) * shared + np.sqrt(0.8) * own:
        found = Evidence.of(scores, [str(each) for each in range(12)], test_ratio=0.25, repeats=10)
        claims += len(found.equivalent) < 12
        others = np.asarray(holm(np.delete(found.p, int(found.best or 0))))
        naive += bool((others <= 0.05).any())
    assert claims <= 0.05 * 300
    assert naive > 0.05 * 300  # as many comparisons as other models would not do


def test_a_frame_has_a_row_for_each_model() -> None:
    pytest.importorskip("pandas")
    found = Evidence.of(SCORES, NAMES, test_ratio=TENFOLD)
    assert found.to_frame().loc["b", "difference"] == 0.0


def test_the_basis_of_a_metric_counts_its_rows() -> None:
    assert basis_of("accuracy", [10, 90]).rows == 100
    assert basis_of("balanced_accuracy", [50, 50]).rows == pytest.approx(100)
    assert basis_of("balanced_accuracy", [10, 90]).rows == pytest.approx(36)
    assert basis_of("roc_auc", [10, 90]).rows == 10
    assert basis_of("unheard_of", [10, 90]) != basis_of("accuracy", [10, 90])
    assert not MetricRange().is_known


def test_the_least_error_of_a_difference_is_that_of_the_rows_that_must_differ() -> None:
    # n d rows on which one model is right, and half a row to each (Agresti and Min 2005)
    basis = basis_of("accuracy", [50, 50])
    ours = float(basis.error(np.array(0.1)))
    rows = np.repeat([1.0, 0.0], [11, 89])
    assert ours**2 == pytest.approx((rows.mean() - 0.1**2) / 100)
