"""The state of `ProbabilityNewton`, its duality gap, and its claim of convergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from proxmargin.designs.base import Array
from proxmargin.loop.solver import GapState
from proxmargin.loop.stopping import Stop
from proxmargin.problem import Problem
from proxmargin.solvers.minimax.ellipsoids import coordinates_of, ellipsoid_loss

__all__ = ["GAP_REDUCTION", "Levels", "ProbabilityState", "gap_of", "priced"]

GAP_REDUCTION = 0.8  # ratio to the smallest gap so far, below which a gap is progress


class Levels(NamedTuple):
    """The levels of the classes as variables of their own (`level_newton`).

    Attributes
    ----------
    values : (2,)
        ``n_o / kappa``.
    covariances : (2, k, k)
        Of the classes, without which there are no levels.
    """

    values: Array
    covariances: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbabilityState(GapState):
    """The state of `ProbabilityNewton`.

    Attributes
    ----------
    coef : (k,)
        In the features, or in the row span if there are fewer samples.
    scores : (n_samples,)
    dual : (n_samples,)
        The better of two dual points: the gradient of the loss, and the multipliers of the last
        quadratic model.
    covariances : (2, k, k)
        Covariances of the two classes, if they are formed.
    levels
        After Newton's method in the coefficients has stalled.
    gap : float
        Smallest gap so far.
    idle : int
        Steps without progress.
    stop : Stop
        Limits of the run.
    """

    coef: Array
    scores: Array
    dual: Array | None = None
    covariances: Array | None = None
    levels: Levels | None = None
    gap: float = np.inf
    idle: int = 0
    stop: Stop = field(default_factory=Stop)


def gap_of(problem: Problem, coef: Array, scores: Array, dual: Array) -> float:
    """The duality gap of coefficients, (k,), with their scores, and a dual point, (n_samples,)."""
    l2, design = problem.penalty.l2, coordinates_of(problem).design
    residual = l2 * coef + design.adjoint(dual[:, None])[:, 0]
    young = ellipsoid_loss(problem).fenchel_young(scores[:, None], dual[:, None])
    return young + float(residual @ residual) / (2.0 * l2)


def priced(problem: Problem, state: ProbabilityState, gap: float) -> ProbabilityState:
    """The state with its relative gap, and a claim if that meets the tolerance."""
    value = ellipsoid_loss(problem).value(state.scores[:, None])
    value += 0.5 * problem.penalty.l2 * float(state.coef @ state.coef)
    return state.but(relative_gap=gap / max(abs(value), problem.negligible)).claimed(final=True)
