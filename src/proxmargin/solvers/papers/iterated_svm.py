"""The iterative support vector machines of Liu, Qian, Dai and Zhang (2013), Algorithms 1 to 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.compiled.solvers.decomposition import pairwise
from proxmargin.functions.losses.base import Array
from proxmargin.functions.penalties.elastic_net import soft_threshold
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.loop.solver import Solver, State, at_least_one, check_numbers, require
from proxmargin.solvers.loop.stopping import PrimalResidual, RelativeChange, Stop
from proxmargin.solvers.shared.hinge_terms import (
    first_multipliers,
    hinge_objection,
    intercept_ridge,
    relative_changes,
    signs_and_upper,
    target_margins,
)

# largest violation of the optimality conditions of the inner problem, in units of the margin
FIRST_ACCURACY = 1e-5  # finer than 1e-3, at which the order of tied pairs shows in the multipliers
FINEST_ACCURACY = 1e-11
ACCURACY_FRACTION = 1e-2  # over the relative gap of the outer problem
# limit of pair or single-coordinate steps of the inner solver in one iteration: the sum of both
SMO_STEPS = 10_000
SMO_STEPS_PER_SAMPLE = 200
MAX_RHO = 1e100  # penalty parameter at which the method ends, before any term overflows


@dataclass(frozen=True, eq=False, kw_only=True)
class IteratedSVMState(State):
    """The state of the split of the coefficients into w, in the loss, and u, in the l1 norm."""

    smooth: Array  # smooth, sparse: (n_features,): w and u
    sparse: Array
    multipliers: Array  # (n_features,): mu, the multipliers of ``w = u``
    dual: Array  # (n_samples,): a, the multipliers of the inner support vector machine
    intercept: float = 0.0  # of centred features, if they are centred
    # penalty parameter, the weight of ``|w - u|^2 / 2``, for the sum of the losses
    rho: float = 0.0
    exactness: float = FIRST_ACCURACY  # Accuracy of the inner problem
    used_rho: float = 0.0  # penalty parameter of the last iteration
    # ``|w - u|``; infinite while the subproblem of `Isvm1` is not solved
    primal_residual: float = np.inf
    # whether objectives are computed, for callbacks and ``stopping='relative-change'``: each costs
    # a product with the data
    compares: bool = False
    objective: float = np.nan  # objective of u, if computed


@dataclass(frozen=True)
class Isvm2(Solver[IteratedSVMState]):
    """ISVM2: ADMM on ``f(w, b) + l1 |u|_1`` subject to ``w = u``.

    The step in (w, b) is a support vector machine, solved in its dual (14), warm-started at the
    last multipliers; X enters it through the Gram matrix of the samples only.

    Parameters
    ----------
    rho : float > 0, default 50
        Penalty parameter for the sum of the losses, as in the paper; divided by the total weight
        here, where losses are averaged.
    max_samples : int >= 1, default 6000
        Largest number of samples: their Gram matrix is stored, 288 MB for 6000.

    Notes
    -----
    Corrected here: the paper's (5) to (14) drop the ``1/n`` of the loss, and its formula for u has
    ``|rho w + mu - l1|`` for ``|rho w + mu| - l1``. Its stopping rule ``|w - u| <= 1e-4`` bounds no
    error: ``stopping='primal-residual'``. The certificate is of u, with the multipliers a.
    """

    rho: float = 50.0
    max_samples: int = 6000

    name: ClassVar[str] = "isvm2"
    rules: ClassVar[tuple[str, ...]] = (PrimalResidual.name, RelativeChange.name)
    max_iter: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        check_numbers(self, "rho", above=0)
        at_least_one(self, "max_samples")

    def objection(self, problem: Problem) -> str | None:
        if problem.design.n_samples > self.max_samples:
            return (
                "it stores the Gram matrix of the samples, of which there may be "
                f"{self.max_samples} at most, and there are {problem.design.n_samples}"
            )
        return hinge_objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> IteratedSVMState:
        coef = start.coef[:, 0].copy()
        intercept = float(problem.centred.intercept(start)[0])
        scores = problem.centred.design.scores(coef[:, None])[:, 0] + intercept
        dual = first_multipliers(problem, start, scores)
        if intercept_ridge(problem) == 0:
            dual = _balanced(problem, dual)
        multipliers = np.zeros_like(coef)
        if coef.any() or start.dual is not None:
            signs, _ = signs_and_upper(problem)
            pulled = problem.centred.design.adjoint((signs * dual)[:, None])[:, 0]
            l1 = problem.penalty.l1
            multipliers = np.clip(pulled - problem.penalty.l2 * coef, -l1, l1)
        relative = stop.rule is not None and stop.rule.name == RelativeChange.name
        compares = relative or bool(stop.callbacks)
        return IteratedSVMState(
            smooth=coef,
            sparse=coef,
            multipliers=multipliers,
            dual=dual,
            intercept=intercept,
            rho=self.rho,
            used_rho=self.rho,
            compares=compares,
            objective=problem.value(start) if compares else np.nan,
        )

    def step(self, problem: Problem, state: IteratedSVMState) -> IteratedSVMState:
        rho = state.rho / problem.loss.sample_count
        stiffness = problem.penalty.l2 + rho
        offset = (rho * state.sparse - state.multipliers) / stiffness
        signs, _ = signs_and_upper(problem)
        dual, intercept = _support_vectors(problem, state, offset, stiffness)
        pulled = problem.centred.design.adjoint((signs * dual)[:, None])[:, 0]
        smooth = pulled / stiffness + offset
        sparse = soft_threshold(rho * smooth + state.multipliers, problem.penalty.l1) / rho
        moved = replace(
            state,
            n_iter=state.n_iter + 1,
            smooth=smooth,
            sparse=sparse,
            dual=dual,
            intercept=intercept,
            used_rho=state.rho,
            primal_residual=float(np.linalg.norm(smooth - sparse)),
        )
        if state.compares:
            objective = problem.value(self.point(problem, moved))
            moved = replace(moved, **relative_changes(state, moved, objective))
        return self._updated(moved, state, rho)

    def _updated(
        self, moved: IteratedSVMState, before: IteratedSVMState, rho: float
    ) -> IteratedSVMState:
        """The state with the next multipliers of ``w = u`` and the next penalty parameter."""
        return replace(moved, multipliers=moved.multipliers + rho * (moved.smooth - moved.sparse))

    def observe(self, problem: Problem, state: IteratedSVMState, gap: Gap) -> IteratedSVMState:
        exactness = min(state.exactness, max(ACCURACY_FRACTION * gap.relative_gap, FINEST_ACCURACY))
        return replace(state, exactness=exactness)

    def point(self, problem: Problem, state: IteratedSVMState) -> Point:
        coef = state.sparse[:, None]
        return problem.centred.point(coef, np.array([state.intercept]))

    def measures(self, state: IteratedSVMState) -> Mapping[str, float]:
        return {"objective": state.objective, "rho": state.used_rho}

    def dual(self, problem: Problem, state: IteratedSVMState) -> Array:
        signs, _ = signs_and_upper(problem)
        return (-signs * state.dual)[:, None]


@dataclass(frozen=True)
class Isvm3(Isvm2):
    """ISVM3: `Isvm2` with a penalty parameter that grows from iteration to iteration.

    Parameters
    ----------
    rho : float > 0, default 10
        First penalty parameter.
    growth : float >= 1, default 1.2
        Factor by which it grows in an iteration, the alpha of the paper.
    largest : float, default 250
        Upper bound of the penalty parameter. Without one (``inf``), as in the paper, w and u agree
        before they are optimal, and the method stalls away from the optimum.
    """

    rho: float = 10.0
    growth: float = 1.2
    largest: float = 250.0

    name: ClassVar[str] = "isvm3"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "growth", least=1)
        check_numbers(self, "largest", above=0, below=None)
        require(self.largest >= self.rho, "largest must be at least rho", self.largest)

    def _updated(
        self, moved: IteratedSVMState, before: IteratedSVMState, rho: float
    ) -> IteratedSVMState:
        priced = super()._updated(moved, before, rho)
        dearer = min(self.growth * moved.rho, self.largest)
        return replace(priced, rho=dearer, finished=dearer >= MAX_RHO)


@dataclass(frozen=True)
class Isvm1(Isvm3):
    """ISVM1: the method of multipliers, each subproblem by block descent in (w, b) and u.

    An iteration is one sweep over both blocks; multipliers and penalty parameter are updated when
    u changes by at most ``settled`` times its norm, and by at most the relative gap.

    Parameters
    ----------
    rho, growth, largest : float
        As for `Isvm3`.
    settled : float > 0, default 1e-3
        Relative change of u in a sweep at which the subproblem counts as solved.
    """

    settled: float = 1e-3

    name: ClassVar[str] = "isvm1"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "settled", above=0)

    def _updated(
        self, moved: IteratedSVMState, before: IteratedSVMState, rho: float
    ) -> IteratedSVMState:
        change = float(np.linalg.norm(moved.sparse - before.sparse))
        share = min(self.settled, moved.exactness / ACCURACY_FRACTION)
        if change > share * float(np.linalg.norm(moved.sparse)):
            return replace(moved, primal_residual=np.inf)
        return super()._updated(moved, before, rho)


def _support_vectors(
    problem: Problem, state: IteratedSVMState, offset: Array, stiffness: float
) -> tuple[Array, float]:
    """The dual point and the intercept of (14), warm-started at the last dual point.

    ``min a'YXX'Ya / (2 stiffness) + (Y X offset - target)'a`` over the box, and ``y'a = 0`` where
    the intercept is free; a ridge r of the intercept adds ``(y'a)^2 / (2 r)``.
    """
    signs, upper = signs_and_upper(problem)
    design, ridge = problem.centred.design, intercept_ridge(problem)
    kernel = design.outer_gram() / stiffness
    if ridge:
        kernel += 1.0 / ridge
    linear = signs * design.scores(offset[:, None])[:, 0] - target_margins(problem)
    dual, slope = _minimised_on_box(
        kernel, signs, upper, linear, state.dual, ridge == 0, state.exactness
    )
    if ridge == 0:
        return dual, _mean_intercept(signs, upper, dual, slope, state.intercept)
    return dual, float(signs @ dual) / ridge if ridge else 0.0


def _minimised_on_box(
    kernel: Array,
    signs: Array,
    upper: Array,
    linear: Array,
    dual: Array,
    balanced: bool,
    exactness: float,
) -> tuple[Array, Array]:
    """The a that minimises ``a'YKYa / 2 + linear'a`` on a box, and the gradient there, by SMO.

    ``y'a`` is kept if ``balanced``; otherwise a coordinate without cost or bounds, the last one,
    takes what the sum of the others changes by.
    """
    n, reach = dual.size, 0.0 if balanced else np.inf
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = kernel
    weights = np.append(signs * dual, 0.0)
    slope = np.append(kernel @ weights[:n] + signs * linear, 0.0)
    low = np.append(np.where(signs > 0, 0.0, -upper), -reach)
    high = np.append(np.where(signs > 0, upper, 0.0), reach)
    limit = SMO_STEPS + SMO_STEPS_PER_SAMPLE * n
    pairwise(matrix, weights, slope, low, high, 0, exactness, limit)
    return signs * weights[:n], signs * slope[:n]


def _mean_intercept(signs: Array, upper: Array, dual: Array, slope: Array, before: float) -> float:
    """``mean (y_i goal_i - x_i'w)`` over samples inside the box; ``before`` without such ones."""
    inside = (dual > 0) & (dual < upper)
    return float(-(signs * slope)[inside].mean()) if inside.any() else before


def _balanced(problem: Problem, dual: Array) -> Array:
    """The multipliers, the heavier class scaled down to the sum of the other."""
    signs, _ = signs_and_upper(problem)
    balanced = problem.loss.balanced((-signs * dual)[:, None], problem.intercept)
    return -signs * balanced[:, 0]
