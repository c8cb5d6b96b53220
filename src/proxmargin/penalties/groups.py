"""Norms of groups of coefficients: groups enter and leave the model as a whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.groups import group_l2_prox, group_linf_prox, group_linf_residual
from proxmargin.penalties.base import Array, Penalty, Step

__all__ = ["GroupL2", "GroupLinf", "GroupNorm", "Groups"]

# dual norms that exceed their bound by less are on it: the rounding of a scaled dual point
ALLOWANCE = 1e-14
# entries within this share of the largest of their group are the largest
TIES = 1e-14


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of coefficients (n_features, n_outputs) into groups.

    Made by `within_classes`, `of_members` or `features`.

    Parameters
    ----------
    codes : (n_features,) integers
        Features with the same code form one group in each class. Codes start at zero and leave no
        gap. Where ``across_classes`` holds, each feature is a group of its own instead, and its
        group holds the coefficients of all classes.
    across_classes : bool
    """

    codes: NDArray[np.intp]
    across_classes: bool = False

    @classmethod
    def within_classes(cls, labels: ArrayLike) -> Groups:
        """Groups of features, separately in each class.

        Parameters
        ----------
        labels : (n_features,)
            Features with equal labels form a group; groups are counted in the labels' order.
        """
        labels = np.asarray(labels)
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError(
                "groups: labels must be one label a feature, (n_features,), got an array of shape "
                f"{labels.shape}"
            )
        if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
            raise ValueError("groups: labels must not be NaN or infinite")
        _, codes = np.unique(labels, return_inverse=True)
        return cls(codes.astype(np.intp))

    @classmethod
    def of_members(cls, members: Sequence[ArrayLike], n_features: int) -> Groups:
        """Groups of features, separately in each class, by the list of each group's features.

        Every feature must be in exactly one group.
        """
        codes = np.full(n_features, -1, dtype=np.intp)
        for code, features in enumerate(members):
            index = _indices(features, code, n_features)
            taken = index[codes[index] >= 0]
            if taken.size or np.unique(index).size < index.size:
                again = taken[0] if taken.size else _repeated(index)
                raise ValueError(f"groups overlap: feature {again} is listed twice")
            codes[index] = code
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            raise ValueError(
                f"groups do not cover the features: {missing.size} of {n_features} are in no "
                f"group, feature {missing[0]} first"
            )
        return cls(codes)

    @classmethod
    def features(cls, n_features: int) -> Groups:
        """One group a feature: its coefficients in all classes."""
        if n_features < 1:
            raise ValueError(f"groups: n_features must be >= 1, got {n_features!r}")
        return cls(np.arange(n_features), across_classes=True)

    @property
    def n_features(self) -> int:
        return int(self.codes.size)

    @cached_property
    def n_groups(self) -> int:
        """Number of groups; where groups are within classes, in each class."""
        return int(self.codes.max()) + 1

    def restricted(self, index: NDArray[np.intp]) -> tuple[Groups, NDArray[np.intp]]:
        """The groups of some of the features, and which of the groups these are."""
        kept, codes = np.unique(self.codes[index], return_inverse=True)
        return replace(self, codes=codes.astype(np.intp)), kept.astype(np.intp)

    # Arrays are looked at with groups of rows, column by column: as they are where groups are
    # within classes, transposed where they are across them.

    def oriented(self, values: Array) -> Array:
        """``values`` with groups of rows."""
        if values.shape[0] != self.n_features:
            raise ValueError(
                f"groups are of {self.n_features} features, the coefficients of {values.shape[0]}"
            )
        return np.ascontiguousarray(values.T if self.across_classes else values)

    def restored(self, values: Array) -> Array:
        """What `oriented` was given."""
        return np.ascontiguousarray(values.T) if self.across_classes else values

    def layout(self, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The oriented rows group after group, and where each group starts, and the end."""
        if self.across_classes:
            return np.arange(n_rows), np.array([0, n_rows])
        return self._layout

    @cached_property
    def _layout(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=self.n_groups)
        return order, np.concatenate([[0], np.cumsum(counts)])

    def reduced(self, ufunc: np.ufunc, values: Array) -> Array:
        """``ufunc`` over each group of oriented ``values``, (n_groups, n_columns)."""
        order, starts = self.layout(values.shape[0])
        gathered = values if self.across_classes else values[order]
        reduced: Array = ufunc.reduceat(gathered, starts[:-1], axis=0)
        return reduced

    def spread(self, per_group: NDArray[Any], n_rows: int) -> NDArray[Any]:
        """What each oriented row's group has in ``per_group``, (n_rows, n_columns)."""
        if self.across_classes:
            return np.broadcast_to(per_group, (n_rows, per_group.shape[1]))
        return per_group[self.codes]

    def radii(self, weights: Array, n_columns: int) -> Array:
        """One weight a group as (n_groups, n_columns) of the oriented view."""
        shaped = weights[None, :] if self.across_classes else weights[:, None]
        rows = 1 if self.across_classes else self.n_groups
        return np.ascontiguousarray(np.broadcast_to(shaped, (rows, n_columns)))


def _indices(features: ArrayLike, code: int, n_features: int) -> NDArray[np.intp]:
    index = np.asarray(features)
    if index.ndim != 1 or index.size == 0 or index.dtype.kind not in "iu":
        raise ValueError(
            f"groups: group {code} must be a list of at least one feature index, got {features!r}"
        )
    if index.min() < 0 or index.max() >= n_features:
        raise ValueError(
            f"groups: group {code} has indices outside 0..{n_features - 1}: {index.min()} to "
            f"{index.max()}"
        )
    return index.astype(np.intp)


def _repeated(index: NDArray[np.intp]) -> int:
    values, counts = np.unique(index, return_counts=True)
    return int(values[np.argmax(counts)])


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
    """

    groups: Groups
    strength: float = 1.0
    weights: Array | None = None

    by_features = False

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

    def conjugate(self, dual: Array) -> float:
        values = self.groups.oriented(dual)
        outside = self._dual_norms(values) > self._radii(values) * (1.0 + ALLOWANCE)
        return np.inf if np.any(outside) else 0.0

    def domain_scale(self, dual: Array) -> float:
        largest = self.critical_strength(dual)
        return 1.0 if largest <= self.strength else self.strength / largest

    def critical_strength(self, dual: Array) -> float:
        values = self.groups.oriented(dual)
        return float((self._dual_norms(values) / self._omega(values)).max(initial=0.0))

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        raise TypeError("an intercept cannot carry a penalty of groups: use Ridge")

    def restricted(self, index: NDArray[np.intp]) -> Self:
        groups, kept = self.groups.restricted(index)
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, groups=groups, weights=weights)

    def _omega(self, values: Array) -> Array:
        weights = np.ones(self.groups.n_groups) if self.weights is None else self.weights
        return self.groups.radii(weights, values.shape[1])

    def _radii(self, values: Array) -> Array:
        return self.strength * self._omega(values)

    def _by_feature(self, values: Array, ufunc: np.ufunc) -> Array:
        """One number a feature of oriented values."""
        reduced: Array = ufunc.reduce(values, axis=0 if self.groups.across_classes else 1)
        return reduced


@dataclass(frozen=True, eq=False)
class GroupL2(GroupNorm):
    """``G(W) = strength sum_g omega_g |W_g|_2``: the group lasso.

    The dual norm is the l2 norm again; see `GroupNorm` for the parameters.
    """

    def _norms(self, values: Array) -> Array:
        return _lengths(self.groups, values)

    def _dual_norms(self, values: Array) -> Array:
        return _lengths(self.groups, values)

    @staticmethod
    def _kernel() -> Any:
        return group_l2_prox

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """With s = |w_g|, r = |v_g|:  ``(radius - r) s  +  r s |w_g / s - v_g / r|^2 / 2``.

        The first part is shared by the features of the group in proportion to their squares.
        """
        w, v = self.groups.oriented(coef), self.groups.oriented(dual)
        s, r = self._norms(w), self._dual_norms(v)
        slack = self.groups.spread(np.maximum(self._radii(w) - r, 0.0) * s, len(w))
        product = self.groups.spread(r * s, len(w))
        x, y = self._directions(w, s), self._directions(v, r)
        return self._by_feature(slack * x**2 + 0.5 * product * (x - y) ** 2, np.add)

    def violations(self, coef: Array, dual: Array) -> Array:
        """Largest entry of ``v - radius w / |w|``; of v outside its ball where the group is 0."""
        w, v = self.groups.oriented(coef), self.groups.oriented(dual)
        s, r, radii = self._norms(w), self._dual_norms(v), self._radii(w)
        live = self.groups.spread(s > 0, len(w))
        beyond = self.groups.spread(np.maximum(r - radii, 0.0), len(w)) * self._directions(v, r)
        pulled = v - self.groups.spread(radii, len(w)) * self._directions(w, s)
        return self._by_feature(np.abs(np.where(live, pulled, beyond)), np.maximum)

    def _directions(self, values: Array, lengths: Array) -> Array:
        """Each group divided by its length; zero where that is."""
        spread = self.groups.spread(lengths, len(values))
        return np.divide(values, spread, out=np.zeros_like(values), where=spread > 0)


@dataclass(frozen=True, eq=False)
class GroupLinf(GroupNorm):
    """``G(W) = strength sum_g omega_g |W_g|_inf``: the coefficients of a live group share a size.

    The dual norm is the l1 norm; see `GroupNorm` for the parameters.
    """

    def _norms(self, values: Array) -> Array:
        return self.groups.reduced(np.maximum, np.abs(values))

    def _dual_norms(self, values: Array) -> Array:
        return self.groups.reduced(np.add, np.abs(values))

    @staticmethod
    def _kernel() -> Any:
        return group_linf_prox

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """With M = |w_g|_inf, r = |v_g|_1:  ``(radius - r) M  +  sum_j |v_j| (M - sign(v_j) w_j)``.

        The first part is shared by the features of the group in proportion to ``|w_j|``.
        """
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
        largest = (np.abs(w) >= top * (1.0 - TIES)) & (top > 0)
        layout = self.groups.layout(len(w))
        residual = group_linf_residual(w, v, largest, *layout, self._radii(w))
        return self._by_feature(np.abs(residual), np.maximum)


def _lengths(groups: Groups, values: Array) -> Array:
    return groups.reduced(np.hypot, np.abs(values))  # squares of tiny numbers would vanish
