"""Callbacks that end a fit, by an error or by returning False: what was found is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from proxmargin.loop.outcome import Solution, Status
from proxmargin.loop.report import Report, interval_of

__all__ = ["Guard"]

Callback = Callable[[Report], object]


class _EndOfFit(KeyboardInterrupt):
    """Ends runs as Ctrl-C does: the best point is certified and returned."""


class Guard:
    """Watches the callbacks of one fit.

    Attributes
    ----------
    error : Exception or None
        What a callback raised.
    asked : bool
        A callback returned False.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = False

    def around(self, callback: Callback) -> Callback:
        """The callback, whose error or False ends the fit."""
        return _Guarded(callback, self)

    def has_ended(self) -> bool:
        """Whether a callback asked to stop; raises what one raised."""
        if self.error is not None:
            raise self.error
        return bool(self.asked)

    def explained(self, solution: Solution) -> Solution:
        """The solution, with the callback as the reason for its end where it was."""
        ended = self.asked or self.error is not None
        if not ended or solution.status is not Status.INTERRUPTED:
            return solution
        reason = "a callback asked to stop" if self.asked else f"a callback raised {self.error!r}"
        return replace(solution, certificate=replace(solution.certificate, stop_reason=reason))


@dataclass(frozen=True)
class _Guarded:
    callback: Callback
    guard: Guard

    def __call__(self, report: Report) -> None:
        try:
            answer = self.callback(report)
        except Exception as error:
            self.guard.error = error
            raise _EndOfFit from error
        if isinstance(answer, bool | np.bool_) and not answer:
            self.guard.asked = True
            raise _EndOfFit

    @property
    def every(self) -> int | None:
        return interval_of(self.callback)
