"""An exact penalty for the constraint that a loss stays within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from proxmargin.compiled.rounding import (
    DOMAIN_ROUNDING,
    OBJECTIVE_ROUNDING,
    ROOT_STEPS,
    SUM_ROUNDING,
    weighted_sum,
)
from proxmargin.functions.losses.base import Array, Loss, Wrapped
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.traits import Trait

# search for the best multiplier nu of a dual point
MIN_MULTIPLIER = 1e-14  # smallest nu, relative to the price
# search for the multiplier nu in the prox of the conjugate


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

    @property
    def compares_classes(self) -> bool:  # type: ignore[override]
        return self.loss.compares_classes

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
        `growth`.

        Where L stays within the budget even so, F stays zero and only ``<|q|, |d|>`` is left.
        """
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

        Raises
        ------
        TypeError
            For an intercept with a penalty, which would have to be weighed against the budget.
        """
        if intercept.l2 > 0:
            raise TypeError("a budget for the loss needs an intercept without penalty, or none")
        return self.loss.best_intercept(scores, intercept, start)

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """``nu prox(dual / nu)`` with the prox of L* at the step ``step / nu``.

        L falls with nu at the scores ``z = (dual - q) / step`` of the prox; nu is that which meets
        the budget, within [0, price], by safeguarded secants.
        """

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
