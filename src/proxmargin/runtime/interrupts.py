"""Signals that ask a program to end, deferred to a safe point."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any


class _Interrupts:
    """Records Ctrl-C during a run (``pending``, ``number`` of the last signal), which is raised
    between two iterations: inside compiled code the exception may be lost. Runs may be nested; a
    signal recorded between inner ones ends the next. A second Ctrl-C raises at once. Needs the main
    thread and Python's own handler."""

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
            self.pending, self._before = False, {}
            for each in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(each)
                if handler in (signal.default_int_handler, self._end):
                    self._before[each] = handler
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
        """Raise KeyboardInterrupt if a recorded signal is pending."""
        if self.pending:
            raise KeyboardInterrupt

    @contextmanager
    def terminable(self) -> Iterator[None]:
        """A block in which SIGTERM acts like Ctrl-C; for programs, which own their signals."""
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
