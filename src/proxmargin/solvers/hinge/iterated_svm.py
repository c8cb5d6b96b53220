"""The iterative support vector machines of Liu, Qian, Dai and Zhang (2013), Algorithms 1 to 3."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.certificate import Gap
from proxmargin.compiled.solvers.smo import pair_steps, single_steps
from proxmargin.losses.base import Array
from proxmargin.penalties.elastic_net import soft_threshold
from proxmargin.problem import Point, Problem
from proxmargin.solver import Solver, State, require
from proxmargin.solvers.hinge.model import (
    centre_of,
    design_of,
    first_multipliers,
    hinge_objection,
    intercept_ridge,
    l1_of,
    samples_of,
)
from proxmargin.stopping import Stop

__all__ = ["Isvm1", "Isvm2", "Isvm3", "Split"]

# the samples' inner products are stored: 8 * LARGEST^2 bytes are 288 MB
LARGEST = 6_000
# margins of the inner problem are right to this, at first and at last, and to a share of the gap
ROUGH, FINE, SHARE = 1e-3, 1e-11, 1e-2
# steps of the inner solver in one iteration: so many, and so many for each sample
PAIRS, PAIRS_A_SAMPLE = 10_000, 200
# a price of this leaves nothing of the loss, and is far from where products overflow
DEAREST = 1e100


@dataclass(frozen=True, eq=False)
class Split(State):
    """The state of a split of the coefficients into w, which the loss sees, and u, which is sparse.

    Attributes
    ----------
    smooth, sparse : (n_features,)
        w and u.
    multipliers : (n_features,)
        mu, of the constraint ``w = u``.
    dual : (n_samples,)
        a, of the inner support vector machine.
    intercept : float
        Of centred features, where they are.
    rho : float
        Price of ``|w - u|^2 / 2`` for losses that are summed, and not averaged.
    exactness : float
        What the inner problem is solved to.
    """

    smooth: Array = None  # type: ignore[assignment]
    sparse: Array = None  # type: ignore[assignment]
    multipliers: Array = None  # type: ignore[assignment]
    dual: Array = None  # type: ignore[assignment]
    intercept: float = 0.0
    rho: float = 0.0
    exactness: float = ROUGH


@dataclass(frozen=True)
class Isvm2(Solver[Split]):
    """ISVM2: alternating directions on ``f(w, b) + l1 |u|_1`` subject to ``w = u``.

    The step in (w, b) is a support vector machine, solved in its dual (14) from the last
    multipliers; X enters it through the inner products of the samples alone.

    Parameters
    ----------
    rho : float > 0, default 50
        For the sum of the losses, as in the paper: divided by the total weight here.

    Notes
    -----
    Corrected here: the paper's (5) to (14) drop the ``1/n`` of the loss, and its u has a bracket
    around ``|rho w + mu - l1|`` where only the first two belong. Its rule ``|w - u| <= 1e-4``
    proves nothing; with ``stopping='relative-change'`` it is what ``tol`` is compared with. The
    certificate speaks of u, with the multipliers a.
    """

    rho: float = 50.0

    name: ClassVar[str] = "isvm2"
    max_iter: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        require(np.isfinite(self.rho) and self.rho > 0, "rho must be a number > 0", self.rho)

    def objection(self, problem: Problem) -> str | None:
        if problem.design.n_samples > LARGEST:
            return (
                f"it stores the inner products of the samples, of which there may be {LARGEST} "
                f"at most, and there are {problem.design.n_samples}"
            )
        return hinge_objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Split:
        coef = start.coef[:, 0].copy()
        intercept = float((start.intercept + centre_of(problem) @ start.coef)[0])
        scores = design_of(problem).scores(coef[:, None])[:, 0] + intercept
        dual = first_multipliers(problem, start, scores)
        if intercept_ridge(problem) == 0:
            dual = _balanced(problem, dual)
        multipliers = np.zeros_like(coef)
        if coef.any() or start.dual is not None:
            signs, _ = samples_of(problem)
            pulled = design_of(problem).adjoint((signs * dual)[:, None])[:, 0]
            l1 = l1_of(problem)
            multipliers = np.clip(pulled - problem.penalty.l2 * coef, -l1, l1)
        return Split(
            smooth=coef,
            sparse=coef,
            multipliers=multipliers,
            dual=dual,
            intercept=intercept,
            rho=self.rho,
        )

    def step(self, problem: Problem, state: Split) -> Split:
        rho = state.rho / problem.loss.sample_count
        stiffness = problem.penalty.l2 + rho
        offset = (rho * state.sparse - state.multipliers) / stiffness
        signs, _ = samples_of(problem)
        dual, intercept = _support_vectors(problem, state, offset, stiffness)
        pulled = design_of(problem).adjoint((signs * dual)[:, None])[:, 0]
        smooth = pulled / stiffness + offset
        sparse = soft_threshold(rho * smooth + state.multipliers, l1_of(problem)) / rho
        moved = replace(
            state,
            n_iter=state.n_iter + 1,
            smooth=smooth,
            sparse=sparse,
            dual=dual,
            intercept=intercept,
            objective_change=0.0,
            point_change=float(np.linalg.norm(smooth - sparse)),
        )
        return self._updated(moved, state, rho)

    def _updated(self, moved: Split, before: Split, rho: float) -> Split:
        """With the next multipliers of ``w = u``, and the next price."""
        return replace(moved, multipliers=moved.multipliers + rho * (moved.smooth - moved.sparse))

    def observe(self, problem: Problem, state: Split, gap: Gap) -> Split:
        exactness = min(state.exactness, max(SHARE * gap.relative_gap, FINE))
        return replace(state, exactness=exactness)

    def point(self, problem: Problem, state: Split) -> Point:
        coef = state.sparse[:, None]
        return Point(coef, np.array([state.intercept]) - centre_of(problem) @ coef)

    def dual(self, problem: Problem, state: Split) -> Array:
        signs, _ = samples_of(problem)
        return (-signs * state.dual)[:, None]


@dataclass(frozen=True)
class Isvm3(Isvm2):
    """ISVM3: `Isvm2` with a price that grows from iteration to iteration.

    Parameters
    ----------
    rho : float > 0, default 10
        The first one.
    growth : float >= 1, default 1.2
        The alpha of the paper.
    largest : float, default 250
        A bound on the price. As printed there is none (``inf``): then w and u are pulled together
        before they are optimal, and the method stops away from the optimum.
    """

    rho: float = 10.0
    growth: float = 1.2
    largest: float = 250.0

    name: ClassVar[str] = "isvm3"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.growth >= 1, "growth must be at least 1", self.growth)
        require(self.largest >= self.rho, "largest must be at least rho", self.largest)

    def _updated(self, moved: Split, before: Split, rho: float) -> Split:
        priced = super()._updated(moved, before, rho)
        dearer = min(self.growth * moved.rho, self.largest)
        return replace(priced, rho=dearer, finished=dearer >= DEAREST)


@dataclass(frozen=True)
class Isvm1(Isvm3):
    """ISVM1: the method of multipliers, (w, b) and u in turn until they have settled.

    An iteration is one turn; multipliers and price change when u moves by no more than
    ``settled`` times its length, and by no more than the gap.

    Parameters
    ----------
    rho, growth, largest : float
        As for `Isvm3`.
    settled : float > 0, default 1e-3
    """

    settled: float = 1e-3

    name: ClassVar[str] = "isvm1"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.settled > 0, "settled must be a number > 0", self.settled)

    def _updated(self, moved: Split, before: Split, rho: float) -> Split:
        change = float(np.linalg.norm(moved.sparse - before.sparse))
        share = min(self.settled, moved.exactness / SHARE)
        if change > share * float(np.linalg.norm(moved.sparse)):
            return replace(moved, point_change=np.inf)
        return super()._updated(moved, before, rho)


def _support_vectors(
    problem: Problem, state: Split, offset: Array, stiffness: float
) -> tuple[Array, float]:
    """The dual point and the intercept of (14), from the last dual point.

    ``min a'YXX'Ya / (2 stiffness) + (Y X offset - 1)'a`` over the box, and ``y'a = 0`` where the
    intercept is free; a ridge r of the intercept adds ``(y'a)^2 / (2 r)``.
    """
    signs, caps = samples_of(problem)
    design, ridge = design_of(problem), intercept_ridge(problem)
    kernel, scale = design.outer_gram(), 1.0 / stiffness
    if ridge:
        kernel = kernel + stiffness / ridge
    bare = design.scores(offset[:, None])[:, 0]
    dual = state.dual.copy()
    slope = scale * signs * (kernel @ (signs * dual)) + signs * bare - 1.0
    limit = PAIRS + PAIRS_A_SAMPLE * dual.size
    steps = pair_steps if ridge == 0 else single_steps
    steps(kernel, signs, caps, scale, dual, slope, state.exactness, limit)
    if ridge == 0:
        return dual, _mean_intercept(signs, caps, dual, slope, state.intercept)
    return dual, float(signs @ dual) / ridge if ridge else 0.0


def _mean_intercept(signs: Array, caps: Array, dual: Array, slope: Array, before: float) -> float:
    """``mean (y_i - x_i'w)`` over the samples strictly inside the box, where there are any."""
    inside = (dual > 0) & (dual < caps)
    return float(-(signs * slope)[inside].mean()) if inside.any() else before


def _balanced(problem: Problem, dual: Array) -> Array:
    """The heavier class shrunk to the sum of the other."""
    signs, _ = samples_of(problem)
    balanced = problem.loss.balanced((-signs * dual)[:, None], problem.intercept)
    return -signs * balanced[:, 0]
