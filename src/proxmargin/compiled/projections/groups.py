"""Proximal maps of norms of groups, and the nearest point of an lp ball."""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.rounding import EPS, ROOT_STEPS


@njit(nogil=True)
def _length(values, steps, members, column, radius):
    """The norm r of the prox of ``radius |.|_2``: zero, or the root of ``s(r) = 1``.

    With a step t_j for each entry the prox is ``u_j = v_j r / (r + t_j radius)``, so that
    ``s(r) = |v / (r + t radius)|``; 1/s is concave and Newton's method on it climbs to the root.
    Where all steps are the same the first r is the root.
    """
    square, pull, longest = 0.0, 0.0, 0.0
    for j in members:
        square += values[j, column] ** 2
        pull += (values[j, column] / steps[j, column]) ** 2
        longest = max(longest, steps[j, column])
    if pull <= radius * radius:
        return 0.0
    r = max(math.sqrt(square) - longest * radius, 0.0)
    for _ in range(ROOT_STEPS):
        second, third = 0.0, 0.0
        for j in members:
            width = r + steps[j, column] * radius
            share = (values[j, column] / width) ** 2
            second += share
            third += share / width
        s = math.sqrt(second)
        move = second * (s - 1.0) / third
        r += move
        if move <= EPS * r:
            break
    return r


@njit(nogil=True)
def group_l2_prox(values, steps, order, starts, radii):
    """``argmin_u sum_g radius_g |u_g|_2 + sum_j (u_j - v_j)^2 / (2 t_j)``, column by column.

    Parameters
    ----------
    values, steps : (n_rows, n_columns) float64, steps > 0
    order : (n_rows,) integers
        The rows, group after group.
    starts : (n_groups + 1,) integers
        Where each group begins in ``order``.
    radii : (n_groups, n_columns) >= 0

    Returns
    -------
    (n_rows, n_columns), a new array
    """
    out = np.zeros_like(values)
    for g in range(starts.size - 1):
        members = order[starts[g] : starts[g + 1]]
        for column in range(values.shape[1]):
            radius = radii[g, column]
            r = _length(values, steps, members, column, radius)
            if r > 0.0:
                for j in members:
                    share = r / (r + steps[j, column] * radius)
                    out[j, column] = values[j, column] * share
    return out


@njit(nogil=True)
def _threshold(sizes, shares, total):
    """The root of ``sum_j shares_j (sizes_j - root)_+ = total``.

    The sum is decreasing, convex and piecewise linear in the root: Newton's method from the left
    climbs to it in finitely many steps.
    """
    root = -math.inf
    for _ in range(sizes.size + 1):
        excess, weight = -total, 0.0
        for j in range(sizes.size):
            if sizes[j] > root:
                excess += shares[j] * sizes[j]
                weight += shares[j]
        if weight == 0.0 or excess <= root * weight:
            break
        root = excess / weight
    return root


@njit(nogil=True)
def _cap(values, steps, members, column, radius):
    """The largest entry of the prox of ``radius |.|_inf``: the root of
    ``sum_j (|v_j| - cap)_+ / t_j = radius``, or zero. For steps 1 the part above the cap is the
    projection on the l1 ball."""
    sizes, shares = np.empty(members.size), np.empty(members.size)
    shortest = math.inf
    for j in members:
        shortest = min(shortest, steps[j, column])
    for k in range(members.size):
        sizes[k] = abs(values[members[k], column])
        shares[k] = shortest / steps[members[k], column]
    return max(_threshold(sizes, shares, radius * shortest), 0.0)


@njit(nogil=True)
def group_linf_prox(values, steps, order, starts, radii):
    """``argmin_u sum_g radius_g |u_g|_inf + sum_j (u_j - v_j)^2 / (2 t_j)``, column by column.

    Parameters and result are those of `group_l2_prox`. Entries of a group at its largest absolute
    value have exactly that value.
    """
    out = np.zeros_like(values)
    for g in range(starts.size - 1):
        members = order[starts[g] : starts[g + 1]]
        for column in range(values.shape[1]):
            cap = _cap(values, steps, members, column, radii[g, column])
            for j in members:
                out[j, column] = min(max(values[j, column], -cap), cap)
    return out


@njit(nogil=True)
def group_linf_residual(values, dual, largest, order, starts, radii):
    """The vector from ``dual`` to the subdifferential of ``sum_g radius_g |.|_inf``, by column.

    The subdifferential is the l1 ball where the group is zero; elsewhere it is ``s sign(value)``
    with s >= 0 of sum ``radius`` on the largest entries, and zero on the others.

    Parameters
    ----------
    values, dual : (n_rows, n_columns)
    largest : (n_rows, n_columns) booleans
        Whether the entry is a largest one of its group, which is not zero.
    order, starts, radii
        As in `group_l2_prox`.
    """
    out = dual.copy()
    ones = np.ones_like(values)
    for g in range(starts.size - 1):
        members = order[starts[g] : starts[g + 1]]
        for column in range(values.shape[1]):
            radius = radii[g, column]
            top = np.array([j for j in members if largest[j, column]])
            if top.size == 0:
                cap = _cap(dual, ones, members, column, radius)
                for j in members:
                    out[j, column] = min(max(dual[j, column], -cap), cap)
                continue
            aligned = np.array([np.sign(values[j, column]) * dual[j, column] for j in top])
            root = _threshold(aligned, np.ones(top.size), radius)
            for k in range(top.size):
                out[top[k], column] = min(aligned[k], root)
    return out


@njit(nogil=True)
def _two_powers(a, b, e, y):
    """The root x >= 0 of ``a x + b x^e = y``, e >= 1: Newton from above, where it is monotone."""
    x = y / a if a > 0.0 else math.inf
    if b > 0.0:
        x = min(x, (y / b) ** (1.0 / e))
    while x > 0.0:
        power = b * x ** (e - 1.0)
        step = (a * x + power * x - y) / (a + e * power)
        if not step > 2.0 * EPS * x:
            return x - step
        x -= step
    return 0.0


@njit(nogil=True)
def lp_unit(sizes, radius, q, multiplier, out):
    """Solve ``radius z + multiplier z^q = sizes`` for each entry, z >= 0.

    These are the optimality conditions of the nearest point ``radius z`` of an lp ball, q = p - 1.

    Parameters
    ----------
    sizes : (n,) in [0, 1]
    out : (n,), gets z

    Returns
    -------
    power : sum of z^p
    slope : minus its derivative in the multiplier, over p
    """
    power, slope = 0.0, 0.0
    for i in range(sizes.size):
        if q >= 1.0:
            z = _two_powers(radius, multiplier, q, sizes[i])
        else:  # in t = z^q the exponent is 1/q > 1
            z = _two_powers(multiplier, radius, 1.0 / q, sizes[i]) ** (1.0 / q)
        out[i] = z
        if z > 0.0:
            z_q = z**q
            power += z_q * z
            slope += z_q * z_q * z / (radius * z + multiplier * q * z_q)
    return power, slope
