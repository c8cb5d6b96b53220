"""Duality gaps: upper bounds of the suboptimality of a point.

For any dual point q, with v = -X'q and c = -1'q,

    gap = [L(z) + L*(q) - <z, q>] + [G(w) + G*(v) - <v, w>] + [B(b) + B*(c) - <c, b>]

bounds the suboptimality of (w, b). Every bracket is a sum of non-negative Fenchel-Young terms,
computed in closed form: the difference of a primal and a dual value would suffer from cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from proxmargin.compiled.rounding import FURTHER_TERMS, UNIT, Enclosed, gamma, weighted_sum
from proxmargin.data.designs import Design, precise_sums
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.rounding_terms import (
    rounding_of_dual,
    rounding_of_intercept,
    rounding_of_sums,
    safe_multiple,
    zero_unpenalised_dual,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import with_optimal_unpenalised
from proxmargin.runtime.memory import CACHED_ENTRIES, empty_beside
from proxmargin.runtime.types import Array

REFINED_FRACTION = 0.1  # rounding over gap, from which on products are compensated
REFINABLE_GAP = 10.0  # largest gap less the gain of the safe multiple, in units of the tolerance


def certify(
    problem: Problem,
    point: Point,
    *,
    scores: Array | None = None,
    dual: Array | None = None,
    tol: float | None = None,
) -> Gap:
    """Certify the coefficients of ``point`` together with their best intercept.

    If the loss is homogeneous, the best multiple of the point is certified instead: only its
    direction matters to the model, and a wrong length would enlarge the gap.

    The gap includes a proven bound on the rounding of the products with the data. If that bound
    keeps the gap above ``tol``, products are recomputed by compensated summation, for the
    coefficients in the units of the data; and for a loss with kinks the point is scaled by a factor
    close to one, which moves margins at a kink to the side where their rounding costs least.

    The dual point is the gradient of the loss at the exact intercept, which is optimal and so meets
    the constraint of a free intercept. It is clipped into the domain, balanced to remove rounding,
    and scaled into the domain of the penalty's conjugate: it is feasible for any coefficients.

    Parameters
    ----------
    scores : (n_samples, n_outputs), optional
        ``X @ coef + intercept`` when known, which saves one of the two products with X.
    dual : (n_samples, n_outputs), optional
        A dual point to use instead of a gradient of the loss, which is a poor one if the loss has
        kinks.
    tol : float >= 0, optional
        The relative gap to be proved. By default products are not compensated.
    """
    if scores is None:
        scores = problem.design.scores(point.coef)
    else:
        scores = np.subtract(scores, point.intercept, out=empty_beside(scores))
    found = _certifiable(problem, point, scores, dual)
    gap = _gap(problem, *found, _adjoint)
    # where unpenalised features separate the classes, the loss is below the rounding of dual points
    least = gap.rounding if problem.unpenalised.size else 0.0
    if 0.0 <= gap.primal < max(problem.negligible, least):
        zero = _gap_to_zero(problem, found.point, found.scores, gap)
        if zero.gap < gap.gap:
            gap, dual = zero, zero.dual_point
    return _refined_if_useful(problem, gap, found.scores, dual, tol)


def certify_together(
    problems: Sequence[Problem], points: Sequence[Point], duals: Sequence[Array], tol: float
) -> list[Gap]:
    """`certify` for several problems of one output on one design, with dual points (n_samples, 1):
    by one product for all scores and one for all pulled-back duals."""
    design = problems[0].design
    # F order: the column of one problem is contiguous
    scores = np.asfortranarray(design.scores(np.column_stack([point.coef for point in points])))
    each = list(zip(problems, points, np.hsplit(scores, len(points)), duals, strict=True))
    found = [_certifiable(*one) for one in each]
    feasible_duals = np.column_stack([one.loss_term.dual for one in found])
    back = np.asfortranarray(design.adjoint(feasible_duals))

    def known(k: int) -> Callable[[Design, Array], _Pulled]:
        return lambda _, dual: _adjoint(design, dual, back[:, k : k + 1])

    gaps = [_gap(one[0], *found[k], known(k)) for k, one in enumerate(each)]
    return [
        _refined_if_useful(problem, gap, one.scores, dual, tol)
        for problem, gap, one, dual in zip(problems, gaps, found, duals, strict=True)
    ]


def gap_to_zero(problem: Problem, gap: Gap) -> Gap:
    """The gap of the same point with the dual point zero, if that is smaller."""
    point, design = gap.point, problem.design
    scores = design.scores(point.coef) + point.intercept
    enclosed = design.enclosed(point.coef, point.intercept, scores)
    return _smaller_gap(_gap_to_zero(problem, point, enclosed, gap), gap)


def _gap_to_zero(problem: Problem, point: Point, scores: Enclosed, gap: Gap) -> Gap:
    """The gap with the dual point zero, where that is feasible: losses and penalties are >= 0."""
    loss_term = _loss_term(problem, scores, np.zeros_like(gap.dual_point))
    if loss_term.dual.any():
        return gap

    def nothing(design: Design, dual: Array) -> _Pulled:
        return _adjoint(design, dual, np.zeros_like(point.coef))

    return _gap(problem, point, scores, loss_term, nothing)


def _refined_if_useful(
    problem: Problem, gap: Gap, scores: Enclosed, dual: Array | None, tol: float | None
) -> Gap:
    """The gap, recomputed by compensated products if those may prove a relative gap of ``tol``."""
    if tol is None or gap.relative_gap <= tol or not _can_be_refined(problem, gap, scores, tol):
        return gap
    return _smaller_gap(_refined(problem, gap, dual), gap)


def _smaller_gap(first: Gap, second: Gap) -> Gap:
    return first if first.gap < second.gap else second


class _Certifiable(NamedTuple):
    """A point with its best intercept, scaled to its best multiple if the loss is homogeneous."""

    point: Point
    scores: Enclosed
    loss_term: _LossTerm


def _certifiable(problem: Problem, point: Point, scores: Array, dual: Array | None) -> _Certifiable:
    """The point with its best intercept, the error of its scores, and the loss's part of the gap;
    ``scores`` exclude the intercept, and are overwritten."""
    coef, loss = point.coef, problem.loss
    intercept = loss.best_intercept(scores, problem.intercept, point.intercept)
    scores += intercept
    point = Point(coef, intercept)
    if problem.unpenalised.size:
        point, scores = with_optimal_unpenalised(problem, point, scores)
        coef, intercept = point.coef, point.intercept
    enclosed = problem.design.enclosed(coef, intercept, scores)
    loss_term = _loss_term(problem, enclosed, dual)
    if not loss.is_homogeneous:
        return _Certifiable(point, enclosed, loss_term)
    multiple = problem.best_multiple(point, loss_term.value)
    point = Point(multiple * coef, multiple * intercept)
    return _Certifiable(point, enclosed.times(multiple), loss_term.times(multiple))


class _LossTerm(NamedTuple):
    value: float
    # (n_samples, n_outputs); feasible: in the domain of the conjugate, with column sums that the
    # intercept allows
    dual: Array
    slope: Array  # (1, n_outputs); column sums of the dual point before it was balanced
    growth: float  # bound on what the error of the scores adds to the Fenchel-Young terms

    def times(self, multiple: float) -> _LossTerm:
        """The same part at a multiple of the scores; for homogeneous losses."""
        return self._replace(value=multiple * self.value, growth=multiple * self.growth)


def _loss_term(problem: Problem, scores: Enclosed, dual: Array | None) -> _LossTerm:
    """The loss's part at these scores, with ``dual`` made feasible, or else the gradient."""
    loss = problem.loss
    if dual is None or Trait.SMOOTH in loss.traits:
        value, gradient = loss.value_and_gradient(scores.values)
    else:  # the growth of losses with kinks does not depend on it
        value, gradient = loss.value(scores.values), dual
    given = gradient if dual is None else dual
    slope, balanced = given.sum(axis=0, keepdims=True), loss.balanced(given, problem.intercept)
    growth = loss.growth(scores.values, gradient, balanced, scores.error)
    return _LossTerm(value, balanced, slope, growth)


class _Pulled(NamedTuple):
    """The products of a dual point with the features and with the intercept's column of ones."""

    features: Enclosed
    ones: Enclosed


def _adjoint(design: Design, dual: Array, back: Array | None = None) -> _Pulled:
    """``X'q`` and ``1'q`` by plain products, with bounds on their rounding. The product ``back``
    with the features, if known, may be overwritten."""
    back = design.adjoint(dual) if back is None else back
    sizes = np.abs(dual).sum(axis=0)
    features = Enclosed(back, design.adjoint_error(sizes), sizes)
    return _Pulled(features, Enclosed(dual.sum(axis=0), FURTHER_TERMS * UNIT * sizes, sizes))


def _precise_adjoint(design: Design, dual: Array) -> _Pulled:
    return _Pulled(design.precise_adjoint(dual), precise_sums(dual))


def _adjoint_differences(design: Design, dual: Array) -> _Pulled:
    """``X'(q - q_1)``, relative to the first class, for penalties with rows that sum to zero. What
    all classes have in common, which these ignore, may have a rounding above the gap. Differences
    of the dual point are exact: ``high + low``."""
    common = dual[:, :1]
    high = dual - common
    back = dual - high
    low = (dual - (high + back)) + (back - common)  # Knuth (1998), 4.2.2, theorem B
    large, small = design.precise_adjoint(high), design.precise_adjoint(low)
    values = large.values + small.values
    error = large.error + small.error + UNIT * np.abs(values)
    return _Pulled(Enclosed(values, error, large.sizes + small.sizes), precise_sums(dual))


REFINED = (_precise_adjoint, _adjoint_differences)


def _gap(
    problem: Problem,
    point: Point,
    scores: Enclosed,
    loss_term: _LossTerm,
    pull: Callable[[Design, Array], _Pulled],
) -> Gap:
    """The gap between a point with the best intercept and its dual point, which is overwritten.

    With exact scores z and pulled-back duals v in place of the computed ones, the brackets of the
    gap grow by at most `Loss.growth` and ``<v' - v, w - w*>``; and ``<z, q>`` and ``-<v, w>``,
    which cancel in exact arithmetic, differ by at most ``<e, |q|>``, e the error of the scores. The
    growth is computed for the unscaled dual point; scaling adds at most ``<e, |q|>``.
    """
    coef, penalty, dual = point.coef, problem.penalty, loss_term.dual
    back, sums = pull(problem.design, dual)
    pulled = np.negative(back.values, out=back.values)
    of_unpenalised = 0.0
    if problem.unpenalised.size:
        of_unpenalised = zero_unpenalised_dual(problem, point, scores, pulled, back.error)
    b = point.intercept[None, :]
    parts, size, residuals = _in_blocks(penalty, coef, pulled), 0.0, []
    for part, w, v in parts:
        size += part.value(w)
        residuals.append(part.violations(w, v))
    violations = residuals[0] if len(parts) == 1 else np.concatenate(residuals)
    del residuals  # frees the blocks
    primal = loss_term.value + size + problem.intercept.value(b)
    scale = penalty.domain_scale(pulled)
    if 0.0 <= primal < min(of_unpenalised, problem.negligible):  # q = 0 gives a better bound
        scale = of_unpenalised = 0.0
    c = -scale * sums.values[None, :]
    within = sums.sizes if scores.error.ndim == 1 else np.abs(dual)
    rounding = loss_term.growth + weighted_sum(within, scores.error) + of_unpenalised
    feasible = np.multiply(dual, scale, out=dual)
    bare_gap = 0.0
    for part, w, v in parts:
        bare_gap += float(part.fenchel_young(w, scale * v).sum())
    bare_gap += problem.loss.fenchel_young(scores.values, feasible)
    bare_gap += float(problem.intercept.fenchel_young(b, c).sum())
    if scale > 0:
        level = abs(float(primal)) + bare_gap + rounding
        rounding += scale * rounding_of_dual(problem, point, level, back.error)
    if problem.intercept.is_shift_invariant:
        rounding += rounding_of_sums(problem, b[0], scores, sums.error, c[0])
    elif problem.intercept.l2 > 0:
        rounding += rounding_of_intercept(problem, point, scores)
    rounding += gamma(len(coef) + FURTHER_TERMS) * abs(float(primal))
    gap = bare_gap + rounding
    residual = max(
        float(violations.max(initial=0.0)),
        float(problem.intercept.violations(b, -loss_term.slope).max()),
    )
    return Gap(
        point=Point(coef, point.intercept, feasible),
        primal=float(primal),
        gap=float(gap),
        kkt_residual=residual,
        violations=violations,
        dual_point=feasible,
        negligible=problem.negligible,
        rounding=rounding,
        is_refined=pull in REFINED,
    )


def _in_blocks(penalty: Penalty, coef: Array, dual: Array) -> list[tuple[Penalty, Array, Array]]:
    """Penalty, coefficients and dual in blocks of features, which keeps temporaries small; a single
    one if the penalty couples features."""
    rows = max(CACHED_ENTRIES // (4 * coef.shape[1]), 1)  # there are four temporaries
    if len(coef) <= rows or not penalty.by_features:
        return [(penalty, coef, dual)]
    blocks = [slice(k, min(k + rows, len(coef))) for k in range(0, len(coef), rows)]
    return [(penalty.restricted(np.arange(k.start, k.stop)), coef[k], dual[k]) for k in blocks]


def _can_be_refined(problem: Problem, gap: Gap, scores: Enclosed, tol: float) -> bool:
    """Whether rounding, of products or of margins at kinks, is a substantial part of the gap. Far
    from the optimum the safe multiple lowers the objective as any better length would: that is left
    to the solver."""
    if gap.rounding >= REFINED_FRACTION * gap.gap:
        return True
    least = max(REFINED_FRACTION * gap.gap, gap.gap - REFINABLE_GAP * tol * gap.scale)
    _, gain = safe_multiple(problem, gap.point, scores, least)
    return least <= gain


def _refined(problem: Problem, coarse: Gap, dual: Array | None) -> Gap:
    """The gap by compensated products, at `safe_multiple` of the point."""
    point, design = coarse.point, problem.design
    scores = design.precise_scores(point.coef, point.intercept)
    if not problem.loss.is_homogeneous:
        moved = _with_best_shift(problem, point, scores)
        multiple, _ = safe_multiple(problem, *moved)
        point = Point(multiple * point.coef, multiple * moved[0].intercept)
        scores = design.precise_scores(point.coef, point.intercept)
    pull = _adjoint_differences if problem.penalty.sums_to_zero else _precise_adjoint
    return _gap(problem, point, scores, _loss_term(problem, scores, dual), pull)


def _with_best_shift(problem: Problem, point: Point, scores: Enclosed) -> tuple[Point, Enclosed]:
    """The point with the intercept that is best for more precise scores."""
    if not problem.intercept.is_shift_invariant:
        return point, scores
    nothing = np.zeros_like(point.intercept)
    shift = problem.loss.best_intercept(scores.values, problem.intercept, nothing)
    return point._replace(intercept=point.intercept + shift), scores.plus(shift)
