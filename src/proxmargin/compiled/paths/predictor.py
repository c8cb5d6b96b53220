"""Correction of the predictor step by the error that it made at the strength before.

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

LARGEST_RATIO = 1.5  # of two step lengths; beyond it the last error is not extrapolated


@njit(cache=True, nogil=True, allocates=False)
def correct(path, l1, intercept_step):
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


@njit(cache=True, nogil=True, allocates=False)
def _ratio(scalars, l1):
    """``h_k / h_{k-1}``; 0 where it is too large, or there is no strength before to learn from."""
    length = 1.0 - l1 / scalars.strength if l1 < scalars.strength else 0.0
    ratio = length / scalars.length if scalars.length > 0.0 else 0.0
    scalars.length = length
    return ratio if ratio <= LARGEST_RATIO else 0.0


@njit(cache=True, nogil=True, allocates=False)
def learn(candidates, intercept, scalars):
    """Store the error of the predictor, when the strength is solved."""
    if scalars.is_first:  # the start was within the tolerance: no step was taken
        forget(candidates, scalars)
        return
    for s in range(candidates.scalars.count):
        both = candidates.predicted[s] != 0.0 and candidates.coef[s] != 0.0
        candidates.error[s] = candidates.coef[s] - candidates.predicted[s] if both else 0.0
    scalars.error = intercept - scalars.predicted


@njit(cache=True, nogil=True, allocates=False)
def forget(candidates, scalars):
    """Set the expected errors to zero: the next predictor is taken as it is."""
    for s in range(candidates.scalars.count):
        candidates.error[s] = 0.0
    scalars.error = 0.0
