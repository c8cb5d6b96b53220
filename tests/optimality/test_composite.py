"""What both forms of a problem keep, for every loss with a dual form and every smooth conjugate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proxmargin.data.designs import DenseDesign, standardized
from proxmargin.functions.traits import Trait
from proxmargin.optimality.composite import (
    CompositeForm,
    FenchelDual,
    PrimalForm,
    fenchel_dual,
    lives_on_the_dual,
    primal_form,
    scaled_form,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import Ball, ElasticNet, Pinned, Ridge
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.accelerated import (
    FastProximalGradientStar,
    GuaranteedProximalGradient,
)
from tests.cases import COUPLED, INTERCEPTS, MARGIN_LOSSES, binary_sum, into_domain

LOSSES: dict[str, Any] = {
    **{k: (lambda rng, phi=phi: binary_sum(phi, rng)) for k, phi in MARGIN_LOSSES.items()},
    **COUPLED,
}
PENALTIES = {
    "ridge": Ridge(0.7),
    "elastic net": ElasticNet(0.05, 0.5),
    "ball": Ball(2.0, 1.5),
    "ball, p small": Ball(1.5, 1.5),
    "ball, p large": Ball(4.0, 2.0),
}
FLOOR = 1e-2

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS["binary"])
every_split = pytest.mark.parametrize("whole", [True, False], ids=["whole", "split"])


def problem_of(loss: str, penalty: str, intercept: str, rng: np.random.Generator) -> Problem:
    made = LOSSES[loss](rng)
    X = rng.standard_normal((12, 4)) + 0.3
    return Problem(made, PENALTIES[penalty], DenseDesign(X), INTERCEPTS["binary"][intercept])


def dual_points(form: FenchelDual, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two different points of the set on which f is smooth."""
    size = form.dual_form.scale.size
    steps = rng.standard_normal((2, size))
    return tuple(form.dual_form.project(form.dual_form.centre() + 0.3 * step) for step in steps)


def primal_points(form: PrimalForm, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    width = form.problem.design.n_features + 1
    return rng.standard_normal((width, 1)), rng.standard_normal((width, 1))


def check_form(form: CompositeForm, u: np.ndarray, v: np.ndarray) -> None:
    """Affine images, backwards that are linear if they say so, gradients, divergences."""

    def value(at: np.ndarray) -> float:
        return form.smooth_value(at, form.forward(at))

    middle, apart = 0.5 * (u + v), v - u
    for weight in (0.25, 1.5):
        mixed = form.forward(u + weight * apart)
        combined = form.forward(u) + weight * (form.forward(v) - form.forward(u))
        np.testing.assert_allclose(mixed, combined, atol=1e-12 * (1 + np.abs(combined).max()))
    backwards = [form.backward(form.forward(at)) for at in (u, v)]
    if form.is_linear_backward:
        beyond = backwards[1].moved(backwards[0], 0.7)
        there = form.backward(form.forward(v + 0.7 * (v - u)))
        for part, expected in zip(beyond, there, strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-10 * (1 + np.abs(expected).max()))
    gradient = form.gradient(middle, form.backward(form.forward(middle)))
    assert gradient.shape == middle.shape
    h = 1e-5
    slope = (value(middle + h * apart) - value(middle - h * apart)) / (2 * h)
    size = np.linalg.norm(gradient) * np.linalg.norm(apart)
    assert np.vdot(gradient, apart) == pytest.approx(slope, abs=2e-4 * size + 1e-8)
    base = form.gradient(u, backwards[0])
    found = form.divergence(v, form.forward(v), u, backwards[0].partner)
    definition = value(v) - value(u) - float(np.vdot(base, apart))
    rounding = 1e-11 * (1 + abs(value(v)) + abs(value(u)) + abs(float(np.vdot(base, apart))))
    assert found == pytest.approx(definition, abs=rounding)
    assert found >= -rounding
    bound = form.curvature_bound()
    if np.isfinite(bound):
        assert found <= 0.5 * bound * float(np.vdot(apart, apart)) * (1 + 1e-9) + rounding


@pytest.mark.pairwise
@every_loss
@every_penalty
@every_intercept
@every_split
def test_the_dual_side_is_what_it_says(loss, penalty, intercept, whole, rng) -> None:
    problem = problem_of(loss, penalty, intercept, rng)
    form = FenchelDual(problem, whole=whole, floor=0.0 if whole else FLOOR)
    check_form(form, *dual_points(form, rng))


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "loss", [name for name, phi in MARGIN_LOSSES.items() if np.isfinite(phi.smoothness)]
)
@every_penalty
@pytest.mark.parametrize("scaled", [False, True])
def test_the_primal_side_is_what_it_says(loss, penalty, scaled, rng) -> None:
    problem = problem_of(loss, penalty, "free", rng)
    coordinates = standardized(problem.design, problem.loss.shares) if scaled else None
    form = PrimalForm(problem, coordinates)
    check_form(form, *primal_points(form, rng))


@pytest.mark.pairwise
@every_loss
@every_penalty
@every_intercept
def test_values_of_the_two_sides_never_sum_to_less_than_zero(loss, penalty, intercept, rng) -> None:
    problem = problem_of(loss, penalty, intercept, rng)
    pinned = isinstance(problem.intercept, Pinned)
    for _ in range(20):
        coef = into_domain(problem.penalty, 2.0 * rng.standard_normal((4, 1)))
        point = Point(coef, np.zeros(1) if pinned else 2.0 * rng.standard_normal(1))
        primal = problem.value(point)
        for whole in (True, False):
            form = FenchelDual(problem, whole=whole, floor=0.0 if whole else FLOOR)
            u = form.prox(3.0 * rng.standard_normal(12), 0.5)
            dual = form.value(u, form.forward(u))
            assert primal + dual >= -1e-12 * (1 + abs(primal) + abs(dual))


@pytest.mark.pairwise
@every_loss
@every_penalty
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_the_sides_meet_at_the_optimum(loss, penalty, intercept, rng) -> None:
    problem = problem_of(loss, penalty, intercept, rng)
    solution = minimize(problem, choose(problem).solver, stop=Stop(tol=1e-7, max_iter=1000))
    form = FenchelDual(problem, whole=True)
    u = form.dual_form.project(form.dual_form.coordinates(solution.gap.dual_point[:, 0]))
    primal, dual = solution.certificate.primal, form.value(u, form.forward(u))
    negligible = solution.gap.negligible
    assert solution.certificate.converged
    assert primal + dual == pytest.approx(0.0, abs=3e-7 * max(abs(primal), negligible))


@pytest.mark.sampled(10)
@every_loss
@pytest.mark.parametrize("penalty", ["ridge", "elastic net"])
@every_intercept
@every_split
def test_the_guaranteed_method_goes_down_to_the_optimum_of_the_dual(
    loss, penalty, intercept, whole, rng
) -> None:
    problem = problem_of(loss, penalty, intercept, rng)
    form = fenchel_dual(problem, whole=whole, floor=0.0 if whole else FLOOR)
    solver = FastProximalGradientStar() if whole else GuaranteedProximalGradient(floor=FLOOR)
    if not lives_on_the_dual(problem):  # a smooth loss with a penalty that selects
        assert Trait.SMOOTH in problem.loss.traits
        assert isinstance(solver._form(problem), PrimalForm)
        return
    state = solver.init(problem, problem.origin(), Stop())
    values, best = [state.objective], np.inf
    for _ in range(50):
        state = solver.step(problem, state)
        assert state.objective == pytest.approx(form.value(state.u, state.forward), rel=1e-12)
        values.append(state.objective)
        best = min(best, state.objective)
    assert max(values) <= values[0] + 1e-12 * (1 + abs(values[0]))
    # the best so far falls by ever less: the last part of the way is short
    fallen = values[0] - best
    assert min(values[:31]) - best <= 0.05 * fallen + 1e-12


@pytest.mark.parametrize("make", [primal_form, scaled_form])
def test_points_go_to_a_side_and_back(make, rng) -> None:
    problem = problem_of("logistic", "ridge", "free", rng)
    form = make(problem)
    point = Point(rng.standard_normal((4, 1)), rng.standard_normal(1))
    u = form.start(point)
    again = form.point(u, form.forward(u))
    np.testing.assert_allclose(again.coef, point.coef, atol=1e-13)
    np.testing.assert_allclose(again.intercept, point.intercept, atol=1e-13)
    value = form.value(u, form.forward(u))
    assert value == pytest.approx(problem.value(point), rel=1e-13)
    assert make(problem) is form  # made once


@every_loss
def test_a_dual_side_starts_inside_its_set(loss, rng) -> None:
    for penalty in ("ridge", "ball"):
        for intercept in INTERCEPTS["binary"]:
            problem = problem_of(loss, penalty, intercept, rng)
            form = FenchelDual(problem, whole=True)
            for coef in (np.zeros((4, 1)), rng.standard_normal((4, 1))):
                u = form.start(Point(coef, np.zeros(1)))
                np.testing.assert_allclose(form.dual_form.project(u), u, atol=1e-12)
                assert np.isfinite(form.value(u, form.forward(u)))


def test_which_side_is_taken_is_decided_by_kinks_selection_and_balls(rng) -> None:
    def taken(loss: str, penalty: Any) -> bool:
        made = problem_of(loss, "ridge", "free", rng)
        return lives_on_the_dual(Problem(made.loss, penalty, made.design, made.intercept))

    assert taken("hinge", Ridge(0.1))
    assert taken("logistic", Ridge(0.1))
    assert taken("hinge", ElasticNet(0.1, 0.1))
    assert not taken("logistic", ElasticNet(0.1, 0.1))
    assert not taken("hinge", ElasticNet(0.1, 0.0))
    assert taken("tail mean", Ball(3.0, 1.0))
    assert taken("hinge", Ball(1.5, 1.0))
    assert not taken("logistic", Ball(1.5, 1.0))  # fewer features than samples
    assert taken("logistic", Ball(2.0, 1.0))
    assert Trait.SMOOTH_CONJUGATE not in Ridge(0.0).traits


def test_a_loss_without_a_dual_form_has_no_dual_side(rng) -> None:
    from tests.cases import multiclass_problem

    with pytest.raises(TypeError, match="no dual form"):
        FenchelDual(multiclass_problem(rng), whole=True)
