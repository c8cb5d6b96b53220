"""The passes over the samples of a path that depend on the loss, called by their addresses.

The rest of a path, thirty times as much code, is compiled once for all losses.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from proxmargin.compiled.addresses import ARRAY, NUMBER, address_of, caller
from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.margins import best_shift
from proxmargin.compiled.solvers.newton import exact_step

__all__ = [
    "Loss",
    "at_scores",
    "bounds",
    "descent_along",
    "gap_of_dual",
    "gap_of_shares",
    "loss_of",
    "majorised",
    "settled",
    "step_length",
]

PAIR = types.UniTuple(NUMBER, 2)
FOUR = types.UniTuple(NUMBER, 4)
ORDER = {"reassoc", "contract", "nsz"}  # sums in any order, so that their loops vectorise


class Loss(NamedTuple):
    """A loss of margins: the address of its parameters, and those of its passes.

    Attributes
    ----------
    at : int
        Of the parameters; `loss_of` returns the array that has to outlive this.
    smoothness : float
        The Lipschitz constant of phi'.
    at_scores, ... : int
        Of the functions of these names with an underscore. (No field has the name of a method of
        `proxmargin.compiled.losses.scalars`: Numba would find that.)
    """

    at: int
    smoothness: float
    at_scores: int
    settled: int
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


# ---- what kernels call --------------------------------------------------------------------------

_nothing, _number, _pair, _four = map(caller, (types.none, NUMBER, PAIR, FOUR))


@njit(cache=True, nogil=True, allocates=False)
def at_scores(loss, scores, shift, signs, weights, theta, curvature):
    """See `proxmargin.compiled.losses.evaluation.evaluated`."""
    return _four(loss.at_scores, loss.at, (scores, shift, signs, weights, theta, curvature))


@njit(cache=True, nogil=True, allocates=False)
def settled(loss, scores, intercept, signs, weights, theta):
    """The best intercept, by the safeguarded method."""
    return _number(loss.settled, loss.at, (scores, intercept, signs, weights, theta))


@njit(cache=True, nogil=True, allocates=False)
def bounds(loss, theta, curvature, signs):
    """Sums of `shrunk_bound` over the samples of positive, and of negative signs."""
    return _pair(loss.bounds, loss.at, (theta, curvature, signs))


@njit(cache=True, nogil=True, allocates=False)
def gap_of_shares(loss, scores, intercept, signs, weights, up, down):
    """Fenchel-Young sum of the scores against shares of their own dual point, by sign."""
    return _number(loss.gap_of_shares, loss.at, (scores, intercept, signs, weights, up, down))


@njit(cache=True, nogil=True, allocates=False)
def gap_of_dual(loss, scores, intercept, signs, weights, theta, scale):
    """Fenchel-Young sum of the scores against ``scale`` times a dual point."""
    return _number(loss.gap_of_dual, loss.at, (scores, intercept, signs, weights, theta, scale))


@njit(cache=True, nogil=True, allocates=False)
def majorised(loss, scores, intercept, signs, weights, share, curvature, result):
    """Write curvatures, those that are zero replaced by a ``share`` of the majorant's."""
    arguments = (scores, intercept, signs, weights, share, curvature, result)
    _nothing(loss.majorised, loss.at, arguments)


@njit(cache=True, nogil=True, allocates=False)
def descent_along(loss, scores, moved, intercept, turn, signs, weights):
    """Minus the derivative of the loss along a step, at its end."""
    arguments = (scores, moved, intercept, turn, signs, weights)
    return _number(loss.descent_along, loss.at, arguments)


@njit(cache=True, nogil=True, allocates=False)
def step_length(loss, scores, moved, signs, weights, coef, direction, l1, l2, share, limit):
    """See `proxmargin.compiled.solvers.newton.exact_step`."""
    arguments = (scores, moved, signs, weights, coef, direction, l1, l2, share, limit)
    return _number(loss.step_length, loss.at, arguments)


# ---- the passes, compiled for each loss ---------------------------------------------------------


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _at_scores(at, scores, shift, signs, weights, theta, curvature):
    phi = at[0]
    return phi.evaluated(scores, shift, signs, weights, theta, curvature)


@njit(cache=True, nogil=True, error_model="numpy")
def _settled(at, scores, intercept, signs, weights, theta):
    phi = at[0]
    return intercept + best_shift(phi, scores + intercept, signs, weights, 0.0, 0.0, theta)


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _bounds(at, theta, curvature, signs):
    phi = at[0]
    above, below = 0.0, 0.0
    for i in range(theta.size):
        one = phi.shrunk_bound(abs(theta[i]), curvature[i])
        above += one if signs[i] > 0.0 else 0.0
        below += one if signs[i] < 0.0 else 0.0
    return above, below


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath=ORDER)
def _gap_of_shares(at, scores, intercept, signs, weights, up, down):
    phi = at[0]
    total = 0.0
    for i in range(scores.size):
        share = up if signs[i] > 0.0 else down
        if weights[i] != 0.0 and share != 1.0:
            t = signs[i] * (scores[i] + intercept)
            total += weights[i] * phi.fenchel_young(t, share * phi.descent(t))
    return total


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath=ORDER)
def _gap_of_dual(at, scores, intercept, signs, weights, theta, scale):
    phi = at[0]
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            t = signs[i] * (scores[i] + intercept)
            total += weights[i] * phi.fenchel_young(t, scale * signs[i] * theta[i] / weights[i])
    return total


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _majorised(at, scores, intercept, signs, weights, share, curvature, result):
    phi = at[0]
    for i in range(scores.size):
        bend = curvature[i]
        if bend == 0.0 and weights[i] > 0.0:
            bend = weights[i] * share * phi.majorant(signs[i] * (scores[i] + intercept))
        result[i] = bend


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath=ORDER)
def _descent_along(at, scores, moved, intercept, turn, signs, weights):
    phi = at[0]
    total = 0.0
    for i in range(scores.size):
        speed = moved[i] + turn
        force = phi.descent(signs[i] * (scores[i] + intercept + speed))
        total += weights[i] * signs[i] * speed * force
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _step_length(at, scores, moved, signs, weights, coef, direction, l1, l2, share, limit):
    phi = at[0]
    return exact_step(
        phi, scores, moved, signs, weights, coef, direction, l1, l2, 0.0, 0.0, share, limit
    )


# in the order of the addresses in `Loss`
PASSES: dict[Any, tuple[Any, ...]] = {
    _at_scores: (ARRAY, NUMBER, ARRAY, ARRAY, ARRAY, ARRAY),
    _settled: (ARRAY, NUMBER, ARRAY, ARRAY, ARRAY),
    _bounds: (ARRAY, ARRAY, ARRAY),
    _gap_of_shares: (ARRAY, NUMBER, ARRAY, ARRAY, NUMBER, NUMBER),
    _gap_of_dual: (ARRAY, NUMBER, ARRAY, ARRAY, ARRAY, NUMBER),
    _majorised: (ARRAY, NUMBER, ARRAY, ARRAY, NUMBER, ARRAY, ARRAY),
    _descent_along: (ARRAY, ARRAY, NUMBER, NUMBER, ARRAY, ARRAY),
    _step_length: (ARRAY,) * 8 + (NUMBER, types.int64),
}
