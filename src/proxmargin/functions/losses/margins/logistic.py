"""The logistic loss, and the loss of distance-weighted discrimination: smooth, without kinks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, xlog1py, xlogy

from proxmargin.compiled.losses.evaluation import (
    evaluated_logistic,
    logistic,
    logistic_descent,
    logistic_shares,
)
from proxmargin.compiled.losses.exponentials import log_excess, relative_entropy
from proxmargin.compiled.losses.scalars import scalars
from proxmargin.compiled.rounding import ROOT_STEPS, SUM_ROUNDING
from proxmargin.functions.losses.base import Array
from proxmargin.functions.losses.margins.margin import MarginLoss

LARGEST_THRESHOLD = 1e100  # as of parameters that are strengths: products stay within float64


@scalars
class LogisticScalars(NamedTuple):
    """The logistic loss in compiled kernels."""

    smoothness: float = 0.25

    def value(self, t: float) -> float:
        value: float = logistic(t)
        return value

    def descent(self, t: float) -> float:
        descent: float = logistic_descent(t)
        return descent

    def curvature(self, t: float) -> float:
        near, far = logistic_shares(t)
        curvature: float = near * far
        return curvature

    def descent_and_curvature(self, t: float) -> tuple[float, float]:
        """Both with one exponential."""
        near, far = logistic_shares(t)
        return (far if t > 0.0 else near), near * far

    def fenchel_young(self, t: float, a: float) -> float:
        if a <= 0.0:
            return self.value(t)
        if a >= 1.0:
            return self.value(-t)
        # the shares are p = 1 / (1 + e^t) and 1 - p, with logarithms -phi(-t) and -phi(t)
        near, far = logistic_shares(t)
        p, q = (far, near) if t > 0.0 else (near, far)
        least = self.value(abs(t))
        own: float = relative_entropy(a, p, -least - max(t, 0.0))
        other: float = relative_entropy(1.0 - a, q, -least - max(-t, 0.0))
        return own + other

    def evaluated(
        self, scores: Any, shift: float, signs: Any, weights: Any, theta: Any, curvature: Any
    ) -> Any:
        return evaluated_logistic(scores, shift, signs, weights, theta, curvature)

    def shrunk_bound(self, a: float, curvature: float) -> float:
        """``phi*(-s)`` has the curvature ``1 / (s (1 - s)) <= 1 / (share a (1 - a))`` for s between
        ``share a`` and a; the term is its integral times ``s - share a``."""
        if curvature > 0.0:
            return a * a / curvature
        return math.inf if a > 0.0 else 0.0

    def value_and_shrunk_gap(
        self, t: float, share: float, near_share: float
    ) -> tuple[float, float]:
        """With p = 1 / (1 + e^t) and q = 1 - p, the relative entropies of (share p, 1 - share p)
        are ``near_share p`` and that of r = (1 - share) p + q."""
        e = math.exp(-abs(t))
        near = 1.0 / (1.0 + e)
        p, q = (e * near, near) if t > 0 else (near, e * near)
        value = math.log1p(e) + max(-t, 0.0)
        moved = (1.0 - share) * p
        rest = moved + q
        off = -moved / rest
        excess = log_excess(off) if off > -0.5 else off + value + math.log(rest)
        return value, near_share * p + rest * excess


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """``log(1 + exp(-t))``; its conjugate at -a is the negative entropy of (a, 1 - a).

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Logistic
    >>> Logistic().value(np.array([-1.0, 0.0, 1.0])).round(4)
    array([1.3133, 0.6931, 0.3133])
    """

    is_strictly_convex = True
    has_linear_piece = False
    scalars = LogisticScalars()
    smoothness = 0.25
    dual_bound = 1.0

    def value(self, t: Array) -> Array:
        return np.logaddexp(0.0, -t)

    def descent(self, t: Array) -> Array:
        result: Array = expit(-t)
        return result

    def curvature(self, t: Array) -> Array:
        result: Array = expit(t) * expit(-t)
        return result

    def conjugate(self, a: Array) -> Array:
        inside = (a >= 0) & (a <= 1)
        clipped = np.clip(a, 0.0, 1.0)
        return np.where(inside, xlogy(clipped, clipped) + xlog1py(1.0 - clipped, -clipped), np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        result: Array = logit(a)
        return result

    def fenchel_young(self, t: Array, a: Array) -> Array:
        # the divergence of (a, 1 - a) from the shares p = -phi'(t) and 1 - p
        return _relative_entropy(a, expit(-t), -self.value(-t)) + _relative_entropy(
            1.0 - a, expit(t), -self.value(t)
        )

    def prox(self, t: Array, step: float) -> Array:
        """Newton on ``u - t = step * expit(-u)``, whose root lies in [t, t + step]. The difference
        is concave for u > 0 and convex for u < 0, so that Newton's iterates from a point between 0
        and the root approach it from one side."""
        u = _towards_root(t, step)
        for _ in range(ROOT_STEPS):
            p = expit(-u)
            rest = u - t - step * p
            if np.all(np.abs(rest) <= SUM_ROUNDING * (np.abs(u) + np.abs(t) + step * p)):
                break
            u = u - rest / (1.0 + step * p * (1.0 - p))
        return u


def _towards_root(t: Array, step: float) -> Array:
    """A point between 0 and the root of ``u - t = step / (1 + e^u)``, near it if step is large. For
    a root u > 0 replace u on the left by its bound ``log(1 + step)``, and ``1 + e^u`` by e^u with
    twice the size; a negative root is minus the one for ``-t - step``."""
    negative = t + 0.5 * step < 0
    t = np.where(negative, -t - step, t)
    guess = np.log(np.maximum(0.5 * step / np.maximum(np.log1p(step) - t, 1e-3), 1.0))
    guess = np.maximum(guess, np.maximum(t, 0.0))
    return np.where(negative, -guess, guess)


def _relative_entropy(a: Array, p: Array, log_p: Array) -> Array:
    """``a log(a / p) + p - a >= 0``, ``0 log 0 = 0``, also where p is too small for a float."""
    near = np.abs(p - a) <= 0.5 * a
    x = np.divide(p - a, a, out=np.zeros_like(p), where=near & (a > 0))
    terms = np.where(near, a * (x - np.log1p(x)), xlogy(a, a) - a * log_p + (p - a))
    return np.maximum(terms, 0.0)


@dataclass(frozen=True)
class DistanceWeighted(MarginLoss):
    """``1/t`` for t >= q, and its tangent ``(2 q - t) / q^2`` below; its conjugate at -a is
    ``-2 sqrt(a)`` on [0, 1/q^2].

    Parameters
    ----------
    threshold : float > 0
        The q above, in units of the scores. Ito, Takeda and Toh (2017) write ``q^2 = m nu`` with
        a nu that is not confined to (0, 1].

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import DistanceWeighted
    >>> DistanceWeighted(1.0).value(np.array([-1.0, 1.0, 2.0]))
    array([3. , 1. , 0.5])
    """

    threshold: float

    def __post_init__(self) -> None:
        if not 1.0 / LARGEST_THRESHOLD <= self.threshold <= LARGEST_THRESHOLD:
            raise ValueError(
                f"threshold must be a number > 0 (from {1.0 / LARGEST_THRESHOLD:g} to "
                f"{LARGEST_THRESHOLD:g}), got {self.threshold!r}"
            )

    @property
    def smoothness(self) -> float:
        return 2.0 / float(self.threshold) ** 3

    @property
    def kinks(self) -> tuple[float, ...]:
        return (float(self.threshold),)

    @property
    def dual_bound(self) -> float:
        q = np.float64(self.threshold)
        return float(1.0 / (q * q))  # as `descent` rounds it

    def value(self, t: Array) -> Array:
        below = np.maximum(self.threshold - t, 0.0)
        return 1.0 / np.maximum(t, self.threshold) + below * self.dual_bound

    def descent(self, t: Array) -> Array:
        beyond = np.maximum(t, self.threshold)
        return 1.0 / (beyond * beyond)

    def curvature(self, t: Array) -> Array:
        return np.where(t > self.threshold, 2.0 / np.maximum(t, self.threshold) ** 3, 0.0)

    def conjugate(self, a: Array) -> Array:
        inside = (a >= 0) & (a <= self.dual_bound)
        return np.where(inside, -2.0 * np.sqrt(np.maximum(a, 0.0)), np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        root = np.sqrt(np.asarray(a, dtype=np.float64))
        return np.divide(-1.0, root, out=np.full_like(root, -np.inf), where=root > 0)

    def fenchel_young(self, t: Array, a: Array) -> Array:
        beyond, root = np.maximum(t, self.threshold), np.sqrt(a)
        far = (1.0 / np.sqrt(beyond) - root * np.sqrt(beyond)) ** 2
        top = 1.0 / self.threshold
        near = (self.dual_bound - a) / (top + root) * (2.0 - t * (top + root))
        return np.where(t >= self.threshold, far, np.maximum(near, 0.0))

    def prox(self, t: Array, step: float) -> Array:
        """``t + step / q^2`` up to the threshold, beyond it the root of ``u^3 - t u^2 = step``.
        Newton on ``u - t - step / u^2``, which is increasing and concave, from below the root."""
        linear = t + step * self.dual_bound
        u = np.maximum(_below_root(np.asarray(t, dtype=np.float64), step), self.threshold)
        for _ in range(ROOT_STEPS):
            pull = step / (u * u)
            moved = u - (u - t - pull) / (1.0 + 2.0 * pull / u)
            ended = np.all(np.abs(moved - u) <= SUM_ROUNDING * u)
            u = np.maximum(moved, self.threshold)
            if ended:
                break
        return np.where(linear <= self.threshold, linear, u)


def _below_root(t: Array, step: float) -> Array:
    """A number of at least half the positive root of ``u^2 (u - t) = step``, and at most it. For
    ``t >= 0`` the root is in [max(t, c), t + c] with ``c = step^(1/3)``; for t < 0 it is in [r /
    sqrt(2), r] with ``r = min(c, sqrt(step / |t|))``."""
    cube = np.cbrt(step)
    down = np.maximum(-t, step / (cube * cube))  # where this is larger than -t, r is cube
    return np.where(t >= 0, np.maximum(t, cube), np.sqrt(0.5 * step / down))
