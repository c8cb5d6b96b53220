"""Fits of one SVM or nu-SVM to many labelings of the same samples, on one Gram matrix.

With weights of samples beta and the Gram matrix K of the samples, which does not depend on the
labels, the dual of a labeling y is

    minimise    beta'K beta / 2 - goal y'beta,    0 <= y_i beta_i <= cap,

with ``goal = 1`` and ``sum_i beta_i = 0`` for the hinge; for the nu-SVM with ``goal = 0``, and the
``y_i beta_i`` of each class sum to 1/2. Sequential minimal optimisation finds the face of the
box, and a linear system the minimum on it; where that is outside of the box or its gap too large,
the descent goes on from where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.solvers.decomposition import pairwise
from proxmargin.designs.base import Array
from proxmargin.rounding import TINY
from proxmargin.solvers.labelings import Axes, LabelingFits

__all__ = ["DualBoxes", "suits"]

Mask = NDArray[np.bool_]

# where fits one by one are slower, whatever C and nu
LEAST_RANK = 2.0 / 3.0  # of the data, over the number of samples: of less, K is ill-conditioned
MOST_SAMPLES = 500  # a descent takes more than linearly many steps, each over all samples
FORCINGS = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)  # violations, relative, after which a face is solved
PAIRS_PER_SAMPLE = 60  # limit of the steps to a face, beyond which a fit by itself is faster


def suits(axes: Axes) -> bool:
    """Whether the method is fast for these samples; it needs a free intercept."""
    samples, rank = axes.samples.shape
    return axes.centred and samples <= MOST_SAMPLES and rank >= LEAST_RANK * samples


@dataclass(frozen=True)
class DualBoxes:
    """The method for one model.

    Parameters
    ----------
    cap : float > 0
        Bound of the weights of the samples.
    goal : {0, 1}
        Of a nu-SVM, or of a hinge.
    """

    cap: float
    goal: float

    def __call__(self, axes: Axes, signs: Array, *, tol: float) -> LabelingFits:
        gram = axes.samples @ axes.samples.T
        weights, gaps = np.zeros_like(signs), np.empty(signs.shape[1])
        for k, column in enumerate(signs.T):
            weights[:, k], gaps[k] = self._solved(gram, column, tol)
        scores = gram @ weights
        squares = np.maximum(np.einsum("ij,ij->j", weights, scores), 0.0)
        return LabelingFits(scores, np.sqrt(squares), gaps)

    def _solved(self, gram: Array, signs: Array, tol: float) -> tuple[Array, float]:
        """The weights of one labeling, and their relative duality gap."""
        up = signs > 0
        low, high = np.where(up, 0.0, -self.cap), np.where(up, self.cap, 0.0)
        if self.goal:
            dual = _Dual(gram, low, high, self.goal * signs, signs.size, np.zeros(1))
            return _minimised(dual, np.zeros_like(signs), tol)
        order, split = np.argsort(~up, kind="stable"), int(np.count_nonzero(up))
        matrix, sums = gram[order[:, None], order], np.array([0.5, -0.5])
        dual = _Dual(matrix, low[order], high[order], np.zeros_like(signs), split, sums)
        even = np.repeat(sums / (split, signs.size - split), (split, signs.size - split))
        ordered, gap = _minimised(dual, even, tol)
        weights = np.empty_like(ordered)
        weights[order] = ordered
        return weights, gap


class _Dual(NamedTuple):
    """``beta'K beta / 2 - pull'beta`` on a box, with the sum of the first ``split`` entries and
    that of the others."""

    matrix: Array
    low: Array
    high: Array
    pull: Array
    split: int
    sums: Array

    @property
    def groups(self) -> list[slice]:
        parts = [slice(0, self.split), slice(self.split, self.low.size)]
        return [part for part in parts if part.start < part.stop]


def _minimised(dual: _Dual, start: Array, tol: float) -> tuple[Array, float]:
    value, best, least = start.copy(), start, np.inf
    gradient = dual.matrix @ value - dual.pull
    most = PAIRS_PER_SAMPLE * value.size
    for forcing in FORCINGS:
        # the unit of scores: the margin of a hinge, or the squared length of a nu-SVM
        unit = 1.0 if dual.pull.any() else float(value @ gradient)
        pairs, _ = pairwise(
            dual.matrix, value, gradient, dual.low, dual.high, dual.split, forcing * unit, most
        )
        for point in (_face_minimum(dual, value), value):
            if point is None:
                continue
            gap = _relative_gap(dual, point)
            if gap < least:
                best, least = point.copy(), gap
            if gap <= tol:
                return best, least
        if pairs == most:
            break
    return best, least


def _face_minimum(dual: _Dual, value: Array) -> Array | None:
    """The minimum with the entries at an end of their interval fixed; None outside of the box."""
    free = np.flatnonzero((value > dual.low) & (value < dual.high))
    fixed = value.copy()
    fixed[free] = 0.0
    groups = [part for part in dual.groups if np.any((free >= part.start) & (free < part.stop))]
    count, sides = free.size, len(groups)
    system, right = np.zeros((count + sides, count + sides)), np.zeros(count + sides)
    system[:count, :count] = dual.matrix[free[:, None], free]
    right[:count] = dual.pull[free] - dual.matrix[free] @ fixed
    for k, part in enumerate(groups, start=count):
        members = (free >= part.start) & (free < part.stop)
        system[k, :count] = system[:count, k] = members
        right[k] = dual.sums[0 if part.start == 0 else 1] - fixed[part].sum()
    try:
        fixed[free] = np.linalg.solve(system, right)[:count]
    except np.linalg.LinAlgError:  # of equal samples
        return None
    inside = (fixed >= dual.low) & (fixed <= dual.high)
    return fixed if inside.all() else None


def _relative_gap(dual: _Dual, value: Array) -> float:
    """The sum of Fenchel-Young terms at the multipliers in the middle of what each group admits."""
    scores = dual.matrix @ value
    gradient = scores - dual.pull
    gap = 0.0
    for part, total in zip(dual.groups, dual.sums, strict=True):
        slopes, beta = gradient[part], value[part]
        rise, fall = dual.high[part] - beta, beta - dual.low[part]
        lowest = slopes[rise > 0].min(initial=np.inf)
        highest = slopes[fall > 0].max(initial=-np.inf)
        level = _middle(lowest, highest)
        apart = slopes - level
        gap += float(rise @ np.maximum(-apart, 0.0) + fall @ np.maximum(apart, 0.0))
        gap += abs(level * (float(beta.sum()) - total))
    bound = float(dual.pull @ value - 0.5 * (value @ scores))
    return gap / max(abs(bound), abs(bound + gap), TINY)


def _middle(lowest: float, highest: float) -> float:
    """Between two ends of which one may be missing."""
    if not np.isfinite(lowest):
        return highest
    return 0.5 * (lowest + highest) if np.isfinite(highest) else lowest
