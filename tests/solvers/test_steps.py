"""What every solver keeps: states, inputs, refusals, resumption, and the way to the optimum."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import proxmargin
from proxmargin.optimality.problem import Point
from proxmargin.penalties import ElasticNet, Pinned, Ridge, SumToZero
from proxmargin.solvers.l1.newton import ProximalNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Effort, Stop, UnsuitableSolverError
from tests.cases import (
    BINARY_SOLVERS,
    CLASS_SOLVERS,
    MARGIN_LOSSES,
    MULTICLASS_SOLVERS,
    SMOOTH_LOSSES,
    SPECIAL_SOLVERS,
    binary_problem,
    multiclass_problem,
)

PAIRS = [(name, make, binary_problem) for name, make in BINARY_SOLVERS.items()]
PAIRS += [
    (f"{name}, multiclass", make, multiclass_problem) for name, make in MULTICLASS_SOLVERS.items()
]
every_general_solver = pytest.mark.parametrize(
    ("make", "problem_of"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS]
)
SPECIAL = [(name, *pair) for name, pair in SPECIAL_SOLVERS.items()]
OF_CLASSES = [(name, *pair) for name, pair in CLASS_SOLVERS.items()]
every_solver = pytest.mark.parametrize(
    ("make", "problem_of"),
    [pair[1:] for pair in PAIRS + SPECIAL + OF_CLASSES],
    ids=[pair[0] for pair in PAIRS + SPECIAL + OF_CLASSES],
)
TIGHT = Stop(tol=1e-11)


def contents(state: Any) -> list[Any]:
    """Arrays and numbers of a state, those of states and tuples inside it included."""
    if isinstance(state, Effort):  # of all runs of a fit, not of this state
        return []
    if is_dataclass(state):
        return [item for f in fields(state) for item in contents(getattr(state, f.name))]
    if isinstance(state, tuple):
        return [item for part in state for item in contents(part)]
    return [np.array(state) if isinstance(state, np.ndarray) else state]


def same(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
        for a, b in zip(left, right, strict=True)
    )


@every_solver
def test_a_step_leaves_the_old_state_valid(make, problem_of, rng) -> None:
    problem, solver = problem_of(rng), make()
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(4):
        before = contents(state)
        after = solver.step(problem, state)
        assert same(before, contents(state))
        # and taking the step again gives the same state
        assert same(contents(after), contents(solver.step(problem, state)))
        state = after


@every_solver
def test_a_start_is_not_written_into(make, problem_of, rng) -> None:
    problem = problem_of(rng)
    shape = problem.origin().coef.shape
    start = Point(rng.standard_normal(shape), rng.standard_normal(shape[1]))
    copy = Point(start.coef.copy(), start.intercept.copy())
    minimize(problem, make(), start=start, stop=Stop(max_iter=30))
    np.testing.assert_array_equal(start.coef, copy.coef)
    np.testing.assert_array_equal(start.intercept, copy.intercept)


@pytest.mark.sampled(9)
@every_general_solver
@pytest.mark.parametrize("phi", SMOOTH_LOSSES.values(), ids=SMOOTH_LOSSES.keys())
@pytest.mark.parametrize("intercept", ["free", "ridge", "none"])
def test_every_solver_reaches_one_optimum(make, problem_of, phi, intercept, rng) -> None:
    if phi is SMOOTH_LOSSES["huberized hinge, narrow"] and make().name == "gcd":
        pytest.skip("coordinate majorants grow with 1 / delta: tens of thousands of sweeps")
    joint = problem_of is multiclass_problem
    penalty = {
        "free": SumToZero(ElasticNet(0.0, 0.0)) if joint else Ridge(),
        "ridge": SumToZero(ElasticNet(0.0, 0.2)) if joint else Ridge(0.2),
        "none": Pinned(),
    }[intercept]
    problem = problem_of(rng, phi, ElasticNet(0.03, 0.02), penalty)
    if phi.scalars is None and make().objection(problem):
        pytest.skip("a loss without a compiled shape: refused in a sentence")
    solution = minimize(problem, make(), stop=TIGHT)
    assert solution.certificate.converged
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal, rel=1e-12)
    # another solver from another start
    other = MULTICLASS_SOLVERS["m-pgh"]() if joint else BINARY_SOLVERS["fapg"]()
    shape = solution.point.coef.shape
    start = Point(problem.penalty.prox(rng.standard_normal(shape), 1e-9), np.zeros(shape[1]))
    check = minimize(problem, other, start=start, stop=TIGHT)
    assert solution.certificate.primal == pytest.approx(check.certificate.primal, rel=1e-10)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("make", "problem_of"), [pair[1:] for pair in SPECIAL], ids=[pair[0] for pair in SPECIAL]
)
@pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.2), Pinned()], ids=repr)
def test_solvers_of_problems_of_their_own_reach_one_optimum(
    make, problem_of, intercept, rng
) -> None:
    problem = problem_of(rng, intercept=intercept)
    solution = minimize(problem, make(), stop=Stop(tol=1e-9))
    assert solution.certificate.converged
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal, rel=1e-10)
    check = minimize(problem, BINARY_SOLVERS["fapg-star"](), stop=Stop(tol=1e-9))
    assert check.certificate.converged
    assert solution.certificate.primal == pytest.approx(check.certificate.primal, rel=2e-9)


@pytest.mark.parametrize(
    "name",
    [
        "ridge-newton",
        "active-set",
        "dual-coordinate-descent",
        "ball-newton",
        "minimax-newton",
    ],
)
def test_a_solver_of_problems_of_its_own_refuses_an_elastic_net(name: str, rng) -> None:
    with pytest.raises(UnsuitableSolverError, match="cannot take this problem: it needs"):
        minimize(binary_problem(rng), SPECIAL_SOLVERS[name][0]())


@every_general_solver
@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.0), (0.0, 0.05), (0.5, 0.5)])
def test_every_solver_takes_either_part_of_the_elastic_net(make, problem_of, l1, l2, rng) -> None:
    solution = minimize(problem_of(rng, None, ElasticNet(l1, l2)), make(), stop=Stop(tol=1e-9))
    assert solution.certificate.converged


@every_general_solver
def test_a_start_at_the_optimum_is_certified_at_once(make, problem_of, rng) -> None:
    problem = problem_of(rng)
    first = minimize(problem, make(), stop=TIGHT)
    again = minimize(problem, make(), start=first.point, stop=Stop(tol=1e-9))
    assert again.certificate.n_iter == 0
    assert again.certificate.converged


@every_solver
def test_resuming_from_a_state_is_going_on_bit_for_bit(make, problem_of, rng) -> None:
    problem, solver = problem_of(rng), make()
    stop = Stop(tol=0.0, max_iter=20)
    whole = solver.init(problem, problem.origin(), stop)
    states = [whole]
    for _ in range(6):
        states.append(solver.step(problem, states[-1]))
    middle = states[3]
    for later in states[4:]:
        middle = make().step(problem, middle)
        assert same(contents(middle), contents(later))


@every_solver
def test_a_limit_of_no_iterations_certifies_the_start(make, problem_of, rng) -> None:
    problem = problem_of(rng)
    solution = minimize(problem, make(), stop=Stop(max_iter=0))
    assert solution.certificate.n_iter == 0
    assert not solution.certificate.converged
    assert np.isfinite(solution.certificate.gap)


@pytest.mark.parametrize("name", BINARY_SOLVERS)
def test_a_loss_with_a_kink_is_refused_in_a_sentence(name: str, rng) -> None:
    problem = binary_problem(rng, MARGIN_LOSSES["hinge"], ElasticNet(0.02, 0.0))
    with pytest.raises(UnsuitableSolverError, match="Lipschitz continuous gradient"):
        minimize(problem, BINARY_SOLVERS[name]())


@pytest.mark.parametrize("name", [n for n in BINARY_SOLVERS if n not in MULTICLASS_SOLVERS])
def test_a_binary_solver_refuses_classes_fitted_together(name: str, rng) -> None:
    with pytest.raises(UnsuitableSolverError, match="cannot take this problem: it needs"):
        minimize(multiclass_problem(rng), BINARY_SOLVERS[name]())


@pytest.mark.parametrize("name", ["m-pgh", "m-pgh-2"])
def test_a_multiclass_solver_refuses_a_binary_problem(name: str, rng) -> None:
    with pytest.raises(UnsuitableSolverError, match="a joint multiclass problem"):
        minimize(binary_problem(rng), MULTICLASS_SOLVERS[name]())


@pytest.mark.parametrize(
    ("make", "problem_of"),
    [(BINARY_SOLVERS["b-pgh"], binary_problem), (MULTICLASS_SOLVERS["m-pgh"], multiclass_problem)],
)
def test_the_monotone_method_never_goes_uphill(make, problem_of, rng) -> None:
    problem, solver = problem_of(rng), make()
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(60):
        after = solver.step(problem, state)
        assert after.objective <= state.objective * (1 + 1e-14)
        state = after


@every_general_solver
def test_the_objective_of_the_relative_change_rule_has_every_term(make, problem_of, rng) -> None:
    joint = problem_of is multiclass_problem
    strong = SumToZero(ElasticNet(0.0, 5.0)) if joint else Ridge(5.0)
    problem, solver = problem_of(rng, intercept=strong), make()
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(3):
        after = solver.step(problem, state)
        if hasattr(state, "objective"):
            values = [problem.value(solver.point(problem, s)) for s in (state, after)]
            assert [state.objective, after.objective] == pytest.approx(values, rel=1e-12)
        state = after


@every_general_solver
def test_a_feature_that_is_zero_loses_its_coefficient(make, problem_of, rng) -> None:
    problem = problem_of(rng, None, ElasticNet(0.05, 0.0))
    problem.design.matrix[:, 3] = 0.0
    start = Point(np.zeros_like(problem.origin().coef), problem.origin().intercept)
    start.coef[3] = problem.penalty.prox(np.arange(1.0, 1.0 + start.coef.shape[1])[None, :], 1e-9)
    solution = minimize(problem, make(), start=start, stop=Stop(tol=1e-9, max_iter=20_000))
    assert solution.certificate.converged
    assert not np.any(solution.point.coef[3])


def test_newton_steps_stay_finite_after_a_short_step() -> None:
    # a step below a tenth brings the homotopy back, which only the capped loss has
    rng = np.random.RandomState(42)
    X, y = rng.rand(15, 30), rng.randint(0, 3, size=15)
    weights = rng.randint(0, 5, size=15)
    for problem in proxmargin.SquaredHingeSVC()._assemble(X, y, weights).problems:
        stop = Stop(tol=1e-10, max_iter=60)
        assert minimize(problem, ProximalNewton(), stop=stop).certificate.converged
