"""The multinomial logistic loss, and the hinge of Crammer and Singer, whose limit it is."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.losses import class_flows, crammer_singer, multinomial
from proxmargin.compiled.losses.class_forms import Softmax
from proxmargin.compiled.rounding import DOMAIN_ROUNDING, OBJECTIVE_ROUNDING
from proxmargin.functions.losses.base import SmoothedLoss
from proxmargin.functions.losses.classes.comparison import (
    LabelledLoss,
    SmoothComparison,
    compare_pessimistically,
)
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.penalties.partition import Groups
from proxmargin.functions.projections import column_shift, simplex_rows, transport
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array


class Multinomial(SmoothComparison):
    """``L(Z) = sum_i shares_i log(1 + sum_{k != y} exp(margin + z_ik - z_iy))``.

    Parameters
    ----------
    codes, shares, count, total
        See `SmoothComparison`.
    margin : float, default 0.0
        0 is multinomial logistic regression, 1 is (20) of Chierchia et al. (2015).

    Notes
    -----
    The rates and what they leave of one are probabilities a, and the conjugate is
    ``sum_i s_i (sum_k a_ik log a_ik - margin (1 - a_iy))``.

    See Also
    --------
    proxmargin.MulticlassSVC : Models with losses of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Multinomial
    >>> loss = Multinomial(np.array([0, 2]), np.array([0.5, 0.5]), 3, 2.0)
    >>> round(float(loss.value(np.zeros((2, 3)))), 4)  # log(3)
    1.0986
    """

    most_rate = 1.0
    curvature = 0.5  # of diag(p) - p p', where two classes share the probability

    def __init__(
        self, codes: NDArray[np.intp], shares: Array, count: int, total: float, margin: float = 0.0
    ) -> None:
        super().__init__(codes, shares, count, total)
        self.margin = margin

    @property
    def form(self) -> Softmax:
        return Softmax(float(self.margin))

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        divergence = multinomial.relative_entropy_sum(
            scores, self.codes, self.shares, self.margin, dual
        )
        return float(divergence + class_flows.loose_rows(dual, scores))

    def conjugate(self, dual: Array) -> float:
        if not self.in_domain(dual):
            return np.inf
        return float(multinomial.entropy_sum(self.codes, self.shares, self.margin, dual))

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """A scalar equation for each sample."""
        nearest, _ = self._nearest(dual, step)
        return nearest

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        """``c (diag(g) - g g' / sum(g))`` with ``c = share / step`` and ``g = p / (1 + c p)``."""
        _, slopes = self._nearest(dual, step)
        ratios = self.shares[:, None] / step
        sums = slopes.sum(axis=1, keepdims=True)
        vectors = slopes * np.sqrt(np.divide(ratios, sums, out=np.zeros_like(sums), where=sums > 0))
        return ProxJacobian(ratios * slopes, vectors, Groups.features(len(dual)), sign=-1.0)

    def _nearest(self, dual: Array, step: float) -> tuple[Array, Array]:
        nearest, slopes = np.empty(dual.shape), np.empty(dual.shape)
        multinomial.conjugate_prox(
            dual, self.codes, self.shares, self.margin, step, nearest, slopes
        )
        return nearest, slopes


class CrammerSinger(LabelledLoss):
    """``L(Z) = sum_i shares_i max_k (z_ik + [k != y_i] - z_iy)``.

    Dual points are ``q_i = shares_i (p_i - e_y)`` with p_i in the unit simplex, and
    ``L*(q) = -sum_i sum_{k != y_i} q_ik`` there. A free intercept asks for zero column sums: the
    ``shares_i p_i`` form a transportation polytope between the samples and the classes.

    Takes the parameters of `LabelledLoss`.

    Notes
    -----
    (7) of Chierchia et al. (2015), whose (11) leaves the constraint of the intercept implicit.

    See Also
    --------
    proxmargin.MulticlassSVC : Models with losses of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import CrammerSinger
    >>> loss = CrammerSinger(np.array([0, 2]), np.array([0.5, 0.5]), 3)
    >>> loss.value(np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.5]]))  # losses 0 and 0.5
    0.25
    """

    traits = Trait.MANY_OUTPUTS | Trait.CONJUGATE_PROX | Trait.CONJUGATE_PROX_JACOBIAN

    @cached_property
    def class_shares(self) -> Array:
        """Weight of each class, (n_classes,)."""
        sums = np.bincount(self.codes, self.shares, minlength=self.count)
        return sums.astype(np.float64)

    @cached_property
    def margins(self) -> Array:
        """``[k != y_i]``, (n_samples, n_classes): the margin by which the own score has to lead."""
        wanted = np.ones((self.codes.size, self.count))
        wanted[np.arange(self.codes.size), self.codes] = 0.0
        return wanted

    def value(self, scores: Array) -> float:
        return float(crammer_singer.value_sum(scores, self.codes, self.shares))

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        """The loss and a subgradient: tied classes share the weight of their sample."""
        gradient = np.empty(scores.shape)
        return crammer_singer.subgradient(scores, self.codes, self.shares, gradient), gradient

    def curvature_bound(self, row_weights: Array) -> float:
        return np.inf

    def smoothed(self, width: float) -> SmoothedLoss:
        """``width log sum_k exp(m_k / width)`` for each sample: at most ``width log K`` above
        ``max_k m_k``."""
        smooth = Multinomial(self.codes, self.shares, self.count, self.total, margin=1.0 / width)
        return SmoothedLoss(smooth, width, width * float(np.log(self.count)))

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        return float(crammer_singer.fenchel_young_sum(scores, self.codes, self.shares, dual))

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """The terms are ``sum_k mass_ik (max_l m_il - m_ik)`` with ``m = z + [k != y]``: each
        difference can grow by two errors, and only where another class can come out on top."""
        margins = scores + self.margins
        order = np.sort(margins, axis=1)
        top, second = order[:, -1:], order[:, -2:-1]
        others = np.where(margins == top, second, top)
        most = np.max(np.broadcast_to(error, scores.shape), axis=1, keepdims=True)
        apart = np.maximum(others - margins + 2.0 * most, 0.0) - (top - margins)
        return float(np.vdot(self.masses(dual), np.maximum(apart, 0.0)))

    def pessimistic(self, scores: Array, error: Array) -> Array:
        return compare_pessimistically(scores, self.codes, error)

    def conjugate(self, dual: Array) -> float:
        masses = self.masses(dual)
        slack = DOMAIN_ROUNDING * self.shares.max()
        apart = np.abs(dual.sum(axis=1)).max()
        empty = self.shares == 0
        if masses.min() < -slack or apart > slack or np.any(dual[empty]):
            return np.inf
        return -float(np.vdot(self.margins, dual))

    def domain_gauge(self, dual: Array) -> float:
        return float(class_flows.largest_rate(dual, self.codes, self.shares))

    def masses(self, dual: Array) -> Array:
        """``q_i + shares_i e_y``: non-negative with row sums ``shares`` for dual points q."""
        return self._moved(dual, 1.0)

    def dual_of(self, points: Array) -> Array:
        """``shares_i (p_i - e_y)`` for points p of the unit simplex, one a sample."""
        return self._moved(self.shares[:, None] * points, -1.0)

    def points_of(self, dual: Array) -> Array:
        """The p_i of a dual point, (n_samples, n_classes); ``e_y`` for samples of weight zero."""
        masses, shares = self.masses(dual), self.shares[:, None]
        own = np.arange(self.count) == self.codes[:, None]
        return np.divide(masses, shares, out=own.astype(np.float64), where=shares > 0)

    def near_points(self, scores: Array, width: float) -> Array:
        """Points p_i of the simplex: uniform on classes within ``width`` of the largest margin."""
        own = scores[np.arange(self.codes.size), self.codes]
        margins = scores - own[:, None] + self.margins
        near = margins >= margins.max(axis=1, keepdims=True) - width
        return near / near.sum(axis=1, keepdims=True)

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """The nearest dual point, with column sums that the intercept allows. That is the Euclidean
        projection, onto simplices where the intercept is penalised or absent, else onto the
        transportation polytope."""
        masses = self.masses(dual)
        if intercept.is_shift_invariant:
            return self._dual_of(transport(masses, self.shares, self.class_shares))
        return self._dual_of(simplex_rows(masses, self.shares))

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """``argmin_q L*(q) + |q - dual|^2 / (2 step)``: one simplex projection a sample."""
        return self._dual_of(self._nearest_masses(dual, step))

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        """``diag(A) - A A' / |A|`` for each sample, A the support of its masses."""
        live = (self._nearest_masses(dual, step) > 0).astype(np.float64)
        vectors = live / np.sqrt(np.maximum(live.sum(axis=1, keepdims=True), 1.0))
        return ProxJacobian(live, vectors, Groups.features(len(live)), sign=-1.0)

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        """``argmin_b L(scores + b) + intercept(b)``; never worse than ``start``.

        For zero scores and a free intercept in closed form, otherwise by proximal steps on the
        masses: each is a projection whose multipliers are the intercept. They end when the
        masses prove the intercept optimal, when neither gets better, or after eight.
        """
        if intercept.is_pinned:
            return np.zeros_like(start)
        free = intercept.is_shift_invariant
        if free and not scores.any():
            # with the largest intercept at zero and the others at -t, t in [0, 1], and the share m
            # of that class, L = (1 + t) (1 - m) + (1 - t) m; no other intercepts are better
            return self._projected(np.where(self.class_shares > 0.5, 1.0, 0.0), intercept)
        best = self._projected(start, intercept)
        least = self._shifted_value(scores, best, intercept)
        wanted, sigma = scores + self.margins, 32.0 * float(self.shares.max())
        masses, closest = self.masses(np.zeros_like(scores)), np.inf
        for _ in range(8):
            masses, shift = column_shift(
                masses + sigma * wanted, self.shares, self.class_shares, sigma * best,
                intercept.l2 / sigma,
            )  # fmt: skip
            candidate = self._projected(shift / sigma, intercept)
            if free:
                candidate = self._projected(self._lowered(scores, candidate), intercept)
            value = self._shifted_value(scores, candidate, intercept)
            improves = value < least
            if value <= least:
                best, least = candidate, value
            dual = self.balanced(self._dual_of(masses.copy()), intercept)
            gap = self.fenchel_young(scores + candidate, dual)
            gap += float(intercept.fenchel_young(candidate[None, :], -dual.sum(0)[None, :]).sum())
            proves = gap <= OBJECTIVE_ROUNDING * (abs(value) + 1.0)
            if proves or not (improves or gap < closest):
                break
            closest, sigma = min(gap, closest), 8.0 * sigma
        return best

    def _nearest_masses(self, dual: Array, step: float) -> Array:
        """The masses of the prox of the conjugate."""
        return simplex_rows(self.masses(dual) + step * self.margins, self.shares)

    def _lowered(self, scores: Array, intercept: Array) -> Array:
        """Lower the intercepts of classes without weight until no sample violates there most."""
        empty = np.flatnonzero(self.class_shares == 0)
        if empty.size == 0:
            return intercept
        live, seen = self.class_shares > 0, self.shares > 0
        worst = (scores + self.margins + intercept)[np.ix_(seen, live)].max(axis=1, keepdims=True)
        lowered = intercept.copy()
        lowered[empty] = np.minimum(
            intercept[empty], (worst - 1.0 - scores[np.ix_(seen, empty)]).min(axis=0)
        )
        return lowered

    def _shifted_value(self, scores: Array, shift: Array, intercept: Penalty) -> float:
        return self.value(scores + shift) + intercept.value(shift[None, :])

    @staticmethod
    def _projected(shift: Array, intercept: Penalty) -> Array:
        """The nearest shift in the domain of the intercept's penalty; centred if it is free."""
        return intercept.into_domain((shift - shift.sum() / shift.size)[None, :])[0]

    def _moved(self, dual: Array, factor: float) -> Array:
        moved = dual.copy()
        moved[np.arange(self.codes.size), self.codes] += factor * self.shares
        return moved

    def _dual_of(self, masses: Array) -> Array:
        """``masses - shares e_y``, with the own entry set so that rows sum to zero exactly."""
        own = np.arange(self.codes.size), self.codes
        masses[own] = 0.0
        masses[own] = -masses.sum(axis=1)
        return masses
