"""Roots of increasing functions against roots that are known."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.solvers.shared.numerical import increasing_root

ROOTS = {
    "straight": (lambda t: t - 3.0, 3.0),
    "far": (lambda t: t - 3e9, 3e9),
    "near": (lambda t: t - 1e-9, 1e-9),
    "flat then steep": (lambda t: t**9 - 1e3, 1e3 ** (1 / 9)),
    "a jump": (lambda t: -1.0 if t < 0.7 else 1.0, 0.7),
}


@pytest.mark.parametrize("name", ROOTS)
def test_the_root_is_found(name: str) -> None:
    slope, root = ROOTS[name]
    assert increasing_root(slope, 1e-14, 200) == pytest.approx(root, rel=1e-9)


def test_a_ray_that_does_not_descend_has_no_step() -> None:
    assert increasing_root(lambda t: t, 1e-3, 50) == 0.0
    assert increasing_root(lambda t: np.nan, 1e-3, 50) == 0.0


def test_a_looser_tolerance_takes_fewer_evaluations() -> None:
    def evaluations(tolerance: float) -> int:
        asked = []
        increasing_root(lambda t: asked.append(t) or np.expm1(t) - 5.0, tolerance, 100)
        return len(asked)

    assert evaluations(0.1) < evaluations(1e-12)
