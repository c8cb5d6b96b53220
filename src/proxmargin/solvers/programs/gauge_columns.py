"""Polyhedral norms as columns of a linear program, generated on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.elastic_net import ElasticNet
from proxmargin.functions.penalties.groups import GroupNorm
from proxmargin.functions.penalties.sum_to_zero import SumToZero, SumToZeroGroups
from proxmargin.functions.penalties.weighted import WeightedElasticNet
from proxmargin.runtime.types import Array

Ids = NDArray[np.intp]
PRICING_ROUNDING = 1e-13  # added to the reduced cost of a known column of the part: rounding
# range of the size of a column over that of a typical one; HiGHS drops entries below 1e-9 and
# rejects entries above 1e15
LARGEST = 1e12
LARGEST_COST = 1e6  # largest cost of all losses; HiGHS has failed from 1e12 on


class Atoms(NamedTuple):
    """Variables ``a >= 0`` with the coefficients ``W = sum_c a_c A_c``."""

    parts: Ids  # (n_columns,); the part of the coefficients that each A_c belongs to
    costs: Array  # (n_columns,); the penalty of each A_c, over the strength
    # (n_values,); nonzero values of the A_c, their flat indices in the coefficients, and the c they
    # belong to
    values: Array
    entries: Ids
    owners: Ids

    def coef(self, a: Array, shape: tuple[int, int]) -> Array:
        flat = np.bincount(self.entries, self.values * a[self.owners], shape[0] * shape[1])
        return flat.astype(np.float64).reshape(shape)  # empty sums are integers

    def norms(self, pulled: Array) -> Array:
        """``<A_c, pulled> / cost_c``, (n_columns,)."""
        products = self.values * pulled.flat[self.entries]
        return np.bincount(self.owners, products, self.parts.size) / self.costs

    def joined(self, other: Atoms) -> Atoms:
        moved = other._replace(owners=other.owners + self.parts.size)
        return Atoms(*(np.concatenate(pair) for pair in zip(self, moved, strict=True)))


class _Parts(NamedTuple):
    """The parts of the coefficients: that of each flat entry, and the costs of their vertices."""

    codes: Ids
    costs: Array


@dataclass(frozen=True, eq=False)
class GaugeColumns:
    """A norm as the gauge of its extreme points A_c: of a polytope, or of a round ball. ``G(W) =
    strength min {costs'a : W = sum_c a_c A_c, a >= 0}``. There are too many extreme points to
    enumerate. But a norm is a sum over parts of the coefficients (an entry, a feature, a group),
    and in each part the extreme point with the least reduced cost has a closed form."""

    strength: float
    parts: Callable[[tuple[int, int]], _Parts]  # of coefficients of this shape
    # from V, (n_features, n_outputs), to the extreme points of all parts that attain their dual
    # norms, ``max_c <A_c, V> / cost_c``, in one array
    vertices: Callable[[Array], Array]
    is_polyhedral: bool = True  # there are finitely many extreme points
    # (n_features,), bounds on their entries, to which columns are scaled (`in_units`)
    sizes: Array | None = None
    unit: float = 1.0

    def norms(self, pulled: Array) -> Array:
        """The dual norm of every part, (n_parts,)."""
        codes, costs = self.parts(pulled.shape)
        products = (self.vertices(pulled) * pulled).ravel()
        largest: Array = np.bincount(codes, products, costs.size) / (costs * self.unit)
        return np.maximum(largest, 0.0)

    def columns(self, wanted: Ids, pulled: Array) -> Atoms:
        """The vertices of these parts, in ascending order, that attain their dual norms."""
        codes, costs = self.parts(pulled.shape)
        chosen, points = np.zeros(costs.size, dtype=bool), self.vertices(pulled).ravel()
        chosen[wanted] = True
        entries = np.flatnonzero(chosen[codes] & (points != 0.0))
        owners = np.searchsorted(wanted, codes[entries])
        found = Atoms(wanted, costs[wanted], points[entries], entries, owners)
        return found if self.sizes is None else self._scaled(found, self.sizes, pulled.shape[1])

    def entering(self, pulled: Array, known: Atoms, limit: int) -> Atoms:
        """The ``limit`` extreme points with the least reduced costs, of those that are negative;
        ``pulled`` is ``V = -X'q`` over the strength, q an optimal dual point with the known
        columns."""
        norms = self.norms(pulled)
        least = np.full(norms.size, 1.0 + DOMAIN_ROUNDING)
        np.maximum.at(least, known.parts, known.norms(pulled) + PRICING_ROUNDING)
        wanted = np.flatnonzero(norms > least)
        if wanted.size > limit:
            wanted = np.sort(wanted[np.argpartition(-norms[wanted], limit)[:limit]])
        return self.columns(wanted, pulled)

    def starting(self, coef: Array) -> Atoms:
        """One vertex for each part of ``coef`` that is not zero."""
        return self.columns(np.flatnonzero(self.norms(coef)), coef)

    def in_units(self, sizes: Array, least: float = 0.0) -> GaugeColumns:
        """The gauge with its strength in units of the nonzero feature of median size.

        The unit is clipped to ``[least, LARGEST_COST * least]`` for ``least > 0``, the strength
        over the cost of all losses. Units and scales are powers of two, so that nothing is rounded.
        Columns of small entries are scaled up to a typical size, with their costs: the tolerances
        of HiGHS on their coefficients and reduced costs are absolute. For columns of large entries
        only one of these can be kept; they keep their cost, to which dual points are scaled, unless
        they exceed `LARGEST`.
        """
        live = sizes[sizes > 0]
        unit = float(np.median(live)) if live.size else 1.0
        unit = min(max(unit, least), LARGEST_COST * least) if least > 0 else unit
        unit = float(_power_of_two(np.asarray(unit)))
        return replace(self, strength=self.strength / unit, sizes=sizes, unit=unit)

    def _scaled(self, columns: Atoms, sizes: Array, n_outputs: int) -> Atoms:
        largest = np.zeros(columns.parts.size)
        np.maximum.at(largest, columns.owners, sizes[columns.entries // n_outputs])
        relative = np.where(largest > 0, largest / self.unit, 1.0)
        factor = _power_of_two(np.clip(relative, 1.0, LARGEST) / relative) / self.unit
        return columns._replace(
            costs=columns.costs * factor * self.unit,
            values=columns.values * factor[columns.owners],
        )


def _power_of_two(values: Array) -> Array:
    """The nearest power of two, by the logarithm."""
    nearest: Array = np.exp2(np.round(np.log2(values)))
    return nearest


@singledispatch
def gauge_columns(penalty: Penalty) -> GaugeColumns | None:
    """The columns of a norm, or of the l1 part of a penalty; None for another penalty."""
    return None


@gauge_columns.register
def _columns_of_net(penalty: ElasticNet | WeightedElasticNet) -> GaugeColumns | None:
    """Each entry is a part, with a vertex for each sign that its bounds allow. None if a factor is
    zero or a bound is neither zero nor infinite: that is no gauge."""
    if isinstance(penalty, ElasticNet):
        penalty = WeightedElasticNet(penalty, 1.0)
    factors, lower, upper = (np.reshape(each, (-1, 1)) for each in penalty.of_features)
    bounds = np.concatenate([lower.ravel(), upper.ravel()])
    if np.any(factors == 0) or np.any((bounds != 0) & np.isfinite(bounds)):
        return None

    def parts(shape: tuple[int, int]) -> _Parts:
        return _Parts(np.arange(shape[0] * shape[1]), np.broadcast_to(factors, shape).ravel())

    def vertices(pulled: Array) -> Array:
        return np.where(pulled < 0, -1.0 * (lower < 0), 1.0 * (upper > 0))

    return GaugeColumns(penalty.inner.l1, parts, vertices)


@gauge_columns.register
def _columns_of_balanced_net(penalty: SumToZero) -> GaugeColumns | None:
    """Rows sum to zero: each row is a part, with the vertices ``e_k - e_m``."""
    inner = gauge_columns(penalty.inner)
    if inner is None:
        return None

    def parts(shape: tuple[int, int]) -> _Parts:
        costs = inner.parts((shape[0], 1)).costs
        return _Parts(np.repeat(np.arange(shape[0]), shape[1]), 2.0 * costs)

    def vertices(pulled: Array) -> Array:
        points, rows = np.zeros_like(pulled), np.arange(len(pulled))
        points[rows, pulled.argmax(axis=1)] += 1.0
        points[rows, pulled.argmin(axis=1)] -= 1.0
        return points

    return GaugeColumns(inner.strength, parts, vertices)


@gauge_columns.register
def _columns_of_groups(penalty: GroupNorm) -> GaugeColumns:
    """Each group is a part: its vertices have all signs, or it has a sphere of extreme points."""
    groups, omega = penalty.groups, penalty.omega

    def parts(shape: tuple[int, int]) -> _Parts:
        if groups.across_classes:
            return _Parts(np.repeat(groups.codes, shape[1]), omega)
        codes = groups.codes[:, None] * shape[1] + np.arange(shape[1])
        return _Parts(codes.ravel(), np.repeat(omega, shape[1]))

    def vertices(pulled: Array) -> Array:
        if penalty.is_polyhedral:
            return np.where(pulled < 0, -1.0, 1.0)
        codes, _ = parts(pulled.shape)
        lengths = np.sqrt(np.bincount(codes, pulled.ravel() ** 2))[codes].reshape(pulled.shape)
        return np.divide(pulled, lengths, out=np.zeros_like(pulled), where=lengths > 0)

    return GaugeColumns(penalty.strength, parts, vertices, penalty.is_polyhedral)


@gauge_columns.register
def _columns_of_balanced_groups(penalty: SumToZeroGroups) -> GaugeColumns:
    """Rows sum to zero: each row is a part if it is a group, else the coefficients of a group of
    features in all classes."""
    norm = penalty.inner
    inner = _columns_of_groups(norm)

    def parts(shape: tuple[int, int]) -> _Parts:
        return _Parts(np.repeat(norm.groups.codes, shape[1]), norm.omega)

    def vertices(pulled: Array) -> Array:
        if not norm.groups.across_classes:
            return norm.balanced_dual_norms(pulled)[1]
        if not norm.is_polyhedral:
            return inner.vertices(pulled - pulled.mean(axis=1, keepdims=True))
        # positive on half of the row and negative on the other half; an odd row has one zero
        ranks = pulled.argsort(axis=1, kind="stable").argsort(axis=1)
        half = pulled.shape[1] // 2
        return 1.0 * (ranks >= pulled.shape[1] - half) - (ranks < half)

    return GaugeColumns(norm.strength, parts, vertices, norm.is_polyhedral)
