"""Low-rank factors of kernel matrices, which turn a kernel model into a linear one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.data.kernels.checks import IndefiniteKernelError, check_definite
from proxmargin.data.kernels.matrix import KernelMatrix
from proxmargin.runtime.types import Array, Index

PIVOT_ULPS = 64  # Cholesky pivot in ulps of the diagonal, below which it is rounding
SMALLEST_PIVOT = 1e-4  # over the largest residual; smaller pivots would amplify rounding
WORST_RESIDUAL = 100.0  # largest residual over the tolerance of the mean one
BLOCK_ROWS = 2048  # rows of the factor computed at a time


@dataclass(frozen=True, eq=False)
class LowRankFactor:
    """An approximation ``K = G G' + R`` with a positive semidefinite residual R. R vanishes at the
    pivots, and at the combinations of samples given to `along`."""

    matrix: KernelMatrix
    # (n_samples, rank); G; the rows and columns of K at the pivots are reproduced exactly
    factor: Array
    rank: int
    pivots: Index  # (n_pivots,) int
    # (n_samples,) >= 0; the diagonal of R, which bounds it: ``|R_ij|^2 <= R_ii R_jj``
    residual: Array
    tol: float
    block: int
    rng: np.random.Generator  # Generator

    @property
    def is_complete(self) -> bool:
        """Whether R is within the tolerance."""
        return self._target().is_met(self.residual)

    def extend(self, rank: int | None = None, *, deadline: float = np.inf) -> LowRankFactor:
        """The factor extended to ``rank`` columns, or until R is within the tolerance, or it is the
        ``deadline``; the columns so far are copied, not recomputed."""
        limit = self.matrix.n_samples if rank is None else min(rank, self.matrix.n_samples)
        target = self._target()
        room = limit if rank is not None else min(limit, max(512, 2 * self.rank))
        factor = _resized(self.factor, max(room, self.rank))
        grown = replace(self, factor=factor, residual=self.residual.copy())
        while grown.rank < limit and not target.is_met(grown.residual):
            grown = _with_block(grown, target, min(grown.block, limit - grown.rank))
            if clock() >= deadline:
                break
        return replace(grown, factor=_resized(grown.factor[:, : grown.rank], grown.rank))

    def along(self, weights: Array, products: Array) -> LowRankFactor:
        """The factor with one more column for each combination w, at which it becomes exact;
        ``products`` are ``K @ weights``, (n_samples, n_combinations) both.

        ``R w w'R / w'R w`` moves from R to ``G G'``: a Cholesky step whose pivot is the combination
        w of samples. A w with ``w'R w`` at rounding level is skipped.
        """
        target = self._target()
        rest = products - self.factor @ (self.factor.T @ weights)
        rounding = target.rounding * target.largest * np.abs(weights).sum(axis=0) ** 2
        columns: list[Array] = []
        for k, size in enumerate(rounding):
            for column in columns:
                rest[:, k] -= column * float(column @ weights[:, k])
            square = float(weights[:, k] @ rest[:, k])
            if square > size:
                columns.append(rest[:, k] / np.sqrt(square))
        if not columns:
            return self
        new = np.column_stack(columns)
        residual = self.residual - np.einsum("ij,ij->i", new, new)
        return replace(
            self,
            factor=np.hstack([self.factor, new]),
            rank=self.rank + len(columns),
            residual=_clipped(residual, self.matrix, target),
        )

    def at_pivots(self, coef: Array) -> Array:
        """Weights of the pivots alone, (n_samples,), with the scores ``G coef``; only for a factor
        without `along`, whose rows at the pivots are triangular."""
        # imported late: scipy.linalg is slow to load
        from scipy.linalg import solve_triangular

        weights = np.zeros(self.residual.size)
        corner = self.factor[self.pivots]
        weights[self.pivots] = solve_triangular(corner, coef, trans="T", lower=True)
        return weights

    def square(self, dual: Array) -> float:
        """An upper bound of ``dual'K dual`` without a product with K, for dual of (n_samples,).
        ``|G' d|^2`` plus ``(sum_i |d_i| sqrt(R_ii))^2`` or ``|d|^2 trace(R)``, whichever is
        smaller."""
        pulled, rest = self.factor.T @ dual, np.maximum(self.residual, 0.0)
        sides = float(np.abs(dual) @ np.sqrt(rest)) ** 2, float(dual @ dual) * float(rest.sum())
        return float(pulled @ pulled) + min(sides)

    @property
    def is_accurate(self) -> bool:
        """Whether R is within the tolerance, or the factor has a column for each sample."""
        return self.rank >= len(self.factor) or self._target().is_met(self.residual)

    def _target(self) -> Target:
        return Target(self.matrix.diagonal(), self.tol, PIVOT_ULPS * self.matrix.precision)


@dataclass(frozen=True, eq=False)
class Target:
    """The tolerance ``tol`` of trace(R) / trace(K), for the diagonal of K, and ``rounding``: a
    residual over its entry of the diagonal below which it is that."""

    diagonal: Array
    tol: float
    rounding: float

    def is_met(self, residual: Array) -> bool:
        small = residual.sum() <= self.tol * self.diagonal.sum()
        even = residual.max(initial=0.0) <= WORST_RESIDUAL * self.tol * self.largest
        return bool(small and even) or not self.above_rounding(residual).any()

    def above_rounding(self, residual: Array) -> Array:
        """The residual with rounding set to zero."""
        return np.where(residual > self.rounding * self.diagonal, residual, 0.0)

    @property
    def largest(self) -> float:
        return float(self.diagonal.max(initial=0.0))


def factorise(
    matrix: KernelMatrix,
    *,
    rank: int | None = None,
    tol: float = 1e-12,
    rng: np.random.Generator | None = None,
    block: int = 128,
    deadline: float = np.inf,
) -> LowRankFactor:
    """Incomplete Cholesky factor of a kernel matrix with random pivots, block by block.

    Samples are proposed with probability proportional to their residual, and accepted with the
    share of it that is left after the earlier pivots of the block: the sequential random pivoting
    of Chen, Epperly, Tropp and Webber (2023), with the rejection sampling of Epperly, Tropp and
    Webber (2024), which works in matrix products. The sample of the largest residual is always
    proposed.

    The factor ends at ``rank`` columns; once trace(R) is at most the share ``tol`` of trace(K), and
    no entry of R exceeds a hundred times this share of the largest diagonal entry; once R is
    rounding; or after the ``deadline``. Raises IndefiniteKernelError: matrices that are not known
    to be positive semidefinite are checked as a whole if small, on a random part if large.
    """
    generator = np.random.default_rng(0) if rng is None else rng
    if not matrix.is_definite:
        check_definite(matrix, generator)
    n = matrix.n_samples
    empty = LowRankFactor(
        matrix=matrix,
        factor=np.empty((n, 0)),
        rank=0,
        pivots=np.empty(0, dtype=np.intp),
        residual=np.maximum(matrix.diagonal(), 0.0),
        tol=tol,
        block=block,
        rng=generator,
    )
    return empty.extend(rank, deadline=deadline)


def _with_block(grown: LowRankFactor, target: Target, most: int) -> LowRankFactor:
    """``grown`` with up to ``most`` further columns, written into the spare ones of its array."""
    residual, rank = grown.residual, grown.rank
    order = grown.matrix.order  # so that the pivots do not depend on that of the rows
    proposed = order[_proposed(target.above_rounding(residual)[order], grown.block, grown.rng)]
    at_proposed = grown.factor[proposed, :rank]
    schur = grown.matrix.block(proposed, proposed) - at_proposed @ at_proposed.T
    residual[proposed] = _clipped(schur.diagonal(), grown.matrix, target)
    floor = np.maximum(SMALLEST_PIVOT * residual.max(), target.rounding * target.diagonal[proposed])
    kept, triangle = _accepted(schur, floor, most, grown.rng)
    if not kept.size:
        return grown  # the residuals of the proposed samples were rounding, and are now zero
    pivots = proposed[kept]
    factor = grown.factor
    if rank + pivots.size > factor.shape[1]:
        factor = _resized(factor[:, :rank], min(len(factor), 2 * factor.shape[1]))
    _append(factor, rank, grown.matrix.rows(pivots), factor[pivots, :rank], triangle)
    for rows in _slices(len(factor)):
        new = factor[rows, rank : rank + pivots.size]
        residual[rows] -= np.einsum("ij,ij->i", new, new)
    residual[pivots] = 0.0
    residual[:] = _clipped(residual, grown.matrix, target)
    return replace(
        grown,
        factor=factor,
        rank=rank + pivots.size,
        pivots=np.concatenate([grown.pivots, pivots]),
    )


def _proposed(residual: Array, count: int, rng: np.random.Generator) -> Index:
    """Distinct samples in random order, the one with the largest residual first."""
    largest = int(residual.argmax())
    drawn = np.unique(rng.choice(residual.size, count, p=residual / residual.sum()))
    others = rng.permutation(drawn[drawn != largest])[: count - 1]
    return np.concatenate([[largest], others]).astype(np.intp)


def _accepted(
    schur: Array, floor: Array, most: int, rng: np.random.Generator
) -> tuple[Index, Array]:
    """Which of the proposed samples become pivots, at most ``most``, and their lower triangular
    factor: ``L L' = schur[kept][:, kept]``, with the residual of K at the proposed samples. Pivots
    are not below ``floor``."""
    left = schur.copy()
    chances = rng.random(len(schur)) * schur.diagonal()
    chances[0] = 0.0
    kept: list[int] = []
    columns: list[Array] = []
    for i in range(len(schur)):
        if left[i, i] <= max(chances[i], floor[i]):
            continue
        column = left[:, i] / np.sqrt(left[i, i])
        kept.append(i)
        columns.append(column)
        if len(kept) == most:
            break
        left[i + 1 :, i + 1 :] -= np.outer(column[i + 1 :], column[i + 1 :])
    index = np.array(kept, dtype=np.intp)
    triangle = np.column_stack(columns)[index] if columns else np.empty((0, 0))
    return index, np.tril(triangle)


def _append(factor: Array, rank: int, rows: Array, at_pivots: Array, triangle: Array) -> None:
    """Write the columns ``(K_P - G G_P') L^-T`` after the first ``rank`` ones, for the rows of K at
    the pivots P, those of G, and L, lower triangular."""
    from scipy.linalg import solve_triangular

    for part in _slices(len(factor)):
        rest = rows[:, part] - at_pivots @ factor[part, :rank].T
        solved = solve_triangular(triangle, rest, lower=True, check_finite=False)
        factor[part, rank : rank + len(rows)] = solved.T


def _clipped(residual: Array, matrix: KernelMatrix, target: Target) -> Array:
    """``residual`` with negative entries set to zero; raises if they are too large for rounding."""
    lowest = float(residual.min(initial=0.0))
    if not matrix.is_definite and lowest < -matrix.negative * target.largest:
        raise IndefiniteKernelError(lowest, target.largest)
    return np.maximum(residual, 0.0)


def _resized(factor: Array, room: int) -> Array:
    """A C-ordered array with ``room`` columns that holds ``factor``; itself if it is one."""
    if factor.shape[1] == room and factor.flags.c_contiguous:
        return factor
    larger = np.empty((len(factor), room))
    shared = min(room, factor.shape[1])
    larger[:, :shared] = factor[:, :shared]
    return larger


def _slices(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]
