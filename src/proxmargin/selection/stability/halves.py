"""The features that enter the path of a half-sample, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs import Design
from proxmargin.estimators.base import MarginEstimator
from proxmargin.inputs.targets import Targets
from proxmargin.paths.descent import solve_grid
from proxmargin.paths.found import Found
from proxmargin.runtime.interrupts import interrupts

__all__ = ["Entries", "HalfSampleTask", "PathEntry"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

DOUBLED = 2.0  # weight of the samples of a half: their total is that of all, as C multiplies it


@dataclass(frozen=True, eq=False)
class PathEntry:
    """The units (features, or clusters of them) that entered the path of a half-sample.

    Attributes
    ----------
    units : (n_entered,) integers
        In the order of entry.
    strengths : (n_entered,) integers
        The index of the strength at which each entered.
    fits, unmet : int
        Numbers of fits, and of those that did not meet their tolerance.
    worst : float
        The largest relative gap of these.
    """

    units: Index
    strengths: Index
    fits: int
    unmet: int
    worst: float


@dataclass(frozen=True, eq=False)
class HalfSampleTask:
    """What half-samples are fitted for.

    Attributes
    ----------
    template : estimator
        With validated parameters.
    grid : (n_strengths,)
        From the strongest penalty.
    units : (n_features,) integers
        The unit of each feature; -1 for a feature that does not compete.
    limit : int or None
        Units after which the path of a half-sample ends.
    """

    template: MarginEstimator
    grid: Array
    units: Index
    limit: int | None

    def entry(
        self, design: Design, targets: Targets, weights: Array, rows: Index
    ) -> PathEntry | None:
        """Fit the path of some rows; None if interrupted.

        Other rows have weight zero: no sum over the samples reads them, and nothing is copied.
        """
        half = np.zeros_like(weights)
        half[rows] = DOUBLED * weights[rows]
        assembly = self.template._assembled(
            design, targets.weighted(half, self.template.class_weight)
        )
        entries = Entries(self.units, self.limit)
        for found in solve_grid(self.template, assembly, self.grid):
            entries.take(found)
            if entries.is_full:
                return entries.whole
        complete = entries.count == self.grid.size
        return None if interrupts.pending and not complete else entries.whole


class Share(NamedTuple):
    """Units that entered at one strength."""

    units: Index
    strength: int


class Entries:
    """Collects the units that enter along a path, until there are ``limit``.

    Of those that enter at the same strength the larger coefficient, in the units that the
    penalty sees, comes first: it would have entered first on a finer grid, were coefficients
    linear in the strength.
    """

    def __init__(self, units: Index, limit: int | None) -> None:
        self.units = units
        self.limit = int(units.max()) + 1 if limit is None else limit
        self.count = 0
        self._seen = np.zeros(int(units.max()) + 1, np.bool_)
        self._shares: list[Share] = []
        self._entered = self._unmet = 0
        self._worst = 0.0

    @property
    def is_full(self) -> bool:
        return self._entered >= self.limit

    def take(self, found: list[Found]) -> None:
        """Take in the solutions of all problems for some strengths."""
        for k in range(found[0].count):
            if self.is_full:
                return
            self._note(found, k)
            self._admit(*_used(found, k))
            self.count += 1

    def _note(self, found: list[Found], k: int) -> None:
        short = [one for one in found if not one.met[k]]
        self._unmet += bool(short)
        for one in short:
            self._worst = max(self._worst, one.certify(k).relative_gap)

    def _admit(self, features: Index, sizes: Array) -> None:
        units = self.units[features]
        is_new = (units >= 0) & ~self._seen[units]
        units, sizes = units[is_new], sizes[is_new]
        order = np.lexsort((units, -sizes))
        units = units[order]
        _, first = np.unique(units, return_index=True)
        entering = units[np.sort(first)][: self.limit - self._entered]
        self._seen[entering] = True
        self._entered += entering.size
        self._shares.append(Share(entering, self.count))

    @property
    def whole(self) -> PathEntry:
        sizes = [share.units.size for share in self._shares]
        strengths = np.repeat([share.strength for share in self._shares], sizes)
        units = np.concatenate([np.empty(0, np.intp), *(share.units for share in self._shares)])
        return PathEntry(
            units.astype(np.intp), strengths.astype(np.intp), self.count, self._unmet, self._worst
        )


def _used(found: list[Found], k: int) -> tuple[Index, Array]:
    """The features of strength k in all problems, and the largest coefficient of each there."""
    parts = [slice(one.starts[k], one.starts[k + 1]) for one in found]
    features = [one.features[part] for one, part in zip(found, parts, strict=True)]
    sizes = [
        np.abs(one.coef[part]).max(axis=1, initial=0.0)
        for one, part in zip(found, parts, strict=True)
    ]
    return np.concatenate(features).astype(np.intp), np.concatenate(sizes)
