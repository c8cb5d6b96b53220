"""Systems of Newton steps over pairs of columns and classes, with curvature in few samples.

With B a square root of the Hessian of the curved samples and D a positive diagonal, ``(B'B + D) d =
-r`` is solved over the pairs, over the contrasts between the classes of the curved samples
(Woodbury), or, where these systems are too large, by conjugate gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.runtime.threads import affordable, factor_work, gram_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.block import Block, ColumnClassPairs, CurvedSamples
from proxmargin.solvers.augmented.hinge_system import WIDE
from proxmargin.solvers.shared.numerical import (
    CG_TOLERANCE,
    MAX_SIDE,
    Inverse,
    conjugate_gradients,
    inverse_of,
)


class ClassSystem(ABC):
    """A form of the linear system over ``free`` pairs, (n_columns + 1, n_classes) of bool, which
    can be solved for some of them only; ``diagonal``, (n_columns + 1,) > 0, is D, the same for all
    classes."""

    def __init__(
        self, block: Block, curved: CurvedSamples, free: NDArray[np.bool_], diagonal: Array
    ) -> None:
        self.block, self.curved, self.diagonal = block, curved, diagonal
        self.pairs = ColumnClassPairs(free)

    @abstractmethod
    def solved(self, keep: NDArray[np.bool_], right: Array) -> Array:
        """``(B'B + D)^-1 right`` on the pairs in ``keep``, a mask of all pairs; both (n_keep,)."""

    def step(self, slope: Array, keep: NDArray[np.bool_]) -> Array:
        """The Newton step of the pairs in ``keep`` as a table, for a table ``slope``."""
        values = np.zeros(self.pairs.size)
        values[keep] = self.solved(keep, -self.pairs.gathered(slope)[keep])
        return self.pairs.spread(values)


class Factored(ClassSystem):
    """A factored matrix, which is reused if only few of its pairs are left out."""

    # pairs that may be left out of the factor, over its number of rows
    few: ClassVar[float]

    def __init__(
        self, block: Block, curved: CurvedSamples, free: NDArray[np.bool_], diagonal: Array
    ) -> None:
        super().__init__(block, curved, free, diagonal)
        self.base: _KeptFactor | None = None

    @abstractmethod
    def factorised(self, keep: NDArray[np.bool_]) -> _KeptFactor:
        """The factor for the pairs in ``keep``."""

    def solved(self, keep: NDArray[np.bool_], right: Array) -> Array:
        base = self.base
        if base is None or not base.has_nearly(keep, self.few):
            base = self.base = self.factorised(keep.copy())
        return base.solved_on(keep[base.keep], right)


class _KeptFactor(NamedTuple):
    """A factor for the pairs ``keep``, of a matrix with ``rows`` rows."""

    keep: NDArray[np.bool_]
    rows: int
    inverse: Inverse

    def has_nearly(self, keep: NDArray[np.bool_], few: float) -> bool:
        """Whether ``keep`` consists of the factor's pairs except for few."""
        gone = np.count_nonzero(self.keep) - np.count_nonzero(keep)
        return bool(gone <= few * self.rows and not (keep & ~self.keep).any())

    def solved_on(self, kept: NDArray[np.bool_], right: Array) -> Array:
        """The solution with the other pairs fixed at zero, by a Schur complement over those."""
        gone = np.flatnonzero(~kept)
        rights = np.zeros((kept.size, 1 + gone.size), order="F")
        rights[kept, 0] = right
        rights[gone, 1 + np.arange(gone.size)] = 1.0
        found = self.inverse(rights)
        values, held = found[:, 0], found[:, 1:]
        if gone.size:
            values = values - held @ inverse_of(held[gone])(values[gone])
        return values[kept]


class OverPairs(Factored):
    few = 0.12

    def __init__(
        self, block: Block, curved: CurvedSamples, free: NDArray[np.bool_], diagonal: Array
    ) -> None:
        super().__init__(block, curved, free, diagonal)
        self.matrix = self.block.curvature(self.curved, self.pairs)
        np.einsum("ii->i", self.matrix)[:] += self.diagonal[self.pairs.columns]

    def factorised(self, keep: NDArray[np.bool_]) -> _KeptFactor:
        index = np.flatnonzero(keep)
        matrix = self.matrix if keep.all() else self.matrix[np.ix_(index, index)]
        return _KeptFactor(keep, index.size, inverse_of(matrix.T))  # its lower triangle is filled


class OverContrasts(Factored):
    """A matrix over the contrasts: ``I + B D^-1 B'``."""

    few = 0.25

    def __init__(
        self, block: Block, curved: CurvedSamples, free: NDArray[np.bool_], diagonal: Array
    ) -> None:
        super().__init__(block, curved, free, diagonal)
        self.scale = 1.0 / np.sqrt(self.diagonal[self.pairs.columns])
        self.roots = self.block.roots(self.curved, self.pairs)
        self.roots *= self.scale

    def factorised(self, keep: NDArray[np.bool_]) -> _KeptFactor:
        whole = keep.all()
        roots = self.roots if whole else self.roots[:, keep]
        scale = (self.scale if whole else self.scale[keep])[:, None]
        matrix = roots @ roots.T
        np.einsum("ii->i", matrix)[:] += 1.0
        inner = inverse_of(matrix, overwrite=True)

        def inverse(right: Array) -> Array:
            scaled = scale * right
            return scale * (scaled - roots.T @ inner(roots @ scaled))

        return _KeptFactor(keep, len(roots), inverse)


class OverGram(ClassSystem):
    """`OverContrasts` from the Gram matrix of the samples, if every pair is in the system."""

    def __init__(
        self, block: Block, curved: CurvedSamples, free: NDArray[np.bool_], diagonal: Array
    ) -> None:
        super().__init__(block, curved, free, diagonal)
        gram = self.block.inner_products(curved.samples, 1.0 / self.diagonal[:-1])
        if self.pairs.columns.size and self.pairs.columns.max() == self.block.n_columns:
            gram += 1.0 / self.diagonal[-1]
        places, self.contrasts = curved.roots()
        self.samples = curved.samples[places]
        self.matrix = self.contrasts @ self.contrasts.T
        self.matrix *= gram[np.ix_(places, places)]
        np.einsum("ii->i", self.matrix)[:] += 1.0

    def solved(self, keep: NDArray[np.bool_], right: Array) -> Array:
        table = self.pairs.spread(right) / self.diagonal[:, None]
        scores = self.block.scores(table)[self.samples]
        weights = inverse_of(self.matrix)((scores * self.contrasts).sum(axis=1))
        dual = np.zeros((self.block.n_samples, table.shape[1]))
        np.add.at(dual, self.samples, weights[:, None] * self.contrasts)
        table -= self.block.adjoint(dual) / self.diagonal[:, None]
        return self.pairs.gathered(table)


class MatrixFreePairs(ClassSystem):
    """Conjugate gradients by products with the data, preconditioned by the diagonal, which begin no
    further product after the deadline."""

    def __init__(
        self,
        block: Block,
        curved: CurvedSamples,
        free: NDArray[np.bool_],
        diagonal: Array,
        deadline: float,
    ) -> None:
        super().__init__(block, curved, free, diagonal)
        self.deadline = deadline

    def solved(self, keep: NDArray[np.bool_], right: Array) -> Array:
        diagonal = self.diagonal[self.pairs.columns[keep]]
        curvatures = self.pairs.gathered(self.block.diagonal(self.curved))[keep]
        return conjugate_gradients(
            lambda values: self.product(keep, values),
            lambda values: values / (diagonal + curvatures),
            right,
            CG_TOLERANCE,
            self.deadline,
        )

    def product(self, keep: NDArray[np.bool_], direction: Array) -> Array:
        """``(B'B + D) direction`` on the pairs that are kept."""
        values = np.zeros(self.pairs.size)
        values[keep] = direction
        scores = self.block.scores(self.pairs.spread(values))
        pulled = self.pairs.gathered(self.block.adjoint(self.curved.product(scores)))[keep]
        moved: Array = self.diagonal[self.pairs.columns[keep]] * direction + pulled
        return moved


def class_system(
    block: Block,
    curved: CurvedSamples,
    free: NDArray[np.bool_],
    diagonal: Array,
    selects: bool,
    deadline: float,
) -> ClassSystem:
    """The form with the least work; without an l1 part (``selects``) all pairs are kept. CG if a
    factorisation would not end before the deadline."""
    pairs, contrasts = int(np.count_nonzero(free)), curved.contrasts
    short, long = sorted((pairs, contrasts))
    density = block.entries / max(block.n_samples * block.n_columns, 1)
    work = gram_work(long, short, density) + factor_work(short)
    if short > MAX_SIDE or not affordable(work, deadline):
        return MatrixFreePairs(block, curved, free, diagonal, deadline)
    wide = OverContrasts if selects else OverGram
    kind: type[ClassSystem] = OverPairs if pairs <= WIDE * contrasts else wide
    return kind(block, curved, free, diagonal)
