"""A callback that records every certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.optimality.problem import Point
from proxmargin.solvers.loop.report import Report, interval_of
from proxmargin.solvers.loop.solver import MEASURES

Row = dict[str, float | int | str]


@dataclass
class History:
    """The course of a fit, with one row a certificate.

    Parameters
    ----------
    every : int, optional
        Also certify steps of the solver at every so many iterations, for these rows alone: the fit
        itself is the same, but slower. By default a row is a certificate that the fit needs. A
        step of some solvers takes several iterations.

    Attributes
    ----------
    rows : list of dict
        ``problem``, the number of the class problem; ``n_iter, n_passes, seconds``; ``primal, dual,
        gap, relative_gap, kkt_residual`` of the iterate with its best intercept; ``best_gap``, the
        smallest gap so far; ``n_support``, its features with a coefficient; what the solver tells
        of its iterate (NaN if it does not): ``objective``, F(u_k) of what it minimises, on the
        dual side minus the dual objective; ``step_constant`` L_k, ``extrapolation``, ``restarts``;
        and ``solver``. Rows of some solvers also have their constants: ``rho`` of ``isvm1`` to
        ``3``, ``rho_margin, rho_coef`` of ``admm``, the steps ``tau, sigma`` of ``fbpd`` (the
        paper's tau and gamma). Objectives are in the units of the model as documented, constants
        in those of the options of the solver. A step of a solver that runs another one has the rows
        of that run, and the certificate of the step takes the place of the last of them.
    best : Point or None
        The point with the smallest gap so far, also after an interruption.
    """

    every: int | None = None
    rows: list[Row] = field(default_factory=list)
    best: Point | None = None
    _best_gap: float = float("inf")
    _problem: int = -1
    _is_inner: bool = False  # whether the last row is of a run inside a step
    # iterations, passes and seconds before the step in which a run may be reporting
    _spent: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        interval_of(self)  # raises for one that is none

    def __call__(self, report: Report) -> None:
        gap, scale = report.gap, report.scale
        spent = np.array([report.n_iter, report.n_passes, report.seconds])
        if report.inner:
            if report.n_iter == 0:
                return  # the start of a run inside a step is the point before that step
            spent += self._spent
        elif report.n_iter == 0:  # a new minimisation begins
            self._best_gap = float("inf")
            self._problem += 1
        if not report.inner:
            self._spent = spent
        if gap.gap < self._best_gap or self.best is None:
            self.best, self._best_gap = gap.point, min(gap.gap, self._best_gap)
        own = {name: float(report.measures.get(name, np.nan)) for name in MEASURES}
        own["objective"] *= scale
        own |= {name: float(report.measures[name]) for name in report.measures if name not in own}
        if self._is_inner and not report.inner and self.rows[-1]["n_iter"] == int(spent[0]):
            del self.rows[-1]  # the end of a run within the step that ends here
        self._is_inner = report.inner
        self.rows.append(
            {
                "problem": max(self._problem, 0),
                "n_iter": int(spent[0]),
                "n_passes": float(spent[1]),
                "seconds": float(spent[2]),
                "primal": scale * gap.primal,
                "dual": scale * gap.dual,
                "gap": scale * gap.gap,
                "relative_gap": gap.relative_gap,
                "kkt_residual": scale * gap.kkt_residual,
                "best_gap": scale * self._best_gap,
                "n_support": int(np.count_nonzero(gap.point.coef.any(axis=1))),
                **own,
                "solver": report.solver,
            }
        )

    def __sklearn_clone__(self) -> History:
        """An empty history for a clone of an estimator, as a search makes for each of its fits."""
        return History(self.every)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[float | int | str]:
        """One field of all rows; NaN where only rows of another solver have it."""
        known = any(name in row for row in self.rows)
        return [row.get(name, np.nan) if known else row[name] for row in self.rows]

    def to_frame(self) -> Any:
        """The rows as a data frame.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)
