"""Polyhedral norms as columns of a linear program, generated on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.penalties.base import Penalty
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.penalties.groups import GroupL2, GroupLinf, GroupNorm
from proxmargin.penalties.sum_to_zero import SumToZero, SumToZeroGroups
from proxmargin.penalties.weighted import WeightedElasticNet

__all__ = ["Atoms", "GaugeColumns", "gauge_columns"]

Ids = NDArray[np.intp]
# reduced cost over cost, above which a column enters
PRICING_TOLERANCE = 1e-12
PRICING_ROUNDING = 1e-13  # added to the reduced cost of a known column of the part: rounding


class Atoms(NamedTuple):
    """Variables ``a >= 0`` with the coefficients ``W = sum_c a_c A_c``.

    Attributes
    ----------
    parts : (n_columns,)
        The part of the coefficients that each A_c belongs to.
    costs : (n_columns,)
        The penalty of each A_c, over the strength.
    values, entries, owners : (n_values,)
        Nonzero values of the A_c, their flat indices in the coefficients, and the c they belong to.
    """

    parts: Ids
    costs: Array
    values: Array
    entries: Ids
    owners: Ids

    def coef(self, a: Array, shape: tuple[int, int]) -> Array:
        """The coefficients W."""
        flat = np.bincount(self.entries, self.values * a[self.owners], shape[0] * shape[1])
        return flat.astype(np.float64).reshape(shape)  # empty sums are integers

    def norms(self, pulled: Array) -> Array:
        """``<A_c, pulled> / cost_c``, (n_columns,)."""
        products = np.bincount(
            self.owners, self.values * pulled.flat[self.entries], self.parts.size
        )
        return products / self.costs

    def joined(self, other: Atoms) -> Atoms:
        moved = other._replace(owners=other.owners + self.parts.size)
        return Atoms(*(np.concatenate(pair) for pair in zip(self, moved, strict=True)))


class GaugeColumns(ABC):
    """A norm as the gauge of its extreme points A_c: of a polytope, or of a round ball.

    ``G(W) = strength min {costs'a : W = sum_c a_c A_c, a >= 0}``. There are too many extreme points
    to enumerate. But a norm is a sum over parts of the coefficients (an entry, a feature, a group),
    and in each part the extreme point with the least reduced cost has a closed form.

    Attributes
    ----------
    strength : float
    is_polyhedral : bool
        Whether the number of extreme points is finite.
    """

    strength: float
    is_polyhedral = True

    @abstractmethod
    def norms(self, pulled: Array) -> Array:
        """The dual norm of every part, ``max_c <A_c, pulled> / cost_c``, (n_parts,)."""

    @abstractmethod
    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        """The vertex of each part at which that maximum is attained."""

    def entering(self, pulled: Array, known: Atoms, limit: int) -> Atoms:
        """The ``limit`` extreme points with the least reduced costs, of those that are negative.

        Parameters
        ----------
        pulled : (n_features, n_outputs)
            ``V = -X'q`` over the strength, q an optimal dual point with the known columns.
        """
        norms = self.norms(pulled)
        least = np.full(norms.size, 1.0 + PRICING_TOLERANCE)
        np.maximum.at(least, known.parts, known.norms(pulled) + PRICING_ROUNDING)
        wanted = np.flatnonzero(norms > least)
        if wanted.size > limit:
            wanted = np.sort(wanted[np.argpartition(-norms[wanted], limit)[:limit]])
        return self.vertices(wanted, pulled)

    def starting(self, coef: Array) -> Atoms:
        """One vertex for each part of ``coef`` that is not zero."""
        return self.vertices(np.flatnonzero(self.norms(coef)), coef)


def _signs(values: Array) -> Array:
    return np.where(values < 0, -1.0, 1.0)


@dataclass(frozen=True)
class _Absolute(GaugeColumns):
    """The l1 norm: each entry is a part, with the vertices 1 and -1."""

    strength: float

    def norms(self, pulled: Array) -> Array:
        return np.abs(pulled.ravel())

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        signs, each = _signs(pulled.flat[parts]), np.arange(parts.size)
        return Atoms(parts, np.ones(parts.size), signs, parts, each)


@dataclass(frozen=True, eq=False)
class _Weighted(GaugeColumns):
    """The l1 norm with a factor for each feature: each entry is a part, with a vertex for each sign
    that its bounds allow.

    Parameters
    ----------
    strength : float
    factors : (n_features, 1) or (1, 1) > 0
    rises, falls : (n_features, 1) or (1, 1) of bool
        Whether coefficients may be positive, and negative.
    """

    strength: float
    factors: Array
    rises: NDArray[np.bool_]
    falls: NDArray[np.bool_]

    def norms(self, pulled: Array) -> Array:
        rise, fall = np.where(self.rises, pulled, 0.0), np.where(self.falls, -pulled, 0.0)
        largest: Array = np.maximum(np.maximum(rise, fall), 0.0) / self.factors
        return largest.ravel()

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        rows, each = parts // pulled.shape[1], np.arange(parts.size)
        factors, rises, falls = (
            np.broadcast_to(each, (len(pulled), 1))[rows, 0]
            for each in (self.factors, self.rises, self.falls)
        )
        signs = np.where(falls, _signs(pulled.flat[parts]), 1.0)
        return Atoms(parts, factors, np.where(rises, signs, -1.0), parts, each)


@dataclass(frozen=True)
class _Differences(GaugeColumns):
    """The l1 norm where rows sum to zero: each row is a part, with the vertices ``e_k - e_m``."""

    strength: float

    def norms(self, pulled: Array) -> Array:
        half_range: Array = 0.5 * np.ptp(pulled, axis=1)
        return half_range

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        rows, each, ones = pulled[parts], np.arange(parts.size), np.ones(parts.size)
        ends = np.concatenate([rows.argmax(axis=1), rows.argmin(axis=1)])
        entries = np.tile(parts, 2) * pulled.shape[1] + ends
        signs = np.concatenate([ones, -ones])
        return Atoms(parts, 2.0 * ones, signs, entries, np.tile(each, 2))


def _layout(penalty: GroupNorm, pulled: Array) -> tuple[Ids, Array]:
    """The group of each entry of the flat coefficients, and the weight of each group."""
    groups, outputs, weights = penalty.groups, pulled.shape[1], penalty.omega
    if groups.across_classes:
        return np.repeat(groups.codes, outputs), weights
    codes = groups.codes[:, None] * outputs + np.arange(outputs)
    return codes.ravel(), np.repeat(weights, outputs)


def _group_lengths(groups: Ids, pulled: Array, count: int) -> Array:
    lengths: Array = np.sqrt(np.bincount(groups, pulled.ravel() ** 2, minlength=count))
    return lengths


@dataclass(frozen=True, eq=False)
class _Largest(GaugeColumns):
    """The largest entry of each group: each group is a part, with the vertices of all signs."""

    strength: float
    penalty: GroupLinf

    def norms(self, pulled: Array) -> Array:
        groups, weights = _layout(self.penalty, pulled)
        sums = np.bincount(groups, np.abs(pulled.ravel()), minlength=weights.size)
        return sums / weights

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        groups, weights = _layout(self.penalty, pulled)
        members = np.flatnonzero(np.isin(groups, parts))
        owners = np.searchsorted(parts, groups[members])
        signs = _signs(pulled.flat[members])
        return Atoms(parts, weights[parts], signs, members, owners)


@dataclass(frozen=True, eq=False)
class _Balanced(GaugeColumns):
    """The l_inf norm of each row with zero sum: each row is a part.

    A vertex is positive on half of the row and negative on the other half; an odd row has one zero.
    """

    strength: float
    weights: Array

    def norms(self, pulled: Array) -> Array:
        sums = np.abs(pulled - np.median(pulled, axis=1, keepdims=True)).sum(axis=1)
        norms: Array = sums / self.weights
        return norms

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        outputs = pulled.shape[1]
        order = np.argsort(pulled[parts], axis=1, kind="stable")
        half = outputs // 2
        ends = np.hstack([order[:, outputs - half :], order[:, :half]])
        signs = np.tile(np.repeat([1.0, -1.0], half), parts.size)
        owners = np.repeat(np.arange(parts.size), 2 * half)
        entries = (parts[:, None] * outputs + ends).ravel()
        return Atoms(parts, self.weights[parts], signs, entries, owners)


@dataclass(frozen=True, eq=False)
class _Lengths(GaugeColumns):
    """The l2 norm of each group: each group is a part, with a sphere of extreme points."""

    is_polyhedral = False

    strength: float
    penalty: GroupNorm

    def norms(self, pulled: Array) -> Array:
        groups, weights = _layout(self.penalty, pulled)
        return _group_lengths(groups, pulled, weights.size) / weights

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        groups, weights = _layout(self.penalty, pulled)
        lengths = _group_lengths(groups, pulled, weights.size)
        members = np.flatnonzero(np.isin(groups, parts))
        values = pulled.flat[members] / lengths[groups[members]]
        owners = np.searchsorted(parts, groups[members])
        return Atoms(parts, weights[parts], values, members, owners)


@dataclass(frozen=True, eq=False)
class _BalancedLengths(_Lengths):
    """The l2 norm of each row with zero sum; dual points are centred by rows."""

    def norms(self, pulled: Array) -> Array:
        return super().norms(pulled - pulled.mean(axis=1, keepdims=True))

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        return super().vertices(parts, pulled - pulled.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class _SumToZeroBlocks(GaugeColumns):
    """Norms of groups of features, summed over the classes, for rows that sum to zero.

    Each group is a part, with its coefficients in all classes. The extreme point with the least
    reduced cost attains the dual norm of the balanced group.
    """

    strength: float
    penalty: GroupNorm

    @property
    def is_polyhedral(self) -> bool:  # type: ignore[override]
        return self.penalty.is_polyhedral

    def norms(self, pulled: Array) -> Array:
        norms, _ = self.penalty.balanced_dual_norms(pulled)
        return norms / self.penalty.omega

    def vertices(self, parts: Ids, pulled: Array) -> Atoms:
        members = np.flatnonzero(np.isin(self.penalty.groups.codes, parts))
        _, points = self.penalty.restricted(members).balanced_dual_norms(pulled[members])
        rows, outputs = np.nonzero(points)
        owners = np.searchsorted(parts, self.penalty.groups.codes[members[rows]])
        entries = members[rows] * pulled.shape[1] + outputs
        return Atoms(parts, self.penalty.omega[parts], points[rows, outputs], entries, owners)


@singledispatch
def gauge_columns(penalty: Penalty) -> GaugeColumns | None:
    """The columns of a norm, or of the l1 part of a penalty; None for another penalty."""
    return None


@gauge_columns.register
def _columns_of_net(penalty: ElasticNet) -> GaugeColumns:
    return _Absolute(penalty.l1)


@gauge_columns.register
def _columns_of_weighted_net(penalty: WeightedElasticNet) -> GaugeColumns | None:
    """None if a factor is zero or a bound is neither zero nor infinite: that is no gauge."""
    factors, lower, upper = (np.reshape(each, (-1, 1)) for each in penalty.of_features)
    bounds = np.concatenate([lower.ravel(), upper.ravel()])
    if np.any(factors == 0) or np.any((bounds != 0) & np.isfinite(bounds)):
        return None
    return _Weighted(penalty.inner.l1, factors, upper > 0, lower < 0)


@gauge_columns.register
def _columns_of_balanced_net(penalty: SumToZero) -> GaugeColumns:
    return _Differences(penalty.inner.l1)


@gauge_columns.register
def _columns_of_balanced_groups(penalty: SumToZeroGroups) -> GaugeColumns:
    norm = penalty.inner
    if not norm.groups.across_classes:
        return _SumToZeroBlocks(norm.strength, norm)
    if norm.is_polyhedral:
        return _Balanced(norm.strength, norm.omega)
    return _BalancedLengths(norm.strength, norm)


@gauge_columns.register
def _columns_of_linf_groups(penalty: GroupLinf) -> GaugeColumns:
    return _Largest(penalty.strength, penalty)


@gauge_columns.register
def _columns_of_l2_groups(penalty: GroupL2) -> GaugeColumns:
    return _Lengths(penalty.strength, penalty)
