"""Dual forms against what defines them: sets, projections, proxes, divergences, conjugates."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from proxmargin.functions.traits import Trait
from proxmargin.losses import (
    DistanceWeighted,
    DualForm,
    Hinge,
    Logistic,
    Loss,
    MarginLoss,
    MarginSum,
    MinimaxFisher,
    MinimaxProbability,
    Rescaled,
    TailMean,
)
from proxmargin.penalties import Penalty
from tests.cases import COUPLED, INTERCEPTS, MARGIN_LOSSES, binary_sum, multiclass_sum

LOSSES = {
    **{k: (lambda rng, n=12, phi=phi: binary_sum(phi, rng, n)) for k, phi in MARGIN_LOSSES.items()},
    **COUPLED,
}
every_loss = pytest.mark.parametrize("name", LOSSES)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS["binary"])
FLOOR = 1e-3


def made(name: str, intercept: str, rng, n: int = 12) -> tuple[Loss, Penalty, DualForm]:
    loss, penalty = LOSSES[name](rng, n), INTERCEPTS["binary"][intercept]
    form = loss.dual_form(penalty, FLOOR)
    assert form is not None
    return loss, penalty, form


def of_logistic(phi: MarginLoss) -> bool:
    """Whether the conjugate is not smooth at both ends of its domain."""
    return isinstance(phi.phi if isinstance(phi, Rescaled) else phi, Logistic)


def rough(loss: Loss) -> bool:
    """Whether the conjugate is not smooth at an end of its domain."""
    if not isinstance(loss, MarginSum):
        return False
    return of_logistic(loss.phi) or isinstance(loss.phi, DistanceWeighted)


def constraints(loss: Loss, intercept: str, u: cp.Variable, form: DualForm, floor: float) -> list:
    """The set of u, written down from the definition of the loss."""
    q = form.offset + cp.multiply(form.scale, u)
    signs, shares = np.ravel(loss.signs), np.ravel(getattr(loss, "weights", loss.shares))
    a = -cp.multiply(signs, q)
    up, down = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
    found = [u[form.scale == 0] == 0] if np.any(form.scale == 0) else []
    if isinstance(loss, MarginSum):
        top = loss.phi.dual_bound
        low = floor * top * shares if rough(loss) else 0.0 * shares
        found.append(a >= low)
        if np.isfinite(top):
            found.append(a <= top * shares - (low if of_logistic(loss.phi) else 0))
        return [*found, cp.sum(q) == 0] if intercept == "free" else found
    if isinstance(loss, TailMean):
        found += [a >= 0, a <= shares / loss.nu]
        halves = [cp.sum(a[up]) == 0.5, cp.sum(a[down]) == 0.5]
        return found + (halves if intercept == "free" else [cp.sum(a) == 1])
    inside = np.where(signs > 0, shares / shares[up].sum(), shares / shares[down].sum())
    r = np.sqrt(inside)
    found += [cp.sum(cp.multiply(r[one], u[one])) == 0 for one in (up, down)]
    balls = [u] if isinstance(loss, MinimaxFisher) else [u[up], u[down]]
    return found + [cp.norm(part) <= 1 for part in balls]


def conjugate_of(loss: Loss, u: cp.Variable, form: DualForm) -> cp.Expression:
    """``L*`` at the dual point of u, from the table of conjugates."""
    if not isinstance(loss, MarginSum):
        return cp.Constant(0.0)
    live = np.flatnonzero(form.scale)
    w = loss.weights[live, 0]
    a = cp.multiply(u[live], 1 / np.sqrt(w))
    if isinstance(loss.phi, Rescaled):
        c = a / (loss.phi.height * loss.phi.slope)
        within = loss.phi.height * (-cp.entr(c) - cp.entr(1 - c))
        return cp.sum(cp.multiply(w, within + loss.phi.shift / loss.phi.slope * a))
    if isinstance(loss.phi, Logistic):
        return cp.sum(cp.multiply(w, -cp.entr(a) - cp.entr(1 - a)))
    if isinstance(loss.phi, DistanceWeighted):
        return cp.sum(cp.multiply(w, -2 * cp.sqrt(a)))
    assert loss.phi.has_quadratic_conjugate, f"add the conjugate of {loss.phi!r} here"
    bend = 0.5 / loss.phi.smoothness
    return cp.sum(cp.multiply(w, -a + bend * cp.square(a)))


def minimised(objective: cp.Expression, u: cp.Variable, limits: list) -> np.ndarray:
    cp.Problem(cp.Minimize(objective), limits).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return np.asarray(u.value)


def test_a_loss_of_several_outputs_has_no_dual_form(rng) -> None:
    loss = multiclass_sum(Hinge(), rng)
    assert loss.dual_form(INTERCEPTS["multiclass"]["free"]) is None
    assert Trait.DUAL_FORM not in loss.traits


@every_loss
@every_intercept
def test_dual_points_of_projections_and_proxes_are_in_the_domain(name, intercept, rng) -> None:
    loss, penalty, form = made(name, intercept, rng)
    assert Trait.DUAL_FORM in loss.traits
    for size in (0.1, 1.0, 30.0, 1e4):
        for u in (
            form.centre(),
            form.project(size * rng.standard_normal(12)),
            *(form.prox(size * rng.standard_normal(12), step) for step in (1e-3, 1.0, 1e3)),
        ):
            dual = form.dual_point(u)[:, None]
            # square roots of weights come and go: the domain takes back an ulp of that
            inside = loss.balanced(dual, penalty)
            np.testing.assert_allclose(inside, dual, rtol=1e-14, atol=1e-15)
            assert np.isfinite(loss.conjugate(inside))
            if intercept == "free":
                assert abs(dual.sum()) <= 1e-15 * max(1.0, np.abs(dual).sum())


@every_loss
@every_intercept
def test_coordinates_and_dual_points_are_inverse(name, intercept, rng) -> None:
    _, _, form = made(name, intercept, rng)
    u = np.where(form.scale == 0, 0.0, form.project(rng.standard_normal(12)))
    np.testing.assert_allclose(form.coordinates(form.dual_point(u)), u, atol=1e-14)


@every_loss
@every_intercept
def test_the_projection_is_the_nearest_point(name: str, intercept: str, rng) -> None:
    loss, _, form = made(name, intercept, rng)
    for size in (0.3, 3.0):
        point = np.where(form.scale == 0, 0.0, size * rng.standard_normal(12))
        u = cp.Variable(12)
        limits = constraints(loss, intercept, u, form, FLOOR)
        found = minimised(cp.sum_squares(u - point), u, limits)
        np.testing.assert_allclose(form.project(point), found, atol=1e-6)


@pytest.mark.pairwise
@every_loss
@every_intercept
@pytest.mark.parametrize("step", [0.1, 5.0])
def test_the_prox_minimises_what_defines_it(name: str, intercept: str, step: float, rng) -> None:
    loss, _, form = made(name, intercept, rng)
    for size in (0.3, 3.0):
        point = np.where(form.scale == 0, 0.0, size * rng.standard_normal(12))
        u = cp.Variable(12)
        limits = constraints(loss, intercept, u, form, 0.0)
        objective = conjugate_of(loss, u, form) + cp.sum_squares(u - point) / (2 * step)
        found = minimised(objective, u, limits)
        np.testing.assert_allclose(form.prox(point, step), found, atol=2e-5)


@pytest.mark.pairwise
@every_loss
@pytest.mark.parametrize("step", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e5])
def test_the_prox_meets_its_optimality_condition(name: str, step, size, rng) -> None:
    loss, _, form = made(name, "free", rng, n=40)
    if not isinstance(loss, MarginSum):
        pytest.skip("prox and projection are the same")
    point = size * rng.standard_normal(40)
    u = form.prox(point, step)
    # margins t = -(c - a) / step + theta y: one theta must make all Fenchel-Young terms vanish
    live = form.scale != 0
    w, y = loss.weights[live, 0], loss.signs[live, 0]
    a = np.clip((u[live] / np.sqrt(w)), 0, loss.phi.dual_bound)
    t = (a - point[live] / np.sqrt(w)) / step
    inside = (a > 1e-6 * min(loss.phi.dual_bound, 1)) & (a < loss.phi.dual_bound * (1 - 1e-6))
    if not inside.any():
        pytest.skip("all samples are at ends of the box: many theta")
    theta = np.median((y * (-loss.phi.conjugate_slope(a) - t))[inside])
    terms = loss.phi.fenchel_young(t + theta * y, a)
    scale = 1 + np.abs(theta) + np.abs(t).max()
    assert float(w @ terms) <= 1e-11 * scale


@every_loss
@every_intercept
def test_values_are_those_of_the_conjugate(name: str, intercept: str, rng) -> None:
    loss, penalty, form = made(name, intercept, rng)
    for _ in range(5):
        u = form.project(rng.standard_normal(12))
        dual = loss.balanced(form.dual_point(u)[:, None], penalty)
        assert form.value(u) == pytest.approx(loss.conjugate(dual), rel=1e-12, abs=1e-14)
        assert form.smooth_value(u) == pytest.approx(form.value(u), rel=1e-12, abs=1e-14)


@every_loss
@every_intercept
def test_the_smooth_gradient_is_the_central_difference(name, intercept, rng) -> None:
    _, _, form = made(name, intercept, rng)
    u = 0.5 * form.centre() + 0.5 * form.project(rng.standard_normal(12))
    h = 1e-7
    gradient = form.smooth_gradient(u)
    for i in np.flatnonzero(form.scale):
        step = h * (np.arange(12) == i)
        if not all(np.isfinite(form.smooth_value(v)) for v in (u + step, u - step)):
            continue
        slope = (form.smooth_value(u + step) - form.smooth_value(u - step)) / (2 * h)
        assert slope == pytest.approx(gradient[i], rel=1e-4, abs=1e-6)


@every_loss
@every_intercept
def test_the_smooth_divergence_is_the_difference_from_the_tangent(name, intercept, rng) -> None:
    _, _, form = made(name, intercept, rng)
    for size in (1e-9, 1e-3, 1.0):
        base = form.project(rng.standard_normal(12))
        u = form.project(base + size * rng.standard_normal(12))
        gradient = form.smooth_gradient(base)
        plain = form.smooth_value(u) - form.smooth_value(base) - gradient @ (u - base)
        found = form.smooth_divergence(u, base)
        assert found >= 0
        scale = 1 + np.abs(gradient).max()
        assert found == pytest.approx(plain, rel=1e-7, abs=1e-14 * scale)
        most = 0.5 * form.smooth_curvature() * float((u - base) @ (u - base))
        assert found <= most * (1 + 1e-6) + 1e-16 * scale
    assert form.smooth_divergence(base, base) == 0


@pytest.mark.parametrize("name", ["logistic", "distance-weighted"])
def test_without_a_floor_there_is_no_curvature_bound(name: str, rng) -> None:
    loss = LOSSES[name](rng)
    assert loss.dual_form(INTERCEPTS["binary"]["free"]).smooth_curvature() == np.inf
    assert loss.dual_form(INTERCEPTS["binary"]["free"], 1e-4).smooth_curvature() < np.inf
    with pytest.raises(ValueError, match="floor"):
        loss.dual_form(INTERCEPTS["binary"]["free"], 0.5)


def test_a_floor_that_one_light_class_cannot_keep_is_lowered() -> None:
    signs = np.where(np.arange(1000) == 0, 1.0, -1.0)[:, None]
    loss = MarginSum(Logistic(), signs, np.full((1000, 1), 1e-3), 1000.0)
    form = loss.dual_form(INTERCEPTS["binary"]["free"], 0.1)
    u = form.project(np.zeros(1000))
    assert abs(form.dual_point(u).sum()) <= 1e-15


@pytest.mark.parametrize("kind", [TailMean, MinimaxFisher, MinimaxProbability])
def test_equal_weights_give_plain_coordinates(kind, rng) -> None:
    signs = np.where(np.arange(10) < 5, 1.0, -1.0)
    loss = kind(signs, np.full(10, 0.1), 0.5, 10.0)
    form = loss.dual_form(INTERCEPTS["binary"]["free"])
    size = 1.0 if kind is TailMean else 0.5 / np.sqrt(5)
    np.testing.assert_allclose(np.abs(form.scale), size, rtol=1e-14)
