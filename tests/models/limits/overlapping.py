"""Classes that overlap, of a few shapes, for the tests of nu and kappa."""

from __future__ import annotations

import numpy as np

SHAPES = {"tall": (40, 4), "square": (30, 20), "wide, of low rank": (30, 50)}


def sample(shape: str, rng: np.random.Generator, shift: float = 0.4):
    """Overlapping classes, some weights zero; wide data lie in a space of 12 dimensions."""
    n, p = SHAPES[shape]
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    X = rng.standard_normal((n, p)) * np.exp(rng.standard_normal(p)) + shift * y[:, None] + 2
    if p > n:
        X = X[:, :12] @ rng.standard_normal((12, p))
    return X, y, rng.integers(0, 4, n).astype(float)
