"""ADMM for the hinge with an elastic net (Ye, Chen and Xie 2011)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.base import Array
from proxmargin.functions.penalties.elastic_net import soft_threshold
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.augmented.hinge_system import HessianTerms, HingeSystem, hinge_system
from proxmargin.solvers.loop.solver import Solver, State, check_choice, check_numbers
from proxmargin.solvers.loop.stopping import Stop
from proxmargin.solvers.shared.hinge_terms import (
    first_multipliers,
    hinge_objection,
    intercept_ridge,
    relative_changes,
    signs_and_upper,
    target_margins,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class AdmmState(State):
    sparse: Array  # (n_features,): u, the copy of the coefficients in the l1 norm
    intercept: float = 0.0  # of centred features, if they are centred
    missing: Array  # (n_samples,): eta, the copy of ``1 - y (X w + b)`` in the hinge
    dual: Array  # (n_samples,): c, the multipliers of that copy
    multipliers: Array  # (n_features,): v, the multipliers of ``w = u``
    # whether objectives are computed, for callbacks and ``stopping='relative-change'``: each costs
    # a product with the data
    compares: bool = False
    objective: float = np.nan  # objective of u, if computed
    rho_margin: float  # rho_margin, rho_coef: penalty parameters, for the sum of the losses
    rho_coef: float


# penalty parameters of margins and coefficients for the mean of the losses of n samples
SETTINGS: Mapping[str, Callable[[float], tuple[float, float]]] = {
    "liu": lambda n: (1.0 / n, 50.0 / n),
    "xu": lambda n: (100.0 / n, 50.0),
}


@dataclass(frozen=True)
class AlternatingDirections(Solver[AdmmState]):
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
    The certificate is for u, with the multipliers c, which the prox of the hinge keeps in their
    box.
    """

    setting: str = "liu"
    rho_margin: float | None = None
    rho_coef: float | None = None

    name: ClassVar[str] = "admm"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    max_iter: ClassVar[int] = 100_000

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
        computes_gap = np.array(
            [margins, problem.penalty.l2 + coef, np.nan if ridge is None else ridge]
        )
        return problem.centred.design.remembered(_system, computes_gap)

    def _penalty_parameters(self, problem: Problem) -> tuple[float, float]:
        """Penalty parameters r of margins and coefficients, for the mean of the losses."""
        total = problem.loss.sample_count
        margin, coef = SETTINGS[self.setting](total)
        return (
            margin if self.rho_margin is None else self.rho_margin / total,
            coef if self.rho_coef is None else self.rho_coef / total,
        )

    def point(self, problem: Problem, state: AdmmState) -> Point:
        coef = state.sparse[:, None]
        return problem.centred.point(coef, np.array([state.intercept]))

    def measures(self, state: AdmmState) -> Mapping[str, float]:
        return {
            "objective": state.objective,
            "rho_margin": state.rho_margin,
            "rho_coef": state.rho_coef,
        }

    def dual(self, problem: Problem, state: AdmmState) -> Array:
        signs, _ = signs_and_upper(problem)
        return (-signs * state.dual)[:, None]


def _system(design: Design, computes_gap: Array) -> HingeSystem:
    """The system for the penalty parameters and the intercept's ridge (nan without intercept)."""
    margin, coef, ridge = computes_gap.tolist()
    bends, diagonal = np.full(design.n_samples, margin), np.full(design.n_features, coef)
    return hinge_system(HessianTerms(design, bends, diagonal, None if np.isnan(ridge) else ridge))
