"""The hinge with an elastic net, in the terms of its solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmargin.data.designs.views import standardized
from proxmargin.functions.losses.base import Array
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept

KINK_TOLERANCE = 1e-3  # distance to the kink up to which a margin is on it at a warm start


def hinge_objection(problem: Problem, penalty: Trait = Trait.UNIFORM_NET) -> str | None:
    """The objection to a problem without a hinge or with another penalty, or None."""
    if Trait.HINGE not in problem.traits:
        return "it needs the hinge loss"
    if problem.loss.n_outputs > 1:
        return "it needs a binary problem (or multi_class='ovr')"
    if penalty not in problem.penalty.traits:
        return f"it needs {penalty.sentence()}"
    if not problem.has_plain_intercept:
        return "it needs an intercept with a ridge, a free one or none"
    return None


def signs_and_upper(problem: Problem) -> tuple[Array, Array]:
    """Signs of the samples, and upper of their multipliers, (n_samples,) each."""
    loss = problem.margins
    return loss.signs[:, 0], loss.weights[:, 0]


@kept
def target_margins(problem: Problem) -> Array:
    """The margins ``y_i z_i = 1 - y_i offset_i`` at which the hinges reach zero, (n_samples,)."""
    ends: Array = 1.0 - problem.margins.signs[:, 0] * problem.offset
    return ends


def intercept_ridge(problem: Problem) -> float | None:
    """Strength of the ridge of the intercept, zero for a free one; None without intercept."""
    return problem.intercept.l2 if problem.fits_intercept else None


def relative_changes(before: Any, after: Any, objective: float) -> dict[str, Any]:
    """What `RelativeChange` and histories read of a state: its ``objective``, and relative changes;
    of states with ``sparse`` coefficients, an ``intercept`` and an ``objective``."""
    change = np.append(after.sparse - before.sparse, after.intercept - before.intercept)
    size = np.linalg.norm(np.append(before.sparse, before.intercept))
    return {
        "objective": objective,
        "objective_change": (before.objective - objective) / (1.0 + abs(before.objective)),
        "point_change": float(np.linalg.norm(change) / (1.0 + size)),
    }


def spread_of(problem: Problem) -> float:
    """Mean squared norm of the samples, centred as in `Problem.centred`."""
    shares = problem.loss.shares
    if problem.intercept.is_shift_invariant:
        scale = standardized(problem.design, shares).scale
        return float(np.square(scale[np.isfinite(scale)]).sum())
    return float(shares @ problem.design.row_norms())


def first_multipliers(problem: Problem, start: Point, scores: Array) -> Array:
    """Multipliers to start from: the given ones, else those that the margins imply.

    Without coefficients, the multipliers of the lighter class are at their upper, and those of the
    heavier class scaled to the same sum. With coefficients they are at the cap for margins below
    the kink, zero above, and half the cap on it.
    """
    signs, upper = signs_and_upper(problem)
    if start.dual is not None:
        return np.clip(-signs * start.dual[:, 0], 0.0, upper)
    if start.coef.any():
        missing = target_margins(problem) - signs * scores
        return upper * np.where(np.abs(missing) <= KINK_TOLERANCE, 0.5, missing > 0)
    up, down = float(upper[signs > 0].sum()), float(upper[signs < 0].sum())
    least = min(up, down)
    return upper * np.where(signs > 0, least / (up or 1.0), least / (down or 1.0))
