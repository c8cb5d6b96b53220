"""What a design asks of each block of rows, and how the answers of blocks are put together.

A task is ``task(block, shared, cut)``: the block as a design in memory, arguments for all blocks,
and the rows of arrays that belong to the block. It returns arrays with one entry a row, which are
joined, and small arrays, which are combined in the order of the blocks. Tasks are functions of a
module or records, so that they can be sent to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proxmargin.compiled.rounding import UNIT, Enclosed, gamma
from proxmargin.data.designs.base import Design
from proxmargin.runtime.types import Index

Arrays = tuple[Any, ...]
Answer = tuple[Arrays, Arrays]
Task = Callable[[Design, Arrays, Arrays], Answer]
Combine = Callable[[Arrays, Arrays], Arrays]


@dataclass(frozen=True, eq=False)
class OnColumns:
    """A task on some of the features."""

    task: Task
    index: Index

    def __call__(self, block: Design, shared: Arrays, cut: Arrays) -> Answer:
        return self.task(block.columns(self.index), shared, cut)


@dataclass(frozen=True, eq=False)
class AllOf:
    """Several tasks in one pass; ``shared`` and ``cut`` are how many of the arguments belong to
    each. All answers are arrays in a row, as those of one task; how many belong to each is the
    first of the small ones."""

    tasks: tuple[Task, ...]
    shared: tuple[int, ...]
    cut: tuple[int, ...]

    def __call__(self, block: Design, shared: Arrays, cut: Arrays) -> Answer:
        given = zip(self.tasks, _split(shared, self.shared), _split(cut, self.cut), strict=True)
        answers = [task(block, *each) for task, *each in given]
        counts = np.array([(len(rows), len(small)) for rows, small in answers])
        return (
            tuple(each for rows, _ in answers for each in rows),
            (counts, *(each for _, small in answers for each in small)),
        )


@dataclass(frozen=True, eq=False)
class CombinedAll:
    """The combination of the answers of `AllOf`."""

    combines: tuple[Combine, ...]

    def __call__(self, first: Arrays, second: Arrays) -> Arrays:
        counts = first[0]
        parts = (_split(answer[1:], counts[:, 1]) for answer in (first, second))
        each = zip(self.combines, *parts, strict=True)
        return (counts, *(small for combine, a, b in each for small in combine(a, b)))


def apart(answer: Answer) -> list[Answer]:
    """The answer of each task of `AllOf`."""
    rows, (counts, *small) = answer
    parts = _split(rows, counts[:, 0]), _split(tuple(small), counts[:, 1])
    return list(zip(*parts, strict=True))


def _split(values: Arrays, counts: Sequence[int]) -> list[Arrays]:
    ends = np.cumsum(counts).tolist()
    return [values[end - count : end] for end, count in zip(ends, counts, strict=True)]


# -- tasks


@dataclass(frozen=True, eq=False)
class Method:
    """The answer of a method of designs, whose first arguments are the rows that are cut."""

    name: str
    by_rows: bool = False  # the answer has an entry a row

    def __call__(self, block: Design, shared: Arrays, cut: Arrays) -> Answer:
        answer = (getattr(block, self.name)(*cut, *shared),)
        return (answer, ()) if self.by_rows else ((), answer)


def moments(block: Design, shared: Arrays, cut: Arrays) -> Answer:
    """Weight, weighted mean and weighted squares about that mean of the rows of the block."""
    (weights,) = cut
    total = float(weights.sum())
    if total <= 0.0:
        zero = np.zeros(block.n_features)
        return (), (np.zeros(1), zero, zero)
    mean = block.adjoint(weights[:, None])[:, 0] / total
    return (), (np.array([total]), mean, block.column_squares(weights, mean))


def precise_scores(block: Design, shared: Arrays, cut: Arrays) -> Answer:
    found = block.precise_scores(*shared)
    return tuple(np.broadcast_to(part, found.values.shape) for part in found), ()


def precise_adjoint(block: Design, shared: Arrays, cut: Arrays) -> Answer:
    (dual,) = cut
    values, error, sizes = block.precise_adjoint(dual)
    return (), (values, np.zeros_like(values), error, sizes)


def sweep(block: Design, shared: Arrays, cut: Arrays) -> Answer:
    (at,) = shared
    found = block.sweep(at._replace(cut=cut))
    small = (found.pulled, found.sums)
    return (found.scores, found.dual), small if found.gram is None else (*small, found.gram)


# -- combinations, of the answer for earlier rows with that for later ones


def added(first: Arrays, second: Arrays) -> Arrays:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def larger(first: Arrays, second: Arrays) -> Arrays:
    return tuple(np.maximum(a, b) for a, b in zip(first, second, strict=True))


def merged_moments(first: Arrays, second: Arrays) -> Arrays:
    """Weight, mean and squares about the mean of all rows (Chan, Golub and LeVeque 1983, (2.1))."""
    (one, mean, squares), (other, there, beyond) = first, second
    total = one + other
    share = np.divide(other, total, out=np.zeros_like(total), where=total > 0)
    apart = there - mean
    return total, mean + share * apart, squares + beyond + (one * share) * apart**2


def added_precisely(first: Arrays, second: Arrays) -> Arrays:
    """Sums with the rounding of each addition kept apart (Knuth 1998, 4.2.2, theorem B)."""
    (a, low_a, *bounds_a), (b, low_b, *bounds_b) = first, second
    total = a + b
    back = total - b
    lost = (a - back) + (b - (total - back))
    return (total, low_a + low_b + lost, *added(tuple(bounds_a), tuple(bounds_b)))


def total_of(parts: Arrays, blocks: int) -> Enclosed:
    """The sum over blocks that `added_precisely` has formed, with its error. The errors of the
    blocks add up. Of the sum itself, the parts that are kept apart are below ``gamma_k sum |x||y|``
    for k blocks, and their own sum has a relative error of gamma_k."""
    high, low, error, sizes = parts
    values = high + low
    further = 2.0 * gamma(blocks + 2) ** 2 * sizes + 2.0 * UNIT * np.abs(values)
    return Enclosed(values, (1.0 + 2.0 * gamma(blocks + 2)) * error + further, sizes)
