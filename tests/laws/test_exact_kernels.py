"""Certificates of kernel models in exact arithmetic, where distances have lost their digits."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from proxmargin import SVC
from tests.oracles.exact import DIGITS, exact

ONE = Decimal(1)
# multiples of a model that are tried as better ones: any of them is no better than the optimum
MULTIPLES = [ONE] + [ONE + k * Decimal(10) ** e for e in range(-15, -1) for k in (1, 3)]


def far_pair(R: float, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes about the origin, and a pair of opposite samples far from all others."""
    sides = np.where(np.arange(n) % 2, 1.0, -1.0)
    cloud = np.column_stack([0.05 + sides * rng.uniform(0.15, 0.5, n), rng.uniform(-0.2, 0.2, n)])
    near, far = [[0.0, 0.0], [0.1, 0.0]], [[R + 0.123, 0.7 * R], [R + 0.823, 0.7 * R + 0.1]]
    return np.vstack([near, cloud, far]), np.concatenate([[0, 1], sides > 0, [0, 1]])


def distances_from_best(model: Any, X: np.ndarray, y: np.ndarray, offset: np.ndarray) -> Decimal:
    """How far the published model is above the best of its own multiples, in fifty digits."""
    rows = [[exact(value) for value in row] for row in X]
    beta, support = [exact(value) for value in model.dual_coef_[0]], model.support_
    C, added = exact(model.C), [exact(model.intercept_[0]) + exact(each) for each in offset]

    def value(x: list[Decimal], z: list[Decimal]) -> Decimal:
        return (-sum((p - q) ** 2 for p, q in zip(x, z, strict=True))).exp()

    scores = [sum(w * value(x, rows[j]) for w, j in zip(beta, support, strict=True)) for x in rows]
    square = sum(w * scores[j] for w, j in zip(beta, support, strict=True))

    def objective(t: Decimal) -> Decimal:
        given = zip(scores, added, y, strict=True)
        margins = ((t * z + b) * (1 if one else -1) for z, b, one in given)
        return C * sum(max(Decimal(0), ONE - m) for m in margins) + t * t * square / 2

    values = [objective(t) for t in MULTIPLES]
    return values[0] - min(values)


@pytest.mark.parametrize("R", [0.0, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("C", [1.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(4)
def test_no_certificate_is_below_the_exact_distance(R: float, C: float, seed: int) -> None:
    X, y = far_pair(R, np.random.default_rng(seed), 24)
    assert_proved(X, y, C, np.zeros(len(y)))


@pytest.mark.parametrize("size", [0.1, 10.0, 1e6])
@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(4)
def test_nor_with_an_offset_of_any_size(size: float, C: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = far_pair(1e3, rng, 24)
    assert_proved(X, y, C, size * rng.standard_normal(len(y)))


def assert_proved(X: np.ndarray, y: np.ndarray, C: float, offset: np.ndarray) -> None:
    model = SVC(C=C, kernel="rbf", gamma=1.0, time_limit=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, offset=offset)
    with localcontext() as context:
        context.prec = DIGITS
        above = distances_from_best(model, X, y, offset)
    assert above <= Decimal(model.certificate_.gap) * (ONE + Decimal("1e-9"))
