"""Derivatives of the prox of lengths of groups whose coefficients sum to zero over the classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.penalties.jacobian import ZERO_EIGENVALUE, ProxJacobian

__all__ = ["BalancedJacobian", "BalancedRoot"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BalancedJacobian(ProxJacobian):
    """``J = diag(a) + sum_gk b_gk b_gk'``, constrained to directions that sum to zero.

    For one group the matrices ``J_k = a_k I + b_k b_k'`` of the classes are d x d, and with their
    sum ``H = sum_k J_k`` the constrained matrix is ``J - [J_1, ...]' H^-1 [J_1, ...]``. Parameters
    are those of `ProxJacobian` with groups within classes; the diagonal is one number a group and
    class.
    """

    @property
    def across(self) -> bool:
        return True

    def apply(self, x: Array) -> Array:
        product = super().apply(x)
        shifts = self._divided(product.sum(axis=1, keepdims=True))
        return product - super().apply(np.broadcast_to(shifts, x.shape))

    def _divided(self, sums: Array) -> Array:
        """``H^-1 sums`` on live groups, zero on others."""
        assert self.groups is not None
        assert self.vectors is not None
        rows = len(sums)
        levels, _, inverses = self._inner
        along = self.groups.reduced(np.add, self.vectors * sums)
        inward = self.groups.spread((inverses @ along[:, :, None])[:, :, 0], rows)
        rest = sums - (self.vectors * inward).sum(axis=1, keepdims=True)
        live = self.diagonal.any(axis=1, keepdims=True)
        spread = self.groups.spread(levels.sum(axis=1, keepdims=True), rows)
        divided: Array = np.where(live, rest / np.where(live, spread, 1.0), 0.0)
        return divided

    @cached_property
    def _inner(self) -> tuple[Array, Array, Array]:
        """For each group: a, (classes,), ``G = B'B`` and ``S = (sum(a) I + G)^-1``.

        With the columns b_k in B it is ``H^-1 = (I - B S B') / sum(a)``.
        """
        assert self.groups is not None
        assert self.vectors is not None
        rows, outputs = self.vectors.shape
        levels = self.groups.reduced(np.maximum, self.diagonal)
        pairs = (self.vectors[:, :, None] * self.vectors[:, None, :]).reshape(rows, outputs**2)
        products = self.groups.reduced(np.add, pairs).reshape(-1, outputs, outputs)
        total = levels.sum(axis=1)
        whole = products + np.where(total > 0, total, 1.0)[:, None, None] * np.eye(outputs)
        inverses = np.asarray(np.linalg.inv(whole), dtype=np.float64)
        return levels, products, inverses

    def seen_through(self, columns: Array) -> Array:
        """``X J X'`` for features X, (n, rows), of every class: (classes, n, classes, n)."""
        assert self.groups is not None
        assert self.vectors is not None
        (n, rows), classes = columns.shape, self.diagonal.shape[1]
        # X B of each group, (n_groups, n, classes)
        parts = [
            self.groups.reduced(np.add, np.ascontiguousarray((columns * column).T))
            for column in self.vectors.T
        ]
        spanned = np.stack(parts, axis=2)
        flat = np.ascontiguousarray(spanned.transpose(1, 0, 2)).reshape(n, -1)
        seen = np.empty((classes, n, classes, n))
        for k in range(classes):
            for m in range(k, classes):
                weights, inner = self._between(k, m)
                bent = (spanned @ inner).transpose(1, 0, 2).reshape(n, -1)
                spread = self.groups.spread(weights[:, None], rows)[:, 0]
                seen[k, :, m, :] = (columns * spread) @ columns.T + bent @ flat.T
                seen[m, :, k, :] = seen[k, :, m, :].T
        return seen

    def _between(self, k: int, m: int) -> tuple[Array, Array]:
        """c and M of each group, for which J between two classes is ``c I + B M B'``.

        With ``E_kk`` for the matrix that has a one for the class k alone,

            c = delta_km a_k - a_k a_m / sum(a),    M = delta_km E_kk - T / sum(a),
            T = a_m Q + a_k E_mm + Q G E_mm,        Q = E_kk - a_k S - E_kk G S.
        """
        levels, products, inverses = self._inner
        total = levels.sum(axis=1)
        share = np.where(total > 0, 1.0 / np.where(total > 0, total, 1.0), 0.0)
        bent = -levels[:, k, None, None] * inverses
        bent[:, k] -= (products[:, k : k + 1] @ inverses)[:, 0]
        bent[:, k, k] += 1.0
        inner = levels[:, m, None, None] * bent
        inner[:, m, m] += levels[:, k]
        inner[:, :, m] += (bent @ products[:, :, m : m + 1])[:, :, 0]
        inner *= -share[:, None, None]
        weights = -levels[:, k] * levels[:, m] * share
        if m == k:
            inner[:, k, k] += 1.0
            weights += levels[:, k]
        return weights, inner

    def roots(self) -> list[BalancedRoot]:  # type: ignore[override]
        return [BalancedRoot(self)]


class _Part(NamedTuple):
    """The root of one group.

    Attributes
    ----------
    members, classes : arrays of integers
        What is live of the group.
    axes : (d, d)
        Orthogonal; the first span the b_k.
    spanned : (m, s, r)
        The root in the first s axes, for m classes.
    beside : (m, e)
        The root in each of the others.
    """

    members: Index
    classes: Index
    axes: Array
    spanned: Array
    beside: Array

    @property
    def size(self) -> int:
        others = self.members.size - self.spanned.shape[1]
        return self.spanned.shape[2] + others * self.beside.shape[1]


class BalancedRoot:
    """R with ``R R' = J``, group by group: beside the span of the b_k all axes are the same.

    Parameters
    ----------
    jacobian : BalancedJacobian
    """

    def __init__(self, jacobian: BalancedJacobian) -> None:
        assert jacobian.groups is not None
        self.shape = jacobian.diagonal.shape
        order, starts = jacobian.groups.layout(self.shape[0])
        live = jacobian.groups.reduced(np.maximum, jacobian.diagonal) > 0
        self.parts = [
            _part(jacobian, order[starts[g] : starts[g + 1]], np.flatnonzero(live[g]))
            for g in np.flatnonzero(live.any(axis=1))
        ]
        self.entries = jacobian.diagonal.size
        self.size = sum(part.size for part in self.parts)

    def combined(self, matrix: Array) -> Array:
        """``matrix R``, for a matrix (m, k)."""
        rows, outputs = self.shape
        whole = matrix.reshape(len(matrix), outputs, rows)
        combined = [np.zeros((len(matrix), 0))]
        for part in self.parts:
            turned = whole[:, part.classes][:, :, part.members] @ part.axes
            width = part.spanned.shape[1]
            combined.append(np.einsum("nks,ksr->nr", turned[:, :, :width], part.spanned))
            beside = np.einsum("nkj,ke->nje", turned[:, :, width:], part.beside)
            combined.append(beside.reshape(len(matrix), part.size - part.spanned.shape[2]))
        return np.hstack(combined)

    def times(self, inner: Array) -> Array:
        """``R inner``, for (size,)."""
        out, at = np.zeros(self.shape[::-1]), 0
        for part in self.parts:
            (classes, width, rank), size = part.spanned.shape, part.size
            here = inner[at : at + size]
            turned = np.empty((classes, part.members.size))
            turned[:, :width] = part.spanned @ here[:rank]
            others = here[rank:].reshape(part.members.size - width, part.beside.shape[1])
            turned[:, width:] = part.beside @ others.T
            out[np.ix_(part.classes, part.members)] = turned @ part.axes.T
            at += size
        return out.ravel()


def _part(jacobian: BalancedJacobian, members: Index, classes: Index) -> _Part:
    assert jacobian.vectors is not None
    lengths = jacobian.diagonal[np.ix_(members[:1], classes)][0]
    axes, inner = np.linalg.qr(jacobian.vectors[np.ix_(members, classes)], mode="complete")
    width = min(inner.shape)
    blocks = inner[:width].T[:, :, None] * inner[:width].T[:, None, :]
    np.einsum("kss->ks", blocks)[:] += lengths[:, None]
    stacked = blocks.reshape(-1, width)
    matrix = -stacked @ np.linalg.solve(blocks.sum(axis=0), stacked.T)
    for k, block in enumerate(blocks):
        place = slice(k * width, (k + 1) * width)
        matrix[place, place] += block
    root = _square_root(matrix)
    spanned = root.reshape(classes.size, width, root.shape[1])
    beside = np.diag(lengths) - np.outer(lengths, lengths) / lengths.sum()
    return _Part(members, classes, axes, spanned, _square_root(beside))


def _square_root(matrix: Array) -> Array:
    """R with ``R R' = matrix`` and as many columns as its rank."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > ZERO_EIGENVALUE
    root: Array = vectors[:, kept] * np.sqrt(values[kept])
    return root
