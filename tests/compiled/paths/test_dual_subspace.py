"""What a subspace of dual points proves about features, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from proxmargin.compiled.paths import dual_subspace
from proxmargin.compiled.paths.dual_subspace import DualSubspace
from proxmargin.compiled.paths.state import record


def subspace_of(X: np.ndarray, points: list[np.ndarray], capacity: int) -> DualSubspace:
    """The subspace of these dual points, as a path takes them."""
    n, p = X.shape
    subspace = DualSubspace(
        np.zeros((capacity, n)),
        np.zeros((capacity, p)),
        *np.zeros((2, capacity)),
        np.empty(n),
        record(dual_subspace.SUBSPACE),
    )
    for point in points:
        left, _ = dual_subspace.decompose(subspace, point, 2)
        if subspace.scalars["count"] == capacity:
            dual_subspace.compress(subspace)
            left, _ = dual_subspace.decompose(subspace, point, 2)
        c = subspace.scalars["count"]
        dual_subspace.append(subspace, subspace.residual, left)
        subspace.products[c] = subspace.basis[c] @ X
    return subspace


@pytest.mark.parametrize("seed", range(12))
def test_no_inner_product_is_beyond_its_bound(seed: int) -> None:
    """With all rounding, on features of any scale, and after basis vectors were combined."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 25)), 30
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-8, 8, p) + rng.choice([0.0, 1e6])
    start, way = rng.standard_normal((2, n))
    curve = [start + t * way + 0.1 * t**2 * rng.standard_normal(n) for t in np.linspace(0, 1, 9)]
    subspace = subspace_of(X, curve, capacity=6)
    norms = np.sqrt((X**2).sum(axis=0)) * (1.0 + 1e-12)
    for t in (0.05, 0.5, 0.97, 3.0):
        theta = start + t * way
        _, radius = dual_subspace.decompose(subspace, theta, 1)
        estimate = np.empty(p)
        dual_subspace.estimate_products(subspace, estimate)
        for j in range(p):
            pairs = zip(X[:, j].tolist(), theta.tolist(), strict=True)
            exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
            off = abs(exact - Fraction(float(estimate[j])))
            assert off <= Fraction(float(radius)) * Fraction(float(norms[j]))


def test_a_point_in_the_subspace_is_known_to_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 50))
    first, second = rng.standard_normal((2, 20))
    subspace = subspace_of(X, [first, second], capacity=4)
    theta = 0.3 * first - 2.0 * second
    _, radius = dual_subspace.decompose(subspace, theta, 1)
    estimate = np.empty(50)
    dual_subspace.estimate_products(subspace, estimate)
    assert radius < 1e-12
    np.testing.assert_allclose(estimate, theta @ X, atol=1e-12)
