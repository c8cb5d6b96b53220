"""Validated data of two classes, for the ranges of nu and kappa.

In the space of a kernel the answers are those of models with at most `KERNEL_RANK` support
vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from proxmargin.designs import DenseDesign, Design, as_design
from proxmargin.inputs.aligned import by_sample
from proxmargin.inputs.targets import Targets
from proxmargin.inputs.validation import validated, validated_weights
from proxmargin.kernels.kernel_design import KernelDesign
from proxmargin.kernels.low_rank import factorise
from proxmargin.losses.base import Array

__all__ = ["KERNEL_RANK", "Featured", "checked", "with_features"]

KERNEL_RANK = 500  # columns of the factor of a kernel: the most support vectors of a model


def checked(X: Any, y: Any, sample_weight: Any) -> tuple[Design, Array, Array]:
    """The design, the signs and the shares of the samples of positive weight.

    Raises
    ------
    ValueError
        For bad data, or other than two classes.
    """
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Featured(NamedTuple):
    """A design with features: of a kernel matrix those of its low-rank factor.

    Attributes
    ----------
    design : Design
    is_whole : bool
        False where a deadline ended the factorisation.
    is_exact : bool
        The inner products of the samples are those of the kernel, up to rounding.
    """

    design: Design
    is_whole: bool
    is_exact: bool


def with_features(design: Design, deadline: float = np.inf) -> Featured:
    """The design itself; for a kernel matrix a factor, whose rank is that of the kernel or 500.

    A factor restricts models to combinations of its pivots: its kappa_max is a lower bound of the
    kernel's, and its nu_min an upper bound.
    """
    if not isinstance(design, KernelDesign):
        return Featured(design, True, True)
    return design.remembered(_factored, deadline=deadline)


def _factored(design: KernelDesign, deadline: float) -> Featured:
    found = factorise(design.kernel_matrix, rank=KERNEL_RANK, deadline=deadline)
    columns = found.factor if found.rank else np.zeros((design.n_samples, 1))
    is_whole = found.rank >= KERNEL_RANK or found.is_accurate
    return Featured(DenseDesign(columns), is_whole, found.is_accurate)
