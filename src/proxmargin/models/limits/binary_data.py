"""Validated data of two classes, for the ranges of nu and kappa.

In the space of a kernel the answers are those of models with at most `KERNEL_RANK` support
vectors.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from proxmargin.data.designs import DenseDesign, Design, as_design
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.inputs.validation import validated, validated_weights
from proxmargin.data.kernels.low_rank import factorise
from proxmargin.data.kernels.matrix import KernelDesign, KernelMatrix
from proxmargin.runtime.types import Array

CLEAR_RANK = 1e-10  # above it they are known to some digits, whatever the order of the samples
RANK_TOLERANCE = 1e-13  # singular or eigenvalue over the largest one, below which it is rounding
KERNEL_RANK = 500  # columns of the factor of a kernel: the most support vectors of a model


def checked(X: Features, y: Labels, sample_weight: ArrayLike | None) -> tuple[Design, Array, Array]:
    """The design, the signs and the shares of the samples of positive weight. Raises ValueError for
    bad data, or other than two classes."""
    sample_weight = by_sample("sample_weight", sample_weight, X)
    X, y = validated(_BinaryData(), X, y)
    targets = Targets.encode(y, validated_weights(sample_weight, X), None)
    if targets.classes.size != 2:
        raise ValueError(
            f"y holds {targets.classes.size} classes: nu and kappa are parameters of binary models"
        )
    live = np.flatnonzero(targets.weights)
    if live.size < targets.weights.size:
        X, targets = X[live], targets.picked(live)
    return as_design(X), targets.signs(1)[:, 0], targets.shares


class _BinaryData(BaseEstimator):  # type: ignore[misc]
    """The estimator named in the messages of scikit-learn's checks."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Featured(NamedTuple):
    """A design with features: of a kernel matrix those of its low-rank factor."""

    design: Design
    is_whole: bool  # false where a deadline ended the factorisation
    is_exact: bool  # the inner products are those of the kernel, up to rounding


def with_features(design: Design, deadline: float = np.inf) -> Featured:
    """The design itself; for a kernel matrix a factor, whose rank is that of the kernel or 500. A
    factor restricts models to combinations of its pivots: its kappa_max is a lower bound of the
    kernel's, and its nu_min an upper bound."""
    if not isinstance(design, KernelDesign):
        return Featured(design, True, True)
    return design.remembered(_factored, deadline=deadline)


def _factored(design: KernelDesign, deadline: float) -> Featured:
    found = factorise(design.kernel_matrix, rank=KERNEL_RANK, deadline=deadline)
    columns = found.factor if found.rank else np.zeros((design.n_samples, 1))
    is_whole = found.rank >= KERNEL_RANK or found.is_accurate
    return Featured(DenseDesign(columns), is_whole, found.is_accurate)


def class_shares(matrix: KernelMatrix, signs: Array, shares: Array) -> tuple[Array, Array]:
    """The share of each distinct sample in all samples, as one of the positive class and as one of
    the negative, (n_distinct,) each. With a strictly positive definite kernel they decide the
    limits of nu and kappa: the Gram matrix of distinct samples is positive definite, so that some
    model gives them any scores."""
    _, sample = np.unique(matrix.first_of_equals(), return_inverse=True)
    up, down = np.zeros((2, int(sample.max()) + 1))
    np.add.at(up, sample, np.where(signs > 0, shares, 0.0))
    np.add.at(down, sample, np.where(signs > 0, 0.0, shares))
    live = up + down > 0
    return up[live], down[live]


def meeting_share(up: Array, down: Array) -> float:
    """The largest nu at which the reduced hulls meet: equal samples of both classes cancel."""
    return 2.0 * float(np.minimum(up, down).sum())


def fisher_limit(up: Array, down: Array) -> float:
    """kappa_max of MM-FDA: ``sqrt((1 - 2 c) / c)``, ``c = sum p q / (p + q)``. p and q are the
    shares of the distinct samples in their class. With ``A = diag(p + q)`` the covariances are ``S+
    + S- = A - p p' - q q'``, of which ``A^-1 (p - q)`` is an eigenvector with respect to A, of
    eigenvalue ``2 c``; its square in A is ``2 - 4 c``."""
    p, q = up / up.sum(), down / down.sum()
    shared = float((p * q / (p + q)).sum())
    return float(np.sqrt(max(1.0 - 2.0 * shared, 0.0) / shared)) if shared > 0 else inf


def halves(up: Array, down: Array, m: float) -> tuple[float, float]:
    """``|g+|, |g-|`` of the g with ``Z g = D`` and the least ``m |g+|^2 + (1 - m) |g-|^2``. The
    scores w of the distinct samples solve ``(S+ / m + S- / (1 - m)) w = p - q``; of the solutions,
    which differ by a constant, the one with ``q'w = 0``."""
    p, q = up / up.sum(), down / down.sum()
    both = p / m + q / (1.0 - m)
    level = float((q * q / both).sum()) / float((p * q / both).sum())
    w = (level * p - q) / both
    apart = w - float(p @ w)
    return float(np.sqrt(p @ apart**2)) / m, float(np.sqrt(q @ w**2)) / (1.0 - m)
