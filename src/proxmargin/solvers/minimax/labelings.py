"""Fits of one MM-FDA to many labelings of the same samples: one small spectrum a labeling.

With the samples Z in coordinates of their principal axes, a labeling has class means m and a
within-class covariance

    S = Z' diag(1 / n_o) Z - m+ m+' - m- m-',

and its model is that of `FisherSecular` with them: ``w = mu (S + mu I)^-1 d`` for the d that is
the difference of the means. Covariances, spectra and secular equations of a block of labelings are
computed together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Array
from proxmargin.rounding import TINY
from proxmargin.solvers.labelings import Axes, LabelingFits
from proxmargin.solvers.minimax.secular import multipliers

__all__ = ["FisherSpectra"]

Mask = NDArray[np.bool_]

BLOCK_ENTRIES = 1 << 21  # of the covariances and of the weighted samples of a block: 16 MB each
# over the largest; labelings with smaller eigenvalues are left unsolved
LEAST_EIGENVALUE = 1e-10


@dataclass(frozen=True, eq=False)
class FisherSpectra:
    """The method for one model.

    Parameters
    ----------
    kappa_of : callable
        From the largest kappa of a labeling to that of its model.
    """

    kappa_of: Callable[[float], float]

    def __call__(self, axes: Axes, signs: Array, *, tol: float) -> LabelingFits:
        samples, rank = axes.samples.shape
        size = max(1, BLOCK_ENTRIES // (rank * samples))
        starts = range(0, signs.shape[1], size)
        parts = [self._fitted(axes.samples, signs[:, k : k + size] > 0) for k in starts]
        return LabelingFits(*(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))

    def _fitted(self, samples: Array, up: Mask) -> LabelingFits:
        classes = _Classes.of(samples, up)
        values, vectors = np.linalg.eigh(classes.covariances())
        along = np.einsum("bji,bj->bi", vectors, classes.apart)
        # n samples in general position vary within two classes in n - 2 directions
        null = max(0, samples.shape[1] - (samples.shape[0] - 2))
        solved = values[:, null] > LEAST_EIGENVALUE * values[:, -1]
        real = np.arange(values.shape[1]) >= null
        heavy = np.where(real & solved[:, None], values, 1.0)
        squares = np.where(real, along**2, 0.0)
        most = np.sqrt((squares / heavy).sum(axis=1)) + (np.inf if null else 0.0)
        kappa = np.array([self.kappa_of(float(each)) for each in most])
        mu = multipliers(heavy, squares, kappa)[:, None]
        regression = np.where(real, along / (heavy + mu), 0.0)
        direction = np.where(real, mu * regression, along)
        coef, free = (np.einsum("bij,bj->bi", vectors, each) for each in (direction, regression))
        gaps = np.where(solved, classes.relative_gaps(coef, free, kappa), np.inf)
        return LabelingFits(samples @ coef.T, np.linalg.norm(coef, axis=1), gaps)


class _Classes(NamedTuple):
    """Means and covariances of the classes of labelings.

    Attributes
    ----------
    samples : (n_samples, rank)
    shares : (2, n_samples, n_labelings)
        Of each sample in each class.
    means : (2, n_labelings, rank)
    """

    samples: Array
    shares: Array
    means: Array

    @classmethod
    def of(cls, samples: Array, up: Mask) -> _Classes:
        shares = np.stack([up / up.sum(axis=0), ~up / (~up).sum(axis=0)])
        return cls(samples, shares, shares.transpose(0, 2, 1) @ samples)

    @property
    def apart(self) -> Array:
        """The difference d of the means, (n_labelings, rank)."""
        return np.asarray(self.means[0] - self.means[1])

    def covariances(self) -> Array:
        """The sum of the covariances of both classes, (n_labelings, rank, rank)."""
        weights = self.shares.sum(axis=0).T
        found = (self.samples.T * weights[:, None, :]) @ self.samples
        for mean in self.means:
            found -= mean[:, :, None] * mean[:, None, :]
        return np.asarray(found)

    def deviations(self, coef: Array) -> Array:
        """``r_i (z_i'w - mean)``, whose squares sum to ``w'S w``, (n_samples, n_labelings)."""
        scores = self.samples @ coef.T
        for share in self.shares:
            scores = scores - (share > 0) * (share * scores).sum(axis=0)
        return np.asarray(np.sqrt(self.shares.sum(axis=0)) * scores)

    def relative_gaps(self, coef: Array, free: Array, kappa: Array) -> Array:
        """Duality gaps of ``-d'w + kappa sqrt(w'S w) + |w|^2 / 2`` over the objective.

        The dual point has ``u = v / kappa`` for the deviations v of the scores by ``free``, scaled
        into the unit ball. The gap is a sum of Fenchel-Young terms, of the ridge and of the loss
        (`EllipsoidLoss.fenchel_young`).
        """
        v, u = self.deviations(coef), self.deviations(free) / kappa
        u = u / np.maximum(np.linalg.norm(u, axis=0), 1.0)
        pulled = kappa[:, None] * ((np.sqrt(self.shares.sum(axis=0)) * u).T @ self.samples)
        sizes, rest = np.linalg.norm(v, axis=0), coef - self.apart + pulled
        turned = u - np.divide(v, sizes, out=np.zeros_like(v), where=sizes > 0)
        inside = np.maximum(1.0 - (u**2).sum(axis=0), 0.0)
        losses = 0.5 * kappa * sizes * ((turned**2).sum(axis=0) + inside)
        gaps = 0.5 * (rest**2).sum(axis=1) + losses
        objectives = 0.5 * (coef**2).sum(axis=1) - (self.apart * coef).sum(axis=1) + kappa * sizes
        scale = np.maximum(np.abs(objectives), np.abs(objectives - gaps))
        return np.asarray(gaps / np.maximum(scale, TINY))
