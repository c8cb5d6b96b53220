"""Kernel models from dual points, certified for the exact kernel whatever solved them.

With ``phi`` the feature map of the kernel, a dual point q has the coefficients
``w = r v``, ``v = -sum_i q_i phi(x_i)``, where r depends on the penalty and ``|v|`` only.
The model is ``score(x) = sum_i beta_i k(x_i, x) + b`` with ``beta = -r q``. Since w and v are
collinear, the penalty's bracket of the duality gap is one-dimensional, and the gap costs one
product with the kernel matrix: a solver may have worked on a low-rank factor, whose approximation
error is part of this gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from proxmargin.compiled.rounding import FURTHER_TERMS, UNIT, Enclosed, Lost, gamma
from proxmargin.data.kernels.matrix import KernelMatrix, kernel_matrix_of
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import REFINED_FRACTION
from proxmargin.optimality.certificates.rounding_terms import safe_multiple
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array

TRIAL_MULTIPLES = 0.5 ** np.arange(12.0)  # of a dual point, tried if its norm is only bounded
CANCELLATION_SHARE = 0.9  # |merged| over |weights|, below which equal samples are merged


@dataclass(frozen=True, eq=False)
class ScoredGap(Gap):
    """A certificate with the scores that it was computed from."""

    scores: Array  # (n_samples, 1); of the training samples at ``point``, intercept included
    score_error: Array  # (n_samples, 1); a bound on their rounding


@dataclass(frozen=True, eq=False)
class Representer:
    """A kernel model with its certificate."""

    weights: Array  # (n_samples,); beta, the weight of each training sample
    scores: Array  # (n_samples, 1); of the training samples, intercept included
    gap: ScoredGap  # ``gap.point`` holds beta as its coefficients
    factor: float = 1.0  # r, if the weights come from a dual point


def certify_represented(
    problem: Problem,
    point: Point,
    *,
    scores: Array | None = None,
    dual: Array | None = None,
    tol: float | None = None,
) -> ScoredGap:
    """Certify weights of samples beta, (n_samples, 1), on a `KernelDesign`, as `certify` does
    coefficients. ``scores`` are ``K beta + intercept`` when known: no product with the kernel
    matrix is needed then. ``dual`` is a multiple of beta, by default ``-l2 beta``; ``tol`` is that
    of `represented`."""
    matrix, beta = kernel_matrix_of(problem.design), point.coef
    assert matrix is not None
    q = -problem.penalty.l2 * beta if dual is None else dual
    size = float(np.vdot(beta, beta))
    multiple = -float(np.vdot(q, beta)) / size if size > 0 else 0.0
    product = None if scores is None else multiple * (scores - point.intercept)
    return represented(problem, matrix, q, product=product, tol=tol).gap


def represented(
    problem: Problem,
    kernel: KernelMatrix,
    dual: Array,
    *,
    product: Array | None = None,
    tol: float | None = None,
) -> Representer:
    """The model of a dual point (n_samples, 1), with the best intercept.

    The penalty is a ridge or a Euclidean ball; the design of the problem is not read. ``product``
    is ``-K dual`` when known; making the dual point feasible changes it, which counts as an error
    of the product: give it only for points that are feasible up to rounding. If rounding prevents
    the relative gap ``tol``, the product is recomputed by compensated sums, and `safe_multiple`
    moves margins off their kinks.
    """
    given, dual = dual, problem.loss.balanced(dual, problem.intercept)
    if product is None:
        parts = _merge_cancelling(kernel, dual)
        terms = int(np.count_nonzero(parts))
        known = Product(kernel, dual, parts, kernel.matvec(-parts), gamma(terms), kernel.lost)
    else:
        off = _mass(kernel, dual - given)
        terms = int(np.count_nonzero(dual))
        known = Product(kernel, dual, dual, product, gamma(terms), kernel.lost, off)
    return _of_product(problem, known, tol)


def represented_together(
    problems: Sequence[Problem],
    kernel: KernelMatrix,
    duals: Sequence[Array],
    *,
    tol: float | None = None,
) -> list[Representer]:
    """`represented` for problems on the same samples, with one product for all of them: its cost is
    mostly that of kernel values, which serve all columns."""
    balanced = [
        problem.loss.balanced(dual, problem.intercept)
        for problem, dual in zip(problems, duals, strict=True)
    ]
    parts = [_merge_cancelling(kernel, dual) for dual in balanced]
    products, relative = kernel.matvec(-np.hstack(parts)), gamma(kernel.n_samples)
    known = [
        Product(kernel, dual, part, products[:, k : k + 1].copy(), relative, kernel.lost)
        for k, (dual, part) in enumerate(zip(balanced, parts, strict=True))
    ]
    return [_of_product(problem, one, tol) for problem, one in zip(problems, known, strict=True)]


def represented_by_few(
    problem: Problem, kernel: KernelMatrix, weights: Array, dual: Array, square: float
) -> Representer:
    """A model of few samples, and a bound by a dual point whose product would take too long.

    Only the product with the weights beta, (n_samples,), zero for most samples, is computed. The
    dual point, (n_samples, 1), is in the domain of the conjugates of the loss and of the intercept,
    and ``dual'K dual`` at most ``square``.
    """
    loss, penalty = problem.loss, problem.penalty
    scores = kernel.matvec(weights[:, None])
    w = np.array([[np.sqrt(max(float(weights @ scores[:, 0]), 0.0))]])
    intercept = loss.best_intercept(scores, problem.intercept, np.zeros(1))
    scores += intercept
    value, gradient = loss.value_and_gradient(scores)
    if loss.is_homogeneous:
        multiple = problem.best_multiple(Point(w, intercept), value)
        weights, w, value = multiple * weights, multiple * w, multiple * value
        scores, intercept = multiple * scores, multiple * intercept
    size = np.array([[np.sqrt(square)]])
    terms = int(np.count_nonzero(weights))
    product = Product(kernel, dual, weights[:, None], scores, gamma(terms), kernel.lost)
    rounding = _rounding(product, dual)
    error = _enclosed(product, 1.0, scores, intercept).error
    rounding += loss.growth(scores, gradient, dual, error)
    shares = TRIAL_MULTIPLES[:1] if loss.is_homogeneous else TRIAL_MULTIPLES
    gaps = [
        _gap_between(problem, scores, intercept, w, share * dual, share * size) for share in shares
    ]
    best = int(np.argmin(gaps))
    found = ScoredGap(
        point=Point(weights[:, None], intercept),
        primal=float(value + penalty.value(w) + problem.intercept.value(intercept[None, :])),
        gap=gaps[best] + rounding,
        kkt_residual=float(penalty.violations(w, size).max()),
        violations=np.zeros(0),
        dual_point=shares[best] * dual,
        negligible=problem.negligible,
        rounding=rounding,
        is_refined=False,
        scores=scores,
        score_error=error,
    )
    return Representer(weights, scores, found)


def enclosed_model(
    kernel: KernelMatrix, weights: Array, intercept: float
) -> tuple[Enclosed, float]:
    """The scores ``K weights + intercept``, (n_samples, 1), with a bound on their rounding; and an
    upper bound of ``weights'K weights``."""
    column, shift = weights[:, None], np.array([intercept])
    values = kernel.matvec(column)
    terms = int(np.count_nonzero(weights))
    product = Product(kernel, -column, -column, values, gamma(terms), kernel.lost)
    scores = values + shift
    square = float(weights @ values[:, 0]) + _rounding(product, column)
    return _enclosed(product, 1.0, scores, shift), max(square, 0.0)


def _gap_between(
    problem: Problem, scores: Array, intercept: Array, w: Array, dual: Array, size: Array
) -> float:
    """The gap of a model with norm ``w`` and a dual point with norm ``size``, not collinear."""
    penalty, b = problem.penalty, intercept[None, :]
    across = float(np.vdot(dual, scores - intercept))
    apart = penalty.value(w) + penalty.conjugate(size) + across
    of_intercept = problem.intercept.fenchel_young(b, -dual.sum(axis=0, keepdims=True))
    return float(problem.loss.fenchel_young(scores, dual) + max(apart, 0.0) + of_intercept.sum())


def _merge_cancelling(kernel: KernelMatrix, dual: Array) -> Array:
    """The dual point with equal samples merged, if their weights cancel: the sum of these may be
    below the rounding of the products with each of them."""
    together = kernel.taken_together(dual)
    cancels = np.abs(together).sum() < CANCELLATION_SHARE * np.abs(dual).sum()
    return together if cancels else dual


@dataclass(frozen=True, eq=False)
class Product:
    """The product ``v = -sum_i parts_i phi(x_i)`` of a dual point, with its error bounds."""

    kernel: KernelMatrix
    dual: Array  # (n_samples, 1)
    parts: Array  # (n_samples, 1); the dual point, perhaps with equal samples merged
    values: Array  # (n_samples, 1); ``-K parts`` as computed
    relative: float  # error bound of the sums in it, relative to the sums of absolute values
    lost: Lost  # error bounds of the kernel values in it
    off: float = 0.0  # `_mass` of the change of the dual point since the product was computed

    @cached_property
    def square(self) -> float:
        """``|v|^2``"""
        return max(-float(np.vdot(self.parts, self.values)), 0.0)

    @cached_property
    def mass(self) -> float:
        """`_mass` of the parts."""
        return _mass(self.kernel, self.parts)

    @cached_property
    def errors(self) -> Array:
        """A bound on the errors of ``K parts`` by kernel values, (n_samples,)."""
        return self.lost.of(self.parts[:, 0])

    @cached_property
    def rounding(self) -> float:
        """A bound on the error of ``2 parts'K parts``."""
        return _rounding(self, self.parts)


def _of_product(problem: Problem, product: Product, tol: float | None) -> Representer:
    """The model of a dual point with this product, refined if rounding dominates its gap."""
    found = _best_multiple(problem, product)
    if tol is None or found.gap.relative_gap <= tol:
        return found
    # samples a little within their margins cost their caps: a longer w may cost less
    longer = _best_multiple(problem, product, safely=True)
    found = min(found, longer, key=lambda model: model.gap.gap)
    gap = found.gap
    if gap.relative_gap <= tol or gap.rounding < REFINED_FRACTION * gap.gap:
        return found
    values, lost = product.kernel.precise_matvec(-product.parts)
    precise = replace(product, values=values, relative=FURTHER_TERMS * UNIT, lost=lost, off=0.0)
    refined = _best_multiple(problem, precise, safely=True)
    return refined if refined.gap.gap < gap.gap else found


def _best_multiple(problem: Problem, product: Product, *, safely: bool = False) -> Representer:
    """The model with the least gap whose w is a multiple of v."""
    square = product.square
    length = float(problem.penalty.conjugate_gradient(np.array([[np.sqrt(square)]]))[0, 0])
    found = _multiple(problem, product, length, safely)
    if 0.0 < square <= product.rounding:
        # if |v| is rounding, so is the direction of w: try w = 0 as well
        nothing = _multiple(problem, product, 0.0, safely)
        return min(found, nothing, key=lambda model: model.gap.gap)
    return found


def _multiple(problem: Problem, product: Product, length: float, safely: bool) -> Representer:
    """The model with w in the direction of v and of norm ``length``. As |v| may exceed its computed
    value by rounding, w is shortened by that bound, and lies in the domain for certain."""
    loss, penalty, dual = problem.loss, problem.penalty, product.dual
    size = np.array([[np.sqrt(product.square)]])
    factor = length / float(size[0, 0]) if size[0, 0] > 0 else 0.0
    longest = np.sqrt(size**2 + product.rounding)
    if factor > 0:
        factor *= float((penalty.into_domain(factor * longest) / (factor * longest))[0, 0])
    scores = factor * product.values
    intercept = loss.best_intercept(scores, problem.intercept, np.zeros(1))
    scores += intercept
    value, gradient = loss.value_and_gradient(scores)
    if loss.is_homogeneous:
        multiple = problem.best_multiple(Point(factor * longest, intercept), value)
        factor, value = multiple * factor, multiple * value
        scores, intercept = multiple * scores, multiple * intercept
    elif safely:
        enclosed = _enclosed(product, factor, scores, intercept)
        multiple, _ = safe_multiple(problem, Point(factor * longest, intercept), enclosed)
        factor, scores, intercept = multiple * factor, multiple * scores, multiple * intercept
        value = loss.value(scores)
    w, weights = factor * size, -factor * product.parts
    b, c = intercept[None, :], -dual.sum(axis=0, keepdims=True)
    error = _enclosed(product, factor, scores, intercept).error
    rounding = factor * product.rounding + loss.growth(scores, gradient, dual, error)
    # w and v are collinear, but |v| is known up to rounding: relevant if w is no gradient at v
    apart = max(float(penalty.fenchel_young(factor * v, v).sum()) for v in (size, longest))
    gap = (
        loss.fenchel_young(scores, dual)
        + apart
        + float(problem.intercept.fenchel_young(b, c).sum())
        + rounding
    )
    found = ScoredGap(
        point=Point(weights, intercept),
        primal=float(value + penalty.value(w) + problem.intercept.value(b)),
        gap=float(gap),
        kkt_residual=float(penalty.violations(w, size).max()),
        violations=np.zeros(0),
        dual_point=dual,
        negligible=problem.negligible,
        rounding=rounding,
        is_refined=safely,
        scores=scores,
        score_error=error,
    )
    return Representer(weights[:, 0], scores, found, factor)


def _enclosed(product: Product, factor: float, scores: Array, intercept: Array) -> Enclosed:
    """The scores ``factor K parts + intercept`` with a bound on the rounding of values and sums;
    the factor is >= 0."""
    roots, shift = product.kernel.roots[:, None], np.abs(intercept)
    off = product.off if product.mass > 0 else 0.0
    error = factor * (product.errors[:, None] + roots * (product.relative * product.mass + off))
    sizes = roots * (factor * product.mass) + shift
    return Enclosed(scores, error + FURTHER_TERMS * UNIT * shift, sizes)


def _rounding(product: Product, weights: Array) -> float:
    """A bound on the error of ``2 weights'K parts``, by kernel values and by sums."""
    values = float(np.abs(weights[:, 0]) @ product.errors)
    moved = product.relative * product.mass + product.off
    return 2.0 * (values + moved * _mass(product.kernel, weights))


def _mass(kernel: KernelMatrix, weights: Array) -> float:
    """``sum_i |weights_i| sqrt(K_ii)``, a bound of the norm of ``sum_i weights_i phi(x_i)``."""
    return float(kernel.roots @ np.abs(weights[:, 0]))
