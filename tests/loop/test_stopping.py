"""Rules of papers end runs by their own quantities, with solvers that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from proxmargin import DWD, SVC, HuberizedSVC, MulticlassSVC, NuSVC
from proxmargin.loop.stopping import RULES, FixedPoint, IterateChange, StepResidual, Stop
from proxmargin.sides import dual_side
from proxmargin.solvers.first_order.accelerated import FastProximalGradient
from proxmargin.solvers.first_order.primal_dual import PrimalDual
from proxmargin.solvers.names import SOLVERS
from tests.cases.problems import class_problem, ridge_problem

MET = "the stopping rule asked for was met"


def cancer(count: int = 150) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:count], y[:count]


def test_residuals_of_accelerated_steps_are_those_of_ito_et_al() -> None:
    problem = ridge_problem(np.random.default_rng(0))
    solver = FastProximalGradient()
    side = dual_side(problem, whole=False, floor=solver.floor)
    state = solver.init(problem, problem.origin(), Stop(rule=FixedPoint(1e-9)))
    for _ in range(101):
        before, state = state, solver.step(problem, state)
        assert np.isfinite(state.point_residual) == (state.n_iter % 100 == 1)
    t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * before.t**2))
    base = before.u + (before.t - 1.0) / t * (before.u - before.u_old)
    assert state.t == pytest.approx(t)  # no restart in this step
    assert state.step_residual == pytest.approx(state.lipschitz * np.linalg.norm(state.u - base))
    gradient = side.gradient(state.u, side.response(side.image(state.u)))
    image = side.prox(state.u - gradient / state.lipschitz, 1.0 / state.lipschitz)
    residual = state.lipschitz * np.linalg.norm(image - state.u)
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


@pytest.mark.parametrize(
    ("model", "rule", "tol"),
    [
        (SVC(solver="fapg"), "step-residual", 1e-3),
        (NuSVC(nu=0.3, solver="fapg-guaranteed"), "fixed-point", 1e-5),
        (DWD(solver="fapg-star"), "fixed-point", 1e-5),
        (HuberizedSVC(solver="fapg", solver_options={"scaled": False}), "fixed-point", 1e-6),
        (HuberizedSVC(solver="b-pgh-2"), "relative-change", 1e-6),
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
        (SVC(solver="hinge-newton", stopping="fixed-point"), "only by 'gap'"),
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
