"""Objectives of fitted models in fifty digits: what certificates are held to.

Data, coefficients and intercepts are taken as the floating-point numbers that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

__all__ = ["DIGITS", "MARGIN_LOSSES", "objective", "scores"]

DIGITS = 50
Margin = Callable[[Decimal], Decimal]
ZERO, ONE = Decimal(0), Decimal(1)


def exact(value: float) -> Decimal:
    return Decimal(float(value))


def hinge(t: Decimal) -> Decimal:
    return max(ONE - t, ZERO)


def squared_hinge(t: Decimal) -> Decimal:
    return hinge(t) ** 2


def huberized(delta: float) -> Margin:
    width = exact(delta)

    def loss(t: Decimal) -> Decimal:
        u = max(ONE - t, ZERO)
        return u * u / (2 * width) if u <= width else u - width / 2

    return loss


def logistic(t: Decimal) -> Decimal:
    return max(-t, ZERO) + (ONE + (-abs(t)).exp()).ln()


def distance_weighted(threshold: float) -> Margin:
    q = exact(threshold)
    return lambda t: ONE / t if t >= q else (2 * q - t) / (q * q)


MARGIN_LOSSES: dict[str, Margin] = {
    "hinge": hinge,
    "squared hinge": squared_hinge,
    "logistic": logistic,
}


def scores(X: np.ndarray, model: Any) -> list[list[Decimal]]:
    """Scores of a fitted linear model, one list a sample, one number a row of ``coef_``."""
    rows = [[exact(w) for w in row] for row in model.coef_]
    shifts = [exact(b) for b in model.intercept_]
    found = []
    for x in X:
        line = [exact(value) for value in x]
        found.append(
            [
                sum((a * w for a, w in zip(line, row, strict=True)), b)
                for row, b in zip(rows, shifts, strict=True)
            ]
        )
    return found


def objective(
    X: np.ndarray,
    y: np.ndarray,
    model: Any,
    loss: Margin,
    *,
    weights: Sequence[float],
    l1: float,
    l2: float,
    scale: Sequence[float] | None = None,
) -> Decimal:
    """``sum_i weights_i loss(y_i z_i) + l1 |scale w|_1 + (l2 / 2) |scale w|^2``, y of -1 and 1."""
    with localcontext() as context:
        context.prec = DIGITS
        total = ZERO
        for (z,), sign, weight in zip(scores(X, model), y, weights, strict=True):
            total += exact(weight) * loss(int(sign) * z)
        units = [ONE] * X.shape[1] if scale is None else [exact(s) for s in scale]
        for w, unit in zip(model.coef_[0], units, strict=True):
            scaled = abs(exact(w) * unit) if w else ZERO
            total += exact(l1) * scaled + exact(l2) / 2 * scaled**2
        return total
