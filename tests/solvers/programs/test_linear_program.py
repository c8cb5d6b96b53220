"""Column and row generation against whole linear programs, and on hard and degenerate data."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.data.designs import as_design
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.views import standardized
from proxmargin.functions.penalties.groups import GroupLinf, Groups
from proxmargin.losses import CrammerSinger, Hinge, LevelSet, MarginSum, wrong_classes
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point, smooth_critical_strength
from proxmargin.penalties import ElasticNet, Penalty, Pinned, Ridge, SumToZero, SumToZeroGroups
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.programs import linear_program
from proxmargin.solvers.programs.linear_program import LinearProgram
from tests.oracles.programs import whole_program
from tests.shared_data import load_instance, load_set, needs_data, reference_instances

FREE = SumToZero(ElasticNet(0.0, 0.0))


def worst_class(
    X: Any,
    y: np.ndarray,
    penalty: Penalty,
    *,
    weights: np.ndarray | None = None,
    intercept: Penalty = FREE,
) -> Problem:
    """Crammer and Singer's loss, in means."""
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    loss = CrammerSinger(y.astype(np.intp), weights / total, int(y.max()) + 1, total)
    design = X if isinstance(X, Design) else as_design(X)
    return Problem(loss, penalty, design, intercept)


def every_wrong_class(X: Any, y: np.ndarray, strength: float) -> Problem:
    """The hinge of Lee, Lin and Wahba, in means."""
    loss = wrong_classes(Hinge(), y, np.full(y.size, 1 / y.size), int(y.max()) + 1, y.size)
    return Problem(loss, SumToZero(ElasticNet(strength)), as_design(X), FREE)


def every_wrong_class_by_rows(
    X: Any, y: np.ndarray, strength: float, weights: np.ndarray | None = None
) -> Problem:
    """The hinge of Lee, Lin and Wahba, with the largest entries of the rows."""
    norm = GroupLinf(Groups.features(X.shape[1]), strength, weights)
    return replace(every_wrong_class(X, y, strength), penalty=SumToZeroGroups(norm))


def two_classes(X: Any, y: np.ndarray, strength: float, weights: np.ndarray) -> Problem:
    """The hinge of signs, in means."""
    total = float(weights.sum())
    loss = MarginSum(Hinge(), y[:, None], (weights / total)[:, None], total)
    return Problem(loss, ElasticNet(strength), as_design(X), Ridge())


def solved(problem: Problem, tol: float = 1e-10, **limits: Any) -> Solution:
    """The solution, with what must always hold."""
    solution = minimize(problem, LinearProgram(), stop=Stop(tol=tol, **limits))
    assert solution.certificate.converged, str(solution.certificate)
    assert solution.gap.primal == pytest.approx(problem.value(solution.point), rel=1e-11)
    return solution


def sample(rng: np.random.Generator, n: int, p: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, of integers so that there are ties."""
    y = np.arange(n) % K
    means = 1.5 * (np.arange(p) % K == y[:, None])
    return np.round(2.0 * (rng.standard_normal((n, p)) + means)), y


SHAPES = [(20, 6, 3), (12, 30, 4), (40, 5, 2)]
STRENGTHS = [0.3, 0.05, 0.004]


# -- optima -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("few", [600, 0], ids=["all rows", "rows generated"])
def test_l1_optima_are_those_of_the_whole_program(
    shape: tuple[int, int, int], strength: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_program, "FEW_ROWS", few)
    X, y = sample(np.random.default_rng(0), *shape)
    found = solved(worst_class(X, y, ElasticNet(strength)))
    assert found.gap.primal == pytest.approx(whole_program(X, y, strength).value, rel=1e-9)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("across", [False, True], ids=["within classes", "across classes"])
def test_group_optima_are_those_of_the_whole_program(
    shape: tuple[int, int, int], strength: float, across: bool
) -> None:
    X, y = sample(np.random.default_rng(1), *shape)
    p, K = shape[1:]
    labels = np.arange(p) // 3
    groups = Groups.features(p) if across else Groups.within_classes(labels)
    oracle = np.tile(np.arange(p), (K, 1)) if across else labels + (1 + p) * np.arange(K)[:, None]
    found = solved(worst_class(X, y, GroupLinf(groups, strength)))
    best = whole_program(X, y, strength, groups=oracle).value
    assert found.gap.primal == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("shape", [*SHAPES, (20, 6, 5)])
def test_rows_that_sum_to_zero_reach_the_interior_point_optimum(
    shape: tuple[int, int, int], strength: float
) -> None:
    X, y = sample(np.random.default_rng(4), *shape)
    (n, p), K = X.shape, shape[2]
    omega = 1.0 + np.arange(p) % 3
    found = solved(every_wrong_class_by_rows(X, y, strength, omega))
    W, b = cp.Variable((p, K)), cp.Variable(K)
    scores = X @ W + np.ones((n, 1)) @ cp.reshape(b, (1, K), order="C")
    wrong = np.arange(K) != y[:, None]
    value = cp.sum(cp.multiply(wrong, cp.pos(1 + scores))) / n
    value += strength * omega @ cp.norm(W, "inf", axis=1)
    program = cp.Problem(cp.Minimize(value), [cp.sum(W, axis=1) == 0, cp.sum(b) == 0])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert found.gap.primal == pytest.approx(program.value, rel=1e-8)


def test_groups_may_have_weights() -> None:
    X, y = sample(np.random.default_rng(2), 15, 6, 3)
    single = GroupLinf(Groups.within_classes(np.arange(6)), 0.05, np.array([1, 2, 1, 3, 1, 1.0]))
    found = solved(worst_class(X, y, single))
    # a group of one feature of weight omega is the feature over omega with weight one
    best = whole_program(X / single.weights, y, 0.05).value
    assert found.gap.primal == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("few", [600, 0], ids=["all rows", "rows generated"])
def test_sum_to_zero_optima_are_those_of_the_whole_program(
    shape: tuple[int, int, int], strength: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_program, "FEW_ROWS", few)
    X, y = sample(np.random.default_rng(3), *shape)
    found = solved(every_wrong_class(X, y, strength))
    best = whole_program(X, y, strength, loss="wrong").value
    assert found.gap.primal == pytest.approx(best, rel=1e-9)
    assert np.abs(found.point.coef.sum(axis=1)).max() < 1e-12


@pytest.mark.parametrize("strength", STRENGTHS)
def test_binary_optima_are_those_of_the_whole_program(strength: float) -> None:
    X, y = sample(np.random.default_rng(4), 30, 8, 2)
    signs, weights = 2.0 * y - 1.0, 1.0 + np.arange(30) % 3
    found = solved(two_classes(X, signs, strength, weights))
    best = whole_program(X, signs, strength, loss="binary", weights=weights).value
    assert found.gap.primal == pytest.approx(best, rel=1e-9)


def test_without_intercept() -> None:
    X, y = sample(np.random.default_rng(5), 20, 6, 3)
    found = solved(worst_class(X + 1.0, y, ElasticNet(0.05), intercept=Pinned()))
    best = whole_program(X + 1.0, y, 0.05, offsets=False).value
    assert found.gap.primal == pytest.approx(best, rel=1e-9)
    assert not found.point.intercept.any()


@pytest.mark.parametrize(
    "instance",
    [
        pytest.param(
            i,
            id=f"{i['data']} {i['params']['penalty']} {i['params']['C']}",
            marks=[pytest.mark.slow] if i["data"] == "mnist" else [],
        )
        for i in reference_instances("crammer_singer")
        if i["params"]["penalty"] in ("l1", "group_linf")
    ],
)
def test_it_reaches_the_reference_optimum(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    total = float(y.size if weights is None else weights.sum())
    scale = instance["params"]["C"] * total
    penalty: Penalty = ElasticNet(1.0 / scale)
    if instance["params"]["penalty"] == "group_linf":
        blocks = np.arange(X.shape[1]) // instance["params"]["group_size"]
        penalty = GroupLinf(Groups.within_classes(blocks), 1.0 / scale)
    found = solved(worst_class(X, y, penalty, weights=weights))
    allowed = 1e-9 + 1.5 * instance["accuracy"]
    assert found.gap.primal * scale == pytest.approx(instance["optimum"], rel=allowed)


# -- the same problem in other forms ------------------------------------------------------------


def test_integer_weights_are_repeated_rows_and_no_weight_is_no_row() -> None:
    X, y = sample(np.random.default_rng(6), 18, 9, 3)
    times = np.arange(18) % 4
    weighted = solved(worst_class(X, y, ElasticNet(0.02), weights=times.astype(float)))
    repeated = solved(worst_class(np.repeat(X, times, 0), np.repeat(y, times), ElasticNet(0.02)))
    assert weighted.gap.primal == pytest.approx(repeated.gap.primal, rel=1e-11)


def test_a_class_without_weight_does_not_matter() -> None:
    X, y = sample(np.random.default_rng(7), 18, 9, 3)
    weights = (y != 1).astype(float)
    lacking = solved(worst_class(X, y, ElasticNet(0.02), weights=weights))
    two = solved(worst_class(X[y != 1], y[y != 1] // 2, ElasticNet(0.02)))
    assert lacking.gap.primal == pytest.approx(two.gap.primal, rel=1e-9)


@pytest.mark.parametrize("penalty", [ElasticNet(0.02), GroupLinf(Groups.features(9), 0.02)])
@pytest.mark.parametrize("few", [600, 0], ids=["all rows", "rows generated"])
def test_sparse_data_are_dense_data(
    penalty: Penalty, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_program, "FEW_ROWS", few)
    X, y = sample(np.random.default_rng(8), 30, 9, 3)
    X *= np.random.default_rng(9).random(X.shape) < 0.3
    dense = solved(worst_class(X, y, penalty))
    forms: list[Callable[[np.ndarray], Any]] = [sp.csr_matrix, sp.csc_matrix, sp.csr_array]
    for form in forms:
        other = solved(worst_class(form(X), y, penalty))
        assert other.gap.primal == pytest.approx(dense.gap.primal, rel=1e-10)


@pytest.mark.parametrize("intercept", [FREE, Pinned()], ids=["free", "none"])
def test_standardised_sparse_data_are_standardised_data(intercept: Penalty) -> None:
    X, y = sample(np.random.default_rng(10), 30, 9, 3)
    X *= np.random.default_rng(11).random(X.shape) < 0.4
    X[:, 4] = 2.0  # constant: no feature at all
    shares = np.full(30, 1 / 30)
    dense, sparse = (standardized(as_design(form), shares) for form in (X, sp.csr_array(X)))
    one = solved(worst_class(dense, y, ElasticNet(0.03), intercept=intercept))
    two = solved(worst_class(sparse, y, ElasticNet(0.03), intercept=intercept))
    assert one.gap.primal == pytest.approx(two.gap.primal, rel=1e-10)
    assert not two.point.coef[4].any()


def test_two_classes_are_the_binary_problem() -> None:
    X, y = sample(np.random.default_rng(12), 25, 8, 2)
    joint = solved(worst_class(X, y, ElasticNet(0.03)))
    # W_1 = -W_0 = w / 2 costs as much as w
    binary = solved(two_classes(X, 2.0 * y - 1.0, 0.03, np.ones(25)))
    assert joint.gap.primal == pytest.approx(binary.gap.primal, rel=1e-10)
    difference = joint.point.coef[:, 1] - joint.point.coef[:, 0]
    problem = two_classes(X, 2.0 * y - 1.0, 0.03, np.ones(25))
    intercept = np.diff(joint.point.intercept)
    value = problem.value(Point(difference[:, None], intercept))
    assert value == pytest.approx(binary.gap.primal, rel=1e-9)


def test_duplicate_samples_and_features_leave_the_value() -> None:
    X, y = sample(np.random.default_rng(13), 15, 7, 3)
    plain = solved(worst_class(X, y, ElasticNet(0.04)))
    twice = solved(worst_class(np.tile(X, (2, 3)), np.tile(y, 2), ElasticNet(0.04)))
    assert twice.gap.primal == pytest.approx(plain.gap.primal, rel=1e-10)


def test_units_of_the_features_that_differ_by_millions() -> None:
    X, y = sample(np.random.default_rng(14), 30, 8, 3)
    units = 10.0 ** np.linspace(-3, 3, 8)
    found = solved(worst_class(X * units, y, ElasticNet(0.03)), tol=1e-9)
    best = whole_program(X * units, y, 0.03).value
    assert found.gap.primal == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("power", [-12, -9, 9, 12])
def test_units_of_all_features_are_those_of_the_strength(power: int) -> None:
    X, y = sample(np.random.default_rng(5), 30, 12, 2)
    signs, unit = 2.0 * y - 1.0, 10.0**power
    plain = solved(two_classes(X, signs, 0.05, np.ones(30)))
    scaled = solved(two_classes(unit * X, signs, 0.05 * unit, np.ones(30)))
    assert scaled.gap.primal == pytest.approx(plain.gap.primal, rel=1e-9)
    # a strength far beyond the products with any feature
    nothing = solved(two_classes(unit * X, signs, 1e12 * unit, np.ones(30)))
    assert not nothing.point.coef.any()


def test_a_hinge_at_a_vertex_has_as_many_ties_as_coefficients() -> None:
    """Of a vertex that is not degenerate: samples on a kink count the unknowns."""
    rng = np.random.default_rng(15)
    X, y = rng.standard_normal((40, 12)), np.arange(40) % 3
    found = solved(worst_class(X, y, ElasticNet(0.02)))
    scores = X @ found.point.coef + found.point.intercept
    pieces = scores + 1.0
    pieces[np.arange(40), y] -= 1.0
    top = np.sort(pieces, axis=1)
    ties = (pieces >= top[:, -1:] - 1e-9).sum() - 40
    assert ties == np.count_nonzero(found.point.coef) + 2


# -- the run ------------------------------------------------------------------------------------


def test_the_optimum_as_start_ends_after_one_round() -> None:
    X, y = sample(np.random.default_rng(16), 30, 20, 3)
    problem = worst_class(X, y, ElasticNet(0.03))
    first = solved(problem)
    again = minimize(problem, LinearProgram(), stop=Stop(tol=1e-12), start=first.point)
    assert again.certificate.n_iter <= 2
    assert again.gap.primal == pytest.approx(first.gap.primal, rel=1e-12)


def test_a_state_can_be_saved_and_resumed() -> None:
    X, y = sample(np.random.default_rng(17), 30, 200, 4)
    problem = worst_class(X, y, ElasticNet(0.01))
    whole = solved(problem)
    begun = minimize(problem, LinearProgram(), stop=Stop(tol=1e-10, max_iter=2))
    assert begun.status is Status.ITERATION_LIMIT
    state = pickle.loads(pickle.dumps(begun.state))
    rest = minimize(problem, LinearProgram(), stop=Stop(tol=1e-10), start=state)
    assert rest.gap.primal == pytest.approx(whole.gap.primal, rel=1e-12)
    assert rest.certificate.n_iter == whole.certificate.n_iter


def test_few_pivots_at_a_time_lead_to_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample(np.random.default_rng(18), 30, 50, 4)
    problem = worst_class(X, y, ElasticNet(0.01))
    whole = solved(problem)
    monkeypatch.setattr(linear_program, "ROUND_PIVOTS", 40)
    monkeypatch.setattr(linear_program, "STEP_PIVOTS", 0)
    parts = solved(problem)
    assert parts.gap.primal == pytest.approx(whole.gap.primal, rel=1e-10)
    assert parts.certificate.n_iter > whole.certificate.n_iter


def test_no_time_is_a_status() -> None:
    X, y = sample(np.random.default_rng(19), 30, 50, 4)
    problem = worst_class(X, y, ElasticNet(0.01))
    solution = minimize(problem, LinearProgram(), stop=Stop(tol=1e-10, time_limit=0.0))
    assert solution.status is Status.TIME_LIMIT
    assert solution.gap.primal <= problem.value(problem.origin())


def test_bounds_of_all_rounds_enclose_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_program, "STEP_PIVOTS", 0)
    X, y = sample(np.random.default_rng(20), 30, 100, 4)
    problem = worst_class(X, y, ElasticNet(0.01))
    best = whole_program(X, y, 0.01).value
    reports: list[Any] = []
    minimize(problem, LinearProgram(), stop=Stop(tol=1e-12), callbacks=[reports.append])
    assert len(reports) > 3
    for report in reports:
        assert report.gap.dual <= best * (1 + 1e-9)
        assert report.gap.primal >= best * (1 - 1e-9)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"penalty": ElasticNet(0.1, 0.1)}, "without a ridge part"),
        ({"penalty": ElasticNet(0.0)}, "l1 or group l_inf"),
        ({"intercept": SumToZero(ElasticNet(0.0, 0.1))}, "intercept without penalty"),
    ],
)
def test_it_says_what_it_does_not_take(change: dict[str, Any], reason: str) -> None:
    X, y = sample(np.random.default_rng(21), 10, 4, 3)
    problem = replace(worst_class(X, y, ElasticNet(0.1)), **change)
    objection = LinearProgram().objection(problem)
    assert objection is not None
    assert reason in objection


# -- real data ----------------------------------------------------------------------------------


@needs_data("data/leukemia.npz", "data/srbct.npz")
@pytest.mark.parametrize("name", ["srbct", "leukemia"])
@pytest.mark.parametrize("times", [3.0, 30.0])
def test_thousands_of_genes_are_solved_to_rounding_in_few_rounds(name: str, times: float) -> None:
    X, y = load_set(name)
    y = np.unique(y, return_inverse=True)[1]
    shares = np.full(y.size, 1 / y.size)
    problem = worst_class(standardized(as_design(X), shares), y, ElasticNet(1.0))
    strength = smooth_critical_strength(problem) / times
    found = solved(replace(problem, penalty=ElasticNet(strength)), tol=1e-11)
    assert found.certificate.n_iter <= 12
    assert np.count_nonzero(found.point.coef) < 3 * y.size


# -- a budget for the loss ----------------------------------------------------------------------


def within(problem: Problem, budget: float, price: float = 1e4) -> Problem:
    """The least penalty, at strength one, with which the loss of ``problem`` is in the budget."""
    penalty: Penalty = ElasticNet(1.0)
    if isinstance(problem.penalty, SumToZero):
        penalty = SumToZero(penalty)
    if isinstance(problem.penalty, GroupLinf):
        penalty = replace(problem.penalty, strength=1.0)
    return replace(problem, loss=LevelSet(problem.loss, budget, price), penalty=penalty)


def loss_of(problem: Problem, point: Point) -> float:
    return problem.loss.value(problem.design.scores(point.coef) + point.intercept)


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("loss", ["worst", "wrong", "binary"])
@pytest.mark.parametrize("few", [600, 0], ids=["all rows", "rows generated"])
def test_constrained_optima_are_those_of_the_whole_program(
    loss: str, share: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_program, "FEW_ROWS", few)
    X, y = sample(np.random.default_rng(22), 18, 20, 2 if loss == "binary" else 3)
    y = 2 * y - 1 if loss == "binary" else y
    make: dict[str, Callable[[], Problem]] = {
        "worst": lambda: worst_class(X, y, ElasticNet(1.0)),
        "wrong": lambda: every_wrong_class(X, y, 1.0),
        "binary": lambda: two_classes(X, y.astype(float), 1.0, np.ones(18)),
    }
    problem = make[loss]()
    budget = share * loss_of(problem, null_point(problem))
    found = solved(within(problem, budget))
    best = whole_program(X, y, 1.0, loss=loss, budget=budget).value
    assert found.gap.primal == pytest.approx(best, rel=1e-9)
    assert loss_of(problem, found.point) == pytest.approx(budget, rel=1e-9)


@pytest.mark.parametrize("strength", [0.2, 0.05, 0.01])
@pytest.mark.parametrize("grouped", [False, True], ids=["l1", "group l_inf"])
def test_the_loss_of_a_regularised_optimum_as_budget_gives_its_objective(
    strength: float, grouped: bool
) -> None:
    X, y = sample(np.random.default_rng(23), 24, 15, 3)
    blocks = Groups.within_classes(np.arange(15) // 3)
    problem = worst_class(X, y, GroupLinf(blocks, strength) if grouped else ElasticNet(strength))
    regularised = solved(problem)
    budget = loss_of(problem, regularised.point)
    found = solved(within(problem, budget))
    assert budget + strength * found.gap.primal == pytest.approx(regularised.gap.primal, rel=1e-9)


def test_a_budget_between_two_vertices_is_met_by_no_strength() -> None:
    """The multiplier has the right objective, but vertices on either side of the budget."""
    X, y = sample(np.random.default_rng(24), 24, 15, 3)
    problem = worst_class(X, y, ElasticNet(1.0))
    budget = 0.31 * loss_of(problem, null_point(problem))
    found = solved(within(problem, budget))
    multiplier = found.state.multiplier  # type: ignore[attr-defined]
    above, at, below = (
        solved(replace(problem, penalty=ElasticNet(factor / multiplier)))
        for factor in (1.0 + 1e-6, 1.0, 1.0 - 1e-6)
    )
    value = multiplier * at.gap.primal
    assert found.gap.primal + multiplier * budget == pytest.approx(value, rel=1e-9)
    assert loss_of(problem, below.point) < budget * (1 - 1e-3)
    assert loss_of(problem, above.point) > budget * (1 + 1e-3)


def test_a_budget_above_the_null_loss_leaves_the_null_model() -> None:
    X, y = sample(np.random.default_rng(25), 24, 15, 3)
    problem = worst_class(X, y, ElasticNet(1.0))
    found = solved(within(problem, 1.001 * loss_of(problem, null_point(problem))))
    assert not found.point.coef.any()
    assert found.gap.primal == 0.0


def test_a_budget_below_the_least_loss_leaves_an_excess() -> None:
    X, y = sample(np.random.default_rng(26), 60, 2, 3)
    problem = worst_class(X, y, ElasticNet(1.0))
    least = whole_program(X, y, 1e-9).value
    found = solved(within(problem, 0.5 * least, price=1e3))
    assert found.gap.primal >= 1e3 * 0.49 * least
    assert loss_of(problem, found.point) >= least * (1 - 1e-6)
