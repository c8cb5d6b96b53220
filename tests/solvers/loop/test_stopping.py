"""Rules of papers end runs by their own quantities, with solvers that have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from proxmargin import DWD, SVC, ElasticNetSVC, HuberizedSVC, MulticlassSVC, NuSVC
from proxmargin.optimality.composite import fenchel_dual
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import (
    RULES,
    FixedPoint,
    IterateChange,
    RelativeChange,
    StepResidual,
    Stop,
)
from proxmargin.solvers.papers.accelerated import (
    AcceleratedProximalGradient,
    FastProximalGradient,
)
from proxmargin.solvers.papers.primal_dual import PrimalDual
from tests.cases.problems import class_problem, ridge_problem

MET = "the stopping rule asked for was met"


def cancer(count: int = 150) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:count], y[:count]


def test_residuals_of_accelerated_steps_are_those_of_ito_et_al() -> None:
    problem = ridge_problem(np.random.default_rng(0))
    solver = FastProximalGradient()
    form = fenchel_dual(problem, whole=False, floor=solver.floor)
    state = solver.init(problem, problem.origin(), Stop(rule=FixedPoint(1e-9)))
    for _ in range(101):
        before, state = state, solver.step(problem, state)
        assert np.isfinite(state.point_residual) == (state.n_iter % 100 == 1)
    t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * before.t**2))
    base = before.u + (before.t - 1.0) / t * (before.u - before.u_old)
    assert state.t == pytest.approx(t)  # no restart in this step
    assert state.step_residual == pytest.approx(state.lipschitz * np.linalg.norm(state.u - base))
    gradient = form.gradient(state.u, form.backward(form.forward(state.u)))
    there = form.prox(state.u - gradient / state.lipschitz, 1.0 / state.lipschitz)
    residual = state.lipschitz * np.linalg.norm(there - state.u)
    assert state.point_residual == pytest.approx(residual)
    least = min(state.step_residual, state.point_residual)
    assert FixedPoint(least).met(state)
    assert not FixedPoint(0.99 * least).met(state)
    assert StepResidual(state.step_residual).met(state)


def test_residuals_cost_nothing_where_no_rule_asks_for_them() -> None:
    problem = ridge_problem(np.random.default_rng(0))
    solver = FastProximalGradient()
    state = solver.step(problem, solver.init(problem, problem.origin(), Stop()))
    assert state.step_residual == state.point_residual == np.inf


def test_the_change_of_iterates_is_that_of_chierchia_et_al() -> None:
    problem = class_problem(np.random.default_rng(0))
    solver = PrimalDual()
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(20):
        before, state = state, solver.step(problem, state)
    old, new = before.primal.coef, state.primal.coef
    change = np.linalg.norm(new - old) / np.linalg.norm(old)
    assert state.iterate_change == pytest.approx(change)
    assert IterateChange(change * 1.01).met(state)
    assert not IterateChange(change * 0.99).met(state)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "rule", "tol"),
    [
        (SVC(solver="fapg"), "step-residual", 1e-3),
        (NuSVC(nu=0.3, solver="fapg-guaranteed"), "fixed-point", 1e-5),
        (DWD(solver="fapg-star"), "fixed-point", 1e-5),
        (HuberizedSVC(solver="fapg", solver_options={"scaled": False}), "fixed-point", 1e-6),
        (HuberizedSVC(solver="b-pgh-2"), "relative-change", 1e-6),
        (NuSVC(nu=0.3, solver="apg"), "point-residual", 1e-5),
        (ElasticNetSVC(alpha=0.05, solver="isvm1"), "primal-residual", 1e-4),
        (ElasticNetSVC(alpha=0.05, solver="isvm2"), "relative-change", 1e-4),
    ],
)
def test_fits_end_by_the_rule_with_a_certificate(model: Any, rule: str, tol: float) -> None:
    model = model.set_params(stopping=rule, tol=tol).fit(*cancer())
    certificate = model.certificate_
    assert certificate.stop_reason == MET
    assert certificate.relative_gap <= 0.05


def test_primal_dual_splitting_ends_by_the_rule_of_its_paper() -> None:
    X, y = load_iris(return_X_y=True)
    model = MulticlassSVC(penalty="l1", solver="fbpd", stopping="iterate-change", tol=1e-3)
    assert model.fit(X, y).certificate_.stop_reason == MET


@pytest.mark.parametrize(
    ("model", "able"),
    [
        (MulticlassSVC(solver="fbpd", stopping="relative-change"), "'gap', 'iterate-change'"),
        (SVC(solver="fapg", stopping="iterate-change"), "'gap', 'relative-change'"),
        (SVC(solver="multiplier-newton", stopping="fixed-point"), "only by 'gap'"),
        (
            ElasticNetSVC(solver="isvm2", stopping="iterate-change"),
            "'gap', 'relative-change', 'primal",
        ),
        (HuberizedSVC(solver="fapg-ws", stopping="step-residual"), "'gap', 'relative-change'"),
    ],
)
def test_a_solver_without_the_quantities_refuses_the_rule(model: Any, able: str) -> None:
    rule = model.stopping
    with pytest.raises(ValueError, match=f"does not stop by '{rule}'.*{able}"):
        model.fit(*load_iris(return_X_y=True))


def test_solvers_name_rules_that_there_are() -> None:
    for make in SOLVERS.values():
        solver = make()
        assert set(solver.rules) <= set(RULES)
        assert not solver.stops_by("gap")


def test_a_rule_that_was_not_met_warns_whatever_the_gap() -> None:
    model = SVC(solver="fapg", stopping="step-residual", tol=1e-3, max_iter=30)
    with pytest.warns(UserWarning, match="the iteration limit was reached"):
        model.fit(*cancer())


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="stopping"):
        SVC(stopping="kkt").fit(*cancer())


@pytest.mark.slow
def test_a_printed_method_goes_on_while_its_objective_rises() -> None:
    # F of Algorithm 4 is above its least value for thousands of iterations on the way
    assert SVC(C=10.0, solver="fapg", tol=1e-7).fit(*cancer(569)).certificate_.converged


@pytest.mark.parametrize("solver", ["isvm2", "isvm3"])
def test_the_rule_of_liu_et_al_ends_at_its_first_hit(solver: str) -> None:
    distances: list[float] = []

    class Beside:
        every = 1

        def __call__(self, report: Any) -> None:
            distances.append(float(np.linalg.norm(report.state.smooth - report.state.sparse)))

    model = ElasticNetSVC(
        alpha=0.05, solver=solver, stopping="primal-residual", tol=1e-4, callbacks=[Beside()]
    )
    model.fit(*cancer())
    assert model.certificate_.stop_reason == MET
    assert len(distances) == model.n_iter_ + 1
    assert distances[-1] <= 1e-4
    assert min(distances[1:-1]) > 1e-4  # the start is no iteration


def changes(fall: float, step: float) -> Any:
    return SimpleNamespace(objective_change=fall, point_change=step)


def test_a_rise_meets_the_first_condition_of_rule_20_as_printed() -> None:
    rule = RelativeChange(1e-3)
    assert rule.met(changes(1e-4, 1e-4))
    assert not rule.met(changes(1e-2, 1e-4))
    assert rule.met(changes(-1e-2, 1e-4))  # (F_old - F_new) / (1 + F_old) <= tol
    assert not rule.met(changes(-1e-2, 1e-2))  # a rise alone ends nothing
    # leaving the domain of F is no rise; nor is the change from an unknown F
    assert not rule.met(changes(-np.inf, 1e-4))
    assert not rule.met(changes(np.nan, 1e-4))


@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_a_fit_ends_where_the_printed_rule_20_holds_three_times_in_a_row(tol: float) -> None:
    X, y = cancer()
    signs = np.where(y == 1, 1.0, -1.0)
    points: list[np.ndarray] = []

    class Beside:
        every = 1

        def __call__(self, report: Any) -> None:
            points.append(report.state.sparse)

    model = ElasticNetSVC(
        alpha=0.01, l1_ratio=0.5, solver="admm", fit_intercept=False, callbacks=[Beside()]
    )
    model.set_params(stopping="relative-change", tol=tol).fit(X, y)
    assert model.certificate_.stop_reason == MET
    F = [
        np.clip(1 - signs * (X @ u), 0, None).mean() + 0.005 * np.abs(u).sum() + 0.0025 * u @ u
        for u in points
    ]
    pairs = list(zip(points, points[1:], F, F[1:], strict=False))
    assert any(new > old for _, _, old, new in pairs)  # ADMM goes uphill
    met = [
        (old - new) / (1 + old) <= tol and np.linalg.norm(u - v) / (1 + np.linalg.norm(u)) <= tol
        for u, v, old, new in pairs
    ]
    hits = [k + 3 for k in range(len(met) - 2) if all(met[k : k + 3])]
    assert hits == [model.n_iter_]


def test_algorithms_1_and_3_compute_the_residual_of_the_iterate_each_time() -> None:
    problem, tol = ridge_problem(np.random.default_rng(0)), 1e-4
    solver = AcceleratedProximalGradient()
    form = fenchel_dual(problem, whole=False, floor=solver.floor)
    residuals, steps = [], []

    class Beside:
        every = 1

        def __call__(self, report: Any) -> None:
            state = report.state
            gradient = form.gradient(state.u, form.backward(form.forward(state.u)))
            there = form.prox(state.u - gradient / state.lipschitz, 1.0 / state.lipschitz)
            residuals.append(state.lipschitz * np.linalg.norm(there - state.u))
            steps.append(state.step_residual)

    stop = Stop(rule=FixedPoint(tol, every=1))
    found = minimize(problem, solver, stop=stop, callbacks=[Beside()])
    assert found.certificate.stop_reason == MET
    assert len(residuals) == found.certificate.n_iter + 1
    assert residuals[-1] <= tol
    assert min(residuals[1:-1]) > tol
    # the test of Algorithm 4, of the step, is another one
    printed = minimize(problem, solver, stop=Stop(rule=FixedPoint(tol)))
    assert printed.certificate.n_iter != found.certificate.n_iter


@pytest.mark.parametrize("every", [0, 2.5, True, "a"])
def test_an_interval_between_residuals_that_is_none_is_refused(every: Any) -> None:
    with pytest.raises(ValueError, match=f"every={every!r} must be an integer >= 1"):
        FixedPoint(1e-3, every=every)


def test_a_further_solver_has_its_own_work_where_the_fit_has_no_limit() -> None:
    further = Stop(most_further_work=1e3).further(7)
    assert (further.max_iter, further.most_work, further.effort.taken) == (7, 1e3, 0.0)
    assert Stop().further(None).most_work == np.inf
    limited = Stop(most_work=1e6, most_further_work=1e3)
    assert limited.further(None).most_work == 1e6
    assert limited.further(None).effort is limited.effort
