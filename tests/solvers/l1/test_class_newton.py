"""Proximal Newton for smooth losses of all classes, against interior-point optima."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine

from proxmargin.data.designs import as_design, standardized
from proxmargin.functions.losses.classes.comparison import SmoothComparison
from proxmargin.losses import Multinomial, PairwiseSquaredHinge, Shifted
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import (
    ElasticNet,
    GroupL2,
    Groups,
    Penalty,
    Pinned,
    SumToZero,
    WeightedElasticNet,
)
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.l1.class_newton import ClassNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from tests.cases import class_problem, multiclass_problem

FREE = SumToZero(ElasticNet(0.0, 0.0))
LOSSES = {"softmax": (Multinomial, 0.0), "margin": (Multinomial, 1.0), "squares": (None, 1.0)}
NETS = {"l1": (0.02, 0.0), "elastic net": (0.01, 0.02), "weak": (3e-4, 1e-4)}
every_loss = pytest.mark.parametrize("kind", LOSSES)
every_net = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())


def made(kind: str, y: np.ndarray, weights: np.ndarray | None = None) -> SmoothComparison:
    weights = np.ones(y.size) if weights is None else weights
    of = (y, weights / weights.sum(), int(y.max()) + 1, float(weights.sum()))
    make, margin = LOSSES[kind]
    return PairwiseSquaredHinge(*of) if make is None else Multinomial(*of, margin=margin)


@cache
def real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A small set, standardised; of the digits some samples and the pixels that vary in them."""
    load = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name]
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(y.size)[:80]
    X, y = X[rows], y[rows]
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def optimum(problem: Problem, X: np.ndarray) -> float:
    """The optimal value by an interior-point method."""
    loss, net = problem.loss.unshifted, problem.net
    n, p, K = len(X), X.shape[1], problem.loss.n_outputs
    own = np.eye(K)[loss.codes]
    W, b = cp.Variable((p, K)), cp.Variable((1, K))
    z = X @ W + np.ones((n, 1)) @ b + problem.loss.offset
    excess = z - cp.multiply(z, own) @ np.ones((K, K))  # z_ik - z_iy
    if isinstance(loss, Multinomial):
        each = cp.log_sum_exp(excess + loss.margin * (1.0 - own), axis=1)
    else:
        each = cp.sum(cp.square(cp.pos(cp.multiply(excess + 1.0, 1.0 - own))), axis=1)
    fine = cp.sum(cp.multiply(np.tile(net.l1[:, None], K), cp.abs(W)))
    fine += cp.sum(cp.multiply(np.tile(0.5 * net.l2[:, None], K), cp.square(W)))
    limits: list[Any] = [] if problem.fits_intercept else [b == 0]
    for bound, sign in ((net.lower, -1.0), (net.upper, 1.0)):
        at = np.flatnonzero(np.isfinite(bound))
        if at.size:
            limits.append(sign * W[at] <= np.tile(sign * bound[at, None], K))
    program = cp.Problem(cp.Minimize(loss.shares @ each + fine), limits)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    return float(program.value)


def solved(problem: Problem, tol: float = 1e-9, **options: Any) -> Solution:
    solution = minimize(problem, ClassNewton(), stop=Stop(tol=tol), **options)
    assert solution.certificate.converged, str(solution.certificate)
    assert solution.gap.primal == pytest.approx(problem.value(solution.point), rel=1e-12)
    return solution


def problem_of(
    kind: str, X: Any, y: np.ndarray, penalty: Penalty, intercept: Penalty = FREE, weights=None
) -> Problem:
    return Problem(made(kind, y, weights), penalty, as_design(X), intercept)


@every_loss
@every_net
@pytest.mark.parametrize("intercept", [FREE, Pinned()], ids=["intercept", "no intercept"])
def test_weighted_fits_reach_the_interior_point_optimum(kind, net, intercept) -> None:
    X, y = real("wine")
    weights = (np.arange(y.size) % 3).astype(float)
    problem = problem_of(kind, X, y, ElasticNet(*net), intercept, weights)
    solution = solved(problem)
    assert solution.gap.primal == pytest.approx(optimum(problem, X), rel=2e-7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["iris", "digits"])
@every_net
def test_real_sets_reach_the_interior_point_optimum(name: str, net) -> None:
    X, y = real(name)
    problem = problem_of("softmax", X, y, ElasticNet(*net))
    assert solved(problem).gap.primal == pytest.approx(optimum(problem, X), rel=2e-7)


@every_loss
def test_bounds_factors_and_offsets_are_kept(kind: str, rng) -> None:
    X, y = real("wine")
    p = X.shape[1]
    lower, upper = np.where(np.arange(p) % 2, -np.inf, 0.0), np.where(np.arange(p) % 3, np.inf, 0.2)
    penalty = WeightedElasticNet(ElasticNet(0.01, 0.01), 1.0 + np.arange(p) % 4, lower, upper)
    problem = problem_of(kind, X, y, penalty)
    problem = replace(problem, loss=Shifted(problem.loss, rng.standard_normal((y.size, 3))))
    solution = solved(problem)
    coef = solution.point.coef
    assert np.all((coef >= lower[:, None]) & (coef <= upper[:, None]))
    assert np.any(coef == upper[:, None])
    assert solution.gap.primal == pytest.approx(optimum(problem, X), rel=2e-7)


@every_loss
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_sparse_data_have_the_optimum_of_dense_ones(kind: str, form, rng) -> None:
    y = np.arange(60) % 4
    X = np.where(rng.random((60, 150)) < 0.15, rng.random((60, 150)), 0.0)
    X[:, :4] += np.eye(4)[y] * rng.random((60, 4))
    dense = solved(problem_of(kind, X, y, ElasticNet(3e-3, 1e-3)), 1e-11)
    sparse = solved(problem_of(kind, form(X), y, ElasticNet(3e-3, 1e-3)), 1e-11)
    np.testing.assert_allclose(sparse.point.coef, dense.point.coef, atol=1e-7)
    np.testing.assert_allclose(sparse.point.intercept, dense.point.intercept, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_standardised_data_have_the_optimum_of_their_scaled_copy(sparse: bool, rng) -> None:
    y = np.arange(60) % 3
    X = np.where(rng.random((60, 40)) < 0.3, 5.0 + rng.random((60, 40)), 0.0)
    X[:, :3] += np.eye(3)[y]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = solved(problem_of("softmax", scaled, y, ElasticNet(0.02, 0.01)), 1e-11)
    problem = problem_of("softmax", sp.csr_array(X) if sparse else X, y, ElasticNet(0.02, 0.01))
    problem = replace(problem, design=standardized(problem.design, problem.loss.shares))
    np.testing.assert_allclose(solved(problem, 1e-11).point.coef, expected.point.coef, atol=1e-8)


def test_steps_converge_quadratically_to_all_digits(rng) -> None:
    X, y = real("digits")
    problem = problem_of("softmax", X, y, ElasticNet(0.01, 0.0))
    solution = solved(problem, 1e-10)
    assert solution.gap.kkt_residual <= 1e-11
    again = solved(problem, 1e-10, start=solution.point)
    assert again.certificate.n_iter <= 1


def test_a_start_anywhere_reaches_the_same_optimum(rng) -> None:
    X, y = real("wine")
    problem = problem_of("squares", X, y, ElasticNet(1e-3, 1e-3))
    start = Point(10.0 * rng.standard_normal((X.shape[1], 3)), 10.0 * rng.standard_normal(3))
    assert solved(problem, start=start).gap.primal == pytest.approx(
        solved(problem).gap.primal, rel=1e-8
    )


def test_more_coefficients_than_it_takes_end_the_method() -> None:
    X, y = real("digits")
    problem = problem_of("softmax", X, y, ElasticNet(1e-3, 1e-2))
    solution = minimize(problem, ClassNewton(largest=30), stop=Stop(tol=1e-9))
    assert solution.status is Status.STALLED
    assert choose(problem).following(problem) is not None


def test_what_it_cannot_take_it_says(rng, monkeypatch) -> None:
    X, y = real("wine")
    problem = problem_of("softmax", X, y, ElasticNet(0.1, 0.1))
    objection = ClassNewton().objection
    assert objection(problem) is None
    assert "elastic net" in str(objection(replace(problem, penalty=GroupL2(Groups.features(13)))))
    assert "l1 norm" in str(objection(replace(problem, penalty=ElasticNet(0.0, 1.0))))
    ridged = replace(problem, intercept=SumToZero(ElasticNet(0.0, 1.0)))
    assert "without a ridge" in str(objection(ridged))
    assert "Lipschitz" in str(objection(class_problem(rng)))
    net = ElasticNet(0.1)
    assert "compares" in str(objection(replace(multiclass_problem(rng), penalty=net)))
    monkeypatch.setattr("proxmargin.solvers.l1.class_newton.HESSIAN_BYTES", 1000)
    assert "fit in memory" in str(objection(problem))
    with pytest.raises(UnsuitableSolverError):
        minimize(ridged, ClassNewton())


@pytest.mark.parametrize(
    "option", [{"smallest": 0}, {"largest": 0}, {"forcing": 1.0}, {"max_stalled": 0}]
)
def test_settings_out_of_range_are_refused(option) -> None:
    with pytest.raises(ValueError, match=next(iter(option))):
        ClassNewton(**option)


def test_auto_takes_it_for_coupled_smooth_losses_with_an_l1_norm() -> None:
    X, y = real("wine")
    assert choose(problem_of("softmax", X, y, ElasticNet(0.1))).name == "class-newton"
    assert choose(problem_of("softmax", X, y, ElasticNet(0.0, 0.1))).name != "class-newton"
