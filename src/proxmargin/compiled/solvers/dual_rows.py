"""Rows of dense or compressed data in random order: products, updates, squared norms."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.prefetch import prefetch

__all__ = ["AHEAD", "add", "asked_for", "curvatures", "product", "shuffled"]

CANCELLED = 1e-12  # relative to its terms, the least squared norm of a centred sample
AHEAD = 4  # samples between one that is asked for and the one in work
LINE = 8  # entries of eight bytes in a cache line


@njit(cache=True, nogil=True)
def shuffled(active, n_active, seed):
    """The first entries of ``active`` in random order, in place, by xorshift64 (Marsaglia 2003).

    Returns
    -------
    seed : uint64
    """
    for k in range(n_active):
        seed ^= seed << np.uint64(13)
        seed ^= seed >> np.uint64(7)
        seed ^= seed << np.uint64(17)
        other = k + np.int64((seed >> np.uint64(11)) % np.uint64(n_active - k))
        i = active[other]
        active[other] = active[k]
        active[k] = i
    return seed


@njit(cache=True, nogil=True)
def asked_for(data, indices, indptr, i, dual):
    """Ask for the row of a sample and its dual point, ahead of their use.

    Rows in random order wait for memory otherwise: short ones longer than the work on them takes.
    """
    prefetch(dual, i)  # type: ignore[call-arg]
    for entry in range(indptr[i], indptr[i + 1], LINE):
        prefetch(data, entry)
        if indices is not None:
            prefetch(indices, entry)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def product(data, indices, start, stop, coef):
    """The product of one row with ``coef``; ``indices`` is None for dense rows."""
    total = 0.0
    if indices is None:
        for j in range(coef.size):
            total += data[start + j] * coef[j]
    else:
        for entry in range(np.uint64(start), np.uint64(stop)):
            total += data[entry] * coef[np.uint64(indices[entry])]
    return total


@njit(cache=True, nogil=True, fastmath={"contract"})
def add(data, indices, start, stop, factor, metric, coef):
    """``coef += factor metric * row``; a metric of one entry is that of all features."""
    if indices is None:
        if metric.size == 1:
            factor *= metric[0]
            for j in range(coef.size):
                coef[j] += factor * data[start + j]
        else:
            for j in range(coef.size):
                coef[j] += factor * metric[j] * data[start + j]
    elif metric.size == 1:
        factor *= metric[0]
        for entry in range(np.uint64(start), np.uint64(stop)):
            coef[np.uint64(indices[entry])] += factor * data[entry]
    else:
        for entry in range(np.uint64(start), np.uint64(stop)):
            feature = np.uint64(indices[entry])
            coef[feature] += factor * metric[feature] * data[entry]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def curvatures(data, indices, indptr, metric, pull, square, out):
    """``out_i = z_i'z_i / l2``, the curvature along each dual point; see `descend`."""
    for i in range(out.size):
        total = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[entry])
            if metric.size == 1:
                total += metric[0] * value * value
            elif indices is None:
                total += metric[entry - indptr[i]] * value * value
            else:
                total += metric[indices[entry]] * value * value
        out[i] = max(total - 2.0 * pull[i] + square, CANCELLED * (total + square))
