"""A path of strengths in one compiled call: Newton steps on frozen quadratic models.

From one strength to the next little changes: the solution, the curvatures of the samples and so
the Hessian of the model. A Newton step with an old Hessian (a chord step) costs a product with the
columns in play and two triangular solves; the Hessian is formed anew where such steps converge
slowly. Features enter by the sequential strong rule (Tibshirani et al. 2012); what it leaves out is
proven inactive by the span of former dual points (`proxmargin.compiled.paths.span`), or entered.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import span as spans
from proxmargin.compiled.paths import stores
from proxmargin.compiled.paths.certified import certified_gap, feature_term, scale_into_domain
from proxmargin.compiled.paths.passes import lost, settled
from proxmargin.compiled.paths.quadratic import quadratic_minimum
from proxmargin.compiled.paths.vectors import dot
from proxmargin.compiled.solvers.nets import Net, violation
from proxmargin.compiled.solvers.newton import exact_step

__all__ = ["Buffers", "Strengths", "Terms", "advance", "begin", "restart"]

# how a call ends
DONE = 0
ROOM = 1  # arrays are too small
GAVE_UP = 2  # the tolerance was not met
# places in the array of integers that is kept between calls
SLOTS = 0  # features that have one
MEMBERS = 1  # of the quadratic model
KEPT = 2  # rows of its factor
REFERENCES = 3  # of the span
PASSES = 4  # over all of the data
STEPS = 5  # of Newton's method
MODELS = 6  # quadratic models formed
COUNTS = 7
# places in the same of numbers
INTERCEPT = 0  # of the centred columns
BEFORE = 1  # the l1 strength before this one
TOTAL = 2  # sum of the curvatures in the quadratic model; 0 without intercept
SHARE = 3  # weight of the majoriser where the loss is flat
LARGEST = 4  # diagonal entry of the Hessian
READ = 5  # passes, those over columns in shares
LEVELS = 6

MAX_ROUNDS = 12  # of Newton's method and a certificate, for one strength
MAX_STEPS = 60  # in a round
TIGHTER = 0.3  # factor on the gap asked for where the certificate was not enough
CLAIM = 0.9  # share of the tolerance that Newton's method is to meet
# the strong rule, in units of the l1 strength
LEAST_RULE = 0.5
KEPT_SLOPE = 0.95  # of the rule: slots below it are left out of a new model
FEW = 512  # features up to which models hold more
KEPT_OF_FEW = 0.6
# quadratic models
SLOW = 0.25  # reduction of the violation by a step, above which the Hessian is formed anew
FORCING = 0.05  # of the violation: accuracy of the model's minimum
FINE_FORCING = 1e-3  # of the tolerance, in units of the l1 strength
DAMPING = 1e-10  # of the largest diagonal entry
ADDED = 8  # newcomers that are appended to a model, and a quarter of its size
# losses whose curvature jumps
FAR_DAMPING = 1e-4  # times the relative violation
LEAST_SHARE = 1e-3  # of the majoriser where the loss is flat: below it none
LONG_STEP = 0.5  # a step after which that weight falls
SHORT_STEP = 0.1  # and one after which it rises
SEARCH_TOLERANCE = 0.3
SEARCH_STEPS = 60
RISE = 1e-12  # relative increase of the objective that is rounding
MAX_HALVINGS = 30
NEAR_ZERO = 1e-9  # of its move: a coefficient so near to zero is zero


class Terms(NamedTuple):
    """What a problem is made of, besides its features.

    Attributes
    ----------
    signs, weights : (n_samples,)
    centre, inverse : (n_features,)
        Of the features as the problem has them: ``(x_j - centre_j) inverse_j``.
    norms, bounds : (n_features,)
        Of the columns times ``inverse``, not centred: their Euclidean norms, rounded up; and the
        largest entries of the features as the problem has them.
    factor, lower, upper : (n_features,)
        Of the penalty.
    free : bool
        The intercept is.
    jumps : bool
        The curvature of the loss is not continuous.
    spans : bool
        Features are proven inactive by spans; otherwise all are read at every strength.
    """

    signs: Any
    weights: Any
    centre: Any
    inverse: Any
    norms: Any
    bounds: Any
    factor: Any
    lower: Any
    upper: Any
    free: bool
    jumps: bool
    spans: bool


class Buffers(NamedTuple):
    """Vectors over samples, features and members."""

    scores: Any
    theta: Any
    curved: Any
    bends: Any
    moved: Any
    estimate: Any
    unsure: Any
    members: Any
    lift: Any
    slope: Any
    start: Any
    move: Any
    net: Any


class Strengths(NamedTuple):
    """Strengths, and what was found for each.

    Attributes
    ----------
    l1, l2 : (n_strengths,)
    indptr : (n_strengths + 1,), indices, values : (capacity,)
        Coefficients, compressed by strengths.
    intercepts, gaps, objectives, violations, passes, steps : (n_strengths,)
    """

    l1: Any
    l2: Any
    indptr: Any
    indices: Any
    values: Any
    intercepts: Any
    gaps: Any
    objectives: Any
    violations: Any
    passes: Any
    steps: Any


@njit(cache=True, nogil=True)
def begin(store, phi, terms, slots, span, buffers, counts, levels):  # type: ignore[no-untyped-def]
    """The null model and the inner products of all features there."""
    buffers.scores[:] = 0.0
    levels[INTERCEPT], _, _, _, _, _ = settled(
        phi,
        buffers.scores,
        0.0,
        terms.signs,
        terms.weights,
        buffers.theta,
        buffers.curved,
        terms.free,
        0.0,
        0.0,
    )
    size = math.sqrt(dot(buffers.theta, buffers.theta))
    stores.pull_all(store, buffers.theta, terms.inverse, buffers.estimate)
    counts[PASSES] += 1
    if terms.spans and size > 0.0:
        spans.put(span, 0, buffers.theta, size)
        for j in range(buffers.estimate.size):
            span.products[0, j] = buffers.estimate[j] / size
        counts[REFERENCES] = 1
    largest = 0.0
    for j in range(buffers.estimate.size):
        if terms.factor[j] > 0.0:
            largest = max(largest, abs(buffers.estimate[j]) / terms.factor[j])
    levels[BEFORE] = largest
    levels[SHARE] = 0.0


@njit(cache=True, nogil=True)
def restart(  # type: ignore[no-untyped-def]
    store, phi, terms, slots, buffers, index, values, intercept, strength, counts, levels
):
    """Continue from a solution: of the features in ``index`` the coefficients are ``values``."""
    for s in range(counts[SLOTS]):
        slots.coef[s] = 0.0
    for x in range(index.size):
        j = index[x]
        if slots.slot_of[j] < 0:
            _enter(store, terms, slots, buffers, j, counts, levels)
        s = slots.slot_of[j]
        slots.coef[s] = values[x]
        intercept -= (terms.centre[j] - slots.mean[s]) * terms.inverse[j] * values[x]
    members = np.arange(counts[SLOTS])
    stores.combine(store, slots, members, members.size, slots.coef, terms.inverse, buffers.scores)
    levels[INTERCEPT], _, _, _, _, _ = settled(
        phi,
        buffers.scores,
        intercept,
        terms.signs,
        terms.weights,
        buffers.theta,
        buffers.curved,
        terms.free,
        0.0,
        0.0,
    )
    stores.pull_all(store, buffers.theta, terms.inverse, buffers.estimate)
    counts[PASSES] += 1
    levels[READ] += 1.0
    for s in range(counts[SLOTS]):
        slots.slope[s] = buffers.estimate[slots.feature[s]]
        slots.place[s] = -1
    counts[MEMBERS] = counts[KEPT] = 0
    levels[BEFORE] = strength


@njit(cache=True, nogil=True)
def advance(  # type: ignore[no-untyped-def]
    store, phi, terms, slots, quadratic, span, buffers, strengths, first, last, tol, counts, levels
):
    """Solve the strengths from ``first`` on; the first that is not, and why not."""
    for at in range(first, last):
        code = _solved(
            store, phi, terms, slots, quadratic, span, buffers, strengths, at, tol, counts, levels
        )
        if code != DONE:
            return at, code
    return last, DONE


@njit(cache=True, nogil=True)
def _solved(  # type: ignore[no-untyped-def]
    store, phi, terms, slots, quadratic, span, buffers, strengths, at, tol, counts, levels
):
    """One strength: rounds of Newton's method on the slots and certificates of all features."""
    l1, l2 = strengths.l1[at], strengths.l2[at]
    before = levels[BEFORE]
    rule = max(2.0 * l1 - before, LEAST_RULE * l1) if l1 < before else l1
    wanted = _entering(terms, slots, buffers, rule)
    asked, steps = tol, counts[STEPS]
    reads = levels[READ]
    for _ in range(MAX_ROUNDS):
        if counts[SLOTS] + wanted > slots.feature.size:
            return ROOM
        for x in range(wanted):
            _enter(store, terms, slots, buffers, buffers.unsure[x], counts, levels)
        code = _newton(
            store, phi, terms, slots, quadratic, buffers, l1, l2, rule, asked, counts, levels
        )
        if code != DONE:
            return code
        gap, objective, worst, wanted = _priced(
            store, phi, terms, slots, span, buffers, l1, l2, tol, counts, levels
        )
        if gap <= tol * objective:
            strengths.gaps[at], strengths.objectives[at] = gap, objective
            strengths.violations[at] = worst
            strengths.passes[at] = levels[READ] - reads
            strengths.steps[at] = counts[STEPS] - steps
            levels[BEFORE] = l1
            return _written(terms, slots, strengths, at, counts, levels)
        rule = min(rule, l1)
        if wanted == 0:
            asked *= TIGHTER
    return GAVE_UP


@njit(cache=True, nogil=True)
def _entering(terms, slots, buffers, rule):  # type: ignore[no-untyped-def]
    """Features without a slot whose estimated slope is above the rule, into ``unsure``."""
    count = 0
    for j in range(buffers.estimate.size):
        size = abs(buffers.estimate[j])
        may = slots.slot_of[j] < 0 and size > 0.0 and terms.inverse[j] > 0.0
        if may and size >= rule * terms.factor[j]:
            buffers.unsure[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True)
def _enter(store, terms, slots, buffers, j, counts, levels):  # type: ignore[no-untyped-def]
    s = counts[SLOTS]
    slots.feature[s], slots.slot_of[j] = j, s
    slots.coef[s], slots.slope[s], slots.place[s] = 0.0, buffers.estimate[j], -1
    stores.load(store, slots, s, j, terms.weights, terms.inverse, terms.free)
    counts[SLOTS] = s + 1


@njit(cache=True, nogil=True)
def _newton(  # type: ignore[no-untyped-def]
    store, phi, terms, slots, quadratic, buffers, l1, l2, rule, tol, counts, levels
):
    """Newton steps on the slots until their gap meets the tolerance."""
    k, n, p = counts[SLOTS], buffers.scores.size, slots.slot_of.size
    last, fresh, stepped, halved, objective_before = np.inf, False, False, 0, 0.0
    turn, relative = 0.0, spans.rounding(n)
    for trial in range(MAX_STEPS + MAX_HALVINGS):
        b, slope, _, loss, up, down = settled(
            phi,
            buffers.scores,
            levels[INTERCEPT],
            terms.signs,
            terms.weights,
            buffers.theta,
            buffers.curved,
            terms.free,
            min(last / l1, 1.0) if last < np.inf else 1e-3,
            tol,
        )
        levels[INTERCEPT] = b
        stores.pull(store, slots, k, buffers.theta, terms.inverse)
        levels[READ] += 2.0 * k / p
        worst, gap, objective = _standing(
            phi, terms, slots, k, buffers, b, up, down, l1, l2, loss, relative
        )
        if stepped and objective > objective_before * (1.0 + RISE) and halved < MAX_HALVINGS:
            halved += 1
            _halve(slots, buffers, counts[MEMBERS])
            turn *= 0.5
            levels[INTERCEPT] -= turn
            fresh = False
            continue
        halved = 0
        if gap <= CLAIM * tol * objective:
            return DONE
        if trial >= MAX_STEPS or (fresh and worst >= last and trial > MAX_STEPS // 2):
            return DONE  # the certificate tells
        added = 0
        for s in range(k):
            own = rule * terms.factor[slots.feature[s]]
            if slots.place[s] < 0 and (slots.coef[s] != 0.0 or abs(slots.slope[s]) >= own):
                added += 1
        m = counts[MEMBERS]
        renew = m == 0 or terms.jumps or (trial > 0 and worst > SLOW * last and not fresh)
        renew = renew or added > ADDED + m // 4 or m + added > buffers.members.size
        last = worst
        if renew:
            if not _modelled(
                store, phi, terms, slots, quadratic, buffers, rule, worst / l1, counts, levels
            ):
                return ROOM
            fresh = True
        else:
            if added > 0:
                _append(store, terms, slots, quadratic, buffers, rule, counts, levels)
            fresh = False
        turn = _stepped(
            store, phi, terms, slots, quadratic, buffers, l1, l2, worst, slope, tol, counts, levels
        )
        stepped, objective_before = True, objective
    return DONE


@njit(cache=True, nogil=True)
def _standing(phi, terms, slots, k, buffers, b, up, down, l1, l2, loss, relative):  # type: ignore[no-untyped-def]
    """The largest violation, and gap and objective as far as the slots tell."""
    worst, scale, objective = 0.0, 1.0, loss
    for s in range(k):
        j, w = slots.feature[s], slots.coef[s]
        own, ridge = l1 * terms.factor[j], l2 * terms.factor[j]
        off = violation(ridge * w - slots.slope[s], w, 0.0, own, terms.lower[j], terms.upper[j])
        worst = max(worst, off)
        scale = scale_into_domain(
            scale,
            slots.slope[s],
            relative * terms.norms[j],
            own,
            ridge,
            terms.lower[j],
            terms.upper[j],
        )
        if w != 0.0:
            objective += own * abs(w) + 0.5 * ridge * w * w
    gap = lost(phi, buffers.scores, b, terms.signs, terms.weights, scale * up, scale * down)
    for s in range(k):
        j, w = slots.feature[s], slots.coef[s]
        own, ridge = l1 * terms.factor[j], l2 * terms.factor[j]
        if w != 0.0 or abs(slots.slope[s]) > own:
            gap += feature_term(
                scale * slots.slope[s], 0.0, w, own, ridge, terms.lower[j], terms.upper[j]
            )
    return worst, gap, objective


@njit(cache=True, nogil=True)
def _halve(slots, buffers, m):  # type: ignore[no-untyped-def]
    """Take back half of the last step."""
    for i in range(buffers.moved.size):
        buffers.moved[i] *= 0.5
        buffers.scores[i] -= buffers.moved[i]
    for x in range(m):
        buffers.move[x] *= 0.5
        if buffers.move[x] != 0.0:
            slots.coef[buffers.members[x]] -= buffers.move[x]


@njit(cache=True, nogil=True)
def _modelled(store, phi, terms, slots, quadratic, buffers, rule, far, counts, levels):  # type: ignore[no-untyped-def]
    """A new quadratic model of the slots that count; whether there is room for them."""
    k = counts[SLOTS]
    for x in range(counts[MEMBERS]):
        slots.place[buffers.members[x]] = -1
    counts[MEMBERS] = counts[KEPT] = 0
    least = rule * (KEPT_OF_FEW if terms.norms.size <= FEW else KEPT_SLOPE)
    m = 0
    for s in range(k):
        if slots.coef[s] != 0.0 or abs(slots.slope[s]) >= least * terms.factor[slots.feature[s]]:
            if m == buffers.members.size:
                return False
            buffers.members[m] = s
            m += 1
    for x in range(m):
        slots.place[buffers.members[x]] = x
    share = _share(terms, far, levels)
    total = 0.0
    for i in range(buffers.bends.size):
        bend = buffers.curved[i]
        if bend == 0.0 and share > 0.0 and terms.weights[i] > 0.0:
            t = terms.signs[i] * (buffers.scores[i] + levels[INTERCEPT])
            bend = terms.weights[i] * share * phi.majorant(t)
        buffers.bends[i] = bend
        total += bend
    levels[TOTAL] = total if terms.free else 0.0
    stores.gram(
        store,
        slots,
        buffers.members,
        m,
        buffers.bends,
        levels[TOTAL],
        terms.inverse,
        quadratic.hessian,
    )
    levels[READ] += m * m / slots.slot_of.size
    levels[LARGEST] = 0.0
    for x in range(m):
        levels[LARGEST] = max(levels[LARGEST], quadratic.hessian[x, x])
    counts[MEMBERS] = m
    counts[MODELS] += 1
    return True


@njit(cache=True, nogil=True)
def _share(terms, far, levels):  # type: ignore[no-untyped-def]
    """The weight of the majoriser where the loss is flat."""
    share = min(levels[SHARE], far)
    return share if terms.jumps and share >= LEAST_SHARE else 0.0


@njit(cache=True, nogil=True)
def _append(store, terms, slots, quadratic, buffers, rule, counts, levels):  # type: ignore[no-untyped-def]
    """Slots that have come to count, as further members of the model."""
    for s in range(counts[SLOTS]):
        own = rule * terms.factor[slots.feature[s]]
        if slots.place[s] < 0 and (slots.coef[s] != 0.0 or abs(slots.slope[s]) >= own):
            m = counts[MEMBERS]
            buffers.members[m], slots.place[s] = s, m
            counts[MEMBERS] = m + 1
            stores.cross(
                store,
                slots,
                buffers.members,
                m + 1,
                buffers.bends,
                levels[TOTAL],
                terms.inverse,
                quadratic.hessian,
            )


@njit(cache=True, nogil=True)
def _stepped(  # type: ignore[no-untyped-def]
    store, phi, terms, slots, quadratic, buffers, l1, l2, worst, slope, tol, counts, levels
):
    """A step to the minimum of the model; the change of the intercept."""
    m, net = counts[MEMBERS], buffers.net
    damping = levels[LARGEST] * (
        FAR_DAMPING * min(1.0, worst / l1) + 10.0 * DAMPING if terms.jumps else DAMPING
    )
    for x in range(m):
        s = buffers.members[x]
        j = slots.feature[s]
        ridge = l2 * terms.factor[j]
        if buffers.lift[x] != ridge + damping:
            counts[KEPT] = min(counts[KEPT], 0)
        buffers.lift[x] = ridge + damping
        buffers.start[x] = buffers.move[x] = slots.coef[s]
        buffers.slope[x] = ridge * slots.coef[s] - slots.slope[s]
        net.l1[x], net.l2[x] = l1 * terms.factor[j], ridge
        net.lower[x], net.upper[x] = terms.lower[j], terms.upper[j]
    own = Net(net.l1[:m], net.l2[:m], net.lower[:m], net.upper[:m])
    target = max(FORCING * worst, FINE_FORCING * tol * l1)
    counts[KEPT] = quadratic_minimum(
        quadratic, buffers.lift[:m], buffers.slope[:m], buffers.move[:m], own, target, counts[KEPT]
    )
    turn = slope / levels[TOTAL] if levels[TOTAL] > 0.0 else 0.0
    for x in range(m):
        buffers.move[x] -= buffers.start[x]
        if buffers.move[x] != 0.0 and levels[TOTAL] > 0.0:
            turn -= slots.average[x] * buffers.move[x]
    stores.combine(store, slots, buffers.members, m, buffers.move, terms.inverse, buffers.moved)
    step = 1.0
    if terms.jumps:
        step = _searched(phi, terms, buffers, m, turn, levels)
    for x in range(m):
        if buffers.move[x] != 0.0:
            s, move = buffers.members[x], step * buffers.move[x]
            end = buffers.start[x] + move
            slots.coef[s] = 0.0 if abs(end) <= NEAR_ZERO * abs(move) else end
            buffers.move[x] = slots.coef[s] - buffers.start[x]
    for i in range(buffers.moved.size):
        buffers.moved[i] *= step
        buffers.scores[i] += buffers.moved[i]
    turn *= step
    levels[INTERCEPT] += turn
    counts[STEPS] += 1
    return turn


@njit(cache=True, nogil=True)
def _searched(phi, terms, buffers, m, turn, levels):  # type: ignore[no-untyped-def]
    """An exact line search, and the weight of the majoriser that its result suggests."""
    step = exact_step(
        phi,
        buffers.scores + levels[INTERCEPT],
        buffers.moved + turn,
        terms.signs,
        terms.weights,
        buffers.start[:m],
        buffers.move[:m],
        buffers.net.l1[:m],
        buffers.net.l2[:m],
        0.0,
        0.0,
        SEARCH_TOLERANCE,
        SEARCH_STEPS,
    )
    share = levels[SHARE]
    if step >= LONG_STEP:
        levels[SHARE] = SEARCH_TOLERANCE * share
    elif step < SHORT_STEP:
        levels[SHARE] = min(1.0, 3.0 * max(share, 3.0 * LEAST_SHARE))
    return min(step, _room(buffers, m))


@njit(cache=True, nogil=True)
def _room(buffers, m):  # type: ignore[no-untyped-def]
    """How often the step can be taken between the bounds."""
    room = math.inf
    for x in range(m):
        move = buffers.move[x]
        bound = buffers.net.upper[x] if move > 0.0 else buffers.net.lower[x]
        if move != 0.0 and abs(bound) < math.inf:
            room = min(room, (bound - buffers.start[x]) / move)
    return max(room, 0.0)


@njit(cache=True, nogil=True)
def _priced(store, phi, terms, slots, span, buffers, l1, l2, tol, counts, levels):  # type: ignore[no-untyped-def]
    """The certified gap with all features, the objective, the violation, and who has to enter."""
    k, n, p = counts[SLOTS], buffers.scores.size, slots.slot_of.size
    members = np.arange(k)
    stores.combine(store, slots, members, k, slots.coef, terms.inverse, buffers.scores)  # afresh
    b, _, _, loss, up, down = settled(
        phi,
        buffers.scores,
        levels[INTERCEPT],
        terms.signs,
        terms.weights,
        buffers.theta,
        buffers.curved,
        terms.free,
        0.0,
        tol,
    )
    levels[INTERCEPT] = b
    relative = spans.rounding(n) * math.sqrt(dot(buffers.theta, buffers.theta))
    count = 0
    if k < p:
        count = _unsure(store, terms, slots, span, buffers, l1, counts, levels, relative)
    stores.pull(store, slots, k, buffers.theta, terms.inverse)
    for s in range(k):
        buffers.estimate[slots.feature[s]] = slots.slope[s]
    gap, objective = certified_gap(
        phi,
        buffers.scores,
        b,
        buffers.theta,
        up,
        down,
        terms,
        slots,
        k,
        buffers.unsure,
        count,
        buffers.estimate,
        relative,
        l1,
        l2,
        loss,
    )
    worst, wanted = 0.0, 0
    for s in range(k):
        j, w = slots.feature[s], slots.coef[s]
        worst = max(
            worst,
            violation(
                l2 * terms.factor[j] * w - slots.slope[s],
                w,
                0.0,
                l1 * terms.factor[j],
                terms.lower[j],
                terms.upper[j],
            ),
        )
    for x in range(count):
        j = buffers.unsure[x]
        off = violation(
            -buffers.estimate[j], 0.0, 0.0, l1 * terms.factor[j], terms.lower[j], terms.upper[j]
        )
        worst = max(worst, off)
        if off > 0.0:
            buffers.unsure[wanted] = j
            wanted += 1
    return gap, objective, worst, wanted


@njit(cache=True, nogil=True)
def _unsure(store, terms, slots, span, buffers, l1, counts, levels, relative):  # type: ignore[no-untyped-def]
    """Features without a slot that are not proven inactive; their inner products are computed."""
    p = slots.slot_of.size
    if not terms.spans:
        stores.pull_all(store, buffers.theta, terms.inverse, buffers.estimate)
        counts[PASSES] += 1
        levels[READ] += 1.0
        return _beyond(terms, slots, buffers, l1, relative)
    left, radius = spans.bounded(span, counts[REFERENCES], buffers.theta)
    spans.estimate(span, counts[REFERENCES], buffers.estimate)
    count = _beyond(terms, slots, buffers, l1, radius)
    if count > p // 12 and left > 0.0:
        if counts[REFERENCES] == span.points.shape[0]:
            counts[REFERENCES] = spans.compress(span, counts[REFERENCES])
            left, radius = spans.bounded(span, counts[REFERENCES], buffers.theta)
        c = counts[REFERENCES]
        spans.put(span, c, span.rest, left)
        stores.pull_all(store, span.points[c], terms.inverse, span.products[c])
        counts[PASSES] += 1
        levels[READ] += 1.0
        counts[REFERENCES] = c + 1
        left, radius = spans.bounded(span, c + 1, buffers.theta)
        spans.estimate(span, c + 1, buffers.estimate)
        count = _beyond(terms, slots, buffers, l1, radius)
    for x in range(count):
        j = buffers.unsure[x]
        buffers.estimate[j] = terms.inverse[j] * stores.one(store, j, buffers.theta)
    levels[READ] += count / p
    return count


@njit(cache=True, nogil=True)
def _beyond(terms, slots, buffers, l1, radius):  # type: ignore[no-untyped-def]
    """Features without a slot whose inner product may be above its strength, into ``unsure``."""
    count = 0
    for j in range(buffers.estimate.size):
        reach = abs(buffers.estimate[j]) + radius * terms.norms[j]
        if reach > l1 * terms.factor[j] and slots.slot_of[j] < 0:
            buffers.unsure[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True)
def _written(terms, slots, strengths, at, counts, levels):  # type: ignore[no-untyped-def]
    """Keep what was found, in the coordinates of the problem."""
    place, intercept = strengths.indptr[at], levels[INTERCEPT]
    for s in range(counts[SLOTS]):
        if slots.coef[s] != 0.0:
            if place == strengths.indices.size:
                return ROOM
            j = slots.feature[s]
            strengths.indices[place], strengths.values[place] = j, slots.coef[s]
            intercept += (terms.centre[j] - slots.mean[s]) * terms.inverse[j] * slots.coef[s]
            place += 1
    strengths.indptr[at + 1] = place
    strengths.intercepts[at] = intercept
    return DONE
