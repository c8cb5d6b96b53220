"""Many models of the same data: regularisation paths, and grids of other settings."""

from proxmargin.models.paths.compute import margin_path
from proxmargin.models.paths.fit_by_fit import fitted_grid
from proxmargin.models.paths.grid import alpha_grid, alpha_max, critical_C
from proxmargin.models.paths.path import Path

__all__ = ["Path", "alpha_grid", "alpha_max", "critical_C", "fitted_grid", "margin_path"]
