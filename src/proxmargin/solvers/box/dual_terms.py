"""The terms of a loss in the dual problem with a ridge, sample by sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from proxmargin.compiled.solvers.dual_entropies import NEAREST
from proxmargin.losses.base import Array
from proxmargin.losses.margins.logistic import Logistic
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.problem import Problem
from proxmargin.solvers.box.box_program import box_objection, has_ridge
from proxmargin.traits import Trait

__all__ = ["DualTerms", "dual_terms", "is_logistic", "terms_objection"]

KINK_TOLERANCE = 1e-3  # distance to the kink up to which a margin is on it at a warm start


class DualTerms(NamedTuple):
    """``sum_i term_i(a_i) - goal_i a_i`` over ``0 <= a_i <= caps_i``.

    A term is ``bends_i a^2 / 2`` or, if they are ``entropic``, ``caps_i`` times the negative
    entropy of ``(s, 1 - s)`` for ``s = a / caps_i``. Arrays are (n_samples,).
    """

    signs: Array
    caps: Array
    bends: Array
    goal: Array
    entropic: bool

    def bound(self, a: Array) -> float:
        """``sum_i goal_i a_i - term_i(a_i)``: the lower bound, but for the ridge."""
        if not self.entropic:
            return float(a @ (self.goal - 0.5 * self.bends * a))
        share = np.divide(a, self.caps, out=np.zeros_like(a), where=self.caps > 0)
        return float(a @ self.goal - self.caps @ (xlogy(share, share) + xlog1py(1 - share, -share)))

    def inside(self, a: Array) -> Array:
        """Dual points moved to where descent may start."""
        edge = NEAREST * self.caps if self.entropic else 0.0
        return np.clip(a, edge, self.caps - edge)

    def implied(self, scores: Array, balanced: bool) -> Array:
        """The dual points that scores imply; in the middle of the box at a kink.

        For a free intercept they are ``balanced``: off the middle so that ``y'a = 0``, if any are.
        """
        missing = self.goal - self.signs * scores
        if self.entropic:
            return self.inside(self.caps * expit(missing))
        on_kink = np.where(np.isfinite(self.caps), 0.5 * self.caps, 0.0)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            curved = np.clip(missing / self.bends, 0.0, self.caps)
        capped = np.where(missing > 0, self.caps, 0.0)
        kinked = (np.abs(missing) <= KINK_TOLERANCE) & (self.bends == 0)
        flat = np.where(kinked, on_kink, capped)
        a = np.where(self.bends > 0, curved, flat)
        room = float(on_kink[kinked].sum())
        if balanced and room > 0:
            share = float(np.clip(self.signs @ a / room, -1.0, 1.0))
            a[kinked] -= share * (self.signs * on_kink)[kinked]
        return a


def is_logistic(problem: Problem) -> bool:
    """Whether the loss is the logistic one of two classes."""
    if Trait.MARGINS not in problem.traits or problem.loss.n_outputs > 1:
        return False
    unshifted = problem.loss.unshifted
    return isinstance(unshifted, MarginSum) and isinstance(unshifted.phi, Logistic)


def terms_objection(problem: Problem) -> str | None:
    """The objection to a loss or penalty of another kind, or None."""
    if has_ridge(problem) and is_logistic(problem):
        return None
    return box_objection(problem)


def dual_terms(problem: Problem) -> DualTerms:
    """The terms, computed once."""
    return problem.remembered(_new_terms)


def _new_terms(problem: Problem) -> DualTerms:
    box = problem.loss.box
    if box is not None:
        return DualTerms(box.signs, box.caps, box.bends, box.goal, False)
    loss = problem.margins
    signs, caps = (np.ascontiguousarray(each[:, 0]) for each in (loss.signs, loss.weights))
    return DualTerms(signs, caps, np.zeros_like(caps), -signs * problem.offset, True)
