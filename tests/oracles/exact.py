"""Objectives of fitted models in fifty digits: what certificates are held to.

Data, coefficients and intercepts are taken as the floating-point numbers that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

DIGITS = 50
Margin = Callable[[Decimal], Decimal]
Scored = Callable[[list[Decimal], int], Decimal]
ZERO = Decimal(0)
ONE = Decimal(1)


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


def of_margin(loss: Margin) -> Scored:
    """The loss of the margin of a binary sample; class 1 is the positive one."""
    return lambda z, code: loss(z[0] if code else -z[0])


def of_wrong_classes(loss: Margin) -> Scored:
    """The loss summed over minus the scores of the wrong classes."""
    return lambda z, code: sum((loss(-value) for k, value in enumerate(z) if k != code), ZERO)


def crammer_singer(z: list[Decimal], code: int) -> Decimal:
    return max(value - z[code] + (k != code) for k, value in enumerate(z))


def pairwise_squared_hinge(z: list[Decimal], code: int) -> Decimal:
    others = (value for k, value in enumerate(z) if k != code)
    return sum((max(ONE + value - z[code], ZERO) ** 2 for value in others), ZERO)


def multinomial(margin: float) -> Scored:
    def loss(z: list[Decimal], code: int) -> Decimal:
        gains = [value - z[code] + exact(margin) * (k != code) for k, value in enumerate(z)]
        largest = max(gains)
        return largest + sum(((gain - largest).exp() for gain in gains), ZERO).ln()

    return loss


def scores(X: np.ndarray, model: Any, offset: Sequence[float] | None = None) -> list[list[Decimal]]:
    """Scores of a fitted linear model, one list a sample, one number a row of ``coef_``."""
    added = [ZERO] * len(X) if offset is None else [exact(each) for each in offset]
    rows = [[exact(w) for w in row] for row in model.coef_]
    shifts = [exact(b) for b in model.intercept_]
    found = []
    for x, start in zip(X, added, strict=True):
        line = [exact(value) for value in x]
        found.append(
            [
                sum((a * w for a, w in zip(line, row, strict=True)), start + b)
                for row, b in zip(rows, shifts, strict=True)
            ]
        )
    return found


def objective(
    X: np.ndarray,
    codes: np.ndarray,
    model: Any,
    loss: Scored,
    *,
    weights: Sequence[float],
    l1: float,
    l2: float,
    scale: Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
) -> Decimal:
    """``sum_i weights_i loss(z_i, code_i) + l1 |scale W|_1 + (l2 / 2) |scale W|^2``."""
    with localcontext() as context:
        context.prec = DIGITS
        total = ZERO
        for z, code, weight in zip(scores(X, model, offset), codes, weights, strict=True):
            total += exact(weight) * loss(z, int(code))
        for w in sizes(model, scale):
            total += exact(l1) * w + exact(l2) / 2 * w * w
        return total


def sizes(model: Any, scale: Sequence[float] | None = None) -> list[Decimal]:
    """Absolute values of the coefficients, in units of the standardised features."""
    units = [ONE] * model.coef_.shape[1] if scale is None else [exact(s) for s in scale]
    return [
        abs(exact(w) * unit) if w else ZERO
        for row in model.coef_
        for w, unit in zip(row, units, strict=True)
    ]


def tail_mean(margins: list[Decimal], nu: float) -> Decimal:
    """Minus the mean of the share nu of the margins that is smallest."""
    room, total = exact(nu) * len(margins), ZERO
    for t in sorted(margins):
        part = min(room, ONE)
        total += part * t
        room -= part
    return -total / (exact(nu) * len(margins))


def separation(z: list[Decimal], codes: np.ndarray, kappa: float, *, pooled: bool) -> Decimal:
    """Minus the difference of the means of the classes, and kappa times their deviations."""
    means, variances = [], []
    for code in (0, 1):
        own = [value for value, one in zip(z, codes, strict=True) if one == code]
        mean = sum(own, ZERO) / len(own)
        means.append(mean)
        variances.append(sum(((value - mean) ** 2 for value in own), ZERO) / len(own))
    spread = sum(variances, ZERO).sqrt() if pooled else sum(v.sqrt() for v in variances)
    return means[0] - means[1] + exact(kappa) * spread
