"""A few columns of the data, dense or compressed by columns, behind one set of operations.

Kernels that take ``columns`` take either an array in C order whose lines are the columns, or a
`Compressed`, and are compiled once for each. (Of a matrix in Fortran order one with a single column
is in C order too: kernels would be compiled again for it.)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.cache import is_array, njit, overload


class Compressed(NamedTuple):
    """A matrix of ``n_rows`` rows compressed by columns."""

    n_rows: int
    data: NDArray[np.floating]
    indices: NDArray[np.integer]
    indptr: NDArray[np.integer]


def dot(columns: Any, j: Any, vector: Any) -> Any:
    """Inner product of column j with ``vector``."""


def add(columns: Any, j: Any, factor: Any, vector: Any) -> Any:
    """``vector += factor * column j``."""


def column_square(columns: Any, j: Any) -> Any:
    """Squared norm of column j."""


def height(columns: Any) -> Any:
    """Number of rows."""


def active(columns: Any, roots: Any) -> Any:
    """The columns with row i times ``roots[i]``, in single precision, without rows of root zero.

    A dense result has the other rows only, a compressed one keeps their numbers.
    """


def gram_of(columns: Any, support: Any) -> Any:
    """Inner products of the columns in ``support`` with each other, float64."""


_FAST: Any = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
# Sums over compressed columns keep their order: reordered ones would be vectorised by gathers,
# which are slower. Unsigned positions spare the test for negative ones.
_EXACT: Any = {"nogil": True, "fastmath": {"contract"}}


@overload(dot)
def _dot(columns, j, vector):
    if is_array(columns):
        return lambda columns, j, vector: _dense_dot(columns, j, vector)
    return lambda columns, j, vector: _compressed_dot(columns, j, vector)


@njit(allocates=False, **_FAST)
def _dense_dot(columns, j, vector):
    total = vector.dtype.type(0.0)
    for i in range(vector.size):
        total += columns[j, i] * vector[i]
    return total


@njit(allocates=False, **_EXACT)
def _compressed_dot(columns, j, vector):
    total = vector.dtype.type(0.0)
    for at in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        total += columns.data[at] * vector[np.uint64(columns.indices[at])]
    return total


@overload(add)
def _add(columns, j, factor, vector):
    if is_array(columns):
        return lambda columns, j, factor, vector: _dense_add(columns, j, factor, vector)
    return lambda columns, j, factor, vector: _compressed_add(columns, j, factor, vector)


@njit(allocates=False, **_FAST)
def _dense_add(columns, j, factor, vector):
    scale = vector.dtype.type(factor)
    for i in range(vector.size):
        vector[i] += scale * columns[j, i]


@njit(allocates=False, **_EXACT)
def _compressed_add(columns, j, factor, vector):
    scale = vector.dtype.type(factor)
    for at in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        vector[np.uint64(columns.indices[at])] += scale * columns.data[at]


@overload(column_square, jit_options=_FAST)
def _column_square(columns, j):
    if is_array(columns):

        def dense(columns, j):
            total = columns.dtype.type(0.0)
            for i in range(columns.shape[1]):
                total += columns[j, i] * columns[j, i]
            return total

        return dense

    def compressed(columns, j):
        total = columns.data.dtype.type(0.0)
        for at in range(columns.indptr[j], columns.indptr[j + 1]):
            total += columns.data[at] * columns.data[at]
        return total

    return compressed


@overload(height)
def _height(columns):
    if is_array(columns):
        return lambda columns: columns.shape[1]
    return lambda columns: columns.n_rows


@overload(active, jit_options={"nogil": True})
def _active(columns, roots):
    if is_array(columns):

        def dense(columns, roots):
            live = np.flatnonzero(roots)
            out = np.empty((columns.shape[0], live.size), np.float32)
            for j in range(columns.shape[0]):
                for place in range(live.size):
                    out[j, place] = columns[j, live[place]] * roots[live[place]]
            return out

        return dense

    def compressed(columns, roots):
        indptr = np.zeros(columns.indptr.size, np.int64)
        indices = np.empty(columns.data.size, np.int32)
        data = np.empty(columns.data.size, np.float32)
        count = 0
        for j in range(indptr.size - 1):
            for at in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
                root = roots[np.uint64(columns.indices[at])]
                if root != 0.0:
                    indices[count] = columns.indices[at]
                    data[count] = columns.data[at] * root
                    count += 1
            indptr[j + 1] = count
        return Compressed(columns.n_rows, data[:count], indices[:count], indptr)

    return compressed


@overload(gram_of, jit_options=_FAST)
def _gram_of(columns, support):
    if is_array(columns):

        def dense(columns, support):
            picked = np.empty((support.size, columns.shape[1]), columns.dtype)
            for a in range(support.size):
                for i in range(columns.shape[1]):  # an assignment of slices compiles for seconds
                    picked[a, i] = columns[support[a], i]
            return np.dot(picked, picked.T).astype(np.float64)

        return dense

    def compressed(columns, support):
        out, sums = np.zeros((support.size, support.size)), np.zeros(support.size)
        ones = np.ones(max(columns.n_rows, columns.indptr.size))
        add_outer(columns, support, ones, ones, out, sums)
        for a in range(support.size):
            for b in range(a):
                out[b, a] = out[a, b]
        return out

    return compressed


@njit(nogil=True)
def add_outer(columns, index, weights, scale, out, sums):
    """Add ``sum_i weights_i x_i x_i'`` to the lower triangle of ``out``, ``sum_i weights_i x_i`` to
    ``sums``, for compressed columns ``x_j scale_j`` with the numbers in ``index``: by rows first,
    then the outer product of each row with itself."""
    starts = np.zeros(columns.n_rows + 1, np.int64)
    for x in range(index.size):
        j = index[x]
        for at in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
            if weights[columns.indices[at]] != 0.0:
                starts[columns.indices[at] + 1] += 1
    for i in range(columns.n_rows):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    column = np.empty(starts[-1], np.int32)
    value = np.empty(starts[-1])
    for x in range(index.size):
        j = index[x]
        for at in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
            row = columns.indices[at]
            if weights[row] != 0.0:
                column[place[row]] = x
                value[place[row]] = columns.data[at] * scale[j]
                place[row] += 1
    for i in range(columns.n_rows):
        last = np.uint64(starts[i + 1])
        for first in range(np.uint64(starts[i]), last):
            weighted = weights[i] * value[first]
            sums[column[first]] += weighted
            line = out[column[first]]
            for second in range(np.uint64(starts[i]), first + np.uint64(1)):
                line[np.uint64(column[second])] += weighted * value[second]


@njit(nogil=True)
def pull(columns, vector, out):
    """Inner products of all columns with ``vector``, into ``out``."""
    for j in range(out.size):
        out[j] = dot(columns, j, vector)


@njit(nogil=True)
def forward(columns, coef, out):
    """The sum of the columns with coefficients ``coef``, into ``out``."""
    out[:] = 0.0
    for j in range(coef.size):
        if coef[j] != 0.0:
            add(columns, j, coef[j], out)


@njit(nogil=True)
def scale_lines(lines, weights, centres, constant, mean, unit):
    """Give each line unit weighted mean square, in place; less its mean first, if ``centres``.

    Lines whose variance is at most ``constant`` times their squared mean become zero.

    Parameters
    ----------
    lines : (k, n_samples)
    weights : (n_samples,) >= 0, summing to one
    mean : (k,)
        Means that were subtracted before; overwritten if ``centres``.
    unit : (k,)
        Output: the divisors of the lines.
    """
    for j in range(lines.shape[0]):
        line = lines[j]
        if centres:
            total = 0.0
            for i in range(line.size):
                total += weights[i] * line[i]
            mean[j] = total
            for i in range(line.size):
                line[i] -= total
        square = 0.0
        for i in range(line.size):
            square += weights[i] * line[i] * line[i]
        if square <= constant * mean[j] * mean[j]:
            line[:] = 0.0
            square = 0.0
        unit[j] = math.sqrt(square) if square > 0.0 else 1.0
        for i in range(line.size):
            line[i] /= unit[j]
