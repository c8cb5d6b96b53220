"""Features that are ruled out are zero at every solution; the radii that say so hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmargin.certificates.certify import certify
from proxmargin.certificates.gap import Gap
from proxmargin.designs import DenseDesign, Design, SparseDesign, StandardizedDesign, moments
from proxmargin.loop.minimize import minimize
from proxmargin.loop.outcome import Status
from proxmargin.loop.stopping import Stop
from proxmargin.losses import (
    Hinge,
    HuberizedHinge,
    Logistic,
    Loss,
    MarginSum,
    Multinomial,
    wrong_classes,
)
from proxmargin.penalties import ElasticNet, GroupL2, Groups, Penalty, Pinned, Ridge, SumToZero
from proxmargin.problem import Point, Problem
from proxmargin.solvers.names import SOLVERS
from proxmargin.solvers.papers.proximal_gradient import CoordinateDescent
from proxmargin.solvers.screening import sensitivities, surely_zero
from proxmargin.solvers.working_set import WorkingSet
from proxmargin.solvers.wrappers.relay import Relay

SAMPLES, FEATURES, CLASSES = 30, 40, 3


def huberized(shares: np.ndarray, codes: np.ndarray) -> Loss:
    return wrong_classes(HuberizedHinge(0.5), codes, shares, CLASSES, float(SAMPLES))


def binary(shares: np.ndarray, codes: np.ndarray) -> Loss:
    signs = np.where(codes == 0, 1.0, -1.0)[:, None]
    return MarginSum(Logistic(), signs, shares[:, None], float(SAMPLES))


def multinomial(shares: np.ndarray, codes: np.ndarray) -> Loss:
    return Multinomial(codes, shares, CLASSES, float(SAMPLES))


def summing(strength: float, l2: float) -> Penalty:
    return SumToZero(ElasticNet(strength, l2))


def rounder(strength: float, l2: float) -> Penalty:
    return ElasticNet(strength, l2 + 0.05)


# losses, penalties by their strengths, intercepts by their ridge, and a solver for the last digits
MODELS: dict[str, tuple[Callable[..., Loss], Any, Any, str]] = {
    "huberized, all classes": (huberized, summing, lambda r: summing(0.0, r), "fapg-ssnal"),
    "logistic": (binary, ElasticNet, Ridge, "fapg"),
    "multinomial": (multinomial, rounder, lambda r: summing(0.0, r), "fapg"),
}
every_model = pytest.mark.parametrize("name", MODELS)
DESIGNS: dict[str, Callable[[np.ndarray], Design]] = {
    "dense": DenseDesign,
    "sparse": lambda X: SparseDesign(sp.csr_matrix(X * (np.abs(X) > 1.0))),
    "standardised sparse": lambda X: standardised(SparseDesign(sp.csr_matrix(X * (X > 0.5)))),
}


def standardised(base: Design) -> Design:
    return StandardizedDesign(base, *moments(base, np.full(base.n_samples, 1 / base.n_samples)))


def made(name: str, seed: int, design: str, ridge: float | None, l2: float) -> Problem:
    """Correlated features whose means are not zero, random weights, a tenth of them zero."""
    rng = np.random.default_rng(seed)
    loss, penalty, intercept, _ = MODELS[name]
    codes = np.arange(SAMPLES) % CLASSES
    factors = rng.standard_normal((SAMPLES, 4)) + np.eye(4)[codes]
    X = factors @ rng.standard_normal((4, FEATURES)) + rng.standard_normal((SAMPLES, FEATURES)) + 2
    shares = rng.uniform(0.2, 1.0, SAMPLES) * (np.arange(SAMPLES) % 10 != 7)
    last = Pinned() if ridge is None else intercept(ridge)
    problem = Problem(
        loss(shares / shares.sum(), codes), penalty(1.0, l2), DESIGNS[design](X), last
    )
    return replace(problem, penalty=penalty(0.2 * problem.critical_strength(), l2))


def optimum(name: str, problem: Problem) -> Gap:
    solution = minimize(problem, SOLVERS[MODELS[name][3]](), stop=Stop(tol=1e-11))
    assert solution.gap.relative_gap < 1e-9
    return solution.gap


def certificates(problem: Problem, best: Gap, seed: int) -> list[Gap]:
    """Of points at all distances from the optimum, and of dual points along single features."""
    rng = np.random.default_rng(seed)
    coef, intercept, _ = best.point
    found = []
    for size in (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0):
        noise = size * rng.standard_normal(coef.shape) * np.abs(coef).max()
        found.append(certify(problem, problem.projected(Point(coef + noise, intercept))))
        unit = (np.arange(FEATURES) == rng.integers(FEATURES))[:, None] * np.ones(coef.shape[1])
        along = problem.loss.row_curvatures[:, None] * problem.design.scores(unit)
        along *= rng.choice([-1.0, 1.0], coef.shape[1])
        found.append(certify(problem, best.point, dual=best.dual_point + size * along))
    return found


KINDS = {
    "seed": st.integers(0, 10_000),
    "design": st.sampled_from(list(DESIGNS)),
    "ridge": st.sampled_from([0.0, 0.3, None]),
    "l2": st.sampled_from([0.0, 0.05]),
}


@every_model
@settings(max_examples=8)
@given(**KINDS)
def test_no_feature_of_a_solution_is_ruled_out(name: str, **kind: Any) -> None:
    problem = made(name, **kind)
    best = optimum(name, problem)
    sizes = np.abs(best.point.coef).max(axis=1)
    for gap in certificates(problem, best, kind["seed"]):
        out = surely_zero(problem, gap)
        assert sizes[out].max(initial=0.0) <= 1e-6 * sizes.max(initial=0.0)


@every_model
@settings(max_examples=8)
@given(**KINDS)
def test_the_optimal_dual_is_within_the_radii(name: str, **kind: Any) -> None:
    problem = made(name, **kind)
    best = optimum(name, problem)
    squares = sensitivities(problem)
    there = problem.design.adjoint(best.dual_point)
    exact = np.sqrt(2.0 * best.gap * squares)  # the best dual point known is not q* itself
    for gap in certificates(problem, best, kind["seed"]):
        off = problem.design.adjoint(gap.dual_point) - there
        if isinstance(problem.penalty, SumToZero):
            off -= off.mean(axis=1, keepdims=True)
        radii = np.sqrt(2.0 * gap.gap * squares) + exact
        assert (np.linalg.norm(off, axis=1) <= radii * (1 + 1e-9) + 1e-12).all()


@every_model
@pytest.mark.parametrize("design", DESIGNS)
def test_at_the_optimum_every_feature_with_room_is_ruled_out(name: str, design: str) -> None:
    problem = made(name, 3, design, 0.0, 0.0)
    best = optimum(name, problem)
    pulled = -problem.design.adjoint(best.dual_point)
    room = problem.penalty.keeps_at_zero(pulled, np.full(FEATURES, 0.05 * np.abs(pulled).max()))
    assert room.sum() > FEATURES // 4
    assert surely_zero(problem, best)[room].all()


def test_a_free_intercept_makes_means_of_features_irrelevant(rng) -> None:
    problem = made("huberized, all classes", 1, "dense", 0.0, 0.0)
    moved = DenseDesign(problem.design.matrix + 10.0 * rng.standard_normal(FEATURES))
    there = sensitivities(replace(problem, design=moved))
    np.testing.assert_allclose(there, sensitivities(problem), rtol=1e-9)
    rows = problem.loss.row_curvatures
    mean, total = rows @ moved.matrix / rows.sum(), rows.sum()
    tied = replace(problem, design=moved, intercept=SumToZero(ElasticNet(0.0, 0.1)))
    more = 0.1 * total / (0.1 + total) * mean**2  # by the sum of the least squares about m and 0
    np.testing.assert_allclose(sensitivities(tied), there + more, rtol=1e-9)
    none = sensitivities(replace(tied, intercept=Pinned()))
    np.testing.assert_allclose(none, there + total * mean**2, rtol=1e-9)


def test_less_freedom_of_the_intercept_means_larger_radii() -> None:
    free, tied, none = (
        sensitivities(made("logistic", 2, "dense", ridge, 0.0)) for ridge in (0.0, 0.3, None)
    )
    assert (free < tied).all()
    assert (tied < none).all()


def test_sums_that_are_only_equal_are_of_no_use_to_coefficients_that_need_not_sum_to_zero() -> None:
    problem = made("huberized, all classes", 2, "dense", 0.0, 0.0)
    apart = replace(problem, penalty=ElasticNet(0.1))
    none = replace(apart, intercept=Pinned())
    np.testing.assert_array_equal(sensitivities(apart), sensitivities(none))


def test_what_has_no_radius_rules_nothing_out() -> None:
    problem = made("logistic", 0, "dense", 0.0, 0.0)
    gap = certify(problem, problem.origin())
    kinked = replace(problem, loss=replace(problem.loss, phi=Hinge()))
    assert not surely_zero(kinked, certify(kinked, kinked.origin())).any()
    groups = replace(problem, penalty=GroupL2(Groups.within_classes(np.arange(FEATURES) % 5), 1e3))
    assert not surely_zero(groups, gap).any()
    assert not surely_zero(problem, replace(gap, gap=np.inf)).any()


@pytest.mark.parametrize("inner", [Relay, CoordinateDescent], ids=["relay", "gcd"])
def test_members_that_are_ruled_out_leave_the_working_set(inner: Any) -> None:
    name = "logistic" if inner is CoordinateDescent else "huberized, all classes"
    problem = made(name, 5, "dense", 0.0, 0.01)
    reached = {}
    for screening in (True, False):
        solver = WorkingSet(inner(), smallest=12, screening=screening)
        solution = minimize(problem, solver, stop=Stop(tol=1e-10))
        assert solution.status is Status.CONVERGED
        reached[screening] = solution
    screened, whole = reached[True], reached[False]
    assert set(np.flatnonzero(screened.point.coef.any(axis=1))) <= set(screened.state.members)
    assert screened.state.members.size < whole.state.members.size
    assert screened.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-9)
