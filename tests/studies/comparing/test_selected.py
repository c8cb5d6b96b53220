"""Stability of selected features: Nogueira's measure against its formula and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from proxmargin import L2SVC, HuberizedSVC
from proxmargin.studies.comparing.results import feature_rows, selection_stability
from proxmargin.studies.comparing.rows import LabelledRows
from proxmargin.studies.comparing.work import _used


def used(row: np.ndarray) -> dict:
    features = np.flatnonzero(row)
    return {
        "features": None if features.size == row.size else features.tolist(),
        "weights": [row[features].astype(float).tolist()],
    }


def by_the_formula(table: np.ndarray) -> float:
    """As the authors of the measure compute it: Nogueira, Sechidis and Brown (2018)."""
    p = table.shape[1]
    size = table.sum(axis=1).mean()
    return 1 - table.var(axis=0, ddof=1).mean() / ((size / p) * (1 - size / p))


@pytest.mark.parametrize("seed", range(5))
def test_stability_is_nogueiras_formula(seed):
    rng = np.random.default_rng(seed)
    table = (rng.random((6, 20)) < rng.random(20)).astype(int)
    found = selection_stability([used(row) for row in table], 20)
    assert found == pytest.approx(by_the_formula(table), rel=1e-12)


def test_stability_of_sets_of_equal_size_is_kunchevas_index():
    """The mean over pairs of ``(r p - k^2) / (k (p - k))`` for r common features (2007)."""
    rng = np.random.default_rng(1)
    p, k = 15, 4
    sets = [set(rng.choice(p, k, replace=False).tolist()) for _ in range(5)]
    pairs = [len(a & b) for i, a in enumerate(sets) for b in sets[:i]]
    index = np.mean([(r * p - k**2) / (k * (p - k)) for r in pairs])
    table = np.array([[j in each for j in range(p)] for each in sets], int)
    assert selection_stability([used(row) for row in table], p) == pytest.approx(index)


def test_equal_sets_are_stable_and_random_ones_are_not():
    row = np.array([1, 0, 1, 0, 0])
    assert selection_stability([used(row)] * 4, 5) == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    table = (rng.random((300, 40)) < 0.3).astype(int)
    assert abs(selection_stability([used(row) for row in table], 40)) < 0.02


@pytest.mark.parametrize("rows", [[[0, 0]] * 3, [[1, 1]] * 3, [[1, 0]]])
def test_stability_of_nothing_to_select_is_not_known(rows):
    assert np.isnan(selection_stability([used(np.array(row)) for row in rows], 2))
    assert np.isnan(selection_stability([{}, {}], 2))


def test_features_tell_their_frequency_and_the_agreement_of_their_signs():
    final = {"features": [1, 3], "weights": [[0.5, -2.0]]}
    folds = [
        {"features": [1, 3], "weights": [[0.1, -1.0]]},
        {"features": [3], "weights": [[1.0]]},
        {"features": None, "weights": [[0.0, 1.0, 0.0, -3.0]]},
    ]
    rows = feature_rows(final, folds, list("abcd"), [1, 8, 1, 1], ["no", "yes"], limit=5)
    assert [(r["feature"], r["class"], r["weight"], r["sign"]) for r in rows] == [
        ("b", "yes", 4.0, 1),
        ("d", "yes", -2.0, -1),
    ]
    assert [r["frequency"] for r in rows] == pytest.approx([2 / 3, 1.0])
    assert [r["sign_agreement"] for r in rows] == pytest.approx([1.0, 2 / 3])


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_column_that_is_constant_in_a_fold_is_no_selection(form):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), np.arange(40) % 2
    X[:20, 3] = 0.0
    halves = [form(X[:20]), form(X[20:])]
    rows = [LabelledRows(half, y[:20]) for half in halves]
    dense = [_used(L2SVC(standardize=True).fit(r.X, r.y), r, False) for r in rows]
    assert np.isnan(selection_stability(dense, 5))
    sparse = HuberizedSVC(alpha=0.2, l1_ratio=1.0, standardize=form is np.asarray)
    chosen = [_used(sparse.fit(r.X, r.y), r, False) for r in rows]
    assert selection_stability(chosen, 5) < 1
