"""Work in processes of its own, which ends when the process that asked for it does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import cache
from threading import Thread, current_thread, main_thread
from typing import ParamSpec, TypeVar

__all__ = ["performed_apart"]

P = ParamSpec("P")
R = TypeVar("R")

# seconds between two looks at whether the parent lives; a process of ours holds hundreds of
# megabytes, and joblib lets it idle for five minutes
LOOK_EVERY = 1.0


def performed_apart(
    parent: int, perform: Callable[P, R], /, *arguments: P.args, **named: P.kwargs
) -> R:
    """The result of ``perform``, in this process or in one that belongs to ``parent``."""
    if os.getpid() != parent:
        _belong_to(parent)
    return perform(*arguments, **named)


@cache
def _belong_to(parent: int) -> None:
    """Leave Ctrl-C, which a terminal sends to all, to the parent, and do not outlive it."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() == parent:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
