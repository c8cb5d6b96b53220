"""Sequential minimal optimisation on a block: its law in NumPy, and the conditions it ends at."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.compiled.solvers.decomposition import LEAST_CURVATURE, pairwise


def by_formula(Q, value, gradient, low, high, split, tol, most):
    """Pairs of Fan, Chen and Lin (2005) as they are defined, over all pairs of a group with i."""
    value, gradient = value.copy(), gradient.copy()
    groups = [np.arange(split), np.arange(split, value.size)]
    floor = LEAST_CURVATURE * Q.diagonal().max()
    for pairs in range(most):
        found = []
        for group in groups:
            grows, falls = group[value[group] < high[group]], group[value[group] > low[group]]
            if not grows.size or not falls.size:
                continue
            i = grows[gradient[grows].argmin()]
            worst = gradient[falls].max() - gradient[i]
            ahead = np.maximum(gradient[falls] - gradient[i], 0.0)
            curvature = np.maximum(Q[i, i] + Q.diagonal()[falls] - 2.0 * Q[i, falls], floor)
            gains = ahead**2 / curvature
            found.append((gains.max(), worst, i, falls[gains.argmax()]))
        if not found or max(worst for _, worst, _, _ in found) <= tol:
            return value, gradient, pairs
        _, _, i, j = max(found, key=lambda pair: pair[0])
        curvature = max(Q[i, i] + Q[j, j] - 2.0 * Q[i, j], floor)
        step = (gradient[j] - gradient[i]) / curvature
        step = min(step, high[i] - value[i], value[j] - low[j])
        value[i] += step
        value[j] -= step
        gradient += step * (Q[i] - Q[j])
    return value, gradient, most


def some_block(rng, n=30, rank=30):
    """A block with ends of either sign, a feasible start and its gradient."""
    factor = rng.standard_normal((n, rank))
    Q = factor @ factor.T / rank
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    low, high = np.where(signs > 0, 0.0, -2.0), np.where(signs > 0, 2.0, 0.0)
    value = 0.25 * signs * (rng.random(n) < 0.5)
    return Q, value, Q @ value - signs, low, high


@pytest.mark.parametrize("split", [0, 11, 30])
@pytest.mark.parametrize("most", [1, 5, 10_000])
def test_pairs_are_those_of_the_formula(split: int, most: int, rng) -> None:
    Q, value, gradient, low, high = some_block(rng)
    plain = by_formula(Q, value, gradient, low, high, split, 1e-8, most)
    pairs, _ = pairwise(Q, value, gradient, low, high, split, 1e-8, most)
    assert pairs == plain[2]
    np.testing.assert_allclose(value, plain[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient, plain[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rank", [30, 4])
def test_what_is_found_meets_the_conditions_of_optimality(rank: int, rng) -> None:
    Q, value, gradient, low, high = some_block(rng, rank=rank)
    start, pull = value.copy(), Q @ value - gradient
    _, violation = pairwise(Q, value, gradient, low, high, 12, 1e-10, 100_000)
    assert violation <= 1e-10
    np.testing.assert_allclose(gradient, Q @ value - pull, atol=1e-10)
    assert ((value >= low) & (value <= high)).all()
    for group in (slice(0, 12), slice(12, 30)):
        assert value[group].sum() == pytest.approx(start[group].sum(), abs=1e-12)
        g, v = gradient[group], value[group]
        grows, falls = v < high[group], v > low[group]
        assert g[falls].max(initial=-np.inf) <= g[grows].min(initial=np.inf) + 1e-10


def test_ends_are_reached_exactly(rng) -> None:
    Q, value, gradient, low, high = some_block(rng)
    pairwise(Q, value, gradient, low, high, 30, 1e-10, 100_000)
    near = np.minimum(value - low, high - value)
    assert (near == 0.0).any()
    assert not ((near > 0.0) & (near < 1e-12)).any()


def test_coordinates_without_an_upper_end_are_taken_to_their_minimum(rng) -> None:
    Q, value, gradient, low, high = some_block(rng)
    Q.flat[:: len(Q) + 1] += 1.0
    low[low < 0], high[high > 0] = -np.inf, np.inf
    _, violation = pairwise(Q, value, gradient, low, high, 30, 1e-10, 100_000)
    assert violation <= 1e-10
    assert np.isfinite(value).all()


def test_repeated_samples_have_no_curvature_and_end_at_their_bounds() -> None:
    Q = np.ones((2, 2))
    value, gradient = np.zeros(2), np.array([-1.0, 1.0])
    low, high = np.array([0.0, -3.0]), np.array([3.0, 0.0])
    assert pairwise(Q, value, gradient, low, high, 2, 1e-9, 100)[0] == 1
    assert value.tolist() == [3.0, -3.0]
