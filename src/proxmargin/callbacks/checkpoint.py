"""Writes the point reached to a file every so often."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np

from proxmargin.minimize import Report
from proxmargin.problem import Point

__all__ = ["Checkpoint"]


@dataclass
class Checkpoint:
    """Saves coefficients and intercept to ``path`` (an .npz) at most every ``every`` seconds.

    The file is replaced atomically, so that it always holds a whole point, whenever the process
    ends. `Checkpoint.load` gives it back, as the ``start`` of `proxmargin.minimize.minimize`. The
    point is that of the problem being solved: in standardised units if the estimator standardises,
    and of the class at hand for one-vs-rest.

    Parameters
    ----------
    path : path-like
    every : float
        Seconds; 0 writes at every certificate.
    """

    path: str | os.PathLike[str]
    every: float = 30.0
    _written: float = field(default=-np.inf, init=False)

    def __call__(self, report: Report) -> None:
        now = perf_counter()
        finished = report.gap.relative_gap <= report.tol
        if now - self._written < self.every and not finished:
            return
        self._written = now
        facts = {
            "n_iter": report.n_iter,
            "solver": report.solver,
            "primal": report.gap.primal,
            "relative_gap": report.gap.relative_gap,
        }
        point = report.gap.point
        target = Path(self.path)
        partial = target.with_name(target.name + ".part")
        with open(partial, "wb") as file:
            np.savez(
                file, coef=point.coef, intercept=point.intercept, facts=np.array(json.dumps(facts))
            )
        os.replace(partial, target)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> tuple[Point, dict[str, float | int | str]]:
        """The saved point and what was known about it."""
        with np.load(path, allow_pickle=False) as stored:
            facts = json.loads(str(stored["facts"]))
            return Point(stored["coef"], stored["intercept"]), facts
