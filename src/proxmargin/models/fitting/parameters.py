"""Parameters that several estimators share, checked: fields of dataclasses, by keyword only.

A classifier is a dataclass too. Its constructor takes the fields of its last base first, so that
the order of the bases is that of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from proxmargin.data.inputs.kinds import ByFeature, ClassWeight, Seed
from proxmargin.runtime.types import Facts
from proxmargin.solvers.loop.report import Report
from proxmargin.solvers.loop.solver import AnySolver

SolverName: TypeAlias = Literal[
    "auto",
    "b-pgh",
    "b-pgh-2",
    "m-pgh",
    "m-pgh-2",
    "gcd",
    "apg",
    "fapg-guaranteed",
    "fapg",
    "fapg-star",
    "fapg-ws",
    "newton",
    "pass-newton",
    "chord-newton",
    "isvm1",
    "isvm2",
    "isvm3",
    "admm",
    "fbpd",
    "fbpd-linear",
    "fista",
    "forward-backward",
    "cutting-planes",
    "ridge-newton",
    "ball-newton",
    "active-set",
    "interior-point",
    "linear-program",
    "multiplier-newton",
    "ssnal",
    "fapg-ssnal",
    "class-newton",
    "decomposition",
    "dual-coordinate-descent",
    "fisher-secular",
    "probability-newton",
]
RuleName: TypeAlias = Literal[
    "gap",
    "relative-change",
    "iterate-change",
    "primal-residual",
    "step-residual",
    "fixed-point",
    "point-residual",
]


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class FeatureParameters:
    """Of the penalty of each feature."""

    penalty_factor: ByFeature = None
    bounds: Sequence[ByFeature] | Mapping[Any, Sequence[float | None]] | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class DataParameters:
    """Of what the data become before they are fitted."""

    fit_intercept: bool = True
    standardize: bool = False
    class_weight: ClassWeight = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class KernelParameters(DataParameters):
    """Of the matrix of a kernel."""

    cache_size: float = 1000.0
    rank: int | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class SolverParameters:
    """Of the solver and its limits."""

    solver: SolverName | AnySolver = "auto"
    solver_options: Facts | None = None
    stopping: RuleName = "gap"
    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    callbacks: Sequence[Callable[[Report], object]] = ()
    verbose: int = 0


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class SolvingParameters(SolverParameters):
    """Of the solver of one model, which draws nothing at random."""

    random_state: Seed = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class ThreadParameters:
    """Of models that may have a problem for each class."""

    n_jobs: int | None = None


NAMES = ("feature_names_in_", "_column_labels")  # attributes with the names of features
