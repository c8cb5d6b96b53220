"""Loss, coordinates and covariances for the solvers of the minimax models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack

from proxmargin.designs.base import Array, Design
from proxmargin.designs.row_span import AllFeatures, Coordinates, in_short_coordinates, short_side
from proxmargin.designs.standardized import centred
from proxmargin.losses.minimax import EllipsoidLoss
from proxmargin.problem import Problem
from proxmargin.runtime.pace import affordable, eigen_work, gram_work

__all__ = [
    "coordinates_of",
    "covariances",
    "ellipsoid_loss",
    "forms_covariances",
    "is_ridge",
    "spectrum",
    "variances_of",
]

MAX_SIDE = 5000  # min(n_features, n_samples) up to which covariances are formed: 200 MB each
# graded data: features of very different units, whose small variances a Gram matrix would lose
GRADED_RATIO = 1e3  # ratio of largest to smallest standard deviation of graded data
MAX_GRADED_FEATURES = 2000  # up to which their covariances are formed even if samples are fewer
VARIANCE_ROUNDING = 1e-15  # variance over dimension and largest one, below which it is rounding
# LAPACK's gejsv: full accuracy for rows and columns of any scale; all left singular vectors, no
# right ones; the full range of exponents; no transposition; no perturbation
JACOBI = {"joba": 2, "jobu": 1, "jobv": 3, "jobr": 0, "jobt": 0, "jobp": 0}


def ellipsoid_loss(problem: Problem) -> EllipsoidLoss:
    assert isinstance(problem.loss, EllipsoidLoss)
    return problem.loss


def is_ridge(problem: Problem) -> bool:
    return problem.has_ridge_alone


def forms_covariances(problem: Problem, deadline: float = np.inf) -> bool:
    """Whether covariances are formed, over the samples or the features, whichever are fewer.

    Decided when the solver starts; false if an eigendecomposition would not end before
    ``deadline``.
    """
    return problem.remembered(_forms_covariances, deadline=deadline)


def _forms_covariances(problem: Problem, deadline: float) -> bool:
    design, side = problem.design, short_side(problem.design)
    work = gram_work(max(design.n_samples, design.n_features), side, design.density)
    return side <= MAX_SIDE and affordable(work + eigen_work(side), deadline)


def coordinates_of(problem: Problem) -> Coordinates:
    """All features, or the row span; centred, to which these losses are invariant.

    Without covariances only products are needed, so that the data are not transformed. Graded
    features are not mixed unless there are too many: the Gram matrix would lose the small ones.
    """
    if not forms_covariances(problem):
        return AllFeatures(problem.design)
    return problem.remembered(_coordinates)


def _coordinates(problem: Problem) -> Coordinates:
    design = centred(problem.design, problem.loss.shares)
    if MAX_GRADED_FEATURES >= design.n_features > design.n_samples:
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
    """The variance of each coordinate over both classes together, (k,)."""
    design = coordinates_of(problem).design
    return design.column_squares(problem.loss.shares, np.zeros(design.n_features))


def spectrum(matrix: Array, variances: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a covariance matrix; eigenvalues below rounding are zero.

    For graded data, tridiagonalisation has an absolute error of some ulps of the largest
    eigenvalue. The matrix determines all eigenvalues to high relative accuracy if its correlations
    are well-conditioned (Demmel and Veselic 1992, "Jacobi's method is more accurate than QR"): they
    are computed as the squared singular values of a pivoted Cholesky factor, by one-sided Jacobi.

    Parameters
    ----------
    matrix : (k, k)
        Overwritten.
    variances : (k,)
        Of the features over all samples, to which the rounding of within-class variances is
        relative.
    """
    size = len(variances)
    none = np.diag(matrix) <= VARIANCE_ROUNDING * size * variances
    matrix[none], matrix[:, none] = 0.0, 0.0
    scale = np.sqrt(np.where(none, 1.0, np.diag(matrix)))
    if not _is_graded(scale[~none]):
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
        return np.where(values > VARIANCE_ROUNDING * size * values[-1], values, 0.0), vectors
    correlations = matrix / scale / scale[:, None]
    packed, pivots, rank, _ = lapack.dpstrf(correlations, lower=1, tol=VARIANCE_ROUNDING * size)
    factor = np.empty((size, rank))
    factor[pivots - 1] = np.tril(packed)[:, :rank]
    singular, vectors, _, unit, _, _ = lapack.dgejsv(scale[:, None] * factor, **JACOBI)
    values = np.zeros(size)
    values[:rank] = (singular * (unit[0] / unit[1])) ** 2
    return values, vectors


def _is_graded(deviations: Array) -> bool:
    return bool(deviations.size and deviations.max() > GRADED_RATIO * deviations.min())
