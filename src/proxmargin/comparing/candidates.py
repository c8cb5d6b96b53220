"""The models that are compared: a registry with one entry a model.

Nothing heavy is imported before a model is made, so that the command line can list the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import proxmargin
from proxmargin.comparing.data import Data
from proxmargin.comparing.fits import Fits, Tried
from proxmargin.estimators.registry import MODELS, Model
from proxmargin.runtime.interrupts import interrupts

__all__ = ["CANDIDATES", "AlphaPath", "Candidate", "Grid", "Search", "named_candidates"]

Settings = dict[str, Any]
Make = Callable[[], Any]

# relative gap of fits that only rank settings: a smaller one does not change their scores
SELECTION_TOL = 1e-4


class Search(Protocol):
    """Which settings of a model are tried, and how they are fitted."""

    def settings(self, make: Make, data: Data) -> list[Settings]:
        """The settings to try on these training rows, in the order of preference among equals."""

    def models(self, make: Make, settings: list[Settings], data: Data) -> Iterator[Tried]:
        """The fitted models of all settings in their order, several at a time."""


@dataclass(frozen=True)
class AlphaPath:
    """Warm-started paths in ``alpha``, one for each ``l1_ratio``.

    Parameters
    ----------
    l1_ratios : tuple of float
    n_alphas : int
        In geometric progression from `proxmargin.alpha_max` of the training rows.
    eps : float
        The last alpha as a share of the first.
    tol : float
        Relative gap of these fits.
    """

    l1_ratios: tuple[float, ...] = (0.95, 0.5)
    n_alphas: int = 10
    eps: float = 1e-3
    tol: float = SELECTION_TOL

    def settings(self, make: Make, data: Data) -> list[Settings]:
        from proxmargin.paths import alpha_grid

        def grid(l1_ratio: float) -> list[float]:
            alphas = alpha_grid(
                make().set_params(l1_ratio=l1_ratio),
                data.X,
                data.y,
                n_alphas=self.n_alphas,
                eps=self.eps,
                sample_weight=data.weights,
            )
            return [float(alpha) for alpha in alphas]

        return [
            {"alpha": alpha, "l1_ratio": ratio} for ratio in self.l1_ratios for alpha in grid(ratio)
        ]

    def models(self, make: Make, settings: list[Settings], data: Data) -> Iterator[Tried]:
        for l1_ratio, group in groupby(settings, key=lambda s: s["l1_ratio"]):
            model = make().set_params(l1_ratio=l1_ratio, tol=self.tol)
            yield _path(model, data, alphas=[s["alpha"] for s in group])


@dataclass(frozen=True)
class Grid:
    """Every combination of the given values.

    Parameters
    ----------
    values : mapping from parameter to the values to try
        In the order of preference among equals.
    tol : float, optional
        Relative gap of these fits, for estimators that have one.
    """

    values: Mapping[str, Iterable[Any]]
    tol: float | None = None

    def settings(self, make: Make, data: Data) -> list[Settings]:
        from sklearn.model_selection import ParameterGrid

        return list(ParameterGrid(dict(self.values)))

    def models(self, make: Make, settings: list[Settings], data: Data) -> Iterator[Tried]:
        from proxmargin.paths import fitted_grid

        quick = {} if self.tol is None else {"tol": self.tol}
        model = make().set_params(**quick)
        if set(self.values) == {"C"} and getattr(model, "_is_linear", False):
            yield _path(model, data, Cs=[s["C"] for s in settings])
        else:
            yield Fits(list(fitted_grid(model, settings, data.X, data.y, data.weights)))


def _path(
    model: Any, data: Data, alphas: list[float] | None = None, Cs: list[float] | None = None
) -> Tried:
    """The path of these strengths; an interruption of it raises, and so ends the comparison."""
    from proxmargin.paths import margin_path

    with interrupts:
        path = margin_path(model, data.X, data.y, alphas=alphas, Cs=Cs, sample_weight=data.weights)
        interrupts.act()  # a path keeps what is complete, which may be all of it
    return path


@dataclass(frozen=True)
class Candidate:
    """A model of the comparison.

    Parameters
    ----------
    name : str
    make : callable
        A new estimator, unfitted.
    search : Search
    """

    name: str
    make: Make
    search: Search


def _standardized(name: str, **parameters: Any) -> Any:
    return getattr(proxmargin, name)(standardize=True, **parameters)


def _search(model: Model) -> Search:
    return AlphaPath() if model.has_path else Grid(model.grid, SELECTION_TOL)


_RBF = Candidate(
    "SVC-rbf",
    partial(_standardized, "SVC", kernel="rbf"),
    Grid({"C": (0.1, 1.0, 10.0)}, SELECTION_TOL),
)
CANDIDATES: dict[str, Candidate] = {
    **{
        name: Candidate(name, partial(_standardized, name), _search(model))
        for name, model in MODELS.items()
        if model.compared
    },
    _RBF.name: _RBF,
}


def named_candidates(models: str | Iterable[str | Candidate]) -> list[Candidate]:
    """The candidates asked for: ``'all'``, a name, or names and candidates.

    Raises
    ------
    ValueError
        A name is unknown or given twice, or there is none.
    """
    if isinstance(models, str) and models == "all":
        return list(CANDIDATES.values())
    asked = [models] if isinstance(models, str | Candidate) else list(models)
    found = [each if isinstance(each, Candidate) else _known(each) for each in asked]
    names = [candidate.name for candidate in found]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"models must name each model once, and at least one, got {asked!r}")
    return found


def _known(name: str) -> Candidate:
    if name not in CANDIDATES:
        raise ValueError(
            f"there is no model {name!r} to compare; there are 'all', "
            f"{', '.join(map(repr, CANDIDATES))}"
        )
    return CANDIDATES[name]
