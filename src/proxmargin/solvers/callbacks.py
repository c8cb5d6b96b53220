"""Callbacks of a minimisation, called with a report after each certificate."""

from __future__ import annotations

import json
import os
import sys
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.optimality.problem import Point
from proxmargin.runtime.files import replaced
from proxmargin.runtime.types import Frame, Record, Values
from proxmargin.solvers.loop.report import Report, interval_of
from proxmargin.solvers.loop.solver import MEASURES

# members of the file besides the arrays of the state
POINT = ("coef", "intercept")
FACTS = "facts"
FIT = "fit"
# errors of NumPy on damaged archives
DAMAGE = (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True, eq=False)
class CheckpointContent:
    """The content of a checkpoint file."""

    point: Point
    facts: Record  # ``n_iter, solver, primal, relative_gap`` of the point
    # the state to resume the fit from (`proxmargin.solvers.resuming.journal`); None outside of a
    # fit
    fit: Any = None
    # the arrays that ``fit`` refers to
    arrays: Mapping[str, Values] = field(default_factory=dict)

    @classmethod
    def of(cls, report: Report) -> CheckpointContent:
        """The point of a report, without the state of a fit."""
        facts = {
            "n_iter": report.n_iter,
            "solver": report.solver,
            "primal": report.gap.primal,
            "relative_gap": report.gap.relative_gap,
        }
        return cls(report.gap.point, facts)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> CheckpointContent:
        """Read a file; executes nothing. Raises OSError if there is no such file, or it cannot
        be read; ValueError if it is no checkpoint."""
        try:
            with np.load(path, allow_pickle=False) as file:
                held = {name: file[name] for name in file.files}
            coef, intercept = (held.pop(name) for name in POINT)
            facts, fit = (json.loads(str(held.pop(name))) for name in (FACTS, FIT))
        except DAMAGE as error:
            raise ValueError(f"{os.fspath(path)} is no checkpoint, or damaged: {error}") from error
        return cls(Point(coef, intercept), facts, fit, held)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace the file atomically."""
        members: Record = dict(zip(POINT, self.point, strict=False))
        for name, value in ((FACTS, self.facts), (FIT, self.fit)):
            members[name] = np.array(json.dumps(value))
        with replaced(path) as stream:
            np.savez(stream, allow_pickle=False, **members, **self.arrays)


@dataclass
class Checkpoint:
    """Saves the state of a fit to ``path`` (an .npz), at most every ``every`` seconds.

    ``estimator.fit(X, y, resume_from=path)`` continues from there, bit for bit as an uninterrupted
    fit (with a nonlinear kernel: up to rounding; after a limit, whose last step was a part of one:
    within the tolerance); classes that were finished are not fitted again.
    If a solver's state cannot be saved, or was saved by a version with another one, the fit starts
    at its point. The file is replaced atomically. If it cannot be written the fit continues, after
    one warning.

    `Checkpoint.load` gives the last point, as the ``start`` of
    `proxmargin.solvers.loop.minimize.minimize`.
    It is that of the problem being solved: in standardised units if the estimator standardises, and
    of the class at hand for one-vs-rest.

    Parameters
    ----------
    path : path-like
    every : float
        Seconds; 0 writes at every certificate.

    See Also
    --------
    History : Keeps the steps of a fit in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import Checkpoint, HuberizedSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> file = Path(tempfile.mkdtemp(), "fit.npz")
    >>> model = HuberizedSVC(solver="b-pgh", standardize=True, callbacks=[Checkpoint(file)])
    >>> coef = model.fit(X, y).coef_
    >>> again = HuberizedSVC(solver="b-pgh", standardize=True).fit(X, y, resume_from=file)
    >>> bool((again.coef_ == coef).all())
    True
    """

    path: str | os.PathLike[str]
    every: float = 30.0
    _written: float = field(default=-np.inf, init=False)
    _warned: bool = field(default=False, init=False)

    counts_seconds: ClassVar[bool] = True  # `interval_of` counts iterations

    def __call__(self, report: Report) -> None:
        """Save the point of a run of `minimize` outside of a fit."""
        if not report.inner and (self.is_due() or report.gap.relative_gap <= report.tol):
            self.write(CheckpointContent.of(report))

    def is_due(self) -> bool:
        """Whether ``every`` seconds have passed since the last write."""
        return perf_counter() - self._written >= self.every

    def write(self, stored: CheckpointContent) -> None:
        """Replace the file; warns once if that fails."""
        try:
            stored.write(self.path)
        except (OSError, MemoryError) as error:
            self._warn(error)
        self._written = perf_counter()

    def _warn(self, error: OSError | MemoryError) -> None:
        if self._warned:
            return
        self._warned = True
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        warnings.warn(
            f"the checkpoint {os.fspath(self.path)} cannot be written: {reason}; the fit goes on",
            stacklevel=2,
        )

    @staticmethod
    def load(path: str | os.PathLike[str]) -> tuple[Point, dict[str, float | int | str]]:
        """The saved point, and its iteration, solver, objective and gap."""
        stored = CheckpointContent.read(path)
        return stored.point, stored.facts


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

    See Also
    --------
    ConvergenceDisplay : Draws it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import History, HuberizedSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> history = History()
    >>> model = HuberizedSVC(solver="b-pgh", standardize=True, callbacks=[history]).fit(X, y)
    >>> model.history_ is history, len(history) > 1
    (True, True)
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

    def to_frame(self) -> Frame:
        """The rows as a data frame.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)


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

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, Progress
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HuberizedSVC(standardize=True, callbacks=[Progress()]).fit(X, y)
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
