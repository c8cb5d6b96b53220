"""A path of strengths in one compiled call: Newton steps on frozen quadratic models.

From one strength to the next the solution, the curvatures of the samples and so the Hessian of the
model change little (`proxmargin.compiled.paths.newton`). Features enter by the sequential
strong rule (Tibshirani et al. 2012); what it leaves out is proven inactive by the subspace of
former dual points (`proxmargin.compiled.paths.dual_subspace`), or entered. The first step at a
strength, the predictor, is corrected by its error at the one before
(`proxmargin.compiled.paths.foresight`).
"""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import dual_subspace, foresight, products
from proxmargin.compiled.paths.candidates import load
from proxmargin.compiled.paths.newton import descend
from proxmargin.compiled.paths.passes import settle
from proxmargin.compiled.paths.pricing import price
from proxmargin.compiled.paths.standing import recompute_scores
from proxmargin.compiled.paths.state import (
    BEFORE,
    CANDIDATES,
    DONE,
    FIRST,
    GAVE_UP,
    INTERCEPT,
    KEPT,
    LOW,
    MEMBERS,
    NEAR,
    NO_ENTRY,
    NO_SLOT,
    PASSES,
    READ,
    REFERENCES,
    SHARE,
    STEPS,
    Goal,
)
from proxmargin.compiled.paths.vectors import dot
from proxmargin.compiled.solvers.nets import open_slope

__all__ = ["advance", "begin", "restart"]

MAX_ROUNDS = 12  # rounds of Newton's method and a certificate, for one strength
TIGHTER = 0.3  # factor on the gap tolerance of Newton's method after a certificate that failed
LEAST_RULE = 0.5  # lowest threshold of the strong rule, in units of the l1 strength


@njit(cache=True, nogil=True, allocates=False)
def begin(state, index, values, intercept):
    """Set the null model, and compute the inner products of all features with its dual point.

    Parameters
    ----------
    index, values, intercept
        The null model: coefficients of the unpenalised features.
    """
    terms, buffers, counts, levels = state.terms, state.buffers, state.counts, state.levels
    _stand_at(state, index, values, intercept)
    size = math.sqrt(dot(buffers.theta, buffers.theta))
    if terms.spans and size > 0.0:
        dual_subspace.put(state.span, 0, buffers.theta, size)
        for j in range(buffers.estimate.size):
            state.span.products[0, j] = buffers.estimate[j] / size
        counts[REFERENCES] = 1
    largest = 0.0
    for j in range(buffers.estimate.size):
        if terms.factor[j] > 0.0:
            slope = open_slope(buffers.estimate[j], terms.lower[j], terms.upper[j])
            largest = max(largest, slope / terms.factor[j])
    levels[BEFORE] = largest
    levels[SHARE] = 0.0
    levels[LOW] = math.inf


@njit(cache=True, nogil=True, allocates=False)
def restart(state, index, values, intercept, strength):
    """Continue from a solution with coefficients ``values`` of the features ``index``."""
    candidates, counts, levels = state.candidates, state.counts, state.levels
    _stand_at(state, index, values, intercept)
    levels[READ] += 1.0
    for s in range(counts[CANDIDATES]):
        candidates.place[s] = -1
    counts[MEMBERS] = counts[KEPT] = 0
    foresight.forget(state)
    levels[BEFORE] = strength
    levels[LOW] = math.inf


@njit(cache=True, nogil=True, allocates=False)
def _stand_at(state, index, values, intercept):
    """Move to coefficients ``values`` of the features ``index``; read all features there."""
    terms, candidates, buffers, counts = state.terms, state.candidates, state.buffers, state.counts
    for s in range(counts[CANDIDATES]):
        candidates.coef[s] = 0.0
    for x in range(index.size):
        j = index[x]
        if candidates.slot_of[j] < 0:
            _enter(state, j)
        s = candidates.slot_of[j]
        candidates.coef[s] = values[x]
        intercept -= (terms.centre[j] - candidates.mean[s]) * terms.inverse[j] * values[x]
    recompute_scores(state)
    state.levels[INTERCEPT] = intercept
    settle(state, 0.0, 0.0)
    products.pull_all(state.store, buffers.theta, terms.inverse, buffers.estimate)
    counts[PASSES] += 1
    for s in range(counts[CANDIDATES]):
        candidates.slope[s] = buffers.estimate[candidates.feature[s]]


@njit(cache=True, nogil=True, allocates=False)
def advance(state, strengths, first, last, tol):
    """Solve the strengths from ``first`` on; return the first unsolved one, and the reason."""
    for at in range(first, last):
        code = _solve_strength(state, strengths, at, tol)
        if code != DONE:
            return at, code
    return last, DONE


@njit(cache=True, nogil=True, allocates=False, forceinline=True)
def _solve_strength(state, strengths, at, tol):
    """One strength: Newton's method on the candidates, and certificates of all features."""
    counts, levels = state.counts, state.levels
    l1, l2, before = strengths.l1[at], strengths.l2[at], levels[BEFORE]
    rule = _strong_rule(l1, before)
    low = _strong_rule(strengths.l1[min(at + 1, strengths.l1.size - 1)], l1)
    wanted = _list_entering(state, rule)
    asked, steps, reads = tol, counts[STEPS], levels[READ]
    counts[FIRST] = 1
    for _ in range(MAX_ROUNDS):
        if counts[CANDIDATES] + wanted > state.candidates.feature.size:
            return NO_SLOT
        for x in range(wanted):
            _enter(state, state.buffers.to_check[x])
        code = descend(state, Goal(l1, l2, rule, low, asked))
        if code != DONE:
            return code
        gap, objective, worst, wanted = price(state, Goal(l1, l2, rule, low, tol))
        if gap <= tol * objective and gap < math.inf:
            strengths.gaps[at], strengths.objectives[at] = gap, objective
            strengths.violations[at] = worst
            strengths.passes[at] = levels[READ] - reads
            strengths.steps[at] = counts[STEPS] - steps
            levels[BEFORE] = l1
            foresight.learn(state)
            return _store_solution(state, strengths, at)
        rule = min(rule, l1)
        if wanted == 0:
            asked *= TIGHTER
    return GAVE_UP


@njit(cache=True, nogil=True, allocates=False)
def _strong_rule(l1, before):
    """The threshold of slope over factor at which features enter, after the strength ``before``."""
    return max(2.0 * l1 - before, LEAST_RULE * l1) if l1 < before else l1


@njit(cache=True, nogil=True, allocates=False)
def _list_entering(state, rule):
    """Write features outside the candidates whose estimated slope is above the rule to check."""
    terms, candidates, buffers = state.terms, state.candidates, state.buffers
    known = rule >= state.levels[LOW]
    count = 0
    for x in range(state.counts[NEAR] if known else buffers.estimate.size):
        j = buffers.near[x] if known else x
        if abs(buffers.estimate[j]) < rule * candidates.gate[j]:
            continue
        size = open_slope(buffers.estimate[j], terms.lower[j], terms.upper[j])
        may = candidates.slot_of[j] < 0 and size > 0.0 and terms.inverse[j] > 0.0
        if may and size >= rule * terms.factor[j]:
            buffers.to_check[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True, allocates=False)
def _enter(state, j):
    """Make feature j the next candidate."""
    candidates, terms, s = state.candidates, state.terms, state.counts[CANDIDATES]
    candidates.feature[s], candidates.slot_of[j], candidates.gate[j] = j, s, math.inf
    candidates.coef[s], candidates.place[s] = 0.0, -1
    candidates.guess[s] = candidates.lag[s] = 0.0
    candidates.slope[s] = terms.inverse[j] * products.one(state.store, j, state.buffers.theta)
    load(state.store, candidates, s, j, terms.weights, terms.inverse, terms.free)
    state.counts[CANDIDATES] = s + 1


@njit(cache=True, nogil=True, allocates=False)
def _store_solution(state, strengths, at):
    """Store the solution of a strength, in the coordinates of the problem."""
    terms, candidates = state.terms, state.candidates
    place, intercept = strengths.indptr[at], state.levels[INTERCEPT]
    for s in range(state.counts[CANDIDATES]):
        if candidates.coef[s] != 0.0:
            if place == strengths.indices.size:
                return NO_ENTRY
            j = candidates.feature[s]
            strengths.indices[place], strengths.values[place] = j, candidates.coef[s]
            intercept += (
                (terms.centre[j] - candidates.mean[s]) * terms.inverse[j] * candidates.coef[s]
            )
            place += 1
    strengths.indptr[at + 1] = place
    strengths.intercepts[at] = intercept
    return DONE
