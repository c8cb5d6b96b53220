"""Laws of smooth losses that compare the score of the class with those of the others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from proxmargin.functions.losses.classes.comparison import SmoothComparison
from proxmargin.functions.traits import Trait
from proxmargin.losses import Loss, Multinomial, PairwiseSquaredHinge
from tests.cases import COMPARISONS, INTERCEPTS
from tests.unchanged import unchanged

SMOOTH = {
    name: make
    for name, make in COMPARISONS.items()
    if isinstance(make(np.random.default_rng(0)), SmoothComparison)
}
every_loss = pytest.mark.parametrize("make", SMOOTH.values(), ids=SMOOTH.keys())
every_intercept = pytest.mark.parametrize("intercept", ["free", "ridge", "none"])
penalties = INTERCEPTS["multiclass"]


def defined(loss: SmoothComparison, scores: np.ndarray) -> float:
    """The loss, word for word."""
    total = 0.0
    for z, y, share in zip(scores, loss.codes, loss.shares, strict=True):
        off = np.delete(z - z[y], y)
        if isinstance(loss, Multinomial):
            total += share * logsumexp(np.append(loss.margin + off, 0.0))
        else:
            total += share * (np.maximum(1 + off, 0) ** 2).sum()
    return total


def random_dual(loss: SmoothComparison, rng: np.random.Generator) -> np.ndarray:
    """Random rates with some zeros, in the domain of the conjugate."""
    rates = rng.exponential(size=(loss.codes.size, loss.count)) * (rng.random(3) < 0.8)
    if np.isfinite(loss.most_rate):
        rates /= rates.sum(axis=1, keepdims=True) + rng.random((loss.codes.size, 1)) + 1e-9
    dual = loss.shares[:, None] * rates
    own = np.arange(loss.codes.size), loss.codes
    dual[own] = 0.0
    dual[own] = -dual.sum(axis=1)
    return dual


@every_loss
def test_the_value_is_that_of_the_definition(make, rng) -> None:
    loss = make(rng)
    for size in (0.1, 3.0, 500.0):
        scores = size * rng.standard_normal((12, 3))
        assert loss.value(scores) == pytest.approx(defined(loss, scores), rel=1e-13, abs=1e-300)
        moved = scores + rng.standard_normal((12, 1))
        assert loss.value(moved) == pytest.approx(loss.value(scores), rel=1e-12, abs=1e-15)


@every_loss
def test_the_gradient_is_the_central_difference_and_its_rows_sum_to_zero(make, rng) -> None:
    loss, h = make(rng), 1e-6
    scores = 2 * rng.standard_normal((12, 3))
    value, gradient = loss.value_and_gradient(scores)
    assert value == loss.value(scores)
    assert np.abs(gradient.sum(axis=1)).max() <= 1e-16 * (1 + np.abs(gradient).max())
    for index in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[index] += h
        down[index] -= h
        slope = (loss.value(up) - loss.value(down)) / (2 * h)
        assert slope == pytest.approx(gradient[index], abs=1e-8 + h * loss.curvature)


@every_loss
def test_fenchel_young_is_value_plus_conjugate_minus_product(make, rng) -> None:
    loss = make(rng)
    for size in (0.1, 1.0, 5.0):
        for _ in range(20):
            scores, dual = size * rng.standard_normal((12, 3)), random_dual(loss, rng)
            plain = loss.value(scores) + loss.conjugate(dual) - float(np.vdot(scores, dual))
            term = loss.fenchel_young(scores, dual)
            assert term >= 0
            assert term == pytest.approx(plain, rel=1e-12, abs=1e-13)


@every_loss
def test_fenchel_young_vanishes_at_the_gradient_and_keeps_its_digits_near_it(make, rng) -> None:
    loss = make(rng)
    for size in (1.0, 30.0):
        scores = size * rng.standard_normal((12, 3))
        _, gradient = loss.value_and_gradient(scores)
        scale = 1 + float(np.abs(gradient * scores).sum())
        assert 0 <= loss.fenchel_young(scores, gradient) <= 1e-15 * scale
        assert np.isfinite(loss.conjugate(gradient))
    # half the second difference of the value, far below its rounding
    scores, step = rng.standard_normal((12, 3)), 1e-6 * rng.standard_normal((12, 3))
    _, there = loss.value_and_gradient(scores + step)
    _, here = loss.value_and_gradient(scores)
    expected = 0.5 * float(np.vdot(there - here, step))
    assert loss.fenchel_young(scores + step, here) == pytest.approx(expected, rel=1e-3)


@every_loss
def test_the_conjugate_is_the_supremum_over_scores(make, rng) -> None:
    loss = make(rng, n=4)
    dual = 0.9 * random_dual(loss, rng) + 0.1 * loss.value_and_gradient(np.zeros((4, 3)))[1]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scores = flat.reshape(4, 3)
        value, gradient = loss.value_and_gradient(scores)
        return value - float(np.vdot(scores, dual)), (gradient - dual).ravel()

    found = minimize(objective, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-11})
    assert loss.conjugate(dual) == pytest.approx(-found.fun, rel=1e-8, abs=1e-10)


@every_loss
def test_the_conjugate_is_infinite_outside_its_domain(make, rng) -> None:
    loss = make(rng)
    dual = random_dual(loss, rng)
    other = dual.copy()
    live = int(np.flatnonzero(loss.shares > 0)[0])
    other[live] -= 1e-3 * (np.arange(3) == (loss.codes[live] + 1) % 3)
    outside = [other, dual + 1e-3 * loss.shares[:, None]]
    outside.append(dual + np.outer(loss.shares == 0, [1e-3, -1e-3, 0.0]))
    if isinstance(loss, Multinomial):
        outside.append(10.0 * loss.value_and_gradient(np.zeros((12, 3)))[1])
    for point in outside:
        assert loss.conjugate(point) == np.inf
    assert np.isfinite(loss.conjugate(dual))


@every_loss
@every_intercept
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_balanced_dual_point_is_exactly_feasible(make, intercept, size, rng) -> None:
    loss, penalty = make(rng), penalties[intercept]
    for trial in range(20):
        dual = size * rng.standard_normal((12, 3)) * loss.shares[:, None]
        if trial % 4 == 0:  # everything flows into the first class
            dual = np.abs(dual) * (np.arange(3) == 0)
        balanced = loss.balanced(dual, penalty)
        rates = balanced * (np.arange(3) != loss.codes[:, None])
        assert rates.min() >= 0
        assert not np.any(balanced[loss.shares == 0])
        assert np.abs(balanced.sum(axis=1)).max() <= 4e-16 * np.abs(balanced).max()
        assert np.all(rates.sum(axis=1) <= loss.shares * min(loss.most_rate, 1e300) * (1 + 1e-15))
        assert np.isfinite(loss.conjugate(balanced))
        if intercept == "free":
            assert np.abs(balanced.sum(axis=0)).max() <= 2e-15 * np.abs(balanced).sum()
        np.testing.assert_allclose(loss.balanced(balanced, penalty), balanced, atol=1e-14 * size)


@every_loss
def test_a_class_without_weight_receives_nothing(make, rng) -> None:
    kind = make(rng)
    shares = np.where(kind.codes == 2, 0.0, kind.shares)
    loss = type(kind)(kind.codes, shares / shares.sum(), 3, 1.0)
    dual = np.abs(rng.standard_normal((12, 3)))
    balanced = loss.balanced(dual, penalties["free"])
    assert not np.any(balanced[:, 2])
    assert np.abs(balanced.sum(axis=0)).max() <= 1e-15
    scores = rng.standard_normal((12, 3))
    b = loss.best_intercept(scores, penalties["free"], np.zeros(3))
    assert np.isfinite(b).all()
    _, gradient = loss.value_and_gradient(scores + b)
    assert np.abs(gradient.sum(axis=0)).max() <= 1e-12


@every_loss
@pytest.mark.parametrize("intercept", ["free", "ridge"])
@pytest.mark.parametrize("spread", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("start", [0.0, 1e3])
def test_the_best_intercept_is_the_minimiser(make, intercept, spread, start, rng) -> None:
    loss, penalty = make(rng), penalties[intercept]
    scores = spread * rng.standard_normal((12, 3)) + 0.7
    b = loss.best_intercept(scores, penalty, start * np.array([1.0, -1.0, 1.0]))
    assert abs(b.sum()) <= 1e-12 * (1 + np.abs(b).max())

    def objective(free: np.ndarray) -> float:
        shift = np.append(free, -free.sum())
        return loss.value(scores + shift) + penalty.value(shift[None, :])

    options = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 4000}
    best = min(
        minimize(objective, x0, method="Nelder-Mead", options=options).fun
        for x0 in (np.zeros(2), b[:2])
    )
    assert objective(b[:2]) <= best + 1e-13 * (1 + abs(best))
    _, gradient = loss.value_and_gradient(scores + b)
    assert penalty.violations(b[None, :], -gradient.sum(axis=0, keepdims=True)).max() <= 2e-14 * (
        1 + np.abs(gradient).sum()
    )


@every_loss
@pytest.mark.parametrize("far", [1e2, -1e2, 1e6, -1e6])
def test_the_best_intercept_is_found_from_flat_and_steep_pieces(make, far, rng) -> None:
    loss = make(rng)
    scores = far * (np.arange(3) == loss.codes[:, None]) + rng.standard_normal((12, 3))
    b = loss.best_intercept(scores, penalties["free"], np.zeros(3))
    here = loss.value(scores + b)
    for x0 in (np.zeros(2), b[:2], np.array([0.5 * far, 0.0])):
        found = minimize(
            lambda free: loss.value(scores + np.append(free, -free.sum())), x0, method="Nelder-Mead"
        )
        assert here <= found.fun * (1 + 1e-9) + 1e-12


@every_loss
def test_no_intercept_stays_zero(make, rng) -> None:
    b = make(rng).best_intercept(rng.standard_normal((12, 3)), penalties["none"], np.ones(3))
    assert not b.any()


@every_loss
def test_the_curvature_bound_holds_along_random_pairs(make, rng) -> None:
    loss = make(rng, n=30)
    tall = np.hstack([rng.standard_normal((30, 4)), np.ones((30, 1))])
    bound = loss.curvature_bound((tall**2).sum(axis=1))
    for size in (0.01, 1.0):
        for _ in range(50):
            u, v = (size * rng.standard_normal((5, 3)) for _ in range(2))
            change = tall.T @ (
                loss.value_and_gradient(tall @ u)[1] - loss.value_and_gradient(tall @ v)[1]
            )
            assert np.linalg.norm(change) <= bound * np.linalg.norm(u - v) * (1 + 1e-12)


@every_loss
def test_row_curvatures_bound_the_curvature_along_one_feature(make, rng) -> None:
    loss = make(rng, n=30)
    for _ in range(50):
        feature, scores = rng.standard_normal(30), rng.standard_normal((30, loss.n_outputs))
        u, v = (rng.standard_normal((1, loss.n_outputs)) for _ in range(2))
        change = feature @ (
            loss.value_and_gradient(scores + feature[:, None] * u)[1]
            - loss.value_and_gradient(scores + feature[:, None] * v)[1]
        )
        bound = float(loss.row_curvatures @ feature**2)
        assert np.linalg.norm(change) <= bound * np.linalg.norm(u - v) * (1 + 1e-12)


@pytest.mark.parametrize("loss", [Multinomial, PairwiseSquaredHinge])
def test_the_curvature_of_one_sample_is_reached(loss) -> None:
    one = loss(np.zeros(1, int), np.ones(1), 3, 1.0)
    at = np.zeros((1, 3)) if loss is PairwiseSquaredHinge else np.array([[0.0, 0.0, -60.0]])
    _, hessian = one._slope_and_curvature(at, np.zeros(3))
    assert np.linalg.eigvalsh(hessian).max() == pytest.approx(one.curvature, rel=1e-12)


@every_loss
def test_traits_are_true_and_arguments_stay_unchanged(make, rng) -> None:
    loss: Loss = make(rng)
    assert loss.compares_classes
    assert Trait.SMOOTH | Trait.MANY_OUTPUTS in loss.traits
    assert Trait.OUTPUTWISE not in loss.traits
    scores, dual = rng.standard_normal((12, 3)), random_dual(loss, rng)
    with unchanged(scores, dual, loss.codes, loss.shares):
        loss.value_and_gradient(scores)
        loss.fenchel_young(scores, dual)
        loss.conjugate(dual)
        loss.balanced(dual, penalties["free"])
        loss.best_intercept(scores, penalties["free"], np.zeros(3))
