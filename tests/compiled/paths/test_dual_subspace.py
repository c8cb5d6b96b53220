"""What a span of dual points proves about features, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from proxmargin.compiled.paths import dual_subspace
from proxmargin.compiled.paths.dual_subspace import DualSubspace


def references(X: np.ndarray, points: list[np.ndarray], capacity: int) -> tuple[DualSubspace, int]:
    """References of these dual points, as a path takes them."""
    n, p = X.shape
    span = DualSubspace(
        np.zeros((capacity, n)), np.zeros((capacity, p)), *np.zeros((2, capacity)), np.empty(n)
    )
    count = 0
    for point in points:
        left, _ = dual_subspace.bounded(span, count, point, 2)
        if count == capacity:
            count = dual_subspace.compress(span, count)
            left, _ = dual_subspace.bounded(span, count, point, 2)
        dual_subspace.put(span, count, span.rest, left)
        span.products[count] = span.points[count] @ X
        count += 1
    return span, count


@pytest.mark.parametrize("seed", range(12))
def test_no_inner_product_is_beyond_its_bound(seed: int) -> None:
    """With all rounding, on features of any scale, and after references were combined."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 25)), 30
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-8, 8, p) + rng.choice([0.0, 1e6])
    start, way = rng.standard_normal((2, n))
    curve = [start + t * way + 0.1 * t**2 * rng.standard_normal(n) for t in np.linspace(0, 1, 9)]
    span, count = references(X, curve, capacity=6)
    norms = np.sqrt((X**2).sum(axis=0)) * (1.0 + 1e-12)
    for t in (0.05, 0.5, 0.97, 3.0):
        theta = start + t * way
        _, radius = dual_subspace.bounded(span, count, theta, 1)
        estimate = np.empty(p)
        dual_subspace.estimate(span, count, estimate)
        for j in range(p):
            pairs = zip(X[:, j].tolist(), theta.tolist(), strict=True)
            exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
            off = abs(exact - Fraction(float(estimate[j])))
            assert off <= Fraction(float(radius)) * Fraction(float(norms[j]))


def test_a_point_in_the_span_is_known_to_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 50))
    first, second = rng.standard_normal((2, 20))
    span, count = references(X, [first, second], capacity=4)
    theta = 0.3 * first - 2.0 * second
    _, radius = dual_subspace.bounded(span, count, theta, 1)
    estimate = np.empty(50)
    dual_subspace.estimate(span, count, estimate)
    assert radius < 1e-12
    np.testing.assert_allclose(estimate, theta @ X, atol=1e-12)
