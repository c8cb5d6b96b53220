"""The loss of the nu-SVM: the mean margin of the worst samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.losses.margins import root_of_steps
from proxmargin.compiled.rounding import DOMAIN_ROUNDING, TIE_ROUNDING
from proxmargin.functions.losses.base import Box, IndicatorDual, SupportLoss
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.projections import BoxHyperplane
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.types import Array


def largest_nu(signs: ArrayLike, shares: ArrayLike) -> float:
    """``2 min(S+, S-) / S``: the largest nu for which a free intercept leaves a dual point, as each
    class has to carry half of the mass of the tail. Ito, Takeda and Toh (2017, 3.2.4) print max."""
    up = np.ravel(signs) > 0
    weights = np.ravel(shares)
    sums = float(weights[up].sum()), float(weights[~up].sum())
    return 2.0 * min(sums) / sum(sums)


class TailMean(SupportLoss):
    """``L(z) = min_rho  -rho + (1/nu) sum_i s_i [rho - t_i]_+``, with margins ``t_i = y_i z_i``.

    It is minus the mean margin of the share nu of the samples with the smallest margins (the
    conditional value at risk of -t), ``max -sum_i a_i t_i`` over

        0 <= a_i <= s_i / nu,   sum_i a_i = 1,

    and the dual point is ``q_i = -y_i a_i``. With a free intercept each class has half of the
    a: (14) of Ito, Takeda and Toh (2017).

    Parameters
    ----------
    signs, shares, sample_count
        See `SupportLoss`.
    nu : float
        In (0, largest_nu] if the intercept will be free, else in (0, 1].
    free_intercept : bool
        Which of the two holds.

    Raises
    ------
    ValueError
        For a nu outside its range, naming the range.

    See Also
    --------
    proxmargin.NuSVC : The model with this loss.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import TailMean
    >>> signs = np.array([1.0, 1.0, -1.0, -1.0])
    >>> loss = TailMean(signs, np.full(4, 0.25), nu=0.5)
    >>> float(loss.value(np.array([[1.0], [3.0], [-2.0], [-4.0]])))  # minus the mean of 1 and 2
    -1.5
    """

    def __init__(
        self,
        signs: ArrayLike,
        shares: ArrayLike,
        nu: float,
        sample_count: float = 0.0,
        *,
        free_intercept: bool = True,
    ) -> None:
        super().__init__(signs, shares, sample_count)
        self.nu = nu
        most = self._most if free_intercept else 1.0
        if not 0.0 < nu <= most * (1.0 + DOMAIN_ROUNDING):
            why = " = 2 min(S+, S-) / S, where S+ and S- are the weights of the classes"
            raise ValueError(
                f"nu must be > 0 and at most {most:.17g}{why if free_intercept else ''}, got {nu!r}"
            )
        self.upper: Array = self.shares / min(nu, most)

    def value(self, scores: Array) -> float:
        t = self._margins(scores)
        rho = _level(t, self.upper, 1.0)
        return float(self.upper @ np.maximum(rho - t, 0.0)) - rho

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        """The loss and a subgradient: the last sample of the tail has a fraction of its cap. Among
        samples tied there, each class gets what brings its share to one half, if it can."""
        t = self._margins(scores)
        rho = _level(t, self.upper, 1.0)
        value = -rho + float(self.upper @ np.maximum(rho - t, 0.0))
        tied = np.abs(t - rho) <= TIE_ROUNDING * float(np.abs(t[self.upper > 0]).max())
        a = np.where((t < rho) & ~tied, self.upper, 0.0)
        room = [np.flatnonzero(tied & one) for one in self._classes]
        space = [float(self.upper[index].sum()) for index in room]
        missing = max(1.0 - float(a.sum()), 0.0)
        wanted = 0.5 - float(a[self._classes[0]].sum())
        first = float(np.clip(wanted, max(missing - space[1], 0.0), min(space[0], missing)))
        for index, mass, most in zip(room, (first, missing - first), space, strict=True):
            if most > 0:
                a[index] = self.upper[index] * min(mass / most, 1.0)
        return value, (-self.signs * a)[:, None]

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        """``sum_{t < rho} (s/nu - a)(rho - t) + sum_{t > rho} a (t - rho)``, term by term >= 0.
        Infinite outside the domain of the conjugate; a rounding error in ``sum a = 1`` is charged
        to the dual point."""
        if self.conjugate(dual) > 0:
            return np.inf
        t, a = self._margins(scores), -self.signs * dual[:, 0]
        rho = _level(t, self.upper, 1.0)
        below = np.maximum(self.upper - a, 0.0) * np.maximum(rho - t, 0.0)
        above = np.maximum(a, 0.0) * np.maximum(t - rho, 0.0)
        return float((below + above).sum()) + abs(rho * (float(a.sum()) - 1.0))

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """A bound that keeps the rho of these scores: any rho bounds the terms of other scores."""
        t, a = self._margins(scores), np.maximum(-self.signs * dual[:, 0], 0.0)
        rho, off = _level(t, self.upper, 1.0), np.broadcast_to(error, scores.shape)[:, 0]
        rest = np.maximum(self.upper - a, 0.0)
        below = np.maximum(rho - t + off, 0.0) - np.maximum(rho - t, 0.0)
        above = np.maximum(t - rho + off, 0.0) - np.maximum(t - rho, 0.0)
        return float(rest @ below + a @ above)

    def excess(self, dual: Array) -> float:
        a = -self.signs * dual[:, 0]
        outside = np.maximum(np.maximum(a - self.upper, -a), 0.0).sum()
        return max(float(outside), abs(float(a.sum()) - 1.0))

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """Clip a into the box, then correct the sum of each class, or of all if none is prescribed.
        A sum that is too large is scaled down; one that is too small moves every entry towards its
        cap."""
        a = np.clip(-self.signs * dual[:, 0], 0.0, self.upper)
        for index, total in self._groups(intercept):
            a[index] = _with_sum(a[index], self.upper[index], total)
        return (-self.signs * a)[:, None]

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        """For a free intercept ``(rho_- - rho_+) / 2`` of the levels of the two classes. Each level
        is that of half the mass; where it is an interval, its middle. With a ridge, the share m of
        the positive class is the root of an increasing function, and ``b = (2 m - 1) / l2``."""
        t = self._margins(scores)
        if intercept.is_shift_invariant:
            (up, half), (down, _) = self._groups(intercept)
            difference = _level(t[down], self.upper[down], half) - _level(
                t[up], self.upper[up], half
            )
            return np.array([0.5 * difference])
        if intercept.l2 > 0:
            up, down = (np.flatnonzero(one) for one in self._classes)
            share = _share_of_first(
                (t[up], self.upper[up]), (t[down], self.upper[down]), intercept.l2
            )
            return np.array([(2.0 * share - 1.0) / intercept.l2])
        return intercept.into_domain(start[None, :])[0]

    def threshold(self, scores: Array) -> float:
        """The minimising rho of the definition: the margin at which the tail ends. At the best free
        intercept it is ``(rho_+ + rho_-) / 2``, the level of both classes; where it is an interval,
        its middle."""
        return _level(self._margins(scores), self.upper, 1.0)

    @property
    def box(self) -> Box:  # type: ignore[override]
        zeros = np.zeros_like(self.upper)
        return Box(self.signs, self.upper, zeros, zeros, -1.0)

    def dual_form(self, intercept: Penalty, floor: float = 0.0) -> CappedSimplexDual:
        return CappedSimplexDual(self, self._groups(intercept))

    @cached_property
    def _classes(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return self.signs > 0, self.signs < 0

    @cached_property
    def _halves(self) -> list[tuple[NDArray[np.intp], float]]:
        live = self.upper > 0
        return [(np.flatnonzero(live & one), 0.5) for one in self._classes]

    @cached_property
    def _most(self) -> float:
        return largest_nu(self.signs, self.shares)

    def _margins(self, scores: Array) -> Array:
        margins: Array = self.signs * scores[:, 0]
        return margins

    def _groups(self, intercept: Penalty) -> list[tuple[NDArray[np.intp], float]]:
        """Index sets of samples with positive weight, with the sum that their a must have."""
        if not intercept.is_shift_invariant:
            return [(np.flatnonzero(self.upper > 0), 1.0)]
        if self.nu > self._most * (1.0 + DOMAIN_ROUNDING):
            raise ValueError(
                f"nu must be at most {self._most:.17g} with a free intercept, got {self.nu}"
            )
        return self._halves


class CappedSimplexDual(IndicatorDual):
    """``q_i = -y_i r_i u_i`` with ``r_i = sqrt(s_i n)``, n the effective number of samples. For
    equal weights r is 1 and u are the a. Each group of samples has a capped simplex ``0 <= u_i <=
    cap_i / r_i``, ``sum_i r_i u_i = total``."""

    def __init__(self, loss: TailMean, groups: list[tuple[NDArray[np.intp], float]]) -> None:
        shares = loss.shares
        self.roots = np.sqrt(shares * (shares.sum() ** 2 / (shares @ shares)))
        self.upper = loss.upper
        self.groups = groups
        self.sets = [self._class_set(*group) for group in groups]
        self.offset = np.zeros(shares.size)
        self.scale = -loss.signs * self.roots

    def uniform(self, level: float) -> Array:
        return self._over_roots(np.full_like(self.upper, level))

    def centre(self) -> Array:
        a = np.zeros_like(self.upper)
        for index, total in self.groups:
            a[index] = _with_sum(np.zeros(index.size), self.upper[index], total)
        return self._over_roots(a)

    def project(self, u: Array, step: float = 1.0) -> Array:
        projected = np.zeros_like(u)
        for (index, _), one in zip(self.groups, self.sets, strict=True):
            projected[index] = one.nearest(u[index], step)
        return projected

    def _class_set(self, index: NDArray[np.intp], total: float) -> BoxHyperplane:
        r, cap = self.roots[index], self._over_roots(self.upper)[index]
        # the sum of the caps is no less than the total, but for rounding, at largest_nu
        return BoxHyperplane(r, min(total, float(r @ cap)), np.zeros(1), cap)

    def _over_roots(self, a: Array) -> Array:
        return np.divide(a, self.roots, out=np.zeros_like(a), where=self.roots > 0)


def _level(t: Array, caps: Array, mass: float) -> float:
    """The middle rho with ``sum caps [t < rho] <= mass <= sum caps [t <= rho]``."""
    return float(root_of_steps(t, caps, -mass, 0.0, DOMAIN_ROUNDING))


def _with_sum(a: Array, caps: Array, total: float) -> Array:
    """A point of ``0 <= a <= caps`` near a with the sum ``total``, if there is one. Rounding of the
    sum is corrected in entries inside, so that zeros and caps stay exact."""
    found = float(a.sum())
    if abs(found - total) <= DOMAIN_ROUNDING * total:
        inside = (a > 0) & (a < caps)
        held = float(a[inside].sum())
        if held > 0:
            return np.where(inside, np.minimum(a * (1.0 + (total - found) / held), caps), a)
    if found > total:
        return a * (total / found)
    slack = caps - a
    room = float(slack.sum())
    return np.minimum(a + slack * min((total - found) / room, 1.0), caps) if room > 0 else a


def _share_of_first(first: tuple[Array, Array], second: tuple[Array, Array], l2: float) -> float:
    """The root m of ``f(m) - g(1 - m) + 2 (2 m - 1) / l2``, in what both classes can carry. f and g
    are the levels (t, caps) of the classes as functions of mass: steps, increasing."""
    (t, up), (s, down) = (_sorted(*one) for one in (first, second))
    low, high = max(0.0, 1.0 - float(down[-1])), min(1.0, float(up[-1]))
    ends = np.unique(np.clip(np.concatenate([[low, high], up, 1.0 - down]), low, high))
    if ends.size == 1:
        return low
    middle = 0.5 * (ends[1:] + ends[:-1])
    # constant between the ends of the steps
    level = t[np.minimum(np.searchsorted(up, middle), t.size - 1)]
    level = level - s[np.minimum(np.searchsorted(down, 1.0 - middle), s.size - 1)]
    rising = level + 2.0 * (2.0 * ends[1:] - 1.0) / l2
    piece = min(int(np.searchsorted(rising, 0.0)), level.size - 1)
    root = 0.5 - 0.25 * l2 * float(level[piece])
    return float(np.clip(root, ends[piece], ends[piece + 1]))


def _sorted(t: Array, caps: Array) -> tuple[Array, Array]:
    """Margins in increasing order and the mass up to each, without those of no mass."""
    live = caps > 0
    order = np.argsort(t[live])
    return t[live][order], np.cumsum(caps[live][order])
