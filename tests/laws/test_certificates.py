"""A certificate is never smaller than the true distance from the optimum, and zero there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proxmargin import ElasticNetSVC, SquaredHingeSVC
from proxmargin.data.designs import DenseDesign
from proxmargin.losses import (
    Hinge,
    HuberizedHinge,
    Logistic,
    MarginSum,
    SquaredHinge,
    wrong_classes,
)
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import smooth_critical_strength
from proxmargin.penalties import ElasticNet, Penalty, Pinned, Ridge, SumToZero
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.accelerated import FastProximalGradient
from tests.oracles.models import binary_optimum, joint_optimum

PHIS = {
    "hinge": (Hinge(), {"loss": "hinge"}),
    "huberized": (HuberizedHinge(0.7), {"loss": "huberized_hinge", "delta": 0.7}),
    "narrow": (HuberizedHinge(0.02), {"loss": "huberized_hinge", "delta": 0.02}),
    "squared": (SquaredHinge(), {"loss": "squared_hinge"}),
    "logistic": (Logistic(), {"loss": "logistic"}),
}
NETS = {"elastic net": (0.05, 0.6), "l1": (0.05, 1.0), "ridge": (0.05, 0.0), "nothing": (0.0, 0.5)}
every_phi = pytest.mark.parametrize("loss", PHIS)
every_net = pytest.mark.parametrize("net", NETS)
every_intercept = pytest.mark.parametrize("intercept", ["free", "ridge", "none"])
weighted = pytest.mark.parametrize(
    "zeros", [False, True], ids=["equal weights", "some weights zero"]
)
RIDGE = 0.2
# what rounding may hide in an objective of order one
ROUNDING = 1e-13


def binary(loss: str, net: str, intercept: str, zeros: bool) -> tuple[Problem, float]:
    """A small problem that cannot be separated, and the objective that Clarabel reaches."""
    rng = np.random.default_rng(11)
    n, p = 40, 4
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p)) + 0.6 * y[:, None] * (np.arange(p) < 2) + 0.4
    weights = rng.integers(0, 3, n).astype(float) if zeros else np.ones(n)
    phi, words = PHIS[loss]
    alpha, l1_ratio = NETS[net]
    optimum = binary_optimum(
        X, y, fit_intercept=intercept != "none", alpha=alpha, l1_ratio=l1_ratio, weights=weights,
        intercept_ridge=RIDGE * (intercept == "ridge"), **words,
    )  # fmt: skip
    of_intercept: Penalty = (
        Pinned() if intercept == "none" else Ridge(RIDGE * (intercept == "ridge"))
    )
    sum_ = MarginSum(phi, y[:, None], (weights / weights.sum())[:, None], weights.sum())
    penalty = ElasticNet.from_mixture(alpha, l1_ratio)
    return Problem(sum_, penalty, DenseDesign(X), of_intercept), optimum.value


def joint(loss: str, net: str, intercept: str, zeros: bool) -> tuple[Problem, float]:
    """The same with three classes, all together."""
    rng = np.random.default_rng(12)
    n, p, classes = 45, 4, 3
    codes = np.arange(n) % classes
    X = rng.standard_normal((n, p)) + (np.arange(p) == codes[:, None]) + 0.4
    weights = rng.integers(0, 3, n).astype(float) if zeros else np.ones(n)
    phi, words = PHIS[loss]
    alpha, l1_ratio = NETS[net]
    optimum = joint_optimum(
        X, codes, fit_intercept=intercept != "none", alpha=alpha, l1_ratio=l1_ratio,
        weights=weights, intercept_ridge=RIDGE * (intercept == "ridge"), **words,
    )  # fmt: skip
    strength = RIDGE * (intercept == "ridge")
    of_intercept = Pinned() if intercept == "none" else SumToZero(ElasticNet(0.0, strength))
    sum_ = wrong_classes(phi, codes, weights / weights.sum(), classes, weights.sum())
    penalty = SumToZero(ElasticNet.from_mixture(alpha, l1_ratio))
    return Problem(sum_, penalty, DenseDesign(X), of_intercept), optimum.value


def points(problem: Problem, rng: np.random.Generator) -> list[Point]:
    """Random points of every size, dense and sparse, in the domain of the penalties."""
    origin = problem.origin()
    chosen = [origin]
    for size in (1e-6, 1e-2, 0.3, 1.0, 10.0, 1e3):
        for dense in (True, False):
            coef = size * rng.standard_normal(origin.coef.shape)
            coef *= dense or rng.random((coef.shape[0], 1)) < 0.5
            if isinstance(problem.penalty, SumToZero):
                coef -= coef.mean(axis=1, keepdims=True)
            chosen.append(Point(coef, size * rng.standard_normal(origin.intercept.shape)))
    return chosen


def check_bounds(problem: Problem, reached: float, rng: np.random.Generator) -> None:
    for point in points(problem, rng):
        gap = certify(problem, point)
        assert gap.primal == pytest.approx(problem.value(gap.point), rel=1e-12)
        # at the best intercept the objective is no larger than at the given one, up to rounding
        if np.isfinite(problem.intercept.value(point.intercept[None, :])) and not isinstance(
            problem.intercept, SumToZero
        ):
            assert gap.primal <= problem.value(point) * (1 + 1e-12)
        slack = ROUNDING * (1 + abs(gap.primal))
        assert gap.gap >= gap.primal - reached - slack
        assert gap.dual <= reached + slack


@every_phi
@every_net
@every_intercept
@weighted
def test_no_binary_certificate_is_smaller_than_the_suboptimality(
    loss: str, net: str, intercept: str, zeros: bool, rng: Any
) -> None:
    check_bounds(*binary(loss, net, intercept, zeros), rng)


@pytest.mark.parametrize("loss", ["huberized", "narrow", "squared", "logistic"])
@pytest.mark.parametrize("net", ["elastic net", "l1", "ridge"])
@every_intercept
@weighted
def test_no_multiclass_certificate_is_smaller_than_the_suboptimality(
    loss: str, net: str, intercept: str, zeros: bool, rng: Any
) -> None:
    check_bounds(*joint(loss, net, intercept, zeros), rng)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["huberized", "narrow", "squared", "logistic"])
@pytest.mark.parametrize("net", ["elastic net", "l1", "ridge"])
@every_intercept
@pytest.mark.parametrize("make", [binary, joint])
def test_at_the_optimum_the_gap_is_zero_and_the_value_is_clarabels(
    loss: str, net: str, intercept: str, make: Any
) -> None:
    problem, reached = make(loss, net, intercept, True)
    solution = minimize(problem, FastProximalGradient(), stop=Stop(tol=1e-12, max_iter=20_000))
    assert solution.gap.relative_gap <= 1e-11
    assert solution.gap.primal == pytest.approx(reached, rel=1e-8)
    assert solution.gap.primal <= reached * (1 + 1e-11)
    assert solution.gap.kkt_residual <= 1e-5


def test_known_scores_give_the_same_certificate(rng) -> None:
    problem, _ = binary("logistic", "elastic net", "free", False)
    for point in points(problem, rng):
        scores = problem.design.scores(point.coef) + point.intercept
        with_scores = certify(problem, point, scores=scores)
        assert with_scores.gap == pytest.approx(certify(problem, point).gap, rel=1e-12)


@pytest.mark.parametrize("margin", [-1e3, -100.0, 100.0, 1e3])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_gap_is_finite_and_valid_at_extreme_margins(margin: float, l2: float) -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    X = np.where(np.arange(6) < 4, y, -0.5 * y)[:, None]
    loss = MarginSum(Logistic(), y[:, None], np.full((6, 1), 1 / 6), 6.0)
    problem = Problem(loss, ElasticNet(0.05, l2), DenseDesign(X), Ridge())
    gap = certify(problem, Point(np.array([[margin]]), np.zeros(1)))
    best = binary_optimum(X, y, loss="logistic", alpha=0.05 + l2, l1_ratio=0.05 / (0.05 + l2)).value
    assert np.isfinite(gap.gap)
    assert gap.gap >= gap.primal - best - 1e-10


def test_the_critical_strength_is_where_coefficients_appear(rng) -> None:
    for make in (binary, joint):
        problem, _ = make("huberized", "l1", "free", True)
        critical = smooth_critical_strength(problem)
        for factor, expected in ((1 + 1e-9, False), (1 - 1e-3, True)):
            net = ElasticNet(critical * factor, 0.01)
            penalty = SumToZero(net) if make is joint else net
            changed = Problem(problem.loss, penalty, problem.design, problem.intercept)
            solution = minimize(changed, FastProximalGradient(), stop=Stop(tol=1e-13))
            assert bool(np.any(solution.point.coef)) == expected


@pytest.mark.parametrize("model", [ElasticNetSVC, SquaredHingeSVC])
@pytest.mark.parametrize("offset", [None, 1.0, 3.0])
def test_an_optimum_of_zero_is_proved(model: Any, offset: float | None) -> None:
    y = np.array([0, 1, 0, 1])
    shift = None if offset is None else offset * (2 * y - 1)
    for seed in range(12):
        X = np.round(np.random.default_rng(seed).standard_normal((4, 3)), 1)
        certificate = model(alpha=0.0).fit(X, y, offset=shift).certificate_
        assert certificate.converged
        assert certificate.primal <= 1e-12
