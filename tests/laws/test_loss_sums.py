"""Laws of losses of all samples: gradient, dual points, the exact intercept, declared traits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from proxmargin.functions.traits import Trait
from proxmargin.losses import DistanceWeighted, Hinge, Logistic, MarginLoss, MarginSum
from proxmargin.penalties import Penalty
from tests.cases import INTERCEPTS, MARGIN_LOSSES, SMOOTH_LOSSES, SUMS
from tests.unchanged import unchanged

every_sum = pytest.mark.parametrize("kind", SUMS)
every_loss = pytest.mark.parametrize("phi", MARGIN_LOSSES.values(), ids=MARGIN_LOSSES.keys())
every_smooth_loss = pytest.mark.parametrize("phi", SMOOTH_LOSSES.values(), ids=SMOOTH_LOSSES.keys())
every_intercept = pytest.mark.parametrize("intercept", ["free", "ridge", "none"])


def random_dual(loss: MarginSum, rng: np.random.Generator) -> np.ndarray:
    """A point in the domain of the conjugate, zero where the weights are."""
    shares = rng.random(loss.signs.shape) * min(loss.phi.dual_bound, 3.0)
    return -loss.weights * loss.signs * shares


@every_sum
@every_smooth_loss
def test_gradient_is_the_central_difference(kind: str, phi: MarginLoss, rng) -> None:
    loss = SUMS[kind](phi, rng)
    scores = 3 * rng.standard_normal(loss.signs.shape)
    _, gradient = loss.value_and_gradient(scores)
    h = 1e-6
    for index in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[index] += h
        down[index] -= h
        slope = (loss.value(up) - loss.value(down)) / (2 * h)
        # next to a kink the difference sees half of the jump in curvature
        assert slope == pytest.approx(gradient[index], abs=1e-8 + h * phi.smoothness)


@every_sum
@every_loss
def test_value_and_gradient_returns_the_value(kind: str, phi: MarginLoss, rng) -> None:
    loss = SUMS[kind](phi, rng)
    scores = 5 * rng.standard_normal(loss.signs.shape)
    value, gradient = loss.value_and_gradient(scores)
    assert value == pytest.approx(loss.value(scores), rel=1e-14)
    assert not np.any(gradient[loss.weights == 0])


@every_sum
@every_loss
def test_fenchel_young_is_value_plus_conjugate_minus_product(kind: str, phi, rng) -> None:
    loss = SUMS[kind](phi, rng)
    for _ in range(20):
        scores, dual = 4 * rng.standard_normal(loss.signs.shape), random_dual(loss, rng)
        plain = loss.value(scores) + loss.conjugate(dual) - float(np.vdot(scores, dual))
        term = loss.fenchel_young(scores, dual)
        assert term >= 0
        assert term == pytest.approx(plain, rel=1e-12, abs=1e-13)


@every_sum
@every_loss
def test_fenchel_young_vanishes_at_the_gradient(kind: str, phi: MarginLoss, rng) -> None:
    loss = SUMS[kind](phi, rng)
    for _ in range(10):
        scores = 4 * rng.standard_normal(loss.signs.shape)
        _, gradient = loss.value_and_gradient(scores)
        assert 0 <= loss.fenchel_young(scores, gradient) <= 1e-15
        assert np.isfinite(loss.conjugate(gradient))


@pytest.mark.parametrize("t", [-800.0, -40.0, -30.0, 30.0, 40.0, 800.0])
@pytest.mark.parametrize("a", [1e-310, 1e-20, 0.3, 0.5, 1 - 1e-9])
def test_the_logistic_fenchel_young_term_keeps_its_digits_at_extreme_margins(t, a) -> None:
    loss = MarginSum(Logistic(), np.ones((1, 1)), np.ones((1, 1)), 1.0)
    plain = np.logaddexp(0, -t) + a * np.log(a) + (1 - a) * np.log1p(-a) + a * t
    term = loss.fenchel_young(np.array([[t]]), np.array([[-a]]))
    assert term == pytest.approx(plain, rel=1e-12, abs=1e-12)


@every_sum
@every_loss
def test_conjugate_is_the_supremum_over_scores(kind: str, phi: MarginLoss, rng) -> None:
    loss = SUMS[kind](phi, rng, n=3)
    inner = 0.1 + 0.8 * rng.random(loss.signs.shape)
    dual = -loss.weights * loss.signs * inner * min(phi.dual_bound, 2.0)
    # sample by sample, output by output: the sum is separable
    grid = np.concatenate([np.linspace(-12, 12, 48_001), [1.0, -1.0]])
    brute = 0.0
    for i, k in np.ndindex(dual.shape):
        w, s = loss.weights[i, k], loss.signs[i, k]
        brute += np.max(grid * dual[i, k] - w * phi.value(s * grid)) if w else 0.0
    coarse = 2.5e-7 * min(phi.smoothness, 1.0 / 2.5e-4)
    assert brute - 1e-14 <= loss.conjugate(dual) <= brute + coarse


@every_sum
@every_loss
def test_conjugate_is_infinite_where_a_score_does_not_count(kind: str, phi, rng) -> None:
    loss = SUMS[kind](phi, rng)
    dual = random_dual(loss, rng)
    dual[tuple(np.argwhere(loss.weights == 0)[0])] = 1e-3
    assert loss.conjugate(dual) == np.inf


@pytest.mark.pairwise
@every_sum
@every_loss
@every_intercept
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_balanced_dual_point_is_exactly_feasible(kind, phi, intercept, size, rng) -> None:
    loss, penalty = SUMS[kind](phi, rng), INTERCEPTS[kind][intercept]
    for trial in range(20):
        dual = size * rng.standard_normal(loss.signs.shape) * loss.weights
        if trial % 4 == 0:  # one-sided: nothing to balance against
            dual = -loss.signs * np.abs(dual)
        balanced = loss.balanced(dual, penalty)
        inside = np.clip(-loss.signs * balanced, 0.0, loss.weights * min(phi.dual_bound, 1e300))
        np.testing.assert_allclose(-loss.signs * inside, balanced, rtol=4e-16, atol=0)
        assert not np.any(balanced[loss.weights == 0])
        if intercept == "free":
            sums = balanced.sum(axis=0)
            off = np.abs(sums - sums.mean() * (kind == "multiclass")).max()
            assert off <= 1e-15 * max(1.0, np.abs(balanced).sum())


@every_sum
@every_loss
@every_intercept
def test_balancing_leaves_a_feasible_point_where_it_is(kind, phi, intercept, rng) -> None:
    loss, penalty = SUMS[kind](phi, rng), INTERCEPTS[kind][intercept]
    once = loss.balanced(random_dual(loss, rng), penalty)
    np.testing.assert_allclose(loss.balanced(once, penalty), once, rtol=1e-13, atol=1e-17)


def shift_objective(loss: MarginSum, scores: np.ndarray, penalty: Penalty):
    outputs = scores.shape[1]

    def objective(free: np.ndarray) -> float:
        # the last intercept makes the sum zero
        b = np.append(free, -free.sum()) if outputs > 1 else np.asarray(free, float)
        return loss.value(scores + b) + penalty.value(b[None, :])

    return objective


@pytest.mark.sampled(5)
@every_sum
@every_smooth_loss
@pytest.mark.parametrize("intercept", ["free", "ridge"])
@pytest.mark.parametrize("spread", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("start", [0.0, 1e3])
def test_the_best_intercept_is_the_minimiser(kind, phi, intercept, spread, start, rng) -> None:
    loss, penalty = SUMS[kind](phi, rng), INTERCEPTS[kind][intercept]
    outputs = loss.n_outputs
    scores = spread * rng.standard_normal(loss.signs.shape) + 0.7
    begin = np.full(outputs, start) * np.where(np.arange(outputs) % 2, -1.0, 1.0)
    b = loss.best_intercept(scores, penalty, begin)
    assert b.shape == (outputs,)
    if outputs > 1:
        assert abs(b.sum()) <= 1e-12 * (1 + np.abs(b).max())
    objective = shift_objective(loss, scores, penalty)
    here = loss.value(scores + b) + penalty.value(b[None, :])
    best = min(
        minimize(
            objective,
            x0,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-15, "maxiter": 4000},
        ).fun
        for x0 in (np.zeros(max(outputs - 1, 1)), b[: max(outputs - 1, 1)])
    )
    assert here <= best + 1e-13 * (1 + abs(best))


@every_sum
@every_smooth_loss
@every_intercept
def test_at_the_best_intercept_the_gradient_needs_no_balancing(kind, phi, intercept, rng) -> None:
    loss, penalty = SUMS[kind](phi, rng), INTERCEPTS[kind][intercept]
    scores = 2 * rng.standard_normal(loss.signs.shape)
    b = loss.best_intercept(scores, penalty, np.zeros(loss.n_outputs))
    _, gradient = loss.value_and_gradient(scores + b)
    np.testing.assert_allclose(loss.balanced(gradient, penalty), gradient, rtol=1e-12, atol=1e-15)
    # the multiplier of the dual constraint is minus the intercept: c = -sum(q) in d B(b)
    c = -gradient.sum(axis=0, keepdims=True)
    assert penalty.violations(b[None, :], c).max() <= 1e-14


@every_sum
@every_smooth_loss
@pytest.mark.parametrize("far", [1e2, -1e2, 1e6, -1e6])
def test_the_best_intercept_is_found_from_flat_and_linear_pieces(kind, phi, far, rng) -> None:
    # every sample sits on a piece without curvature: wholly right, or wholly wrong
    if far > 1e5 and isinstance(phi, DistanceWeighted):
        pytest.skip("1/t has no flat piece; so far out its derivative is rounding of its largest")
    loss, penalty = SUMS[kind](phi, rng), INTERCEPTS[kind]["free"]
    scores = far * loss.signs * np.where(loss.weights > 0, 1.0, 0.0)
    if kind == "multiclass":
        scores -= scores.mean(axis=1, keepdims=True)
    b = loss.best_intercept(scores, penalty, np.zeros(loss.n_outputs))
    objective = shift_objective(loss, scores, penalty)
    here = loss.value(scores + b)
    free = max(loss.n_outputs - 1, 1)
    for x0 in (np.zeros(free), b[:free], np.full(free, 0.5 * far)):
        found = minimize(objective, x0, method="Nelder-Mead", options={"fatol": 1e-12})
        assert here <= found.fun * (1 + 1e-9) + 1e-12


@every_smooth_loss
def test_the_best_intercept_of_one_class_is_far_out_on_its_side(phi: MarginLoss) -> None:
    loss = MarginSum(phi, np.ones((3, 1)), np.full((3, 1), 1 / 3), 3.0)
    b = loss.best_intercept(np.zeros((3, 1)), INTERCEPTS["binary"]["free"], np.zeros(1))
    assert np.isfinite(b).all()
    # 1/t leaves its largest derivative to rounding only far from where its value does
    most = 1e-6 if isinstance(phi, DistanceWeighted) else 1e-11
    assert loss.value(np.zeros((3, 1)) + b) <= most


@pytest.mark.parametrize("intercept", ["free", "ridge"])
def test_the_best_intercept_of_the_hinge_is_the_minimiser(intercept: str, rng) -> None:
    loss, penalty = SUMS["binary"](Hinge(), rng), INTERCEPTS["binary"][intercept]
    for spread in (0.1, 1.0, 5.0):
        scores = spread * rng.standard_normal(loss.signs.shape)
        b = loss.best_intercept(scores, penalty, np.zeros(1))
        kinks = (loss.signs - scores)[:, 0]
        grid = np.concatenate([kinks, np.linspace(kinks.min(), kinks.max(), 20_001)])
        values = [loss.value(scores + c) + penalty.value(np.array([[c]])) for c in grid]
        here = loss.value(scores + b) + penalty.value(b[None, :])
        assert here <= min(values) + 1e-9


@every_sum
@every_smooth_loss
def test_the_curvature_bound_holds_along_random_pairs(kind, phi, rng) -> None:
    loss = SUMS[kind](phi, rng, n=30)
    X = rng.standard_normal((30, 4))
    bound = loss.curvature_bound((X**2).sum(axis=1) + 1)
    tall = np.hstack([X, np.ones((30, 1))])
    for _ in range(50):
        u, v = (rng.standard_normal((5, loss.n_outputs)) for _ in range(2))
        change = tall.T @ (
            loss.value_and_gradient(tall @ u)[1] - loss.value_and_gradient(tall @ v)[1]
        )
        assert np.linalg.norm(change) <= bound * np.linalg.norm(u - v) * (1 + 1e-12)


@every_sum
@every_smooth_loss
def test_row_curvatures_bound_the_curvature_along_one_feature(kind, phi, rng) -> None:
    loss = SUMS[kind](phi, rng, n=30)
    for _ in range(50):
        feature, scores = rng.standard_normal(30), rng.standard_normal((30, loss.n_outputs))
        u, v = (rng.standard_normal((1, loss.n_outputs)) for _ in range(2))
        change = feature @ (
            loss.value_and_gradient(scores + feature[:, None] * u)[1]
            - loss.value_and_gradient(scores + feature[:, None] * v)[1]
        )
        bound = float(loss.row_curvatures @ feature**2)
        assert np.linalg.norm(change) <= bound * np.linalg.norm(u - v) * (1 + 1e-12)


@every_sum
@every_loss
def test_declared_traits_are_true(kind: str, phi: MarginLoss, rng) -> None:
    loss = SUMS[kind](phi, rng)
    outputs = loss.signs.shape[1]
    assert (Trait.SINGLE_OUTPUT in loss.traits) == (outputs == 1)
    assert (Trait.MANY_OUTPUTS in loss.traits) == (outputs > 1)
    assert (Trait.SMOOTH in loss.traits) == np.isfinite(phi.smoothness)
    if Trait.OUTPUTWISE in loss.traits and outputs > 1:
        scores = rng.standard_normal(loss.signs.shape)
        other = scores.copy()
        other[:, 0] += 1.0
        before, after = (loss.value_and_gradient(s)[1] for s in (scores, other))
        np.testing.assert_array_equal(before[:, 1:], after[:, 1:])


@every_sum
@every_loss
def test_evaluating_a_loss_leaves_its_arguments_unchanged(kind, phi, rng) -> None:
    loss = SUMS[kind](phi, rng)
    scores, dual = rng.standard_normal(loss.signs.shape), random_dual(loss, rng)
    with unchanged(scores, dual, loss.signs, loss.weights):
        loss.value_and_gradient(scores)
        loss.fenchel_young(scores, dual)
        loss.conjugate(dual)
        loss.balanced(dual, INTERCEPTS[kind]["free"])
        loss.best_intercept(scores, INTERCEPTS[kind]["ridge"], np.zeros(loss.n_outputs))
