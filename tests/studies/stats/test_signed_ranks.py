"""Wilcoxon's signed ranks against printed tables, SciPy, and all assignments of signs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from proxmargin.stats import wilcoxon_signed_ranks
from tests.studies.stats.tables import BINARY, DEMSAR, MULTICLASS, SIGNED_RANKS


def test_the_example_of_demsar() -> None:
    result = wilcoxon_signed_ranks(DEMSAR[:, :2])
    assert result.statistic[0, 1] == 12.0  # below the critical value of 21 for 14 sets
    assert result.pvalue[0, 1] == result.pvalue[1, 0] < 0.05


def test_table_6_of_xu_et_al_follows_from_their_table_5() -> None:
    # B-PGH-2 against ADMM is printed as -2.0896 (p = 0.0366): T = 7, as if the differences 92.7 -
    # 92.8 and 92.9 - 92.8 were not tied, which they are not in double precision. They are: T = 7.5.
    names = ["B-PGH", "B-PGH-2", "GCD", "ADMM", "LIBLINEAR"]
    printed = SIGNED_RANKS.copy()
    printed[1, 3], printed[3, 1] = -2.0386, 0.0414
    pandas = pytest.importorskip("pandas")
    result = wilcoxon_signed_ranks(pandas.DataFrame(BINARY, columns=names))
    assert list(result.names) == names
    upper = np.triu_indices(5, 1)
    # the printed p-values come from z of three decimals or so: 0.0125 here is 0.0126 there
    np.testing.assert_allclose(result.zscore[upper], printed[upper], rtol=0, atol=6e-5)
    np.testing.assert_allclose(result.pvalue.T[upper], printed.T[upper], rtol=0, atol=1.6e-4)
    naive = BINARY[:, 1] - BINARY[:, 3]
    ranks = rankdata(np.abs(naive))
    against = ranks[naive < 0].sum() + ranks[naive == 0].sum() / 2
    assert (against - 27.5) / np.sqrt(10 * 11 * 21 / 24) == pytest.approx(-2.0896, abs=6e-5)


def test_table_15_of_xu_et_al_follows_from_their_tables_12_and_14() -> None:
    result = wilcoxon_signed_ranks(MULTICLASS)
    upper = np.triu_indices(3, 1)
    np.testing.assert_allclose(result.zscore[upper], [-1.7838, -1.2741, -0.5606], atol=6e-5)
    np.testing.assert_allclose(result.pvalue[upper], [0.0745, 0.2026, 0.5751], atol=1.1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_scipy_agrees_where_ties_are_corrected(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 6, (25, 2)) / 10
    ours = wilcoxon_signed_ranks(scores, correct_ties=True)
    theirs = wilcoxon(
        np.round(scores[:, 0] - scores[:, 1], 9),
        zero_method="zsplit",
        method="approx",
        correction=False,
    )
    assert ours.statistic[0, 1] == theirs.statistic
    assert ours.pvalue[0, 1] == pytest.approx(theirs.pvalue, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_exact_p_values_count_all_signs(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 5, (9, 2)).astype(float)
    difference = scores[:, 0] - scores[:, 1]
    ranks = rankdata(np.abs(difference))[difference != 0]
    sums = [ranks @ signs for signs in product((0, 1), repeat=ranks.size)]
    reached = min(
        ranks[difference[difference != 0] > 0].sum(), ranks[difference[difference != 0] < 0].sum()
    )
    counted = min(1.0, 2 * np.mean(np.array(sums) <= reached))
    exact = wilcoxon_signed_ranks(scores, method="exact").pvalue[0, 1]
    assert exact == pytest.approx(counted, rel=1e-12)


def test_exact_p_values_of_many_sets_are_those_of_scipy() -> None:
    scores = np.random.default_rng(0).normal([0.0, 0.3], 1.0, (60, 2))
    ours = wilcoxon_signed_ranks(scores, method="exact")
    theirs = wilcoxon(scores[:, 0], scores[:, 1], method="exact")
    assert ours.pvalue[0, 1] == pytest.approx(theirs.pvalue, rel=1e-10)


def test_small_differences_count_beside_large_scores() -> None:
    # differences 1, -2, 3 and, of scores of 1e14 and more, 1e13: their ranks are 1 to 4
    scores = np.array([[2.0, 1.0], [1.0, 3.0], [4.0, 1.0], [1.1e14, 1e14]])
    assert wilcoxon_signed_ranks(scores).statistic[0, 1] == 2.0
    # a difference of 50 between scores of 1e14 is rounding; equal scores tie with equal ones alone
    scores[3] = 1e14 + 50, 1e14
    assert wilcoxon_signed_ranks(scores).statistic[0, 1] == 3.5
    # 150 of them is known to 100: the same as 60 and as 80
    scores = np.array([[60.0, 0.0], [0.0, 80.0], [1e14 + 150, 1e14], [1.0, 0.0]])
    assert wilcoxon_signed_ranks(scores).statistic[0, 1] == 3.0


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 7.0, 1e14, 1e300])
def test_equal_steps_of_decimals_are_tied_at_every_scale(scale: float) -> None:
    scores = scale * np.column_stack((np.arange(1, 31) / 10, np.arange(30) / 10))
    scores[::3] = scores[::3, ::-1]  # a third of the differences, all of one step, negative
    assert wilcoxon_signed_ranks(scores).statistic[0, 1] == 10 * 15.5


def test_a_pair_is_compared_alone_whatever_other_models_score() -> None:
    scores = np.column_stack((BINARY[:, :2], np.full(10, 1e14)))
    alone = wilcoxon_signed_ranks(BINARY[:, :2]).statistic[0, 1]
    assert wilcoxon_signed_ranks(scores).statistic[0, 1] == alone


def test_equal_models_do_not_differ() -> None:
    for method in ("normal", "exact"):
        result = wilcoxon_signed_ranks(np.ones((5, 2)), method=method)  # type: ignore[arg-type]
        assert result.zscore[0, 1] == 0.0
        assert result.pvalue[0, 1] == 1.0


def test_a_frame_has_a_row_for_each_pair() -> None:
    pytest.importorskip("pandas")
    frame = wilcoxon_signed_ranks(MULTICLASS).to_frame()
    assert list(frame["second"]) == ["model 1", "model 2", "model 2"]
    assert frame["zscore"].iloc[0] == pytest.approx(-1.7838, abs=6e-5)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.ones(3), {}, "shape"),
        (np.ones((3, 1)), {}, "two models"),
        (np.ones((1, 3)), {}, "1 rows"),
        ([[1.0, np.nan], [0.0, 1.0]], {}, "row 0, column 1"),
        ([["a", "b"], ["c", "d"]], {}, "scores must be numbers"),
        ([[1.0, 2.0], [1.0]], {}, "scores must be numbers"),
        (np.ones((3, 2)) + 1j, {}, "scores must be numbers"),
        ([[1.0, np.inf], [0.0, 1.0]], {}, "row 0, column 1"),
        ([[1.0, 1e308], [0.0, 1.0]], {}, "row 0, column 1"),
        (np.ones((3, 2)), {"method": "bayes"}, "method must be one of"),
        (np.ones((3, 2)), {"method": ["foo"]}, "method must be one of"),
        (np.ones((3, 2)), {"correct_ties": "no"}, "correct_ties must be True or False"),
        (np.ones((201, 2)), {"method": "exact"}, "200 rows"),
    ],
)
def test_bad_tables_are_refused(scores: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wilcoxon_signed_ranks(scores, **options)
