"""The objective and a certified gap for any (w, b), in plain NumPy, independent of the library.

    P(w, b) = (1/n) sum phi(t_i) + l1 ||w||_1 + (l2/2) ||w||^2 + (r/2) b^2,   t_i = y_i (x_i'w + b)

A dual point beta is feasible when it lies in the domain of phi*(-beta), when
rho = (1/n) sum y_i beta_i is 0 (free intercept, r = 0), and, for l2 = 0, when |g_j| <= l1 with
g = (1/n) X'(y beta). The gap P - D is summed from terms that are each >= 0, so it does not cancel:
below, every `mismatch` is one Fenchel-Young term F(z) + F*(q) - z q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks.datasets import Design

Floats = NDArray[np.float64]

FLOOR = 1e-300  # keeps relative_gap finite for a problem whose optimum is exactly 0


class MarginLoss(Protocol):
    """phi as a function of the margin t; beta = -phi'(t), in [0, dual_bound]."""

    @property
    def name(self) -> str: ...
    @property
    def dual_bound(self) -> float: ...
    def value(self, t: Floats) -> Floats: ...
    def dual(self, t: Floats) -> Floats: ...
    def mismatch(self, t: Floats, beta: Floats) -> Floats: ...


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 - t). Its kink says little of beta: a gap needs a dual point from elsewhere."""

    name: str = "hinge"
    dual_bound: float = 1.0

    def value(self, t: Floats) -> Floats:
        return np.maximum(1.0 - t, 0.0)

    def dual(self, t: Floats) -> Floats:
        return np.where(t < 1.0, 1.0, 0.0)

    def mismatch(self, t: Floats, beta: Floats) -> Floats:
        return (1.0 - beta) * np.maximum(1.0 - t, 0.0) + beta * np.maximum(t - 1.0, 0.0)


@dataclass(frozen=True)
class HuberizedHinge:
    """0 for t > 1, (1-t)^2/(2 delta) on the bend, 1 - t - delta/2 below it."""

    delta: float = 1.0
    dual_bound: float = 1.0

    @property
    def name(self) -> str:
        return f"huberized hinge, delta {self.delta:g}"

    def value(self, t: Floats) -> Floats:
        u = np.maximum(1.0 - t, 0.0)
        return np.where(u < self.delta, u * u / (2.0 * self.delta), u - self.delta / 2.0)

    def dual(self, t: Floats) -> Floats:
        return np.clip((1.0 - t) / self.delta, 0.0, 1.0)

    def mismatch(self, t: Floats, beta: Floats) -> Floats:
        u, delta = 1.0 - t, self.delta
        beyond = -beta * u + delta * beta * beta / 2.0
        bend = (delta / 2.0) * (u / delta - beta) ** 2
        straight = (1.0 - beta) * (u - delta * (1.0 + beta) / 2.0)
        return np.where(u <= 0.0, beyond, np.where(u < delta, bend, straight))


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - t)^2."""

    name: str = "squared hinge"
    dual_bound: float = float("inf")

    def value(self, t: Floats) -> Floats:
        return np.maximum(1.0 - t, 0.0) ** 2

    def dual(self, t: Floats) -> Floats:
        return 2.0 * np.maximum(1.0 - t, 0.0)

    def mismatch(self, t: Floats, beta: Floats) -> Floats:
        u = 1.0 - t
        return np.where(u <= 0.0, -beta * u + beta * beta / 4.0, (u - beta / 2.0) ** 2)


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-t)); its mismatch is the relative entropy of beta to 1/(1 + e^t)."""

    name: str = "logistic"
    dual_bound: float = 1.0

    def value(self, t: Floats) -> Floats:
        return np.logaddexp(0.0, -t)

    def dual(self, t: Floats) -> Floats:
        return _sigmoid(-t)

    def mismatch(self, t: Floats, beta: Floats) -> Floats:
        return np.maximum(
            _entropy_to(beta, _sigmoid(-t)) + _entropy_to(1.0 - beta, _sigmoid(t)), 0.0
        )


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -x))


def _entropy_to(p: Floats, q: Floats) -> Floats:
    """p log(p/q) - p + q, with 0 log 0 = 0."""
    ratio = np.where(p > 0.0, p, q) / np.maximum(q, FLOOR)
    return p * np.log(np.maximum(ratio, FLOOR)) - p + q


@dataclass(frozen=True)
class Problem:
    """A design (n, p) with labels +-1, a loss, and the strengths of the penalties."""

    design: Design
    labels: Floats
    loss: MarginLoss
    l1: float
    l2: float
    intercept_ridge: float = 0.0
    fit_intercept: bool = True

    @property
    def alpha(self) -> float:
        return self.l1 + self.l2

    @property
    def l1_ratio(self) -> float:
        return self.l1 / self.alpha

    def with_strength(self, alpha: float, l1_ratio: float) -> Problem:
        return replace(self, l1=alpha * l1_ratio, l2=alpha * (1.0 - l1_ratio))

    def primal(self, coef: Floats, intercept: float) -> float:
        t = self.labels * (self.design @ coef + intercept)
        penalty = self.l1 * np.abs(coef).sum() + self.l2 / 2.0 * coef @ coef
        return float(
            self.loss.value(t).mean() + penalty + self.intercept_ridge / 2.0 * intercept**2
        )


def alpha_max(problem: Problem, l1_ratio: float) -> float:
    """The smallest alpha at which w = 0 is optimal for this l1_ratio."""
    zero_scores = np.zeros_like(problem.labels)
    intercept = exact_intercept(problem, zero_scores)
    beta = problem.loss.dual(problem.labels * intercept)
    return float(np.abs(_correlation(problem, beta)).max() / l1_ratio)


def relative_gap(
    problem: Problem, coef: Floats, intercept: float, duals: Sequence[Floats] = ()
) -> float:
    """A certified bound on (P(w, b) - optimum) / P(w, b); infinity for a point that is not finite.

    The intercept is judged as given: only the dual point may use a better one. Dual points that
    are handed in need not be trusted: any of them, once feasible, proves a bound.
    """
    if not (np.isfinite(coef).all() and np.isfinite(intercept)):
        return float("inf")
    coef = np.asarray(coef, dtype=np.float64)
    gap = smallest_gap(problem, coef, intercept, duals)
    return gap / max(problem.primal(coef, intercept), FLOOR)


def smallest_gap(
    problem: Problem, coef: Floats, intercept: float, duals: Sequence[Floats] = ()
) -> float:
    """The smallest gap over a few feasible dual points, each scaled or not."""
    scores = problem.design @ coef
    gaps = []
    for beta in _feasible(problem, scores, intercept, duals):
        gradient = _correlation(problem, beta)
        for scale in _scales(problem, gradient):
            gaps.append(_gap(problem, coef, intercept, scores, scale * beta, scale * gradient))
    return min(gaps)


def _feasible(
    problem: Problem, scores: Floats, intercept: float, duals: Sequence[Floats]
) -> Iterator[Floats]:
    """The slopes of the loss at the own and at the exact intercept, and those handed in."""
    for candidate in {intercept, exact_intercept(problem, scores, intercept)}:
        yield balanced(problem, problem.loss.dual(problem.labels * (scores + candidate)))
    for dual in duals:
        yield balanced(problem, np.clip(dual, 0.0, problem.loss.dual_bound))


def exact_intercept(problem: Problem, scores: Floats, start: float = 0.0) -> float:
    """argmin over b of P at these scores, the root of a monotone derivative; 0 if b is fixed.

    Where the derivative vanishes on an interval any of its points will do.
    """
    if not problem.fit_intercept:
        return 0.0

    def slope(b: float) -> float:
        beta = problem.loss.dual(problem.labels * (scores + b))
        return problem.intercept_ridge * b - float(problem.labels @ beta) / beta.shape[0]

    return float(brentq(slope, *_bracket(slope, start), xtol=1e-13, rtol=1e-13))


def _bracket(slope: Callable[[float], float], start: float) -> tuple[float, float]:
    reach = 1.0
    while slope(start - reach) > 0.0 or slope(start + reach) < 0.0:
        reach *= 2.0
        if reach > 1e12:
            raise ValueError("the intercept has no finite optimum: is there a single class?")
    return start - reach, start + reach


def balanced(problem: Problem, beta: Floats) -> Floats:
    """beta with (1/n) sum y beta = 0: the heavier class scaled down, which stays in the domain."""
    if not problem.fit_intercept or problem.intercept_ridge > 0.0:
        return beta
    positive = problem.labels > 0
    masses = beta[positive].sum(), beta[~positive].sum()
    shrink_positive = min(1.0, masses[1] / max(masses[0], FLOOR))
    shrink_negative = min(1.0, masses[0] / max(masses[1], FLOOR))
    return np.where(positive, shrink_positive, shrink_negative) * beta


def _correlation(problem: Problem, beta: Floats) -> Floats:
    """g = (1/n) X'(y beta)."""
    return problem.design.T @ (problem.labels * beta) / beta.shape[0]


def _scales(problem: Problem, gradient: Floats) -> set[float]:
    """Factors that keep beta feasible: into |g| <= l1, and 1 where l2 > 0 makes that needless."""
    into_the_box = min(1.0, problem.l1 / max(float(np.abs(gradient).max()), FLOOR))
    return {into_the_box, 1.0} if problem.l2 > 0.0 else {into_the_box}


def _gap(
    problem: Problem,
    coef: Floats,
    intercept: float,
    scores: Floats,
    beta: Floats,
    gradient: Floats,
) -> float:
    losses = problem.loss.mismatch(problem.labels * (scores + intercept), beta)
    features = _penalty_mismatch(problem, coef, gradient)
    return float(losses.mean() + features.sum()) + _intercept_mismatch(problem, intercept, beta)


def _penalty_mismatch(problem: Problem, coef: Floats, gradient: Floats) -> Floats:
    """Per feature, elastic net: v = soft(g, l1); (l1|w| - (g - v) w) + (l2/2)(w - v/l2)^2."""
    if problem.l2 == 0.0:
        return np.maximum(problem.l1 * np.abs(coef) - gradient * coef, 0.0)
    clipped = np.clip(gradient, -problem.l1, problem.l1)
    v = gradient - clipped
    return (problem.l1 * np.abs(coef) - clipped * coef) + problem.l2 / 2.0 * (
        coef - v / problem.l2
    ) ** 2


def _intercept_mismatch(problem: Problem, intercept: float, beta: Floats) -> float:
    """(r/2)(b - rho/r)^2; for a free intercept rho is 0 up to rounding and |b rho| is kept."""
    if not problem.fit_intercept:
        return 0.0
    rho = float(problem.labels @ beta) / beta.shape[0]
    ridge = problem.intercept_ridge
    return ridge / 2.0 * (intercept - rho / ridge) ** 2 if ridge > 0.0 else abs(intercept * rho)
