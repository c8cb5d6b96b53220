"""Where the time of an accelerated method goes, by timers around the dual form of a problem.

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

from proxmargin.optimality.composite import FenchelDual
from proxmargin.solvers.callbacks import History
from proxmargin.solvers.loop.report import Report
from proxmargin.solvers.loop.run import Incumbent

PARTS = ("forward", "backward", "prox", "certificate")
Clock = Callable[[], float]


@dataclass
class Watch:
    """Seconds and calls of each part; `form` is the one that the fit works on."""

    clock: Clock
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    certificate_passes: float = 0.0
    total: float = 0.0
    form: FenchelDual | None = None

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
        def noted(form: FenchelDual, *arguments: Any) -> Any:
            self.form = form
            return function(form, *arguments)

        return noted


@contextmanager
def watched(clock: Clock) -> Iterator[Watch]:
    """Fits inside the block are timed part by part."""
    watch = Watch(clock)
    with ExitStack() as stack:
        for part in PARTS[:3]:
            timed = watch.around(part, watch.noting(getattr(FenchelDual, part)))
            # a plain function, so that it binds to the form like the method that it replaces
            stack.enter_context(patch.object(FenchelDual, part, _method(timed)))
        for check in ("check", "preview"):
            counted = watch.certifying(getattr(Incumbent, check))
            stack.enter_context(patch.object(Incumbent, check, _method(counted)))
        start = clock()
        yield watch
        watch.total = clock() - start


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda form, *arguments: function(form, *arguments)


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
        form = watch.form if watch else None
        row["violation"] = float("nan") if form is None else _violation(form, report.state)


def _violation(form: FenchelDual, state: Any) -> float:
    """Free of products with the data, because its backward product is known."""
    if state.backward is None:
        return float("nan")
    scale = state.next_lipschitz
    gradient = form.gradient(state.u, state.backward)
    step = form.dual_form.prox if form.whole else form.dual_form.project
    moved = step(state.u - gradient / scale, 1.0 / scale) - state.u
    return scale * float(np.linalg.norm(moved))
