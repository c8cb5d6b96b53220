"""Parameters that several estimators share, checked: fields of dataclasses, by keyword only.

A classifier is a dataclass too. Its constructor takes the fields of its last base first, so that
the order of the bases is that of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proxmargin.solvers.loop.report import Report


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class FeatureParameters:
    """Of the penalty of each feature."""

    penalty_factor: Any = None
    bounds: Any = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class DataParameters:
    """Of what the data become before they are fitted."""

    fit_intercept: bool = True
    standardize: bool = False
    class_weight: Any = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class KernelParameters(DataParameters):
    """Of the matrix of a kernel."""

    cache_size: float = 1000.0
    rank: int | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class SolvingParameters:
    """Of the solver and its limits."""

    solver: Any = "auto"
    solver_options: Any = None
    stopping: str = "gap"
    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    callbacks: Sequence[Callable[[Report], object]] = ()
    verbose: int = 0
    random_state: Any = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class ThreadParameters:
    """Of models that may have a problem for each class."""

    n_jobs: int | None = None


NAMES = ("feature_names_in_", "_column_labels")  # attributes with the names of features
