"""Rounding errors of float64: the tolerances of all rooms, and proven bounds.

With the unit roundoff u, a sum of n products in any order, with or without fused multiply-adds,
has an error of at most ``gamma_n sum |x||y|``, ``gamma_n = n u / (1 - n u)`` (Higham 2002, section
3.1). Compensated sums (`proxmargin.compiled.products.compensated`) have an error of at most
``u |x'y| + gamma_n^2 sum |x||y|``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNIT = 2.0**-53  # unit roundoff of float64: half an ulp of 1
EPS = 2.0**-52  # an ulp of 1
TINY = 2.0**-1022  # smallest normal number: in place of a denominator or a scale of zero
SUM_ROUNDING = 1e-15  # of a pairwise sum, relative to the sum of absolute terms: 5 ulp
OBJECTIVE_ROUNDING = 1e-14  # relative change of an objective that rounding hides
RISE_ROUNDING = 1e-12  # the same of a loss, a plain sum over many samples, after a step
SLOPE_ROUNDING = 1e-14  # slope that counts as zero, relative to the sum of absolute terms
DOMAIN_ROUNDING = 1e-12  # relative distance from a domain that counts as rounding
TIE_ROUNDING = 1e-14  # relative distance of two values that count as equal
NORM_ROUNDING = 1e-12  # relative; norms are rounded up by it
SCORE_ROUNDING = 512 * UNIT  # of scores without a bound, over the largest
FURTHER_TERMS = 16  # roundings of an inner product besides a sum's terms: scale, centre, intercept
CONSTANT_VARIANCE = 1e-24  # over the squared mean, below which a feature counts as constant
NEGLIGIBLE = 1e-300  # counts as nothing, and its inverse is a number
# Newton's method
STALLED_SLOPE = 1e-12  # relative slope below which a step that does not halve it is the last one
DIAGONAL_SHIFT = 1e-12  # relative increase of the diagonal against singular systems
MIN_DAMPING = 1e-10  # the same in units of the largest diagonal entry
# line searches and searches for a root
ROOT_STEPS = 200  # most steps of a safe one: it doubles to a bracket, and bisects to neighbours
HALVINGS = 40  # of a step that does not descend
ARMIJO_FRACTION = 1e-4  # share of the decrease that the slope promises, with which a step ends


class Enclosed(NamedTuple):
    """Computed values with bounds on their errors."""

    values: Array  # (n, n_outputs)
    error: Array  # broadcastable to that shape; ``|exact - values| <= error``
    # broadcastable to that shape; ``sum |x||y|`` of the products behind each value, or an upper
    # bound: the error of the value for relative perturbations of the factors
    sizes: Array

    def plus(self, shift: Array) -> Enclosed:
        """The values plus ``shift``, which is exact."""
        values = self.values + shift
        return Enclosed(
            values, self.error + 2.0 * UNIT * np.abs(values), self.sizes + np.abs(shift)
        )

    def times(self, factor: float) -> Enclosed:
        """The values times ``factor >= 0``, up to rounding."""
        return Enclosed(factor * self.values, factor * self.error, factor * self.sizes)

    def over(self, scale: Array) -> Enclosed:
        """The values divided by ``scale``, which is exact and positive."""
        values = self.values / scale
        return Enclosed(
            values, self.error / scale + 2.0 * UNIT * np.abs(values), self.sizes / scale
        )


class Lost(NamedTuple):
    """A bound on the rounding errors of a kernel matrix.

    ``|computed_ij - exact_ij| <= relative roots_i roots_j + own_i + own_j``.
    """

    relative: float
    # (n_samples,)
    roots: Array
    own: Array

    def of(self, weights: Array) -> Array:
        """A bound on ``sum_j |computed_ij - exact_ij| |weights_j|``, (n_samples,)."""
        sizes = np.abs(weights)
        shared: Array = self.relative * float(self.roots @ sizes) * self.roots
        return shared + float(sizes.sum()) * self.own + float(self.own @ sizes)


def gamma(terms: int) -> float:
    """``n u / (1 - n u)``, for sums of fewer than 2^52 terms."""
    return terms * UNIT / (1.0 - terms * UNIT)


def levels(values: Array, error: Array) -> NDArray[np.intp]:
    """The level of each value along the last axis, from 0 for the lowest.

    Two values share a level if they differ by no more than the larger of their errors, or are
    joined by a chain of such values.

    Parameters
    ----------
    values : (..., n)
    error : broadcasts to (..., n)
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ascending = np.take_along_axis(values, order, axis=-1)
    spread = np.take_along_axis(np.broadcast_to(error, values.shape), order, axis=-1)
    # two neighbours are apart if no value below reaches the upper, and none above the lower
    reached = np.maximum.accumulate(ascending + spread, axis=-1)[..., :-1]
    above = np.minimum.accumulate((ascending - spread)[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    apart = (reached < ascending[..., 1:]) & (above > ascending[..., :-1])
    found = np.zeros(values.shape, dtype=np.intp)
    np.put_along_axis(found, order[..., 1:], np.cumsum(apart, axis=-1), axis=-1)
    return found


def score_levels(scores: Array) -> NDArray[np.intp]:
    """`levels` of scores of which no error bound is known, for statistics of their order.

    The scores of identical samples differ by rounding, which must not decide which is larger.
    """
    return levels(scores, SCORE_ROUNDING * np.abs(scores).max(axis=-1, initial=0.0, keepdims=True))


def weighted_sum(sizes: Array, error: Array) -> float:
    """``sum sizes * error``; the error is broadcast without a copy. With one error for all samples,
    (n_outputs,), the sizes may be summed over the samples."""
    if error.ndim == 1:
        return float((sizes if sizes.ndim == 1 else sizes.sum(axis=0)) @ error)
    total: float = np.einsum("ij,ij->", sizes, np.broadcast_to(error, sizes.shape))
    return float(total)


def compensated_error(values: Array, sizes: Array, terms: int) -> Array:
    """The error bound of compensated sums of ``terms`` products, itself rounded up.

    The last term bounds the effect of underflow.
    """
    tiny = terms * TINY * (sizes > 0)
    error: Array = 2.0 * UNIT * np.abs(values) + 2.0 * gamma(terms) ** 2 * sizes + tiny
    return error
