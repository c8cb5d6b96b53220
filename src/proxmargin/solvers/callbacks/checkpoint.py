"""A callback that writes the state of a fit to a file at intervals."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.optimality.problem import Point
from proxmargin.runtime.files import replaced
from proxmargin.solvers.loop.report import Report

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
    facts: dict[str, Any]  # ``n_iter, solver, primal, relative_gap`` of the point
    # the state to resume the fit from (`proxmargin.solvers.resuming.journal`); None outside of a
    # fit
    fit: Any = None
    # the arrays that ``fit`` refers to
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

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
        members: dict[str, Any] = dict(zip(POINT, self.point, strict=False))
        for name, value in ((FACTS, self.facts), (FIT, self.fit)):
            members[name] = np.array(json.dumps(value))
        with replaced(path) as stream:
            np.savez(stream, allow_pickle=False, **members, **self.arrays)


@dataclass
class Checkpoint:
    """Saves the state of a fit to ``path`` (an .npz), at most every ``every`` seconds.

    ``estimator.fit(X, y, resume_from=path)`` continues from there, bit for bit as an uninterrupted
    fit (with a nonlinear kernel: up to rounding); classes that were finished are not fitted again.
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
