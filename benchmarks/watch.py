"""Where the time of an accelerated method goes, by timers around the side of a problem.

The timers are put on while a fit runs and taken off afterwards; the library knows nothing of
them. What a certificate costs, in time and in passes over the data, is told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from proxmargin.callbacks import History
from proxmargin.loop.incumbent import Incumbent
from proxmargin.loop.report import Report
from proxmargin.sides import DualSide

PARTS = ("image", "response", "prox", "certificate")
Clock = Callable[[], float]


@dataclass
class Watch:
    """Seconds and calls of each part; `side` is the one that the fit works on."""

    clock: Clock
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    certificate_passes: float = 0.0
    total: float = 0.0
    side: DualSide | None = None

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            start = self.clock()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds[part] += self.clock() - start
                self.calls[part] += 1

        return timed

    def certifying(self, check: Callable[..., Any]) -> Callable[..., Any]:
        """Around the certificate of a state, which the loop keeps or only reports."""

        def counted(incumbent: Incumbent, state: Any) -> Any:
            counter = incumbent.problem.design.counter
            before = counter.passes
            found = check(incumbent, state)
            self.certificate_passes += counter.passes - before
            return found

        return self.around("certificate", counted)

    def noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(side: DualSide, *arguments: Any) -> Any:
            self.side = side
            return function(side, *arguments)

        return noted


@contextmanager
def watched(clock: Clock) -> Iterator[Watch]:
    """Fits inside the block are timed part by part."""
    watch = Watch(clock)
    with ExitStack() as stack:
        for part in PARTS[:3]:
            timed = watch.around(part, watch.noting(getattr(DualSide, part)))
            # a plain function, so that it binds to the side like the method that it replaces
            stack.enter_context(patch.object(DualSide, part, _method(timed)))
        for check in ("check", "preview"):
            counted = watch.certifying(getattr(Incumbent, check))
            stack.enter_context(patch.object(Incumbent, check, _method(counted)))
        start = clock()
        yield watch
        watch.total = clock() - start


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda side, *arguments: function(side, *arguments)


@dataclass
class Course(History):
    """The history of a fit with what Figures 6, 8 and 10 of the paper show besides the gap.

    A row has `violation`, ``L |T_L(u) - u|`` at the current point, and `own_passes`, those of the
    method without those of certificates.
    """

    watch: Watch | None = None

    def __call__(self, report: Report) -> None:
        super().__call__(report)
        watch, row = self.watch, self.rows[-1]
        row["own_passes"] = report.n_passes - (watch.certificate_passes if watch else 0.0)
        side = watch.side if watch else None
        row["violation"] = float("nan") if side is None else _violation(side, report.state)


def _violation(side: DualSide, state: Any) -> float:
    """Free of products with the data, because the response at the point is known."""
    if state.response is None:
        return float("nan")
    scale = state.next_lipschitz
    gradient = side.gradient(state.u, state.response)
    step = side.form.prox if side.whole else side.form.project
    moved = step(state.u - gradient / scale, 1.0 / scale) - state.u
    return scale * float(np.linalg.norm(moved))
