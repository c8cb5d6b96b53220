"""A callback that shows one line on standard error, for long fits."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from threading import Lock
from time import perf_counter

from proxmargin.solvers.loop.report import Report

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
    together : bool
        They run at the same time, on threads: the line is about the one with the largest gap, with
        the passes of all.
    """

    label: str = "fit"
    fits: int = 1
    together: bool = False
    _started: float = field(default_factory=perf_counter)
    _shown: float = 0.0
    _number: int = 0
    _latest: dict[int, Report] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, report: Report) -> None:
        with self._lock:
            self._tell(self._of_all(report) if self.together else report)

    def _of_all(self, report: Report) -> Report:
        """The report of the problem with the largest gap, with the passes of all."""
        self._latest[report.problem] = report
        latest = self._latest.values()
        worst = max(latest, key=lambda each: each.gap.relative_gap)
        return replace(worst, n_passes=sum(each.n_passes for each in latest))

    def _tell(self, report: Report) -> None:
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
        if self.together:
            which = f" {len(self._latest)}/{self.fits} together"
        print(
            f"{self.label}{which}: {report.n_iter} iterations, {report.n_passes:.0f} passes, "
            f"{now - self._started:.0f} s, relative gap {report.gap.relative_gap:.1e} "
            f"(until {report.tol:g})",
            file=sys.stderr,
            flush=True,
        )
