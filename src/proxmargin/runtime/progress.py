"""Progress on standard error, for work that takes more than two seconds."""

from __future__ import annotations

import sys
from contextlib import suppress
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, Self

SHOW_AFTER = 2.0
BAR_EVERY = 0.2
LINE_EVERY = 5.0
LINE_SHARE = 0.1  # of the time so far, if that is longer: an hour of work is some forty lines
MINUTE = 60.0  # seconds
HOUR = 3600.0  # seconds


def duration(seconds: float) -> str:
    """A time as people say it: ``45 s``, ``3 min``, ``2 h 5 min``."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    hours, rest = divmod(seconds, HOUR)
    return f"{hours:.0f} h {rest / MINUTE:.0f} min"


class ProgressBar:
    """Shows how many of ``total`` units (None: unknown) are done, the rate, the time left and what
    runs now: a bar on a terminal with rich, else a line every few seconds, printed by a thread."""

    _over: Event

    def __init__(self, label: str, total: int | None, *, shown: bool = True) -> None:
        self.label, self.total, self.shown = label, total, shown
        self.done = 0
        self.known = 0
        self.latest = ""
        self.now = ""
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

    def skip(self, count: int) -> None:
        """Count units as done that an earlier run has done, which say nothing about the rate."""
        with self._lock:
            self.done += count
            self.known += count

    def starts(self, what: str) -> None:
        """Say what runs now; of several at a time the one that has begun last."""
        self.now = what

    def advance(self, count: int = 1, latest: str = "") -> None:
        """Count ``count`` more units as done, from any thread."""
        with self._lock:
            self.done += count
            self.latest = latest

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    @property
    def per_second(self) -> float:
        """Units of this run by the second."""
        return (self.done - self.known) / max(self.seconds, 1e-9)

    @property
    def left(self) -> float | None:
        """Seconds that the other units will take at the rate so far, if both are known."""
        if self.total is None or self.done <= self.known:
            return None
        return max(self.total - self.done, 0) / self.per_second

    @property
    def words(self) -> str:
        """The rate, the time left and what runs now, as far as they are known."""
        rate, left = self.per_second, self.left
        parts = [_rate(rate) if rate > 0 else "", f"about {duration(left)} left" if left else ""]
        parts.append(f"now {self.now}" if self.now and self.done != self.total else "")
        return ", ".join(part for part in parts if part)

    def _show(self) -> None:
        if self._over.wait(SHOW_AFTER):
            return
        face = _face(self)
        try:
            face.show(self)
            while not self._over.wait(face.pause(self)):
                face.show(self)
        finally:
            face.end(self)


def _rate(per_second: float) -> str:
    """Units by the second, or the time of one."""
    if per_second >= 1.0:
        return f"{per_second:.2g}/s"
    each = 1 / per_second
    return f"{each:.2g} s each" if each < 10 else f"{duration(each)} each"


class _Lines:
    def pause(self, progress: ProgressBar) -> float:
        return max(LINE_EVERY, LINE_SHARE * progress.seconds)

    def show(self, progress: ProgressBar) -> None:
        total = "" if progress.total is None else f" of {progress.total}"
        latest = f", last {progress.latest}" if progress.latest else ""
        words = f", {progress.words}" if progress.words else ""
        print(
            f"{progress.label}: {progress.done}{total} done, {duration(progress.seconds)}"
            f"{latest}{words}",
            file=sys.stderr,
            flush=True,
        )

    end = show


class _Bar:
    def __init__(self, progress: ProgressBar) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar: Any = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(progress.label, total=progress.total, words="")
        self._bar.start()

    def pause(self, progress: ProgressBar) -> float:
        return BAR_EVERY

    def show(self, progress: ProgressBar) -> None:
        self._bar.update(self._task, completed=progress.done, words=progress.words)

    def end(self, progress: ProgressBar) -> None:
        self._bar.stop()


def _face(progress: ProgressBar) -> _Lines | _Bar:
    if sys.stderr is not None and sys.stderr.isatty():
        with suppress(ImportError):
            return _Bar(progress)
    return _Lines()
