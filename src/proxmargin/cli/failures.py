"""From exceptions to one sentence and an exit status."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from proxmargin.cli.wording import as_options

__all__ = ["FAILED", "INTERRUPTED", "OK", "USAGE", "guarded"]

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
# what a shell reports for a program that SIGPIPE ended
PIPE_CLOSED = 141


def guarded(work: Callable[[], int], *, debug: bool) -> int:
    """The status of ``work``; of an exception, after a sentence about it on standard error."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            status = work()
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            # nobody reads on; keep the interpreter from failing again when it flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return PIPE_CLOSED
        except (KeyboardInterrupt, Exception) as error:
            if debug:
                traceback.print_exc()
            status, sentence = _explained(error)
            print(f"proxmargin: {sentence}", file=sys.stderr)
            return status


def _explained(error: BaseException) -> tuple[int, str]:
    """The first kind that the error is of decides."""
    for kind, status, start in _KINDS:
        if isinstance(error, kind):
            return status, start + (_one_line(error) or kind.__name__)
    return FAILED, f"{type(error).__name__}: {_one_line(error)} (--debug shows where)"


_KINDS: tuple[tuple[type[BaseException], int, str], ...] = (
    (KeyboardInterrupt, INTERRUPTED, "interrupted: "),
    (ValueError, USAGE, "error: "),  # bad data, bad parameters, unsuitable solvers
    (OSError, FAILED, "error: "),
    (ImportError, FAILED, "error: "),
    (MemoryError, FAILED, "not enough memory: "),
)


def _one_line(message: Any) -> str:
    return as_options(" ".join(str(message).split()))


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"proxmargin: warning: {_one_line(message)}", file=sys.stderr)
