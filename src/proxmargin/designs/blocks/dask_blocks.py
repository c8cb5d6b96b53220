"""Rows in blocks on the workers of a Dask cluster: blocks stay there, small arrays travel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.datasets.chunk import DataLostError
from proxmargin.designs.base import Design, Index
from proxmargin.designs.blocks import tasks
from proxmargin.designs.blocks.base import SizedBlocks, stacked
from proxmargin.designs.blocks.tasks import Answer, Arrays, Combine, Task
from proxmargin.designs.compressed import canonical
from proxmargin.designs.convert import as_design
from proxmargin.runtime.optional import optional

__all__ = ["BlockFacts", "Client", "DaskDesign", "gathered", "on_workers"]

USE = "fitting Dask collections"
MISSING = ("NAType", "NaTType")  # of pandas, which equal nothing or have no truth value
FAN_IN = 8  # answers that a task of the reduction combines


class Client(Protocol):
    """What is used of `dask.distributed.Client`."""

    def submit(self, function: Any, *arguments: Any, **options: Any) -> Any: ...

    def gather(self, futures: Any) -> Any: ...


class BlockFacts(tuple[Any, ...]):
    """Rows, features, bytes, stored entries (-1: dense) of a block, and the first entry that is no
    number of modest size (row, column, value), or None."""


class DaskDesign(SizedBlocks):
    """Blocks of rows that are futures of a client.

    A pass is a task for each block, which sends back its rows of vectors with an entry a sample,
    and a tree of tasks that add the small arrays, in the order of the blocks. Blocks are recomputed
    by Dask if their worker is lost.

    Parameters
    ----------
    client : Client
    blocks : futures of arrays or CSR matrices
    facts : what `facts_of` says of each
    """

    def __init__(self, client: Client, blocks: Sequence[Any], facts: Sequence[BlockFacts]) -> None:
        sizes = [int(each[0]) for each in facts]
        nnz = sum(int(each[3]) for each in facts) if facts[0][3] >= 0 else None
        super().__init__(sizes, int(facts[0][1]), nnz)
        self._client, self._futures = client, list(blocks)
        self._bytes = sum(int(each[2]) for each in facts)
        ends = np.cumsum([0, *sizes])
        self._parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def nbytes(self) -> int:
        return self._bytes

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        client, answers = self._client, []
        for block, part in zip(self._futures, self._parts, strict=True):
            mine = tuple(each[part] for each in cut)
            answers.append(client.submit(_answer, task, block, shared, mine, pure=False))
        rows = [client.submit(_of_rows, each, pure=False) for each in answers]
        small = [client.submit(_of_all, each, pure=False) for each in answers]
        while len(small) > 1:
            groups = [small[k : k + FAN_IN] for k in range(0, len(small), FAN_IN)]
            small = [client.submit(_combined, combine, each, pure=False) for each in groups]
        found, whole = _gathered(client, [rows, small[0]])
        self.ledger.charge(1.0)
        joined = tuple(np.concatenate(each) for each in zip(*found, strict=True))
        return joined, tuple(whole)

    def _rows(self, index: Index) -> Design:
        order, picked = np.unique(index), []
        for block, part in zip(self._futures, self._parts, strict=True):
            inside = order[(order >= part.start) & (order < part.stop)] - part.start
            picked.append(self._client.submit(_picked, block, inside, pure=False))
        parts = _gathered(self._client, picked)
        self.ledger.charge(1.0)
        return as_design(stacked(parts)[np.searchsorted(order, index)])


def on_workers(X: Any, most: float) -> DaskDesign:
    """The design of a Dask array or data frame, whose blocks are persisted on their workers.

    Raises
    ------
    ValueError
        No client; blocks that are not numbers, or an entry beyond ``most``, with its row.
    """
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
    blocks = distributed.futures_of(client.persist(X))
    keys = {future.key: future for future in blocks}
    ordered = [keys[key] for row in X.__dask_keys__() for key in row]
    prepared = [client.submit(_prepared, each, pure=False) for each in ordered]
    facts = _gathered(
        client, [client.submit(facts_of, each, most, pure=False) for each in prepared]
    )
    live = [k for k, each in enumerate(facts) if each[0] > 0]
    if not live:
        raise ValueError("X has no rows")
    _check(facts, most)
    return DaskDesign(client, [prepared[k] for k in live], [facts[k] for k in live])


def gathered(values: Any, name: str, count: int) -> NDArray[Any]:
    """A Dask array or series, or an array in memory, with one entry a row, in memory."""
    column = np.asarray(values.compute() if hasattr(values, "compute") else values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (count,):
        raise ValueError(f"{name} must hold one entry a row, ({count},) here, got {column.shape}")
    return _plain(column, name) if column.dtype == object else column


def _plain(column: NDArray[Any], name: str) -> NDArray[Any]:
    """A column of Python objects as strings or numbers; raises ValueError for a missing entry."""
    entries = column.tolist()
    for row, each in enumerate(entries):
        if each is None or type(each).__name__ in MISSING or each != each:
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
    is_sparse: bool = sparse.issparse(X)
    entries, stored = (X.data, X.nnz) if is_sparse else (X, -1)
    bad = None
    if entries.size and not max(-float(entries.min()), float(entries.max())) <= most:
        dense = X.toarray() if is_sparse else X
        row, column = np.argwhere(~(np.abs(dense) <= most))[0]
        bad = (int(row), int(column), float(dense[row, column]))
    nbytes = 12 * X.nnz if is_sparse else X.nbytes
    return BlockFacts((X.shape[0], X.shape[1], nbytes, stored, bad))


def _prepared(X: Any) -> Any:
    """The block as the designs take it: float32 or float64, in C order, or canonical CSR."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        return canonical(X.tocsr())
    X = np.asarray(X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X holds {X.dtype}, and must hold numbers")
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)


def _answer(task: Task, X: Any, shared: Arrays, cut: Arrays) -> Answer:
    return task(as_design(X), shared, cut)


def _of_rows(answer: Answer) -> Arrays:
    return answer[0]


def _of_all(answer: Answer) -> Arrays:
    return answer[1]


def _combined(combine: Combine, parts: Sequence[Arrays]) -> Arrays:
    total = parts[0]
    for each in parts[1:]:
        total = combine(total, each)
    return total


def _picked(X: Any, index: Index) -> Any:
    return X[index]


# -- on the client


def _gathered(client: Client, futures: Any) -> Any:
    """The results; a cluster that can no longer compute them has lost the data."""
    try:
        return client.gather(futures)
    except Exception as error:
        home = type(error).__module__.partition(".")[0]
        if home == "distributed":
            raise DataLostError(f"the cluster cannot compute blocks any longer: {error}") from error
        raise


def _check(facts: Sequence[BlockFacts], most: float) -> None:
    widths = {int(each[1]) for each in facts}
    if len(widths) > 1:
        raise ValueError(f"blocks of X have different numbers of columns: {sorted(widths)}")
    if widths == {0}:
        raise ValueError("X has no features")
    first = 0
    for number, (rows, _, _, _, bad) in enumerate(facts):
        if bad is not None:
            row, column, value = bad
            kind = "NaN" if np.isnan(value) else f"{value:g}, beyond {most:g}"
            raise ValueError(
                f"Input X contains {kind} in block {number}, row {first + row}, column {column} "
                "(counted from 0)"
            )
        first += rows
