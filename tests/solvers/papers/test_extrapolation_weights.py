"""Theorem 1 of Xu et al. (2015) holds for every weight up to sqrt(L_{k-1} / L_k)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from proxmargin import HuberizedSVC


class Recorder:
    """A callback that keeps every state."""

    every = 1

    def __init__(self) -> None:
        self.states: list[Any] = []

    def __call__(self, report: Any) -> None:
        self.states.append(report.state)


def fitted(classes: int, **options: Any) -> tuple[HuberizedSVC, list[Any]]:
    rng = np.random.default_rng(0)
    y = np.arange(90) % classes
    X = rng.standard_normal((90, 12))
    X[:, :classes] += 1.5 * np.eye(classes)[y]
    recorder = Recorder()
    solver = "b-pgh" if classes == 2 else "m-pgh"
    model = HuberizedSVC(
        alpha=0.2,
        l1_ratio=0.3,
        intercept_ridge=0.2,
        solver=solver,
        solver_options=options,
        tol=1e-9,
        callbacks=(recorder,),
    )
    return model.fit(X, y), recorder.states


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("omega", [0.0, 0.4, 1.0])
def test_any_weight_finds_the_optimum_within_its_bound(classes: int, omega: float) -> None:
    best, _ = fitted(classes)
    model, states = fitted(classes, omega=omega)
    assert model.certificate_.relative_gap <= 1e-9
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-4)
    for before, now in pairwise(states):
        most = min(omega, np.sqrt(before.lipschitz / now.lipschitz))
        assert now.extrapolation in (0.0, pytest.approx(most))
        assert now.objective <= before.objective * (1.0 + 1e-14)  # line 6


def test_weights_differ_from_nesterovs() -> None:
    counts = {omega: len(fitted(2, omega=omega)[1]) for omega in (None, 0.0, 0.4)}
    assert len(set(counts.values())) == 3


@pytest.mark.parametrize("omega", [-0.1, 1.1, "a"])
def test_a_weight_is_a_number_up_to_one(omega: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="omega"):
        fitted(2, omega=omega)
