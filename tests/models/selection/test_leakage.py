"""Held-out rows have no part in the models that they score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import (
    StratifiedKFold,
    cross_val_score,
)

from proxmargin import (
    SVCCV,
    HuberizedSVCCV,
    SparseLogisticRegressionCV,
    SquaredHingeSVCCV,
)


def test_held_out_rows_have_no_part_in_their_fold() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:120], y[:120]
    splits = list(StratifiedKFold(3).split(X, y))
    for kind, more in [
        (HuberizedSVCCV, {"alphas": [0.1, 0.01]}),
        (SVCCV, {"Cs": [0.01, 1.0]}),
        (SVCCV, {"Cs": [0.1, 1.0], "kernel": "rbf"}),
    ]:
        model = kind(**more, cv=splits[:1], standardize=True, keep_scores=True, refit=False)
        train, test = splits[0]
        honest = clone(model).fit(X, y).oof_scores_
        poisoned, labels = X.copy(), y.copy()
        poisoned[test[1:]] = 1e30
        labels[test] = 1 - labels[test]
        found = clone(model).fit(poisoned, labels).oof_scores_
        assert np.isnan(honest[0, :, train]).all()
        np.testing.assert_array_equal(found[0, :, test[0]], honest[0, :, test[0]])


@pytest.mark.parametrize("shape", [(60, 150), (90, 12)])
@pytest.mark.parametrize("storage", ["C", "F", "CSR"])
def test_giants_in_held_out_rows_do_not_change_a_bit(shape, storage) -> None:
    """Neither standardisation nor bounds nor Gram matrices read them."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    y = np.where(X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(shape[0]) > 0, 1, 0)
    train, test = next(StratifiedKFold(5).split(X, y))
    poisoned = X.copy()
    poisoned[test[1:]] = rng.choice([-1e60, 1e60], (test.size - 1, shape[1]))
    stored = sparse.csr_array if storage == "CSR" else lambda A: np.array(A, order=storage)
    for kind in (SparseLogisticRegressionCV, SquaredHingeSVCCV, HuberizedSVCCV):
        model = kind(
            alphas=[0.1, 0.03, 0.01],
            l1_ratios=(1.0, 0.5),
            cv=[(train, test)],
            standardize=True,
            keep_scores=True,
            refit=False,
        )
        honest = clone(model).fit(stored(X), y).oof_scores_[:, :, test[0]]
        found = clone(model).fit(stored(poisoned), y).oof_scores_[:, :, test[0]]
        np.testing.assert_array_equal(found, honest)


@pytest.mark.slow
def test_labels_without_a_relation_are_predicted_by_chance() -> None:
    rng = np.random.default_rng(0)
    model = SparseLogisticRegressionCV(alphas=10, l1_ratios=(1.0, 0.5), cv=4, standardize=True)
    rates = []
    for _ in range(6):
        X, y = rng.standard_normal((80, 400)), np.arange(80) % 2
        rates.append(cross_val_score(model, X, y, cv=StratifiedKFold(4, shuffle=True)).mean())
    # 480 guesses: three standard errors
    assert np.mean(rates) == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(480))
