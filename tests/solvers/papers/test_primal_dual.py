"""The primal-dual method: both algorithms reach optima of an interior-point solver, truthfully."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from proxmargin import ElasticNetSVC
from proxmargin.data.designs import DenseDesign, SparseDesign
from proxmargin.losses import (
    CrammerSinger,
    Hinge,
    HuberizedHinge,
    LevelSet,
    Logistic,
    Loss,
    wrong_classes,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import (
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    Pinned,
    SumToZero,
)
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from proxmargin.solvers.papers.primal_dual import (
    LinearPrimalDual,
    PrimalDual,
    operator_norm,
)
from tests.cases import binary_problem, multiclass_problem

FREE = SumToZero(ElasticNet(0.0, 0.0))
PENALTIES: dict[str, Penalty] = {
    "l1": ElasticNet(1.0, 0.0),
    "l2": ElasticNet(0.0, 1.0),
    "elastic net": ElasticNet(0.5, 0.5),
    "group l2": GroupL2(Groups.within_classes([0, 0, 1, 1])),
    "group linf": GroupLinf(Groups.features(4)),
}
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)


@cache
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    codes = np.arange(36) % 3
    X = rng.standard_normal((36, 4)) + np.eye(4)[codes] + 0.3
    return X, codes, 1.0 + np.arange(36) % 2


def hinge() -> CrammerSinger:
    _, codes, weights = data()
    return CrammerSinger(codes, weights / weights.sum(), 3, float(weights.sum()))


def measured(name: str, W: cp.Variable) -> cp.Expression:
    if name == "l1":
        return cp.sum(cp.abs(W))
    if name == "l2":
        return 0.5 * cp.sum_squares(W)
    if name == "elastic net":
        return 0.5 * cp.sum(cp.abs(W)) + 0.25 * cp.sum_squares(W)
    if name == "group l2":
        return sum(cp.norm(W[g, k]) for g in (slice(0, 2), slice(2, 4)) for k in range(3))
    return sum(cp.max(cp.abs(W[j])) for j in range(4))


@cache
def optimum(name: str, cost: float, budget: float | None) -> float:
    """Of ``cost * loss + penalty``, or of the penalty within the budget."""
    X, codes, weights = data()
    W, b = cp.Variable((4, 3)), cp.Variable(3)
    z = X @ W + np.ones((36, 1)) @ cp.reshape(b, (1, 3), order="C")
    own = cp.sum(cp.multiply(z, np.eye(3)[codes]), axis=1)
    worst = cp.maximum(*[z[:, k] - own + (codes != k) for k in range(3)])
    loss = (weights / weights.sum()) @ worst
    if budget is None:
        program = cp.Problem(cp.Minimize(cost * loss + measured(name, W)))
    else:
        program = cp.Problem(cp.Minimize(measured(name, W)), [loss <= budget])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


@every_penalty
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="as printed", marks=pytest.mark.slow),
        pytest.param({"restarts": True, "relaxation": 1.8}, id="restarts"),
        pytest.param({"balance": 3.0, "relaxation": 1.5}, id="a balance", marks=pytest.mark.slow),
    ],
)
def test_algorithm_1_reaches_the_optimum(penalty: str, options: dict) -> None:
    problem = Problem(hinge(), PENALTIES[penalty].times(0.05), DenseDesign(data()[0]), FREE)
    solution = minimize(problem, PrimalDual(**options), stop=Stop(tol=1e-4, max_iter=20_000))
    best = 0.05 * optimum(penalty, 20.0, None)
    certificate = solution.certificate
    assert certificate.dual <= best * (1 + 1e-7)
    assert certificate.primal >= best * (1 - 1e-7)
    assert certificate.primal <= best * (1 + 1e-3)
    assert certificate.converged


@pytest.mark.sampled(5)
@every_penalty
@pytest.mark.parametrize(
    ("solver", "near", "gap"),
    [(PrimalDual(), 2e-3, 0.05), (LinearPrimalDual(), 1e-2, 0.35)],
    ids=["Algorithm 2", "linear constraints"],
)
def test_a_budget_is_met_near_the_constrained_optimum_and_the_bound_says_how_near(
    penalty: str, solver: PrimalDual, near: float, gap: float
) -> None:
    best = optimum(penalty, 0.0, 0.8)
    design = SparseDesign(sparse.csr_matrix(data()[0]))
    problem = Problem(LevelSet(hinge(), 0.8, 40.0), PENALTIES[penalty], design, FREE)
    solution = minimize(problem, solver, stop=Stop(tol=1e-3, max_iter=4000))
    certificate = solution.certificate
    assert certificate.dual <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= certificate.primal <= best * (1 + near)
    assert certificate.relative_gap <= gap
    assert problem.value(solution.point) == pytest.approx(certificate.primal, rel=1e-10)


def test_linear_constraints_take_the_steps_of_the_paper() -> None:
    # beside the equations of section 4.2, with unequal weights
    X, codes, weights = data()
    shares, budget = weights / weights.sum(), 0.8
    problem = Problem(LevelSet(hinge(), budget, 40.0), PENALTIES["l1"], DenseDesign(X), FREE)
    solver = LinearPrimalDual(balance=1.0)
    state = solver.init(problem, Point(np.zeros((4, 3)), np.zeros(3)), Stop())
    own = np.eye(3)[codes]
    A = np.column_stack([X, np.ones(36)])
    W, zeta = np.zeros((5, 3)), np.full((36, 3), budget)
    u, v, q = (np.zeros((36, 3)) for _ in range(3))
    step = 1.0 / np.sqrt(3.0 * operator_norm(problem.design, True) ** 2 + 3.0)
    for _ in range(25):
        state = solver.step(problem, state)
        pull = q - own * q.sum(axis=1, keepdims=True)
        new = W - step * (A.T @ pull)
        new[:4] = np.sign(new[:4]) * np.maximum(np.abs(new[:4]) - step, 0.0)
        new[4] -= new[4].mean()  # offsets count up to a common one
        far = zeta - step * (u + v - q)
        normal = np.tile(shares[:, None], 3)
        far -= max(np.vdot(normal, far) - 3 * budget, 0.0) / np.vdot(normal, normal) * normal
        T = A @ (2 * new - W)
        T -= (own * T).sum(axis=1, keepdims=True)
        ahead = 2 * far - zeta
        u = u + step * ahead
        u -= u.mean(axis=1, keepdims=True)
        v = np.minimum(v + step * ahead, 0.0)
        q = np.maximum(q + step * (T + 1.0 - own - ahead), 0.0)
        W, zeta = new, far
    assert W[:4].any()
    np.testing.assert_allclose(state.primal.coef, W[:4], atol=1e-12)
    np.testing.assert_allclose(state.primal.levels, zeta, atol=1e-12)


def test_linear_constraints_without_a_budget_are_refused_in_a_sentence() -> None:
    problem = Problem(hinge(), PENALTIES["l1"], DenseDesign(data()[0]), FREE)
    with pytest.raises(UnsuitableSolverError, match=r"within a budget \(eta\)"):
        minimize(problem, LinearPrimalDual())


def test_restarts_keep_a_budget() -> None:
    penalty = "elastic net"
    best = optimum(penalty, 0.0, 0.8)
    problem = Problem(
        LevelSet(hinge(), 0.8, 40.0), PENALTIES[penalty], DenseDesign(data()[0]), FREE
    )
    solver = PrimalDual(restarts=True, relaxation=1.8)
    certificate = minimize(problem, solver, stop=Stop(tol=1e-3, max_iter=8000)).certificate
    assert certificate.converged
    assert certificate.dual <= best * (1 + 1e-6)
    assert certificate.primal == pytest.approx(best, rel=1e-3)


def test_algorithm_1_takes_a_budget_too() -> None:
    # the same constrained problem through the prox of the whole loss within its budget
    X, codes, weights = data()
    lee = wrong_classes(Hinge(), codes, weights / weights.sum(), 3, float(weights.sum()))
    problem = Problem(
        LevelSet(lee, 1.7, 40.0), SumToZero(ElasticNet(0.0, 1.0)), DenseDesign(X), FREE
    )
    solution = minimize(problem, PrimalDual(restarts=True, relaxation=1.8), stop=Stop(tol=1e-3))
    W, b = cp.Variable((4, 3)), cp.Variable(3)
    z = X @ W + np.ones((36, 1)) @ cp.reshape(b, (1, 3), order="C")
    level = cp.sum(cp.multiply(lee.weights, cp.pos(1 + z)))
    limits = [level <= 1.7, cp.sum(W, axis=1) == 0, cp.sum(b) == 0]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W)), limits)
    program.solve(solver=cp.CLARABEL)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(program.value, rel=2e-3)
    assert solution.certificate.dual <= program.value * (1 + 1e-6)


@pytest.mark.parametrize("phi", [Hinge(), HuberizedHinge(0.5)], ids=["hinge", "huberized hinge"])
@pytest.mark.parametrize("make", [binary_problem, multiclass_problem], ids=["binary", "multiclass"])
def test_it_takes_every_loss_with_a_prox_and_every_intercept(phi, make, rng) -> None:
    for intercept in (None, Pinned()):
        problem = make(rng, phi, ElasticNet(0.02, 0.05), intercept)
        solution = minimize(
            problem, PrimalDual(restarts=True), stop=Stop(tol=1e-5, max_iter=30_000)
        )
        assert solution.certificate.converged


def test_a_loss_without_a_prox_is_refused_in_a_sentence(rng) -> None:
    with pytest.raises(UnsuitableSolverError, match="conjugate has a known prox"):
        minimize(binary_problem(rng, Logistic()), PrimalDual())


@pytest.mark.parametrize("options", [{"balance": 0.0}, {"relaxation": 2.0}, {"relaxation": 0.0}])
def test_settings_out_of_range_are_named(options) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        PrimalDual(**options)


@pytest.mark.parametrize("shape", [(7, 1), (30, 4), (5, 40)])
def test_the_norm_is_an_upper_bound_that_counts_the_column_of_ones(shape, rng) -> None:
    X = rng.standard_normal(shape) + 3.0
    for ones in (True, False):
        tall = np.hstack([X, np.ones((shape[0], 1))]) if ones else X
        exact = np.linalg.norm(tall, 2)
        bound = operator_norm(DenseDesign(X), ones)
        assert exact * (1 - 1e-12) <= bound <= 1.03 * exact


def test_no_data_beyond_zero_is_no_trouble() -> None:
    loss: Loss = hinge()
    problem = Problem(loss, ElasticNet(0.1, 0.0), DenseDesign(np.zeros((36, 2))), Pinned())
    solution = minimize(problem, PrimalDual(), stop=Stop(tol=1e-9, max_iter=500))
    assert not solution.point.coef.any()
    assert solution.certificate.primal == pytest.approx(1.0)


def test_restarts_do_not_depend_on_the_unit_of_the_features() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 150), density=0.05, format="csr", rng=rng)
    y = X.sum(axis=1) + 0.3 * rng.standard_normal(80) > 1.8
    how = {"solver": "fbpd", "solver_options": {"restarts": True, "relaxation": 1.8}}
    steps = []
    for unit in (1.0, 1e3):  # the same problem: the norm's strength is in the unit of the features
        model = ElasticNetSVC(alpha=0.02 * unit, l1_ratio=1.0, **how)
        model.fit(unit * X, y)
        assert model.certificate_.converged
        steps.append(model.n_iter_)
    assert max(steps) <= 3 * min(steps)


def test_an_elastic_net_on_sparse_data_is_certified_soon() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 6000), density=8 / 6000, format="csr", rng=rng)
    y = X @ rng.standard_normal(6000) + 0.1 * rng.standard_normal(3000) > 0
    model = ElasticNetSVC(alpha=2.4e-5, l1_ratio=0.85, tol=1e-4, time_limit=20.0).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.solver == "fbpd"
