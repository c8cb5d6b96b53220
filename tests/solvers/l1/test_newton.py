"""Proximal Newton where it is hard: correlated, unscaled, separable, nearly a hinge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.data.designs import as_design
from proxmargin.data.designs.views import standardized
from proxmargin.losses import HuberizedHinge, Logistic, MarginSum, SquaredHinge
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import smooth_critical_strength
from proxmargin.penalties import ElasticNet, Pinned, Ridge
from proxmargin.solvers.l1.newton import ColumnSet, ProximalNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop

LOSSES = {
    "huberized": (HuberizedHinge(0.5), 0.001),
    "narrow": (HuberizedHinge(0.05), 0.1),
    "nearly a hinge": (HuberizedHinge(1e-4), 0.1),
    "squared": (SquaredHinge(), 0.01),
    "logistic": (Logistic(), 0.001),
}


def problem_of(X, y, phi, share, intercept=None, ratio=1.0) -> Problem:
    weights = np.full((y.size, 1), 1.0 / y.size)
    loss = MarginSum(phi, y[:, None].astype(float), weights)
    problem = Problem(loss, ElasticNet(1.0), as_design(X), intercept or Ridge())
    alpha = share * smooth_critical_strength(problem)
    penalty = ElasticNet(ratio * alpha, (1 - ratio) * alpha)
    return Problem(loss, penalty, problem.design, problem.intercept)


def clouds(rng, n, p, rho=0.0, unscaled=False, noise=1.0):
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    y = np.where(X[:, :8].sum(axis=1) + noise * rng.standard_normal(n) > 0, 1, -1)
    if unscaled:
        X = X * 10.0 ** rng.uniform(-3, 3, p) + 10.0 ** rng.uniform(-3, 3, p)
    return X, y


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("shape", [(90, 150), (300, 20)])
@pytest.mark.parametrize("rho", [0.0, 0.95])
@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_hard_data_are_solved_to_many_digits(kind, shape, rho, unscaled, noise, rng) -> None:
    X, y = clouds(rng, *shape, rho, unscaled, noise)
    solution = minimize(problem_of(X, y, *LOSSES[kind]), ProximalNewton(), stop=Stop(tol=1e-9))
    assert solution.certificate.converged
    assert solution.certificate.n_iter < 500


@pytest.mark.parametrize("kind", ["huberized", "squared", "logistic"])
@pytest.mark.parametrize("share", [0.3, 0.02])
def test_features_that_share_a_shift_take_few_steps(kind, share, rng) -> None:
    # each coefficient changes by little, and all of them together by much
    y = np.repeat([-1, 1], 500)
    X = rng.standard_normal((1000, 4000))
    X[:, :200] += 0.3 * y[:, None]
    problem = problem_of(X, y, LOSSES[kind][0], share)
    solution = minimize(problem, ProximalNewton())
    assert solution.certificate.converged
    assert solution.certificate.n_iter <= 18
    exact = minimize(problem, ProximalNewton(), stop=Stop(tol=1e-12))
    np.testing.assert_array_equal(solution.point.coef != 0, exact.point.coef != 0)


@pytest.mark.parametrize("kind", ["huberized", "squared", "logistic"])
def test_columns_that_sum_to_one_take_few_steps(kind, rng) -> None:
    # the model is flat along one direction, where rounding in single precision decides
    codes = rng.integers(0, 3, (20_000, 6))
    X = sp.csc_array(np.concatenate([codes == k for k in range(3)], axis=1).astype(float))
    y = np.where(X @ rng.standard_normal(18) + rng.standard_normal(20_000) > 1, 1, -1)
    for share in (0.1, 0.01):
        solution = minimize(problem_of(X, y, LOSSES[kind][0], share), ProximalNewton())
        assert solution.certificate.converged
        assert solution.certificate.n_iter < 30


@pytest.mark.parametrize("kind", ["huberized", "squared", "logistic"])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_sparse_column_without_zeros_and_with_a_large_mean(kind, standardize, rng) -> None:
    n = 800
    years = 1990.0 + rng.integers(0, 30, n)
    few = sp.random_array((n, 60), density=0.05, random_state=rng)
    X = sp.hstack([few, years[:, None]], format="csr")
    y = np.where(X[:, :30].sum(axis=1) + 0.1 * (years - 2005) + rng.standard_normal(n) > 1, 1, -1)
    found = []
    for matrix in (X, X.tocsc(), X.toarray()):
        problem = problem_of(matrix, y, LOSSES[kind][0], 1e-3)
        if standardize:
            design = standardized(problem.design, problem.loss.shares)
            problem = replace(problem, design=design)
            penalty = ElasticNet(1e-3 * smooth_critical_strength(problem))
            problem = replace(problem, penalty=penalty)
        solution = minimize(problem, ProximalNewton())
        assert solution.certificate.converged
        assert solution.certificate.n_iter < 60
        found.append(solution.certificate.primal)
    assert found == pytest.approx([found[0]] * 3, rel=1e-6)


@pytest.mark.parametrize("kind", ["huberized", "narrow", "squared"])
def test_a_penalty_that_is_nearly_none_is_reached_by_stronger_ones(kind, rng) -> None:
    X, y = rng.standard_normal((80, 200)), np.full(80, -1)
    y[7] = 1
    problem = problem_of(X, y, LOSSES[kind][0], 1e-4)
    solution = minimize(problem, ProximalNewton(), stop=Stop(tol=1e-8))
    assert solution.certificate.converged
    assert solution.certificate.n_iter < 500
    short = minimize(problem, ProximalNewton(), stop=Stop(tol=1e-8, max_iter=10))
    assert short.certificate.n_iter <= 20
    assert short.certificate.gap >= short.certificate.primal - solution.certificate.primal


def test_a_pixel_of_one_picture_twice_takes_few_steps(rng) -> None:
    # its curvature comes and goes with one sample: full steps lead up as often as down
    X, y = clouds(rng, 500, 60)
    X[:, :2] = 0.0
    X[np.flatnonzero(y < 0)[3], :2] = 500**0.5
    for kind in LOSSES:
        for share in (0.3, 0.1, 0.01):
            problem = problem_of(X, y, LOSSES[kind][0], share, ratio=0.5)
            solution = minimize(problem, ProximalNewton())
            assert solution.certificate.converged
            assert solution.certificate.n_iter < 200


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.3), Pinned()], ids=repr)
def test_sparse_data_have_the_solution_of_dense_data(kind, intercept, rng) -> None:
    X, y = clouds(rng, 80, 60)
    X[rng.random(X.shape) < 0.7] = 0.0
    phi, _ = LOSSES[kind]
    objectives = [
        minimize(
            problem_of(data, y, phi, 0.1, intercept, 0.8), ProximalNewton(), stop=Stop(tol=1e-11)
        ).certificate.primal
        for data in (X, sp.csr_matrix(X), sp.csc_matrix(X), X.astype(np.float32).astype(float))
    ]
    assert objectives[:3] == pytest.approx([objectives[0]] * 3, rel=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_standardised_columns_are_those_of_the_design(form, rng) -> None:
    X, y = clouds(rng, 50, 9, unscaled=True)
    X[rng.random(X.shape) < 0.5] = 0.0
    X[:, 4] = 2.0  # constant: zero once standardised
    problem = problem_of(form(X), y, HuberizedHinge(0.5), 0.1)
    design = standardized(problem.design, problem.loss.shares)
    whole = Problem(problem.loss, problem.penalty, design, problem.intercept)
    some = ColumnSet.of(whole, np.array([1, 4, 6]))
    grown = some.changed(whole, np.isin(np.arange(9), [2, 4, 6, 8]))
    assert sorted(grown.members) == [2, 4, 6, 8]
    columns = grown.columns.toarray() if sp.issparse(grown.columns) else grown.columns
    expected = design.scores(np.eye(9))[:, grown.members]
    found = columns * grown.unit
    centred = found - problem.loss.shares @ found
    np.testing.assert_allclose(centred, expected, atol=1e-9 * np.abs(expected).max())
    solution = minimize(whole, ProximalNewton(), stop=Stop(tol=1e-10))
    assert solution.certificate.converged


def test_small_and_large_sets_reach_one_optimum(rng) -> None:
    X, y = clouds(rng, 60, 400)
    problem = problem_of(X, y, HuberizedHinge(0.5), 0.05)
    found = [
        minimize(problem, solver, stop=Stop(tol=1e-10)).certificate.primal
        for solver in (ProximalNewton(), ProximalNewton(smallest=5), ProximalNewton(smallest=400))
    ]
    assert found == pytest.approx([found[0]] * 3, rel=1e-9)


@pytest.mark.parametrize("options", [{"smallest": -1}, {"forcing": 0.0}, {"forcing": 1.0}])
def test_bad_settings_are_named(options) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ProximalNewton(**options)
