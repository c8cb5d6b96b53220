"""The hinge with an elastic net, as the solvers made for it read a problem."""

from __future__ import annotations

import numpy as np

from proxmargin.designs.standardized import standardized
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.traits import Trait

__all__ = [
    "first_multipliers",
    "goals",
    "hinge_objection",
    "intercept_ridge",
    "l1_of",
    "signs_and_caps",
    "spread_of",
]

KINK_TOLERANCE = 1e-3  # distance of a margin from the kink that a warm start takes to be on it


def hinge_objection(problem: Problem, penalty: Trait = Trait.UNIFORM_NET) -> str | None:
    """Why the problem is not one of them, with a penalty of this kind, or None."""
    if Trait.HINGE not in problem.traits:
        return "it needs the hinge loss"
    if problem.loss.n_outputs > 1:
        return "it needs a binary problem (or multi_class='ovr')"
    if penalty not in problem.penalty.traits:
        return f"it needs {penalty.sentence()}"
    if not problem.has_plain_intercept:
        return "it needs an intercept with a ridge, a free one or none"
    return None


def signs_and_caps(problem: Problem) -> tuple[Array, Array]:
    """Signs, and caps of the multipliers, (n_samples,) each."""
    loss = problem.margins
    return loss.signs[:, 0], loss.weights[:, 0]


def goals(problem: Problem) -> Array:
    """Where the hinges end: ``y_i z_i = 1 - y_i offset_i``, (n_samples,)."""
    ends: Array = 1.0 - problem.margins.signs[:, 0] * problem.offset
    return ends


def l1_of(problem: Problem) -> float:
    return problem.penalty.l1


def intercept_ridge(problem: Problem) -> float | None:
    """Strength of the ridge of the intercept, zero for a free one; None without intercept."""
    return problem.intercept.l2 if problem.fits_intercept else None


def spread_of(problem: Problem) -> float:
    """Mean square of the lengths of the samples of `Problem.centred`."""
    shares = problem.loss.shares
    if problem.intercept.is_shift_invariant:
        scale = standardized(problem.design, shares).scale
        return float(np.square(scale[np.isfinite(scale)]).sum())
    return float(shares @ problem.design.row_norms())


def first_multipliers(problem: Problem, start: Point, scores: Array) -> Array:
    """Multipliers to start from: the given ones, else those that the margins imply.

    Without coefficients, those of the smaller class are at their caps, and those of the larger
    have the same sum. With coefficients they are at the cap for margins below one, zero above, and
    half the cap on the kink.
    """
    signs, caps = signs_and_caps(problem)
    if start.dual is not None:
        return np.clip(-signs * start.dual[:, 0], 0.0, caps)
    if start.coef.any():
        missing = goals(problem) - signs * scores
        return caps * np.where(np.abs(missing) <= KINK_TOLERANCE, 0.5, missing > 0)
    up, down = float(caps[signs > 0].sum()), float(caps[signs < 0].sum())
    least = min(up, down)
    return caps * np.where(signs > 0, least / (up or 1.0), least / (down or 1.0))
