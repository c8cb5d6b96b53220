"""The dual problem of a ridge for descent along single dual points: rows of the data, and terms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from proxmargin.compiled.solvers.dual_coordinates import NEAREST, DualTerms, StoredRows, squares
from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.margins.logistic import Logistic
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.memory import CACHED_ENTRIES, kept, unlocked
from proxmargin.runtime.types import Array, Values
from proxmargin.solvers.interior.box_program import box_objection, has_ridge
from proxmargin.solvers.shared.margin_model import KINK_TOLERANCE

LARGEST_COPY = 1 << 30  # bytes of dense data by columns that are copied by rows
SPARSE_DENSITY = 0.05  # up to which data count as sparse: centring is not worth two passes


class Rows(NamedTuple):
    """The data by rows, and what coordinate descent needs of them; remembered with the design."""

    base: Design  # the data before any centring and scaling
    # their rows, with ``metric = 1 / (l2 scale^2)``, ``pull_i = x_i'(metric centre)`` and ``square
    # = centre'(metric centre)``
    stored: StoredRows
    norms: Array  # (n_samples,), squared norms of the centred samples over l2
    # (n_features,)
    centre: Array
    scale: Array
    shift: Array  # (n_features,), the intercept is that of centred features less ``shift'w``
    plain: bool  # features are the data themselves, neither centred nor scaled

    def coef(self, v: Array, residual: float) -> Array:
        """w, (n_features,), for the weighted sum v of the rows and ``residual = y'a``."""
        if self.plain:
            return v.copy()
        moved = v - residual * self.stored.metric * self.centre
        return np.multiply(
            self.scale, moved, out=np.zeros_like(moved), where=np.isfinite(self.scale)
        )

    def weighted_sum(self, signed: Array) -> Array:
        """v, (n_features,), for the signed dual points ``y a``."""
        if not signed.any():
            return np.zeros_like(self.centre)
        return self.base.adjoint(signed[:, None])[:, 0] * self.stored.metric


def terms_objection(problem: Problem) -> str | None:
    """The objection to a loss, a penalty, or data whose rows cannot be read, or None."""
    if not (has_ridge(problem) and _is_logistic(problem)):
        missing = box_objection(problem)
        if missing:
            return missing
    if problem.loss.box is not None and problem.loss.box.pull != 0:
        return "it needs a loss without a threshold, which a nu-SVM has"
    base = problem.design.stored.base.whole
    if base.compressed is not None:
        return None
    matrix = getattr(base, "matrix", None) if base.is_dense else None
    if matrix is None:
        return "it needs the rows of a matrix"
    if not matrix.flags.c_contiguous and matrix.nbytes > LARGEST_COPY:
        return (
            "it reads single rows, which are not contiguous in these dense data, of which a copy "
            f"by rows would be larger than {LARGEST_COPY >> 20} MiB"
        )
    return None


@kept
def rows_of(problem: Problem) -> Rows:
    """The rows; problems on one design with the same ridge and weights share them."""
    shares = problem.loss.shares
    if not problem.intercept.is_shift_invariant or problem.design.density <= SPARSE_DENSITY:
        shares = np.zeros_like(shares)  # nothing is centred
    return _new_rows(problem.design, np.append(shares, problem.penalty.l2))


@kept
def _new_rows(design: Design, key: Array) -> Rows:
    base, given, scale = design.stored
    shares, l2 = key[:-1], float(key[-1])
    centre = base.adjoint(shares[:, None])[:, 0] if shares.any() else given
    shift = (centre - given) / scale
    metric = 1.0 / (l2 * scale**2)
    moved = bool(centre.any())
    pull = base.scores((metric * centre)[:, None])[:, 0] if moved else np.zeros(base.n_samples)
    square = float(centre @ (metric * centre))
    if metric.size and np.all(metric == metric[0]):
        metric = metric[:1].copy()
    stored = StoredRows(*_stored_rows(base), metric, pull, square)
    norms = np.empty_like(pull)
    squares(stored, norms)
    design.counter.add(design.share)
    plain = not moved and bool(np.all(scale == 1.0))
    return Rows(base, stored, norms, centre, scale, shift, plain)


@kept
def _stored_rows(base: Design) -> tuple[Values, Values, Values]:
    if base.compressed is not None:
        matrix = base.compressed.by_rows
        return unlocked(matrix.data), unlocked(matrix.indices), unlocked(matrix.indptr)
    matrix = base.sweep_data()[0]
    starts = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
    return _by_rows(unlocked(matrix)).reshape(-1), np.empty(0, dtype=np.int32), starts


def _by_rows(matrix: Values) -> Values:
    """The matrix in C order: itself, or a copy that is made some rows at a time."""
    if matrix.flags.c_contiguous:
        return matrix
    copy = np.empty(matrix.shape, matrix.dtype)
    step = max(CACHED_ENTRIES // max(matrix.shape[1], 1), 1)
    for start in range(0, matrix.shape[0], step):
        copy[start : start + step] = matrix[start : start + step]
    return copy


def _is_logistic(problem: Problem) -> bool:
    if Trait.MARGINS not in problem.traits or problem.loss.n_outputs > 1:
        return False
    unshifted = problem.loss.unshifted
    return isinstance(unshifted, MarginSum) and isinstance(unshifted.phi, Logistic)


@kept
def terms_of(problem: Problem) -> DualTerms:
    box = problem.loss.box
    if box is not None:
        return DualTerms(box.signs, box.upper, box.curvature, box.target, False)
    loss = problem.margins
    signs, upper = (np.ascontiguousarray(each[:, 0]) for each in (loss.signs, loss.weights))
    return DualTerms(signs, upper, np.zeros_like(upper), -signs * problem.offset, True)


def dual_bound(terms: DualTerms, a: Array) -> float:
    """``sum_i targets_i a_i - term_i(a_i)``: the lower bound, but for the ridge."""
    if not terms.entropic:
        return float(a @ (terms.targets - 0.5 * terms.curvatures * a))
    share = np.divide(a, terms.upper, out=np.zeros_like(a), where=terms.upper > 0)
    entropies = xlogy(share, share) + xlog1py(1 - share, -share)
    return float(a @ terms.targets - terms.upper @ entropies)


def inside(terms: DualTerms, a: Array) -> Array:
    """Dual points moved to where descent may start."""
    edge = NEAREST * terms.upper if terms.entropic else 0.0
    return np.clip(a, edge, terms.upper - edge)


def implied(terms: DualTerms, scores: Array, balanced: bool) -> Array:
    """The dual points that scores imply; in the middle of the box at a kink. For a free intercept
    they are ``balanced``: off the middle so that ``y'a = 0``, if any are."""
    missing, upper = terms.targets - terms.signs * scores, terms.upper
    if terms.entropic:
        return inside(terms, upper * expit(missing))
    on_kink = np.where(np.isfinite(upper), 0.5 * upper, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        curved = np.clip(missing / terms.curvatures, 0.0, upper)
    at_bound = np.where(missing > 0, upper, 0.0)
    kinked = (np.abs(missing) <= KINK_TOLERANCE) & (terms.curvatures == 0)
    a = np.where(terms.curvatures > 0, curved, np.where(kinked, on_kink, at_bound))
    room = float(on_kink[kinked].sum())
    if balanced and room > 0:
        share = float(np.clip(terms.signs @ a / room, -1.0, 1.0))
        a[kinked] -= share * (terms.signs * on_kink)[kinked]
    return a
