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
from threading import Condition, local
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from proxmargin.compiled.clock import compiling
from proxmargin.designs.base import Array, Design, Index
from proxmargin.designs.blocks import tasks
from proxmargin.designs.blocks.base import BlockedDesign, ColumnsOfBlocks
from proxmargin.designs.blocks.tasks import AllOf, Arrays, Combine, CombinedAll, Task, apart
from proxmargin.designs.row_view import RowView
from proxmargin.designs.standardized import StandardizedDesign
from proxmargin.runtime.memory import copied

__all__ = ["SharedBlocks", "blocks_under", "each_in_common", "over"]

T = TypeVar("T")


def each_in_common(
    work: Callable[[int, BlockedDesign], T],
    blocks: BlockedDesign,
    count: int,
    threads: int,
    begin: Callable[[], None] = lambda: None,
) -> list[T]:
    """``work(k, view of the blocks)`` for every k below ``count``, on threads that share passes.

    Parameters
    ----------
    begin : callable
        Called in each thread before its first work.

    Raises
    ------
    Exception
        That of the first work that fails. The others end at their next request.
    """
    meeting = SharedPasses(blocks, threads)
    places, found = deque(range(count)), {}

    def next_works() -> None:
        with meeting.participant():
            begin()
            while places:
                try:
                    place = places.popleft()
                except IndexError:  # another thread was faster
                    return
                found[place] = work(place, SharedBlocks(blocks, meeting, place))

    with ThreadPoolExecutor(threads, thread_name_prefix="proxmargin-class") as pool:
        try:
            for future in [pool.submit(next_works) for _ in range(threads)]:
                future.result()
        except BaseException as error:  # in this thread: a second Ctrl-C
            meeting.abandon(error)
    if meeting.failure is not None:
        raise meeting.failure
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


@dataclass(frozen=True, eq=False)
class Reading:
    """A request for a pass: the arguments of `BlockedDesign.run`."""

    task: Task
    shared: Arrays
    cut: Arrays
    combine: Combine


@dataclass(frozen=True, eq=False)
class Question:
    """A request for what the blocks know or read once for all: a method of theirs."""

    method: str
    arguments: Arrays


@dataclass(eq=False)
class _Request:
    """What a thread waits for.

    Attributes
    ----------
    place : int
        Number of the fit.
    asked : Reading or Question
    answer : Any
    share : float
        Passes to charge.
    error : BaseException, optional
        Raised instead of an answer.
    compiled : float
        Most seconds for which a thread has compiled since the last requests were settled.
    is_settled : bool
    """

    place: int
    asked: Reading | Question
    answer: Any = None
    share: float = 0.0
    error: BaseException | None = None
    compiled: float = 0.0
    is_settled: bool = False


class AbandonedError(BaseException):
    """Ends a thread whose result is no longer wanted; nothing is to be certified first."""


class SharedPasses:
    """Where threads wait for a pass that answers all of them.

    A thread that waits last runs the pass. Time in which one thread compiles kernels, and the
    others wait for it, counts for none of their limits (`proxmargin.compiled.clock`).

    Parameters
    ----------
    blocks : BlockedDesign
    seats : int
        Threads that take part; each has one seat until it leaves.
    """

    def __init__(self, blocks: BlockedDesign, seats: int) -> None:
        self.blocks = blocks
        self.failure: BaseException | None = None
        self._seats = seats
        self._changed = Condition()
        self._waiting: list[_Request] = []
        self._known: dict[str, tuple[Arrays, Any]] = {}
        self._own = local()
        self._compiled = 0.0  # most seconds of a thread since requests were settled

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
                self._seats -= 1
                self._note_compiling()
                self._changed.notify_all()

    def abandon(self, error: BaseException) -> None:
        """End all threads at their next request; the first ``error`` becomes `failure`."""
        with self._changed:
            self.failure = self.failure or error
            self._changed.notify_all()

    def recalled(self, question: Question) -> Any:
        """The last answer to this question, or None."""
        arguments, answer = self._known.get(question.method, ((), None))
        return answer if answer is not None and same(arguments, question.arguments) else None

    def answered(self, request: _Request) -> _Request:
        """Wait until the request is settled; the thread that waits last sees to it."""
        begun, batch = perf_counter(), []
        with self._changed:
            self._note_compiling()
            self._waiting.append(request)
            self._changed.wait_for(lambda: request.is_settled or self._all_wait or self.failure)
            if self.failure is not None:
                raise AbandonedError
            if not request.is_settled:
                batch, self._waiting = sorted(self._waiting, key=lambda r: r.place), []
        waited = perf_counter() - begun
        if batch:
            self._settle(batch)
            self._release(batch)
        self._forgive(min(request.compiled, waited))
        return request

    def _release(self, batch: Sequence[_Request]) -> None:
        with self._changed:
            self._note_compiling()
            for each in batch:
                each.compiled, each.is_settled = self._compiled, True
            self._compiled = 0.0
            self._changed.notify_all()

    @property
    def _all_wait(self) -> bool:
        return 0 < len(self._waiting) == self._seats

    # -- answers

    def _settle(self, batch: Sequence[_Request]) -> None:
        """Answer requests, of which equal ones are answered once, in the order of the fits."""
        groups: list[list[_Request]] = []
        for each in batch:
            alike = next((group for group in groups if same(group[0].asked, each.asked)), None)
            if alike is None:
                groups.append([each])
            else:
                alike.append(each)
        for group in groups:
            if isinstance(group[0].asked, Question):
                self._charged(group, partial(self._replied, group, group[0].asked))
        reading = [group for group in groups if isinstance(group[0].asked, Reading)]
        if reading:
            self._charged(
                [each for group in reading for each in group], partial(self._read, reading)
            )

    def _charged(self, requests: Sequence[_Request], reply: Callable[[], None]) -> None:
        """Answer requests, each of which bears an equal share of the passes; or fail them all."""
        before = self.blocks.counter.passes
        try:
            reply()
        except BaseException as error:
            for each in requests:
                each.error = error
        share = (self.blocks.counter.passes - before) / len(requests)
        for each in requests:
            each.share = share

    def _replied(self, group: Sequence[_Request], question: Question) -> None:
        answer = getattr(self.blocks, question.method)(*question.arguments)
        self._known[question.method] = question.arguments, answer
        for each in group:
            each.answer = answer

    def _read(self, groups: Sequence[Sequence[_Request]]) -> None:
        readings: list[Any] = [group[0].asked for group in groups]
        for group, answer in zip(groups, self._pass(readings), strict=True):
            group[0].answer = answer
            for each in group[1:]:  # callers may write into their answers
                each.answer = tuple(tuple(map(copied, part)) for part in answer)

    def _pass(self, readings: Sequence[Reading]) -> list[tuple[Arrays, Arrays]]:
        """The answers of one pass."""
        if len(readings) == 1:
            (one,) = readings
            return [self.blocks.run(one.task, one.shared, one.cut, one.combine)]
        task = AllOf(
            tuple(each.task for each in readings),
            tuple(len(each.shared) for each in readings),
            tuple(len(each.cut) for each in readings),
        )
        shared = tuple(part for each in readings for part in each.shared)
        cut = tuple(part for each in readings for part in each.cut)
        combine = CombinedAll(tuple(each.combine for each in readings))
        return apart(self.blocks.run(task, shared, cut, combine))

    # -- clocks

    def _note_compiling(self) -> None:
        """Note how long this thread has compiled since requests were settled."""
        self._compiled = max(self._compiled, compiling.seconds - self._own.compiled)

    def _forgive(self, compiled: float) -> None:
        """Set back the clock of this thread by the time for which it has waited while another one
        compiled, unless it has compiled for as long itself."""
        own = compiling.seconds - self._own.compiled
        compiling.seconds += max(compiled - own, 0.0)
        self._own.compiled = compiling.seconds


class SharedBlocks(BlockedDesign):
    """Blocks of rows as one of several fits sees them, which read them together.

    It has its own memory of the last `sweep`, and its own count of passes: of a pass that answers
    several fits each bears an equal share, so that the counts of all add up to the readings.

    Parameters
    ----------
    base : BlockedDesign
    meeting : SharedPasses
    place : int
        Number of the fit: requests are answered in this order.
    """

    def __init__(self, base: BlockedDesign, meeting: SharedPasses, place: int) -> None:
        super().__init__(base.n_samples, base.n_features)
        self._base, self._meeting, self._place = base, meeting, place

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        answer: tuple[Arrays, Arrays] = self._answer(Reading(task, shared, cut, combine))
        return answer

    def _answer(self, asked: Reading | Question) -> Any:
        request = self._meeting.answered(_Request(self._place, asked))
        self.counter.add(request.share)
        if request.error is not None:
            raise request.error
        return request.answer

    def _asked(self, method: str, *arguments: Any) -> Any:
        question = Question(method, arguments)
        known = self._meeting.recalled(question)
        return self._answer(question) if known is None else known

    def largest(self) -> Array:
        found: Array = self._asked("column_bounds")
        return found

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self._asked("mean_and_variance", weights)
        return found

    def _rows(self, index: Index) -> Design:
        found: Design = self._asked("rows", index)
        return found.twin()

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        found: Array = self._asked("_outer_gram", weights, centre)
        return found.copy()

    @property
    def n_blocks(self) -> int:
        return self._base.n_blocks

    @property
    def largest_block(self) -> int:
        return self._base.largest_block

    @property
    def nbytes(self) -> int:
        return self._base.nbytes

    @property
    def density(self) -> float:
        return self._base.density


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
    if isinstance(first, Reading | Question | tasks.OnColumns):
        return all(same(getattr(first, f.name), getattr(second, f.name)) for f in fields(first))
    if isinstance(first, partial):
        return same((first.func, first.args), (second.func, second.args)) and not first.keywords
    return isinstance(first, int | float | str) and first == second
