"""The quadratic model of the objective: its members and its Hessian.

The Hessian is the Gram matrix of the members, weighted by the curvatures. It is formed whole, gains
a member, or follows a change of few curvatures. The intercept is eliminated: columns are centred by
their means weighted by curvature.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import loss_passes
from proxmargin.compiled.paths.products import all_products, dense_products, product
from proxmargin.compiled.products.columns import add_outer
from proxmargin.compiled.products.vectors import dot
from proxmargin.compiled.solvers.nets import open_correlation
from proxmargin.compiled.solvers.newton import used_weight

KEPT_SLOPE = 0.95  # share of the threshold below which a new model leaves a candidate out
BLOCK = 1 << 14  # entries of weighted rows held at a time for a Gram matrix, at least 64 rows
CHANGED = 0.25  # share of changed curvatures above which a model is formed anew


@njit(nogil=True, allocates=False)
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
    _form_hessian(data.store, candidates, model, data.inverse)
    _measure(model)
    model.scalars.formed += 1
    return True


@njit(nogil=True, allocates=False)
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
        _revise_hessian(data.store, candidates, model, before, data.inverse)
        model.scalars.factored = 0
        _measure(model)
    return changed / n


@njit(nogil=True, allocates=False)
def _measure(model):
    """Set the largest diagonal entry of the Hessian."""
    largest = 0.0
    for x in range(model.scalars.size):
        largest = max(largest, model.quadratic.hessian[x, x])
    model.scalars.largest = largest


@njit(nogil=True, allocates=False)
def _choose_members(data, candidates, model, threshold):
    """Choose the members; False if there is no room for them."""
    members = model.members
    for x in range(model.scalars.size):
        candidates.member[members[x]] = -1
    model.scalars.size = model.scalars.factored = 0
    least = KEPT_SLOPE * threshold
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


@njit(nogil=True, allocates=False)
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


@njit(nogil=True, allocates=False)
def _is_flat(curvature):
    i = 0
    while i < curvature.size and curvature[i] == 0.0:
        i += 1
    return i == curvature.size


@njit(nogil=True, allocates=False)
def _is_above(data, candidates, s, threshold):
    """Whether a candidate's correlation reaches the threshold where its bounds allow a move."""
    j = candidates.feature[s]
    correlation = open_correlation(candidates.correlation[s], data.lower[j], data.upper[j])
    return correlation >= threshold * data.factor[j]


@njit(nogil=True, allocates=False)
def _is_newcomer(data, candidates, s, threshold):
    """Whether a candidate outside the model now is nonzero or above the threshold."""
    if candidates.member[s] >= 0:
        return False
    return candidates.coef[s] != 0.0 or _is_above(data, candidates, s, threshold)


@njit(nogil=True, allocates=False)
def newcomers(data, candidates, threshold):
    """The number of candidates outside the model that now are nonzero or above the threshold."""
    count = 0
    for s in range(candidates.scalars.count):
        if _is_newcomer(data, candidates, s, threshold):
            count += 1
    return count


@njit(nogil=True, allocates=False)
def append(data, candidates, model, threshold):
    """Append the `newcomers` to the model."""
    for s in range(candidates.scalars.count):
        if _is_newcomer(data, candidates, s, threshold):
            m = model.scalars.size
            model.members[m], candidates.member[s] = s, m
            model.scalars.size = m + 1
            _append_to_hessian(data.store, candidates, model, data.inverse)


@njit(nogil=True, allocates=False)
def _form_hessian(store, candidates, model, inverse):
    """Set the Hessian and the means of the members."""
    if store.is_sparse:
        _form_sparse(store.sparse, candidates, model, inverse)
    elif store.copies:
        _form_copied(candidates, model)
    else:
        _form_by_blocks(store, candidates, model, inverse)


@njit(nogil=True)
def _form_copied(candidates, model):
    m, total, hessian = model.scalars.size, model.scalars.total, model.quadratic.hessian
    for x in range(m):
        column, row = candidates.columns[model.members[x]], model.weighted[x]
        mean = dot(column, model.curvatures) / total if total > 0.0 else 0.0
        model.mean[x] = mean
        for i in range(row.size):
            row[i] = np.sqrt(model.curvatures[i]) * (column[i] - mean)
    rows = model.weighted[:m]
    whole = np.dot(rows, rows.T)
    for x in range(m):
        for z in range(m):
            hessian[x, z] = whole[x, z]


@njit(nogil=True)
def _form_by_blocks(store, candidates, model, inverse):
    m, total, hessian = model.scalars.size, model.scalars.total, model.quadratic.hessian
    curvature, n = model.curvatures, model.curvatures.size
    means = np.zeros(m)
    if total > 0.0:
        sums = np.empty(inverse.size)
        dense_products(store, curvature, sums)
        for x in range(m):
            means[x] = sums[candidates.feature[model.members[x]]] / total
    hessian[:m, :m] = 0.0
    height = _height(n, m)
    block = np.empty((height, m))
    for start in range(0, n, height):
        used = 0
        for i in range(start, min(start + height, n)):
            if curvature[i] != 0.0:
                root = np.sqrt(curvature[i])
                for x in range(m):
                    j = candidates.feature[model.members[x]]
                    value = store.lines[i, j] if store.by_rows else store.lines[j, i]
                    block[used, x] = root * (value - means[x])
                used += 1
        part = block[:used]
        _add_matrix(np.dot(part.T, part), hessian)
    for x in range(m):
        scale = inverse[candidates.feature[model.members[x]]]
        model.mean[x] = means[x] * scale
        for z in range(m):
            hessian[x, z] *= scale
            hessian[z, x] *= scale


@njit(nogil=True, allocates=False)
def _height(n, m):
    """The rows of a block."""
    return max(64, min(n, BLOCK // max(m, 1) + 1))


@njit(nogil=True, allocates=False)
def _add_matrix(more, out):
    for x in range(more.shape[0]):
        for z in range(more.shape[0]):
            out[x, z] += more[x, z]


@njit(nogil=True)
def _form_sparse(columns, candidates, model, inverse):
    m, total, hessian = model.scalars.size, model.scalars.total, model.quadratic.hessian
    hessian[:m, :m] = 0.0
    sums = np.zeros(m)
    features = candidates.feature[model.members[:m]]
    add_outer(columns, features, model.curvatures, inverse, hessian, sums)
    for x in range(m):
        model.mean[x] = sums[x] / total if total > 0.0 else 0.0
    for x in range(m):
        for z in range(x + 1):
            hessian[x, z] -= sums[x] * model.mean[z]
            hessian[z, x] = hessian[x, z]


@njit(nogil=True)
def _append_to_hessian(store, candidates, model, inverse):
    """Set the row and the column of the Hessian, and the mean, of the last member."""
    m, total, curvature = model.scalars.size, model.scalars.total, model.curvatures
    last, hessian = m - 1, model.quadratic.hessian
    if store.copies:
        column, row = candidates.columns[model.members[last]], model.weighted[last]
        mean = dot(column, curvature) / total if total > 0.0 else 0.0
        model.mean[last] = mean
        for i in range(row.size):
            row[i] = curvature[i] * (column[i] - mean)  # sum zero: the others need no centring
        for x in range(m):
            hessian[last, x] = dot(row, candidates.columns[model.members[x]])
            hessian[x, last] = hessian[last, x]
        return
    j = candidates.feature[model.members[last]]
    row, sum_of_row = np.zeros(curvature.size), 0.0
    if store.is_sparse:
        columns = store.sparse
        for at in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
            i = columns.indices[at]
            row[i] = curvature[i] * columns.data[at]
            sum_of_row += row[i]
    else:
        for i in range(curvature.size):
            row[i] = curvature[i] * (store.lines[i, j] if store.by_rows else store.lines[j, i])
            sum_of_row += row[i]
    mean = sum_of_row / total if total > 0.0 else 0.0
    model.mean[last] = mean * inverse[j]
    if store.is_sparse:
        for x in range(m):
            other = candidates.feature[model.members[x]]
            value = inverse[j] * inverse[other] * product(store, other, row)
            hessian[last, x] = value - model.mean[x] * sum_of_row * inverse[j]
            hessian[x, last] = hessian[last, x]
        return
    for i in range(curvature.size):
        row[i] -= curvature[i] * mean  # sum zero: the other columns need no centring
    sums = np.empty(inverse.size)
    all_products(store, row, inverse, sums)
    for x in range(m):
        hessian[last, x] = inverse[j] * sums[candidates.feature[model.members[x]]]
        hessian[x, last] = hessian[last, x]


@njit(nogil=True, allocates=False)
def _revise_hessian(store, candidates, model, before, inverse):
    """The Hessian and the means after some of the curvatures have changed.

    With the centred matrix H, the means c and the total T of the former curvatures,

        S = H + sum_i change_i (x_i - c) (x_i - c)',   h = sum_i change_i (x_i - c),

    the new matrix is ``S - h h' / T_new`` and the new means are ``c + h / T_new``: only samples
    with a change are read.

    Parameters
    ----------
    before : float
        Total of the former curvatures; zero without intercept.
    """
    if store.is_sparse:
        _revise_sparse(store.sparse, candidates, model, before, inverse)
    else:
        _revise_dense(store, candidates, model, inverse)


@njit(nogil=True)
def _revise_sparse(columns, candidates, model, before, inverse):
    m, after = model.scalars.size, model.scalars.total
    hessian, mean = model.quadratic.hessian, model.mean
    sums = np.zeros(m)
    features = candidates.feature[model.members[:m]]
    add_outer(columns, features, model.change, inverse, hessian, sums)
    more, share = after - before, 1.0 / after if after > 0.0 else 0.0
    for x in range(m):
        centred = sums[x] - more * mean[x]
        for z in range(x + 1):
            hessian[x, z] -= sums[x] * mean[z] + mean[x] * (sums[z] - more * mean[z])
            hessian[x, z] -= share * centred * (sums[z] - more * mean[z])
            hessian[z, x] = hessian[x, z]
    for x in range(m):
        mean[x] += share * (sums[x] - more * mean[x])


@njit(nogil=True)
def _revise_dense(store, candidates, model, inverse):
    m, after = model.scalars.size, model.scalars.total
    hessian, mean = model.quadratic.hessian, model.mean
    n, used, height = model.change.size, 0, _height(model.change.size, m)
    rows, weighted, sums = np.empty((height, m)), np.empty((height, m)), np.zeros(m)
    for i in range(n):
        if model.change[i] != 0.0:
            for x in range(m):
                value = _entry(store, candidates, model.members[x], i, inverse) - mean[x]
                rows[used, x], weighted[used, x] = value, model.change[i] * value
                sums[x] += weighted[used, x]
            used += 1
        if used == height or (used > 0 and i == n - 1):
            _add_matrix(np.dot(weighted[:used].T, rows[:used]), hessian)
            used = 0
    if after > 0.0:
        for x in range(m):
            mean[x] += sums[x] / after
            for z in range(m):
                hessian[x, z] -= sums[x] * sums[z] / after


@njit(nogil=True, allocates=False)
def _entry(store, candidates, s, i, inverse):
    """The feature of candidate s at sample i."""
    if store.copies:
        return candidates.columns[s, i]
    j = candidates.feature[s]
    return inverse[j] * (store.lines[i, j] if store.by_rows else store.lines[j, i])
