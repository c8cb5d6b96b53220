"""Bounds on inner products of all features with a dual point, without reading them.

The span certificate. Dual points of neighbouring strengths (folds, starts) lie close to a space of
few dimensions. For orthonormal references ``Q`` (r, n) with known ``G = Q X`` (r, p), and any dual
point theta with ``c = Q theta``, the inner product of feature j with theta is

    x_j'theta = (c'G)_j + x_j'(theta - Q'c),

and by Cauchy-Schwarz the last term is at most ``|x_j| |theta - Q'c|``. A feature for which

    |(c'G)_j| + |x_j| (|theta - Q'c| + rounding)  <=  l1_j

is therefore proven to satisfy ``|x_j'theta| <= l1_j``: with coefficient zero it adds nothing to the
duality gap. Rounding: the row ``G_c`` differs from the exact ``X'Q_c`` by at most
``slack_c |x_j|`` (a product of n terms: ``gamma_n``, as ``|Q_c| = 1`` up to rounding; it adds up
where references are combined), the sum over c and the residual are bounded by `gamma` times
``sum |c|``. Q need not be exactly orthogonal: the identity above holds for any c.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.vectors import add, add_four, dot

__all__ = ["DualSubspace", "bounded", "compress", "estimate", "put"]

UNIT = 2.0**-53
FURTHER_TERMS = 16  # rounding errors besides those of a sum's terms: scales, centres, norms
DEPENDENT = 1e-3  # norm of a reference less its projection on others, below which it is dropped


class DualSubspace(NamedTuple):
    """References Q and their products with all features, ``G = Q X``.

    Attributes
    ----------
    points : (capacity, n_samples)
    products : (capacity, n_features)
    slack : (capacity,)
        Relative error of each row of the products, in norms of features.
    shares : (capacity,)
        Coordinates of the last dual point.
    rest : (n_samples,)
        The dual point less its projection on the references.
    """

    points: Any
    products: Any
    slack: Any
    shares: Any
    rest: Any


@njit(cache=True, nogil=True, allocates=False)
def rounding(terms):
    """``gamma_m`` for ``m = 2 n + FURTHER_TERMS``.

    One n is for the inner product itself. The other one is for the shift between the stored columns
    and the centred features: it multiplies the sum of a dual point, which is zero up to gamma_n.
    """
    operations = 2.0 * terms + FURTHER_TERMS
    return operations * UNIT / (1.0 - operations * UNIT)


@njit(cache=True, nogil=True, allocates=False)
def bounded(span, count, theta, rounds):
    """Decompose a dual point; return the norm of the rest, and a bound of it with all rounding.

    Parameters
    ----------
    rounds : int
        Rounds of Gram-Schmidt: 1 for a bound, which holds for any shares; 2 for a rest that becomes
        a reference, orthogonal to the others up to rounding.
    """
    n, size = theta.size, math.sqrt(dot(theta, theta))
    for i in range(n):
        span.rest[i] = theta[i]
    span.shares[:count] = 0.0
    for _ in range(rounds):
        for c in range(count):
            share = dot(span.points[c], span.rest)
            span.shares[c] += share
            add(-share, span.points[c], span.rest)
    left = math.sqrt(dot(span.rest, span.rest))
    total, loose = 0.0, 0.0
    for c in range(count):
        total += abs(span.shares[c])
        loose += abs(span.shares[c]) * span.slack[c]
    slight = rounding(2 * count) * (size + 2.0 * total)
    return left, left * (1.0 + rounding(n)) + loose + slight


@njit(cache=True, nogil=True, allocates=False)
def estimate(span, count, out):
    """Inner products of all features with the part of the dual point inside the span."""
    out[:] = 0.0
    fours = count - count % 4
    for c in range(0, fours, 4):
        add_four(span.shares[c : c + 4], span.products[c : c + 4], out)
    for c in range(fours, count):
        add(span.shares[c], span.products[c], out)


@njit(cache=True, nogil=True, allocates=False)
def put(span, place, point, size):
    """Store ``point / size`` as a reference; the caller computes its products."""
    for i in range(point.size):
        span.points[place, i] = point[i] / size
    span.slack[place] = rounding(point.size)


@njit(cache=True, nogil=True)
def compress(span, count):
    """Reduce the span to the projection of the last dual point and the newer half of references.

    These are combinations of references, so that no product is needed. Returns their number.
    """
    size = math.sqrt(dot(span.shares[:count], span.shares[:count]))
    half = count // 2
    points, products = (
        np.zeros((count, span.points.shape[1])),
        np.zeros((count, span.products.shape[1])),
    )
    slack = np.zeros(count)
    total = 0.0
    for c in range(count):
        share = span.shares[c] / size
        add(share, span.points[c], points[0])
        add(share, span.products[c], products[0])
        slack[0] += abs(share) * span.slack[c]
        total += abs(share)
    slack[0] += 2.0 * rounding(count) * total
    kept = 1
    for c in range(count - half, count):
        point, product = span.points[c].copy(), span.products[c].copy()
        loose, total = span.slack[c], 1.0
        for _ in range(2):
            for e in range(kept):
                share = dot(points[e], point)
                add(-share, points[e], point)
                add(-share, products[e], product)
                loose += abs(share) * slack[e]
                total += abs(share)
        length = math.sqrt(dot(point, point))
        if length > DEPENDENT:
            _put(point, length, points[kept])
            _put(product, length, products[kept])
            slack[kept] = (loose + 2.0 * rounding(2 * kept) * total) / length
            kept += 1
    for c in range(kept):
        _put(points[c], 1.0, span.points[c])
        _put(products[c], 1.0, span.products[c])
        span.slack[c] = slack[c]
    return kept


@njit(cache=True, nogil=True, allocates=False)
def _put(vector, length, out):
    """Write ``vector / length`` into ``out``; a loop, as slice assignments compile for seconds."""
    for i in range(vector.size):
        out[i] = vector[i] / length
