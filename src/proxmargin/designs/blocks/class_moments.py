"""Weights, means and covariances of the classes, by one pass over blocks of rows."""

from __future__ import annotations

from functools import reduce
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from proxmargin.designs.base import Array, Design, subtract_outer
from proxmargin.designs.blocks.base import BlockedDesign
from proxmargin.designs.blocks.tasks import Answer, Arrays
from proxmargin.designs.standardized import StandardizedDesign

__all__ = ["ClassMoments", "class_moments", "indicators", "rows_with", "spread_codes"]

MAX_FEATURES = 2000  # whose covariances are formed
MAX_ENTRIES = 1 << 24  # of the covariances of all classes: 128 MB
VARIANCE_ROUNDING = 1e-15  # variance over dimension and largest one, below which it is rounding

Codes = NDArray[np.intp]


class ClassMoments(NamedTuple):
    """Moments of each class.

    Attributes
    ----------
    weights : (n_classes,)
    means : (n_classes, n_features)
    scatters : (n_classes, n_features, n_features)
        Weighted products of the deviations from the mean of the class: its covariance, times its
        weight.
    seconds : float
        Time of the pass.
    """

    weights: Array
    means: Array
    scatters: Array
    seconds: float = 0.0

    def over(self, centre: Array, scale: Array) -> ClassMoments:
        """The moments of the features ``(x - centre) / scale``."""
        scatters = self.scatters / scale
        scatters /= scale[:, None]
        return self._replace(means=(self.means - centre) / scale, scatters=scatters)

    def together(self, classes: list[int]) -> tuple[float, Array, Array]:
        """Weight, mean and covariance of some of the classes together."""
        parts = [(self.weights[k : k + 1], self.means[[k]], self.scatters[[k]]) for k in classes]
        weights, means, scatters = reduce(merged, parts)
        return float(weights[0]), means[0], scatters[0] / weights[0]


def class_moments(
    design: Design, codes: Codes, shares: Array, n_classes: int
) -> ClassMoments | None:
    """The moments of the classes; one pass, once for a design with these labels and weights.

    The same pass finds the means and variances of all rows together, which the design then knows.

    Returns
    -------
    moments
        None for data that are no blocks of rows, for a class without weight, for more than
        `MAX_FEATURES`, or where the covariances of all classes have more than `MAX_ENTRIES`.
    """
    if isinstance(design, StandardizedDesign):
        found = class_moments(design.base, codes, shares, n_classes)
        return None if found is None else found.over(design.centre, design.scale)
    whole, p = design.whole, design.n_features
    if not isinstance(whole, BlockedDesign) or p > MAX_FEATURES or n_classes * p * p > MAX_ENTRIES:
        return None
    if not np.all(np.bincount(codes, shares, minlength=n_classes) > 0):
        return None
    spread = spread_codes(design, codes), design.spread_out(shares)
    return whole.remembered(_class_moments, *spread, n_classes)


def _class_moments(
    design: BlockedDesign, codes: Codes, shares: Array, n_classes: int
) -> ClassMoments:
    began = perf_counter()
    _, found = design.run(moments_of_classes, (n_classes,), (codes, shares), merged)
    weights, means, scatters = found
    moments = ClassMoments(weights, means, scatters, perf_counter() - began)
    _, mean, covariance = moments.together(list(range(n_classes)))
    design.know_moments(shares, mean, np.diag(covariance).copy())
    return moments


def spread_codes(design: Design, codes: Codes) -> Codes:
    """The classes of all rows behind a view; zero for those without weight."""
    return design.spread_out(codes.astype(np.float64)).astype(np.intp)


# -- in the blocks


def indicators(codes: Codes, shares: Array, n_classes: int) -> Array:
    """The share of each sample in the column of its class, zeros elsewhere."""
    columns = np.zeros((codes.size, n_classes))
    columns[np.arange(codes.size), codes] = shares
    return columns


def moments_of_classes(block: Design, shared: Arrays, cut: Arrays) -> Answer:
    """`ClassMoments` of the rows of the block.

    Sums of the means are compensated: products of deviations from a mean with a relative error e
    are off by ``e^2 mean^2``, and the difference of two means by ``e |mean|``.
    """
    (n_classes,), (codes, shares) = shared, cut
    columns = indicators(codes, shares, n_classes)
    weights = columns.sum(axis=0)
    sums = block.precise_adjoint(columns).values.T
    means = np.divide(sums, weights[:, None], out=np.zeros_like(sums), where=weights[:, None] > 0)
    scatters = np.zeros((n_classes, block.n_features, block.n_features))
    for k in np.flatnonzero(weights):
        scatters[k] = block.gram(columns[:, k], means[k])
    return (), (weights, means, scatters)


def merged(first: Arrays, second: Arrays) -> Arrays:
    """Moments of all rows of each class (Chan, Golub and LeVeque 1983, (2.1))."""
    (one, mean, scatter), (other, there, beyond) = first, second
    total = one + other
    share = np.divide(other, total, out=np.zeros_like(total), where=total > 0)
    apart = there - mean
    scatters = scatter + beyond
    for k in np.flatnonzero((one > 0) & (other > 0)):
        subtract_outer(scatters[k], -one[k] * share[k] * apart[k], apart[k])
    return total, mean + share[:, None] * apart, scatters


# -- rows with given moments


def rows_with(mean: Array, covariance: Array) -> Array:
    """Rows of equal weight with this mean and population covariance, (rank + 1, n_features).

    With ``covariance = L L'`` they are ``mean + sqrt(rank + 1) (L q)'``, for the rows q of an
    orthogonal matrix without its first column, which is constant: the reflection that maps the
    first unit vector to it. L is a Cholesky factor with pivots of the correlations, so that small
    variances keep their digits beside large ones.
    """
    factor = _factor(covariance)
    count = factor.shape[1] + 1
    normal = np.full(count, 1.0 / np.sqrt(count))
    normal[0] += 1.0
    rows = np.zeros((count, mean.size))
    rows[1:] = factor.T
    subtract_outer(rows, (2.0 / float(normal @ normal)) * normal, factor @ normal[1:])
    rows *= np.sqrt(count)
    rows += mean
    return rows


def _factor(covariance: Array) -> Array:
    """L with ``L L' = covariance``, (n_features, rank)."""
    size = len(covariance)
    variances = np.diag(covariance)
    varies = variances > 0
    scale = np.sqrt(np.where(varies, variances, 1.0))
    correlations = np.where(varies & varies[:, None], covariance / scale / scale[:, None], 0.0)
    packed, pivots, rank, _ = lapack.dpstrf(correlations, lower=1, tol=VARIANCE_ROUNDING * size)
    factor = np.zeros((size, rank if varies.any() else 0))
    factor[pivots - 1] = np.tril(packed)[:, : factor.shape[1]]
    return scale[:, None] * factor
