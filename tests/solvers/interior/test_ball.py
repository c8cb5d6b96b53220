"""The interior point method in a ball: every norm, every radius, balls that bind or do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

from proxmargin import NuSVC
from proxmargin.data.designs import DenseDesign, SparseDesign
from proxmargin.losses import HuberizedHinge, MarginSum, TailMean
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import Ball, Pinned, Ridge
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from tests.cases import MARGIN_LOSSES, binary_problem, hinge_ball_problem, tail_ball_problem

BOXED = ["hinge", "huberized hinge", "huberized hinge, narrow", "squared hinge"]
every_exponent = pytest.mark.parametrize("p", [1.01, 1.2, 1.5, 2.0, 3.0, 10.0, 50.0])


def solved(problem: Problem, tol: float = 1e-9, most: int = 60) -> Any:
    solution = minimize(problem, InteriorPoint(), stop=Stop(tol=tol))
    assert solution.certificate.converged
    assert solution.certificate.n_iter <= most
    assert problem.value(solution.point) == pytest.approx(
        solution.certificate.primal, rel=1e-10, abs=10 * solution.gap.negligible
    )
    return solution


def breast_cancer(standardized: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0) if standardized else X), 2.0 * y - 1.0


@pytest.mark.sampled(4)
@every_exponent
@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("phi", BOXED)
@pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.3), Pinned()], ids=repr)
def test_every_norm_and_radius_is_certified(p, radius, phi, intercept, rng) -> None:
    problem = binary_problem(rng, MARGIN_LOSSES[phi], Ball(p, radius), intercept)
    found = solved(problem)
    if radius == 1e3:  # it does not bind: another ball that does not leaves the same optimum
        other = solved(replace(problem, penalty=Ball(2.0, 1e3)))
        assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)


@every_exponent
@pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.3), Pinned()], ids=repr)
def test_tail_means_are_certified_on_the_sphere(p, intercept, rng) -> None:
    made = tail_ball_problem(rng, intercept=intercept)
    problem = Problem(made.loss, Ball(p, 2.0), made.design, intercept)
    solution = solved(problem)
    assert solution.certificate.primal < 0
    if intercept.l2 == 0:
        assert np.linalg.norm(solution.point.coef[:, 0], p) == pytest.approx(2.0)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("radius", [0.3, 50.0])
def test_the_optimum_is_that_of_a_modelling_language(p: float, radius: float, rng) -> None:
    problem = binary_problem(rng, MARGIN_LOSSES["hinge"], Ball(p, radius))
    X, y = problem.design.matrix, problem.loss.signs[:, 0]
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) / y.size
    least = cp.Problem(cp.Minimize(loss), [cp.pnorm(w, p) <= radius]).solve(solver="CLARABEL")
    assert solved(problem).certificate.primal == pytest.approx(least, abs=1e-6)


def test_a_ball_that_does_not_bind_has_no_multiplier(rng) -> None:
    problem = binary_problem(rng, MARGIN_LOSSES["hinge"], Ball(4.0, 100.0))
    solution = solved(problem)
    pulled = problem.design.adjoint(solution.gap.dual_point)
    assert np.abs(pulled).max() < 1e-9
    assert np.linalg.norm(solution.point.coef[:, 0], 4.0) < 99.0


@pytest.mark.parametrize("standardized", [True, False])
@pytest.mark.parametrize("p", [1.5, 3.0])
@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e2])
def test_real_data_are_solved_in_any_units(standardized, p, radius) -> None:
    X, y = breast_cancer(standardized)
    shares = np.full((y.size, 1), 1.0 / y.size)
    loss = MarginSum(MARGIN_LOSSES["hinge"], y[:, None], shares, float(y.size))
    solved(Problem(loss, Ball(p, radius), DenseDesign(X), Ridge()), tol=1e-6)


def test_wide_and_sparse_data_are_those_of_the_dense_matrix(rng) -> None:
    X = rng.standard_normal((30, 400)) * (rng.random((30, 400)) < 0.1)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    shares = np.full(30, 1 / 30)
    for loss in (
        MarginSum(HuberizedHinge(0.01), y[:, None], shares[:, None], 30.0),
        TailMean(y, shares, 0.4, 30.0),
    ):
        dense, sparse = (
            solved(Problem(loss, Ball(1.5, 0.4), design, Ridge()))
            for design in (DenseDesign(X), SparseDesign(sp.csr_matrix(X)))
        )
        assert dense.certificate.primal == pytest.approx(sparse.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("norm", [1.5, 3.0])
def test_the_nu_svm_of_another_norm_needs_few_steps(norm: float, rng) -> None:
    X = rng.standard_normal((60, 5))
    y = X[:, 0] + 0.5 * rng.standard_normal(60) > 0
    model = NuSVC(norm=norm, nu="0.9max", tol=1e-8).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.solver == "interior-point"
    assert model.certificate_.n_iter < 30


def test_other_problems_are_refused_in_a_sentence(rng) -> None:
    smooth = binary_problem(rng, MARGIN_LOSSES["logistic"], Ball(2.0, 1.0))
    with pytest.raises(UnsuitableSolverError, match="it needs a hinge loss"):
        minimize(smooth, InteriorPoint())
    assert InteriorPoint().objection(hinge_ball_problem(rng)) is None
