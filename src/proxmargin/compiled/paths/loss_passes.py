"""The passes over the samples of a path that depend on the loss, called by their addresses.

The rest of a path, thirty times as much code, is compiled once for all losses.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import ARRAY, NUMBER, SUMS, address_of, caller, njit
from proxmargin.compiled.losses.margins import best_shift
from proxmargin.compiled.solvers.newton import exact_step


class Loss(NamedTuple):
    """A loss of margins: the address of its parameters, and those of its passes."""

    at: int  # of the parameters; `loss_of` returns the array that has to outlive this
    smoothness: float  # the Lipschitz constant of phi'
    # of the functions of these names with an underscore
    at_scores: int
    best_intercept: int
    bounds: int
    gap_of_shares: int
    gap_of_dual: int
    majorised: int
    descent_along: int
    step_length: int


def loss_of(phi: Any) -> tuple[Loss, Any]:
    """The loss for kernels, and the array of its parameters.

    Parameters
    ----------
    phi : named tuple of numbers
        See `proxmargin.compiled.losses.scalars`.
    """
    kind: Any = type(phi)
    plain = kind(*map(float, phi))
    parameters = np.array(plain)
    return Loss(parameters.ctypes.data, plain.smoothness, *_addresses(kind)), parameters


@cache
def _addresses(kind: Any) -> tuple[int, ...]:
    like = kind(*np.ones(len(kind._fields)).tolist())  # compilation depends on types alone
    return tuple(address_of(function, like, kinds) for function, kinds in PASSES.items())


# ---- what kernels call, with the parts of a path ------------------------------------------------

_nothing, _number, _pair, _four = (caller(count) for count in (0, 1, 2, 4))


@njit(nogil=True, allocates=False)
def at_scores(data, point, intercept):
    """See `proxmargin.compiled.losses.evaluation.evaluated`."""
    loss, signs, weights = data.loss, data.signs, data.weights
    arguments = (point.scores, intercept, signs, weights, point.dual, point.curvatures)
    return _four(loss.at_scores, loss.at, arguments)


@njit(nogil=True, allocates=False)
def best_intercept(data, point, intercept):
    """The best intercept, by the safeguarded method."""
    arguments = (point.scores, intercept, data.signs, data.weights, point.dual)
    return _number(data.loss.best_intercept, data.loss.at, arguments)


@njit(nogil=True, allocates=False)
def bounds(data, point):
    """Sums of `shrunk_bound` over the samples of positive, and of negative signs."""
    return _pair(data.loss.bounds, data.loss.at, (point.dual, point.curvatures, data.signs))


@njit(nogil=True, allocates=False)
def gap_of_shares(data, point, up, down):
    """Fenchel-Young sum of the scores against shares of their own dual point, by sign."""
    arguments = (point.scores, point.scalars.intercept, data.signs, data.weights, up, down)
    return _number(data.loss.gap_of_shares, data.loss.at, arguments)


@njit(nogil=True, allocates=False)
def gap_of_dual(data, point, scale):
    """Fenchel-Young sum of the scores against ``scale`` times the dual point."""
    loss, intercept = data.loss, point.scalars.intercept
    arguments = (point.scores, intercept, data.signs, data.weights, point.dual, scale)
    return _number(loss.gap_of_dual, loss.at, arguments)


@njit(nogil=True, allocates=False)
def majorised(data, point, weight, out):
    """Write curvatures, those that are zero replaced by ``weight`` times the majoriser's."""
    loss, signs, intercept = data.loss, data.signs, point.scalars.intercept
    arguments = (point.scores, intercept, signs, data.weights, weight, point.curvatures, out)
    _nothing(loss.majorised, loss.at, arguments)


@njit(nogil=True, allocates=False)
def descent_along(data, point, intercept_step):
    """Minus the derivative of the loss along a step, at its end."""
    loss, signs, intercept = data.loss, data.signs, point.scalars.intercept
    arguments = (point.scores, point.change, intercept, intercept_step, signs, data.weights)
    return _number(loss.descent_along, loss.at, arguments)


@njit(nogil=True, allocates=False)
def step_length(loss, scores, change, signs, weights, coef, direction, l1, l2, share):
    """See `proxmargin.compiled.solvers.newton.exact_step`."""
    arguments = (scores, change, signs, weights, coef, direction, l1, l2, share)
    return _number(loss.step_length, loss.at, arguments)


# ---- the passes, compiled for each loss ---------------------------------------------------------


@njit(nogil=True, allocates=False, error_model="numpy")
def _at_scores(at, scores, shift, signs, weights, dual, curvature):
    phi = at[0]
    return phi.evaluated(scores, shift, signs, weights, dual, curvature)


@njit(nogil=True, error_model="numpy")
def _best_intercept(at, scores, intercept, signs, weights, dual):
    phi = at[0]
    return intercept + best_shift(phi, scores + intercept, signs, weights, 0.0, 0.0, dual)


@njit(nogil=True, allocates=False, error_model="numpy")
def _bounds(at, dual, curvature, signs):
    phi = at[0]
    above, below = 0.0, 0.0
    for i in range(dual.size):
        one = phi.shrunk_bound(abs(dual[i]), curvature[i])
        above += one if signs[i] > 0.0 else 0.0
        below += one if signs[i] < 0.0 else 0.0
    return above, below


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _gap_of_shares(at, scores, intercept, signs, weights, up, down):
    phi = at[0]
    total = 0.0
    for i in range(scores.size):
        share = up if signs[i] > 0.0 else down
        if weights[i] != 0.0 and share != 1.0:
            t = signs[i] * (scores[i] + intercept)
            total += weights[i] * phi.fenchel_young(t, share * phi.descent(t))
    return total


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _gap_of_dual(at, scores, intercept, signs, weights, dual, scale):
    phi = at[0]
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            t = signs[i] * (scores[i] + intercept)
            total += weights[i] * phi.fenchel_young(t, scale * signs[i] * dual[i] / weights[i])
    return total


@njit(nogil=True, allocates=False, error_model="numpy")
def _majorised(at, scores, intercept, signs, weights, share, curvature, result):
    phi = at[0]
    for i in range(scores.size):
        curved = curvature[i]
        if curved == 0.0 and weights[i] > 0.0:
            curved = weights[i] * share * phi.majorant(signs[i] * (scores[i] + intercept))
        result[i] = curved


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _descent_along(at, scores, change, intercept, intercept_step, signs, weights):
    phi = at[0]
    total = 0.0
    for i in range(scores.size):
        speed = change[i] + intercept_step
        force = phi.descent(signs[i] * (scores[i] + intercept + speed))
        total += weights[i] * signs[i] * speed * force
    return total


@njit(nogil=True, error_model="numpy")
def _step_length(at, scores, change, signs, weights, coef, direction, l1, l2, share):
    phi = at[0]
    return exact_step(phi, scores, change, signs, weights, coef, direction, l1, l2, 0.0, 0.0, share)


# in the order of the addresses in `Loss`
PASSES: dict[Any, tuple[Any, ...]] = {
    _at_scores: (ARRAY, NUMBER, ARRAY, ARRAY, ARRAY, ARRAY),
    _best_intercept: (ARRAY, NUMBER, ARRAY, ARRAY, ARRAY),
    _bounds: (ARRAY, ARRAY, ARRAY),
    _gap_of_shares: (ARRAY, NUMBER, ARRAY, ARRAY, NUMBER, NUMBER),
    _gap_of_dual: (ARRAY, NUMBER, ARRAY, ARRAY, ARRAY, NUMBER),
    _majorised: (ARRAY, NUMBER, ARRAY, ARRAY, NUMBER, ARRAY, ARRAY),
    _descent_along: (ARRAY, ARRAY, NUMBER, NUMBER, ARRAY, ARRAY),
    _step_length: (ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, NUMBER),
}
