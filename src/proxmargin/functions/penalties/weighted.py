"""The elastic net with factors and bounds of its own for each feature."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.compiled.solvers.nets import Net
from proxmargin.functions.penalties.base import Penalty, Step
from proxmargin.functions.penalties.elastic_net import ElasticNet, ridge_product, soft_threshold
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.rows import largest_of_rows, sums_of_rows
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array


@dataclass(frozen=True, eq=False)
class WeightedElasticNet(Penalty):
    """``G(W) = sum_jk factors_j (l1 |w_jk| + (l2 / 2) w_jk^2)``  where  ``lower <= W <= upper``.

    Parameters
    ----------
    inner : ElasticNet
        With the strengths l1 and l2.
    factors : float or (n_features,) array >= 0
        A feature with factor zero is never penalised. They are taken as they are, not rescaled.
    lower, upper : float or (n_features,) array
        ``lower <= 0 <= upper``; infinite where there is no bound.

    Raises
    ------
    ValueError
        Factors or bounds out of their range, or of different lengths.

    Notes
    -----
    With ``v`` for a dual coordinate and ``e = soft(v, l1)`` (strengths of the feature),

        ``G*(v) = max_u  e u - l2 u^2 / 2``,  attained at ``u = e / l2`` clipped to the bounds:

    finite for all v where there is a ridge or a bound; otherwise the indicator of ``|v| <= l1``,
    on the side without a bound. A feature with neither penalty nor bounds requires ``v = 0``, as a
    free intercept does.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import ElasticNet, WeightedElasticNet
    >>> net = WeightedElasticNet(ElasticNet(l1=1.0), factors=np.array([0.0, 2.0]), lower=0.0)
    >>> net.value(np.array([[5.0], [1.5]]))
    3.0
    >>> net.prox(np.array([[-1.0], [5.0]]), 1.0).ravel().tolist()
    [0.0, 3.0]
    """

    inner: ElasticNet
    factors: float | Array = 1.0
    lower: float | Array = field(default=-np.inf)
    upper: float | Array = field(default=np.inf)

    def __post_init__(self) -> None:
        for name in ("factors", "lower", "upper"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim > 1:
                raise ValueError(f"WeightedElasticNet: {name} must be a number or one a feature")
            object.__setattr__(self, name, values if values.ndim else float(values))
        if not np.all(np.isfinite(self.factors) & (np.asarray(self.factors) >= 0)):
            raise ValueError("WeightedElasticNet: factors must be finite numbers >= 0")
        if not (np.all(np.asarray(self.lower) <= 0) and np.all(np.asarray(self.upper) >= 0)):
            raise ValueError("WeightedElasticNet: bounds must be lower <= 0 <= upper")
        if len({np.size(each) for each in self.of_features if np.ndim(each)}) > 1:
            raise ValueError("WeightedElasticNet: factors and bounds must have the same length")

    @property
    def of_features(self) -> tuple[float | Array, float | Array, float | Array]:
        """Factors, lower and upper bounds: numbers, or one a feature."""
        return self.factors, self.lower, self.upper

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        dual = Trait.SMOOTH_CONJUGATE if self.l2 > 0 else Trait.NONE
        return Trait.SEPARABLE | Trait.PROX_JACOBIAN | Trait.NET | dual

    @property
    def l1(self) -> float:  # type: ignore[override]
        """The largest l1 strength of a feature."""
        return self.inner.l1 * float(np.max(self.factors))

    @property
    def l2(self) -> float:  # type: ignore[override]
        """The least l2 strength of a feature: the modulus of strong convexity."""
        return self.inner.l2 * float(np.min(self.factors))

    def net(self, n_features: int) -> Net:
        strengths = (
            self.inner.l1 * np.asarray(self.factors),
            self.inner.l2 * np.asarray(self.factors),
        )
        return Net(*(_filled(each, n_features) for each in (*strengths, self.lower, self.upper)))

    def unpenalised(self, n_features: int) -> NDArray[np.intp]:
        net = self.net(n_features)
        return np.flatnonzero((net.l1 == 0) & (net.l2 == 0) & (net.lower < net.upper))

    def near_zero(self) -> WeightedElasticNet:
        shrunk = np.asarray(self.factors) > 0  # others are not at zero where the path starts
        lower = np.where(shrunk & (np.asarray(self.lower) < 0), -np.inf, self.lower)
        upper = np.where(shrunk & (np.asarray(self.upper) > 0), np.inf, self.upper)
        return replace(self, lower=lower, upper=upper)

    @property
    def can_sum_to_zero(self) -> bool:
        bounded = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
        return bool(np.all(np.asarray(self.factors) > 0) and not bounded)

    def restricted(self, index: NDArray[np.intp]) -> WeightedElasticNet:
        arrays = (np.asarray(each) for each in self.of_features)
        factors, lower, upper = (each[index] if each.ndim else each for each in arrays)
        return replace(self, factors=factors, lower=lower, upper=upper)

    def times(self, factor: float) -> WeightedElasticNet:
        return replace(self, inner=self.inner.times(factor))

    def with_l1_times(self, factor: float) -> WeightedElasticNet:
        return replace(self, inner=self.inner.with_l1_times(factor))

    def value(self, coef: Array) -> float:
        l1, l2, lower, upper = self._columns
        if np.any((coef < lower * (1 + DOMAIN_ROUNDING)) | (coef > upper * (1 + DOMAIN_ROUNDING))):
            return np.inf
        return float((l1 * np.abs(coef)).sum()) + 0.5 * float((l2 * coef * coef).sum())

    def prox(self, coef: Array, step: Step) -> Array:
        l1, l2, lower, upper = self._columns
        return np.clip(soft_threshold(coef, step * l1) / (1.0 + step * l2), lower, upper)

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        l1, l2, lower, upper = self._columns
        moved = self.prox(coef, step)
        inside = (np.abs(coef) > step * l1) & (moved > lower) & (moved < upper)
        return ProxJacobian(inside / (1.0 + step * l2))

    def conjugate(self, dual: Array) -> float:
        excess, u = self._attained(dual)
        if not np.isfinite(u).all():
            return np.inf
        return float((excess * u - 0.5 * self._columns[1] * u * u).sum())

    def conjugate_gradient(self, dual: Array) -> Array:
        return self._attained(dual)[1] if self.l2 > 0 else super().conjugate_gradient(dual)

    def _attained(self, dual: Array) -> tuple[Array, Array]:
        """``e = soft(dual, l1)``, and the u that attains the conjugate, which may be infinite."""
        l1, l2, lower, upper = self._columns
        excess = soft_threshold(dual, l1)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(excess == 0.0, 0.0, excess / l2)
        return excess, np.clip(u, lower, upper)

    def domain_scale(self, dual: Array) -> float:
        _, u = self._attained(dual)
        beyond = ~np.isfinite(u)
        if not beyond.any():
            return 1.0
        limits = np.broadcast_to(self._columns[0], dual.shape)[beyond]
        return float((limits / np.abs(dual[beyond])).min())

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """With the u that attains ``G*(dual)`` and its sign s,

            ``l1 (|w| - s w)  +  (l1 s + l2 u - v) (w - u)  +  l2 (w - u)^2 / 2``,

        three terms >= 0; the second is zero but where u is zero or at a bound.
        """
        l1, l2, lower, upper = self._columns
        _, u = self._attained(dual)
        outside = ~np.isfinite(u)  # of the domain, by rounding
        u = np.where(outside, 0.0, u)
        sign, apart = np.sign(u), coef - u
        inside = (u != 0.0) & (u > lower) & (u < upper)
        push = np.where(inside, 0.0, l1 * sign + l2 * u - dual)
        terms = l1 * (np.abs(coef) - sign * coef) + push * apart + 0.5 * l2 * apart * apart
        hidden = np.abs(dual * coef)  # a bound on what such rounding hides where l1 is zero
        terms = np.where(outside & (l1 == 0.0), hidden, np.maximum(terms, 0.0))
        return sums_of_rows(terms)

    def largest_product(self, sizes: Array, level: float) -> float:
        """The lesser of the bounds by l1 and by the ridge for penalised features; for others the
        bound by their box."""
        l1, l2, lower, upper = (np.broadcast_to(each, sizes.shape) for each in self._columns)
        shrunk = (l1 > 0) | (l2 > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = float(np.where(shrunk & (sizes > 0), sizes / l1, 0.0).max(initial=0.0))
            scaled = np.where(shrunk & (sizes > 0), sizes / np.sqrt(l2), 0.0)
            reach = np.where(shrunk | (sizes == 0), 0.0, sizes * np.maximum(-lower, upper))
        by_l1 = level * most if np.isfinite(most) else np.inf  # at a level of zero too
        by_l2 = ridge_product(scaled, level, 1.0) if np.isfinite(scaled).all() else np.inf
        return (min(by_l1, by_l2) if shrunk.any() else 0.0) + float(np.nansum(reach))

    def violations(self, coef: Array, dual: Array) -> Array:
        l1, l2, lower, upper = self._columns
        rise = np.where(upper > 0, dual - l1, 0.0)
        fall = np.where(lower < 0, -dual - l1, 0.0)
        at_zero = np.maximum(np.maximum(rise, fall), 0.0)
        away = dual - l2 * coef - l1 * np.sign(coef)
        away = np.where(coef >= upper, np.minimum(away, 0.0), away)
        away = np.where(coef <= lower, np.maximum(away, 0.0), away)
        return largest_of_rows(np.where(coef == 0, at_zero, np.abs(away)))

    def critical_strength(self, dual: Array) -> float:
        """The maximum over features with a positive factor; the others need not be zero."""
        factors, lower, upper = (
            np.broadcast_to(_column(each), dual.shape) for each in self.of_features
        )
        reach = np.maximum(np.where(upper > 0, dual, 0.0), np.where(lower < 0, -dual, 0.0))
        live = factors > 0
        return float((reach[live] / factors[live]).max(initial=0.0))

    @property
    def _columns(self) -> tuple[Array, Array, Array, Array]:
        """Strengths and bounds, (n_features, 1) or (1, 1) each."""
        factors = _column(self.factors)
        strengths = self.inner.l1 * factors, self.inner.l2 * factors
        return (*strengths, _column(self.lower), _column(self.upper))


def _column(values: float | Array) -> Array:
    return np.reshape(np.asarray(values, dtype=np.float64), (-1, 1))


def _filled(values: float | Array, n_features: int) -> Array:
    """One number a feature, in a new array."""
    if np.ndim(values) and np.size(values) != n_features:
        raise ValueError(
            f"WeightedElasticNet: {np.size(values)} factors or bounds for {n_features} features"
        )
    return np.array(np.broadcast_to(values, n_features), dtype=np.float64)
