"""Kernel models from dual points, certified for the exact kernel whatever solved them.

With ``phi`` the feature map of the kernel, a dual point q stands for the coefficients
``w = r v``, ``v = -sum_i q_i phi(x_i)``, a multiple r that only the penalty and ``|v|`` decide.
The model is ``score(x) = sum_i beta_i k(x_i, x) + b`` with ``beta = -r q``. Since w and v are
collinear, the penalty's bracket of the duality gap is one-dimensional, and the gap costs one
product with the kernel matrix: a solver may have worked on a factor of low rank, and what that
factor left out shows up here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from proxmargin.certificate import Gap
from proxmargin.designs.kernel import KernelMatrix
from proxmargin.designs.kernel_design import KernelDesign
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem

__all__ = ["Representer", "ScoredGap", "certify_represented", "represented"]

# repairs of a dual point up to so many times the rounding of the kernel are rounding too
REPAIR = 8.0
# equal samples are taken together where that leaves less than this share of the sum of weights
CANCELLED = 0.9


@dataclass(frozen=True, eq=False)
class ScoredGap(Gap):
    """A certificate that knows what it was computed from.

    Attributes
    ----------
    scores : (n_samples, 1)
        Of the training samples at ``point``, intercept included.
    """

    scores: Array


@dataclass(frozen=True, eq=False)
class Representer:
    """A kernel model with its certificate.

    Attributes
    ----------
    weights : (n_samples,)
        beta, the weight of each training sample.
    scores : (n_samples, 1)
        Of the training samples, intercept included.
    gap : Gap
        ``gap.point`` holds beta as its coefficients.
    factor : float
        r, where the weights were made of a dual point.
    """

    weights: Array
    scores: Array
    gap: ScoredGap
    factor: float = 1.0


def certify_represented(
    problem: Problem,
    point: Point,
    *,
    scores: Array | None = None,
    dual: Array | None = None,
) -> ScoredGap:
    """Certify weights of samples on a `KernelDesign`, as `certificate.certify` does coefficients.

    Parameters
    ----------
    point : Point
        Weights of samples beta, (n_samples, 1).
    scores : (n_samples, 1), optional
        ``K beta + intercept`` when known: no product with the kernel matrix is needed then.
    dual : (n_samples, 1), optional
        A multiple of beta; by default the one that the penalty's strength makes of it.
    """
    design, beta = problem.design, point.coef
    assert isinstance(design, KernelDesign)
    q = -problem.penalty.l2 * beta if dual is None else dual
    size = float(np.vdot(beta, beta))
    multiple = -float(np.vdot(q, beta)) / size if size > 0 else 0.0
    product = None if scores is None else multiple * (scores - point.intercept)
    return represented(problem, design.matrix, q, product=product).gap


def represented(
    problem: Problem,
    kernel: KernelMatrix,
    dual: Array,
    *,
    cut: float = 0.0,
    product: Array | None = None,
) -> Representer:
    """The model that a dual point stands for, with the best intercept.

    Parameters
    ----------
    problem : Problem
        Loss, penalty (a ridge or a Euclidean ball) and intercept; its design is not read.
    kernel : KernelMatrix
        Over the training samples.
    dual : (n_samples, 1)
    cut : float
        Entries of the dual point below this share of the largest become zero: samples that are
        support vectors by rounding only.
    product : (n_samples, 1), optional
        ``-K dual`` when known. What the dual point has to change by to be feasible counts as an
        error of it: use it with points that are feasible but for rounding.
    """
    given = np.where(np.abs(dual) > cut * np.abs(dual).max(), dual, 0.0)
    dual = problem.loss.balanced(given, problem.intercept)
    parts, off = dual, 0.0
    if product is None:
        parts = _uncancelled(kernel, dual)
        product = kernel.matvec(-parts)
    else:
        off = float(np.abs(dual - given).sum())
    direction = _Direction(dual, parts, product, off)
    square = direction.square
    length = float(problem.penalty.conjugate_gradient(np.array([[np.sqrt(square)]]))[0, 0])
    found = _multiple(problem, kernel, direction, length)
    if 0.0 < square <= direction.rounding(kernel, parts):
        # |v| is rounding, and w with a length of its own may be: no w at all is the other choice
        nothing = _multiple(problem, kernel, direction, 0.0)
        return min(found, nothing, key=lambda model: model.gap.gap)
    return found


class _Direction(NamedTuple):
    """What is known of ``v = -sum_i parts_i phi(x_i)``, of a dual point.

    ``product`` is ``-K parts``, and ``off`` the sum of the absolute differences between the dual
    point and what that was computed from.
    """

    dual: Array
    parts: Array
    product: Array
    off: float

    @property
    def square(self) -> float:
        """``|v|^2``"""
        return max(-float(np.vdot(self.parts, self.product)), 0.0)

    def rounding(self, kernel: KernelMatrix, weights: Array) -> float:
        """What the kernel's values and the products with its matrix may have rounded."""
        lost = kernel.rounding_of(self.parts) * float(np.abs(self.parts).sum())
        return _slack(kernel, lost + self.off, weights)


def _uncancelled(kernel: KernelMatrix, dual: Array) -> Array:
    """The dual point with equal samples taken together, where they cancel.

    What they leave may be less than the rounding of products with each of them.
    """
    together = kernel.taken_together(dual)
    cancels = np.abs(together).sum() < CANCELLED * np.abs(dual).sum()
    return together if cancels else dual


def _multiple(
    problem: Problem, kernel: KernelMatrix, direction: _Direction, length: float
) -> Representer:
    """The model whose w has the direction of v and a given length, as far as it is allowed.

    Where |v| may be longer than rounding tells, w is made shorter by that: it has to be in the
    domain of the penalty.
    """
    loss, penalty = problem.loss, problem.penalty
    dual, off = direction.dual, direction.off
    size = np.array([[np.sqrt(direction.square)]])
    factor = length / float(size[0, 0]) if size[0, 0] > 0 else 0.0
    longest = np.sqrt(size**2 + direction.rounding(kernel, direction.parts))
    if factor > 0:
        factor *= float((penalty.into_domain(factor * longest) / (factor * longest))[0, 0])
    scores = factor * direction.product
    intercept = loss.best_intercept(scores, problem.intercept, np.zeros(1))
    scores += intercept
    value = loss.value(scores)
    if loss.is_homogeneous:
        multiple = problem.best_multiple(Point(factor * longest, intercept), value)
        factor, value = multiple * factor, multiple * value
        scores, intercept = multiple * scores, multiple * intercept
    w, weights = factor * size, -factor * direction.parts
    b, c = intercept[None, :], -dual.sum(axis=0, keepdims=True)
    rounding = direction.rounding(kernel, weights)
    # |v|^2 is that of the dual point before its repair, which matters where w is not made of v
    repaired = max(off - REPAIR * kernel.rounding * float(np.abs(dual).sum()), 0.0)
    largest = np.sqrt(size**2 + _slack(kernel, repaired, dual))
    apart = max(float(penalty.fenchel_young(w, at).sum()) for at in (size, largest))
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
        scores=scores,
    )
    return Representer(weights[:, 0], scores, found, factor)


def _slack(kernel: KernelMatrix, moved: float, weights: Array) -> float:
    """The most that a dual point moved by this sum of entries changes ``2 weights'K dual``."""
    largest = float(np.abs(kernel.diagonal()).max(initial=0.0))
    return 2.0 * largest * moved * float(np.abs(weights).sum())
