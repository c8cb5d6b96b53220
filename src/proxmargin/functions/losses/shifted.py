"""Losses that wrap another one: shifted by an offset of the scores, or within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from proxmargin.compiled.rounding import (
    DOMAIN_ROUNDING,
    OBJECTIVE_ROUNDING,
    ROOT_STEPS,
    SUM_ROUNDING,
    UNIT,
    weighted_sum,
)
from proxmargin.functions.losses.base import Box, DualForm, Loss, Wrapped
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.traits import Trait
from proxmargin.runtime.forwarding import forwarded
from proxmargin.runtime.types import Array


@dataclass(frozen=True, eq=False)
class Shifted(Wrapped):
    """``loss(Z + shift)``: the shift enters with a coefficient fixed at one.

    Its gradient is that of the loss at ``Z + shift``, its conjugate the conjugate less
    ``<shift, q>``, and its Fenchel-Young terms are those of ``Z + shift`` and q.

    Parameters
    ----------
    loss : Loss
    shift : (n_samples, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Hinge, MarginSum, Shifted
    >>> loss = MarginSum(Hinge(), np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]]), 2.0)
    >>> float(Shifted(loss, np.array([[0.5], [0.0]])).value(np.zeros((2, 1))))
    0.75
    """

    shift: Array

    @property
    def unshifted(self) -> Loss:
        return self.loss

    @property
    def offset(self) -> Array:
        return self.shift

    @cached_property
    def largest_offset(self) -> float:  # type: ignore[override]
        return float(np.max(np.abs(self.shift), initial=0.0))

    traits, curvature_bound, row_curvatures, balanced, domain_gauge = forwarded(
        "loss", "traits", "curvature_bound", "row_curvatures", "balanced", "domain_gauge"
    )

    @cached_property
    def box(self) -> Box | None:  # type: ignore[override]
        box = self.loss.box
        return (
            None if box is None else box._replace(target=box.target - box.signs * self.shift[:, 0])
        )

    def value(self, scores: Array) -> float:
        return self.loss.value(scores + self.shift)

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        return self.loss.value_and_gradient(scores + self.shift)

    def curvatures(self, scores: Array) -> Array:
        return self.loss.curvatures(scores + self.shift)

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        return self.loss.fenchel_young(scores + self.shift, dual)

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """The growth of the inner loss for ``error`` plus the rounding of ``scores + shift``. A
        certificate accounts for ``error`` only. When it scales the dual point by s in [0, 1], the
        rounding adds up to ``(1 - s) <rounding, |dual|>``, which the last term includes."""
        moved = scores + self.shift
        rounding = _of_adding(scores, moved)
        grown = self.loss.growth(moved, gradient, dual, error + rounding)
        return grown + weighted_sum(np.abs(dual), rounding)

    def pessimistic(self, scores: Array, error: Array) -> Array:
        moved = scores + self.shift
        worst = self.loss.pessimistic(moved, error + _of_adding(scores, moved))
        return worst - self.shift

    def conjugate(self, dual: Array) -> float:
        return self.loss.conjugate(dual) - float(np.vdot(self.shift, dual))

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        return self.loss.best_intercept(scores + self.shift, intercept, start)

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        return self.loss.conjugate_prox(dual + step * self.shift, step)

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        return self.loss.conjugate_prox_jacobian(dual + step * self.shift, step)

    def dual_form(self, intercept: Penalty, floor: float = 0.0) -> DualForm | None:
        form = self.loss.dual_form(intercept, floor)
        return None if form is None else _ShiftedForm(form, self.shift[:, 0])


def _of_adding(scores: Array, moved: Array) -> Array:
    """A bound on the rounding error of ``scores + shift``; zero where the score is zero."""
    return np.where(scores == 0, 0.0, 2.0 * UNIT * np.abs(moved))


class _ShiftedForm(DualForm):
    """The form of a loss with the linear term ``-<shift, q>``, ``-linear_term'u`` in u."""

    def __init__(self, form: DualForm, shift: Array) -> None:
        self.form = form
        self.offset = form.offset
        self.scale = form.scale
        self.linear_term = shift * form.scale
        self.constant = float(shift @ form.offset)

    centre, uniform, project, smooth_divergence, smooth_curvature = forwarded(
        "form", "centre", "uniform", "project", "smooth_divergence", "smooth_curvature"
    )

    def value(self, u: Array) -> float:
        return self.form.value(u) - float(self.linear_term @ u) - self.constant

    def prox(self, u: Array, step: float) -> Array:
        return self.form.prox(u + step * self.linear_term, step)

    def smooth_value(self, u: Array) -> float:
        return self.form.smooth_value(u) - float(self.linear_term @ u) - self.constant

    def smooth_gradient(self, u: Array) -> Array:
        return self.form.smooth_gradient(u) - self.linear_term


# search for the best multiplier nu of a dual point
MIN_MULTIPLIER = 1e-14  # smallest nu, relative to the price


@dataclass(frozen=True, eq=False)
class LevelSet(Wrapped):
    """``F(Z) = price max(0, L(Z) - budget)``.

    For a price at least as large as the multiplier of the constraint ``L(Z) <= budget``,
    minimising ``F + G`` minimises G under that constraint ((8) of Chierchia et al. 2015).

    Parameters
    ----------
    loss : Loss
        L >= 0.
    budget : float >= 0
        In units of L, a weighted mean over the samples.
    price : float > 0

    Notes
    -----
    ``F*(q) = min_{0 <= nu <= price}  nu L*(q / nu) + nu budget``, nu the multiplier of the
    constraint, and for any such nu

        F(Z) + F*(q) - <Z, q> <= [F(Z) - nu (L(Z) - budget)] + nu [L(Z) + L*(q/nu) - <Z, q/nu>],

    two terms that are not negative: any nu proves a gap, and the best one is searched for.

    See Also
    --------
    proxmargin.MulticlassSVC : Its ``eta`` is such a budget.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Hinge, LevelSet, MarginSum
    >>> signs, weights = np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]])
    >>> loss = LevelSet(MarginSum(Hinge(), signs, weights, 2.0), budget=0.25, price=10.0)
    >>> float(loss.value(np.zeros((2, 1)))), float(loss.value(np.array([[1.0], [-1.0]])))
    (7.5, 0.0)
    """

    budget: float
    price: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.budget) and self.budget >= 0):
            raise ValueError(f"LevelSet: budget must be a finite number >= 0, got {self.budget!r}")
        if not (np.isfinite(self.price) and self.price > 0):
            raise ValueError(f"LevelSet: price must be a finite number > 0, got {self.price!r}")

    @property
    def without_budget(self) -> Loss:
        return self.loss

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        kept = Trait.SINGLE_OUTPUT | Trait.MANY_OUTPUTS | Trait.CONJUGATE_PROX
        return self.loss.traits & kept | Trait.BUDGET

    def excess(self, scores: Array) -> float:
        """``L(Z) - budget``: negative within the budget, zero where the difference is rounding."""
        return self._excess_of_value(self.loss.value(scores))

    def _excess_of_value(self, value: float) -> float:
        excess = value - self.budget
        return 0.0 if abs(excess) <= OBJECTIVE_ROUNDING * self.budget else excess

    def value(self, scores: Array) -> float:
        return self.price * max(self.excess(scores), 0.0)

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        """The loss and a subgradient: zero within the budget, with its bound."""
        value, gradient = self.loss.value_and_gradient(scores)
        excess = self._excess_of_value(value)
        if excess <= 0:
            return 0.0, np.zeros_like(gradient)
        return self.price * excess, self.price * gradient

    def curvature_bound(self, row_weights: Array) -> float:
        return np.inf

    def conjugate(self, dual: Array) -> float:
        def at(nu: float) -> float:
            return nu * (self.loss.conjugate(dual / nu) + self.budget)

        return self._least(at, dual) if dual.any() else 0.0

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        excess = self.excess(scores)
        above = self.price * max(excess, 0.0)

        def at(nu: float) -> float:
            return (above - nu * excess) + nu * self.loss.fenchel_young(scores, dual / nu)

        return self._least(at, dual) if dual.any() else above

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """A bound on ``F(z + d) - F(z) - <d, q>``: L rises by at most ``<|L'(z)|, |d|>`` and its
        `growth`. Where L stays within the budget even so, F stays zero and only ``<|q|, |d|>`` is
        left."""
        value, inner = self.loss.value_and_gradient(scores)
        most = weighted_sum(np.abs(inner), error) + self.loss.growth(scores, inner, inner, error)
        excess = self._excess_of_value(value)
        above = max(excess + most, 0.0) - max(excess, 0.0)
        return self.price * above + weighted_sum(np.abs(dual), error)

    def pessimistic(self, scores: Array, error: Array) -> Array:
        return self.loss.pessimistic(scores, error)

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """``nu loss.balanced(dual / nu)``, with nu the loss's `domain_gauge` of dual, at most the
        price (and the price where the gauge is zero)."""
        gauge = min(self.loss.domain_gauge(dual), self.price)
        nu = gauge if gauge > 0 else self.price
        return nu * self.loss.balanced(dual / nu, intercept)

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        """``argmin_b L(scores + b)`` for a free intercept: it leaves the most of the budget.
        TypeError for one with a penalty, which would have to be weighed against the budget."""
        if intercept.l2 > 0:
            raise TypeError("a budget for the loss needs an intercept without penalty, or none")
        return self.loss.best_intercept(scores, intercept, start)

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """``nu prox(dual / nu)`` with the prox of L* at the step ``step / nu``. L falls with nu at
        the scores ``z = (dual - q) / step`` of the prox; nu is that which meets the budget, within
        [0, price], by safeguarded secants."""

        def at(nu: float) -> tuple[Array, float]:
            q = nu * self.loss.conjugate_prox(dual / nu, step / nu)
            return q, self.excess((dual - q) / step)

        if self.excess(dual / step) <= 0:
            return np.zeros_like(dual)
        high = self.price
        q, excess = at(high)
        if excess >= 0:
            return q
        low, above, below = 0.0, self.excess(dual / step), -excess
        for step_ in range(ROOT_STEPS):
            share = 0.5 if step_ % 3 == 2 else above / (above + below)
            nu = low + share * (high - low)
            if not low < nu < high:
                break
            q, excess = at(nu)
            if abs(excess) <= DOMAIN_ROUNDING * self.budget:
                break
            low, above = (nu, excess) if excess > 0 else (low, above)
            high, below = (nu, -excess) if excess <= 0 else (high, below)
        return q

    def _least(self, at: Callable[[float], float], dual: Array) -> float:
        """The least of a convex function of the multiplier nu, of those that ``dual`` allows."""
        lowest = self.loss.domain_gauge(dual)
        if lowest > self.price * (1.0 + DOMAIN_ROUNDING):
            return np.inf
        lowest = max(lowest * (1.0 + SUM_ROUNDING), MIN_MULTIPLIER * self.price)
        next_to = min(lowest * (1.0 + 1e-6), self.price)
        if lowest >= self.price or at(next_to) >= at(lowest):  # the minimum is at the bound
            return at(lowest)
        found = minimize_scalar(
            lambda log_nu: at(float(np.exp(log_nu))),
            bounds=(np.log(lowest), np.log(self.price)),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return at(float(np.exp(found.x)))
