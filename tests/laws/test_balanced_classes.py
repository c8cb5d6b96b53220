"""Two classes of equal size: at zero coefficients every margin lies on a kink, or on one piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proxmargin import HuberizedSVC, alpha_max, margin_path
from proxmargin.data.designs import DenseDesign
from proxmargin.losses import HuberizedHinge, MarginLoss, MarginSum
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import smooth_critical_strength
from proxmargin.penalties import Ball, ElasticNet, Penalty, Pinned, Ridge
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.choice.rules import PASSES, RULES
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from tests.cases import MARGIN_LOSSES

CHOSEN = list(dict.fromkeys(rule.use for rule in (*RULES, *PASSES)))
LOSSES: dict[str, MarginLoss] = {**MARGIN_LOSSES, "huberized, delta 0.1": HuberizedHinge(0.1)}
SHAPES = {"tall": (120, 4), "wide": (24, 40)}
MOST = Stop(tol=1e-3, max_iter=2000)
# iterations of Newton methods with equal classes over those with one sample more in a class
MOST_RATIO = 3
MOST_MORE = 20


def clouds(n: int, p: int, more: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes; the positive one has ``n / 2 + more`` samples."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) < n // 2 + more, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.5 * y[:, None] * (np.arange(p) < 3), y


def problem_of(phi: MarginLoss, shape: tuple[int, int], more: int, intercept: Penalty) -> Problem:
    X, y = clouds(*shape, more)
    shares = np.full((y.size, 1), 1.0 / y.size)
    loss = MarginSum(phi, y[:, None], shares, float(y.size))
    return Problem(loss, ElasticNet(1.0), DenseDesign(X), intercept)


def penalties(strength: float) -> Iterator[Penalty]:
    yield ElasticNet(strength)
    yield ElasticNet(0.5 * strength, 0.5 * strength)
    yield Ridge(strength)
    yield Ball(2.0, 0.3)
    yield Ball(1.5, 0.3)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("intercept", [Ridge(), Pinned()], ids=["free", "none"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("phi", LOSSES.values(), ids=LOSSES.keys())
def test_no_solver_of_a_rule_stalls_on_classes_of_equal_size(
    phi: MarginLoss, shape: tuple[int, int], intercept: Penalty
) -> None:
    even, odd = (problem_of(phi, shape, more, intercept) for more in (0, 1))
    tried = 0
    for penalty in penalties(0.1 * smooth_critical_strength(even)):
        for name in CHOSEN:
            solver = SOLVERS[name]()
            pair = [replace(problem, penalty=penalty) for problem in (even, odd)]
            if solver.objection(pair[0]) is not None:
                continue
            tried += 1
            equal, other = (minimize(each, solver, stop=MOST).certificate for each in pair)
            if other.converged:
                assert equal.converged, (name, penalty, equal)
                few = equal.n_iter <= MOST_RATIO * other.n_iter + MOST_MORE
                assert few or not solver.computes_gap, (name, penalty, equal.n_iter, other.n_iter)
    assert tried >= 5


@pytest.mark.parametrize("shape", [(400, 20), (60, 200)], ids=["tall", "wide"])
@pytest.mark.parametrize("delta", [1.0, 0.1])
@pytest.mark.parametrize("balance", ["sizes", "weights", "offsets"])
def test_a_path_is_solved_by_one_solver(balance: str, delta: float, shape: Any) -> None:
    X, y = clouds(*shape, more=0)
    model = HuberizedSVC(l1_ratio=1.0, delta=delta)
    weight, offset = None, None
    if balance == "weights":  # whose curvatures vanish at the best intercept
        X, y = clouds(*shape, more=shape[0] // 4)
        weight = np.where(y > 0, 1.0, np.sum(y > 0) / np.sum(y < 0))
    if balance == "offsets":  # two samples in the quadratic zone, and all others beside it
        offset = np.zeros(y.size)
        offset[[0, -1]] = 1.0 - 0.5 * delta, 0.5 * delta - 1.0
    path = margin_path(model, X, y, n_alphas=20, sample_weight=weight, offset=offset)
    assert {one.solver for one in path.certificates} == {"chord-newton"}
    assert all(one.converged for one in path.certificates)
    other = margin_path(model, *clouds(*shape, more=1), n_alphas=20)
    steps, others = (sum(one.n_iter for one in each.certificates) for each in (path, other))
    assert steps <= 1.5 * others
    strength = 0.1 * float(alpha_max(model, X, y, sample_weight=weight, offset=offset))
    model = HuberizedSVC(alpha=strength, l1_ratio=1.0, delta=delta)
    one = model.fit(X, y, sample_weight=weight, offset=offset).certificate_
    assert one.converged
    assert one.n_iter <= 30
    assert "went on" not in one.because
