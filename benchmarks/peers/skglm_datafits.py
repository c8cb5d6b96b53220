"""Losses for skglm that it does not ship: huberized hinge, squared hinge and logistic, each
with an exact intercept.

Numba compiles these classes, so they keep to skglm's names: `Xw` are the scores, `y` the labels,
and a sparse design is (data, indptr, indices) by columns. Each loss is the mean of a
smooth function of the margin; only `_slope`, `_bend` and `_value` differ. `jitclass` knows no
inheritance between compiled classes, but it does compile methods inherited from plain ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64
from skglm.datafits.base import BaseDatafit

MOST_NEWTON_STEPS = 50  # bisection is the fallback; six steps are usual
FLAT = 1e-12  # a mean derivative below this is rounding
LEAST_BEND = 1e-3  # share of the steepest curvature that a Newton step assumes at least


class MarginDatafit(BaseDatafit):
    """mean phi(y_i Xw_i); a subclass has `_value(t)`, `_slope(t)`, `_bend(t)`, `_steepest()`."""

    def value(self, y, w, Xw):  # type: ignore[no-untyped-def]
        total = 0.0
        for i in range(len(y)):
            total += self._value(y[i] * Xw[i])
        return total / len(y)

    def raw_grad(self, y, Xw):  # type: ignore[no-untyped-def]
        grad = np.empty_like(Xw)
        for i in range(len(y)):
            grad[i] = y[i] * self._slope(y[i] * Xw[i]) / len(y)
        return grad

    def raw_hessian(self, y, Xw):  # type: ignore[no-untyped-def]
        hessian = np.empty_like(Xw)
        for i in range(len(y)):
            hessian[i] = self._bend(y[i] * Xw[i]) / len(y)
        return hessian

    def get_lipschitz(self, X, y):  # type: ignore[no-untyped-def]
        return (X**2).sum(axis=0) * self._steepest() / len(y)

    def get_lipschitz_sparse(self, X_data, X_indptr, X_indices, y):  # type: ignore[no-untyped-def]
        n_features = len(X_indptr) - 1
        lipschitz = np.zeros(n_features, dtype=X_data.dtype)
        for j in range(n_features):
            column = X_data[X_indptr[j] : X_indptr[j + 1]]
            lipschitz[j] = (column**2).sum() * self._steepest() / len(y)
        return lipschitz

    def gradient_scalar(self, X, y, w, Xw, j):  # type: ignore[no-untyped-def]
        total = 0.0
        for i in range(len(y)):
            total += X[i, j] * y[i] * self._slope(y[i] * Xw[i])
        return total / len(y)

    def gradient_scalar_sparse(self, X_data, X_indptr, X_indices, y, Xw, j):  # type: ignore[no-untyped-def]
        total = 0.0
        for k in range(X_indptr[j], X_indptr[j + 1]):
            i = X_indices[k]
            total += X_data[k] * y[i] * self._slope(y[i] * Xw[i])
        return total / len(y)

    def full_grad_sparse(self, X_data, X_indptr, X_indices, y, Xw):  # type: ignore[no-untyped-def]
        raw = self.raw_grad(y, Xw)
        n_features = len(X_indptr) - 1
        grad = np.zeros(n_features, dtype=X_data.dtype)
        for j in range(n_features):
            for k in range(X_indptr[j], X_indptr[j + 1]):
                grad[j] += X_data[k] * raw[X_indices[k]]
        return grad

    def intercept_update_step(self, y, Xw):  # type: ignore[no-untyped-def]
        """Minus the step to the exact intercept, by Newton inside a bracket.

        skglm's own datafits take one gradient step; the exact one was never slower here and, for
        the logistic loss on many samples, some twenty times faster.
        """
        b, low, high = 0.0, -np.inf, np.inf
        for _ in range(MOST_NEWTON_STEPS):
            slope, bend = 0.0, 0.0
            for i in range(len(y)):
                t = y[i] * (Xw[i] + b)
                slope += y[i] * self._slope(t)
                bend += self._bend(t)
            if abs(slope) <= FLAT * len(y):
                break
            if slope > 0.0:
                high = b
            else:
                low = b
            newton = b - slope / max(bend, LEAST_BEND * len(y) * self._steepest())
            b = newton if low < newton < high else 0.5 * (low + high)
        return -b


class HuberizedHingeDatafit(MarginDatafit):
    """phi = 0, (1-t)^2/(2 delta), 1 - t - delta/2; `floor` keeps ProxNewton's model bounded."""

    def __init__(self, delta, floor):  # type: ignore[no-untyped-def]
        self.delta = delta
        self.floor = floor

    def get_spec(self) -> tuple[Any, ...]:
        return (("delta", float64), ("floor", float64))

    def params_to_dict(self) -> dict[str, float]:
        return {"delta": self.delta, "floor": self.floor}

    def _value(self, t):  # type: ignore[no-untyped-def]
        u = 1.0 - t
        if u <= 0.0:
            return 0.0
        if u < self.delta:
            return u * u / (2.0 * self.delta)
        return u - self.delta / 2.0

    def _slope(self, t):  # type: ignore[no-untyped-def]
        return -min(max((1.0 - t) / self.delta, 0.0), 1.0)

    def _bend(self, t):  # type: ignore[no-untyped-def]
        u = 1.0 - t
        return 1.0 / self.delta if 0.0 <= u <= self.delta else self.floor / self.delta

    def _steepest(self):  # type: ignore[no-untyped-def]
        return 1.0 / self.delta


class SquaredHingeDatafit(MarginDatafit):
    """phi = max(0, 1 - t)^2."""

    def __init__(self) -> None:
        pass

    def get_spec(self) -> tuple[Any, ...]:
        return ()

    def params_to_dict(self) -> dict[str, float]:
        return {}

    def _value(self, t):  # type: ignore[no-untyped-def]
        return max(1.0 - t, 0.0) ** 2

    def _slope(self, t):  # type: ignore[no-untyped-def]
        return -2.0 * max(1.0 - t, 0.0)

    def _bend(self, t):  # type: ignore[no-untyped-def]
        return 2.0 if t <= 1.0 else 0.0

    def _steepest(self):  # type: ignore[no-untyped-def]
        return 2.0


class LogisticDatafit(MarginDatafit):
    """phi = log(1 + exp(-t)); skglm's own with the exact intercept step above."""

    def __init__(self) -> None:
        pass

    def get_spec(self) -> tuple[Any, ...]:
        return ()

    def params_to_dict(self) -> dict[str, float]:
        return {}

    def _value(self, t):  # type: ignore[no-untyped-def]
        return np.log1p(np.exp(-t)) if t > 0.0 else np.log1p(np.exp(t)) - t

    def _slope(self, t):  # type: ignore[no-untyped-def]
        return -1.0 / (1.0 + np.exp(t))

    def _bend(self, t):  # type: ignore[no-untyped-def]
        share = 1.0 / (1.0 + np.exp(t))
        return share * (1.0 - share)

    def _steepest(self):  # type: ignore[no-untyped-def]
        return 0.25
