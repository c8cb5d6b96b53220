"""The rules: which solver a problem gets, and who goes on where it gives up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.losses.classes.multinomial import Multinomial
from proxmargin.losses import Hinge, Logistic, wrong_classes
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import (
    ElasticNet,
    GroupL2,
    Groups,
    Ridge,
    SumToZero,
    SumToZeroGroups,
)
from proxmargin.solvers.callbacks import History
from proxmargin.solvers.choice.names import SOLVERS, Choice, RuleTable, choose, solve
from proxmargin.solvers.choice.rules import FALLBACK, rules_for
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Solver, State, Stop, UnsuitableSolverError
from proxmargin.solvers.ridge.newton import RidgeNewton
from tests.cases import (
    binary_problem,
    class_problem,
    hinge_net_problem,
    hinge_problem,
    kernel_problem,
    multiclass_problem,
    ridge_problem,
    tail_problem,
)


@dataclass(frozen=True, eq=False)
class Halfway(State):
    inner: Any = None


@dataclass(frozen=True)
class GivesUp(Solver[Halfway]):
    """The steps of another solver, of which it takes a few."""

    steps: int = 2
    inner: Solver[Any] = field(default_factory=RidgeNewton)
    name: ClassVar[str] = "gives-up"
    check_every: ClassVar[int] = 1

    def init(self, problem: Problem, start: Point, stop: Stop) -> Halfway:
        return Halfway(inner=self.inner.init(problem, start, stop))

    def step(self, problem: Problem, state: Halfway) -> Halfway:
        n_iter = state.n_iter + 1
        inner = self.inner.step(problem, state.inner)
        return Halfway(n_iter=n_iter, inner=inner, finished=n_iter >= self.steps)

    def point(self, problem: Problem, state: Halfway) -> Point:
        return self.inner.point(problem, state.inner)


def giving_up(problem: Problem, steps: int = 2) -> Choice:
    others = RuleTable(rules_for(problem), SOLVERS)
    return Choice(GivesUp(steps), "gives-up", "the first to be asked", others)


@dataclass(frozen=True)
class EndsEarly(GivesUp):
    """The same with a limit of its own."""

    steps: int = 9
    max_iter: ClassVar[int] = 2


def test_the_reason_says_how_a_solver_ended(rng) -> None:
    problem = ridge_problem(rng)
    choice = Choice(EndsEarly(), "ends-early", "the first", RuleTable(rules_for(problem), SOLVERS))
    certificate = solve(problem, choice, stop=Stop(tol=1e-9)).certificate
    assert certificate.because.startswith("the first; it reached its iteration limit at a relative")


def test_where_a_solver_gives_up_the_next_that_takes_the_problem_goes_on(rng) -> None:
    problem, history = ridge_problem(rng, Logistic()), History()
    alone = minimize(problem, GivesUp(), stop=Stop(tol=1e-9))
    assert alone.status is Status.STALLED
    solution = solve(problem, giving_up(problem), stop=Stop(tol=1e-9), callbacks=[history])
    certificate = solution.certificate
    assert solution.status is Status.CONVERGED
    assert certificate.solver == "ridge-newton"
    assert certificate.because.startswith("the first to be asked; it stalled at a relative gap of")
    assert "and 'ridge-newton' went on: a smooth loss and a ridge" in certificate.because
    # from where the first one had got to, and counted together
    going_on = minimize(problem, RidgeNewton(), start=alone.point, stop=Stop(tol=1e-9))
    assert certificate.n_iter == alone.certificate.n_iter + going_on.certificate.n_iter
    assert certificate.n_passes >= alone.certificate.n_passes
    assert certificate.seconds >= history.rows[-1]["seconds"]
    counts = history.column("n_iter")
    assert counts == sorted(counts)
    assert counts[-1] == certificate.n_iter
    assert history.best is not None
    np.testing.assert_allclose(history.best.coef, solution.point.coef)


def test_a_limit_ends_it_whoever_is_at_work(rng) -> None:
    problem = ridge_problem(rng)
    first = solve(problem, giving_up(problem, 5), stop=Stop(tol=1e-9, max_iter=1))
    assert first.status is Status.ITERATION_LIMIT
    assert first.certificate.because == "the first to be asked"
    both = solve(problem, giving_up(problem, 2), stop=Stop(tol=1e-15, max_iter=3))
    assert both.status is Status.ITERATION_LIMIT
    assert both.certificate.n_iter == 3
    late = solve(problem, giving_up(problem, 2), stop=Stop(tol=1e-9, time_limit=1e-9))
    assert late.status is Status.TIME_LIMIT
    assert late.certificate.n_iter <= 1


def test_the_better_result_is_kept(rng) -> None:
    problem = hinge_problem(rng)
    # two accelerated steps from a good start make it worse, and then there is nobody left
    good = minimize(problem, SOLVERS["interior-point"](), stop=Stop(tol=1e-6)).point
    start = Point(1.001 * good.coef, good.intercept)
    at_start = minimize(problem, SOLVERS["fapg-star"](), start=start, stop=Stop(max_iter=0))
    first = Choice(
        GivesUp(1, SOLVERS["fapg-star"]()), "gives-up", "first", RuleTable(FALLBACK[-1:], SOLVERS)
    )
    solution = solve(problem, first, stop=Stop(tol=1e-16, max_iter=3), start=start)
    assert solution.certificate.n_iter == 3
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.gap.gap <= at_start.gap.gap


def test_a_gap_of_rounding_is_left_to_nobody_else(rng) -> None:
    problem = ridge_problem(rng, Logistic())
    solution = solve(
        problem,
        replace(choose(problem), others=RuleTable(rules_for(problem), SOLVERS)),
        stop=Stop(tol=0.0),
    )
    assert solution.status is Status.STALLED
    assert solution.certificate.because == choose(problem).because
    assert solution.certificate.relative_gap < 1e-12


def test_a_solver_asked_for_by_name_has_nobody_to_follow(rng) -> None:
    problem = ridge_problem(rng)
    asked = Choice(GivesUp(), "gives-up", "asked for by name")
    assert asked.following(problem) is None
    solution = solve(problem, asked, stop=Stop(tol=1e-9))
    assert solution.status is Status.STALLED
    assert solution.certificate.solver == "gives-up"


def test_the_matrix_of_a_kernel_has_rules_of_its_own(rng) -> None:
    problem = kernel_problem(rng)
    choice = choose(problem)
    assert choice.name == "decomposition"
    assert choice.following(problem) is None
    smooth = replace(ridge_problem(rng, Logistic()), design=problem.design)
    assert isinstance(smooth.design, KernelDesign)
    assert choose(smooth).name == "ridge-newton"
    with pytest.raises(UnsuitableSolverError, match="no solver takes this problem: it needs"):
        choose(replace(smooth, penalty=ElasticNet(0.1, 1.0)))


def test_a_homogeneous_loss_with_l1_alone_is_refused(rng) -> None:
    # both are homogeneous: the optimum is zero, or there is none
    made = tail_problem(rng)
    problem = replace(made, penalty=ElasticNet(0.1, 0.0))
    with pytest.raises(
        UnsuitableSolverError, match="no solver takes this problem: it needs a loss"
    ):
        choose(problem)


def test_a_selecting_penalty_gets_steps_on_features(rng) -> None:
    assert choose(binary_problem(rng, None, ElasticNet(0.1, 0.0))).name == "newton"
    assert choose(binary_problem(rng, Logistic(), Ridge(0.1))).name == "ridge-newton"


def test_the_hinge_with_an_l1_norm_gets_newton_steps_however_few_the_samples(rng) -> None:
    made = hinge_net_problem(rng)
    wide = replace(made, penalty=ElasticNet(0.05, 0.0))
    assert choose(wide).name == "multiplier-newton"


def test_a_working_set_serves_hinges_of_very_wide_data_only_if_the_penalty_selects(rng) -> None:
    n, p = 6, 400
    loss = wrong_classes(Hinge(), np.arange(n) % 3, np.full(n, 1 / n), 3, float(n))
    wide = replace(multiclass_problem(rng, n=n, p=p), loss=loss)
    groups = SumToZeroGroups(GroupL2(Groups.features(p), 0.1))
    assert choose(replace(wide, penalty=groups)).solver == SOLVERS["ssnal"](working_set=True)
    ridge = replace(wide, penalty=SumToZero(ElasticNet(0.0, 0.1)))
    assert choose(ridge).solver == SOLVERS["ssnal"]()


def test_a_working_set_serves_nets_with_coupled_classes_or_many_features(rng) -> None:
    net, l1 = ElasticNet(0.01, 0.1), ElasticNet(0.01, 0.0)
    sums = multiclass_problem(rng, penalty=net, n=450, p=4)
    coupled = replace(sums, loss=Multinomial(np.arange(450) % 3, np.full(450, 1 / 450), 3, 450.0))
    many = multiclass_problem(rng, penalty=net, n=450, p=420)
    for problem in (coupled, many):
        assert choose(problem).solver == SOLVERS["fapg-ssnal"](working_set=True)
    for problem in (replace(coupled, penalty=SumToZero(l1)), sums):
        assert choose(problem).solver == SOLVERS["fapg-ssnal"]()


def test_a_solver_with_other_options_goes_on_where_it_gave_up(rng) -> None:
    """As another solver does, and no solver is asked twice."""
    problem = replace(class_problem(rng), penalty=GroupL2(Groups.features(5), 0.01))
    choice: Choice | None = choose(problem)
    asked = []
    while choice is not None:
        asked.append(choice.solver)
        choice = choice.following(problem)
    assert SOLVERS["ssnal"]() in asked
    assert SOLVERS["ssnal"](working_set=True) in asked
    assert len(asked) == len({repr(solver) for solver in asked})
