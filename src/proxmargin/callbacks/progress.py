"""A callback that shows one line on standard error, for long fits."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from time import perf_counter

from proxmargin.loop.report import Report

__all__ = ["Progress"]

SHOW_AFTER = 2.0
REFRESH = 0.5


@dataclass
class Progress:
    """Shows iterations, passes and the certified gap once a fit has run for two seconds.

    Parameters
    ----------
    label : str
    fits : int
        Number of minimisations in the fit (the classes of one-vs-rest).
    """

    label: str = "fit"
    fits: int = 1
    _started: float = field(default_factory=perf_counter)
    _shown: float = 0.0
    _number: int = 0

    def __call__(self, report: Report) -> None:
        now = perf_counter()
        if self._number == 0:  # not the time between its making and the fit
            self._started = now - report.seconds
        if report.n_iter == 0:
            self._number += 1
        finished = report.gap.relative_gap <= report.tol
        if now - self._started < SHOW_AFTER or (now - self._shown < REFRESH and not finished):
            return
        self._shown = now
        which = f" {self._number}/{self.fits}" if self.fits > 1 else ""
        print(
            f"{self.label}{which}: {report.n_iter} iterations, {report.n_passes:.0f} passes, "
            f"{now - self._started:.0f} s, relative gap {report.gap.relative_gap:.1e} "
            f"(until {report.tol:g})",
            file=sys.stderr,
            flush=True,
        )
