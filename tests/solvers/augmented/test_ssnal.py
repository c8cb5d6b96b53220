"""The semismooth Newton augmented Lagrangian method: optima, laws, degenerate data, limits."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine

from proxmargin.data.designs import DenseDesign, as_design
from proxmargin.losses import (
    CrammerSinger,
    Hinge,
    HuberizedHinge,
    Logistic,
    Loss,
    MarginSum,
    Multinomial,
    PairwiseSquaredHinge,
    wrong_classes,
)
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import null_point, smooth_critical_strength
from proxmargin.penalties import (
    Ball,
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    Pinned,
    Ridge,
    SumToZero,
    SumToZeroGroups,
)
from proxmargin.solvers.augmented.ssnal import SemismoothNewton, _Subproblem
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.l1.newton import ProximalNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from tests.shared_data import load_instance, needs_data, reference_instances

FREE = SumToZero(ElasticNet(0.0))
COMPARISONS = {
    "crammer-singer": CrammerSinger,
    "multinomial": Multinomial,
    "squared pairs": PairwiseSquaredHinge,
}


def loss_of(kind: str, codes: np.ndarray, weights: np.ndarray | None = None) -> Loss:
    weights = np.ones(codes.size) if weights is None else weights
    shares, count, total = weights / weights.sum(), int(codes.max()) + 1, float(weights.sum())
    if kind in COMPARISONS:
        return COMPARISONS[kind](codes, shares, count, total)
    phi = Hinge() if kind == "lee" else HuberizedHinge(0.5)
    return wrong_classes(phi, codes, shares, count, total)


def penalty_of(kind: str, strength: float, p: int) -> Penalty:
    blocks = Groups.within_classes(np.arange(p) // 3)
    return {
        "l1": ElasticNet(strength),
        "elastic net": ElasticNet(strength, 0.5 * strength),
        "group l2": GroupL2(blocks, strength),
        "group l2, weighted": GroupL2(blocks, strength, np.arange(1.0, blocks.n_groups + 1)),
        "group l2 of features": GroupL2(Groups.features(p), strength),
        "group linf": GroupLinf(blocks, strength),
        "group linf of features": GroupLinf(Groups.features(p), strength),
        "sum-to-zero l1": SumToZero(ElasticNet(strength)),
        "sum-to-zero": SumToZero(ElasticNet(strength, 0.5 * strength)),
        "sum-to-zero group l2": SumToZeroGroups(GroupL2(Groups.features(p), strength)),
        "sum-to-zero group linf": SumToZeroGroups(GroupLinf(Groups.features(p), strength)),
    }[kind]


GROUPED = (
    "l1",
    "elastic net",
    "group l2",
    "group l2, weighted",
    "group l2 of features",
    "group linf",
    "group linf of features",
)
PAIRS = [("crammer-singer", penalty) for penalty in GROUPED]
PAIRS += [("multinomial", "group linf"), ("multinomial", "elastic net")]
PAIRS += [("squared pairs", "l1"), ("squared pairs", "group l2 of features")]
BALANCED = ("sum-to-zero l1", "sum-to-zero", "sum-to-zero group l2", "sum-to-zero group linf")
PAIRS += [(loss, kind) for loss in ("lee", "huberized") for kind in BALANCED]
every_pair = pytest.mark.parametrize(("loss", "penalty"), PAIRS)


def standardised(load: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def solved(problem: Problem, tol: float = 1e-8, **limits: Any) -> Any:
    return minimize(problem, SemismoothNewton(), stop=Stop(tol=tol, **limits))


def oracle(loss: str, X: np.ndarray, y: np.ndarray, penalty: Penalty, weights: np.ndarray) -> float:
    """The optimal value by an interior-point solver, from the statement of the model."""
    (n, p), classes = X.shape, int(y.max()) + 1
    W, b = cp.Variable((p, classes)), cp.Variable(classes)
    Z = X @ W + np.ones((n, 1)) @ cp.reshape(b, (1, classes), order="C")
    wrong = (np.arange(classes) != y[:, None]).astype(float)
    constraints = []
    own = cp.sum(cp.multiply(1 - wrong, Z), axis=1)
    if loss == "crammer-singer":
        value = weights @ (cp.max(Z + wrong, axis=1) - own)
    elif loss == "multinomial":
        value = weights @ (cp.log_sum_exp(Z, axis=1) - own)
    elif loss == "squared pairs":
        excess = cp.pos(1 + Z - cp.reshape(own, (n, 1), order="C") @ np.ones((1, classes)))
        value = cp.sum(cp.multiply(weights[:, None] * wrong, excess**2))
    else:
        constraints = [cp.sum(W, axis=1) == 0, cp.sum(b) == 0]
        slack = cp.pos(1 + Z)
        terms = slack if loss == "lee" else 0.5 * cp.huber(slack, 0.5) / 0.5
        value = cp.sum(cp.multiply(weights[:, None] * wrong, terms))
    value += stated(penalty, W)
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


def stated(penalty: Penalty, W: cp.Variable) -> Any:
    if isinstance(penalty, SumToZero | SumToZeroGroups):
        penalty = penalty.inner
    if isinstance(penalty, ElasticNet):
        return penalty.l1 * cp.sum(cp.abs(W)) + penalty.l2 / 2 * cp.sum_squares(W)
    assert isinstance(penalty, GroupL2 | GroupLinf)
    norm = 2 if isinstance(penalty, GroupL2) else "inf"
    groups = penalty.groups
    omega = np.ones(groups.n_groups) if penalty.weights is None else penalty.weights
    if groups.across_classes:
        return penalty.strength * sum(omega[j] * cp.norm(W[j], norm) for j in range(W.shape[0]))
    parts = [(g, np.flatnonzero(groups.codes == g)) for g in range(groups.n_groups)]
    columns = range(W.shape[1])
    return penalty.strength * sum(
        omega[g] * cp.norm(W[m, k], norm) for g, m in parts for k in columns
    )


@pytest.mark.sampled(10)
@every_pair
@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("strength", [0.1, 0.01])
def test_it_agrees_with_an_interior_point_solver(load, loss, penalty, strength, rng) -> None:
    X, y = standardised(load)
    weights = rng.integers(0, 3, y.size).astype(float)
    made = penalty_of(penalty, strength, X.shape[1])
    solution = solved(Problem(loss_of(loss, y, weights), made, DenseDesign(X), FREE))
    assert solution.status is Status.CONVERGED
    optimum = oracle(loss, X, y, made, weights / weights.sum())
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-7)
    assert solution.certificate.dual <= optimum * (1 + 1e-8)


def of_reference(instance: dict[str, Any]) -> tuple[Problem, float]:
    """The problem of a reference instance, and what its objective is to be multiplied by."""
    X, y, weights = load_instance(instance)
    _, codes = np.unique(y, return_inverse=True)
    weights = np.ones(codes.size) if weights is None else weights
    model, total, design = instance["params"], float(weights.sum()), as_design(X)
    if instance["kind"] == "mhsvm":
        shares, phi = weights / total, HuberizedHinge(model["delta"])
        loss: Loss = wrong_classes(phi, codes, shares, int(codes.max()) + 1, total)
        made = SumToZero(ElasticNet.from_mixture(model["alpha"], model["l1_ratio"]))
        return Problem(loss, made, design, FREE), 1.0
    scale = model["C"] * total
    blocks = Groups.within_classes(np.arange(X.shape[1]) // model.get("group_size", 1))
    penalty: Penalty = {
        "l1": lambda: ElasticNet(1 / scale),
        "l2": lambda: ElasticNet(0.0, 1 / scale),
        "group_l2": lambda: GroupL2(blocks, 1 / scale),
        "group_linf": lambda: GroupLinf(blocks, 1 / scale),
    }[model["penalty"]]()
    return Problem(loss_of("crammer-singer", codes, weights), penalty, design, FREE), scale


# the sup norm over groups of 28 pixels has faces that only the simplex method gets along
REFERENCE = [
    pytest.param(i, id=f"{i['kind']}, {i['data']}, {i['params']}")
    for i in reference_instances("crammer_singer", "mhsvm")
    if i["params"].get("group_size") != 28
]


@pytest.mark.slow
@needs_data("reference/instances.py", "reference/optima.json")
@pytest.mark.parametrize("instance", REFERENCE)
def test_it_reaches_the_reference_optimum(instance: dict[str, Any]) -> None:
    problem, scale = of_reference(instance)
    solution = solved(problem, tol=1e-7)
    assert solution.status is Status.CONVERGED
    error = scale * solution.certificate.primal - instance["optimum"]
    assert abs(error) <= (1e-6 + instance["accuracy"]) * instance["optimum"]
    assert scale * solution.certificate.dual <= instance["optimum"] * (1 + instance["accuracy"])


def small(loss: str, penalty: str, rng: np.random.Generator) -> Problem:
    """Three overlapping classes in twelve features, the last of them of no use."""
    codes = np.arange(30) % 3
    X = rng.standard_normal((30, 12)) + 1.5 * (np.arange(12) == codes[:, None])
    return Problem(loss_of(loss, codes), penalty_of(penalty, 0.03, 12), DenseDesign(X), FREE)


@pytest.mark.sampled(5)
@every_pair
def test_a_working_set_of_features_finds_the_same_optimum(loss, penalty, rng) -> None:
    n, p = 24, 150  # a working set has half of the features at first
    codes = np.arange(n) % 3
    X = rng.standard_normal((n, p)) + (np.arange(p) == codes[:, None])
    problem = Problem(loss_of(loss, codes), penalty_of(penalty, 0.05, p), DenseDesign(X), FREE)
    some = minimize(problem, SOLVERS["ssnal"](working_set=True, smallest=8), stop=Stop(tol=1e-8))
    assert some.status is Status.CONVERGED
    optimum = oracle(loss, X, codes, problem.penalty, np.full(n, 1 / n))
    assert some.certificate.primal == pytest.approx(optimum, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("multiple", [5.0, 30.0])
def test_separable_classes_far_above_the_critical_strength_take_few_newton_steps(
    multiple: float,
) -> None:
    # the loss is zero at the optimum; the classes of digits are coupled by norms over the classes
    X, codes = load_digits(return_X_y=True)
    X, codes = X[:60] / 16.0, codes[:60]
    penalty = GroupL2(Groups.features(64), 1.0)
    problem = Problem(loss_of("crammer-singer", codes), penalty, DenseDesign(X), FREE)
    critical = at_zero(problem)
    problem = replace(problem, penalty=replace(penalty, strength=critical / multiple))
    found = solved(problem, tol=1e-7)
    assert found.status is Status.CONVERGED
    assert found.certificate.n_iter <= 120
    optimum = oracle("crammer-singer", X, codes, problem.penalty, np.full(60, 1 / 60))
    assert found.certificate.primal == pytest.approx(optimum, rel=1e-6)


def at_zero(problem: Problem) -> float:
    """The largest length of the slope of the loss in a feature, at zero coefficients."""
    scores = np.zeros((problem.design.n_samples, problem.loss.n_outputs))
    dual = problem.loss.balanced(problem.loss.value_and_gradient(scores)[1], problem.intercept)
    return float(np.linalg.norm(problem.design.adjoint(dual), axis=1).max())


def test_no_features_at_all_are_certified() -> None:
    codes = np.arange(12) % 3
    whole = Problem(
        loss_of("crammer-singer", codes), ElasticNet(0.1), DenseDesign(np.ones((12, 2))), FREE
    )
    found = solved(whole.on_columns(np.zeros(0, dtype=np.intp)))
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(1.0)


@every_pair
def test_the_gradient_and_hessian_of_the_dual_function_are_its_differences(
    loss: str, penalty: str, rng
) -> None:
    problem = small(loss, penalty, rng)
    state = SemismoothNewton().init(problem, null_point(problem), Stop())
    state = replace(
        state, coef=problem.penalty.prox(0.3 * rng.standard_normal((12, 3)), 1.0), tau=0.7, ts=9.0
    )
    inner, h = _Subproblem(problem, state), 1e-6
    support = problem.loss.dual_support

    def gradient(dual: np.ndarray) -> np.ndarray:
        trial = inner.at(dual, inner.design.adjoint(dual))
        return inner.design.scores(trial.coef) + trial.intercept - trial.scores

    dual = np.where(support, rng.standard_normal((30, 3)) / 10, 0.0)
    for _ in range(5):
        direction = np.where(support, rng.standard_normal((30, 3)), 0.0)
        ahead, behind = dual + h * direction, dual - h * direction
        value = [inner.at(q, inner.design.adjoint(q)).value for q in (ahead, behind)]
        slope = float(np.vdot(gradient(dual), direction))
        assert (value[1] - value[0]) / (2 * h) == pytest.approx(slope, rel=1e-5, abs=1e-7)
        trial = inner.at(dual, inner.design.adjoint(dual))
        system = replace(inner.system(trial, gradient(dual)), floor=1e-12)
        bend = np.where(support, gradient(behind) - gradient(ahead), 0.0) / (2 * h)
        np.testing.assert_allclose(system.apply(direction), bend, atol=1e-6)


@every_pair
@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["ridge", "none"])
def test_other_intercepts_and_sparse_data_are_certified(loss, penalty, intercept, rng) -> None:
    of = {"ridge": SumToZero(ElasticNet(0.0, 0.3)), "none": Pinned()}[intercept]
    problem = replace(small(loss, penalty, rng), intercept=of)
    dense = solved(problem)
    assert dense.status is Status.CONVERGED
    if intercept == "none":
        assert not np.any(dense.point.intercept)
    matrix = sp.csr_matrix(problem.design.matrix)  # type: ignore[attr-defined]
    sparse = solved(replace(problem, design=as_design(matrix)))
    assert sparse.certificate.primal == pytest.approx(dense.certificate.primal, rel=2e-8)


@pytest.mark.sampled(2)
@every_pair
def test_integer_weights_are_repeated_rows_and_zero_is_no_row(loss, penalty, rng) -> None:
    problem = small(loss, penalty, rng)
    X, codes = problem.design.matrix, np.arange(30) % 3  # type: ignore[attr-defined]
    weights = rng.integers(0, 3, 30).astype(float)
    weighted = solved(replace(problem, loss=loss_of(loss, codes, weights)))
    rows = np.repeat(np.arange(30), weights.astype(int))
    repeated = solved(
        replace(problem, loss=loss_of(loss, codes[rows]), design=DenseDesign(X[rows]))
    )
    assert weighted.status is repeated.status is Status.CONVERGED
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=2e-8)


@pytest.mark.sampled(2)
@every_pair
def test_duplicate_and_constant_features_do_no_harm(loss, penalty, rng) -> None:
    problem = small(loss, penalty, rng)
    X = problem.design.matrix.copy()  # type: ignore[attr-defined]
    X[:, 9:] = X[:, :3]  # a whole group twice
    X[:, 8] = 7.0
    X[:, 7] = 0.0
    solution = solved(replace(problem, design=DenseDesign(X)))
    assert solution.status is Status.CONVERGED
    if "group linf" not in penalty:  # where a constant may take its group's size for nothing
        assert np.abs(solution.point.coef[7:9]).max() <= 1e-8


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_two_classes_are_the_binary_model(l2: float, rng) -> None:
    codes = np.arange(40) % 2
    X = rng.standard_normal((40, 6)) + codes[:, None] * (np.arange(6) < 2)
    joint = solved(
        Problem(loss_of("huberized", codes), SumToZero(ElasticNet(0.02, l2)), DenseDesign(X), FREE),
        tol=1e-10,
    )
    signs = (2.0 * codes - 1.0)[:, None]
    loss = MarginSum(HuberizedHinge(0.5), signs, np.full((40, 1), 1 / 40), 40.0)
    binary = minimize(
        Problem(loss, ElasticNet(0.04, 2 * l2), DenseDesign(X), Ridge()),
        ProximalNewton(),
        stop=Stop(tol=1e-10),
    )
    assert joint.certificate.primal == pytest.approx(binary.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(joint.point.coef[:, 1:], binary.point.coef, atol=1e-4)


def test_a_strength_above_the_critical_one_gives_zero(rng) -> None:
    problem = small("huberized", "sum-to-zero", rng)
    critical = smooth_critical_strength(problem)
    at = replace(problem, penalty=SumToZero(ElasticNet(1.001 * critical)))
    assert not np.any(solved(at).point.coef)
    below = replace(problem, penalty=SumToZero(ElasticNet(0.98 * critical)))
    assert np.any(solved(below).point.coef)


@pytest.mark.slow
def test_a_start_near_the_solution_saves_newton_steps(rng) -> None:
    steps = {"cold": 0, "warm": 0}
    for loss, penalty in PAIRS:
        problem = small(loss, penalty, rng)
        near = replace(problem, penalty=penalty_of(penalty, 0.033, 12))
        start = solved(near).point
        warm = minimize(problem, SemismoothNewton(), stop=Stop(tol=1e-8), start=start)
        assert warm.status is Status.CONVERGED
        steps["warm"] += warm.certificate.n_iter
        steps["cold"] += solved(problem).certificate.n_iter
    assert steps["warm"] <= 0.8 * steps["cold"]


def test_what_it_cannot_take_is_said_in_a_sentence(rng) -> None:
    solver = SemismoothNewton()
    assert solver.objection(small("lee", "sum-to-zero", rng)) is None
    logistic = wrong_classes(Logistic(), np.arange(30) % 3, np.full(30, 1 / 30), 3, 30.0)
    words = solver.objection(replace(small("lee", "sum-to-zero", rng), loss=logistic))
    assert words is not None
    assert "a loss whose conjugate has a prox with a known derivative" in words
    words = solver.objection(replace(small("lee", "sum-to-zero", rng), penalty=Ball(2.0, 1.0)))
    assert words is not None
    assert "a penalty whose prox has a known derivative" in words


def test_an_error_of_a_part_is_not_taken_for_a_missing_capability(rng, monkeypatch) -> None:
    def broken(self: ElasticNet, coef: np.ndarray, step: float) -> None:
        raise TypeError("a bug")

    problem = small("lee", "sum-to-zero", rng)
    monkeypatch.setattr(type(problem.penalty), "prox_jacobian", broken)
    assert SemismoothNewton().objection(problem) is None
    with pytest.raises(TypeError, match="a bug"):
        minimize(problem, SemismoothNewton())


def test_limits_are_kept_and_the_best_point_is_certified(rng) -> None:
    X, y = standardised(load_wine)
    problem = Problem(loss_of("crammer-singer", y), penalty_of("group linf", 0.001, 13),
                      DenseDesign(X), FREE)  # fmt: skip
    few = solved(problem, max_iter=7)
    assert few.status is Status.ITERATION_LIMIT
    assert few.certificate.n_iter <= 8
    begin = perf_counter()
    late = solved(problem, tol=1e-14, time_limit=0.05)
    assert late.status in (Status.TIME_LIMIT, Status.CONVERGED)
    assert perf_counter() - begin < 5.0
    assert np.isfinite(late.certificate.gap)


def test_beyond_rounding_it_ends_by_itself(rng) -> None:
    problem = small("crammer-singer", "group l2", rng)
    solution = solved(problem, tol=0.0)
    assert solution.status is Status.STALLED
    assert solution.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize(
    ("price", "groups"),
    [
        (360.0, Groups.features(8)),
        (446.0, Groups.within_classes(np.arange(8) // 2)),
        (1000.0, Groups.within_classes(np.arange(8) // 2)),
    ],
)
def test_line_search_needs_few_steps_where_values_differ_by_rounding(
    price: float, groups: Groups
) -> None:
    """Armijo's rule on rounded values takes steps of 1e-10, 50 of them to a subproblem."""
    rng = np.random.default_rng(2)
    X, codes = rng.standard_normal((15, 8)), rng.permutation(np.arange(15) % 3)
    loss = loss_of("lee", codes)
    problem = Problem(
        loss, SumToZeroGroups(GroupL2(groups, 1.0 / (15.0 * price))), DenseDesign(X), FREE
    )
    solution = minimize(problem, SemismoothNewton(), stop=Stop(tol=1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.n_iter <= 80
