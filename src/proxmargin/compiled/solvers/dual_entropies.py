"""Dual coordinate descent for the logistic loss, whose dual has entropies in place of a box."""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.exponentials import fast_exp
from proxmargin.compiled.solvers.dual_rows import AHEAD, add, asked_for, product, shuffled

__all__ = ["NEAREST", "descend_entropies"]

NEAREST = 1e-14  # distance of a dual point to an end of its interval, over its length, at least
STEPS = 20  # of Newton's method or bisection for one dual point, at most
PRECISION = 1e-3  # ratio of its slope to the first one at which it is solved
SKIPPED = 0.05  # share of the gap to be reached that may be left in dual points that do not move


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _sigmoid(u):
    e = fast_exp(-abs(u))
    near = 1.0 / (1.0 + e)
    return near if u > 0.0 else e * near


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _solved(bend, old, logit, slope):
    """The share s with ``bend (s - old) + slope - logit + log(s / (1 - s)) = 0``.

    By Newton's method in ``u = log(s / (1 - s))``: the derivative in u is at least 1, and at most
    ``1 + bend / 4``. So the root is within ``|slope|`` of the first u, and Newton's method needs
    the bracket only where the bend is large.
    """
    u, now = logit, slope
    low, high = min(u, u - slope), max(u, u - slope)
    share = old
    enough = PRECISION * abs(slope)
    for _ in range(STEPS):
        step = u - now / (1.0 + bend * share * (1.0 - share))
        u = step if low < step < high else 0.5 * (low + high)
        share = _sigmoid(u)
        now = bend * (share - old) + (u - logit) + slope
        if abs(now) <= enough:
            break
        if now > 0.0:
            high = u
        else:
            low = u
    return min(max(share, NEAREST), 1.0 - NEAREST)


@njit(cache=True, nogil=True)
def descend_entropies(
    data,
    indices,
    indptr,
    signs,
    caps,
    bends,
    goals,
    curvatures,
    metric,
    pull,
    square,
    stiffness,
    base,
    dual,
    coef,
    active,
    n_active,
    lean,
    moment,
    least,
    most,
    value,
    free,
    enough,
    share,
    limit,
    budget,
    seed,
):
    """Sweeps over all samples in random order, until the duality gap or violations are small.

    Of `proxmargin.compiled.solvers.dual_coordinates.descend` this is the form for
    ``sum_i caps_i (s log s + (1 - s) log(1 - s)) - goals_i a_i``, ``s = a_i / caps_i``, in place of
    ``bends_i a_i^2 / 2 - goals_i a_i`` (Yu, Huang and Lin 2011). Arguments and results are the
    same. No sample leaves the active set, and ``bends`` are not read. The Fenchel-Young term of a
    sample is the relative entropy of s and the logistic function p of its margin; half of
    ``(s - p) (logit s - logit p)``, which it is close to where s is close to p, stands for it.
    Samples whose terms are a small part of the gap to be reached do not move. As the entropies are
    smooth, dual points that are moved to ``lean = 0`` cost ``base lean`` up to the square of
    ``lean``. ``value`` is returned as it is.
    """
    sweeps = rows = 0
    excess, apart = np.inf, 0.0
    low, high = -np.inf, np.inf
    while sweeps < limit and rows < budget:
        low, high, excess = np.inf, -np.inf, 0.0
        skipped = SKIPPED * share * max(value, 0.0) / max(n_active, 1)
        seed = shuffled(active, n_active, seed)
        for k in range(n_active):
            if k + AHEAD < n_active:
                asked_for(data, indices, indptr, active[k + AHEAD], dual)
            i = active[k]
            rows += 1
            sign, cap = signs[i], caps[i]
            old = dual[i] / cap
            shift = base - moment + lean * (stiffness + square - pull[i])
            score = product(data, indices, indptr[i], indptr[i + 1], coef) + shift
            margin = sign * score - goals[i]
            logit = math.log(old / (1.0 - old))
            slope = logit + margin
            term = 0.5 * cap * (old - _sigmoid(-margin)) * slope
            excess += term
            low, high = min(low, slope), max(high, slope)
            if term <= skipped and not free:
                continue
            new = _solved(cap * curvatures[i], old, logit, slope)
            dual[i] = cap * new
            change = cap * (new - old)
            change *= sign
            lean += change
            moment += change * pull[i]
            add(data, indices, indptr[i], indptr[i + 1], change, metric, coef)
        sweeps += 1
        if n_active == 0:
            low, high = 0.0, 0.0
        apart = 0.0
        if free:
            base += stiffness * lean
            apart = (stiffness * abs(lean) + abs(base)) * abs(lean)
        if (high - low <= enough and not free) or excess + apart <= share * (value + excess):
            break
    return n_active, lean, moment, low, high, base, value, excess + apart, sweeps, rows, seed
