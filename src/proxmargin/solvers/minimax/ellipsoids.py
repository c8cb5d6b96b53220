"""What the solvers of the minimax models share: their loss, coordinates and covariances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack

from proxmargin.designs.base import Array, Design
from proxmargin.designs.row_span import AllFeatures, Coordinates, in_short_coordinates, short_side
from proxmargin.designs.standardized import centred
from proxmargin.losses.minimax import EllipsoidLoss
from proxmargin.pace import affordable, eigen_work, gram_work
from proxmargin.problem import Problem

__all__ = [
    "coordinates_of",
    "covariances",
    "ellipsoid_loss",
    "forms_covariances",
    "is_ridge",
    "spectrum",
    "variances_of",
]

# the most features or samples, whichever are fewer, for which covariances are formed
LARGEST_SIDE = 5000
# standard deviations that differ by more than this factor are of units that have nothing to do
# with one another; covariances of so many such features are formed even where samples are fewer
GRADED, LARGEST_GRADED = 1e3, 2000
# variances below this share of the largest, times the number of them, are rounding
ROUNDING = 1e-15
# LAPACK's gejsv: accuracy for matrices with rows and columns of any scale; all left vectors, no
# right ones; no restriction of the range; no transposition; no perturbation
JACOBI = {"joba": 2, "jobu": 1, "jobv": 3, "jobr": 0, "jobt": 0, "jobp": 0}


def ellipsoid_loss(problem: Problem) -> EllipsoidLoss:
    assert isinstance(problem.loss, EllipsoidLoss)
    return problem.loss


def is_ridge(problem: Problem) -> bool:
    return problem.has_ridge_alone


def forms_covariances(problem: Problem, deadline: float = np.inf) -> bool:
    """Whether covariances are formed, on the shorter side of the data.

    Decided once, when the solver begins: where their eigenvalues take too much of what time is
    left until the ``deadline`` then, they are not.
    """
    design, side = problem.design, short_side(problem.design)
    work = gram_work(max(design.n_samples, design.n_features), side, design.density)

    def formed() -> bool:
        return side <= LARGEST_SIDE and affordable(work + eigen_work(side), deadline)

    return problem.remembered("covariances are formed", formed)


def coordinates_of(problem: Problem) -> Coordinates:
    """All features, or the span of the samples; centred, which these losses do not see.

    Data that are large both ways are taken as they are: products with them are all that is used.
    Features of very different units are not mixed, if there are not too many: inner products of
    samples would lose the small ones.
    """
    if not forms_covariances(problem):
        return AllFeatures(problem.design)
    design = centred(problem.design, problem.loss.shares)
    if LARGEST_GRADED >= design.n_features > design.n_samples:
        variances = design.column_squares(problem.loss.shares, np.zeros(design.n_features))
        if _is_graded(np.sqrt(variances[variances > 0])):
            return AllFeatures(design)
    return in_short_coordinates(design)


def covariances(loss: EllipsoidLoss, design: Design) -> tuple[Array, Array]:
    """The weighted covariances of the two classes, (k, k) each."""

    def covariance(one: NDArray[np.intp]) -> Array:
        shares = np.zeros(design.n_samples)
        shares[one] = loss.form.roots[one] ** 2
        return design.gram(shares, design.adjoint(shares[:, None])[:, 0])

    first, second = (covariance(one) for one in loss.form.classes)
    return first, second


def variances_of(problem: Problem) -> Array:
    """The variance of each of the coordinates over both classes together, (k,)."""
    design = coordinates_of(problem).design
    return design.column_squares(problem.loss.shares, np.zeros(design.n_features))


def spectrum(matrix: Array, variances: Array) -> tuple[Array, Array]:
    """Eigenvalues, zero where they are of rounding, and eigenvectors of a covariance matrix.

    Where features have very different units, the usual methods find the small eigenvalues up to
    the rounding of the large ones only. A covariance determines them better: up to its own
    rounding, entry by entry, if its correlations are well-conditioned (Demmel and Veselic 1992,
    "Jacobi's method is more accurate than QR"). Then they are the squared singular values of a
    pivoted Cholesky factor, by one-sided Jacobi rotations.

    Parameters
    ----------
    matrix : (k, k)
        Overwritten.
    variances : (k,)
        Of the features over all samples: what is left of one inside the classes may be rounding.
    """
    size = len(variances)
    none = np.diag(matrix) <= ROUNDING * size * variances
    matrix[none], matrix[:, none] = 0.0, 0.0
    scale = np.sqrt(np.where(none, 1.0, np.diag(matrix)))
    if not _is_graded(scale[~none]):
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
        return np.where(values > ROUNDING * size * values[-1], values, 0.0), vectors
    correlations = matrix / scale / scale[:, None]
    packed, pivots, rank, _ = lapack.dpstrf(correlations, lower=1, tol=ROUNDING * size)
    factor = np.empty((size, rank))
    factor[pivots - 1] = np.tril(packed)[:, :rank]
    singular, vectors, _, unit, _, _ = lapack.dgejsv(scale[:, None] * factor, **JACOBI)
    values = np.zeros(size)
    values[:rank] = (singular * (unit[0] / unit[1])) ** 2
    return values, vectors


def _is_graded(deviations: Array) -> bool:
    return bool(deviations.size and deviations.max() > GRADED * deviations.min())
