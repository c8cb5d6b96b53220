"""Generalised derivatives of proximal maps, as a diagonal plus rank-one terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.functions.penalties.partition import Groups
from proxmargin.runtime.types import Array, Index


@dataclass(frozen=True, eq=False)
class ProxJacobian:
    """``J = diag(diagonal) + sign sum_g a_g a_g'``, an element of the generalised Jacobian.

    It is symmetric, with eigenvalues in [0, 1]. The arrays have the shape of the argument of the
    map: coefficients (n_features, n_outputs), or dual points (n_samples, n_outputs). Where a_g is
    not zero, the diagonal is constant on the whole group, possibly zero.

    Parameters
    ----------
    diagonal : array
    vectors : array, optional
        Each a_g at the places of its group.
    groups : Groups, optional
        Of ``vectors``.
    sign : float
        1 or -1.
    removed : array, optional
        A second b_g for each group, of which J has ``- b_g b_g'``.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import ElasticNet
    >>> jacobian = ElasticNet(l1=1.0).prox_jacobian(np.array([[3.0], [0.5]]), 1.0)
    >>> jacobian.diagonal.ravel().tolist()
    [1.0, 0.0]
    """

    diagonal: Array
    vectors: Array | None = None
    groups: Groups | None = None
    sign: float = 1.0
    removed: Array | None = None

    @property
    def across(self) -> bool:
        """The rank-one terms couple the outputs."""
        return self.groups is not None and self.groups.across_classes

    @property
    def live(self) -> NDArray[np.bool_]:
        """Entries that are not in the null space of J."""
        live: NDArray[np.bool_] = self.diagonal != 0
        return live if self.vectors is None else live | (self.vectors != 0)

    @property
    def terms(self) -> list[tuple[float, Array]]:
        """The signs and vectors of the rank-one terms."""
        both = (self.sign, self.vectors), (-1.0, self.removed)
        return [(sign, vectors) for sign, vectors in both if vectors is not None]

    def apply(self, x: Array) -> Array:
        """``J x``."""
        # the many temporaries of one part are gone before the next one starts
        parts = [self._term(sign, vectors, x) for sign, vectors in self.terms]
        product = self.diagonal * x
        for part in parts:
            product += part
        return product

    def _term(self, sign: float, vectors: Array, x: Array) -> Array:
        """``sign sum_g a_g a_g' x``."""
        assert self.groups is not None
        products = self.groups.oriented(vectors * x)
        sums = self.groups.spread(self.groups.reduced(np.add, products), len(products))
        along: Array = sign * vectors
        along *= self.groups.restored(sums)
        return along

    def on_rows(self, index: Index) -> ProxJacobian:
        """J restricted to the rows ``index``, where J is zero on all other rows."""
        if self.vectors is None or self.groups is None:
            return ProxJacobian(self.diagonal[index])
        groups, _ = self.groups.restricted(index)
        removed = None if self.removed is None else self.removed[index]
        return replace(
            self,
            diagonal=self.diagonal[index],
            vectors=self.vectors[index],
            groups=groups,
            removed=removed,
        )

    def roots(self) -> list[Root | BlockRoot]:
        """Matrices R with ``J = R R'``: one for each output, or a single one where `across` holds.
        Its rows are ordered by output, then by row."""
        if self.removed is not None:
            return [BlockRoot(self)]
        vectors = np.zeros(self.diagonal.shape) if self.vectors is None else self.vectors
        codes = np.arange(len(self.diagonal)) if self.groups is None else self.groups.codes
        if self.across:
            every = np.tile(codes, self.diagonal.shape[1])
            return [Root(self.diagonal.T.ravel(), vectors.T.ravel(), every, self.sign)]
        pairs = zip(self.diagonal.T, vectors.T, strict=True)
        return [Root(diagonal, column, codes, self.sign) for diagonal, column in pairs]


class Root:
    """R with ``R R' = diag(diagonal) + sign sum_g a_g a_g'`` and as many columns as its rank. (One
    more a group where that is singular.) On a group with diagonal c > 0 it is the square root
    ``sqrt(c) I + rho a a'``, on one without diagonal it is a alone. ``codes`` are the groups of
    entries."""

    def __init__(self, diagonal: Array, vector: Array, codes: Index, sign: float) -> None:
        self.entries = diagonal.size
        self.kept = np.flatnonzero(diagonal)
        self.root = np.sqrt(diagonal[self.kept])
        rows = np.flatnonzero(vector)
        self.order = rows[np.argsort(codes[rows], kind="stable")]
        _, self.starts, self.place = np.unique(
            codes[self.order], return_index=True, return_inverse=True
        )
        self.vector = vector[self.order]
        shared = diagonal[self.order][self.starts] if rows.size else np.empty(0)
        squares = self._summed(self.vector**2)
        width = np.sqrt(np.maximum(shared + sign * squares, 0.0)) + np.sqrt(shared)
        self.shares = np.where(shared > 0, sign / np.where(width > 0, width, 1.0), 0.0)
        self.alone = np.flatnonzero(shared == 0)
        # where among the kept entries those of groups with a diagonal are
        places = np.full(self.entries, -1)
        places[self.kept] = np.arange(self.kept.size)
        self.coupled = places[self.order]
        self.size = self.kept.size + self.alone.size

    def combined(self, matrix: Array) -> Array:
        """``matrix R``, for a matrix (m, k)."""
        out = np.empty((matrix.shape[0], self.size))
        np.multiply(matrix[:, self.kept], self.root, out=out[:, : self.kept.size])
        if self.order.size:
            sums = self._summed(matrix[:, self.order] * self.vector)
            on = self.coupled >= 0
            scaled = (self.shares[self.place] * self.vector)[on]
            out[:, self.coupled[on]] += sums[:, self.place[on]] * scaled
            out[:, self.kept.size :] = sums[:, self.alone]
        return out

    def times(self, inner: Array) -> Array:
        """``R inner``, for (size,)."""
        out = np.zeros(self.entries)
        out[self.kept] = self.root * inner[: self.kept.size]
        if self.order.size:
            on = self.coupled >= 0
            parts = np.zeros(self.order.size)
            parts[on] = self.vector[on] * inner[self.coupled[on]]
            lengths = self.shares * self._summed(parts)
            lengths[self.alone] += inner[self.kept.size :]
            out[self.order] += self.vector * lengths[self.place]
        return out

    def _summed(self, values: Array) -> Array:
        """Sums over the groups, along the last axis."""
        if self.order.size == 0:
            return np.zeros((*values.shape[:-1], 0))
        sums: Array = np.add.reduceat(values, self.starts, axis=-1)
        return sums


class BlockRoot:
    """R with ``R R' = J``, one group a row, by the eigenvectors of the matrix of each row."""

    def __init__(self, jacobian: ProxJacobian) -> None:
        rows, outputs = jacobian.diagonal.shape
        matrices = np.zeros((rows, outputs, outputs))
        np.einsum("jkk->jk", matrices)[:] = jacobian.diagonal
        for sign, vectors in jacobian.terms:
            matrices += sign * vectors[:, :, None] * vectors[:, None, :]
        values, vectors = np.linalg.eigh(matrices)
        self.blocks = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        self.kept = np.flatnonzero(values.ravel() > DOMAIN_ROUNDING)
        self.entries = rows * outputs
        self.size = self.kept.size

    def combined(self, matrix: Array) -> Array:
        """``matrix R``, for a matrix (m, k)."""
        rows, outputs, _ = self.blocks.shape
        parts = matrix.reshape(len(matrix), outputs, rows).transpose(2, 0, 1) @ self.blocks
        flat: Array = parts.transpose(1, 0, 2).reshape(len(matrix), -1)[:, self.kept]
        return flat

    def times(self, inner: Array) -> Array:
        """``R inner``, for (size,)."""
        rows, outputs, _ = self.blocks.shape
        every = np.zeros(rows * outputs)
        every[self.kept] = inner
        product: Array = (self.blocks @ every.reshape(rows, outputs, 1))[:, :, 0].T
        return product.ravel()


@dataclass(frozen=True, eq=False)
class BalancedJacobian(ProxJacobian):
    """``J = diag(a) + sum_gk b_gk b_gk'``, constrained to directions that sum to zero. For one
    group the matrices ``J_k = a_k I + b_k b_k'`` of the classes are d x d, and with their sum ``H =
    sum_k J_k`` the constrained matrix is ``J - [J_1, ...]' H^-1 [J_1, ...]``. Parameters are those
    of `ProxJacobian` with groups within classes; the diagonal is one number a group and class."""

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
        """For each group: a, (classes,), ``G = B'B`` and ``S = (sum(a) I + G)^-1``. With the
        columns b_k in B it is ``H^-1 = (I - B S B') / sum(a)``."""
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
                scaled = (spanned @ inner).transpose(1, 0, 2).reshape(n, -1)
                spread = self.groups.spread(weights[:, None], rows)[:, 0]
                seen[k, :, m, :] = (columns * spread) @ columns.T + scaled @ flat.T
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
        scaled = -levels[:, k, None, None] * inverses
        scaled[:, k] -= (products[:, k : k + 1] @ inverses)[:, 0]
        scaled[:, k, k] += 1.0
        inner = levels[:, m, None, None] * scaled
        inner[:, m, m] += levels[:, k]
        inner[:, :, m] += (scaled @ products[:, :, m : m + 1])[:, :, 0]
        inner *= -share[:, None, None]
        weights = -levels[:, k] * levels[:, m] * share
        if m == k:
            inner[:, k, k] += 1.0
            weights += levels[:, k]
        return weights, inner

    def roots(self) -> list[BalancedRoot]:  # type: ignore[override]
        return [BalancedRoot(self)]


class _Part(NamedTuple):
    """The root of one group."""

    # arrays of integers; what is live of the group
    members: Index
    classes: Index
    axes: Array  # (d, d); orthogonal; the first span the b_k
    spanned: Array  # (m, s, r); the root in the first s axes, for m classes
    beside: Array  # (m, e); the root in each of the others

    @property
    def size(self) -> int:
        others = self.members.size - self.spanned.shape[1]
        return self.spanned.shape[2] + others * self.beside.shape[1]


class BalancedRoot:
    """R with ``R R' = J``, group by group: beside the span of the b_k all axes are the same."""

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
    kept = values > DOMAIN_ROUNDING  # eigenvalues of J are in [0, 1]
    root: Array = vectors[:, kept] * np.sqrt(values[kept])
    return root
