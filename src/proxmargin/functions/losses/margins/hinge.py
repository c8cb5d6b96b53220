"""Hinges: the hinge, and quadratics that become linear or end."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.losses.evaluation import capped_gap, evaluated_capped
from proxmargin.compiled.losses.scalars import scalars
from proxmargin.functions.losses.base import Array
from proxmargin.functions.losses.margins.margin import MarginLoss


@scalars
class HingeScalars(NamedTuple):
    """The hinge in compiled kernels."""

    smoothness: float

    def value(self, t: float) -> float:
        return max(1.0 - t, 0.0)

    def descent(self, t: float) -> float:
        return 1.0 if t < 1.0 else 0.0

    def curvature(self, t: float) -> float:
        return 0.0

    def fenchel_young(self, t: float, a: float) -> float:
        return (1.0 - a) * max(1.0 - t, 0.0) + a * max(t - 1.0, 0.0)


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """``[1 - t]_+``; its conjugate at -a is ``-a`` on [0, 1].

    Not smooth: gradient solvers refuse it; it is here as the limit of the huberized hinge and
    for its prox, conjugate and Fenchel-Young terms.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Hinge
    >>> Hinge().value(np.array([-1.0, 0.5, 2.0]))
    array([2. , 0.5, 0. ])
    """

    has_quadratic_conjugate = True  # with a smoothness that is infinite
    is_hinge = True
    smoothness = np.inf
    scalars = HingeScalars(np.inf)
    kinks = (1.0,)
    dual_bound = 1.0

    def value(self, t: Array) -> Array:
        return np.maximum(1.0 - t, 0.0)

    def descent(self, t: Array) -> Array:
        return np.where(t < 1.0, 1.0, 0.0)

    def curvature(self, t: Array) -> Array:
        return np.zeros_like(t)

    def conjugate(self, a: Array) -> Array:
        return np.where((a >= 0) & (a <= 1), -a, np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        return np.full(np.shape(a), -1.0)

    def fenchel_young(self, t: Array, a: Array) -> Array:
        return (1.0 - a) * np.maximum(1.0 - t, 0.0) + a * np.maximum(t - 1.0, 0.0)

    def prox(self, t: Array, step: float) -> Array:
        return t + np.clip(1.0 - t, 0.0, step)


@scalars
class CappedScalars(NamedTuple):
    """The capped quadratic in compiled kernels, see `CappedQuadratic`."""

    smoothness: float
    cap: float

    def value(self, t: float) -> float:
        u = 1.0 - t
        if u <= 0.0:
            return 0.0
        if u < self.cap:
            return 0.5 * self.smoothness * u * u
        return self.smoothness * self.cap * (u - 0.5 * self.cap)

    def descent(self, t: float) -> float:
        return self.smoothness * min(max(1.0 - t, 0.0), self.cap)

    def curvature(self, t: float) -> float:
        return self.smoothness if 0.0 < 1.0 - t < self.cap else 0.0

    def fenchel_young(self, t: float, a: float) -> float:
        # not clipped: the errors of terms that are zero cancel in sums, such as Bregman distances
        gap: float = capped_gap(self.smoothness, self.cap, t, a)
        return gap

    def evaluated(
        self, scores: Any, shift: float, signs: Any, weights: Any, theta: Any, curvature: Any
    ) -> Any:
        height, cap = self.smoothness, self.cap
        return evaluated_capped(height, cap, scores, shift, signs, weights, theta, curvature)

    def zone(self) -> float:
        return self.cap

    def majorant(self, t: float) -> float:
        """Curvature of the quadratic that touches phi on both sides of the curved zone's middle."""
        if self.cap == math.inf:
            return self.smoothness
        return self.smoothness * self.cap / (2.0 * abs(1.0 - t - 0.5 * self.cap))


class CappedQuadratic(MarginLoss):
    """With u = 1 - t: 0 for u <= 0, ``(h/2) u^2`` up to ``cap``, then linear with slope ``h cap``.
    The huberized hinge and the squared hinge are two settings of it."""

    has_quadratic_conjugate = True

    @property
    @abstractmethod
    def scalars(self) -> CappedScalars: ...

    @property
    def smoothness(self) -> float:
        return self.scalars.smoothness

    @property
    def dual_bound(self) -> float:
        return self.scalars.smoothness * self.scalars.cap

    @property
    def has_linear_piece(self) -> bool:  # type: ignore[override]
        return bool(np.isfinite(self.scalars.cap))

    @property
    def kinks(self) -> tuple[float, ...]:
        cap = self.scalars.cap
        return (1.0, 1.0 - cap) if np.isfinite(cap) else (1.0,)

    @property
    def zone(self) -> float:
        return self.scalars.cap

    def value(self, t: Array) -> Array:
        h, cap = self.scalars
        u = np.maximum(1.0 - t, 0.0)
        inside = np.minimum(u, cap)
        return h * inside * (u - 0.5 * inside)

    def descent(self, t: Array) -> Array:
        h, cap = self.scalars
        return h * np.clip(1.0 - t, 0.0, cap)

    def curvature(self, t: Array) -> Array:
        h, cap = self.scalars
        return np.where((t < 1.0) & (1.0 - t < cap), h, 0.0)

    def conjugate(self, a: Array) -> Array:
        value = -a + 0.5 * a**2 / self.scalars.smoothness
        return np.where((a >= 0) & (a <= self.dual_bound), value, np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        return a / self.scalars.smoothness - 1.0

    def fenchel_young(self, t: Array, a: Array) -> Array:
        h, cap = self.scalars
        u = 1.0 - t
        beyond = np.maximum(u - cap, 0.0)  # past the cap; zero when there is none
        quadratic = (h * np.clip(u, 0.0, cap) - a) ** 2 / (2.0 * h)
        slack = np.where(beyond > 0, (h * np.minimum(cap, u) - a) * beyond, 0.0)
        return quadratic + a * np.maximum(-u, 0.0) + slack

    def prox(self, t: Array, step: float) -> Array:
        # u - t = step * descent(u), solved on each of the three linear pieces
        h = self.scalars.smoothness
        pulled = step * h * np.maximum(1.0 - t, 0.0) / (1.0 + step * h)
        return t + np.minimum(pulled, step * self.dual_bound)


@dataclass(frozen=True)
class SquaredHinge(CappedQuadratic):
    """``[1 - t]_+^2``; its conjugate at -a is ``-a + a^2/4`` for a >= 0.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([-1.0, 0.5, 2.0]))
    array([4.  , 0.25, 0.  ])
    """

    scalars = CappedScalars(2.0, np.inf)


@dataclass(frozen=True)
class HuberizedHinge(CappedQuadratic):
    """0 for t > 1, ``(1-t)^2 / (2 delta)`` down to ``1 - delta``, then ``1 - t - delta/2``.

    Parameters
    ----------
    delta : float > 0
        Width of the quadratic zone; towards 0 the loss becomes the hinge.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import HuberizedHinge
    >>> HuberizedHinge(delta=2.0).value(np.array([-2.0, 0.0, 2.0]))
    array([2.  , 0.25, 0.  ])
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"delta must be a finite number > 0, got {self.delta!r}")

    @property
    def scalars(self) -> CappedScalars:
        return CappedScalars(1.0 / self.delta, float(self.delta))

    def widened(self, zone: float) -> HuberizedHinge:
        return HuberizedHinge(max(zone, self.delta))
