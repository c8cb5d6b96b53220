"""Accelerated steps and then Newton steps: when the baton changes hands, and that it may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from proxmargin.data.designs import DenseDesign, as_design
from proxmargin.losses import CrammerSinger, Hinge, HuberizedHinge, Logistic, Loss, wrong_classes
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import smooth_critical_strength
from proxmargin.penalties import (
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    SumToZero,
    SumToZeroGroups,
)
from proxmargin.solvers import wrappers
from proxmargin.solvers.augmented.ssnal import SemismoothNewton
from proxmargin.solvers.choice.names import SOLVERS, choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.wrappers import Relay
from tests.shared_data import load_set, needs_data

FREE = SumToZero(ElasticNet(0.0))


def problem(rng: np.random.Generator, n: int, p: int, delta: float = 0.02, l2: float = 0.0):
    """Four classes in correlated features, which first-order methods are slow on."""
    codes = np.arange(n) % 4
    factors = rng.standard_normal((n, 4)) + 2.0 * np.eye(4)[codes]
    X = factors @ rng.standard_normal((4, p)) + 0.3 * rng.standard_normal((n, p))
    loss = wrong_classes(HuberizedHinge(delta), codes, np.full(n, 1 / n), 4, float(n))
    made = Problem(loss, SumToZero(ElasticNet(0.1, l2)), DenseDesign(X), FREE)
    strength = 0.02 * smooth_critical_strength(made)
    return replace(made, penalty=SumToZero(ElasticNet(strength, l2)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("working_set", [False, True], ids=["all", "working set"])
@pytest.mark.parametrize(("n", "p"), [(40, 200), (400, 20), (300, 300)])
def test_it_reaches_the_optimum_of_the_papers_method(
    working_set: bool, n: int, p: int, rng
) -> None:
    made = problem(rng, n, p, delta=1.0, l2=0.1)
    solution = minimize(made, SOLVERS["fapg-ssnal"](working_set=working_set), stop=Stop(tol=1e-10))
    assert solution.status is Status.CONVERGED
    check = minimize(made, SOLVERS["m-pgh"](), stop=Stop(tol=1e-8))
    assert check.status is Status.CONVERGED
    assert solution.certificate.primal == pytest.approx(check.certificate.primal, rel=2e-8)


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        pytest.param(GroupL2, "every wrong class", marks=pytest.mark.slow),
        (GroupLinf, "every wrong class"),
        pytest.param(GroupL2, "worst class", marks=pytest.mark.slow),
        pytest.param(GroupLinf, "worst class", marks=pytest.mark.slow),
    ],
)
def test_primal_dual_steps_pass_it_on_to_newton_steps(norm: Any, kind: str, rng) -> None:
    made = problem(rng, 400, 12)
    codes, shares = np.arange(400) % 4, np.full(400, 1 / 400)
    groups: Penalty = norm(Groups.features(12), 0.01)
    loss: Loss = CrammerSinger(codes, shares, 4, 400.0)
    if kind == "every wrong class":
        loss, groups = wrong_classes(Hinge(), codes, shares, 4, 400.0), SumToZeroGroups(groups)
    made = replace(made, loss=loss, penalty=groups)
    solution = minimize(made, SOLVERS["fapg-ssnal"](first="fbpd"), stop=Stop(tol=1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.state.leg == 1
    assert solution.state.base > 0
    check = minimize(made, SemismoothNewton(), stop=Stop(tol=1e-9))
    assert solution.certificate.primal == pytest.approx(check.certificate.primal, rel=2e-9)


def test_many_hinges_of_groups_are_given_to_it(rng) -> None:
    codes = np.arange(2600) % 4
    made = problem(rng, 2600, 3)
    loss = CrammerSinger(codes, np.full(2600, 1 / 2600), 4, 2600.0)
    made = replace(made, loss=loss, penalty=GroupL2(Groups.features(3), 0.01))
    assert choose(made).solver == SOLVERS["fapg-ssnal"](first="fbpd")


def test_data_without_entries_have_the_null_model(rng) -> None:
    made = problem(rng, 600, 5)
    empty = replace(made, design=as_design(sparse.csr_array((600, 5))))
    solution = minimize(empty, Relay(), stop=Stop(tol=1e-9))
    assert solution.status is Status.CONVERGED
    assert not solution.point.coef.any()


def test_few_samples_get_newton_steps_from_the_start(rng) -> None:
    solution = minimize(problem(rng, 40, 200), Relay(), stop=Stop(tol=1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.state.leg == 1
    assert solution.state.base == 0


def test_the_baton_changes_hands_where_first_order_steps_are_slow(rng) -> None:
    made = problem(rng, 600, 30)
    solution = minimize(made, Relay(), stop=Stop(tol=1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.state.leg == 1
    assert solution.state.base > 0
    alone = minimize(made, SOLVERS["fapg"](), stop=Stop(tol=1e-9))
    assert solution.certificate.n_iter < 0.5 * alone.certificate.n_iter


def test_an_easy_problem_never_changes_hands(rng) -> None:
    solution = minimize(problem(rng, 600, 30, delta=1.0, l2=10.0), Relay(), stop=Stop(tol=1e-6))
    assert solution.status is Status.CONVERGED
    assert solution.state.leg == 0


class GivesUp(SemismoothNewton):
    """Finishes after its first subproblem, of short steps, solved or not."""

    def init(self, problem: Problem, start: Any, stop: Stop) -> Any:
        state = super().init(problem, start, stop)
        return replace(state, tau=state.tau / 30, tau_b=state.tau_b / 30, ts=state.ts / 30)

    def step(self, problem: Problem, state: Any) -> Any:
        return replace(super().step(problem, state), finished=True)

    def observe(self, problem: Problem, state: Any, gap: Any) -> Any:
        return state


def test_a_second_method_that_gives_up_hands_back_and_tries_again_nearer(rng) -> None:
    solution = minimize(problem(rng, 600, 30), Relay(second=GivesUp()), stop=Stop(tol=1e-7))
    assert solution.status is Status.CONVERGED
    # each time at less than a third of the gap
    assert 2 <= solution.state.leg <= 2 * np.ceil(np.log(1e7) / np.log(1 / 0.3))


@pytest.mark.slow
def test_it_waits_until_the_second_method_is_near(rng) -> None:
    made = problem(rng, 600, 30)
    for near in (1e-3, 1e-5):
        relay = Relay(near=near, far_steps=np.inf)
        solution = minimize(made, relay, stop=Stop(tol=1e-9))
        assert solution.certificate.converged
        assert solution.state.handed <= near


def test_a_first_method_that_gives_up_ends_the_run(rng, monkeypatch) -> None:
    class Quitting(type(Relay().first)):  # type: ignore[misc]
        def step(self, problem, state):
            return replace(super().step(problem, state), finished=True)

    monkeypatch.setattr(wrappers, "_newton_step_work", lambda problem, gap: np.inf)
    solution = minimize(problem(rng, 600, 30), Relay(first=Quitting()), stop=Stop(tol=1e-9))
    assert solution.status is Status.STALLED
    assert solution.certificate.n_iter <= 1


def test_iterations_of_both_methods_count_and_are_limited(rng) -> None:
    made = problem(rng, 600, 30)
    whole = minimize(made, Relay(), stop=Stop(tol=1e-9))
    base = whole.state.base
    for limit in (base - 5, base + 3):
        part = minimize(made, Relay(), stop=Stop(tol=1e-9, max_iter=limit))
        assert part.status is Status.ITERATION_LIMIT
        assert part.certificate.n_iter <= limit + 1


def test_the_second_method_starts_from_the_dual_point_of_the_certificate(rng) -> None:
    made, relay = problem(rng, 600, 30), Relay()
    state = relay.init(made, made.origin(), Stop(tol=1e-9))
    while state.leg == 0:
        state = relay.step(made, state)
        gap = certify(made, relay.point(made, state), scores=relay.scores(made, state))
        state = relay.observe(made, state, gap)
    np.testing.assert_allclose(state.inner.dual, gap.dual_point, atol=1e-12)
    np.testing.assert_allclose(relay.point(made, state).coef, gap.point.coef, atol=1e-12)
    again = certify(made, relay.point(made, state), dual=relay.dual(made, state))
    assert again.gap == pytest.approx(gap.gap, rel=1e-6)


def test_it_takes_what_both_take(rng) -> None:
    made = problem(rng, 40, 20)
    codes, shares = np.arange(40) % 4, np.full(40, 1 / 40)
    kinked = replace(made, loss=CrammerSinger(codes, shares, 4, 40.0), penalty=ElasticNet(0.1))
    assert "Lipschitz" in str(Relay().objection(kinked))
    logistic = replace(made, loss=wrong_classes(Logistic(), codes, shares, 4, 40.0))
    assert "known derivative" in str(Relay().objection(logistic))
    assert Relay().objection(made) is None


@needs_data("data/srbct.npz", "data/satimage.npz")
@pytest.mark.parametrize(("name", "working_set"), [("srbct", True), ("satimage", False)])
def test_auto_takes_it_for_all_classes_together(name: str, working_set: bool) -> None:
    X, y = load_set(name, rows=300)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    codes = np.unique(y, return_inverse=True)[1]
    count, shares = int(codes.max()) + 1, np.full(codes.size, 1 / codes.size)
    loss = wrong_classes(HuberizedHinge(0.1), codes, shares, count, float(codes.size))
    made = Problem(loss, SumToZero(ElasticNet(0.02, 0.01)), DenseDesign(X), FREE)
    chosen = choose(made)
    assert chosen.solver == SOLVERS["fapg-ssnal"](working_set=working_set)
    solution = minimize(made, chosen.solver, stop=Stop(tol=1e-9))
    assert solution.status is Status.CONVERGED
