"""The journal of a fit: its finished minimisations, and the state of the current one.

A fit is a sequence of minimisations: for the classes, for increasing prices of a budget, for
increasingly accurate factors of a kernel. Each depends only on the data, the parameters and the
earlier ones. A fit that takes the finished ones from a checkpoint and resumes the current one
therefore ends with the result of an uninterrupted fit.
"""

from __future__ import annotations

import dataclasses
import hashlib
import marshal
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, singledispatch
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

import proxmargin
from proxmargin.data.designs import Design
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.memory import BLOCK_ENTRIES
from proxmargin.runtime.types import Estimator, Facts, Record, Values
from proxmargin.solvers.callbacks import Checkpoint, CheckpointContent
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Report, Solution, Status
from proxmargin.solvers.loop.solver import AnySolver, Stop
from proxmargin.solvers.resuming.codec import EncodingError, StateCodec

# parameters that do not affect the iterates of a fit
FREE = frozenset(
    {"callbacks", "verbose", "time_limit", "max_iter", "cache_size", "random_state", "n_jobs"}
)
# size up to which an array is written out, instead of digested
LOOKED_AT = 256
# characters of a digest
DIGITS = 16
# characters of a value in a message, around where it differs
SHOWN = 200


@dataclasses.dataclass(frozen=True)
class Identity:
    """Model, parameters and data of a fit, as texts and digests."""

    version: str  # version of this library
    model: str
    parameters: Mapping[str, str]  # a text for each parameter that affects the iterates
    shape: tuple[int, ...]  # (n_samples, n_features), or that of an array of objects
    # labels, entries: digests of labels, weights and offset; and of the data, with the way they are
    # stored
    labels: str
    entries: str

    @classmethod
    def of(cls, estimator: Estimator, X: Values, classes: Values, *targets: Values) -> Identity:
        """The identity of a fit of ``estimator`` to ``X``, (n_samples, n_features), and targets."""
        if isinstance(X, Design):
            raise ValueError("checkpoints are for data in memory: these are in blocks of rows")
        given = estimator.get_params(deep=False)
        return cls(
            version=proxmargin.__version__,
            model=type(estimator).__name__,
            parameters={name: _text(given[name]) for name in sorted(given) if name not in FREE},
            shape=tuple(map(int, X.shape)),
            labels=_digest(np.array([_text(label) for label in classes.tolist()]), *targets),
            # how the data are stored decides the order of sums and so their last bits
            entries=f"{X.dtype} {getattr(X, 'format', 'dense')} {_digest(*_parts(X))}",
        )

    @classmethod
    def from_plain(cls, plain: Facts) -> Identity:
        """From its fields as JSON has them."""
        return cls(**{**plain, "shape": (*plain["shape"],)})

    def objection(self, earlier: Identity) -> str | None:
        """The difference that prevents this fit from resuming the ``earlier`` one, or None."""
        if earlier.version != self.version:
            return f"it was written by proxmargin {earlier.version}, and this is {self.version}"
        if earlier.model != self.model:
            return f"it is of a {earlier.model}, and this is a {self.model}"
        for name in sorted({*earlier.parameters, *self.parameters}):
            before, after = (each.parameters.get(name, "?") for each in (earlier, self))
            if before != after:
                before, after = _around_difference(before, after)
                return f"it was written with {name}={before}, and this fit has {after}"
        if earlier.shape != self.shape:
            return f"it is of data of shape {earlier.shape}, and these have {self.shape}"
        if earlier.labels != self.labels:
            return "it is of data with other labels or weights, or another offset"
        if earlier.entries != self.entries:
            return "it is of data with other entries, or stored in another way"
        return None


def _around_difference(*texts: str) -> list[str]:
    """Both texts; of long ones what surrounds the first character in which they differ."""
    whole = max(map(len, texts)) <= SHOWN
    pairs = enumerate(zip(*texts, strict=False))  # one may be the beginning of the other
    same = next((k for k, pair in pairs if pair[0] != pair[1]), min(map(len, texts)))
    start = 0 if whole else max(0, same - SHOWN // 2)
    end = start + SHOWN
    return [
        f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"
        for text in texts
    ]


@singledispatch
def _text(value: object) -> str:
    """A text of the value that does not depend on the process."""
    if hasattr(value, "get_params"):  # which an estimator's fields are not, in a derived class
        return repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{type(value).__name__}({_entries(kept, '=')})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"{value.__module__}.{name}({_text(getattr(value, '__dict__', {}))})"
    return repr(value)


@_text.register
def _(value: partial) -> str:  # type: ignore[type-arg]
    return f"partial({_text(value.func)}, {_text(value.args)}, {_text(value.keywords)})"


@_text.register
def _(value: FunctionType) -> str:
    """A function by its name, code, defaults and closure."""
    code = hashlib.sha256(marshal.dumps(value.__code__)).hexdigest()[:DIGITS]
    held = [cell.cell_contents for cell in value.__closure__ or ()]
    given = _text([value.__defaults__, value.__kwdefaults__, held])
    return f"{value.__module__}.{value.__qualname__}({code}, {given})"


@_text.register
def _(value: np.generic) -> str:
    return repr(value.item())


@_text.register
def _(value: np.ndarray) -> str:
    if value.size <= LOOKED_AT:
        return _text(value.tolist())
    return f"an array of shape {value.shape} with digest {_digest(value)}"


@_text.register(list)
@_text.register(tuple)
def _(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]"


@_text.register(set)
@_text.register(frozenset)
def _(value: Any) -> str:
    return f"[{', '.join(sorted(map(_text, value)))}]"


@_text.register
def _(value: dict) -> str:  # type: ignore[type-arg]
    return f"{{{_entries(value, ': ')}}}"


def _entries(value: Mapping[Any, Any], between: str) -> str:
    return ", ".join(f"{key}{between}{_text(each)}" for key, each in value.items())


def _parts(X: Values) -> list[Values]:
    if not sparse.issparse(X):
        return [np.array([_text(each) for each in X.ravel()])] if X.dtype == object else [X]
    return [getattr(X, name) for name in ("data", "indices", "indptr")]


def _digest(*arrays: Values) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        lines = array if array.ndim else array[None]
        step = max(1, 8 * BLOCK_ENTRIES * max(len(lines), 1) // max(lines.nbytes, 1))
        for start in range(0, len(lines), step):  # memory maps are not read as a whole
            found.update(np.ascontiguousarray(lines[start : start + step]).tobytes())
    return found.hexdigest()[:DIGITS]


Callback = Callable[[Report], object]

# statuses of runs that can be continued
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT, Status.WORK_LIMIT)


@dataclasses.dataclass(frozen=True, eq=False)
class JournalEntry:
    title: list[Any]  # solver, samples, features and outputs, to recognise it by
    limit: int | None  # its iteration limit
    solution: Solution  # without the state and the violations
    work: float  # of the fit until then (`proxmargin.solvers.loop.solver.Effort`)


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
        self.records = bool(checkpoints) or source is not None
        self._entries: dict[int, JournalEntry] = {}
        self._begun = 0
        self._going: tuple[int, list[Any], int | None] = (0, [], None)
        self._noted: tuple[int, list[Any], int | None, Report] | None = None
        self._over = False

    def begin(self, identity: Identity) -> None:
        """Set the identity of a fit that is recorded, before its first minimisation. Raises
        ValueError: the checkpoint belongs to another fit."""
        self._identity = identity
        if self._stored is None:
            return
        self._refuse_unless(self._stored.fit is not None, "it was not written by a fit")
        earlier = self._read(self._stored.fit["identity"], Stop())
        objection = identity.objection(earlier)
        self._refuse_unless(objection is None, objection)
        self._entries = dict(self._read(self._stored.fit["entries"], Stop()))

    def recording(self, callbacks: Sequence[Callback]) -> list[Callback]:
        """The callbacks, with the journal's own in place of checkpoints."""
        if not self.records:
            return list(callbacks)
        return [partial(self._note, c) if isinstance(c, Checkpoint) else c for c in callbacks]

    def minimize(self, problem: Problem, solver: AnySolver, **options: Any) -> Solution:
        """`proxmargin.solvers.loop.minimize.minimize`, or its recorded result."""
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

    def _resumption(self, number: int, title: list[object]) -> Record:
        """Options that resume the minimisation in the checkpoint; none for other minimisations."""
        stored = self._stored
        if stored is None or stored.fit is None or stored.fit["number"] != number:
            return {}
        fit = stored.fit
        self._recognise(fit["title"], title)
        if fit["run"] is not None:
            try:
                self._read(fit["run"], Stop())
            except ValueError as error:  # of a solver whose state was another one
                message = f"{error}: the fit starts at the last point of the checkpoint"
                warnings.warn(message, UserWarning, stacklevel=2)
            else:
                return {"resume": partial(self._read, fit["run"])}
        return {"start": stored.point}

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
        arrays: dict[str, Values] = {}
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
            "run": run,
        }
        checkpoint.write(dataclasses.replace(CheckpointContent.of(report), fit=fit, arrays=arrays))

    def _read(self, plain: object, stop: Stop) -> Any:
        assert self._stored is not None
        try:
            limit = (self._stored.fit or {}).get("limit")
            return StateCodec(dict(self._stored.arrays), stop, limit).decode(plain)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"cannot resume from {self._source}: it holds a state that this version cannot "
                f"read ({error})"
            ) from error

    def _recognise(self, title: list[object], now: list[object]) -> None:
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
    callbacks: object, source: str | os.PathLike[str] | None
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
