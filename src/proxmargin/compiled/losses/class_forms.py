"""Smooth losses of all classes, class by class, with their curvature in pairs of classes.

A form is a named tuple of the parameters of a loss. Arrays are (n_classes, n_samples), so that the
scores of a class are contiguous. The gradient of a sample sums to zero over the classes, as only
differences of its scores matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit, overload
from proxmargin.compiled.losses.multinomial import softmax
from proxmargin.compiled.rounding import (
    ARMIJO_FRACTION,
    DIAGONAL_SHIFT,
    HALVINGS,
    NEGLIGIBLE,
    RISE_ROUNDING,
    ROOT_STEPS,
    STALLED_SLOPE,
    SUM_ROUNDING,
)

# step of an intercept where the loss has hardly any curvature
LONGEST = 10.0  # at first
LONGER = 4.0  # times the step before, later


class Softmax(NamedTuple):
    """``log sum_k exp(z_k + margin [k != y]) - z_y``."""

    margin: float


class PairwiseSquares(NamedTuple):
    """``sum_{k != y} [margin + z_k - z_y]_+^2``."""

    margin: float


def evaluated(form: Any, scores: Any, codes: Any, shares: Any, rates: Any, dual: Any) -> Any:
    """The weighted loss; writes its gradient into ``dual``, what `curvatures` needs into ``rates``.

    Parameters
    ----------
    scores, rates, dual : (n_classes, n_samples)
    codes : (n_samples,) integers
    shares : (n_samples,)
    """


def curvatures(
    form: Any, rates: Any, dual: Any, codes: Any, shares: Any, k: Any, other: Any, out: Any
) -> Any:
    """Write the second derivative of every sample in the scores of two classes into ``out``."""


@overload(evaluated)
def _evaluated(form, scores, codes, shares, rates, dual):
    if form.instance_class is Softmax:
        return lambda form, scores, codes, shares, rates, dual: _softmax(
            form.margin, scores, codes, shares, rates, dual
        )
    return lambda form, scores, codes, shares, rates, dual: _pairwise(
        form.margin, scores, codes, shares, rates, dual
    )


@overload(curvatures)
def _curvatures(form, rates, dual, codes, shares, k, other, out):
    if form.instance_class is Softmax:
        return lambda form, rates, dual, codes, shares, k, other, out: _softmax_curvatures(
            rates, dual, codes, shares, k, other, out
        )
    return lambda form, rates, dual, codes, shares, k, other, out: _pairwise_curvatures(
        rates, codes, shares, k, other, out
    )


@njit(nogil=True, allocates=False)
def _softmax(margin, scores, codes, shares, rates, dual):
    """Rates are the probabilities of the classes."""
    value = 0.0
    for i in range(scores.shape[1]):
        own, share = codes[i], shares[i]
        loss = softmax(scores[:, i], own, margin, rates[:, i])
        others = 0.0
        for k in range(scores.shape[0]):
            dual[k, i] = share * rates[k, i]
            others += rates[k, i] if k != own else 0.0
        dual[own, i] = -share * others
        value += share * loss if share > 0.0 else 0.0
    return value


@njit(nogil=True, allocates=False)
def _softmax_curvatures(rates, dual, codes, shares, k, other, out):
    """``share p_k ([k = other] - p_other)``; where p is close to one, without cancellation."""
    for i in range(out.size):
        if k != other:
            out[i] = -shares[i] * rates[k, i] * rates[other, i]
        elif codes[i] == k:
            out[i] = -rates[k, i] * dual[k, i]
        else:
            out[i] = shares[i] * rates[k, i] * (1.0 - rates[k, i])


@njit(nogil=True, allocates=False)
def _pairwise(margin, scores, codes, shares, rates, dual):
    """Rates are one for classes with a violated margin, and their number for the own class."""
    value = 0.0
    for i in range(scores.shape[1]):
        own, share = codes[i], shares[i]
        row, total, count = 0.0, 0.0, 0
        for k in range(scores.shape[0]):
            excess = margin + scores[k, i] - scores[own, i]
            if k == own or excess <= 0.0:
                rates[k, i] = dual[k, i] = 0.0
                continue
            row += excess * excess
            rates[k, i] = 1.0
            dual[k, i] = 2.0 * share * excess
            total += dual[k, i]
            count += 1
        rates[own, i] = count
        dual[own, i] = -total
        value += share * row
    return value


@njit(nogil=True, allocates=False)
def _pairwise_curvatures(rates, codes, shares, k, other, out):
    """``2 share`` times ``sum (e_k - e_y)(e_k - e_y)'`` over the classes with violated margins."""
    for i in range(out.size):
        own = codes[i]
        if k == other:
            out[i] = 2.0 * shares[i] * rates[k, i]
        elif own == k:
            out[i] = -2.0 * shares[i] * rates[other, i]
        elif own == other:
            out[i] = -2.0 * shares[i] * rates[k, i]
        else:
            out[i] = 0.0


@njit(nogil=True)
def value_and_gradient(form, scores, codes, shares, gradient):
    """The weighted loss of scores (n_samples, n_classes); writes its gradient of that shape."""
    rates = np.empty(scores.shape)
    return evaluated(form, scores.T, codes, shares, rates.T, gradient.T)


@njit(nogil=True)
def _shift_hessian(form, rates, dual, codes, shares, size):
    """The Hessian of the loss in shifts of the scores of the first ``size`` classes."""
    hessian, curvature = np.zeros((size, size)), np.empty(rates.shape[1])
    for k in range(size):
        for other in range(k + 1):
            curvatures(form, rates, dual, codes, shares, k, other, curvature)
            hessian[k, other] = hessian[other, k] = curvature.sum()
    return hessian


@njit(nogil=True)
def slope_and_curvature(form, scores, codes, shares):
    """Gradient and Hessian of the loss in one shift a class."""
    rates, dual, slope = np.empty(scores.shape), np.empty(scores.shape), np.empty(scores.shape[0])
    evaluated(form, scores, codes, shares, rates, dual)
    _sums(dual, slope)
    return slope, _shift_hessian(form, rates, dual, codes, shares, slope.size)


@njit(nogil=True)
def intercept_system(form, rates, dual, codes, shares):
    """The Hessian of the loss in the intercepts of all classes but the last, which stays fixed."""
    system = _shift_hessian(form, rates, dual, codes, shares, rates.shape[0] - 1)
    largest = 0.0
    for k in range(len(system)):
        largest = max(largest, system[k, k])
    for k in range(len(system)):
        system[k, k] += DIAGONAL_SHIFT * largest + NEGLIGIBLE
    return system


@njit(nogil=True)
def best_shift(form, scores, codes, shares, intercept, rates, dual):
    """Move ``scores`` and ``intercept``, in place, to the best intercept.

    Returns
    -------
    value : float
        The loss there.
    slope : float
        The largest derivative in an intercept that is left.
    """
    classes = scores.shape[0]
    value = evaluated(form, scores, codes, shares, rates, dual)
    sums, trial, longest, last = np.empty(classes), np.empty(scores.shape), LONGEST, np.inf
    for _ in range(ROOT_STEPS):
        worst = _sums(dual, sums)
        if worst <= SUM_ROUNDING or (worst <= STALLED_SLOPE and worst > 0.5 * last):
            return value, worst
        last = worst
        system = intercept_system(form, rates, dual, codes, shares)
        step, slope, furthest = np.linalg.solve(system, -sums[: classes - 1]), 0.0, 0.0
        for k in range(classes - 1):
            slope += sums[k] * step[k]
            furthest = max(furthest, abs(step[k]))
        size, reached = (longest / furthest if furthest > longest else 1.0), np.inf
        for halving in range(HALVINGS):
            size *= 0.5 if halving > 0 else 1.0
            for k in range(classes):
                move = size * step[k] if k < classes - 1 else 0.0
                for i in range(scores.shape[1]):
                    trial[k, i] = scores[k, i] + move
            reached = evaluated(form, trial, codes, shares, rates, dual)
            if reached <= value + ARMIJO_FRACTION * size * slope + RISE_ROUNDING * value:
                break
        value, longest = reached, max(LONGEST, LONGER * size * furthest)
        for k in range(classes):
            if k < classes - 1:
                intercept[k] += size * step[k]
            for i in range(scores.shape[1]):
                scores[k, i] = trial[k, i]
    return value, _sums(dual, sums)


@njit(nogil=True, allocates=False)
def _sums(dual, out):
    """Sums over the samples into ``out``; the largest of them."""
    worst = 0.0
    for k in range(dual.shape[0]):
        total = 0.0
        for i in range(dual.shape[1]):
            total += dual[k, i]
        out[k] = total
        worst = max(worst, abs(total))
    return worst
