"""A weighted sum of losses of margins: binary, one-vs-rest and wrong-class losses alike."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled import library
from proxmargin.compiled.losses import margins as compiled
from proxmargin.compiled.rounding import SUM_ROUNDING, TINY
from proxmargin.functions.losses.base import Box, DualForm, Loss
from proxmargin.functions.losses.intercept import CURVATURE_FLOOR, minimise_shift
from proxmargin.functions.losses.margins.margin import MarginDual, MarginLoss, QuadraticMarginDual
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.rows import largest_of_rows
from proxmargin.functions.traits import Trait
from proxmargin.runtime.memory import beside, cached_property, empty_beside
from proxmargin.runtime.types import Array


def minimise_hinge_shifts(scores: Array, signs: Array, weights: Array) -> Array:
    """``argmin_b sum_ik weights_ik [1 - signs_ik (scores_ik + b_k)]_+`` where b sums to zero. The
    slope in each b_k is a step function, and at the minimum all outputs have the same slope. The
    b_k of a common slope grow with it, and so does their sum: bisect over the steps for the slope
    at which the sum changes its sign, then interpolate between the two ends of its interval."""
    kinks, levels = _staircases(signs - scores, signs, weights)
    stairs = np.unique(levels)
    low, high = 0, stairs.size - 1  # the first stair whose upper end has a sum of zero or more
    while low < high:
        middle = (low + high) // 2
        if _ends(kinks, levels, stairs[middle])[1].sum() >= 0:
            high = middle
        else:
            low = middle + 1
    left, right = _ends(kinks, levels, stairs[low])
    if left.sum() > 0:  # only where rounding took two equal stairs for two
        left = _ends(kinks, levels, stairs[max(low - 1, 0)])[0]
    share = left.sum() / min(left.sum() - right.sum(), -TINY)
    found: Array = left + np.clip(share, 0.0, 1.0) * (right - left)
    return found - found.mean()


def _staircases(kinks: Array, signs: Array, weights: Array) -> tuple[Array, Array]:
    """Kinks in order between two far ends, (n + 2, K), and the slopes between them, (n + 1, K)."""
    order = np.argsort(kinks, axis=0)
    kinks = np.take_along_axis(kinks, order, axis=0)
    first = -(weights * (signs > 0)).sum(axis=0)
    levels = np.concatenate([[first], first + np.cumsum(np.take_along_axis(weights, order, 0), 0)])
    # one output may have to make up for all the others
    far = np.full((1, kinks.shape[1]), kinks.shape[1] * (1.0 + np.abs(kinks).max(initial=0.0)))
    return np.concatenate([-far, kinks, far]), levels


def _ends(kinks: Array, levels: Array, slope: float) -> tuple[Array, Array]:
    """The least and the largest b of each output at which its slope is ``slope``."""
    below = (levels < slope).sum(axis=0)
    upto = (levels <= slope).sum(axis=0)
    outputs = np.arange(kinks.shape[1])
    return kinks[below, outputs], kinks[upto, outputs]


@dataclass(frozen=True, eq=False)
class MarginSum(Loss):
    """``L(Z) = sum_ik weights_ik phi(signs_ik z_ik)``.

    Parameters
    ----------
    phi : MarginLoss
    signs : (n_samples, n_outputs) array of -1 and +1
    weights : (n_samples, n_outputs) array >= 0
        Sample weights divided by their sum; zero where a score does not count.
    sample_count : float
        The sum that the weights were divided by.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import HuberizedHinge, MarginSum
    >>> signs, weights = np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]])
    >>> loss = MarginSum(HuberizedHinge(), signs, weights, 2.0)
    >>> float(loss.value(np.array([[2.0], [0.0]])))
    0.25
    """

    phi: MarginLoss
    signs: Array
    weights: Array
    sample_count: float = 0.0

    @cached_property
    def scalars(self) -> tuple[Any, ...] | None:
        """`MarginLoss.scalars`; None where a loss of the user's own has some and nothing compiles
        them, so that its array formulas are taken."""
        found = self.phi.scalars
        if found is None or library.takes(type(found)):
            return found
        _tell_of_array_formulas(type(self.phi).__name__)
        return None

    @cached_property
    def traits(self) -> Trait:  # type: ignore[override]
        phi = self.phi
        smooth = phi.smoothness < np.inf
        return _traits(
            single=self.n_outputs == 1,
            smooth=smooth,
            compiled=smooth and self.scalars is not None,
            hinge=phi.is_hinge,
            lines=phi.has_quadratic_conjugate,
        )

    @cached_property
    def box(self) -> Box | None:  # type: ignore[override]
        if self.n_outputs > 1 or not self.phi.has_quadratic_conjugate:
            return None
        weights, bound = self.weights[:, 0], self.phi.dual_bound
        curvature = np.zeros(weights.size)
        if not self.phi.is_hinge:
            with np.errstate(over="ignore"):  # of a weight that is as good as none
                np.divide(1.0 / self.phi.smoothness, weights, out=curvature, where=weights > 0)
        upper = bound * weights if bound < np.inf else np.where(weights > 0, np.inf, 0.0)
        return Box(self.signs[:, 0], upper, curvature, np.ones(weights.size), 0.0)

    @cached_property
    def n_outputs(self) -> int:  # type: ignore[override]
        return int(self.signs.shape[1])

    @cached_property
    def shares(self) -> Array:  # type: ignore[override]
        largest = largest_of_rows(self.weights)
        return np.divide(largest, largest.sum(), out=empty_beside(largest))

    def value(self, scores: Array) -> float:
        if self.scalars is None:
            return float(np.vdot(self.weights, self.phi.value(self.signs * scores)))
        return float(compiled.value_sum(self.scalars, *self._in_rows(scores)))

    def values(self, scores: Array) -> Array:
        result: Array = np.einsum("ik,nik->n", self.weights, self.phi.value(self.signs * scores))
        return result

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        if self.scalars is None:
            dual = -self.weights * self.signs * self.phi.descent(self.signs * scores)
            return self.value(scores), dual
        gradient = empty_beside(scores)
        value = compiled.value_and_gradient(self.scalars, *self._in_rows(scores), gradient)
        return value, gradient

    def curvature_bound(self, row_weights: Array) -> float:
        return self.phi.smoothness * float((row_weights @ self.weights).max())

    @property
    def row_curvatures(self) -> Array:
        if not np.isfinite(self.phi.smoothness):
            return super().row_curvatures
        return self.phi.smoothness * largest_of_rows(self.weights)

    def curvatures(self, scores: Array) -> Array:
        curvatures: Array = self.weights * self.phi.curvature(self.signs * scores)
        return curvatures

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        if self.scalars is None:
            terms = self.phi.fenchel_young(self.signs * scores, self._coordinates(dual))
            return float(np.vdot(self.weights, terms))
        dual = np.ascontiguousarray(dual)
        return float(compiled.bregman_sum(self.scalars, *self._in_rows(scores), dual))

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """`Loss.growth` for smooth losses with a compiled form; else the larger of the exact
        increases at both ends of ``t -+ error``, because the terms are convex. This also serves a
        dual point of zero, which proves a loss of zero optimal: there phi is zero around t, without
        curvature."""
        if self.scalars is not None and self.phi.is_hinge:
            error = error if error.ndim == 1 else np.broadcast_to(error, scores.shape)
            parts = map(np.ascontiguousarray, (dual, error))
            return float(compiled.growth_sum(self.scalars, *self._in_rows(scores), *parts))
        if self.scalars is not None and dual.any():
            return super().growth(scores, gradient, dual, error)
        t, a = self.signs * scores, self._coordinates(dual)
        low, high = self.phi.fenchel_young(t - error, a), self.phi.fenchel_young(t + error, a)
        terms = np.maximum(low, high) - self.phi.fenchel_young(t, a)
        return float(np.vdot(self.weights, np.maximum(terms, 0.0)))

    def pessimistic(self, scores: Array, error: Array) -> Array:
        lower: Array = scores - self.signs * error
        return lower

    def conjugate(self, dual: Array) -> float:
        if np.any(dual[self.weights == 0]):
            return np.inf
        terms = self.phi.conjugate(self._coordinates(dual))
        return float(np.vdot(self.weights, terms))

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """Clip into the box, then shrink the heavier side of each column to the allowed sum.
        Shrinking keeps every entry in the box because zero is in it, and at the exact intercept it
        changes rounding only."""
        inside, low, high = compiled.clip_into_box(
            dual, self.signs, self.weights, self.phi.dual_bound
        )
        target = intercept.feasible_sums(high + low, low, high)
        inside = beside(dual, inside)
        compiled.shrink_columns(inside, target, low, high)
        return inside

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        if intercept.is_pinned:
            return np.zeros_like(start)
        single, hinge = self.n_outputs == 1 and Trait.NET in intercept.traits, self.phi.is_hinge
        if single and hinge:
            return np.array([self._hinge_shift(scores[:, 0], intercept.l2)])
        if hinge and intercept.sums_to_zero and intercept.l2 == 0:
            return minimise_hinge_shifts(scores, self.signs, self.weights)
        if single and self.scalars is not None:
            moved = np.add(scores[:, 0], start, out=empty_beside(scores[:, 0]))
            return start + compiled.best_shift(
                self.scalars,
                moved,
                self.signs[:, 0],
                self.weights[:, 0],
                intercept.l2,
                float(start[0]),
                empty_beside(moved),
            )
        floor = CURVATURE_FLOOR * min(self.phi.smoothness, 1e6)
        size = self.phi.dual_bound
        if not np.isfinite(size):  # derivatives of the size of the scores, wherever their mean is
            total = np.maximum(self.weights.sum(axis=0), TINY)
            apart = np.abs(scores - (self.weights * scores).sum(axis=0) / total)
            size = 1.0 + self.phi.smoothness * float((self.weights * apart).sum(axis=0).max())
        return minimise_shift(
            lambda shift: self._shift_derivatives(scores, shift), intercept, start, floor, size
        )

    def _hinge_shift(self, scores: Array, l2: float) -> float:
        """``argmin_b sum_i weights_i [1 - signs_i (scores_i + b)]_+ + (l2/2) b^2``. The slope jumps
        up by ``weights_i`` where sample i leaves or enters its hinge."""
        signs, weights = self.signs[:, 0], self.weights[:, 0]
        least = -float(weights[signs > 0].sum())
        kinks = signs - scores
        return float(compiled.root_of_steps(kinks, weights, least, float(l2), SUM_ROUNDING))

    def domain_gauge(self, dual: Array) -> float:
        return float(self._coordinates(dual).max(initial=0.0)) / self.phi.dual_bound

    @property
    def dual_support(self) -> NDArray[np.bool_]:
        return self.weights > 0

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """``argmin_q L*(q) + |q - dual|^2 / (2 step)`` of quadratic conjugates: a clipped line."""
        unclipped = self._unclipped_prox(dual, step)
        return -self.weights * self.signs * np.clip(unclipped, 0.0, self.phi.dual_bound)

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        unclipped = self._unclipped_prox(dual, step)
        inside = (unclipped > 0) & (unclipped < self.phi.dual_bound)
        widths = self.weights + step / self.phi.smoothness
        return ProxJacobian(np.where(inside, self.weights / np.where(inside, widths, 1.0), 0.0))

    def _unclipped_prox(self, dual: Array, step: float) -> Array:
        """Dual coordinates ``argmin_a  -a + a^2 / (2 h) + weight (a - a_0)^2 / (2 step)``."""
        if not self.phi.has_quadratic_conjugate:
            raise TypeError(f"the prox of the conjugate of {self.phi!r} is not known")
        widths = self.weights + step / self.phi.smoothness
        return np.divide(
            step - self.signs * dual, widths, out=np.zeros(dual.shape), where=self.weights > 0
        )

    def dual_form(self, intercept: Penalty, floor: float = 0.0) -> DualForm | None:
        if self.n_outputs > 1:
            return None
        kind = QuadraticMarginDual if self.phi.has_quadratic_conjugate else MarginDual
        free = intercept.is_shift_invariant
        return kind(self.phi, self.signs[:, 0], self.weights[:, 0], free=free, floor=floor)

    def _in_rows(self, scores: Array) -> tuple[Array, Array, Array]:
        """Scores, signs and weights, contiguous: copies only of what is not."""
        signs, weights = np.ascontiguousarray(self.signs), np.ascontiguousarray(self.weights)
        return np.ascontiguousarray(scores), signs, weights

    def _coordinates(self, dual: Array) -> Array:
        """The a of ``dual = -weights * signs * a``; zero where the weights are zero."""
        return np.divide(
            -self.signs * dual, self.weights, out=np.zeros(dual.shape), where=self.weights > 0
        )

    def _shift_derivatives(self, scores: Array, shift: Array) -> tuple[Array, Array]:
        if self.scalars is not None:
            slope, curvature = compiled.slope_and_curvature(
                self.scalars, scores, self.signs, self.weights, shift
            )
            return slope, curvature
        t = self.signs * (scores + shift)
        slope = -(self.weights * self.signs * self.phi.descent(t)).sum(axis=0)
        return slope, (self.weights * self.phi.curvature(t)).sum(axis=0)


@cache
def _tell_of_array_formulas(name: str) -> None:
    warnings.warn(
        f"{name} is not compiled, as Numba is not there: fits take its array formulas, and solvers "
        "that need compiled code refuse it; type: pip install 'proxmargin[custom]'",
        UserWarning,
        stacklevel=2,
    )


@cache
def _traits(*, single: bool, smooth: bool, compiled: bool, hinge: bool, lines: bool) -> Trait:
    """The traits of a sum: with one column of scores (``single``), or whose conjugates are
    quadratic between bounds (``lines``). Cached, because joining flags is slow."""
    traits = Trait.MARGINS | Trait.OUTPUTWISE
    traits |= Trait.SINGLE_OUTPUT | Trait.DUAL_FORM if single else Trait.MANY_OUTPUTS
    if smooth:
        traits |= Trait.SMOOTH
    if compiled:
        traits |= Trait.COMPILED
    if hinge:
        traits |= Trait.HINGE
    if lines:
        traits |= Trait.CONJUGATE_PROX | Trait.CONJUGATE_PROX_JACOBIAN
    return traits
