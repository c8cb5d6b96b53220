"""What the solvers of the minimax models share: their loss, coordinates and covariances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Array, Design
from proxmargin.designs.standardized import centred
from proxmargin.losses.minimax import EllipsoidLoss
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Problem
from proxmargin.solvers.row_span import AllFeatures, Coordinates, in_short_coordinates, short_side

__all__ = ["coordinates_of", "covariances", "ellipsoid_loss", "forms_covariances", "is_ridge"]

# the most features or samples, whichever are fewer, for which covariances are formed
LARGEST_SIDE = 5000


def ellipsoid_loss(problem: Problem) -> EllipsoidLoss:
    assert isinstance(problem.loss, EllipsoidLoss)
    return problem.loss


def is_ridge(problem: Problem) -> bool:
    return isinstance(problem.penalty, Ridge) and problem.penalty.l2 > 0


def forms_covariances(problem: Problem) -> bool:
    """Whether covariances are formed, on the shorter side of the data."""
    return short_side(problem.design) <= LARGEST_SIDE


def coordinates_of(problem: Problem) -> Coordinates:
    """All features, or the span of the samples; centred, which these losses do not see.

    Data that are large both ways are taken as they are: products with them are all that is used.
    """
    if not forms_covariances(problem):
        return AllFeatures(problem.design)
    return in_short_coordinates(centred(problem.design, problem.loss.shares))


def covariances(loss: EllipsoidLoss, design: Design) -> tuple[Array, Array]:
    """The weighted covariances of the two classes, (k, k) each."""

    def covariance(one: NDArray[np.intp]) -> Array:
        shares = np.zeros(design.n_samples)
        shares[one] = loss.form.roots[one] ** 2
        return design.gram(shares, design.adjoint(shares[:, None])[:, 0])

    first, second = (covariance(one) for one in loss.form.classes)
    return first, second
