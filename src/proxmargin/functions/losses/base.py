"""The interface of losses: convex functions of the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.rounding import DOMAIN_ROUNDING, weighted_sum
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.traits import Trait
from proxmargin.runtime.forwarding import forwarded
from proxmargin.runtime.types import Array as Array


class Box(NamedTuple):
    """``min over rho pull rho + sum_i max {a (target_i + rho - y_i z_i) - curvature_i a^2 / 2}``.
    The maximum is over the dual coordinate a in ``0 <= a <= upper_i``; ``curvature_i`` is that of
    its term, zero for a hinge, and ``target_i + rho`` the margin from which on it is zero. With
    ``pull = 0`` there is no threshold ``rho``. All arrays are (n_samples,)."""

    signs: Array
    upper: Array
    curvature: Array
    target: Array
    pull: float


class DualForm(ABC):
    """The conjugate of a loss with the intercept's constraint on dual points.

    All arrays are (n_samples,).

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import DualForm, MarginSum, SquaredHinge
    >>> from proxmargin.penalties import Ridge
    >>> signs, weights = np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]])
    >>> form = MarginSum(SquaredHinge(), signs, weights, 2.0).dual_form(Ridge())
    >>> isinstance(form, DualForm)
    True
    """

    # (n_samples,); the dual point of u is ``offset + scale * u``. Coordinates of scale zero do not
    # matter.
    offset: Array
    scale: Array

    def dual_point(self, u: Array) -> Array:
        """``offset + scale * u``."""
        return self.offset + self.scale * u

    def coordinates(self, dual: Array) -> Array:
        """The u of a dual point, zero where the scale is."""
        moved = dual - self.offset
        return np.divide(moved, self.scale, out=np.zeros_like(moved), where=self.scale != 0)

    @abstractmethod
    def centre(self) -> Array:
        """A point in the middle of the set: where the methods of Ito et al. (2017) start."""

    def uniform(self, level: float) -> Array:
        """The u, in the set or not, of dual variables that are all equal to ``level``."""
        return np.full_like(self.scale, level)

    @abstractmethod
    def value(self, u: Array) -> float:
        """``L*`` at the dual point of u, for u in the set."""

    @abstractmethod
    def prox(self, u: Array, step: float) -> Array:
        """``argmin_v  L*(v) + |v - u|^2 / (2 step)`` over the set, exactly inside it."""

    @abstractmethod
    def project(self, u: Array, step: float = 1.0) -> Array:
        """The nearest point of the set on which `smooth_value` is smooth. ``step`` is the length of
        the proximal step that led to u; it only serves to guess the multiplier."""

    @abstractmethod
    def smooth_value(self, u: Array) -> float:
        """``L*`` as a function that is smooth on the set `project` projects onto."""

    @abstractmethod
    def smooth_gradient(self, u: Array) -> Array:
        """Gradient of `smooth_value`."""

    @abstractmethod
    def smooth_divergence(self, u: Array, base: Array) -> float:
        """``s(u) - s(base) - <s'(base), u - base>`` of `smooth_value`, without cancellation."""

    @abstractmethod
    def smooth_curvature(self) -> float:
        """A Lipschitz constant of `smooth_gradient` on the set; may be zero or infinite."""


class SmoothedLoss(NamedTuple):
    """A smooth loss F with ``unit F(Z / unit) - slack <= L(Z) <= unit F(Z / unit)``."""

    loss: Loss
    unit: float
    slack: float


class Loss(ABC):
    """A convex function L of scores of shape (n_samples, n_outputs), targets and weights inside.

    Dual points have the shape of the scores; at the optimum the dual is the gradient of L.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Hinge, Loss, MarginSum
    >>> loss = MarginSum(Hinge(), np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]]), 2.0)
    >>> isinstance(loss, Loss), loss.n_outputs, float(loss.value(np.zeros((2, 1))))
    (True, 1, 1.0)
    """

    traits: Trait = Trait.NONE

    is_homogeneous: bool = False
    """``L(t z) = t L(z)`` for t >= 0, so that the best multiple of a model is known."""

    compares_classes: bool = False
    """Only differences of the scores of a sample matter: rows of dual points sum to zero, and
    coefficients need no constraint to be determined by a penalty."""

    n_outputs: int
    """Number of columns of the scores."""

    sample_count: float
    """Total sample weight, the n of the papers: integer weights count repeated rows."""

    shares: Array
    """Weight of each sample, summing to one, (n_samples,)."""

    largest_offset: float = 0.0
    """The largest absolute entry of `offset`."""

    box: Box | None = None
    """The box of the dual points of one column of scores, where they have one."""

    @abstractmethod
    def value(self, scores: Array) -> float:
        """L(scores)."""

    def values(self, scores: Array) -> Array:
        """`value` of many scores, (n,) for (n, n_samples, n_outputs)."""
        return np.array([self.value(np.ascontiguousarray(each)) for each in scores])

    @abstractmethod
    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        """L and its gradient, (n_samples, n_outputs), in one pass."""

    @abstractmethod
    def curvature_bound(self, row_weights: Array) -> float:
        """A Lipschitz constant of the gradient in the coefficients, for ``row_weights`` of ``1 +
        |x_i|^2`` (or ``|x_i|^2`` without intercept) of each sample."""

    @property
    def row_curvatures(self) -> Array:
        """Upper bounds of the curvature of L for each sample, (n_samples,); infinite without one.
        ``L(z + x u)`` has a gradient in u, one number an output, with the Lipschitz constant
        ``row_curvatures @ x**2``."""
        return np.full(self.shares.shape, np.inf)

    def curvatures(self, scores: Array) -> Array:
        """Second derivative in each score, (n_samples, n_outputs), of smooth losses that are sums
        over the outputs (`Trait.OUTPUTWISE`)."""
        raise TypeError(f"the curvature of {self!r} is not one number a score")

    @abstractmethod
    def fenchel_young(self, scores: Array, dual: Array) -> float:
        """``L(scores) + L*(dual) - <scores, dual> >= 0``, computed without cancellation."""

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """A bound on the increase of `fenchel_young` if scores change by at most ``error``; the
        gradient is that of the loss at the scores, and may be overwritten.

        Here for smooth losses, ``L(z + d) - L(z) - <d, q> <= <d, L'(z) - q> + sum h |d|^2 / 2``
        with the curvatures h of `row_curvatures`; others answer for themselves.
        """
        apart = np.subtract(gradient, dual, out=gradient)
        np.abs(apart, out=apart)
        squares = (error * error).sum(axis=-1)  # one number for all samples, or one each
        curvatures = self.row_curvatures
        curved = (
            curvatures.sum() * squares if np.ndim(squares) == 0 else (curvatures * squares).sum()
        )
        return weighted_sum(apart, error) + 0.5 * float(curved)

    def pessimistic(self, scores: Array, error: Array) -> Array:
        """The scores within ``error`` of these with the largest loss, where a formula for them is
        known; otherwise the scores themselves."""
        return scores

    @abstractmethod
    def conjugate(self, dual: Array) -> float:
        """``L*(dual)``; infinite outside its domain."""

    @abstractmethod
    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """A dual point near ``dual`` whose column sums the intercept's conjugate allows. The result
        lies exactly in the domain of the conjugate of the loss."""

    @abstractmethod
    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        """``argmin_b  L(scores + b) + intercept(b)``, shape (n_outputs,), to rounding."""

    def domain_gauge(self, dual: Array) -> float:
        """The least nu >= 0 for which ``dual / nu`` has entries within the bounds of the domain of
        L*. Zero where the domain is a cone. Wrong signs and column sums do not count: `balanced`
        corrects them."""
        raise TypeError(f"the domain of the conjugate of {self!r} has no known gauge")

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """``argmin_q L*(q) + |q - dual|^2 / (2 step)``, where it is known."""
        raise TypeError(f"the prox of the conjugate of {self!r} is not known")

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        """An element of the generalised Jacobian of ``conjugate_prox(., step)`` at ``dual``."""
        raise TypeError(f"no derivative of the prox of the conjugate of {self!r} is known")

    @property
    def without_budget(self) -> Loss:
        """The loss under the budget, where this loss has a budget; otherwise the loss itself."""
        return self

    def smoothed(self, width: float) -> SmoothedLoss | None:
        """A smooth loss close to this one, where one is known."""
        return None

    @property
    def unshifted(self) -> Loss:
        """The loss without its offset, where this is a loss with one; otherwise the loss itself."""
        return self

    @property
    def offset(self) -> Array:
        """The constant that is added to the scores, (n_samples, n_outputs); zero by default."""
        return np.zeros((self.shares.size, self.n_outputs))

    @property
    def dual_support(self) -> NDArray[np.bool_]:
        """Where dual points can differ from zero, (n_samples, n_outputs)."""
        return np.repeat((self.shares > 0)[:, None], self.n_outputs, axis=1)

    def dual_form(self, intercept: Penalty, floor: float = 0.0) -> DualForm | None:
        """The loss for first-order methods on the dual side, or None if there is no such form; with
        a free intercept the dual point sums to zero.

        ``floor`` is how far dual coordinates stay from ends of the domain at which the conjugate is
        not smooth, in `DualForm.project`: the xi of Ito et al. (2017).
        """
        return None


@dataclass(frozen=True, eq=False)
class Wrapped(Loss):
    """Forwards shapes, weights and the dual support to the inner loss."""

    loss: Loss

    n_outputs, sample_count, shares, compares_classes, dual_support = forwarded(
        "loss", "n_outputs", "sample_count", "shares", "compares_classes", "dual_support"
    )


class SupportLoss(Loss):
    """A homogeneous loss of two classes that couples the samples; its conjugate is 0 on a set.
    ``shares`` are sample weights over their sum, ``sample_count``; both classes need some."""

    traits = Trait.SINGLE_OUTPUT | Trait.DUAL_FORM | Trait.OUTPUTWISE
    is_homogeneous = True
    n_outputs = 1

    def __init__(self, signs: ArrayLike, shares: ArrayLike, sample_count: float) -> None:
        self.signs: Array = np.asarray(signs, dtype=np.float64).reshape(-1)
        self.shares = np.asarray(shares, dtype=np.float64).reshape(-1)
        self.sample_count = sample_count

    def curvature_bound(self, row_weights: Array) -> float:
        return np.inf

    def value(self, scores: Array) -> float:
        return self.value_and_gradient(scores)[0]

    def conjugate(self, dual: Array) -> float:
        return 0.0 if self.excess(dual) <= DOMAIN_ROUNDING else np.inf

    @abstractmethod
    def excess(self, dual: Array) -> float:
        """The distance of a dual point from the domain of L*, rounding errors included."""


class IndicatorDual(DualForm):
    """A dual form whose conjugate is zero on its set: prox and projection are the same."""

    def value(self, u: Array) -> float:
        return 0.0

    def prox(self, u: Array, step: float) -> Array:
        return self.project(u, step)

    def smooth_value(self, u: Array) -> float:
        return 0.0

    def smooth_gradient(self, u: Array) -> Array:
        return np.zeros_like(u)

    def smooth_divergence(self, u: Array, base: Array) -> float:
        return 0.0

    def smooth_curvature(self) -> float:
        return 0.0
