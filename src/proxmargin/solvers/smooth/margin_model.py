"""The quadratic model of a sum of margin losses, for Newton methods.

The intercept is no variable of these methods: it is minimised exactly at every point, and
eliminated from every quadratic model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxmargin.compiled.solvers import newton as compiled
from proxmargin.designs.base import Array, Design, subtract_outer
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.problem import Problem
from proxmargin.solvers.line_search import increasing_root

__all__ = [
    "Hessian",
    "MarginExpansion",
    "curvature_in_shift",
    "expanded",
    "first_share",
    "intercept_eliminated",
    "line_search",
    "next_share",
]

# exact line search
LINE_SEARCH_TOLERANCE = 0.05  # slope at the end over the first slope
LINE_SEARCH_STEPS = 60  # limit: more bisections than a step has bits
# homotopy in the weight of the reweighted least-squares majoriser, controlled by the step length
SMALLEST_MAJORISER = 1e-3  # weight below which it is set to zero
MAJORISER_DECREASE = 0.1  # factor after a good step
MAJORISER_INCREASE = 10.0  # factor after a step that is not fair
GOOD_STEP_LENGTH = 0.5  # at least; one is the full Newton step
FAIR_STEP_LENGTH = 0.1  # at least


class MarginExpansion(NamedTuple):
    """A point with its best intercept, and the loss there to second order.

    Attributes
    ----------
    intercept : float
    scores : (n_samples,)
    value : float
        The loss plus the penalty of the intercept.
    dual : (n_samples,)
        Gradient of the loss in the scores.
    bend : (n_samples,)
        Second derivatives of the loss in the scores, or a majoriser where they vanish.
    """

    intercept: float
    scores: Array
    value: float
    dual: Array
    bend: Array


class Hessian(NamedTuple):
    """The Hessian of the loss in the coefficients, with the intercept eliminated.

    Attributes
    ----------
    matrix : (k, k)
        ``X' D X - h h' / total`` with ``h = X' D 1``.
    mean : (k,)
        ``h / total``: along a step d the optimal intercept changes by ``-mean' d``.
    """

    matrix: Array
    mean: Array


def expanded(problem: Problem, scores: Array, intercept: float, share: float) -> MarginExpansion:
    """The expansion of the loss at these scores, with the best intercept.

    Parameters
    ----------
    scores : (n_samples,)
        Scores with the given ``intercept``.
    share : float
        Weight of the reweighted least-squares majoriser where the loss has no curvature
        (`next_share`).
    """
    loss, start = problem.loss, np.array([intercept])
    bare = (scores - intercept)[:, None]
    best = float(loss.best_intercept(bare, problem.intercept, start)[0])
    scores = bare[:, 0] + best
    value, dual = loss.value_and_gradient(scores[:, None])
    value += problem.intercept.value(np.array([[best]]))
    return MarginExpansion(
        best, scores, value, dual[:, 0], _bends(problem.margins, scores + problem.offset, share)
    )


def curvature_in_shift(problem: Problem, bend: Array) -> float:
    """Curvature of the objective in the intercept; infinite if that is pinned."""
    if not problem.fits_intercept:
        return np.inf
    return float(bend.sum()) + problem.intercept.l2


def intercept_eliminated(problem: Problem, design: Design, bend: Array) -> Hessian:
    """The Hessian of the loss for these second derivatives, (n_samples,)."""
    total = curvature_in_shift(problem, bend)
    if total == 0:
        zero = np.zeros(design.n_features)
        return Hessian(np.zeros((zero.size, zero.size)), zero)
    cross = design.adjoint(bend[:, None])[:, 0]
    mean = cross / total
    if problem.intercept.is_shift_invariant:
        return Hessian(design.gram(bend, mean), mean)
    matrix = design.gram(bend, np.zeros(design.n_features))
    subtract_outer(matrix, cross, mean)
    return Hessian(matrix, mean)


def line_search(
    problem: Problem, at: MarginExpansion, moved: Array, move: float, slope: float, bend: float
) -> float:
    """The step length that minimises ``loss + (l2/2) |w|^2 + intercept`` along a direction.

    Parameters
    ----------
    moved : (n_samples,)
        Change of the scores in a full step, including the change ``move`` of the intercept.
    slope, bend : float
        ``l2 w'd`` and ``l2 |d|^2`` of the coefficients w and the direction d.
    """
    loss, ridge, scores = problem.margins, problem.intercept.l2, at.scores + problem.offset
    slope += ridge * at.intercept * move
    bend += ridge * move * move
    if loss.phi.scalars is None:
        return _exact_step(loss, scores, moved, slope, bend)
    nothing, signs, weights = np.zeros(0), loss.signs[:, 0], loss.weights[:, 0]
    ray = (scores, moved, signs, weights, *(nothing,) * 4, slope, bend)
    step: float = compiled.exact_step(
        loss.phi.scalars, *ray, LINE_SEARCH_TOLERANCE, LINE_SEARCH_STEPS
    )
    return step


def first_share(problem: Problem) -> float:
    """The first weight of the majoriser: one for losses with linear pieces, else zero."""
    return 1.0 if problem.margins.phi.has_linear_piece else 0.0


def next_share(before: float, step: float) -> float:
    """The next weight of the majoriser: smaller after a good step, larger after a short one."""
    if step >= GOOD_STEP_LENGTH:
        return MAJORISER_DECREASE * before if before > SMALLEST_MAJORISER else 0.0
    return (
        before
        if step >= FAIR_STEP_LENGTH
        else min(1.0, MAJORISER_INCREASE * max(before, SMALLEST_MAJORISER))
    )


def _bends(loss: MarginSum, scores: Array, share: float) -> Array:
    """Second derivative of the loss in each score including the offset, (n_samples,).

    Where it vanishes but the loss does not: ``share`` times the curvature of the parabola that
    touches the loss there and has its vertex at zero. For a capped quadratic that is the majoriser
    of reweighted least squares.
    """
    signs, weights, phi = loss.signs[:, 0], loss.weights[:, 0], loss.phi
    t = signs * scores
    if phi.scalars is None:
        bend = weights * phi.curvature(t)
    else:
        bend = np.empty(scores.size)
        compiled.curvature_weights(phi.scalars, scores, signs, weights, 0.0, bend)
    if share > 0:
        flat = np.flatnonzero((bend == 0) & (weights > 0))
        slope, value = phi.descent(t[flat]), phi.value(t[flat])
        missing = np.divide(slope**2, 2.0 * value, out=np.zeros(flat.size), where=value > 0)
        bend[flat] = share * weights[flat] * missing
    return bend


def _exact_step(loss: MarginSum, scores: Array, moved: Array, fixed: float, bend: float) -> float:
    """`compiled.newton.exact_step` for losses without scalar functions."""
    signs = loss.signs[:, 0]
    margins, rates = signs * scores, loss.weights[:, 0] * signs * moved

    def slope(step: float) -> float:
        t = margins + step * signs * moved
        return fixed + step * bend - float(rates @ loss.phi.descent(t))

    return increasing_root(slope, LINE_SEARCH_TOLERANCE, LINE_SEARCH_STEPS)
