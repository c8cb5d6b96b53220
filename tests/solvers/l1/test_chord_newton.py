"""The Newton steps of paths, at a single strength."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from proxmargin import HuberizedSVC, SparseLogisticRegression
from proxmargin.optimality.unpenalised import null_point
from proxmargin.penalties import ElasticNet, Pinned, Ridge
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.l1 import chord_newton
from proxmargin.solvers.l1.chord_newton import ChordNewton
from proxmargin.solvers.l1.newton import ProximalNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from tests.solvers.l1.test_newton import LOSSES, clouds, problem_of


@pytest.mark.parametrize("kind", ["logistic", "squared", "huberized"])
@pytest.mark.parametrize("rho", [0.0, 0.95])
@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_it_finds_what_newton_on_columns_finds(kind, rho, unscaled, noise, rng) -> None:
    X, y = clouds(rng, 2500, 9, rho, unscaled, noise)
    problem = problem_of(X, y, *LOSSES[kind])
    found = minimize(problem, ChordNewton(), stop=Stop(tol=1e-9))
    other = minimize(problem, ProximalNewton(), stop=Stop(tol=1e-9))
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-9)


@pytest.mark.parametrize("intercept", [Ridge(), Pinned()], ids=repr)
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_either_intercept_on_dense_and_sparse_data(intercept, form, l1_ratio, rng) -> None:
    X, y = clouds(rng, 700, 12)
    X[rng.random(X.shape) < 0.6] = 0.0
    problem = problem_of(form(X), y, LOSSES["logistic"][0], 0.03, intercept, l1_ratio)
    solution = minimize(problem, ChordNewton(), stop=Stop(tol=1e-10))
    assert solution.certificate.converged
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal, rel=1e-12)


def test_few_newton_steps_at_a_time_come_to_the_same_end(rng, monkeypatch) -> None:
    X, y = clouds(rng, 900, 12, 0.9)
    problem = problem_of(X, y, LOSSES["logistic"][0], 0.002, Ridge(), 1.0)
    at_once = minimize(problem, ChordNewton(), stop=Stop(tol=1e-9))
    monkeypatch.setattr(chord_newton, "WORK_PER_CALL", 1)
    monkeypatch.setattr(chord_newton, "LEAST_STEPS", 1)
    single = minimize(problem, ChordNewton(), stop=Stop(tol=1e-9))
    assert single.certificate.converged
    assert min(single.certificate.n_iter, at_once.certificate.n_iter) > 2
    assert single.certificate.primal == pytest.approx(at_once.certificate.primal, rel=2e-9)


@pytest.mark.parametrize("limit", [1, 2])
def test_the_limit_of_iterations_is_that_of_newton_steps(limit, rng) -> None:
    X, y = clouds(rng, 900, 12, 0.9)
    problem = problem_of(X, y, LOSSES["logistic"][0], 0.002, Ridge(), 1.0)
    solution = minimize(problem, ChordNewton(), stop=Stop(tol=1e-9, max_iter=limit))
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.certificate.n_iter == limit
    assert solution.certificate.primal < problem.value(null_point(problem))


def test_from_a_solution_nearby_it_takes_fewer_steps(rng) -> None:
    X, y = clouds(rng, 900, 12, 0.9)
    problem = problem_of(X, y, LOSSES["logistic"][0], 0.002, Ridge(), 1.0)
    cold = minimize(problem, ChordNewton(), stop=Stop(tol=1e-9))
    near = replace(problem, penalty=ElasticNet(0.00201))
    warm = minimize(near, ChordNewton(), stop=Stop(tol=1e-9), start=cold.point)
    assert warm.certificate.converged
    assert warm.certificate.n_iter < cold.certificate.n_iter


@pytest.mark.parametrize("tol", [0.0, 1e-15])
def test_an_unreachable_tolerance_ends_at_rounding(tol, rng) -> None:
    X, y = clouds(rng, 900, 12)
    with pytest.warns(ConvergenceWarning):
        model = SparseLogisticRegression(alpha=0.01, tol=tol).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-13
    assert model.n_iter_ <= 50


def test_it_ends_by_the_relative_change_of_its_steps(rng) -> None:
    X, y = clouds(rng, 900, 12)
    model = SparseLogisticRegression(alpha=0.01, stopping="relative-change", tol=1e-6).fit(X, y)
    assert model.certificate_.solver == "chord-newton"
    assert model.certificate_.relative_gap <= 1e-6


def test_auto_takes_it_for_tall_data_only(rng) -> None:
    X, y = clouds(rng, 400, 10)
    problem = problem_of(X, y, LOSSES["logistic"][0], 0.01, Ridge(), 1.0)
    assert choose(problem).name == "chord-newton"
    assert choose(replace(problem, penalty=ElasticNet(0.0))).name != "chord-newton"
    wide = problem_of(X[:40], y[:40], LOSSES["logistic"][0], 0.01, Ridge(), 1.0)
    assert choose(wide).name == "newton"
    with pytest.raises(UnsuitableSolverError, match="there are 40 samples of 10"):
        minimize(wide, ChordNewton())
    pulled = problem_of(X, y, LOSSES["logistic"][0], 0.01, Ridge(0.1), 1.0)
    with pytest.raises(UnsuitableSolverError, match="an intercept without a penalty"):
        minimize(pulled, ChordNewton())


def test_auto_takes_it_for_piecewise_quadratic_losses_of_any_size(rng) -> None:
    X, y = clouds(rng, 40_000, 10)
    for rows in (400, 40_000):
        assert choose(problem_of(X[:rows], y[:rows], *LOSSES["huberized"])).name == "chord-newton"


def test_sparse_data_that_centring_would_fill(rng) -> None:
    X, y = clouds(rng, 3000, 20)
    X[rng.random(X.shape) < 0.7] = 0.0
    for intercept_ridge in (0.0, 0.1):
        model = HuberizedSVC(0.01, 0.9, intercept_ridge=intercept_ridge, standardize=True)
        found = [model.fit(matrix, y).certificate_ for matrix in (X, sp.csr_matrix(X))]
        assert all(certificate.converged for certificate in found)
        assert found[1].primal == pytest.approx(found[0].primal, rel=2e-6)
