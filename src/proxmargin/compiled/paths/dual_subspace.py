"""Bounds on inner products of all features with a dual point, without reading them.

Dual points of neighbouring strengths (folds, starts) lie close to a space of few dimensions. For an
orthonormal basis ``Q`` (r, n) with known ``G = Q X`` (r, p), and any dual point theta with
``c = Q theta``, the inner product of feature j with theta is

    x_j'theta = (c'G)_j + x_j'(theta - Q'c),

and by Cauchy-Schwarz the last term is at most ``|x_j| |theta - Q'c|``. A feature for which

    |(c'G)_j| + |x_j| (|theta - Q'c| + rounding)  <=  l1_j

is therefore proven to satisfy ``|x_j'theta| <= l1_j``: with coefficient zero it adds nothing to the
duality gap. Rounding: the row ``G_c`` differs from the exact ``X'Q_c`` by at most
``error_c |x_j|`` (a product of n terms: ``gamma_n``, as ``|Q_c| = 1`` up to rounding; it adds up
where basis vectors are combined), the sum over c and the residual are bounded by `gamma` times
``sum |c|``. Q need not be exactly orthogonal: the identity above holds for any c.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products.vectors import add, add_four, dot
from proxmargin.compiled.rounding import FURTHER_TERMS, UNIT

DEPENDENT = 1e-3  # norm of a basis vector less its projection on others, below which it is dropped


class DualSubspace(NamedTuple):
    """A basis Q and its products with all features, ``G = Q X``."""

    basis: Any  # (capacity, n_samples)
    products: Any  # (capacity, n_features)
    errors: Any  # (capacity,); relative error of each row of the products, in norms of features
    coordinates: Any  # (capacity,); of the last dual point
    residual: Any  # (n_samples,); the dual point less its projection on the subspace
    scalars: Any  # record of ``SUBSPACE``


SUBSPACE = {
    "count": "i8",  # of basis vectors
    "checked": "i8",  # inner products of single features since the last one was added
}


@njit(nogil=True, allocates=False)
def rounding(terms):
    """``gamma_m`` for ``m = 2 n + FURTHER_TERMS``.

    One n is for the inner product itself. The other one is for the shift between the stored columns
    and the centred features: it multiplies the sum of a dual point, which is zero up to gamma_n.
    """
    operations = 2.0 * terms + FURTHER_TERMS
    return operations * UNIT / (1.0 - operations * UNIT)


@njit(nogil=True, allocates=False)
def decompose(subspace, dual, rounds):
    """Decompose a dual point; return the norm of its residual, and a bound of it with all rounding.

    Parameters
    ----------
    rounds : int
        Rounds of Gram-Schmidt: 1 for a bound, which holds for any coordinates; 2 for a residual
        that becomes a basis vector, orthogonal to the others up to rounding.
    """
    coordinates, residual, count = subspace.coordinates, subspace.residual, subspace.scalars.count
    n, size = dual.size, math.sqrt(dot(dual, dual))
    for i in range(n):
        residual[i] = dual[i]
    coordinates[:count] = 0.0
    for _ in range(rounds):
        for c in range(count):
            coordinate = dot(subspace.basis[c], residual)
            coordinates[c] += coordinate
            add(-coordinate, subspace.basis[c], residual)
    left = math.sqrt(dot(residual, residual))
    total, error = 0.0, 0.0
    for c in range(count):
        total += abs(coordinates[c])
        error += abs(coordinates[c]) * subspace.errors[c]
    error += rounding(2 * count) * (size + 2.0 * total)
    return left, left * (1.0 + rounding(n)) + error


@njit(nogil=True, allocates=False)
def estimate_products(subspace, out):
    """Inner products of all features with the part of the dual point inside the subspace."""
    out[:] = 0.0
    count = subspace.scalars.count
    coordinates, products = subspace.coordinates, subspace.products
    fours = count - count % 4
    for c in range(0, fours, 4):
        add_four(coordinates[c : c + 4], products[c : c + 4], out)
    for c in range(fours, count):
        add(coordinates[c], products[c], out)


@njit(nogil=True, allocates=False)
def append(subspace, point, norm):
    """Append ``point / norm`` to the basis; the caller computes its products."""
    c = subspace.scalars.count
    _scale(point, norm, subspace.basis[c])
    subspace.errors[c] = rounding(point.size)
    subspace.scalars.count, subspace.scalars.checked = c + 1, 0


@njit(nogil=True)
def compress(subspace):
    """Reduce the basis to the projection of the last dual point and its newer half.

    These are combinations of basis vectors, so that no product is needed.
    """
    count = subspace.scalars.count
    coordinates = subspace.coordinates[:count]
    basis = np.zeros((count, subspace.basis.shape[1]))
    products, errors = np.zeros((count, subspace.products.shape[1])), np.zeros(count)
    size, total, kept = math.sqrt(dot(coordinates, coordinates)), 0.0, 1
    for c in range(count):
        share = coordinates[c] / size
        add(share, subspace.basis[c], basis[0])
        add(share, subspace.products[c], products[0])
        errors[0] += abs(share) * subspace.errors[c]
        total += abs(share)
    errors[0] += 2.0 * rounding(count) * total
    for c in range(count - count // 2, count):
        vector, product = subspace.basis[c].copy(), subspace.products[c].copy()
        error, total = subspace.errors[c], 1.0
        for _ in range(2):
            for e in range(kept):
                share = dot(basis[e], vector)
                add(-share, basis[e], vector)
                add(-share, products[e], product)
                error += abs(share) * errors[e]
                total += abs(share)
        length = math.sqrt(dot(vector, vector))
        if length > DEPENDENT:
            _scale(vector, length, basis[kept])
            _scale(product, length, products[kept])
            errors[kept] = (error + 2.0 * rounding(2 * kept) * total) / length
            kept += 1
    for c in range(kept):
        _scale(basis[c], 1.0, subspace.basis[c])
        _scale(products[c], 1.0, subspace.products[c])
        subspace.errors[c] = errors[c]
    subspace.scalars.count = kept


@njit(nogil=True, allocates=False)
def _scale(vector, length, out):
    """Write ``vector / length`` into ``out``; a loop, as slice assignments compile for seconds."""
    for i in range(vector.size):
        out[i] = vector[i] / length
