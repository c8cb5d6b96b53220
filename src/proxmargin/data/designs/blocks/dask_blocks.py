"""Rows in blocks on the workers of a Dask cluster: blocks stay there, small arrays travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from proxmargin.data.datasets.dataset import DataLostError, column_of
from proxmargin.data.designs.base import Design, as_design
from proxmargin.data.designs.blocks import tasks
from proxmargin.data.designs.blocks.base import SizedBlocks, stacked
from proxmargin.data.designs.blocks.placement import Client, Group, Node, Placement, Reply, merged
from proxmargin.data.designs.blocks.tasks import Arrays, Combine, Task
from proxmargin.data.designs.samples import Entry, bad_entry, canonical, is_missing, sentence
from proxmargin.runtime.memory import mapped_empty
from proxmargin.runtime.optional import library_of, optional
from proxmargin.runtime.types import Index, Values

USE = "fitting Dask collections"


class BlockFacts(NamedTuple):
    """What is known of a block."""

    rows: int
    features: int
    nbytes: int
    stored: int  # stored entries of a sparse block; -1 for a dense one
    ready: bool  # it is as designs take it, so that no copy is needed
    bad: Entry | None  # the first one that is no number of modest size


class DaskDesign(SizedBlocks):
    """Blocks of rows that are futures of a client, arrays or CSR matrices, with the `facts_of`
    each. A pass is a task for each thread that has blocks (`Placement`), which combines the answers
    of neighbouring ones, in an order that does not depend on where blocks are (`Node`). Vectors
    with an entry a sample travel to the workers of their blocks, and back."""

    def __init__(self, placement: Placement, facts: Sequence[BlockFacts]) -> None:
        sizes = [each.rows for each in facts]
        nnz = sum(each.stored for each in facts) if facts[0].stored >= 0 else None
        super().__init__(sizes, facts[0].features, sum(each.nbytes for each in facts), nnz)
        self.placement = placement
        ends = np.cumsum([0, *sizes])
        self._parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        def asked(numbers: Sequence[int]) -> Any:
            mine = [tuple(each[self._parts[k]] for each in cut) for k in numbers]
            return BlockRequest(task, combine, shared, mine, list(numbers))

        found, small = self.placement.answers(_answer, asked, combine)
        self.counter.add(1.0)
        return self._joined(found), small

    def _joined(self, found: list[tuple[Group, Arrays]]) -> Arrays:
        """The rows of all groups in the order of the samples."""
        joined = tuple(mapped_empty((self.n_samples, *each.shape[1:])) for each in found[0][1])
        for group, rows in found:
            for whole, mine in zip(joined, rows, strict=True):
                start = 0
                for part in (self._parts[k] for k in group.numbers):
                    end = start + part.stop - part.start
                    whole[part] = mine[start:end]
                    start = end
        return joined

    def _rows(self, index: Index) -> Design:
        order = np.unique(index)

        ends = np.searchsorted(order, [(part.start, part.stop) for part in self._parts])

        def asked(numbers: Sequence[int]) -> Any:
            return [order[slice(*ends[k])] - self._parts[k].start for k in numbers]

        found, _ = self.placement.answers(_picked, asked, tasks.added)
        self.counter.add(1.0)
        parts: dict[int, Any] = {}
        for group, rows in found:
            parts.update(zip(group.numbers, rows, strict=True))
        return as_design(stacked([parts[k] for k in sorted(parts)])[np.searchsorted(order, index)])


def on_workers(X: Any, most: float) -> DaskDesign:
    """The design of a Dask array or data frame, whose blocks are persisted on their workers. Raises
    ValueError: no client; blocks that are not numbers, or an entry beyond ``most``, with its
    row."""
    optional("dask", USE, "dask")
    distributed = optional("distributed", USE, "dask")
    try:
        client = distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "Dask collections are fitted on a cluster, and there is no client: "
            "dask.distributed.Client() starts one on this machine"
        ) from error
    if hasattr(X, "to_dask_array"):  # a data frame
        X = X.to_dask_array(lengths=True)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got a Dask array of {X.ndim} dimensions")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    persisted = client.persist(X)
    keys = {future.key: future for future in distributed.futures_of(persisted)}
    blocks = [keys[key] for row in X.__dask_keys__() for key in row]
    facts = _gathered(client, client.map(facts_of, blocks, most=most, pure=False))
    live = [k for k, each in enumerate(facts) if each.rows > 0]
    if not live:
        raise ValueError("X has no rows")
    _check(facts, most)
    # a second key for what is the same memory would count twice, and have the workers spill
    ready = [
        blocks[k] if facts[k].ready else client.submit(_prepared, blocks[k], pure=False)
        for k in live
    ]
    facts = [facts[k] for k in live]
    return DaskDesign(Placement(client, ready, [each.nbytes for each in facts]), facts)


def gathered(values: ArrayLike, name: str, count: int) -> Values:
    """A Dask array or series, or an array in memory, with one entry a row, in memory."""
    column = column_of(values.compute() if hasattr(values, "compute") else values, name, count)
    return _plain(column, name) if column.dtype == object else column


def _plain(column: Values, name: str) -> Values:
    """A column of Python objects as strings or numbers; raises ValueError for a missing entry."""
    entries = column.tolist()
    for row, each in enumerate(entries):
        if is_missing(each):
            raise ValueError(
                f"{name} has no {'label' if name == 'y' else 'entry'} in row {row} (counted from "
                "0): leave such rows out, or fill them"
            )
    are_text = {isinstance(each, str) for each in entries}
    if len(are_text) > 1:
        raise ValueError(f"{name} holds text and numbers, and must hold entries of one kind")
    return column.astype(str) if are_text == {True} else np.array(entries)


# -- tasks on the workers


def facts_of(X: Any, most: float) -> BlockFacts:
    """`BlockFacts` of a block."""
    given, X = X, _prepared(X)
    is_sparse: bool = sparse.issparse(X)
    nbytes, stored = (12 * X.nnz, X.nnz) if is_sparse else (X.nbytes, -1)
    rows, features = X.shape
    return BlockFacts(rows, features, nbytes, stored, X is given, bad_entry(X, most))


def _prepared(X: Any) -> Any:
    """The block as the designs take it: float32 or float64, in C order, or canonical CSR."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        return canonical(X.tocsr())
    X = np.asarray(X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X holds {X.dtype}, and must hold numbers")
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)


@dataclass(frozen=True, eq=False)
class BlockRequest:
    """What a pass asks of the blocks of a thread; not a tuple, which Dask would look into."""

    task: Task
    combine: Combine
    shared: Arrays
    cuts: list[Arrays]  # the rows of each block
    numbers: list[int]  # of the blocks

    def __sizeof__(self) -> int:
        """Bytes of the arrays, which Dask asks for."""
        from dask.sizeof import sizeof

        return int(sizeof(list(self.shared)) + sizeof(self.cuts))


def _answer(blocks: Sequence[object], asked: BlockRequest, anchor: object) -> Reply:
    """A pass over the blocks of a thread, in their order."""
    joined: list[Arrays] = []
    nodes: list[Node] = []
    for X, cut, number in zip(blocks, asked.cuts, asked.numbers, strict=True):
        rows, small = asked.task(as_design(X), asked.shared, cut)
        joined.append(rows)
        nodes = merged(asked.combine, [*nodes, Node(number, 1, small)])
    return tuple(np.concatenate(each) for each in zip(*joined, strict=True)), nodes


def _picked(blocks: Sequence[Any], asked: Any, anchor: object) -> Reply:
    return tuple(X[index] for X, index in zip(blocks, asked, strict=True)), []


# -- on the client


def _gathered(client: Client, futures: object) -> Any:
    """The results; a cluster that can no longer compute them has lost the data."""
    try:
        return client.gather(futures)
    except Exception as error:
        if library_of(error) == "distributed":
            raise DataLostError(f"the cluster cannot compute blocks any longer: {error}") from error
        raise


def _check(facts: Sequence[BlockFacts], most: float) -> None:
    widths = {each.features for each in facts}
    if len(widths) > 1:
        raise ValueError(f"blocks of X have different numbers of columns: {sorted(widths)}")
    if widths == {0}:
        raise ValueError("X has no features")
    first = 0
    for number, each in enumerate(facts):
        if each.bad is not None:
            bad = each.bad._replace(row=first + each.bad.row)
            raise ValueError(sentence(bad, most, place=f"block {number}"))
        first += each.rows
