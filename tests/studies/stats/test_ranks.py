"""Friedman's and Nemenyi's tests against printed tables, SciPy and other packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from proxmargin.stats import friedman, nemenyi
from tests.studies.stats.tables import BINARY, BINARY_RANKS, DEMSAR, MULTICLASS


def test_the_example_of_demsar() -> None:
    result = friedman(DEMSAR)
    np.testing.assert_allclose(result.average_ranks, [3.143, 2.0, 2.893, 1.964], atol=5e-4)
    assert result.statistic == pytest.approx(9.28, abs=5e-3)
    assert result.iman_davenport == pytest.approx(3.69, abs=5e-3)
    assert result.iman_davenport_pvalue < 0.05  # F(3, 39) is 2.85 at that level
    assert nemenyi(DEMSAR).critical_difference == pytest.approx(1.25, abs=5e-3)
    wide = nemenyi(DEMSAR, alpha=0.10)
    assert wide.critical_difference == pytest.approx(1.12, abs=5e-3)
    assert wide.groups() == [(3, 1, 2), (2, 0)]  # as his Figure 1 (a)


def test_table_7_of_xu_et_al_follows_from_its_ranks() -> None:
    result = friedman(BINARY_RANKS, higher_is_better=False)
    np.testing.assert_allclose(result.average_ranks, [1.75, 1.85, 3.65, 3.15, 4.6], atol=1e-12)
    assert result.statistic == pytest.approx(23.56, abs=1e-9)
    assert result.pvalue == pytest.approx(9.78e-5, abs=5e-8)


def test_table_7_of_xu_et_al_with_the_ranks_of_gisette_as_its_table_5_has_them() -> None:
    corrected = BINARY_RANKS.copy()
    corrected[3, [1, 3]] = 3.0, 2.0
    result = friedman(BINARY)
    np.testing.assert_allclose(result.average_ranks, corrected.mean(axis=0), atol=1e-12)
    assert result.statistic == pytest.approx(22.6, abs=1e-9)
    assert result.pvalue < 2e-4


def test_table_16_of_xu_et_al_follows_from_their_tables_12_and_14() -> None:
    result = friedman(MULTICLASS)
    np.testing.assert_allclose(result.average_ranks, [1.4, 2.4, 2.2], atol=1e-12)
    assert result.statistic == pytest.approx(5.6, abs=1e-9)
    assert result.pvalue == pytest.approx(0.0608, abs=5e-5)


@pytest.mark.parametrize("seed", range(4))
def test_scipy_agrees_where_ties_are_corrected(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 5, (12, 4)).astype(float)
    ours, theirs = friedman(scores, correct_ties=True), friedmanchisquare(*scores.T)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.pvalue == pytest.approx(theirs.pvalue, rel=1e-12)


def test_losses_are_ranked_from_the_lowest() -> None:
    losses = friedman(-DEMSAR, higher_is_better=False)
    np.testing.assert_array_equal(losses.average_ranks, friedman(DEMSAR).average_ranks)


def test_equal_models_do_not_differ() -> None:
    for ties in (False, True):
        result = friedman(np.ones((4, 3)), correct_ties=ties)
        assert (result.statistic, result.pvalue, result.iman_davenport) == (0.0, 1.0, 0.0)
    assert nemenyi(np.ones((4, 3))).groups() == [(0, 1, 2)]


def test_models_in_the_same_order_everywhere_differ_without_bound() -> None:
    result = friedman(np.arange(6.0).reshape(2, 3) % 3)
    assert result.iman_davenport == np.inf
    assert result.iman_davenport_pvalue == 0.0


def test_scores_of_many_magnitudes_are_ranked_row_by_row() -> None:
    losses = [[1e14, 2e14], [1.0, 3.0], [2.0, 5.0], [1e-9, 2e-9]]
    result = friedman(losses, higher_is_better=False)
    np.testing.assert_array_equal(result.average_ranks, [1.0, 2.0])
    scaled = DEMSAR * 10.0 ** np.arange(-20, 22, 3)[:, None]
    np.testing.assert_array_equal(friedman(scaled).average_ranks, friedman(DEMSAR).average_ranks)


def test_scores_that_differ_by_rounding_are_tied() -> None:
    result = friedman([[0.1 + 0.2, 0.3, 0.1], [1e14, 1e14 + 0.5, 0.0]])
    np.testing.assert_array_equal(result.average_ranks, [1.5, 1.5, 3.0])
    apart = friedman([[1.0, 1 + 1e-11], [1.0, 1 + 1e-11]])
    np.testing.assert_array_equal(apart.average_ranks, [2.0, 1.0])


def test_frames_have_the_ranks() -> None:
    pytest.importorskip("pandas")
    ranks = friedman(DEMSAR).average_ranks
    frame = friedman(DEMSAR).to_frame()
    assert frame["model"].tolist() == [f"model {number}" for number in range(4)]
    assert frame["average_rank"].tolist() == ranks.tolist()
    pairs = nemenyi(DEMSAR).to_frame()
    assert list(pairs) == ["first", "second", "first_rank", "second_rank", "pvalue"]
    assert pairs["first_rank"].tolist() == ranks[[0, 0, 0, 1, 1, 2]].tolist()
    assert pairs["second_rank"].tolist() == ranks[[1, 2, 3, 2, 3, 3]].tolist()


def test_nemenyi_is_that_of_scikit_posthocs() -> None:
    posthocs = pytest.importorskip("scikit_posthocs")
    theirs = posthocs.posthoc_nemenyi_friedman(DEMSAR).to_numpy()
    np.testing.assert_allclose(nemenyi(DEMSAR).pvalue, theirs, rtol=1e-6, atol=1e-9)


def test_a_level_outside_0_and_1_is_refused() -> None:
    for alpha in (1.5, "x", None, True, np.nan):
        with pytest.raises(ValueError, match="alpha="):
            nemenyi(DEMSAR, alpha=alpha)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["higher_is_better", "correct_ties"])
@pytest.mark.parametrize("value", ["no", None, 1])
def test_what_is_neither_true_nor_false_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be True or False"):
        friedman(DEMSAR, **{name: value})
