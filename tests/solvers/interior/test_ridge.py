"""The interior point method against an independent solver, and on data that are hard for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

from proxmargin import L2SVC, SVC
from proxmargin.data.designs import as_design
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.functions.losses.margins.hinge import Hinge, HuberizedHinge, SquaredHinge
from proxmargin.functions.losses.margins.logistic import Logistic
from proxmargin.functions.losses.margins.margin import MarginLoss
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.tail_mean import TailMean
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.elastic_net import ElasticNet, Pinned, Ridge
from proxmargin.optimality.problem import Problem
from proxmargin.solvers.interior import box_program
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from tests.shared_data import load_instance, reference_instances

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
INTERCEPTS: dict[str, Penalty] = {"free": Ridge(0.0), "ridge": Ridge(0.1), "pinned": Pinned()}


def c_svm(
    X: Any,
    y: np.ndarray,
    C: float,
    *,
    phi: MarginLoss | None = None,
    intercept: Penalty | None = None,
    weights: np.ndarray | None = None,
) -> Problem:
    """``C sum weights hinge + |w|^2 / 2``, divided by C and the sum of the weights."""
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    loss = MarginSum(phi or Hinge(), y[:, None], (weights / total)[:, None], total)
    return Problem(loss, Ridge(1.0 / (C * total)), as_design(X), intercept or Ridge())


def nu_svm(
    X: Any,
    y: np.ndarray,
    nu: float,
    *,
    intercept: Penalty | None = None,
    weights: np.ndarray | None = None,
) -> Problem:
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    free = not isinstance(intercept, Pinned)
    loss = TailMean(y, weights / total, nu, total, free_intercept=free)
    return Problem(loss, Ridge(1.0), as_design(X), intercept or Ridge())


def solved(problem: Problem, tol: float = 1e-9) -> Solution:
    """The solution, with what must always hold: a gap that is one, and the tolerance met."""
    solution = minimize(problem, InteriorPoint(), stop=Stop(tol=tol))
    assert solution.certificate.converged, str(solution.certificate)
    assert solution.gap.primal == pytest.approx(problem.value(solution.point), rel=1e-11)
    return solution


def two_classes(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.4 * y[:, None] + 0.3, y


def optimum(problem: Problem, X: Any) -> float:
    """The optimal value from an interior-point solver for cones."""
    loss, b = problem.loss, cp.Variable()
    w = cp.Variable(X.shape[1])
    z = X @ w + b
    if isinstance(loss, TailMean):
        rho = cp.Variable()
        below = cp.pos(rho - cp.multiply(loss.signs, z))
        value = -rho + loss.shares @ below / loss.nu
    else:
        assert isinstance(loss, MarginSum)
        r = 1 - cp.multiply(loss.signs[:, 0], z)
        value = loss.weights[:, 0] @ _expression(loss.phi, r)
    objective = value + problem.penalty.l2 / 2 * cp.sum_squares(w)
    objective += problem.intercept.l2 / 2 * cp.square(b)
    fixed = [b == 0] if isinstance(problem.intercept, Pinned) else []
    return float(cp.Problem(cp.Minimize(objective), fixed).solve(solver="CLARABEL", **TIGHT))


def _expression(phi: MarginLoss, r: Any) -> Any:
    if isinstance(phi, Hinge):
        return cp.pos(r)
    if isinstance(phi, SquaredHinge):
        return cp.square(cp.pos(r))
    assert isinstance(phi, HuberizedHinge)
    v = cp.Variable(r.shape)
    return cp.square(v) / (2 * phi.delta) + cp.pos(r - v)


# -- optima -----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_hinge_optimum_on_breast_cancer_is_that_of_a_conic_solver(C: float) -> None:
    X, target = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = c_svm(X, np.where(target == 1, 1.0, -1.0), C)
    assert solved(problem).gap.primal == pytest.approx(optimum(problem, X), rel=1e-8)


@pytest.mark.parametrize("phi", [Hinge(), HuberizedHinge(0.5), SquaredHinge()], ids=str)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(60, 4), (30, 30), (20, 50)], ids=str)
def test_margin_losses_reach_the_optimum(phi, intercept: str, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    problem = c_svm(X, y, 0.5, phi=phi, intercept=INTERCEPTS[intercept])
    assert solved(problem).gap.primal == pytest.approx(optimum(problem, X), rel=1e-8)


@pytest.mark.parametrize("nu", [0.1, 0.5, 2 / 3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(60, 2), (30, 12)], ids=str)
def test_the_tail_mean_reaches_the_optimum(nu: float, intercept: str, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    X = X + y[:, None]
    problem = nu_svm(X, y, nu, intercept=INTERCEPTS[intercept])
    solver, value = InteriorPoint(), optimum(problem, X)
    solution = minimize(problem, solver, stop=Stop(tol=1e-9))
    # its own point: the multiple that is certified is the best one without a ridge on intercepts
    own = solver.point(problem, solution.state)
    assert problem.value(own) == pytest.approx(value, rel=1e-8)
    if intercept != "ridge":
        assert solved(problem).gap.primal == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    "make", [lambda *a, **k: c_svm(*a, 1.0, **k), lambda *a, **k: nu_svm(*a, 0.3, **k)]
)
@pytest.mark.parametrize("shape", [(60, 8), (20, 50)], ids=str)
def test_sparse_data_with_weights_reach_the_optimum(kind: str, make, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    X = np.where(rng.random(shape) < 0.4, X + y[:, None], 0.0)
    weights = rng.uniform(0.1, 3.0, y.size)
    problem = make(sp.csr_matrix(X).asformat(kind), y, weights=weights)
    dense = replace(problem, design=as_design(X))
    value = solved(problem).gap.primal
    assert value == pytest.approx(optimum(problem, X), rel=1e-8)
    assert value == pytest.approx(solved(dense).gap.primal, rel=1e-9)


def test_the_systems_over_samples_and_over_features_agree(rng, monkeypatch) -> None:
    X, y = two_classes(rng, 50, 20)
    for problem in (c_svm(X, y, 1.0), nu_svm(X, y, 0.4), c_svm(X, y, 1.0, intercept=Pinned())):
        values = []
        for ratio in (0.0, np.inf):
            monkeypatch.setattr(box_program, "WIDE", ratio)
            fresh = replace(problem, design=DenseDesign(X))
            values.append(solved(fresh, 1e-10).gap.primal)
        assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_rows_of_zero_weight_are_removed_rows(rng) -> None:
    X, y = two_classes(rng, 60, 5)
    weights = rng.random(60) * (rng.random(60) < 0.6)
    live = weights > 0
    X[~live] *= 100.0
    for make in (lambda *a, **k: c_svm(*a, 1.0, **k), lambda *a, **k: nu_svm(*a, 0.3, **k)):
        value = solved(make(X, y, weights=weights)).gap.primal
        kept = solved(make(X[live], y[live], weights=weights[live])).gap.primal
        assert value == pytest.approx(kept, rel=1e-8)


SUMS = [i for i in reference_instances("csum") if "hinge" in i["params"]["loss"]]
NUS = reference_instances("nusvm")


def _name(instance: dict[str, Any]) -> str:
    return f"{instance['data']}, {instance['params']}"


@pytest.mark.parametrize("instance", SUMS, ids=_name)
def test_sums_of_hinges_reach_the_reference_optimum(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    params = instance["params"]
    phi = {
        "hinge": Hinge(),
        "squared_hinge": SquaredHinge(),
        "huberized_hinge": HuberizedHinge(params.get("delta", 1.0)),
    }[params["loss"]]
    problem = c_svm(X, y.astype(float), params["C"], phi=phi, weights=weights)
    value = solved(problem).gap.primal * params["C"] * problem.loss.sample_count
    accuracy = 1e-8 + instance["accuracy"]
    assert abs(value - instance["optimum"]) <= accuracy * abs(instance["optimum"])


@pytest.mark.parametrize("instance", NUS, ids=_name)
def test_nu_svm_reaches_the_reference_optimum(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    problem = nu_svm(X, y.astype(float), instance["params"]["nu"], weights=weights)
    point = solved(problem, 1e-10).point
    scores = problem.design.scores(point.coef) + point.intercept
    value = problem.loss.value(scores) / np.linalg.norm(point.coef)
    accuracy = 1e-8 + instance["accuracy"]
    assert abs(value - instance["optimum"]) <= accuracy * abs(instance["optimum"])


# -- hard data --------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize("shape", [(90, 3), (40, 40), (20, 100), (50, 1)], ids=str)
@pytest.mark.parametrize("apart", [0.0, 20.0])
def test_any_strength_is_certified_whether_the_classes_overlap_or_not(
    C: float, shape, apart: float, rng
) -> None:
    X, y = two_classes(rng, *shape)
    solved(c_svm(X + apart * y[:, None], y, C))


def _duplicated(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(X, 5, axis=0), np.repeat(y, 5)


def _with_constants(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.hstack([X, np.full((y.size, 2), 7.0), np.zeros((y.size, 1))]), y


def _unscaled(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X * 10.0 ** np.linspace(-3, 6, X.shape[1]), y


def _one_each(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X[:2], y[:2]


def _contradicting(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.vstack([X, X]), np.concatenate([y, -y])


HARD = {
    "repeated rows": _duplicated,
    "constant columns": _with_constants,
    "columns of any scale": _unscaled,
    "one sample a class": _one_each,
    "every sample in both classes": _contradicting,
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("p", [3, 60])
def test_degenerate_data_are_certified(name: str, intercept: str, p: int, rng) -> None:
    X, y = HARD[name](*two_classes(rng, 30, p))
    for C in (0.1, 100.0):
        solved(c_svm(X, y, C, intercept=INTERCEPTS[intercept]))


@pytest.mark.parametrize("name", sorted(set(HARD) - {"every sample in both classes"}))
@pytest.mark.parametrize("p", [3, 60])
def test_the_tail_mean_of_degenerate_data_is_certified(name: str, p: int, rng) -> None:
    X, y = two_classes(rng, 30, p)
    solved(nu_svm(*HARD[name](X + 2 * y[:, None], y), 0.5))


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_identical_samples_give_the_null_model(intercept: str) -> None:
    X, y = np.full((12, 3), 4.0), np.where(np.arange(12) < 4, 1.0, -1.0)
    solution = solved(c_svm(X, y, 10.0, intercept=INTERCEPTS[intercept]))
    if intercept == "free":
        np.testing.assert_allclose(solution.point.coef, 0.0, atol=1e-9)


def test_touching_classes_end_with_a_value_of_zero(rng) -> None:
    # every sample in both classes: the reduced hulls meet, the optimum is zero, and no relative
    # gap can be certified; the method has to end all the same
    X, y = _contradicting(*two_classes(rng, 20, 3))
    for data in (X, np.ones_like(X)):
        solution = minimize(nu_svm(data, y, 0.5), InteriorPoint(), stop=Stop(tol=1e-9))
        assert abs(solution.gap.primal) <= 1e-9
        assert solution.gap.gap <= 1e-9
        assert solution.certificate.n_iter < 100


def test_one_class_alone_is_separated(rng) -> None:
    X = rng.standard_normal((10, 3))
    solution = minimize(c_svm(X, np.ones(10), 1.0), InteriorPoint(), stop=Stop(tol=1e-9))
    assert solution.gap.gap <= 1e-9
    assert np.isfinite(solution.point.coef).all()


def test_an_unreachable_tolerance_ends_soon(rng) -> None:
    solution = minimize(c_svm(*two_classes(rng, 60, 5), 1.0), InteriorPoint(), stop=Stop(tol=0.0))
    assert solution.certificate.n_iter < 60
    assert solution.certificate.relative_gap < 1e-12


# -- what it refuses --------------------------------------------------------------------------


def test_what_it_cannot_take_is_refused_with_the_reason(rng, monkeypatch) -> None:
    X, y = two_classes(rng, 20, 4)
    problem = c_svm(X, y, 1.0)
    for other, reason in (
        (replace(problem, penalty=Ridge(0.0)), "ridge penalty"),
        (c_svm(X, y, 1.0, phi=Logistic()), "hinge loss"),
    ):
        with pytest.raises(UnsuitableSolverError, match=reason):
            minimize(other, InteriorPoint())
    solved(replace(problem, penalty=ElasticNet(0.0, problem.penalty.l2)))
    monkeypatch.setattr(box_program, "LARGEST", 3)
    with pytest.raises(UnsuitableSolverError, match="3 at most, and the smaller number here is 4"):
        minimize(problem, InteriorPoint())


def test_the_old_state_stays_valid_during_a_step(rng) -> None:
    problem = c_svm(*two_classes(rng, 30, 5), 1.0)
    solver = InteriorPoint()
    state = solver.init(problem, problem.origin(), Stop())
    before = [part.copy() for part in state.at]
    solver.step(problem, state)
    for value, known in zip(state.at, before, strict=True):
        np.testing.assert_array_equal(value, known)


@pytest.mark.parametrize("model", [SVC(kernel="linear"), L2SVC()], ids=["hinge", "squared hinge"])
@pytest.mark.parametrize("n", [8, 12, 24])
def test_units_of_features_that_are_orders_apart_do_not_matter(model: Any, n: int) -> None:
    """Products of samples lose the digits of small columns."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 10)) * 10.0 ** rng.uniform(-12, 9, 10)
        model.set_params(C=10.0 ** rng.uniform(0, 3), solver="interior-point")
        assert model.fit(X, np.arange(n) % 2).certificate_.converged, seed
