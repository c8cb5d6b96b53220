"""The prox of the conjugate of a loss, and its derivative: what dual Newton methods step with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from proxmargin.losses import (
    CrammerSinger,
    Hinge,
    HuberizedHinge,
    Logistic,
    Loss,
    Multinomial,
    PairwiseSquaredHinge,
    SquaredHinge,
)
from tests.cases import SUMS, binary_sum, multiclass_sum


def of_comparisons(make: Callable[..., Loss], rng: np.random.Generator, **options: float) -> Loss:
    """Four classes, random weights; every fifth sample has weight zero."""
    weights = rng.uniform(0.1, 1.0, 12) * (np.arange(12) % 5 != 3)
    shares, total = weights / weights.sum(), float(weights.sum())
    return make(np.arange(12) % 4, shares, 4, total, **options)


LOSSES: dict[str, Callable[[np.random.Generator], Loss]] = {
    "hinge": lambda rng: binary_sum(Hinge(), rng),
    "hinge of the wrong classes": lambda rng: multiclass_sum(Hinge(), rng),
    "huberized hinge": lambda rng: binary_sum(HuberizedHinge(0.7), rng),
    "huberized hinge of the wrong classes": lambda rng: multiclass_sum(HuberizedHinge(0.7), rng),
    "squared hinge": lambda rng: binary_sum(SquaredHinge(), rng),
    "crammer-singer": lambda rng: of_comparisons(CrammerSinger, rng),
    "squared hinge of pairs": lambda rng: of_comparisons(PairwiseSquaredHinge, rng),
    "multinomial": lambda rng: of_comparisons(Multinomial, rng),
    "multinomial with a margin": lambda rng: of_comparisons(Multinomial, rng, margin=1.0),
}
every_loss = pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES.keys())
STEPS = [0.01, 0.1, 3.0]


def around(loss: Loss, rng: np.random.Generator) -> np.ndarray:
    """Points in the domain of the conjugate and close to it."""
    return rng.standard_normal(loss.dual_support.shape) * loss.shares.max()


@every_loss
@pytest.mark.parametrize("step", STEPS)
def test_it_is_the_minimiser(make, step: float, rng) -> None:
    loss = make(rng)
    dual = around(loss, rng)

    def objective(q: np.ndarray) -> float:
        return loss.conjugate(q) + float(np.vdot(q - dual, q - dual)) / (2 * step)

    found = loss.conjugate_prox(dual, step)
    here = objective(found)
    assert np.isfinite(here)
    assert not np.any(found[~loss.dual_support])
    for size in (1e-6, 1e-3, 0.1):
        for _ in range(10):
            other = loss.conjugate_prox(found + size * around(loss, rng), 1e-12)
            assert here <= objective(other) + 1e-14


@every_loss
@pytest.mark.parametrize("step", STEPS)
def test_the_rest_is_a_point_of_its_subdifferential(make, step: float, rng) -> None:
    # Moreau: scores z = (dual - q) / step have q as a gradient of the loss
    loss = make(rng)
    dual = around(loss, rng)
    found = loss.conjugate_prox(dual, step)
    assert 0 <= loss.fenchel_young((dual - found) / step, found) <= 1e-14 * (1 + 1 / step)


@every_loss
@pytest.mark.parametrize("step", STEPS)
def test_the_jacobian_is_its_derivative(make, step: float, rng) -> None:
    loss = make(rng)
    for _ in range(10):
        dual, direction = around(loss, rng), around(loss, rng)
        h = 1e-6
        jacobian = loss.conjugate_prox_jacobian(dual, step)
        ahead, behind = (loss.conjugate_prox(dual + s * h * direction, step) for s in (1, -1))
        np.testing.assert_allclose(jacobian.apply(direction), (ahead - behind) / (2 * h), atol=1e-9)


@pytest.mark.parametrize("kind", SUMS)
def test_a_loss_whose_conjugate_is_not_quadratic_says_so(kind: str, rng) -> None:
    loss = SUMS[kind](Logistic(), rng)
    dual = np.zeros(loss.signs.shape)
    with pytest.raises(TypeError, match="the prox of the conjugate of Logistic"):
        loss.conjugate_prox(dual, 1.0)
    with pytest.raises(TypeError, match="the prox of the conjugate of Logistic"):
        loss.conjugate_prox_jacobian(dual, 1.0)
