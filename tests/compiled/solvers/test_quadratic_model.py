"""The minimum of a quadratic model plus an elastic net against its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.compiled.solvers.nets import Net
from proxmargin.compiled.solvers.quadratic_model import quadratic_minimum, room_for


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bound", [np.inf, 0.05])
def test_the_minimum_is_stationary(seed: int, bound: float) -> None:
    rng = np.random.default_rng(seed)
    k = 12
    half = rng.standard_normal((2 * k, k))
    hessian, lift = half.T @ half, np.full(k, 1e-8)
    l1 = np.full(k, 3.0)
    net = Net(l1, np.zeros(k), np.full(k, -bound), np.full(k, bound))
    room = room_for(hessian)
    first, kept = 20.0 * rng.standard_normal(k), 0
    value = np.zeros(k)
    for share in (1.0, 0.7, 0.4):  # the factor serves the later ones
        slope = share * first + (hessian + np.diag(lift)) @ value
        kept = quadratic_minimum(room, lift, slope, value, net, 1e-10, kept)
        exact = share * first + (hessian + np.diag(lift)) @ value
        np.testing.assert_allclose(slope, exact, atol=1e-9)
        ends = np.clip(
            np.sign(value - exact) * np.maximum(np.abs(value - exact) - l1, 0), -bound, bound
        )
        np.testing.assert_allclose(value, ends, atol=1e-8)
