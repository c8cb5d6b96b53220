"""A callback that records every certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

from proxmargin.loop.report import Report
from proxmargin.problem import Point

__all__ = ["History"]


@dataclass
class History:
    """The course of a fit, with one row a certificate.

    Attributes
    ----------
    rows : list of dict
        ``n_iter, n_passes, seconds, primal, dual, gap, relative_gap, kkt_residual, solver``.
    best : Point or None
        The point with the smallest gap so far, also after an interruption.
    """

    rows: list[dict[str, float | int | str]] = field(default_factory=list)
    best: Point | None = None
    _best_gap: float = float("inf")

    def __call__(self, report: Report) -> None:
        gap = report.gap
        if report.n_iter == 0:
            self._best_gap = float("inf")  # a new minimisation begins
        if gap.gap < self._best_gap or self.best is None:
            self.best, self._best_gap = gap.point, gap.gap
        self.rows.append(
            {
                "n_iter": report.n_iter,
                "n_passes": report.n_passes,
                "seconds": report.seconds,
                "primal": gap.primal,
                "dual": gap.dual,
                "gap": gap.gap,
                "relative_gap": gap.relative_gap,
                "kkt_residual": gap.kkt_residual,
                "solver": report.solver,
            }
        )

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[float | int | str]:
        """One field of all rows."""
        return [row[name] for row in self.rows]
