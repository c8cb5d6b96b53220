"""Signals that ask a program to end, deferred to a point where nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

__all__ = ["interrupts"]


class _Interrupts:
    """Ctrl-C during a run is recorded, and raised between two iterations.

    Runs may be nested, and an outer run may have code of its own between inner ones: a signal
    recorded there ends the next one. Compiled code may lose an exception that a signal raises
    inside it. A second Ctrl-C raises at once. Only the main thread can do this, and only where
    Python's own handler is in place; SIGTERM is treated alike if a program asks for it
    (`terminable`).

    Attributes
    ----------
    pending : bool
        A signal was noted, and nothing has acted upon it.
    number : int
        Of the last signal.
    """

    def __init__(self) -> None:
        self.pending = False
        self.number = int(signal.SIGINT)
        self._depth = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if current_thread() is not main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self.pending = False
            here = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
            raising = (signal.default_int_handler, self._end)
            self._before = {each: handler for each, handler in here.items() if handler in raising}
            for each in self._before:
                signal.signal(each, self._note)

    def __exit__(self, *exception: object) -> None:
        if current_thread() is not main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            for each, handler in self._before.items():
                signal.signal(each, handler)
            self.pending = False

    def act(self) -> None:
        """Raise what was noted and nothing has acted upon."""
        if self.pending:
            raise KeyboardInterrupt

    @contextmanager
    def terminable(self) -> Iterator[None]:
        """Within, SIGTERM does what Ctrl-C does; for programs, which own their signals."""
        self.number = int(signal.SIGINT)
        mine = current_thread() is main_thread()
        if not mine or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            yield
            return
        signal.signal(signal.SIGTERM, self._end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self.act()
        self.pending = True


interrupts = _Interrupts()
