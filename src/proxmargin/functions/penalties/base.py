"""The interface of penalties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import NEGLIGIBLE
from proxmargin.compiled.solvers.nets import Net
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array

MEMBERSHIP = 1e-9  # relative distance at which given coefficients count as in a set, or at its end

Step = float | NDArray[np.float64]


class Penalty(ABC):
    """A convex function G of coefficients of shape (n_features, n_outputs).

    Penalties are immutable; the same objects penalise coefficients and, with one row, intercepts.

    Examples
    --------
    >>> from proxmargin.penalties import Ball, ElasticNet, Penalty
    >>> isinstance(ElasticNet(0.1, 0.0), Penalty), isinstance(Ball(), Penalty)
    (True, True)
    """

    traits: Trait = Trait.NONE
    is_portable: ClassVar[bool] = True
    """All fields are plain values or portable objects, so that a model file can store it."""

    l1: float = 0.0
    """Strength of the part that is the sum of absolute values."""

    l2: float = 0.0
    """Strength of the ridge part: the modulus of strong convexity."""

    factors: float | Array = 1.0
    """Factors on the strengths, one number a feature or one for all."""

    by_features: bool = True
    """Values and Fenchel-Young terms of a feature do not depend on the other features, so that on
    an index set they are those of the `restricted` penalty."""

    can_be_restricted: bool = True
    """`restricted` is implemented."""

    takes_steps: bool = True
    """`prox` takes one step a feature."""

    sums_to_zero: bool = False
    """G is infinite where a row of coefficients does not sum to zero over the outputs."""

    is_pinned: bool = False
    """G is infinite everywhere except at zero."""

    is_shift_invariant: bool = False
    """G leaves an intercept free: adding the same feasible vector to every intercept changes
    nothing, also in coordinates moved by the centre of the features."""

    @abstractmethod
    def value(self, coef: Array) -> float:
        """G(coef)."""

    @abstractmethod
    def prox(self, coef: Array, step: Step) -> Array:
        """``argmin_u G(u) + |u - coef|^2 / (2 step)``, same shape as ``coef``. ``step`` is a
        number, or where it `takes_steps` one number a feature, (n_features, 1)."""

    def into_domain(self, coef: Array) -> Array:
        """The nearest coefficients at which the penalty is finite."""
        return self.prox(coef, NEGLIGIBLE)  # so short a step is the projection onto the domain

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """An element of the generalised Jacobian of ``prox(., step)`` at ``coef``."""
        raise TypeError(f"no derivative of the prox of {self!r} is known")

    @abstractmethod
    def conjugate(self, dual: Array) -> float:
        """``G*(dual) = sup_u <dual, u> - G(u)``; infinite outside its domain."""

    @abstractmethod
    def domain_scale(self, dual: Array) -> float:
        """The largest factor c in [0, 1] for which ``c * dual`` is in the domain of G*."""

    @abstractmethod
    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """Terms of ``G(coef) + G*(dual) - <dual, coef>``, one a feature, each >= 0. ``dual`` must
        lie in the domain of G* (see `domain_scale`). Written without cancellation, because these
        terms are the penalty's share of the duality gap."""

    @abstractmethod
    def largest_product(self, sizes: Array, level: float) -> float:
        """A bound on ``<sizes, |W|>`` over all W with ``G(W) <= level``; infinite where there is
        none.

        Certificates use it for the effect of rounding of ``X'q`` on the lower bound: ``sizes`` >=
        0, (n_features, n_outputs), bound that rounding, and the optimum is one of these W.
        """

    def is_definite(self, shape: tuple[int, int]) -> bool:
        """Whether ``G(W) > 0`` for all nonzero W of this shape."""
        return self.largest_product(np.broadcast_to(1.0, shape), 0.0) == 0.0

    @abstractmethod
    def violations(self, coef: Array, dual: Array) -> Array:
        """Distance of ``dual`` from the subdifferential of G at ``coef``, one number a feature.
        Zero for every feature is the optimality condition when ``dual`` is minus the gradient of
        the loss; features at zero with a positive violation want to enter the support."""

    @abstractmethod
    def critical_strength(self, dual: Array) -> float:
        """The smallest factor on the l1 part for which ``coef = 0`` is optimal at ``dual``."""

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        """The Newton step of ``f + G`` at ``at`` where G is twice differentiable on its domain.
        ``gradient`` and ``curvature`` (> 0) are those of f, one an output; G is penalising an
        intercept here, ``at`` has shape (n_outputs,). Penalties with a kink raise TypeError."""
        raise TypeError(f"an intercept cannot carry {self!r}: use Ridge, or SumToZero of one")

    def conjugate_gradient(self, dual: Array) -> Array:
        """``argmax_u <dual, u> - G(u)``: the coefficients of a dual point. Only for penalties with
        `Trait.SMOOTH_CONJUGATE`."""
        raise TypeError(f"the conjugate of {self!r} is not smooth")

    def times(self, factor: float) -> Self:
        """The penalty ``factor * G``, for ``factor >= 0``."""
        raise TypeError(f"no multiples of {self!r} are known")

    def with_l1_times(self, factor: float) -> Penalty:
        """The penalty with its l1 part ``factor`` times as strong, for those with `Trait.NET`."""
        raise TypeError(f"{self!r} has no l1 part")

    def conjugate_divergence(self, dual: Array, coef: Array) -> float:
        """``G*(dual) - G*(v) - <coef, dual - v>``, coef being the `conjugate_gradient` at v. These
        are the terms of `fenchel_young` in sum."""
        return float(self.fenchel_young(coef, dual).sum())

    def best_multiple(self, coef: Array, slope: float, curvature: float = 0.0) -> float:
        """``argmin_{t >= 0} slope t + curvature t^2 / 2 + G(t coef)``: the best multiple. ``slope``
        is the value of a homogeneous loss at ``coef``, and ``curvature t^2 / 2`` what the ridge of
        an intercept costs."""
        raise TypeError(f"no best multiple is known for {self!r}")

    def net(self, n_features: int) -> Net:
        """Strengths and bounds feature by feature, for penalties with `Trait.NET`."""
        raise TypeError(f"{self!r} is no elastic net")

    def near_zero(self) -> Penalty:
        """The penalty less the bounds that small coefficients do not reach."""
        return self

    @property
    def can_sum_to_zero(self) -> bool:
        """`SumToZero` accepts it as the penalty of rows that sum to zero over the classes."""
        return Trait.UNIFORM_NET in self.traits

    def unpenalised(self, n_features: int) -> NDArray[np.intp]:
        """Features that are not penalised. They are free like an intercept, between their bounds,
        and where there are none the dual must vanish: certificates compute their best coefficients
        (`proxmargin.optimality.unpenalised`)."""
        return np.zeros(0, dtype=np.intp)

    def restricted(self, index: NDArray[np.intp]) -> Penalty:
        """The penalty of the features ``index``, with the coefficients of the others at zero.
        Callers that slice the coefficients use it to slice the penalty too."""
        return self

    def feasible_sums(self, sums: Array, low: Array, high: Array) -> Array:
        """Column sums of the dual that an intercept with this penalty allows, near ``sums``.
        ``low`` and ``high`` bound what can be reached by shrinking entries of the dual towards zero
        (``low <= 0 <= high``). A penalty whose conjugate is finite allows any sum."""
        return sums
