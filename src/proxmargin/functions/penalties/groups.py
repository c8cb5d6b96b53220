"""Norms of groups of coefficients: groups enter and leave the model as a whole."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.projections.balanced_groups import (
    balanced_group_centres,
    balanced_group_prox,
)
from proxmargin.compiled.projections.groups import (
    group_l2_prox,
    group_linf_prox,
    group_linf_residual,
)
from proxmargin.compiled.projections.rows import balanced_linf_prox
from proxmargin.compiled.rounding import DOMAIN_ROUNDING, TIE_ROUNDING
from proxmargin.functions.penalties.base import Penalty, Step
from proxmargin.functions.penalties.jacobian import BalancedJacobian, ProxJacobian
from proxmargin.functions.penalties.partition import Groups
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array


@dataclass(frozen=True, eq=False)
class GroupNorm(Penalty):
    """``G(W) = strength sum_g omega_g |W_g|``; its conjugate is the indicator of

        ``|V_g|_* <= strength omega_g`` for every group, with the dual norm.

    Parameters
    ----------
    groups : Groups
    strength : float >= 0
    weights : (n_groups,) > 0, optional
        The omega_g, the same in each class; ones by default.

    Examples
    --------
    >>> from proxmargin.penalties import GroupL2, GroupNorm, Groups
    >>> isinstance(GroupL2(Groups.features(3)), GroupNorm)
    True
    """

    groups: Groups
    strength: float = 1.0
    weights: Array | None = None

    is_portable = False  # groups are those of the features of a data set
    by_features = False
    traits = Trait.PROX_JACOBIAN

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not (np.isfinite(self.strength) and self.strength >= 0):
            raise ValueError(
                f"{name}: strength must be a finite number >= 0, got {self.strength!r}"
            )
        if self.weights is None:
            return
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (self.groups.n_groups,):
            raise ValueError(
                f"{name}: weights must be one number a group, ({self.groups.n_groups},), got an "
                f"array of shape {weights.shape}"
            )
        if not (np.all(np.isfinite(weights)) and np.all(weights > 0)):
            raise ValueError(f"{name}: weights must be finite numbers > 0")
        object.__setattr__(self, "weights", weights)

    @abstractmethod
    def _norms(self, values: Array) -> Array:
        """The norm of each group of oriented values, (n_groups, n_columns)."""

    @abstractmethod
    def _dual_norms(self, values: Array) -> Array:
        """The dual norm of each group of oriented values, (n_groups, n_columns)."""

    def value(self, coef: Array) -> float:
        values = self.groups.oriented(coef)
        return float(np.vdot(self._radii(values), self._norms(values)))

    def prox(self, coef: Array, step: Step) -> Array:
        values = self.groups.oriented(coef)
        steps = self.groups.oriented(np.broadcast_to(step, coef.shape))
        layout = self.groups.layout(values.shape[0])
        return self.groups.restored(self._kernel()(values, steps, *layout, self._radii(values)))

    @staticmethod
    @abstractmethod
    def _kernel() -> Any:
        """The compiled prox of oriented values."""

    # -- of rows that sum to zero over the classes ------------------------------------------------

    is_polyhedral: ClassVar[bool]
    """The norm is that of the largest entry of each group: its unit ball is a polytope."""

    def class_centres(self, dual: Array) -> Array:
        """The shifts of rows, (n_features, 1), that minimise the dual norm of each group (for
        groups within classes, the largest dual norm over the classes)."""
        if self.groups.across_classes:
            return self._row_centres(dual)
        layout = self.groups.layout(len(dual))
        shifts, *_ = balanced_group_centres(np.ascontiguousarray(dual), *layout, self.is_polyhedral)
        return shifts

    def balanced_dual_norms(self, dual: Array) -> tuple[Array, Array]:
        """For groups within classes: the least, over shifts of the rows, of the largest dual norm
        over the classes, (n_groups,), and points that attain it.

        This equals ``max <V_g, W_g>`` over W whose rows sum to zero and whose norms add up to one
        over the classes; the points, (n_features, n_outputs), are such W for every group.
        """
        layout, dual = self.groups.layout(len(dual)), np.ascontiguousarray(dual)
        _, norms, points = balanced_group_centres(dual, *layout, self.is_polyhedral)
        return norms, points

    def balanced_prox(self, coef: Array, step: Step) -> tuple[Array, Array]:
        """The prox under the constraint that rows sum to zero, and the shifts (n_features, 1) of
        coef at which the unconstrained prox gives the same."""
        if self.groups.across_classes:
            return self._balanced_rows(coef, step)
        steps = np.array(np.broadcast_to(step, (len(coef), 1)), dtype=np.float64, order="C")
        layout, radii = self.groups.layout(len(coef)), self.strength * self.omega
        coef = np.ascontiguousarray(coef)
        prox, shifts = balanced_group_prox(coef, steps, *layout, radii, self.is_polyhedral)
        return self._with_ties(prox, coef), shifts

    def _with_ties(self, prox: Array, coef: Array) -> Array:
        """``prox``, that of ``coef``, without rounding among entries that are equal or zero. Shifts
        need not be unique: with some of them equal entries of the sup norm only just reach their
        bound, and their rounding is that of the coefficients, however small they are."""
        if not self.is_polyhedral:
            return prox
        norms, sizes = (self._norms(self.groups.oriented(each)) for each in (prox, coef))
        tops = self.groups.spread(norms, len(prox))
        largest = np.repeat(sizes.max(axis=1, keepdims=True), sizes.shape[1], axis=1)
        rounding = TIE_ROUNDING * self.groups.spread(largest, len(prox))
        near = np.abs(prox) >= tops - rounding
        return np.where(tops > rounding, np.where(near, np.copysign(tops, prox), prox), 0.0)

    def balanced_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """An element of the generalised Jacobian of `balanced_prox`."""
        if self.groups.across_classes:
            return self._rows_jacobian(coef, step)
        return self._blocks_jacobian(coef, step)

    @abstractmethod
    def _row_centres(self, dual: Array) -> Array:
        """`class_centres` with one group a feature."""

    @abstractmethod
    def _balanced_rows(self, coef: Array, step: Step) -> tuple[Array, Array]:
        """`balanced_prox` with one group a feature."""

    @abstractmethod
    def _rows_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """`balanced_jacobian` with one group a feature."""

    @abstractmethod
    def _blocks_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """`balanced_jacobian` with groups within classes."""

    def conjugate(self, dual: Array) -> float:
        values = self.groups.oriented(dual)
        outside = self._dual_norms(values) > self._radii(values) * (1.0 + DOMAIN_ROUNDING)
        return np.inf if np.any(outside) else 0.0

    def largest_product(self, sizes: Array, level: float) -> float:
        """The bound from the dual norm: both norms of a group are invariant to signs."""
        largest = self.critical_strength(sizes)
        if largest == 0:
            return 0.0
        return level * largest / self.strength if self.strength > 0 else np.inf

    def domain_scale(self, dual: Array) -> float:
        largest = self.critical_strength(dual)
        return 1.0 if largest <= self.strength else self.strength / largest

    def critical_strength(self, dual: Array) -> float:
        values = self.groups.oriented(dual)
        return float((self._dual_norms(values) / self._omega(values)).max(initial=0.0))

    def times(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength)

    def restricted(self, index: NDArray[np.intp]) -> Self:
        groups, kept = self.groups.restricted(index)
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, groups=groups, weights=weights)

    @property
    def omega(self) -> Array:
        """The weights, ones where there are none, (n_groups,)."""
        return np.ones(self.groups.n_groups) if self.weights is None else self.weights

    def _omega(self, values: Array) -> Array:
        return self.groups.radii(self.omega, values.shape[1])

    def _radii(self, values: Array) -> Array:
        return self.strength * self._omega(values)

    def _by_feature(self, values: Array, ufunc: np.ufunc) -> Array:
        """Reduce oriented values to one number a feature."""
        reduced: Array = ufunc.reduce(values, axis=0 if self.groups.across_classes else 1)
        return reduced


@dataclass(frozen=True, eq=False)
class GroupL2(GroupNorm):
    """``G(W) = strength sum_g omega_g |W_g|_2``: the group lasso.

    The dual norm is the l2 norm again; see `GroupNorm` for the parameters.

    See Also
    --------
    Groups : Partitions of the features.
    proxmargin.MulticlassSVC : Models with groups.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import GroupL2, Groups
    >>> norm = GroupL2(Groups.within_classes([0, 0, 1]), strength=1.0)
    >>> float(norm.value(np.array([[3.0], [4.0], [-2.0]])))  # 5 + 2
    7.0
    """

    is_polyhedral: ClassVar[bool] = False

    def _norms(self, values: Array) -> Array:
        return _lengths(self.groups, values)

    def _dual_norms(self, values: Array) -> Array:
        return _lengths(self.groups, values)

    @staticmethod
    def _kernel() -> Any:
        return group_l2_prox

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """With s = |w_g|, r = |v_g|: ``(radius - r) s + r s |w_g / s - v_g / r|^2 / 2``. The first
        part is shared by the features of the group in proportion to their squares."""
        w, v = self.groups.oriented(coef), self.groups.oriented(dual)
        s, r = self._norms(w), self._dual_norms(v)
        slack = self.groups.spread(np.maximum(self._radii(w) - r, 0.0) * s, len(w))
        product = self.groups.spread(r * s, len(w))
        x, y = self._directions(w, s), self._directions(v, r)
        return self._by_feature(slack * x**2 + 0.5 * product * (x - y) ** 2, np.add)

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """``(1 - c) I + c u u'`` on live groups, u their direction, c the share that is cut off."""
        w = self.groups.oriented(coef)
        lengths, radii = self._norms(w), step * self._radii(w)
        cut = np.divide(radii, lengths, out=np.ones_like(lengths), where=lengths > radii)
        diagonal = self.groups.spread(1.0 - cut, len(w))
        roots = self.groups.spread(np.where(cut < 1.0, np.sqrt(cut), 0.0), len(w))
        vectors = roots * self._directions(w, lengths)
        restored = self.groups.restored(diagonal), self.groups.restored(vectors)
        return ProxJacobian(*restored, self.groups)

    def violations(self, coef: Array, dual: Array) -> Array:
        """Largest entry of ``v - radius w / |w|``; of v outside its ball where the group is 0."""
        w, v = self.groups.oriented(coef), self.groups.oriented(dual)
        s, r, radii = self._norms(w), self._dual_norms(v), self._radii(w)
        live = self.groups.spread(s > 0, len(w))
        beyond = self.groups.spread(np.maximum(r - radii, 0.0), len(w)) * self._directions(v, r)
        pulled = v - self.groups.spread(radii, len(w)) * self._directions(w, s)
        return self._by_feature(np.abs(np.where(live, pulled, beyond)), np.maximum)

    def _row_centres(self, dual: Array) -> Array:
        return dual.mean(axis=1, keepdims=True)

    def _balanced_rows(self, coef: Array, step: Step) -> tuple[Array, Array]:
        """The prox of the row less its mean: the l2 norm is invariant to orthogonal transforms."""
        centres = self._row_centres(coef)
        prox = self.prox(coef - centres, step)
        return prox - self._row_centres(prox), centres  # the rounding of large rows

    def _rows_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """``(1 - c) (I - 1 1' / m) + c u u'``: u sums to zero."""
        inner = self.prox_jacobian(coef - self._row_centres(coef), step)
        return replace(inner, removed=np.sqrt(inner.diagonal / coef.shape[1]))

    def _blocks_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        reached, shifts = self.balanced_prox(coef, step)
        inner = self.prox_jacobian(coef - shifts, step)
        live = self.groups.spread(self._norms(reached) > 0, len(coef))
        assert inner.vectors is not None
        return BalancedJacobian(inner.diagonal * live, inner.vectors * live, self.groups)

    def _directions(self, values: Array, lengths: Array) -> Array:
        """Each group divided by its length; zero where the length is zero."""
        spread = self.groups.spread(lengths, len(values))
        return np.divide(values, spread, out=np.zeros_like(values), where=spread > 0)


@dataclass(frozen=True, eq=False)
class GroupLinf(GroupNorm):
    """``G(W) = strength sum_g omega_g |W_g|_inf``: the coefficients of a live group share a size.

    The dual norm is the l1 norm; see `GroupNorm` for the parameters.

    See Also
    --------
    Groups : Partitions of the features.
    proxmargin.MulticlassSVC : Models with groups.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import GroupLinf, Groups
    >>> norm = GroupLinf(Groups.within_classes([0, 0, 1]), strength=1.0)
    >>> float(norm.value(np.array([[3.0], [4.0], [-2.0]])))  # 4 + 2
    6.0
    """

    is_polyhedral: ClassVar[bool] = True

    def _norms(self, values: Array) -> Array:
        return self.groups.reduced(np.maximum, np.abs(values))

    def _dual_norms(self, values: Array) -> Array:
        return self.groups.reduced(np.add, np.abs(values))

    @staticmethod
    def _kernel() -> Any:
        return group_linf_prox

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """1 for entries below the cap; ``s s' / |T|`` for the T that it cuts, s their signs."""
        w, reached = self.groups.oriented(coef), self.groups.oriented(self.prox(coef, step))
        capped = np.abs(w) > np.abs(reached)
        live = self.groups.spread(self._norms(reached) > 0, len(w))
        counts = self.groups.spread(self._dual_norms(capped.astype(np.float64)), len(w))
        signs = np.where(capped & live, np.sign(w), 0.0)
        vectors = signs / np.sqrt(np.maximum(counts, 1.0))
        diagonal = (live & ~capped).astype(np.float64)
        restored = self.groups.restored(diagonal), self.groups.restored(vectors)
        return ProxJacobian(*restored, self.groups)

    def _row_centres(self, dual: Array) -> Array:
        medians: Array = np.median(dual, axis=1, keepdims=True)
        return medians

    def _balanced_rows(self, coef: Array, step: Step) -> tuple[Array, Array]:
        radii = step * self._radii(self.groups.oriented(coef)).T
        prox, shifts = balanced_linf_prox(np.ascontiguousarray(coef), np.ascontiguousarray(radii))
        return prox, shifts

    def _rows_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """``diag(F) + s s' / |T|``, constrained to the directions that sum to zero. F are the
        entries below the cap, T those at it with the signs s: this is a projection, and a = F + s
        (s'1) / |T| is that of the direction 1."""
        reached, _ = self._balanced_rows(coef, step)
        top = np.abs(reached).max(axis=1, keepdims=True)
        capped = (np.abs(reached) >= top * (1.0 - TIE_ROUNDING)) & (top > 0)
        counts = np.maximum(capped.sum(axis=1, keepdims=True), 1.0)
        signs = np.where(capped, np.sign(reached), 0.0)
        free = ((top > 0) & ~capped).astype(np.float64)
        along = free + signs * signs.sum(axis=1, keepdims=True) / counts
        lengths = np.linalg.norm(along, axis=1, keepdims=True)
        removed = np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0)
        return ProxJacobian(free, signs / np.sqrt(counts), self.groups, removed=removed)

    def _blocks_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        raise TypeError(
            "that of the largest entries of groups which sum to zero over the classes is known "
            "with one group a feature only (groups='features')"
        )

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """With M = |w_g|_inf, r = |v_g|_1: ``(radius - r) M + sum_j |v_j| (M - sign(v_j) w_j)``.
        The first part is shared by the features of the group in proportion to ``|w_j|``."""
        w, v = self.groups.oriented(coef), self.groups.oriented(dual)
        top, r, total = self._norms(w), self._dual_norms(v), self._dual_norms(w)
        slack = self.groups.spread(np.maximum(self._radii(w) - r, 0.0) * top, len(w))
        top, total = self.groups.spread(top, len(w)), self.groups.spread(total, len(w))
        shares = np.divide(np.abs(w), total, out=np.zeros_like(w), where=total > 0)
        terms = slack * shares + np.abs(v) * (top - np.sign(v) * w)
        return self._by_feature(terms, np.add)

    def violations(self, coef: Array, dual: Array) -> Array:
        w, v = self.groups.oriented(coef), self.groups.oriented(dual)
        top = self.groups.spread(self._norms(w), len(w))
        largest = (np.abs(w) >= top * (1.0 - TIE_ROUNDING)) & (top > 0)
        layout = self.groups.layout(len(w))
        residual = group_linf_residual(w, v, largest, *layout, self._radii(w))
        return self._by_feature(np.abs(residual), np.maximum)


def _lengths(groups: Groups, values: Array) -> Array:
    return groups.reduced(np.hypot, np.abs(values))  # squares of tiny numbers would vanish
