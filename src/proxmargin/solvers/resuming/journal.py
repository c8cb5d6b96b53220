"""The journal of a fit: its finished minimisations, and the state of the current one.

A fit is a sequence of minimisations: for the classes, for increasing prices of a budget, for
increasingly accurate factors of a kernel. Each depends only on the data, the parameters and the
earlier ones. A fit that takes the finished ones from a checkpoint and resumes the current one
therefore ends with the result of an uninterrupted fit.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.optimality.problem import Problem
from proxmargin.solvers.callbacks.checkpoint import Checkpoint, CheckpointContent
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.outcome import Solution, Status
from proxmargin.solvers.loop.report import Report
from proxmargin.solvers.loop.solver import Solver
from proxmargin.solvers.loop.stopping import Stop
from proxmargin.solvers.resuming.codec import EncodingError, StateCodec
from proxmargin.solvers.resuming.identity import Identity

Callback = Callable[[Report], object]

# statuses of runs that can be continued
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT, Status.WORK_LIMIT)


@dataclasses.dataclass(frozen=True, eq=False)
class JournalEntry:
    title: list[Any]  # solver, samples, features and outputs, to recognise it by
    limit: int | None  # its iteration limit
    solution: Solution  # without the state and the violations
    work: float  # of the fit until then (`proxmargin.solvers.loop.stopping.Effort`)


class Journal:
    """Takes finished minimisations from a checkpoint, and records new ones. ``checkpoints``: where
    to write. ``source``: path-like, the checkpoint file to resume from."""

    def __init__(
        self, checkpoints: Sequence[Checkpoint] = (), source: str | os.PathLike[str] | None = None
    ) -> None:
        self._checkpoints, self._source = checkpoints, source
        self._stored = None if source is None else CheckpointContent.read(source)
        self._identity: Identity | None = None
        # whether minimisations are recorded, which have to follow each other then
        self.records = False
        self._entries: dict[int, JournalEntry] = {}
        self._begun = 0
        self._going: tuple[int, list[Any], int | None] = (0, [], None)
        self._noted: tuple[int, list[Any], int | None, Report] | None = None
        self._over = False

    def begin(self, identity: Callable[[], Identity]) -> None:
        """Set the identity of the fit, before its first minimisation. Raises ValueError: the
        checkpoint belongs to another fit."""
        if not self._checkpoints and self._stored is None:
            return
        self._identity, self.records = identity(), True
        if self._stored is None:
            return
        self._refuse_unless(self._stored.fit is not None, "it was not written by a fit")
        earlier = self._read(self._stored.fit["identity"], Stop())
        objection = self._identity.objection(earlier)
        self._refuse_unless(objection is None, objection)
        self._entries = dict(self._read(self._stored.fit["entries"], Stop()))

    def recording(self, callbacks: Sequence[Callback]) -> list[Callback]:
        """The callbacks, with the journal's own in place of checkpoints."""
        if not self.records:
            return list(callbacks)
        return [partial(self._note, c) if isinstance(c, Checkpoint) else c for c in callbacks]

    def minimize(self, problem: Problem, solver: Solver[Any], **options: Any) -> Solution:
        """`proxmargin.solvers.loop.minimize.minimize`, or its recorded result."""
        if not self.records:
            return minimize(problem, solver, **options)
        number, stop = self._begun, options["stop"]
        self._begun += 1
        design, known = problem.design, self._entries.get(number)
        title = [solver.name, design.n_samples, design.n_features, problem.loss.n_outputs]
        if known is not None:
            self._recognise(known.title, title)
            stop.effort.taken = known.work
            if known.solution.status is not Status.ITERATION_LIMIT or known.limit == stop.max_iter:
                return known.solution
            options["start"] = known.solution.point
        options.update(self._resumption(number, title))
        self._going = number, title, stop.max_iter
        solution = minimize(problem, solver, **options)
        self._over |= solution.status in CUT_SHORT
        if self._checkpoints and not self._over:
            # later minimisations use neither the state nor the violations
            gap = dataclasses.replace(solution.gap, violations=np.zeros(0))
            kept = dataclasses.replace(solution, gap=gap, state=None)
            self._entries[number] = JournalEntry(title, stop.max_iter, kept, stop.effort.taken)
        return solution

    def finish(self) -> None:
        """Write the last report, however the fit ended."""
        for checkpoint in self._checkpoints:
            self._write(checkpoint)

    def _resumption(self, number: int, title: list[Any]) -> dict[str, Any]:
        """Options that resume the minimisation in the checkpoint; none for other minimisations."""
        fit = None if self._stored is None else self._stored.fit
        if fit is None or fit["number"] != number:
            return {}
        self._recognise(fit["title"], title)
        if fit["run"] is not None:
            try:
                self._read(fit["run"], Stop())
            except ValueError as error:  # of a solver whose state was another one
                message = f"{error}: the fit starts at the last point of the checkpoint"
                warnings.warn(message, UserWarning, stacklevel=2)
            else:
                return {"resume": partial(self._read, fit["run"])}
        return {"start": self._read(fit["point"], Stop())}

    def _note(self, checkpoint: Checkpoint, report: Report) -> None:
        """The callback that replaces a checkpoint: records the report, writes if due."""
        if report.inner or report.state.interrupted or self._over:
            return  # an interrupted step gives a state that an uninterrupted fit would not reach
        self._noted = (*self._going, report)
        if checkpoint.is_due():
            self._write(checkpoint)

    def _write(self, checkpoint: Checkpoint) -> None:
        if self._noted is None:
            return
        number, title, limit, report = self._noted
        arrays: dict[str, NDArray[Any]] = {}
        codec = StateCodec(arrays)
        try:
            run = codec.encode(report.run_checkpoint)
        except EncodingError:
            run = None  # a file cannot hold the state
        fit = {
            "identity": codec.encode(self._identity),
            "entries": codec.encode(list(self._entries.items())),
            "number": number,
            "title": title,
            "limit": limit,
            "point": codec.encode(report.gap.point),
            "run": run,
        }
        checkpoint.write(dataclasses.replace(CheckpointContent.of(report), fit=fit, arrays=arrays))

    def _read(self, plain: Any, stop: Stop) -> Any:
        assert self._stored is not None
        try:
            limit = (self._stored.fit or {}).get("limit")
            return StateCodec(dict(self._stored.arrays), stop, limit).decode(plain)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"cannot resume from {self._source}: it holds a state that this version cannot "
                f"read ({error})"
            ) from error

    def _recognise(self, title: list[Any], now: list[Any]) -> None:
        one, other = (
            f"{name!r} with (samples, features, outputs) = {(*shape,)}"
            for name, *shape in (title, now)
        )
        self._refuse_unless(title == now, f"it is of a run of {one}, and this is one of {other}")

    def _refuse_unless(self, holds: bool, objection: str | None) -> None:
        if not holds:
            raise ValueError(f"cannot resume from {os.fspath(self._source or '')}: {objection}")


UNRECORDED = Journal()


def journal_of(
    callbacks: Any, source: str | os.PathLike[str] | None
) -> AbstractContextManager[Journal]:
    """The journal of a fit with these callbacks, written when the fit ends. Raises OSError: the
    file does not exist. Raises ValueError: the file is no checkpoint, or ``source`` no path."""
    if not (source is None or isinstance(source, str | os.PathLike)):
        raise ValueError(f"resume_from must be the path of a checkpoint or None, got {source!r}")
    listed = callbacks if isinstance(callbacks, list | tuple) else ()
    if source is None and not listed:
        return nullcontext(UNRECORDED)
    return _written([each for each in listed if isinstance(each, Checkpoint)], source)


@contextmanager
def _written(
    checkpoints: Sequence[Checkpoint], source: str | os.PathLike[str] | None
) -> Iterator[Journal]:
    journal = Journal(checkpoints, source)
    try:
        yield journal
    finally:
        journal.finish()
