"""Which worker of a Dask cluster has which blocks, and what is asked of each worker."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from proxmargin.data.datasets.dataset import DataLostError
from proxmargin.data.designs.blocks.tasks import Arrays, Combine
from proxmargin.runtime.optional import library_of

FAN_IN = 8  # answers that are combined at a time, by a worker or by the client
INLINE = 1 << 17  # bytes of arguments that travel with a task, through the scheduler
ATTEMPTS = 8  # passes in which a worker is lost, one after the other, before data count as lost
SEND_SECONDS = 10.0  # after which a worker that accepts no data counts as lost
SETTLING_SECONDS = 0.1  # until the scheduler is asked again where blocks are

Client = Any
"""A `dask.distributed.Client`."""

Asked = Callable[[Sequence[int]], Any]
"""``asked(numbers)``: what a task gets besides the blocks of these numbers."""


class Node(NamedTuple):
    """The combined answer of ``size`` blocks from number ``first`` on. Sizes are powers of two that
    divide ``first``: which answers are combined with which is fixed by the numbers of the blocks,
    so that sums have the same bits wherever the blocks are."""

    first: int
    size: int
    small: Arrays


Reply = tuple[Arrays, list[Node]]
"""Of a group: its arrays by rows, and its other answers."""


class Group(NamedTuple):
    """Blocks that one thread of a worker answers for."""

    worker: str  # its address
    numbers: tuple[int, ...]
    # future; an object on that worker that cannot be computed elsewhere: tasks that depend on it
    # are cancelled when the worker is lost, instead of collecting its blocks on another one
    anchor: object


class Placement:
    """Blocks (futures, with their bytes) where Dask has computed them, in groups: one for each
    thread of their workers.

    A pass is a task a group, so that its cost does not grow with the number of blocks. Arguments of
    any size are sent to the workers without a stop at the scheduler, and answers fetched from them
    in the same way, if the client can reach the workers. Where a worker is lost, Dask computes its
    blocks again, they are grouped as they come to lie, and the pass is repeated.
    """

    def __init__(self, client: Client, blocks: Sequence[Any], sizes: Sequence[int]) -> None:
        self._client, self._blocks, self._sizes = client, list(blocks), list(sizes)
        self._direct = client.direct_to_workers is not False
        self._groups: list[Group] = []

    @property
    def groups(self) -> list[Group]:
        """Where the blocks are, by workers."""
        if not self._groups:
            self._groups = self._found()
        return self._groups

    def answers(
        self, function: Callable[..., Reply], asked: Asked, combine: Combine
    ) -> tuple[list[tuple[Group, Arrays]], Arrays]:
        """``function(blocks, asked, anchor)`` of all groups: the arrays by rows, and the rest
        combined. Raises DataLostError: the cluster cannot compute the blocks any longer."""
        for _ in range(ATTEMPTS):
            try:
                groups = self.groups
                tasks = self._submitted(groups, function, asked)
                return self._collected(groups, tasks, combine)
            except Exception as error:
                if not _is_loss(error):
                    raise
                lost = error
                self._groups = []  # to be looked for again
                time.sleep(SETTLING_SECONDS)
        raise DataLostError(f"the cluster cannot compute blocks any longer: {lost}") from lost

    def _submitted(
        self, groups: list[Group], function: Callable[..., Reply], asked: Asked
    ) -> list[object]:
        blocks = [[self._blocks[k] for k in group.numbers] for group in groups]
        arguments = self._sent(groups, [asked(group.numbers) for group in groups])
        anchors = [group.anchor for group in groups]
        tasks: list[object] = self._client.map(function, blocks, arguments, anchors, pure=False)
        return tasks

    def _collected(
        self, groups: list[Group], answers: list[object], combine: Combine
    ) -> tuple[list[tuple[Group, Arrays]], Arrays]:
        client = self._client
        if len(groups) <= FAN_IN:
            found = client.gather(answers, direct=self._direct)
            nodes = _joined(combine, [each for _, each in found])
            rows = [each for each, _ in found]
            return list(zip(groups, rows, strict=True)), _total(combine, nodes)
        rows = client.map(_of_rows, answers, pure=False)
        parts = client.map(_of_all, answers, pure=False)
        while len(parts) > 1:
            some = [parts[k : k + FAN_IN] for k in range(0, len(parts), FAN_IN)]
            parts = client.map(_joined, [combine] * len(some), some, pure=False)
        rows, nodes = client.gather([rows, parts[0]], direct=self._direct)
        return list(zip(groups, rows, strict=True)), _total(combine, nodes)

    def _sent(self, groups: list[Group], arguments: list[object]) -> list[object]:
        """The arguments, or futures of them on the workers of their groups."""
        from dask.sizeof import sizeof

        if not self._direct or max(map(sizeof, arguments)) <= INLINE:
            return arguments
        return _scattered(self._client, [group.worker for group in groups], arguments)

    def _found(self) -> list[Group]:
        """Groups of blocks of about the same size, in the order of their workers and numbers."""
        client = self._client
        held: dict[str, list[int]] = defaultdict(list)
        load: dict[str, float] = defaultdict(float)
        for number, homes in enumerate(self._homes()):
            home = min(homes, key=lambda each: (load[each], each))
            held[home].append(number)
            load[home] += self._sizes[number]
        threads = client.nthreads()
        shares = [
            (home, part)
            for home in sorted(held, key=lambda each: held[each][0])
            for part in _shares(held[home], self._sizes, threads.get(home, 1))
        ]
        anchors = self._anchored([home for home, _ in shares])
        return [
            Group(home, tuple(part), anchor)
            for (home, part), anchor in zip(shares, anchors, strict=True)
        ]

    def _homes(self) -> list[tuple[str, ...]]:
        """The workers that have each block, once all blocks are computed."""
        import distributed

        wait: Any = distributed.wait
        while True:
            wait(self._blocks)
            known = self._client.who_has(self._blocks)
            homes = [tuple(known.get(each.key, ())) for each in self._blocks]
            if all(homes):
                return homes
            time.sleep(SETTLING_SECONDS)  # a loss that the client has not been told of yet

    def _anchored(self, workers: list[str]) -> list[Any]:
        """Anchors on these workers, by the scheduler if the client cannot reach them."""
        if self._direct:
            try:
                return _scattered(self._client, workers, workers)
            except (OSError, TimeoutError):
                if set(workers) <= set(self._client.nthreads()):  # they are there, out of reach
                    self._direct = False
                else:
                    raise
        return [self._client.scatter([each], workers=[each], hash=False)[0] for each in workers]


def _scattered(client: Client, workers: list[str], values: list[Any]) -> list[Any]:
    """Futures of the values on these workers, sent to all of them at the same time."""

    async def send() -> list[Any]:
        sent = [
            client.scatter(
                [value],
                workers=[worker],
                direct=True,
                hash=False,
                timeout=SEND_SECONDS,
                asynchronous=True,
            )
            for worker, value in zip(workers, values, strict=True)
        ]
        return [each for (each,) in await asyncio.gather(*sent)]

    found: list[Any] = client.sync(send)
    return found


def _shares(numbers: list[int], sizes: Sequence[int], count: int) -> list[list[int]]:
    """The numbers in their order, in at most ``count`` parts of about the same size."""
    total, seen = sum(sizes[k] for k in numbers), 0.0
    parts: dict[int, list[int]] = defaultdict(list)
    for k in numbers:
        middle = seen + 0.5 * sizes[k]
        parts[min(count - 1, int(count * middle / max(total, 1)))].append(k)
        seen += sizes[k]
    return [parts[k] for k in sorted(parts)]


def _is_loss(error: BaseException) -> bool:
    """An error of the cluster, not of the task."""
    kinds = (OSError, TimeoutError, asyncio.TimeoutError)
    cancelled = type(error).__name__ in ("CancelledError", "FutureCancelledError")
    return library_of(error) == "distributed" or cancelled or isinstance(error, kinds)


def _total(combine: Combine, nodes: Sequence[Node]) -> Arrays:
    """All nodes combined in the order of the blocks."""
    return reduce(combine, [each.small for each in nodes]) if nodes else ()


# -- tasks on the workers


def merged(combine: Combine, nodes: Sequence[Node]) -> list[Node]:
    """The nodes in their order, neighbours that make a larger one combined."""
    found: list[Node] = []
    for node in sorted(nodes, key=lambda each: each.first):
        found.append(node)
        while len(found) > 1:
            left, right = found[-2:]
            meet = left.size == right.size and left.first + left.size == right.first
            if not meet or left.first % (2 * left.size):
                break
            found[-2:] = [Node(left.first, 2 * left.size, combine(left.small, right.small))]
    return found


def _of_rows(reply: Reply) -> Arrays:
    return reply[0]


def _of_all(reply: Reply) -> list[Node]:
    return reply[1]


def _joined(combine: Combine, parts: Sequence[list[Node]]) -> list[Node]:
    return merged(combine, [node for nodes in parts for node in nodes])
