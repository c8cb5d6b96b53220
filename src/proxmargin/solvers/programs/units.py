"""A gauge in units in which the entries of its linear program have moderate size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.solvers.programs.gauge_columns import Atoms, GaugeColumns

__all__ = ["InUnits"]

# range of the size of a column over that of a typical one; HiGHS drops entries below 1e-9 and
# rejects entries above 1e15
SMALLEST = 1.0
LARGEST = 1e12
LARGEST_COST = 1e6  # largest cost of all losses; HiGHS has failed from 1e12 on


@dataclass(frozen=True, eq=False)
class InUnits(GaugeColumns):
    """A gauge with its strength in units of a typical feature, and rescaled columns.

    Both factors are powers of two, so that nothing is rounded. Columns of small entries are scaled
    up to a typical size, with their costs: the tolerances of HiGHS on their coefficients and
    reduced costs are absolute. For columns of large entries only one of these can be kept; they
    keep their cost, to which dual points are scaled, unless they exceed `LARGEST`.

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
        """The gauge in units of the nonzero feature of median size.

        The unit is clipped to ``[least, LARGEST_COST * least]`` for ``least > 0``, the strength
        over the cost of all losses.
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

    def vertices(self, parts: NDArray[np.intp], pulled: Array) -> Atoms:
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
    """The nearest power of two, by the logarithm."""
    nearest: Array = np.exp2(np.round(np.log2(values)))
    return nearest
