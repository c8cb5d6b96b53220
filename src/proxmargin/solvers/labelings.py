"""Many labelings of the same samples: the samples as all fits see them, and what they find."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from proxmargin.designs.base import Array, Design
from proxmargin.rounding import UNIT

__all__ = ["Axes", "FitsLabelings", "LabelingFits", "principal_axes"]


class Axes(NamedTuple):
    """Samples in coordinates of their principal axes.

    Attributes
    ----------
    samples : (n_samples, rank)
        Z; with orthogonal columns, which sum to zero if they are centred.
    squares : (rank,)
        The diagonal of ``Z'Z``.
    centred : bool
    """

    samples: Array
    squares: Array
    centred: bool


def principal_axes(design: Design, *, centred: bool) -> Axes:
    """The samples in coordinates of their principal axes, by the smaller Gram matrix."""
    n, p = design.n_samples, design.n_features
    shares = np.full(n, 1.0 / n)
    mean = design.adjoint(shares[:, None])[:, 0] if centred else np.zeros(p)
    if n <= p:
        gram = design.centred_gram(shares) if centred else design.outer_gram()
        squares, basis = _spectrum(gram)
        return Axes(basis * np.sqrt(squares), squares, centred)
    squares, basis = _spectrum(design.gram(np.ones(n), mean))
    return Axes(design.scores(basis) - mean @ basis, squares, centred)


def _spectrum(gram: Array) -> tuple[Array, Array]:
    """Eigenvalues above rounding, from the largest, and their eigenvectors in C order."""
    values, vectors = np.linalg.eigh(gram)
    live = values > UNIT * values.size * max(values[-1], 0.0)
    return values[live][::-1], np.ascontiguousarray(vectors[:, live][:, ::-1])


class LabelingFits(NamedTuple):
    """Solutions of the labelings.

    Attributes
    ----------
    scores : (n_samples, n_labelings)
        ``Z u``, without intercept.
    norms : (n_labelings,)
        ``|u|``.
    gaps : (n_labelings,)
        Relative duality gaps.
    """

    scores: Array
    norms: Array
    gaps: Array


class FitsLabelings(Protocol):
    """A method that fits one model to many labelings."""

    def __call__(self, axes: Axes, signs: Array, *, tol: float) -> LabelingFits:
        """Of labelings (n_samples, n_labelings) of -1 and +1, to a relative gap of ``tol``; those
        that it does not solve have a larger one."""
