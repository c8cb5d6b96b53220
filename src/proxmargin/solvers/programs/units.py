"""A gauge in units in which a linear program has entries of ordinary size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.solvers.programs.gauge_columns import Columns, GaugeColumns

__all__ = ["InUnits"]

# size of a column of the program, over that of a typical one, that the simplex method is given;
# HiGHS drops entries below 1e-9 and refuses those above 1e15
SMALLEST = 1.0
LARGEST = 1e12
LARGEST_COST = 1e6  # of all losses; HiGHS has failed from 1e12 on


@dataclass(frozen=True, eq=False)
class InUnits(GaugeColumns):
    """A gauge with its strength over the ``unit`` of a typical feature, and its columns rescaled.

    Both are powers of two: nothing is rounded. Columns of small entries become as large as a
    typical one, and costs more: their coefficients are feasible, and their reduced costs exact, to
    a tolerance that is absolute. Of columns of large entries only one of the two can be had; they
    keep their cost, to which dual points are scaled, unless they are beyond `LARGEST`.

    Parameters
    ----------
    inner : GaugeColumns
    sizes : (n_features,)
        Bounds on the entries of each feature.
    unit : float
    """

    inner: GaugeColumns
    sizes: Array
    unit: float

    @classmethod
    def of(cls, inner: GaugeColumns, sizes: Array, least: float = 0.0) -> InUnits:
        """In units of the feature of median size, of those that are not zero.

        Those of ``least`` to `LARGEST_COST` times that, unless it is zero: the strength over the
        costs of all losses.
        """
        live = sizes[sizes > 0]
        unit = float(np.median(live)) if live.size else 1.0
        unit = min(max(unit, least), LARGEST_COST * least) if least > 0 else unit
        return cls(inner, sizes, float(_power_of_two(np.asarray(unit))))

    @property
    def strength(self) -> float:  # type: ignore[override]
        return self.inner.strength / self.unit

    @property
    def is_polyhedral(self) -> bool:  # type: ignore[override]
        return self.inner.is_polyhedral

    def norms(self, pulled: Array) -> Array:
        return self.inner.norms(pulled) / self.unit

    def vertices(self, parts: NDArray[np.intp], pulled: Array) -> Columns:
        columns = self.inner.vertices(parts, pulled)
        largest = np.zeros(columns.parts.size)
        np.maximum.at(largest, columns.owners, self.sizes[columns.entries // pulled.shape[1]])
        relative = np.where(largest > 0, largest / self.unit, 1.0)
        factor = _power_of_two(np.clip(relative, SMALLEST, LARGEST) / relative) / self.unit
        return columns._replace(
            costs=columns.costs * factor * self.unit,
            values=columns.values * factor[columns.owners],
        )


def _power_of_two(values: Array) -> Array:
    """The nearest, in its exponent."""
    nearest: Array = np.exp2(np.round(np.log2(values)))
    return nearest
