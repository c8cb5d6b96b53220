"""The quadratic model of the objective: its members and its Hessian."""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import gram, loss_passes
from proxmargin.compiled.solvers.nets import open_slope
from proxmargin.compiled.solvers.newton import used_weight

KEPT_SLOPE = 0.95  # share of the threshold below which a new model leaves a candidate out
FEW = 512  # number of features up to which this share is `KEPT_OF_FEW`
KEPT_OF_FEW = 0.6
CHANGED = 0.25  # share of changed curvatures above which a model is formed anew


@njit(cache=True, nogil=True, allocates=False)
def form(data, candidates, model, point, threshold, relative_violation):
    """Form a new model of the candidates above the threshold; False if there is no room for them.

    Parameters
    ----------
    relative_violation : float
        Largest weight of the majoriser where the loss has no curvature.
    """
    if not _choose_members(data, candidates, model, threshold):
        return False
    total, _ = _update_curvatures(data, model, point, relative_violation)
    model.scalars.total = total if data.free else 0.0
    gram.form(data.store, candidates, model, data.inverse)
    _measure(model)
    model.scalars.formed += 1
    return True


@njit(cache=True, nogil=True, allocates=False)
def revise(data, candidates, model, point, relative_violation):
    """Bring the curvatures of the model up to date; return the share that has changed.

    It is negative if the model has to be formed anew. Curvatures that jump are constant between the
    kinks of the loss: from step to step few change.
    """
    before, n = model.scalars.total, model.curvatures.size
    total, changed = _update_curvatures(data, model, point, relative_violation)
    if changed > CHANGED * n or (data.free and min(before, total) <= 0.0):
        return -1.0
    if changed > 0:
        model.scalars.total = total if data.free else 0.0
        gram.revise(data.store, candidates, model, before, data.inverse)
        model.scalars.factored = 0
        _measure(model)
    return changed / n


@njit(cache=True, nogil=True, allocates=False)
def _measure(model):
    """Set the largest diagonal entry of the Hessian."""
    largest = 0.0
    for x in range(model.scalars.size):
        largest = max(largest, model.quadratic.hessian[x, x])
    model.scalars.largest = largest


@njit(cache=True, nogil=True, allocates=False)
def _choose_members(data, candidates, model, threshold):
    """Choose the members; False if there is no room for them."""
    members = model.members
    for x in range(model.scalars.size):
        candidates.member[members[x]] = -1
    model.scalars.size = model.scalars.factored = 0
    least = threshold * (KEPT_OF_FEW if data.norms.size <= FEW else KEPT_SLOPE)
    m = 0
    for s in range(candidates.scalars.count):
        if candidates.coef[s] != 0.0 or _is_above(data, candidates, s, least):
            if m == members.size:
                return False
            members[m] = s
            m += 1
    for x in range(m):
        candidates.member[members[x]] = x
    model.scalars.size = m
    return True


@njit(cache=True, nogil=True, allocates=False)
def _update_curvatures(data, model, point, relative_violation):
    """Set the curvatures of the samples in the model, and their changes; return the sum of the
    former, and the number of the latter that are not zero.

    Without any curvature, as with two classes of equal size at zero coefficients, the model has no
    minimum: it is then the majoriser.
    """
    weight = used_weight(model.scalars.majorant, relative_violation) if data.jumps else 0.0
    if data.jumps and _is_flat(point.curvatures):
        model.scalars.majorant = weight = 1.0
    now = point.curvatures
    if weight > 0.0:
        now = model.change
        loss_passes.majorised(data, point, weight, now)
    total, changed = 0.0, 0
    for i in range(now.size):
        curvature = now[i]
        model.change[i] = curvature - model.curvatures[i]
        changed += model.change[i] != 0.0
        model.curvatures[i] = curvature
        total += curvature
    return total, changed


@njit(cache=True, nogil=True, allocates=False)
def _is_flat(curvature):
    i = 0
    while i < curvature.size and curvature[i] == 0.0:
        i += 1
    return i == curvature.size


@njit(cache=True, nogil=True, allocates=False)
def _is_above(data, candidates, s, threshold):
    """Whether the slope of a candidate reaches the threshold where its bounds allow a move."""
    j = candidates.feature[s]
    slope = open_slope(candidates.slope[s], data.lower[j], data.upper[j])
    return slope >= threshold * data.factor[j]


@njit(cache=True, nogil=True, allocates=False)
def _is_newcomer(data, candidates, s, threshold):
    """Whether a candidate outside the model now is nonzero or above the threshold."""
    if candidates.member[s] >= 0:
        return False
    return candidates.coef[s] != 0.0 or _is_above(data, candidates, s, threshold)


@njit(cache=True, nogil=True, allocates=False)
def newcomers(data, candidates, threshold):
    """The number of candidates outside the model that now are nonzero or above the threshold."""
    count = 0
    for s in range(candidates.scalars.count):
        if _is_newcomer(data, candidates, s, threshold):
            count += 1
    return count


@njit(cache=True, nogil=True, allocates=False)
def append(data, candidates, model, threshold):
    """Append the `newcomers` to the model."""
    for s in range(candidates.scalars.count):
        if _is_newcomer(data, candidates, s, threshold):
            m = model.scalars.size
            model.members[m], candidates.member[s] = s, m
            model.scalars.size = m + 1
            gram.append(data.store, candidates, model, data.inverse)
