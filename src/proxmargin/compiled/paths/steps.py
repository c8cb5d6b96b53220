"""A step towards the minimum of the quadratic model, its length, and its correction.

The path is followed by a predictor and correctors. At strength ``l_k`` the first Newton step, from
the solution ``w_{k-1}``, is the predictor; its result is ``p_k``. The steps after it are the
correctors, which end at ``w_k``. The error of the predictor,

    e_k = w_k - p_k,

has two parts: the model's Hessian is that of an earlier strength, and the path is curved. Over
steps of similar length both are smooth along the path, so that the error of the next predictor is
known in advance. With the relative step lengths ``h_k = 1 - l_k / l_{k-1}``, the predictor is
replaced by

    p_k + (h_k / h_{k-1}) e_{k-1},

which takes no evaluation and saves a corrector at most strengths. The ratio is linear in h, as the
error of an old Hessian is; that of the curvature would be quadratic, but on the usual geometric
grids the ratio is one. The intercept is corrected in the same way.

A coefficient is corrected only where predictor and solution are both nonzero at the strength
before, and where the corrected value keeps its sign and its bounds: otherwise a kink of the path
lies between, and the error on its other side says nothing. Corrections change where Newton's method
starts, not what it converges to.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import loss_passes
from proxmargin.compiled.paths.dual_point import FINE, recompute_scores
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.paths.products import combine
from proxmargin.compiled.products.vectors import add
from proxmargin.compiled.rounding import MIN_DAMPING
from proxmargin.compiled.solvers.nets import Net, largest_step
from proxmargin.compiled.solvers.newton import SEARCH_TOLERANCE, ZERO_COEFFICIENT, next_weight
from proxmargin.compiled.solvers.quadratic_model import quadratic_minimum

FORCING = 0.05  # accuracy of the model's minimum, relative to the violation
# losses whose curvature jumps
MOST_UPDATES = 8  # steps whose changes, known from the line search, are added to the scores
FAR_DAMPING = 1e-4  # damping per unit of relative violation


@njit(nogil=True, allocates=False, forceinline=True)
def step(path, target, worst):
    """Step to the minimum of the model; return the change of the intercept.

    Parameters
    ----------
    worst : float
        The largest violation of optimality.
    """
    data, model, scalars = path.data, path.model, path.model.scalars
    m, net = scalars.size, path.model.net
    _set_damping(data, scalars, target, worst)
    _set_gradient(data, path.candidates, model, target)
    scalars.factored = quadratic_minimum(
        model.quadratic,
        model.diagonal[:m],
        model.gradient[:m],
        model.step[:m],
        Net(net.l1[:m], net.l2[:m], net.lower[:m], net.upper[:m]),
        max(FORCING * worst, FINE * target.tol * target.l1),
        scalars.factored,
    )
    total = scalars.total
    intercept_step = path.point.scalars.dual_sum / total if total > 0.0 else 0.0
    for x in range(m):
        model.step[x] -= model.start[x]
        if model.step[x] != 0.0 and total > 0.0:
            intercept_step -= model.mean[x] * model.step[x]
    path.scalars.steps += 1
    length = _line_search(path, intercept_step) if data.jumps else 1.0
    return _move(path, target, length, intercept_step)


@njit(nogil=True, allocates=False)
def _set_damping(data, scalars, target, worst):
    """Set ridge and damping of the model's Hessian; a change invalidates its factor."""
    damping = MIN_DAMPING
    if data.jumps:
        damping = FAR_DAMPING * min(1.0, worst / target.l1) + 10.0 * MIN_DAMPING
    damping *= scalars.largest
    if scalars.ridge != target.l2 or scalars.damping != damping:
        scalars.ridge, scalars.damping, scalars.factored = target.l2, damping, 0


@njit(nogil=True, allocates=False)
def _set_gradient(data, candidates, model, target):
    """Set the model's gradient and penalties at the present coefficients."""
    net, scalars = model.net, model.scalars
    for x in range(scalars.size):
        s = model.members[x]
        j = candidates.feature[s]
        l2 = target.l2 * data.factor[j]
        model.diagonal[x] = scalars.ridge * data.factor[j] + scalars.damping
        model.start[x] = model.step[x] = candidates.coef[s]
        model.gradient[x] = l2 * candidates.coef[s] - candidates.correlation[s]
        net.l1[x], net.l2[x] = target.l1 * data.factor[j], l2
        net.lower[x], net.upper[x] = data.lower[j], data.upper[j]


@njit(nogil=True, allocates=False, forceinline=True)
def _move(path, target, length, intercept_step):
    """Move coefficients, scores and intercept; return the move of the intercept."""
    data, candidates, model, point = path.data, path.candidates, path.model, path.point
    is_exact, bound = True, 0.0
    for x in range(model.scalars.size):
        if model.step[x] != 0.0:
            s, move = model.members[x], length * model.step[x]
            end = model.start[x] + move
            if abs(end) <= ZERO_COEFFICIENT * abs(move):
                is_exact = is_exact and end == 0.0
                end = 0.0
            candidates.coef[s] = end
            model.step[x] = end - model.start[x]
            bound += abs(model.step[x]) * data.bounds[candidates.feature[s]]
    intercept_step *= length
    if not data.jumps and path.scalars.is_first:
        intercept_step = _correct(path, target.l1, intercept_step)
    if data.jumps and is_exact and point.scalars.updates < MOST_UPDATES:
        add(length, point.change, point.scores)
        point.scalars.updates += 1
        point.scalars.rounding += rounding(model.scalars.size) * bound
    else:
        recompute_scores(data, candidates, point)
    point.scalars.intercept += intercept_step
    return intercept_step


@njit(nogil=True, allocates=False)
def halve(data, candidates, model, point, intercept_step):
    """Take back half of the last step; return the remaining move of the intercept."""
    for x in range(model.scalars.size):
        model.step[x] *= 0.5
        if model.step[x] != 0.0:
            candidates.coef[model.members[x]] -= model.step[x]
    recompute_scores(data, candidates, point)
    intercept_step *= 0.5
    point.scalars.intercept -= intercept_step
    return intercept_step


@njit(nogil=True)
def _line_search(path, intercept_step):
    """The step length; it also sets the weight of the majoriser.

    One if the slope along the step falls there to `SEARCH_TOLERANCE` of its first value, in one
    pass over the samples; otherwise that of an exact line search.
    """
    data, model, point, m = path.data, path.model, path.point, path.model.scalars.size
    net, length = model.net, 1.0
    members = model.members
    combine(data.store, path.candidates, members, m, model.step, data.inverse, point.change)
    if not _is_level(data, path.candidates, model, point, intercept_step):
        length = loss_passes.step_length(
            data.loss,
            point.scores + point.scalars.intercept,
            point.change + intercept_step,
            data.signs,
            data.weights,
            model.start[:m],
            model.step[:m],
            net.l1[:m],
            net.l2[:m],
            SEARCH_TOLERANCE,
        )
    model.scalars.majorant = next_weight(model.scalars.majorant, length)
    return min(length, largest_step(net, model.start, model.step, m))


@njit(nogil=True, allocates=False)
def _is_level(data, candidates, model, point, intercept_step):
    """Whether the objective is level at the end of the step, relative to its start.

    The slope is two-sided where a coefficient ends at zero. It may be level at a higher objective:
    then the step is halved later.
    """
    net, first, left, right = model.net, -point.scalars.dual_sum * intercept_step, 0.0, 0.0
    for x in range(model.scalars.size):
        start, move = model.start[x], model.step[x]
        if move != 0.0:
            end, jump = start + move, net.l1[x] * abs(move)
            first += (net.l2[x] * start - candidates.correlation[model.members[x]]) * move
            first += jump if start * move >= 0.0 else -jump
            at_zero = abs(end) <= ZERO_COEFFICIENT * abs(move)
            left += net.l2[x] * end * move + (jump if end * move > 0.0 and not at_zero else -jump)
            right += net.l2[x] * end * move + (jump if end * move > 0.0 or at_zero else -jump)
    loss = -loss_passes.descent_along(data, point, intercept_step)
    enough = -SEARCH_TOLERANCE * first
    return loss + left <= enough and loss + right >= -enough


@njit(nogil=True, allocates=False)
def _correct(path, l1, intercept_step):
    """Add the expected error to the predictor step just taken; return that of the intercept.

    Parameters
    ----------
    intercept_step : float
        The predictor's step of the intercept, which is still to be added to it.
    """
    candidates, model, scalars = path.candidates, path.model, path.scalars
    net, ratio = model.net, _ratio(scalars, l1)
    scalars.is_first = False
    for s in range(candidates.scalars.count):
        candidates.predicted[s] = candidates.coef[s]
    scalars.predicted = path.point.scalars.intercept + intercept_step
    for x in range(model.scalars.size):
        s = model.members[x]
        end = candidates.coef[s] + ratio * candidates.error[s]
        if candidates.coef[s] * end > 0.0 and net.lower[x] <= end <= net.upper[x]:
            candidates.coef[s] = end
            model.step[x] = end - model.start[x]
    return intercept_step + ratio * scalars.error


@njit(nogil=True, allocates=False)
def _ratio(scalars, l1):
    """``h_k / h_{k-1}``; 0 beyond 1.5, or there is no strength before to learn from."""
    length = 1.0 - l1 / scalars.strength if l1 < scalars.strength else 0.0
    ratio = length / scalars.length if scalars.length > 0.0 else 0.0
    scalars.length = length
    return ratio if ratio <= 1.5 else 0.0


@njit(nogil=True, allocates=False)
def learn_error(candidates, intercept, scalars):
    """Store the error of the predictor, when the strength is solved."""
    if scalars.is_first:  # the start was within the tolerance: no step was taken
        forget_error(candidates, scalars)
        return
    for s in range(candidates.scalars.count):
        both = candidates.predicted[s] != 0.0 and candidates.coef[s] != 0.0
        candidates.error[s] = candidates.coef[s] - candidates.predicted[s] if both else 0.0
    scalars.error = intercept - scalars.predicted


@njit(nogil=True, allocates=False)
def forget_error(candidates, scalars):
    """Set the expected errors to zero: the next predictor is taken as it is."""
    for s in range(candidates.scalars.count):
        candidates.error[s] = 0.0
    scalars.error = 0.0
