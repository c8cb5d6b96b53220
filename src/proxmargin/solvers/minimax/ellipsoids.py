"""Covariances of blocks of samples in few coordinates, and deviations of the scores in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack

from proxmargin.compiled.rounding import SUM_ROUNDING
from proxmargin.data.designs.base import Design, subtract_outer
from proxmargin.data.designs.views import (
    AllFeatures,
    Coordinates,
    centred,
    in_short_coordinates,
)
from proxmargin.functions.losses.minimax import EllipsoidLoss
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array
from proxmargin.solvers.shared.numerical import (
    LINE_SEARCH_STEPS,
    increasing_root,
    inverse_of,
)

Inverse = Callable[[Array], Array]

# graded data: features of very different units, whose small variances a Gram matrix would lose
GRADED_RATIO = 1e3  # ratio of largest to smallest standard deviation of graded data
MAX_GRADED_FEATURES = 2000  # up to which their covariances are formed even if samples are fewer
REFINEMENTS = 2  # of a linear system, each with a residual from the data
SLOPE_TOLERANCE = 1e-6  # of line searches; tight, as an evaluation takes eight scalars
ROUNDED_COEFFICIENT = 1e-8  # over |w|, below which a coefficient does not set the unit of levels


def ellipsoid_loss(problem: Problem) -> EllipsoidLoss:
    assert isinstance(problem.loss, EllipsoidLoss)
    return problem.loss


@kept
def coordinates_of(problem: Problem) -> Coordinates:
    """All features, or the row span; centred, to which these losses are invariant. Graded features
    are not mixed unless there are too many: the Gram matrix would lose the small ones."""
    design = centred(problem.design, problem.loss.shares)
    if MAX_GRADED_FEATURES >= design.n_features > design.n_samples:
        variances = design.column_squares(problem.loss.shares, np.zeros(design.n_features))
        if _is_graded(np.sqrt(variances[variances > 0])):
            return AllFeatures(design)
    return in_short_coordinates(design)


def covariances(loss: EllipsoidLoss, design: Design) -> Array:
    """The weighted covariances of the blocks, each the sum of those of its classes,
    (n_blocks, k, k)."""

    def covariance(one: NDArray[np.intp]) -> Array:
        shares = np.zeros(design.n_samples)
        shares[one] = loss.form.roots[one] ** 2
        return design.gram(shares, design.adjoint(shares[:, None])[:, 0])

    parts = np.stack([covariance(one) for one in loss.form.classes])
    return parts if len(loss.form.blocks) == len(parts) else parts.sum(axis=0, keepdims=True)


def variances_of(problem: Problem) -> Array:
    """The variance of each coordinate over both classes together, (k,)."""
    design = coordinates_of(problem).design
    return design.column_squares(problem.loss.shares, np.zeros(design.n_features))


def spectrum(matrix: Array, variances: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a covariance matrix, which is overwritten; eigenvalues below
    the rounding that ``variances`` (k,) of the features over all samples set are zero.

    For graded data, tridiagonalisation has an absolute error of some ulps of the largest
    eigenvalue. The matrix determines all eigenvalues to high relative accuracy if its correlations
    are well-conditioned (Demmel and Veselic 1992, "Jacobi's method is more accurate than QR"): they
    are computed as the squared singular values of a pivoted Cholesky factor, by one-sided Jacobi.
    """
    size = len(variances)
    none = np.diag(matrix) <= SUM_ROUNDING * size * variances
    matrix[none], matrix[:, none] = 0.0, 0.0
    scale = np.sqrt(np.where(none, 1.0, np.diag(matrix)))
    if not _is_graded(scale[~none]):
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
        return np.where(values > SUM_ROUNDING * size * values[-1], values, 0.0), vectors
    correlations = matrix / scale / scale[:, None]
    packed, pivots, rank, _ = lapack.dpstrf(correlations, lower=1, tol=SUM_ROUNDING * size)
    factor = np.empty((size, rank))
    factor[pivots - 1] = np.tril(packed)[:, :rank]
    # full accuracy for rows and columns of any scale; all left singular vectors, no right ones; the
    # full range of exponents; no transposition; no perturbation
    singular, vectors, _, unit, _, _ = lapack.dgejsv(
        scale[:, None] * factor, joba=2, jobu=1, jobv=3, jobr=0, jobt=0, jobp=0
    )
    values = np.zeros(size)
    values[:rank] = (singular * (unit[0] / unit[1])) ** 2
    return values, vectors


def _is_graded(deviations: Array) -> bool:
    return bool(deviations.size and deviations.max() > GRADED_RATIO * deviations.min())


class BlockSpread:
    """Coefficients w, and the deviations ``v_i = r_i (x_i'w - mean)`` of the scores. Their norms
    over the blocks are the standard deviations ``n_o``, and ``S_o w = X' (r v)_o`` with the
    covariances ``S_o``, (n_blocks, k, k).
    Coefficients are in the coordinates of `coordinates_of`."""

    def __init__(self, problem: Problem, coef: Array, scores: Array, covariances: Array) -> None:
        self.covariances = covariances
        self.design = coordinates_of(problem).design
        self.form, self.kappa = ellipsoid_loss(problem).form, ellipsoid_loss(problem).kappa
        self.coef, self.scores = coef, scores
        self.v = self.form.deviations(scores)
        self.sizes = np.array([np.linalg.norm(self.v[one]) for one in self.form.blocks])

    def adjoint(self, dual: Array) -> Array:
        """``X'q``."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def scores_of(self, coef: Array) -> Array:
        """``X coef``."""
        return self.design.scores(coef[:, None])[:, 0]

    def mean_difference(self) -> Array:
        """The difference d of the class means, (k,)."""
        return -self.adjoint(self.form.offset)

    def dual(self) -> Array:
        """The gradient of the loss in the scores."""
        return self.form.dual_point(self.weighted(self.v) / self.kappa if self.kappa else self.v)

    def weighted(self, e: Array) -> Array:
        """``kappa e_o / n_o`` for each block o whose scores vary; zero for others."""
        rate = np.zeros_like(e)
        for one, size in zip(self.form.blocks, self.sizes, strict=True):
            if size > 0:
                rate[one] = e[one] * (self.kappa / size)
        return rate

    def step_length(self, direction: Array, moved: Array, l2: float) -> float:
        """The step length that minimises the objective along ``w + t direction``. ``f'(t) = (l2 w -
        d)'p + t l2 |p|^2 + kappa sum_o (v + t e)_o'e_o / |v + t e|_o`` with the direction p, the
        deviations e of its scores, and the difference d of the means."""
        e, curvature = self.form.deviations(moved), l2 * float(direction @ direction)
        start = float(self.form.offset @ moved) + l2 * float(self.coef @ direction)
        parts = [
            (float(self.v[one] @ self.v[one]), float(self.v[one] @ e[one]), float(e[one] @ e[one]))
            for one in self.form.blocks
        ]

        def slope(t: float) -> float:
            total = start + t * curvature
            for a, b, c in parts:
                square = a + 2.0 * t * b + t * t * c
                total += self.kappa * (b + t * c) / np.sqrt(square) if square > 0 else 0.0
            return float(total)

        return increasing_root(slope, SLOPE_TOLERANCE, LINE_SEARCH_STEPS)

    def curvatures(self) -> Array:
        """The diagonal of ``kappa sum_o S_o / n_o``, its mean for entries of zero, (k,)."""
        curvatures = np.diag(self.matrix(0.0, self._weights())).copy()
        return np.where(curvatures > 0, curvatures, curvatures.mean())

    def solve_hessian(self, l2: float, right: Array) -> Array:
        matrix = self.matrix(l2, self._weights())
        for k in range(self.sizes.size):
            if self.sizes[k] == 0:
                continue
            unit = self.covariance_product(k) / self.sizes[k]
            subtract_outer(matrix, unit * (self.kappa / self.sizes[k]), unit)
        return inverse_of(matrix, overwrite=True)(right)

    def solve_weighted(self, ridge: Array, right: Array) -> Array:
        return inverse_of(self.matrix(ridge, self._weights()), overwrite=True)(right)

    def matrix(self, ridge: float | Array, weights: Array) -> Array:
        """``diag(ridge) + sum_o weights_o S_o``, (k, k)."""
        matrix: Array = np.tensordot(weights, self.covariances, axes=1)
        np.einsum("ii->i", matrix)[:] += ridge
        return matrix

    def refined(self, solve: Inverse, l2: float, weights: Array, right: Array) -> Array:
        """The solution of ``(l2 I + sum_o weights_o S_o) x = right`` by iterative refinement.
        Residuals are computed from the data: the condition number of the covariance is the square
        of theirs."""
        solution = solve(right)
        for _ in range(REFINEMENTS):
            e = self.form.deviations(self.scores_of(solution))
            for one, weight in zip(self.form.blocks, weights, strict=True):
                e[one] *= weight
            solution += solve(right - l2 * solution - self.adjoint(self.form.roots * e))
        return solution

    def covariance_product(self, k: int) -> Array:
        """``S_o w`` of block number k."""
        product: Array = self.covariances[k] @ self.coef
        return product

    def total_variance(self) -> float:
        """The sum of all variances in all blocks, as k times their mean weighted by w^2."""
        # w can be orthogonal, up to rounding, to all features that vary within a block: without the
        # floor, rounding would set the unit
        largest = float(np.abs(self.coef).max(initial=0.0))
        shares = self.coef / largest if largest > 0 else np.ones_like(self.coef)
        floor = ROUNDED_COEFFICIENT**2 * float(shares @ shares)
        variances, squares = np.einsum("oii->i", self.covariances), shares**2 + floor
        return self.coef.size * float(variances @ squares) / float(squares.sum())

    def dual_at_levels(self, levels: Array) -> Array:
        """The dual point ``u_o = v_o / (kappa mu_o)``, made feasible."""
        u = np.zeros_like(self.v)
        for one, level in zip(self.form.blocks, levels, strict=True):
            u[one] = self.v[one] / (self.kappa * level)
        return self.form.dual_point(self.form.project(u))

    def _weights(self) -> Array:
        """``kappa / n_o``; zero for a block whose scores do not vary."""
        none = np.zeros_like(self.sizes)
        return np.divide(self.kappa, self.sizes, out=none, where=self.sizes > 0)
