"""The hinge with an elastic net, as the solvers made for it read a problem."""

from __future__ import annotations

import numpy as np

from proxmargin.designs.base import Design
from proxmargin.designs.standardized import centred, standardized
from proxmargin.losses.base import Array
from proxmargin.losses.margins.hinge import Hinge
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.problem import Point, Problem
from proxmargin.traits import Trait

__all__ = [
    "centre_of",
    "design_of",
    "first_multipliers",
    "hinge_objection",
    "intercept_ridge",
    "l1_of",
    "samples_of",
    "spread_of",
]

# margins this close to one are on the kink, at a warm start without multipliers
KINK = 1e-3


def hinge_objection(problem: Problem) -> str | None:
    """Why the problem is not one of them, or None."""
    loss = problem.loss
    if not (isinstance(loss, MarginSum) and isinstance(loss.phi, Hinge)):
        return "it needs the hinge loss"
    if loss.n_outputs > 1:
        return "it needs a binary problem (or multi_class='ovr')"
    if Trait.UNIFORM_NET not in problem.penalty.traits:
        return f"it needs {Trait.UNIFORM_NET.sentence()}"
    if not problem.has_plain_intercept:
        return "it needs an intercept with a ridge, a free one or none"
    return None


def samples_of(problem: Problem) -> tuple[Array, Array]:
    """Signs, and caps of the multipliers, (n_samples,) each."""
    assert isinstance(problem.loss, MarginSum)
    return problem.loss.signs[:, 0], problem.loss.weights[:, 0]


def l1_of(problem: Problem) -> float:
    return problem.penalty.l1


def intercept_ridge(problem: Problem) -> float | None:
    """Strength of the ridge of the intercept, zero for a free one; None without intercept."""
    return problem.intercept.l2 if problem.fits_intercept else None


def design_of(problem: Problem) -> Design:
    """The data, centred where the intercept is free, which only moves the intercept.

    Systems formed from data with large means would have lost their digits. Asked for once a
    problem.
    """
    return problem.remembered("design of hinges", lambda: _centred(problem))


def _centred(problem: Problem) -> Design:
    if problem.intercept.is_shift_invariant:
        return centred(problem.design, problem.loss.shares)
    return problem.design


def spread_of(problem: Problem) -> float:
    """Mean square of the lengths of the samples of `design_of`."""
    shares = problem.loss.shares
    if problem.intercept.is_shift_invariant:
        scale = standardized(problem.design, shares).scale
        return float(np.square(scale[np.isfinite(scale)]).sum())
    return float(shares @ problem.design.row_norms())


def centre_of(problem: Problem) -> Array:
    """What `design_of` has subtracted, (n_features,)."""
    if problem.intercept.is_shift_invariant:
        return centred(problem.design, problem.loss.shares).centre
    return np.zeros(problem.design.n_features)


def first_multipliers(problem: Problem, start: Point, scores: Array) -> Array:
    """Multipliers to start from: given ones, or what the margins tell.

    Without coefficients, those of the smaller class are at their caps, and those of the larger
    have the same sum; with coefficients they are at the caps where margins are below one, zero
    where they are above, and half the caps on the kink.
    """
    signs, caps = samples_of(problem)
    if start.dual is not None:
        return np.clip(-signs * start.dual[:, 0], 0.0, caps)
    if start.coef.any():
        missing = 1.0 - signs * scores
        return caps * np.where(np.abs(missing) <= KINK, 0.5, missing > 0)
    up, down = float(caps[signs > 0].sum()), float(caps[signs < 0].sum())
    least = min(up, down)
    return caps * np.where(signs > 0, least / (up or 1.0), least / (down or 1.0))
