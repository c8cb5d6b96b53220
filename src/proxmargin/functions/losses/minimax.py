"""Minimax losses: minus the difference of the class means, plus kappa standard deviations."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.functions.losses.base import IndicatorDual, SupportLoss
from proxmargin.functions.penalties.base import Penalty
from proxmargin.runtime.types import Array, Index


class EllipsoidLoss(SupportLoss):
    """``L(z) = -(mean_+ z - mean_- z) + kappa sum_k |v_k|``, over blocks k of samples.

    ``v_i = r_i (z_i - mean)`` are the deviations from the mean of the class, with the share
    ``r_i^2 = s_i / S_o`` of the sample in its class: ``|v|^2`` over a class is its variance.
    The domain of the conjugate is ``q = offset + kappa r u`` with ``offset_i = -y_i r_i^2``,
    where u is orthogonal to r in each class and ``|u_k| <= 1`` for each block. Its entries sum to
    zero whatever the intercept, to which the loss is invariant.

    Parameters
    ----------
    signs, shares, sample_count
        See `SupportLoss`.
    kappa : float >= 0
        Below `proxmargin.models.limits.kappa.kappa_max` there is a direction of negative loss.

    Raises
    ------
    ValueError
        For a kappa that is negative, infinite or not a number.
    """

    def __init__(
        self, signs: ArrayLike, shares: ArrayLike, kappa: float, sample_count: float = 0.0
    ) -> None:
        super().__init__(signs, shares, sample_count)
        if not (np.isfinite(kappa) and kappa >= 0):
            raise ValueError(f"kappa must be a finite number >= 0, got {kappa!r}")
        self.kappa = kappa
        classes = [np.flatnonzero(self.signs > 0), np.flatnonzero(self.signs < 0)]
        self.form = EllipsoidDual(self.signs, self.shares, kappa, classes, self._blocks(classes))

    @abstractmethod
    def _blocks(self, classes: list[Index]) -> list[Index]:
        """The blocks of samples whose u share one ball, given the samples of each class."""

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        z = self._centred(scores)
        v = self.form.deviations(z)
        value, u = float(self.form.offset @ z), np.zeros_like(v)
        for block in self.form.blocks:
            size = _norm(v[block])
            value += self.kappa * size
            if size > 0:
                u[block] = v[block] / size
        return value, self.form.dual_point(u)[:, None]

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        """``kappa sum_k |v_k| (|u_k - v_k/|v_k||^2 + 1 - |u_k|^2) / 2``, a sum of terms >= 0.
        Infinite outside the domain of the conjugate; a rounding error in the orthogonality of u is
        charged to the dual point."""
        if self.conjugate(dual) > 0:
            return np.inf
        z = self._centred(scores)
        v, u = self.form.deviations(z), self.form.coordinates(dual[:, 0])
        total = self.kappa * float(np.abs(self.form.along(u)) @ np.abs(self.form.means(z)))
        for block in self.form.blocks:
            size = _norm(v[block])
            if size > 0:
                apart = _norm(u[block] - v[block] / size) ** 2
                total += 0.5 * self.kappa * size * (apart + max(1.0 - _norm(u[block]) ** 2, 0.0))
        return total

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """``|v_k|`` and ``u_k'v_k`` each change by no more than ``|r d|``, d within the error."""
        off = self.form.roots * np.broadcast_to(error, scores.shape)[:, 0]
        return 2.0 * self.kappa * sum(_norm(off[block]) for block in self.form.blocks)

    def excess(self, dual: Array) -> float:
        form = self.form
        u = form.coordinates(dual[:, 0])
        outside = [_norm(u[block]) - 1.0 for block in form.blocks]
        fixed = np.abs(dual[:, 0] - form.offset)[form.scale == 0]
        along = float(np.abs(form.along(u)).max())
        return max(self.kappa * max(*outside, along, 0.0), float(fixed.max(initial=0.0)))

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """The nearest point of the domain, in the coordinates u."""
        form = self.form
        return form.dual_point(form.project(form.coordinates(dual[:, 0])))[:, None]

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        """``start`` if the intercept is free, to which the loss is invariant; else zero."""
        if intercept.is_shift_invariant:
            return start.copy()
        return np.zeros_like(start)

    def dual_form(self, intercept: Penalty, floor: float = 0.0) -> EllipsoidDual:
        return self.form

    def nearest_scores(self, scores: Array) -> tuple[float, float]:
        """The scores of the points of the two ellipsoids that are nearest to the other class.
        ``mean_+ z - kappa |v_+|^2 / |v_k|`` and ``mean_- z + kappa |v_-|^2 / |v_k|``, with k the
        block of the class; their difference is minus the loss."""
        z = np.ravel(scores)
        v, found = self.form.deviations(z), []
        for one, mean, towards in zip(
            self.form.classes, self.form.means(z), (-1.0, 1.0), strict=True
        ):
            block = next(block for block in self.form.blocks if np.isin(one[0], block))
            own, whole = _norm(v[one]), _norm(v[block])
            reach = own * (own / whole) if whole > 0 else 0.0
            found.append(float(mean) + towards * self.kappa * reach)
        return found[0], found[1]

    def _centred(self, scores: Array) -> Array:
        """Scores less their mean, to which the loss is invariant but its rounding is not."""
        z: Array = scores[:, 0] - float(self.shares @ scores[:, 0]) / float(self.shares.sum())
        return z


class MinimaxFisher(EllipsoidLoss):
    """``-(mean_+ z - mean_- z) + kappa sqrt(var_+ z + var_- z)``: MM-FDA.

    (16) of Ito, Takeda and Toh (2017) is its dual with a ball: one ellipsoid around the
    difference of the means. Parameters as for `EllipsoidLoss`.

    See Also
    --------
    proxmargin.MarginFDA : The model with this loss.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import MinimaxFisher
    >>> signs = np.array([1.0, 1.0, -1.0, -1.0])
    >>> loss = MinimaxFisher(signs, np.full(4, 0.25), kappa=1.0)
    >>> float(loss.value(np.array([[3.0], [1.0], [-1.0], [-1.0]])))  # -(2 + 1) + sqrt(1)
    -2.0
    """

    def _blocks(self, classes: list[Index]) -> list[Index]:
        return [np.concatenate(classes)]


class MinimaxProbability(EllipsoidLoss):
    """``-(mean_+ z - mean_- z) + kappa (sd_+ z + sd_- z)``: MM-MPM.

    (17) of Ito, Takeda and Toh (2017) is its dual with a ball: an ellipsoid around each mean.
    The risk that their 3.2.7 prints subtracts the second class, which is not convex. Parameters
    as for `EllipsoidLoss`.

    See Also
    --------
    proxmargin.MarginMPM : The model with this loss.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import MinimaxProbability
    >>> signs = np.array([1.0, 1.0, -1.0, -1.0])
    >>> loss = MinimaxProbability(signs, np.full(4, 0.25), kappa=1.0)
    >>> float(loss.value(np.array([[3.0], [1.0], [-1.0], [-2.0]])))  # -(2 + 1.5) + 1 + 0.5
    -2.0
    """

    def _blocks(self, classes: list[Index]) -> list[Index]:
        return classes


class EllipsoidDual(IndicatorDual):
    """``q = offset + kappa r u``, u orthogonal to r in each class, ``|u_k| <= 1`` in each block;
    classes and blocks are partitions of the samples, a block a union of classes."""

    def __init__(
        self, signs: Array, shares: Array, kappa: float, classes: list[Index], blocks: list[Index]
    ) -> None:
        self.classes, self.blocks = classes, blocks
        inside = np.zeros_like(shares)
        for one in classes:
            inside[one] = shares[one] / shares[one].sum()
        self.roots = np.sqrt(inside)
        self.offset = -signs * inside
        self.scale = kappa * self.roots

    def centre(self) -> Array:
        return np.zeros_like(self.roots)

    def project(self, u: Array, step: float = 1.0) -> Array:
        u = np.where(self.roots > 0, u, 0.0)
        along = self.along(u)
        for one, part in zip(self.classes, along, strict=True):
            u[one] -= part * self.roots[one]
        for block in self.blocks:
            u[block] /= max(_norm(u[block]), 1.0)
        return u

    def along(self, u: Array) -> Array:
        """``r'u`` in each class."""
        return np.array([self.roots[one] @ u[one] for one in self.classes])

    def means(self, z: Array) -> Array:
        """The mean of z in each class."""
        return np.array([self.roots[one] ** 2 @ z[one] for one in self.classes])

    def deviations(self, z: Array) -> Array:
        """``r (z - mean)``, orthogonal to r in each class."""
        v = np.zeros_like(z)
        for one, mean in zip(self.classes, self.means(z), strict=True):
            r = self.roots[one]
            centred = z[one] - mean
            v[one] = r * (centred - r**2 @ centred)  # centred twice, to remove rounding
        return v


def _norm(v: Array) -> float:
    return float(np.linalg.norm(v))
