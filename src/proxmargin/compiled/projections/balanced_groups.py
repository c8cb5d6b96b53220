"""Norms of groups within classes whose coefficients sum to zero over the classes, group by group.

For one group V is the block (d, K) of its d features in the K classes. With a multiplier m_j of
each row sum the problem separates over classes: columns ``u_k = prox(v_k - t m)``, and the m for
which ``sum_k u_k = 0`` is a minimiser of the convex, once differentiable

    h(m) = sum_k min {|v_k / t - m - p|_t^2 / 2 : |p|_* <= radius} = sum_jk u_jk^2 / (2 t_j),

with the gradient ``-sum_k u_k``. Its generalised Hessian is ``diag(D) + B B'`` with one column of
B a class: Newton steps solve systems of the size of the classes, whatever the length of a group.
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.projections.groups import _cap, _length
from proxmargin.compiled.projections.simplex import solve_definite
from proxmargin.compiled.rounding import (
    ARMIJO_FRACTION,
    EPS,
    HALVINGS,
    MIN_DAMPING,
    RISE_ROUNDING,
    ROOT_STEPS,
)

SHORT_STEP = 0.1  # length of a Newton step on h below which no progress means rounding
# Newton's method on the radius of a group
ROUNDING_ULPS = 4.0  # agreement of the bounds of the radius, in ulps
SUM_ROUNDING = 1e-13  # row sums that count as zero, for points of norm one
SMALL_GROUP = 1e-6  # norm over that of the data, below which the dual norm decides if it is zero


@njit(nogil=True)
def _split(block, steps, at, radius, sup, members, x, u, sizes):
    """Write ``x = v - t m`` and ``u``, its prox class by class; the norm of each class of u.

    Returns
    -------
    float
        h(m), which is zero where all classes are.
    """
    height = 0.0
    for k in range(block.shape[1]):
        for j in members:
            x[j, k] = block[j, k] - steps[j, k] * at[j]
        if sup:
            size = _cap(x, steps, members, k, radius)
            for j in members:
                u[j, k] = min(max(x[j, k], -size), size)
        else:
            size = max(_length(x, steps, members, k, radius), 0.0)
            for j in members:
                u[j, k] = x[j, k] * (size / (size + steps[j, k] * radius)) if size > 0.0 else 0.0
        sizes[k] = size
        if size > 0.0:
            for j in members:
                height += u[j, k] ** 2 / (2.0 * steps[j, k])
    return height


@njit(nogil=True)
def _curvature(steps, radius, sup, x, u, sizes, diagonal, columns):
    """Write D and B, so that ``diag(D) + B B'`` is minus the derivative of ``sum_k u_k`` in m."""
    diagonal[:] = 0.0
    columns[:] = 0.0
    d, classes = x.shape
    for k in range(classes):
        size, total = sizes[k], 0.0
        if size == 0.0:
            continue
        for j in range(d):
            step = steps[j, k]
            if not sup:
                curvature = step * size / (size + step * radius)
                diagonal[j] += curvature
                columns[j, k] = curvature * u[j, k] / size
                total += (u[j, k] / size) ** 2 * size / (size + step * radius)
            elif abs(x[j, k]) > size:
                columns[j, k] = 1.0 if x[j, k] > 0.0 else -1.0
                total += 1.0 / step
            else:
                diagonal[j] += step
        scale = math.sqrt(1.0 / total if sup else radius / (size * total)) if total > 0.0 else 0.0
        for j in range(d):
            columns[j, k] *= scale


@njit(nogil=True)
def _newton(sums, diagonal, columns, flat):
    """``(diag(D) + B B')^-1 sums`` by a system of the size of the classes.

    Rows without curvature, zeros of D, get that of ``flat``.
    """
    d, classes = columns.shape
    for j in range(d):
        if diagonal[j] == 0.0:
            diagonal[j] = flat
    system, y = np.eye(classes), np.zeros(classes)
    for k in range(classes):
        for j in range(d):
            y[k] += columns[j, k] * sums[j] / diagonal[j]
        for i in range(k + 1):
            for j in range(d):
                system[k, i] += columns[j, k] * columns[j, i] / diagonal[j]
    solve_definite(system, y)
    move = np.empty(d)
    for j in range(d):
        rest = sums[j]
        for k in range(classes):
            rest -= columns[j, k] * y[k]
        move[j] = rest / diagonal[j]
    return move


@njit(nogil=True)
def _balance(block, steps, at, radius, sup, x, u, sizes):
    """Move ``at`` to the minimiser of h, with x, u and sizes there; data and steps are up to one.

    Returns
    -------
    float
        h, zero where every class is.
    """
    d, classes = block.shape
    members = np.arange(d)
    diagonal, columns = np.empty(d), np.empty((d, classes))
    trial = np.empty(d)
    height = _split(block, steps, at, radius, sup, members, x, u, sizes)
    for _ in range(ROOT_STEPS):
        sums = u.sum(axis=1)
        off = np.abs(sums).max()
        if height == 0.0 or off <= EPS:
            break
        _curvature(steps, radius, sup, x, u, sizes, diagonal, columns)
        move = _newton(sums, diagonal, columns, max(MIN_DAMPING, off))
        slope = 0.0
        for j in range(d):
            slope += sums[j] * move[j]
        share = 1.0
        for _ in range(HALVINGS):
            for j in range(d):
                trial[j] = at[j] + share * move[j]
            reached = _split(block, steps, trial, radius, sup, members, x, u, sizes)
            if slope > RISE_ROUNDING * height:
                if reached <= height - ARMIJO_FRACTION * share * slope:
                    break
            # close to the solution the decrease of h is rounding, and the gradient decides
            elif np.abs(u.sum(axis=1)).max() <= 0.5 * off:
                break
            elif share < SHORT_STEP:
                return _split(block, steps, at, radius, sup, members, x, u, sizes)
            share *= 0.5
        else:
            return _split(block, steps, at, radius, sup, members, x, u, sizes)
        _put(trial, 1.0, at)
        if share < SHORT_STEP and reached >= height * (1.0 - RISE_ROUNDING):
            return reached
        height = reached
    return height


@njit(nogil=True)
def _reach(x, sup):
    """The largest dual norm of a class."""
    largest = 0.0
    for k in range(x.shape[1]):
        column = np.abs(x[:, k])
        largest = max(largest, column.sum() if sup else math.sqrt((column**2).sum()))
    return largest


@njit(nogil=True)
def _norm(u, sup):
    """The sum of the norms of the classes."""
    total = 0.0
    for k in range(u.shape[1]):
        column = np.abs(u[:, k])
        total += column.max() if sup else math.sqrt((column**2).sum())
    return total


@njit(nogil=True)
def _remove_row_rounding(u, sup, sizes):
    """Remove the rounding in the row sums of u, from entries strictly inside their bounds."""
    classes = sizes.size
    for j in range(u.shape[0]):
        total, free = u[j].sum(), 0
        for k in range(classes):
            free += sizes[k] > 0.0 and not (sup and abs(u[j, k]) >= sizes[k])
        for k in range(classes):
            if sizes[k] > 0.0 and not (sup and abs(u[j, k]) >= sizes[k]):
                u[j, k] -= total / free
                if sup:
                    u[j, k] = min(max(u[j, k], -sizes[k]), sizes[k])


@njit(nogil=True)
def _minimise_largest_norm(block, sup, at, best_u):
    """Move ``at`` to the m with the least largest dual norm of ``v_k - m``; return that norm.

    Any u whose rows sum to zero bounds the least from below, by ``<V, u> / sum_k |u_k|``. That of
    the prox at a radius below the least is the next radius: Newton's method, from the left, on
    the distance of V to the set whose prox is zero, which is convex in the radius. The u with the
    largest bound is written into ``best_u``, at the norm one.
    """
    d, classes = block.shape
    ones = np.ones((d, classes))
    x, u, sizes = np.empty((d, classes)), np.empty((d, classes)), np.empty(classes)
    now, best, radius, bound = np.zeros(d), math.inf, 0.0, 0.0
    for _ in range(ROOT_STEPS):
        height = _balance(block, ones, now, radius, sup, x, u, sizes)
        reach = _reach(x, sup)
        if reach < best:
            best = reach
            _put(now, 1.0, at)
        if height == 0.0:
            break
        further = (x * u).sum() / sizes.sum()
        _remove_row_rounding(u, sup, sizes)
        for j in range(d):  # a little above the largest entries, where all are largest ones
            u[j] -= np.where(sizes > 0.0, u[j].sum() / (sizes > 0.0).sum(), 0.0)
        norm = _norm(u, sup)
        if np.abs(u.sum(axis=1)).max() <= SUM_ROUNDING * norm and (x * u).sum() > bound * norm:
            bound = (x * u).sum() / norm
            for j in range(d):
                _put(u[j], 1.0 / norm, best_u[j])
        if further <= radius * (1.0 + EPS) or best <= further * (1.0 + ROUNDING_ULPS * EPS):
            break
        radius = further
    return best


@njit(nogil=True, allocates=False)
def _put(vector, factor, out):
    """``out = factor * vector``; assignments of slices compile for seconds."""
    for i in range(vector.size):
        out[i] = factor * vector[i]


@njit(nogil=True)
def _gathered(values, members, means):
    """The rows of a group without their means, up to one, and what they were divided by."""
    block = np.empty((members.size, values.shape[1]))
    for j in range(members.size):
        means[j] = values[members[j]].mean()
        for k in range(values.shape[1]):
            block[j, k] = values[members[j], k] - means[j]
    size = np.abs(block).max()
    if size > 0.0:
        block /= size
    return block, size


@njit(nogil=True)
def _is_zero(block, steps, at, radius, sup, x, u):
    """Whether the prox is zero by the dual norm of the group; ``at`` is then its minimiser."""
    if np.abs(u).max() > SMALL_GROUP:
        return False
    found = np.empty(at.size)
    if _minimise_largest_norm(block / steps, sup, found, x) > radius * (1.0 + ROUNDING_ULPS * EPS):
        return False
    _put(found, 1.0, at)
    return True


@njit(nogil=True)
def balanced_group_prox(values, steps, order, starts, radii, sup):
    """``argmin_u sum_gk radius_g |u_gk| + sum_jk (u_jk - v_jk)^2 / (2 t_j), sum_k u_jk = 0``.

    Parameters
    ----------
    values : (n_rows, n_classes) float64
    steps : (n_rows, 1) > 0
    order : (n_rows,) integers
        The rows, group after group.
    starts : (n_groups + 1,) integers
        Where each group begins in ``order``.
    radii : (n_groups,) >= 0
    sup : bool
        The norm is that of the largest entry, not the length.

    Returns
    -------
    u : (n_rows, n_classes)
    shifts : (n_rows, 1)
        The unconstrained prox of ``v - shift`` is the same u.
    """
    out, shifts = np.zeros_like(values), np.empty((values.shape[0], 1))
    for g in range(radii.size):
        members = order[starts[g] : starts[g + 1]]
        means, at = np.empty(members.size), np.zeros(members.size)
        block, size = _gathered(values, members, means)
        paces = np.empty_like(block)
        for j in range(members.size):
            paces[j] = steps[members[j], 0]
        pace = paces.max()
        paces /= pace
        if size > 0.0:
            radius = radii[g] * pace / size
            x, u, sizes = np.empty_like(block), np.empty_like(block), np.empty(block.shape[1])
            height = _balance(block, paces, at, radius, sup, x, u, sizes)
            if height > 0.0 and not _is_zero(block, paces, at, radius, sup, x, u):
                _remove_row_rounding(u, sup, sizes)
                for j in range(members.size):
                    _put(u[j], size, out[members[j]])
        for j in range(members.size):
            shifts[members[j], 0] = means[j] + size * paces[j, 0] * at[j]
    return out, shifts


@njit(nogil=True)
def balanced_group_centres(values, order, starts, sup):
    """The shifts of rows after which the largest dual norm of a class is least, for each group.

    Parameters are those of `balanced_group_prox`.

    Returns
    -------
    shifts : (n_rows, 1)
    norms : (n_groups,)
        The least, which is the norm dual to the sum of the norms of the classes of W, rows of
        which sum to zero.
    points : (n_rows, n_classes)
        The W of norm one with the largest product with the group: that is ``norms`` again.
    """
    points, shifts = np.zeros_like(values), np.empty((values.shape[0], 1))
    norms = np.zeros(starts.size - 1)
    for g in range(norms.size):
        members = order[starts[g] : starts[g + 1]]
        means, at = np.empty(members.size), np.zeros(members.size)
        block, size = _gathered(values, members, means)
        if size > 0.0:
            u = np.empty_like(block)
            norms[g] = size * _minimise_largest_norm(block, sup, at, u)
            for j in range(members.size):
                _put(u[j], 1.0, points[members[j]])
        for j in range(members.size):
            shifts[members[j], 0] = means[j] + size * at[j]
    return shifts, norms, points
