"""Newton's method with Hessians of a subsample, for many samples of few features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.designs.base import Array
from proxmargin.loop.solver import CLAIM_FRACTION, GapState, Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.problem import Point, Problem
from proxmargin.runtime.pace import factor_work, gram_work
from proxmargin.solvers.smooth.sampled_objective import (
    Place,
    ReducedHessian,
    SampledObjective,
    searched,
    stratified,
)
from proxmargin.traits import Trait

__all__ = ["SampledNewton", "SampledNewtonState"]

# warm start: Newton's method on a subsample
START_SHARE = 0.02  # of the samples, unless the next number is larger
START_PER_FEATURE = 10  # samples per feature at least
START_DECREMENT = 1e-2  # decrease a full step promises, over the objective: the noise of the sample
START_STEPS = 12  # limit, as the solution of the sample need not exist
# Hessians
METRIC_SHARE = 0.05  # of the samples, unless the next number is larger
METRIC_PER_FEATURE = 100  # samples per feature at least
MOST_PAIRS = 12  # differences of gradients that correct a Hessian; then it is formed anew
GROWTH = 4  # factor on its samples
# convergence
GAP_REDUCTION = 0.8  # ratio to the smallest gap so far, below which a gap is progress
EXACT_GAP = 1e-20  # relative gap of rounding


class Quasi(NamedTuple):
    """A Hessian with corrections.

    Attributes
    ----------
    metric : Metric
    moves, changes : (k, n_features + 1)
        Steps, and the changes of the gradient along them.
    """

    metric: ReducedHessian
    moves: Array
    changes: Array

    @classmethod
    def none(cls, metric: ReducedHessian) -> Quasi:
        """Without corrections."""
        nothing = np.zeros((0, metric.mean.size + 1))
        return cls(metric, nothing, nothing)

    def after(self, move: Array, change: Array) -> Quasi:
        """With one more correction, if the objective is curved along it."""
        if not float(move @ change) > 0.0:
            return self
        both = np.vstack([self.moves, move]), np.vstack([self.changes, change])
        return Quasi(self.metric, *both)

    def solve(self, slope: Array) -> Array:
        """The inverse times ``slope`` (Nocedal 1980, the two-loop recursion)."""
        left, pairs = slope.copy(), list(zip(self.moves, self.changes, strict=True))
        factors = []
        for move, change in reversed(pairs):
            factors.append(float(move @ left) / float(move @ change))
            left -= factors[-1] * change
        found = self.metric.solve(left)
        for (move, change), factor in zip(pairs, reversed(factors), strict=True):
            found += (factor - float(change @ found) / float(move @ change)) * move
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledNewtonState(GapState):
    """The state of `SampledNewton`.

    Attributes
    ----------
    at : Place
    quasi : Quasi
    every : int
        The Hessian is that of every k-th sample.
    gap : float
        Smallest gap so far.
    idle : int
        Steps without progress.
    """

    at: Place
    quasi: Quasi
    every: int
    gap: float = np.inf
    idle: int = 0


@dataclass(frozen=True)
class SampledNewton(Solver[SampledNewtonState]):
    """Newton's method on ``loss + (l2/2) |w|^2`` whose Hessian is that of a subsample.

    It starts from the solution for a subsample. The Hessian of a few per cent of the samples is off
    by the square root of features over samples, and the limited-memory BFGS update (Nocedal 1980)
    with that Hessian as its first metric corrects it: an iteration takes one pass over the data,
    which computes scores, loss and gradient. If it takes many, the Hessian of more samples is
    formed, of all in the end, which is Newton's method with an exact line search.

    ``|gradient|^2 / (2 l2)`` at the best intercept is the duality gap.

    Parameters
    ----------
    max_features, samples_per_feature : int >= 1
        Largest number of features, and least number of samples per feature: for other shapes the
        Hessian of a subsample differs too much, or is no small part of the work.
    max_stalled : int >= 1
        Steps without progress, as gap and objective have reached rounding, after which it ends.
    """

    max_features: int = 500
    samples_per_feature: int = 100
    max_stalled: int = 8

    name: ClassVar[str] = "sampled-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 200

    def __post_init__(self) -> None:
        at_least_one(self, "max_features", "samples_per_feature", "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        n, p = problem.design.n_samples, problem.design.n_features
        if p > self.max_features or n < self.samples_per_feature * p:
            return (
                f"it needs at most {self.max_features} features and at least "
                f"{self.samples_per_feature} samples a feature, and there are {n} samples of {p} "
                "features"
            )
        missing = super().objection(problem)
        if missing is None and not problem.margins.phi.is_strictly_convex:
            return "it needs a loss that is strictly convex in the margins"
        if missing is None and not problem.has_ridge_alone:
            return "it needs a ridge penalty (no l1 part)"
        return missing

    def work(self, problem: Problem) -> float:
        rows = problem.design.n_samples // _every(problem, METRIC_SHARE, METRIC_PER_FEATURE)
        side, density = problem.design.n_features, problem.design.density
        return gram_work(rows, side, density) + factor_work(side)

    def init(self, problem: Problem, start: Point, stop: Stop) -> SampledNewtonState:
        coef, intercept = start.coef[:, 0].copy(), float(start.intercept[0])
        every = _every(problem, METRIC_SHARE, METRIC_PER_FEATURE)
        if coef.any():
            at = _whole(problem).at(coef, intercept)
            quasi = Quasi.none(_metric(problem, at, every))
        else:
            at, quasi = _sample_solution(problem, coef, intercept, every)
        state = SampledNewtonState(at=at, quasi=quasi, every=every, tol=CLAIM_FRACTION * stop.tol)
        return _with_gap(problem, state)

    def step(self, problem: Problem, state: SampledNewtonState) -> SampledNewtonState:
        at = state.at
        there, quasi = _stepped(_whole(problem), at, state.quasi)
        size = float(np.linalg.norm(there.coef - at.coef))
        every = state.every
        if len(quasi.moves) > MOST_PAIRS:
            every = max(1, every // GROWTH)
            quasi = Quasi.none(_metric(problem, there, every))
        reached = state.but(
            n_iter=state.n_iter + 1,
            at=there,
            quasi=quasi,
            every=every,
            point_change=size / (1.0 + float(np.linalg.norm(at.coef))),
            objective_change=(at.value - there.value) / (1.0 + abs(there.value)),
        )
        priced = _with_gap(problem, reached)
        better = priced.gap < GAP_REDUCTION * state.gap or there.value < at.value
        idle = 0 if better else state.idle + 1
        still = size == 0.0 and there.intercept == at.intercept
        return priced.but(idle=idle, finished=still or idle >= self.max_stalled)

    def observe(self, problem: Problem, state: SampledNewtonState, gap: Gap) -> SampledNewtonState:
        return state.observed()

    def point(self, problem: Problem, state: SampledNewtonState) -> Point:
        return Point(state.at.coef[:, None], np.array([state.at.intercept]))


def _whole(problem: Problem) -> SampledObjective:
    return problem.remembered(SampledObjective.of)


def _every(problem: Problem, share: float, per_feature: int) -> int:
    """Every which sample is taken for a share of the samples, or so many a feature if more."""
    n, p = problem.design.n_samples, problem.design.n_features
    return max(1, min(int(1.0 / share), n // (per_feature * p)))


def _stepped(objective: SampledObjective, at: Place, quasi: Quasi) -> tuple[Place, Quasi]:
    """The end of a quasi-Newton step, and the corrections there."""
    there = searched(objective, at, -quasi.solve(at.slope))
    moved = np.append(there.coef - at.coef, there.intercept - at.intercept)
    return there, quasi.after(moved, there.slope - at.slope)


def _sample_solution(
    problem: Problem, coef: Array, intercept: float, last: int
) -> tuple[Place, Quasi]:
    """The solution for every k-th sample with k = ``last``, up to what its noise is worth.

    Newton's method solves for fewer samples, and starts quasi-Newton steps for more.
    """
    every = max(last, _every(problem, START_SHARE, START_PER_FEATURE))
    objective = _sampled(problem, every)
    at, noise = objective.at(coef, intercept), coef.size / (2.0 * objective.signs.size)
    for _ in range(START_STEPS):
        metric = objective.metric(at.bend)
        move = -metric.solve(at.slope)
        decrement = -0.5 * float(move @ at.slope)
        at = searched(objective, at, move)
        if decrement <= max(START_DECREMENT * at.value, noise):
            break
    quasi = Quasi.none(metric)
    if every > last:
        objective = _sampled(problem, last)
        at = objective.at(at.coef, at.intercept)
        quasi = Quasi.none(objective.metric(at.bend))
        noise = coef.size / (2.0 * objective.signs.size)
        for _ in range(START_STEPS):
            decrement = 0.5 * float(at.slope @ quasi.solve(at.slope))
            at, quasi = _stepped(objective, at, quasi)
            if decrement <= noise * at.value:
                break
    if last > 1:
        at = _whole(problem).at(at.coef, at.intercept)
    return at, quasi


def _sampled(problem: Problem, every: int) -> SampledObjective:
    """The objective on every k-th sample."""
    if every == 1:
        return _whole(problem)
    return SampledObjective.of(problem, stratified(problem, every))


def _metric(problem: Problem, at: Place, every: int) -> ReducedHessian:
    """The Hessian of every k-th sample."""
    whole = _whole(problem)
    if every == 1:
        return whole.metric(at.bend)
    index = stratified(problem, every)
    factor = 1.0 / float(whole.weights[index].sum())
    some = replace(whole, design=whole.design.rows(index))
    return some.metric(factor * at.bend[index])


def _with_gap(problem: Problem, state: SampledNewtonState) -> SampledNewtonState:
    """The state with the gap of its point."""
    gap = _whole(problem).gap(state.at.slope, state.quasi.metric)
    least = max(state.at.value, problem.negligible)
    return state.but(
        gap=min(gap, state.gap), exact=gap <= EXACT_GAP * least, relative_gap=gap / least
    ).claimed(final=True)
