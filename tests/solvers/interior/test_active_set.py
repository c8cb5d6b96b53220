"""The active-set method in inner products, against interior points and its laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from proxmargin import L2SVC, SVC, HuberizedSVC, NuSVC
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import Ridge
from proxmargin.solvers.choice.names import SOLVERS, choose
from proxmargin.solvers.interior.active_set import ActiveSet
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from tests.cases.problems import hinge_problem, wide_hinge_problem

MODELS = [SVC(C=0.1), L2SVC(C=0.1), NuSVC(nu="0.5max"), HuberizedSVC(alpha=0.3, l1_ratio=0.0)]
TIGHT = Stop(tol=1e-9)


def wide(kind: str = "float64") -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(3)
    X = 2.0 + rng.standard_normal((40, 200))
    y = np.where(X[:, :4].sum(axis=1) - 8.0 + rng.standard_normal(40) > 0.4, 1, -1)
    if kind == "sparse":
        X[rng.random(X.shape) < 0.8] = 0.0
        return sparse.csr_array(X), y
    if kind == "repeated":
        X[5:15], y[5:15] = X[4], y[4]
    return X.astype("float32" if kind == "float32" else "float64"), y


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "repeated"])
@pytest.mark.parametrize("standardize", [False, True])
def test_it_finds_the_optimum_of_interior_points(model: Any, kind: str, standardize: bool) -> None:
    X, y = wide(kind)
    found, other = (
        type(model)(**{**model.get_params(), "standardize": standardize, "tol": 1e-8, **each})
        for each in ({}, {"solver": "interior-point"})
    )
    told, known = found.fit(X, y).certificate_, other.fit(X, y).certificate_
    assert told.solver == ActiveSet.name
    assert told.converged
    assert known.converged
    assert told.dual <= known.primal
    assert known.dual <= told.primal


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_sample_without_weight_is_one_that_is_not_there(model: Any) -> None:
    X, y = wide()
    weights = np.random.default_rng(1).integers(0, 3, y.size).astype(float)
    weights[:4] = 1.0
    live = weights > 0
    poisoned = X.copy()
    poisoned[~live] = 1e30
    whole = type(model)(**model.get_params()).fit(poisoned, y, weights)
    part = type(model)(**model.get_params()).fit(X[live], y[live], weights[live])
    assert whole.certificate_.solver == ActiveSet.name
    np.testing.assert_array_equal(whole.coef_, part.coef_)


def test_samples_without_weight_in_a_problem_are_on_no_face(rng: np.random.Generator) -> None:
    weights = np.where(np.arange(40) % 4 == 1, 0.0, 1.0)
    problem = wide_hinge_problem(rng, weights=weights)
    solution = minimize(problem, ActiveSet(), stop=TIGHT)
    assert solution.certificate.converged
    assert not solution.gap.dual_point[weights == 0].any()


@pytest.mark.parametrize("told", ["point", "dual"])
def test_a_warm_start_saves_faces(rng: np.random.Generator, told: str) -> None:
    problem = wide_hinge_problem(rng, penalty=Ridge(0.02))
    cold = minimize(problem, ActiveSet(), stop=TIGHT)
    near = Problem(problem.loss, Ridge(0.0199), problem.design, problem.intercept)
    dual = cold.gap.dual_point if told == "dual" else None
    start = Point(cold.point.coef, cold.point.intercept, dual)
    warm = minimize(near, ActiveSet(), start=start, stop=TIGHT)
    assert warm.certificate.converged
    assert warm.certificate.n_iter < cold.certificate.n_iter


def test_auto_takes_it_for_wide_data_only(rng: np.random.Generator) -> None:
    assert choose(wide_hinge_problem(rng)).name == ActiveSet.name
    assert choose(hinge_problem(rng)).name != ActiveSet.name
    assert "singular" in (ActiveSet().objection(hinge_problem(rng)) or "")
    assert "36 at most" in (ActiveSet(max_samples=36).objection(wide_hinge_problem(rng)) or "")
    assert "active-set" in SOLVERS


def test_where_faces_do_not_end_another_solver_goes_on() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((36, 5)) @ (3.0 * rng.standard_normal((5, 150)))
    X += 3.0 + rng.standard_normal(X.shape)
    y = np.where(rng.random(36) < 0.4, 1, -1)
    solvers = set()
    for share in (0.9, 0.95, 0.98, 0.99):
        told = NuSVC(nu=f"{share}max").fit(X, y).certificate_
        assert told.converged
        solvers.add(told.solver)
    assert "interior-point" in solvers


@pytest.mark.parametrize("positive", [0.0, 1.0])
@pytest.mark.parametrize("negative", [0.0, 1.0])
@pytest.mark.parametrize("l2", [0.02, 1.0, 100.0])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_a_corner_without_balance_is_left(
    rng: np.random.Generator, positive: float, negative: float, l2: float, ridge: float
) -> None:
    bare = wide_hinge_problem(rng, penalty=Ridge(l2))
    problem = replace(bare, intercept=Ridge(ridge))
    loss = problem.margins
    shares = np.where(loss.signs > 0, positive, negative)
    corner = problem.origin()._replace(dual=-shares * loss.weights * loss.signs)
    solution = minimize(problem, ActiveSet(), start=corner, stop=TIGHT)
    assert solution.certificate.converged
    assert solution.gap.primal <= minimize(problem, SOLVERS["interior-point"]()).gap.primal + 1e-8


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_corner_without_balance_is_left_by_the_threshold(
    rng: np.random.Generator, share: float
) -> None:
    X, y = wide()
    problem = NuSVC(nu=0.5, fit_intercept=False)._assemble(X, y, None).problems[0]
    upper = problem.loss.box.upper
    inside = np.arange(upper.size) < share * upper.size
    corner = problem.origin()._replace(
        dual=np.where(inside, -problem.loss.box.signs * upper, 0.0)[:, None]
    )
    solution = minimize(problem, ActiveSet(), start=corner, stop=TIGHT)
    assert solution.certificate.converged
