"""Passes that several fits to the same blocks of rows share: each block is read once for all.

Every fit has a thread, and sees the blocks through a view of its own. A view hands each request to
the `SharedPasses` and waits; once every thread waits, one pass answers all of their requests. Each
is computed by the task that would compute it alone, so that answers have the same bits as in a fit
alone, whichever thread is ready first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from threading import Condition, local
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from proxmargin.compiled.clock import compiling
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.blocks import tasks
from proxmargin.data.designs.blocks.base import BlockedDesign, ColumnsOfBlocks
from proxmargin.data.designs.blocks.tasks import AllOf, Arrays, Combine, CombinedAll, Task, apart
from proxmargin.data.designs.views import RowView, StandardizedDesign
from proxmargin.runtime.memory import copied
from proxmargin.runtime.types import Array, Index

T = TypeVar("T")


def each_in_common(
    work: Callable[[int, BlockedDesign], T],
    blocks: BlockedDesign,
    count: int,
    threads: int,
    begin: Callable[[], None] = lambda: None,
) -> list[T]:
    """``work(k, view of the blocks)`` for every k below ``count``, on threads that share passes,
    each of which calls ``begin`` first. Raises what the first work that fails raises; the others
    end at their next request."""
    passes = SharedPasses(blocks, threads)
    places, found = deque(range(count)), {}

    def next_works() -> None:
        with passes.participant():
            begin()
            while places:
                try:
                    place = places.popleft()
                except IndexError:  # another thread was faster
                    return
                found[place] = work(place, SharedBlocks(blocks, passes, place))

    with ThreadPoolExecutor(threads, thread_name_prefix="proxmargin-class") as pool:
        try:
            for future in [pool.submit(next_works) for _ in range(threads)]:
                future.result()
        except BaseException as error:  # in this thread: a second Ctrl-C
            passes.abandon(error)
    if passes.failure is not None:
        raise passes.failure
    return [found[place] for place in range(count)]


def blocks_under(design: Design) -> BlockedDesign | None:
    """The blocks of rows that a design reads; None if it reads other data."""
    if isinstance(design, StandardizedDesign | ColumnsOfBlocks):
        return blocks_under(design.base)
    if isinstance(design, RowView):
        return blocks_under(design.whole)
    return design if isinstance(design, BlockedDesign) else None


def over(design: Design, blocks: BlockedDesign) -> Design:
    """The same design with other blocks of the same rows under it."""
    if isinstance(design, StandardizedDesign):
        return StandardizedDesign(over(design.base, blocks), design.centre, design.scale)
    if isinstance(design, ColumnsOfBlocks):
        return over(design.base, blocks).columns(design.index)
    if isinstance(design, RowView):
        return RowView(over(design.whole, blocks), design.index)
    return blocks


@dataclass(eq=False)
class Request:
    """What a thread waits for: what a method of the blocks returns."""

    place: int  # number of the fit
    method: str  # "run", for a pass; or a method whose last answer is kept for all
    arguments: Arrays  # tuple
    answer: object = None
    share: float = 0.0  # passes to charge
    error: BaseException | None = None  # BaseException, optional; raised instead of an answer
    # most seconds for which a thread has compiled since the last requests were answered
    compiled: float = 0.0
    is_answered: bool = False


Groups = Sequence[Sequence[Request]]
"""Requests; those of a group are equal."""


class AbandonedError(BaseException):
    """Ends a thread whose result is no longer wanted; nothing is to be certified first."""


class SharedPasses:
    """Where threads wait for a pass that answers all of them. A thread that waits last runs the
    pass. Time in which one thread compiles kernels, and the others wait for it, counts for none of
    their limits (`proxmargin.compiled.clock`)."""

    def __init__(self, blocks: BlockedDesign, threads: int) -> None:
        self.blocks = blocks
        self.failure: BaseException | None = None
        self._threads = threads
        self._changed = Condition()
        self._waiting: list[Request] = []
        self._known: dict[str, tuple[Arrays, Any]] = {}
        self._own = local()
        self._compiled = 0.0  # most seconds of a thread since requests were answered

    @contextmanager
    def participant(self) -> Iterator[None]:
        """The block in which a thread takes part; an error in it ends all others."""
        self._own.compiled = compiling.seconds
        try:
            yield
        except AbandonedError:
            pass
        except BaseException as error:
            self.abandon(error)
        finally:
            with self._changed:
                self._threads -= 1
                self._note_compiling()
                self._changed.notify_all()

    def abandon(self, error: BaseException) -> None:
        """End all threads at their next request; the first ``error`` becomes `failure`."""
        with self._changed:
            self.failure = self.failure or error
            self._changed.notify_all()

    def recalled(self, method: str, arguments: Arrays) -> Any:
        """The last answer to this request, or None."""
        known, answer = self._known.get(method, ((), None))
        return answer if answer is not None and same(known, arguments) else None

    def answered(self, request: Request) -> Request:
        """Wait until the request is answered; the thread that waits last sees to it."""
        begun, batch = perf_counter(), []
        with self._changed:
            self._note_compiling()
            self._waiting.append(request)
            self._changed.wait_for(
                lambda: request.is_answered or len(self._waiting) == self._threads or self.failure
            )
            if self.failure is not None:
                raise AbandonedError
            if not request.is_answered:
                batch, self._waiting = sorted(self._waiting, key=lambda r: r.place), []
        waited = perf_counter() - begun
        if batch:
            self._answer(batch)
            with self._changed:
                self._note_compiling()
                for each in batch:
                    each.compiled, each.is_answered = self._compiled, True
                self._compiled = 0.0
                self._changed.notify_all()
        self._forgive(min(request.compiled, waited))
        return request

    def _answer(self, batch: Sequence[Request]) -> None:
        """Answer requests, of which equal ones are answered once, in the order of the fits."""
        groups: list[list[Request]] = []
        for each in batch:
            asked = each.method, each.arguments
            alike = next((g for g in groups if same((g[0].method, g[0].arguments), asked)), None)
            if alike is None:
                groups.append([each])
            else:
                alike.append(each)
        for group in groups:
            if group[0].method != "run":
                self._charged([group], self._answer_once)
        passing = [group for group in groups if group[0].method == "run"]
        if passing:
            self._charged(passing, self._answer_by_pass)

    def _charged(self, groups: Groups, answer: Callable[[Groups], None]) -> None:
        """Answer requests, each of which bears an equal share of the passes; or fail them all."""
        before, error = self.blocks.counter.passes, None
        try:
            answer(groups)
        except BaseException as raised:
            error = raised
        requests = [each for group in groups for each in group]
        share = (self.blocks.counter.passes - before) / len(requests)
        for each in requests:
            each.error, each.share = error, share

    def _answer_once(self, groups: Groups) -> None:
        first = groups[0][0]
        answer = getattr(self.blocks, first.method)(*first.arguments)
        self._known[first.method] = first.arguments, answer
        for each in groups[0]:
            each.answer = answer

    def _answer_by_pass(self, groups: Groups) -> None:
        for group, answer in zip(groups, self._pass([g[0].arguments for g in groups]), strict=True):
            group[0].answer = answer
            for each in group[1:]:  # callers may write into their answers
                each.answer = tuple(tuple(map(copied, part)) for part in answer)

    def _pass(self, asked: Sequence[Arrays]) -> list[tuple[Arrays, Arrays]]:
        """The answers of one pass to arguments of `BlockedDesign.run`."""
        if len(asked) == 1:
            return [self.blocks.run(*asked[0])]
        each_task, each_shared, each_cut, each_combine = zip(*asked, strict=True)
        task = AllOf(each_task, tuple(map(len, each_shared)), tuple(map(len, each_cut)))
        shared, cut = (tuple(chain.from_iterable(each)) for each in (each_shared, each_cut))
        return apart(self.blocks.run(task, shared, cut, CombinedAll(each_combine)))

    # -- clocks

    def _note_compiling(self) -> None:
        """Note how long this thread has compiled since requests were answered."""
        self._compiled = max(self._compiled, compiling.seconds - self._own.compiled)

    def _forgive(self, compiled: float) -> None:
        """Set back the clock of this thread by the time for which it has waited while another one
        compiled, unless it has compiled for as long itself."""
        own = compiling.seconds - self._own.compiled
        compiling.seconds += max(compiled - own, 0.0)
        self._own.compiled = compiling.seconds


class SharedBlocks(BlockedDesign):
    """Blocks of rows as fit number ``place`` sees them, which reads them together with others. It
    has its own memory of the last `sweep`, and its own count of passes: of a pass that answers
    several fits each bears an equal share, so that the counts of all add up to the readings."""

    def __init__(self, base: BlockedDesign, passes: SharedPasses, place: int) -> None:
        facts = base.nbytes, base.density, base.n_blocks, base.largest_block
        super().__init__(base.n_samples, base.n_features, *facts)
        self._passes, self._place = passes, place

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        answer: tuple[Arrays, Arrays] = self._answer("run", task, shared, cut, combine)
        return answer

    def _answer(self, method: str, *arguments: object) -> Any:
        request = self._passes.answered(Request(self._place, method, arguments))
        self.counter.add(request.share)
        if request.error is not None:
            raise request.error
        return request.answer

    def _known_once(self, method: str, *arguments: object) -> Any:
        known = self._passes.recalled(method, arguments)
        return self._answer(method, *arguments) if known is None else known

    def largest(self) -> Array:
        found: Array = self._known_once("column_bounds")
        return found

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self._known_once("mean_and_variance", weights)
        return found

    def _rows(self, index: Index) -> Design:
        found: Design = self._known_once("rows", index)
        return found.twin()

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        found: Array = self._known_once("_outer_gram", weights, centre)
        return found.copy()


def same(first: Any, second: Any) -> bool:
    """Whether two parts of requests are certainly equal, arrays in every entry."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, tasks.OnColumns | tasks.Method):
        return all(same(getattr(first, f.name), getattr(second, f.name)) for f in fields(first))
    if isinstance(first, partial):
        return same((first.func, first.args), (second.func, second.args)) and not first.keywords
    return isinstance(first, int | float | str) and first == second
