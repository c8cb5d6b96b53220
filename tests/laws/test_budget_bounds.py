"""Lower bounds of models within a budget, whether the budget was met or not, against HiGHS."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from proxmargin import MulticlassSVC
from proxmargin.models.classifiers import multiclass
from tests.oracles.programs import whole_program

SEEDS = range(12)


@pytest.mark.parametrize(
    ("solver", "max_iter"), [("auto", 0), ("auto", 3), ("auto", None), ("fbpd", 3), ("fbpd", 300)]
)
def test_no_lower_bound_is_above_the_optimum_of_a_linear_program(solver, max_iter) -> None:
    short = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(6, 14)), int(rng.integers(2, 6))
        X, y = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-3, 3), np.arange(n) % 3
        X[:, 0] += y * np.abs(X).max()
        budget = float(rng.uniform(0.2, 0.9))
        best = whole_program(X, y, 1.0, budget=budget).value
        model = MulticlassSVC(
            C=None, eta=budget * n, solver=solver, max_iter=max_iter, time_limit=2.0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            certificate = model.fit(X, y).certificate_
        assert certificate.dual <= best * (1 + 1e-7) + 1e-12
        assert certificate.primal >= best * (1 - 1e-6)
        assert certificate.converged or certificate.relative_gap > 1e-6
        assert np.isfinite(certificate.primal)
        short += not certificate.converged
    if max_iter in (0, 3) and solver == "fbpd":
        assert short > 0  # or nothing was tried


@pytest.mark.parametrize(("solver", "max_iter"), [("auto", 1), ("fbpd", 3), ("fbpd", 30)])
def test_a_lower_bound_holds_where_no_point_within_the_budget_is_known(solver, max_iter) -> None:
    """Without a time limit none is searched for: the objective of what is above it is infinite."""
    infinite = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((12, 4)) * 10.0 ** rng.uniform(-3, 3), np.arange(12) % 3
        X[:, 0] += y * np.abs(X).max()
        best = whole_program(X, y, 1.0, budget=0.3).value
        model = MulticlassSVC(C=None, eta=0.3 * 12, solver=solver, max_iter=max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            certificate = model.fit(X, y).certificate_
        assert certificate.dual <= best * (1 + 1e-7)
        assert np.isfinite(certificate.dual)
        assert np.isinf(certificate.gap) == np.isinf(certificate.primal)
        infinite += np.isinf(certificate.primal)
    assert infinite > 0 or solver == "auto"


@pytest.mark.parametrize("penalty", ["l1", "group_l2"])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_fit_that_ends_early_above_its_budget_is_brought_within_it(penalty, seed) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 6)), rng.integers(0, 3, 30)
    groups = {"groups": "features"} if penalty.startswith("group") else {}
    model = MulticlassSVC(penalty=penalty, loss="logistic", C=None, eta=40.0, **groups)
    whole = model.fit(X, y).certificate_
    assert spent(model, X, y) == pytest.approx(40.0, rel=1e-6)
    with pytest.warns(ConvergenceWarning, match="met by a mixture"):
        part = model.set_params(max_iter=5).fit(X, y).certificate_
    assert spent(model, X, y) <= 40.0 * (1 + 1e-12)
    assert not part.converged
    assert np.isfinite(part.gap)
    assert part.dual <= whole.primal <= part.primal * (1 + 1e-6)


def spent(model: MulticlassSVC, X: np.ndarray, y: np.ndarray) -> float:
    """The sum of the multinomial losses with margin one."""
    scores, each = model.decision_function(X), np.arange(y.size)
    above = 1.0 + scores - scores[each, y][:, None]
    above[each, y] = 0.0
    return float(logsumexp(above, axis=1).sum())


@pytest.mark.pairwise
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("seconds", [1e-4, 3e-3, 0.03])
@pytest.mark.parametrize("seed", range(4))
def test_a_budget_that_is_known_to_be_met_is_never_refused_for_want_of_time(
    loss, seconds, seed
) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(40, 120)), int(rng.integers(2, 12))
    X, y = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2, p), np.arange(n) % 3
    near = MulticlassSVC(C=1e3, loss=loss, penalty="l2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        near.set_params(time_limit=0.5).fit(X, y)
        known = summed(loss, X @ near.coef_.T + near.intercept_, y)
        assert known > 0
        for more in (1e-9, 1e-3):
            model = MulticlassSVC(C=None, eta=known * (1 + more), loss=loss, time_limit=seconds)
            certificate = model.fit(X, y).certificate_
            assert certificate.dual <= certificate.primal


@pytest.mark.parametrize("penalty", ["l1", "l2", "group_linf"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "lee"])
def test_a_fit_without_time_has_a_finite_gap(loss, penalty, monkeypatch) -> None:
    monkeypatch.setattr(multiclass, "LEAST_SECONDS", 60.0)  # a busy machine
    X, y = np.random.default_rng(0).standard_normal((60, 20)), np.arange(60) % 3
    groups = {"groups": "features"} if penalty.startswith("group") else {}
    model = MulticlassSVC(C=None, eta=90.0, loss=loss, penalty=penalty, time_limit=1e-4, **groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = model.fit(X, y).certificate_
        whole = model.set_params(time_limit=20.0).fit(X, y).certificate_
    assert np.isfinite(short.gap)
    assert short.dual <= whole.primal * (1 + 1e-9)
    assert whole.dual <= short.primal * (1 + 1e-9)


def summed(loss: str, scores: np.ndarray, y: np.ndarray) -> float:
    """The losses of all samples together, by their definitions."""
    off = scores - scores[np.arange(y.size), y][:, None]
    wrong = np.arange(scores.shape[1]) != y[:, None]
    if loss == "logistic":
        return float(np.logaddexp.reduce(off + wrong, axis=1).sum())
    ahead = np.where(wrong, np.maximum(1.0 + off, 0.0), 0.0)
    return float(ahead.max(axis=1).sum() if loss == "hinge" else (ahead**2).sum())
