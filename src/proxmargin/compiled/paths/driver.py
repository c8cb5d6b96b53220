"""A path of strengths in one compiled call: proximal Newton steps with active sets.

From one strength to the next the solution, the curvatures of the samples and so the Hessian of the
quadratic model change little. A step with an old Hessian (a chord step) costs a product with the
columns of the model and two triangular solves; the Hessian is formed anew where such steps converge
slowly. Features enter by the sequential strong rule (Tibshirani et al. 2012); what it leaves out is
proven inactive by the subspace of former dual points (`proxmargin.compiled.paths.dual_subspace`),
or entered. The first step at a strength, the predictor, is corrected by its error at the one before
(`proxmargin.compiled.paths.steps`).
"""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import dual_subspace, model, products
from proxmargin.compiled.paths.certificate import certify, kkt_gap_objective
from proxmargin.compiled.paths.dual_point import evaluate, optimise, recompute_scores
from proxmargin.compiled.paths.state import PathOutcome, PathTarget
from proxmargin.compiled.paths.steps import forget_error, halve, learn_error, step
from proxmargin.compiled.products.vectors import dot
from proxmargin.compiled.rounding import HALVINGS, RISE_ROUNDING
from proxmargin.compiled.solvers.nets import open_correlation
from proxmargin.compiled.solvers.newton import SLOW_CHORD

MAX_ROUNDS = 12  # rounds of Newton's method and a certificate, for one strength
TIGHTER = 0.3  # factor on the gap tolerance of Newton's method after a certificate that failed
LEAST_THRESHOLD = 0.5  # of the strong rule, in units of the l1 strength
# Newton's method
MAX_STEPS = 60
LARGEST_RISE = 2.0  # factor on the objective, after all halvings, beyond which the method gives up
CLAIM = 0.9  # share of the tolerance at which Newton's method ends
APPENDED = 8  # number of newcomers, besides a quarter of the members, up to which they are appended


@njit(nogil=True, allocates=False)
def begin(path, index, values, intercept):
    """Set the null model, and compute the inner products of all features with its dual point.

    Parameters
    ----------
    index, values, intercept
        The null model: coefficients of the unpenalised features.
    """
    data, dual, subspace = path.data, path.point.dual, path.subspace
    correlation = path.screening.correlation
    _start_at(path, index, values, intercept)
    size = math.sqrt(dot(dual, dual))
    if data.uses_subspace and size > 0.0:
        dual_subspace.append(subspace, dual, size)
        for j in range(correlation.size):
            subspace.products[0, j] = correlation[j] / size
    largest = 0.0
    for j in range(correlation.size):
        if data.factor[j] > 0.0:
            size = open_correlation(correlation[j], data.lower[j], data.upper[j])
            largest = max(largest, size / data.factor[j])
    path.scalars.strength = largest


@njit(nogil=True, allocates=False)
def restart(path, index, values, intercept, strength):
    """Continue from a solution with coefficients ``values`` of the features ``index``."""
    _start_at(path, index, values, intercept)
    path.scalars.read += 1.0
    for s in range(path.candidates.scalars.count):
        path.candidates.member[s] = -1
    path.model.scalars.size = path.model.scalars.factored = 0
    forget_error(path.candidates, path.scalars)
    path.scalars.strength = strength


@njit(nogil=True, allocates=False)
def _start_at(path, index, values, intercept):
    """Move to coefficients ``values`` of the features ``index``; read all features there."""
    data, candidates, point = path.data, path.candidates, path.point
    correlation = path.screening.correlation
    for s in range(candidates.scalars.count):
        candidates.coef[s] = 0.0
    for x in range(index.size):
        j = index[x]
        if candidates.number[j] < 0:
            _enter(data, candidates, point.dual, j)
        s = candidates.number[j]
        candidates.coef[s] = values[x]
        intercept -= (data.centre[j] - candidates.mean[s]) * data.inverse[j] * values[x]
    recompute_scores(data, candidates, point)
    point.scalars.intercept = intercept
    optimise(path, 0.0, 0.0)
    products.all_products(data.store, point.dual, data.inverse, correlation)
    for s in range(candidates.scalars.count):
        candidates.correlation[s] = correlation[candidates.feature[s]]
    path.screening.scalars.threshold = math.inf


@njit(nogil=True, allocates=False)
def advance(path, strengths, first, last, tol):
    """Solve the strengths from ``first`` on; return the first unsolved one, and the reason."""
    for at in range(first, last):
        code = _solve_strength(path, strengths, at, tol)
        if code != PathOutcome.DONE:
            return at, code
    return last, PathOutcome.DONE


@njit(nogil=True, allocates=False, forceinline=True)
def _solve_strength(path, strengths, at, tol):
    """One strength: Newton's method on the candidates, and certificates of all features."""
    data, candidates, scalars = path.data, path.candidates, path.scalars
    l1, l2 = strengths.l1[at], strengths.l2[at]
    threshold = _strong_rule(l1, scalars.strength)
    following = _strong_rule(strengths.l1[min(at + 1, strengths.l1.size - 1)], l1)
    wanted = _list_entering(data, candidates, path.screening, threshold)
    newton_tol, steps, read = tol, scalars.steps, scalars.read
    scalars.is_first = True
    for _ in range(MAX_ROUNDS):
        if candidates.scalars.count + wanted > candidates.feature.size:
            return PathOutcome.CANDIDATES_FULL
        for x in range(wanted):
            _enter(data, candidates, path.point.dual, path.screening.to_check[x])
        code = _newton(path, PathTarget(l1, l2, threshold, following, newton_tol))
        if code != PathOutcome.DONE:
            return code
        gap, objective, worst, wanted = certify(path, PathTarget(l1, l2, threshold, following, tol))
        if gap <= tol * objective and gap < math.inf:
            strengths.gaps[at], strengths.objectives[at] = gap, objective
            strengths.violations[at] = worst
            strengths.passes[at] = scalars.read - read
            strengths.steps[at] = scalars.steps - steps
            scalars.strength = l1
            learn_error(candidates, path.point.scalars.intercept, scalars)
            return _store_solution(path, strengths, at)
        threshold = min(threshold, l1)
        if wanted == 0:
            newton_tol *= TIGHTER
    return PathOutcome.GAVE_UP


@njit(nogil=True, allocates=False)
def _strong_rule(l1, before):
    """The correlation over factor at which features enter, after the strength ``before``."""
    return max(2.0 * l1 - before, LEAST_THRESHOLD * l1) if l1 < before else l1


@njit(nogil=True, allocates=False)
def _list_entering(data, candidates, screening, threshold):
    """List features outside the candidates whose estimated correlation is above the threshold."""
    known = threshold >= screening.scalars.threshold
    count = 0
    for x in range(screening.scalars.near if known else screening.correlation.size):
        j = screening.near[x] if known else x
        if abs(screening.correlation[j]) < threshold * candidates.outside_factor[j]:
            continue
        size = open_correlation(screening.correlation[j], data.lower[j], data.upper[j])
        may = candidates.number[j] < 0 and size > 0.0 and data.inverse[j] > 0.0
        if may and size >= threshold * data.factor[j]:
            screening.to_check[count] = j
            count += 1
    return count


@njit(nogil=True, allocates=False)
def _enter(data, candidates, dual, j):
    """Make feature j the next candidate."""
    s = candidates.scalars.count
    candidates.feature[s], candidates.number[j] = j, s
    candidates.outside_factor[j] = math.inf
    candidates.coef[s], candidates.member[s] = 0.0, -1
    candidates.predicted[s] = candidates.error[s] = 0.0
    candidates.correlation[s] = data.inverse[j] * products.product(data.store, j, dual)
    products.copy_column(data, candidates, s, j)
    candidates.scalars.count = s + 1


@njit(nogil=True, allocates=False)
def _store_solution(path, strengths, at):
    """Store the solution of a strength, in the coordinates of the problem."""
    data, candidates = path.data, path.candidates
    place, intercept = strengths.indptr[at], path.point.scalars.intercept
    for s in range(candidates.scalars.count):
        if candidates.coef[s] != 0.0:
            if place == strengths.indices.size:
                return PathOutcome.SOLUTIONS_FULL
            j, coef = candidates.feature[s], candidates.coef[s]
            strengths.indices[place], strengths.values[place] = j, coef
            intercept += (data.centre[j] - candidates.mean[s]) * data.inverse[j] * coef
            place += 1
    strengths.indptr[at + 1] = place
    strengths.intercepts[at] = intercept
    return PathOutcome.DONE


@njit(nogil=True, allocates=False, forceinline=True)
def _newton(path, target):
    """Newton steps on the candidates until their gap meets the tolerance.

    The dual point and the correlations of the candidates are still those of the previous strength:
    the first step, the predictor, takes no evaluation.
    """
    data, candidates, point, quadratic = path.data, path.candidates, path.point, path.model
    scalars, p = path.scalars, path.data.norms.size
    last, before, intercept_step, fresh, halved = math.inf, math.inf, 0.0, False, 0
    for trial in range(MAX_STEPS + HALVINGS):
        if trial > 0:  # the predictor uses the dual point of the previous strength
            evaluate(path, min(last / target.l1, 1.0), target.tol)
        worst, gap, objective = kkt_gap_objective(path, target, CLAIM)
        if trial > 0 and not objective <= before * (1.0 + RISE_ROUNDING):  # it may not be a number
            if halved < HALVINGS:
                intercept_step = halve(data, candidates, quadratic, point, intercept_step)
                halved, fresh = halved + 1, False
                continue
            if not objective <= before * LARGEST_RISE:
                return PathOutcome.GAVE_UP
        halved = 0
        if gap <= CLAIM * target.tol * objective and gap < math.inf:
            return PathOutcome.DONE
        if trial >= MAX_STEPS or (fresh and worst >= last and trial > MAX_STEPS // 2):
            return PathOutcome.DONE  # the certificate decides
        if scalars.steps >= scalars.last_step:
            return PathOutcome.STEPS_TAKEN
        added, m = model.newcomers(data, candidates, target.threshold), quadratic.scalars.size
        slow = trial > 0 and worst > SLOW_CHORD * last and not fresh
        fresh = m == 0 or (slow and not data.jumps)
        fresh = fresh or added > APPENDED + m // 4 or m + added > quadratic.members.size
        relative = worst / target.l1
        if not fresh and added > 0:
            model.append(data, candidates, quadratic, target.threshold)
        if not fresh and data.jumps:
            changed = model.revise(data, candidates, quadratic, point, relative)
            fresh = changed < 0.0
            scalars.read += 2.0 * quadratic.scalars.size / p * max(changed, 0.0)
        if fresh:
            if not model.form(data, candidates, quadratic, point, target.threshold, relative):
                return PathOutcome.MODEL_FULL
            scalars.read += 2.0 * quadratic.scalars.size / p
        fresh = fresh or data.jumps
        intercept_step = step(path, target, worst)
        last, before = worst, objective
    return PathOutcome.DONE
