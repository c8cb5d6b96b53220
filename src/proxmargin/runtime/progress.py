"""Progress on standard error, for work that takes more than two seconds."""

from __future__ import annotations

import sys
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, Protocol, Self

__all__ = ["Progress"]

SHOW_AFTER = 2.0
BAR_EVERY = 0.2
LINE_EVERY = 5.0


class Progress:
    """Shows how many of ``total`` units are done; nothing if ``shown`` is false.

    ``total`` is None if unknown. Shows a bar if standard error is a terminal and rich is installed,
    otherwise a line every few seconds. A thread prints it, so that it moves during long units too.
    """

    _over: Event

    def __init__(self, label: str, total: int | None, *, shown: bool = True) -> None:
        self.label, self.total, self.shown = label, total, shown
        self.done = 0
        self.latest = ""
        self.started = perf_counter()
        self._lock = Lock()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        if self.shown:
            self._over = Event()
            self._thread = Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()

    def advance(self, count: int = 1, latest: str = "") -> None:
        """Count ``count`` more units as done, from any thread."""
        with self._lock:
            self.done += count
            self.latest = latest

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    def _show(self) -> None:
        if self._over.wait(SHOW_AFTER):
            return
        face = _face(self)
        try:
            face.show(self)
            while not self._over.wait(face.every):
                face.show(self)
        finally:
            face.end(self)


class _Face(Protocol):
    every: float

    def show(self, progress: Progress) -> None: ...
    def end(self, progress: Progress) -> None: ...


class _Lines:
    every = LINE_EVERY

    def show(self, progress: Progress) -> None:
        total = "" if progress.total is None else f" of {progress.total}"
        latest = f", last {progress.latest}" if progress.latest else ""
        print(
            f"{progress.label}: {progress.done}{total} done, {progress.seconds:.0f} s{latest}",
            file=sys.stderr,
            flush=True,
        )

    def end(self, progress: Progress) -> None:
        self.show(progress)


class _Bar:
    every = BAR_EVERY

    def __init__(self, progress: Progress) -> None:
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        self._bar: Any = RichProgress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(progress.label, total=progress.total)
        self._bar.start()

    def show(self, progress: Progress) -> None:
        words = f"{progress.label}  {progress.latest}"
        self._bar.update(self._task, completed=progress.done, description=words)

    def end(self, progress: Progress) -> None:
        self._bar.stop()


def _face(progress: Progress) -> _Face:
    if sys.stderr is None or not sys.stderr.isatty():
        return _Lines()
    try:
        return _Bar(progress)
    except ImportError:
        return _Lines()
