"""Work in processes that end when their parent process does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import cache
from threading import Thread, current_thread, main_thread
from typing import TypeVar

from proxmargin.runtime.threads import Carried

__all__ = ["performed_apart"]

T = TypeVar("T")
D = TypeVar("D")
M = TypeVar("M")
R = TypeVar("R")

# seconds between two checks that the parent is alive; joblib keeps an idle worker, with hundreds
# of megabytes, for five minutes
LOOK_EVERY = 1.0


def performed_apart(
    parent: int, perform: Callable[[T, D, M], R], task: T, data: Carried[D], metrics: M
) -> R:
    """The result of ``perform``; a process other than ``parent`` first ties its life to it."""
    if os.getpid() != parent:
        _belong_to(parent)
    return perform(task, data.value, metrics)


@cache
def _belong_to(parent: int) -> None:
    """Ignore Ctrl-C, which the terminal sends to the whole group, and end when the parent does."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() == parent:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
