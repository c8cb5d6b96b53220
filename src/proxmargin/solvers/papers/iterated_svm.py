"""The methods that Liu et al. (2013) compare: iterated support vector machines, and ADMM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from proxmargin.compiled.solvers.decomposition import pairwise
from proxmargin.data.designs.base import Design
from proxmargin.functions.penalties.elastic_net import soft_threshold
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.hinge_system import HessianTerms, HingeSystem, hinge_system
from proxmargin.solvers.loop.solver import (
    PrimalResidual,
    RelativeChange,
    Solver,
    State,
    Stop,
    at_least_one,
    check_choice,
    check_numbers,
    require,
)
from proxmargin.solvers.shared.margin_model import (
    first_multipliers,
    hinge_objection,
    intercept_ridge,
    relative_changes,
    signs_and_upper,
    target_margins,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitState(State):
    """The state of a split of the coefficients into w, in the loss, and u, in the l1 norm."""

    sparse: Array  # (n_features,): u
    intercept: float = 0.0  # of centred features, if they are centred
    dual: Array  # (n_samples,): multipliers of the loss
    multipliers: Array  # (n_features,): those of ``w = u``
    # whether objectives are computed, for callbacks and ``stopping='relative-change'``: each costs
    # a product with the data
    compares: bool = False
    objective: float = np.nan  # objective of u, if computed


S = TypeVar("S", bound=SplitState)


@dataclass(frozen=True)
class Split(Solver[S]):
    """A method on such a split. The certificate is for u, with the multipliers of the loss."""

    def point(self, problem: Problem, state: S) -> Point:
        coef = state.sparse[:, None]
        return problem.centred.point(coef, np.array([state.intercept]))

    def dual(self, problem: Problem, state: S) -> Array:
        return (-signs_and_upper(problem)[0] * state.dual)[:, None]


@dataclass(frozen=True, eq=False, kw_only=True)
class AdmmState(SplitState):
    missing: Array  # (n_samples,): eta, the copy of ``1 - y (X w + b)`` in the hinge
    rho_margin: float  # rho_margin, rho_coef: penalty parameters, for the sum of the losses
    rho_coef: float


# penalty parameters of margins and coefficients for the mean of the losses of n samples
SETTINGS: Mapping[str, Callable[[float], tuple[float, float]]] = {
    "liu": lambda n: (1.0 / n, 50.0 / n),
    "xu": lambda n: (100.0 / n, 50.0),
}


@dataclass(frozen=True)
class AlternatingDirections(Split[AdmmState]):
    """ADMM on copies eta of the margin deficits ``target - y (X w + b)`` and u of the coefficients.

    (w, b) solve the linear system

        (l2 + r_u) w + r_eta X'(X w + b) = X'Y(c + r_eta (target - eta)) - v + r_u u

    and the corresponding equation for b, with penalty parameters r, over the features or (Woodbury)
    over the samples, whichever is smaller; it is factored once. eta and u are proximal steps of the
    hinge and of the l1 norm.

    Parameters
    ----------
    setting : {"liu", "xu"}
        Penalty parameters of eta and u: 1 and 50 for the sum of the losses (Liu et al. 2013), or
        100 / n and 50 for their mean over n samples (Xu et al. 2015, 3.1).
    rho_margin, rho_coef : float > 0, optional
        Others, for the sum of the losses.

    Notes
    -----
    The prox of the hinge keeps the multipliers c of the certificate in their box.
    """

    setting: str = "liu"
    rho_margin: float | None = None
    rho_coef: float | None = None

    name: ClassVar[str] = "admm"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)

    def __post_init__(self) -> None:
        check_choice(self, "setting", SETTINGS)
        check_numbers(self, "rho_margin", "rho_coef", above=0, optional=True)

    def objection(self, problem: Problem) -> str | None:
        return hinge_objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> AdmmState:
        design = problem.centred.design
        coef = start.coef[:, 0].copy()
        intercept = float(problem.centred.intercept(start)[0])
        scores = design.scores(coef[:, None])[:, 0] + intercept
        dual = first_multipliers(problem, start, scores)
        signs, _ = signs_and_upper(problem)
        l1 = problem.penalty.l1
        pulled = design.adjoint((signs * dual)[:, None])[:, 0]
        price, weight = self._penalty_parameters(problem)
        compares = stop.rule is not None or bool(stop.callbacks)
        return AdmmState(
            sparse=coef,
            intercept=intercept,
            missing=target_margins(problem) - signs * scores,
            dual=dual,
            multipliers=np.clip(pulled - problem.penalty.l2 * coef, -l1, l1),
            compares=compares,
            objective=problem.value(start) if compares else np.nan,
            rho_margin=price * problem.loss.sample_count,
            rho_coef=weight * problem.loss.sample_count,
        )

    def step(self, problem: Problem, state: AdmmState) -> AdmmState:
        design, (price, weight) = problem.centred.design, self._penalty_parameters(problem)
        signs, upper = signs_and_upper(problem)
        ends = target_margins(problem)
        push = signs * (state.dual + price * (ends - state.missing))
        right = design.adjoint(push[:, None])[:, 0] + weight * state.sparse - state.multipliers
        every = np.arange(right.size)
        smooth, intercept = self._system(problem).step(every, -right, -float(push.sum()))
        wanted = ends - signs * (design.scores(smooth[:, None])[:, 0] + intercept)
        reach = wanted + state.dual / price
        missing = reach - np.clip(reach, 0.0, upper / price)
        sparse = soft_threshold(smooth + state.multipliers / weight, problem.penalty.l1 / weight)
        moved = replace(
            state,
            n_iter=state.n_iter + 1,
            sparse=sparse,
            intercept=intercept,
            missing=missing,
            dual=np.clip(state.dual + price * (wanted - missing), 0.0, upper),
            multipliers=state.multipliers + weight * (smooth - sparse),
        )
        if not state.compares:
            return moved
        objective = problem.value(self.point(problem, moved))
        return replace(moved, **relative_changes(state, moved, objective))

    def _system(self, problem: Problem) -> HingeSystem:
        """The linear system of the step in (w, b), factored once and kept with the data."""
        margins, coef = self._penalty_parameters(problem)
        ridge = intercept_ridge(problem)
        strengths = np.array(
            [margins, problem.penalty.l2 + coef, np.nan if ridge is None else ridge]
        )
        return _system(problem.centred.design, strengths)

    def _penalty_parameters(self, problem: Problem) -> tuple[float, float]:
        """Penalty parameters r of margins and coefficients, for the mean of the losses."""
        total = problem.loss.sample_count
        margin, coef = SETTINGS[self.setting](total)
        return (
            margin if self.rho_margin is None else self.rho_margin / total,
            coef if self.rho_coef is None else self.rho_coef / total,
        )

    def measures(self, state: AdmmState) -> Mapping[str, float]:
        return {
            "objective": state.objective,
            "rho_margin": state.rho_margin,
            "rho_coef": state.rho_coef,
        }


@kept
def _system(design: Design, strengths: Array) -> HingeSystem:
    """The system for the penalty parameters and the intercept's ridge (nan without intercept)."""
    margin, coef, ridge = strengths.tolist()
    curvature, diagonal = np.full(design.n_samples, margin), np.full(design.n_features, coef)
    own = None if np.isnan(ridge) else ridge
    return hinge_system(HessianTerms(design, curvature, diagonal, own))


# largest violation of the optimality conditions of the inner problem, in units of the margin
FIRST_ACCURACY = 1e-5  # finer than 1e-3, at which the order of tied pairs shows in the multipliers
FINEST_ACCURACY = 1e-11
ACCURACY_FRACTION = 1e-2  # over the relative gap of the outer problem
# limit of pair or single-coordinate steps of the inner solver in one iteration: the sum of both
SMO_STEPS = 10_000
SMO_STEPS_PER_SAMPLE = 200
MAX_RHO = 1e100  # penalty parameter at which the method ends, before any term overflows


@dataclass(frozen=True, eq=False, kw_only=True)
class IteratedSVMState(SplitState):
    smooth: Array  # (n_features,): w
    # penalty parameter, the weight of ``|w - u|^2 / 2``, for the sum of the losses
    rho: float = 0.0
    exactness: float = FIRST_ACCURACY  # Accuracy of the inner problem
    used_rho: float = 0.0  # penalty parameter of the last iteration
    # ``|w - u|``; infinite while the subproblem of `Isvm1` is not solved
    primal_residual: float = np.inf


@dataclass(frozen=True)
class Isvm2(Split[IteratedSVMState]):
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

    def measures(self, state: IteratedSVMState) -> Mapping[str, float]:
        return {"objective": state.objective, "rho": state.used_rho}


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
        moved_on = super()._updated(moved, before, rho)
        stiffer = min(self.growth * moved.rho, self.largest)
        return replace(moved_on, rho=stiffer, finished=stiffer >= MAX_RHO)


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
    """The dual point and the intercept of (14), warm-started at the last dual point. ``min a'YXX'Ya
    / (2 stiffness) + (Y X offset - target)'a`` over the box, and ``y'a = 0`` where the intercept is
    free; a ridge r of the intercept adds ``(y'a)^2 / (2 r)``."""
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
        inside = (dual > 0) & (dual < upper)  # the mean of ``y_i target_i - x_i'w`` over these
        mean = -(signs * slope)[inside].mean() if inside.any() else state.intercept
        return dual, float(mean)
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
    takes what the sum of the others changes by."""
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


def _balanced(problem: Problem, dual: Array) -> Array:
    """The multipliers, the heavier class scaled down to the sum of the other."""
    signs, _ = signs_and_upper(problem)
    balanced = problem.loss.balanced((-signs * dual)[:, None], problem.intercept)
    return -signs * balanced[:, 0]
