"""Kernel models from dual points, certified for the exact kernel whatever solved them.

With ``phi`` the feature map of the kernel, a dual point q stands for the coefficients
``w = r v``, ``v = -sum_i q_i phi(x_i)``, a multiple r that only the penalty and ``|v|`` decide. The
model is ``score(x) = sum_i beta_i k(x_i, x) + b`` with ``beta = -r q``. Since w and v are
collinear, the penalty's bracket of the duality gap is one-dimensional, and the gap costs one product
with the kernel matrix: a solver may have worked on a factor of low rank, and what that factor
left out shows up here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.certificate import Gap
from proxmargin.designs.kernel import KernelMatrix
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem

__all__ = ["Representer", "represented"]


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
    """

    weights: Array
    scores: Array
    gap: Gap


def represented(
    problem: Problem, kernel: KernelMatrix, dual: Array, *, cut: float = 0.0
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
    """
    loss, penalty = problem.loss, problem.penalty
    kept = np.where(np.abs(dual) > cut * np.abs(dual).max(), dual, 0.0)
    dual = loss.balanced(kept, problem.intercept)
    product = kernel.matvec(-dual)
    size = np.array([[np.sqrt(max(-float(np.vdot(dual, product)), 0.0))]])
    length = penalty.conjugate_gradient(size)
    factor = float(length[0, 0] / size[0, 0]) if size[0, 0] > 0 else 0.0
    scores = factor * product
    intercept = loss.best_intercept(scores, problem.intercept, np.zeros(1))
    scores += intercept
    value = loss.value(scores)
    if loss.is_homogeneous:
        multiple = penalty.best_multiple(length, value)
        factor, length, value = multiple * factor, multiple * length, multiple * value
        scores, intercept = multiple * scores, multiple * intercept
    weights = -factor * dual
    b, c = intercept[None, :], -dual.sum(axis=0, keepdims=True)
    gap = (
        loss.fenchel_young(scores, dual)
        + float(penalty.fenchel_young(length, size).sum())
        + float(problem.intercept.fenchel_young(b, c).sum())
        + _rounding(kernel, dual, weights)
    )
    found = Gap(
        point=Point(weights, intercept),
        primal=value + penalty.value(length) + problem.intercept.value(b),
        gap=gap,
        kkt_residual=float(penalty.violations(length, size).max()),
        violations=np.zeros(0),
        dual_point=dual,
        negligible=problem.negligible,
    )
    return Representer(weights[:, 0], scores, found)


def _rounding(kernel: KernelMatrix, dual: Array, weights: Array) -> float:
    """What the products with the kernel matrix may have rounded."""
    largest = float(np.abs(kernel.diagonal()).max(initial=0.0))
    return 2.0 * np.finfo(float).eps * largest * float(np.abs(dual).sum() * np.abs(weights).sum())
