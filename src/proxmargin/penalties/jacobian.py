"""Generalised derivatives of proximal maps, as a diagonal plus rank-one terms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proxmargin.penalties.partition import Groups

__all__ = ["BlockRoot", "ProxJacobian", "Root"]

ZERO_EIGENVALUE = 1e-12  # eigenvalues of J are in [0, 1]: a smaller one counts as zero

Array = NDArray[np.float64]
Index = NDArray[np.intp]


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

        Its rows are ordered by output, then by row.
        """
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
    """R with ``R R' = diag(diagonal) + sign sum_g a_g a_g'`` and as many columns as its rank.

    (One more a group where that is singular.) On a group with diagonal c > 0 it is the square
    root ``sqrt(c) I + rho a a'``, on one without diagonal it is a alone.

    Parameters
    ----------
    diagonal, vector : (k,)
    codes : (k,) integers
        The group of each entry.
    sign : float
    """

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
        self.bends = np.where(shared > 0, sign / np.where(width > 0, width, 1.0), 0.0)
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
            bent = (self.bends[self.place] * self.vector)[on]
            out[:, self.coupled[on]] += sums[:, self.place[on]] * bent
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
            lengths = self.bends * self._summed(parts)
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
    """R with ``R R' = J``, one group a row, by the eigenvectors of the matrix of each row.

    Parameters
    ----------
    jacobian : ProxJacobian
        With groups across the outputs.
    """

    def __init__(self, jacobian: ProxJacobian) -> None:
        rows, outputs = jacobian.diagonal.shape
        matrices = np.zeros((rows, outputs, outputs))
        np.einsum("jkk->jk", matrices)[:] = jacobian.diagonal
        for sign, vectors in jacobian.terms:
            matrices += sign * vectors[:, :, None] * vectors[:, None, :]
        values, vectors = np.linalg.eigh(matrices)
        self.blocks = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        self.kept = np.flatnonzero(values.ravel() > ZERO_EIGENVALUE)
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
