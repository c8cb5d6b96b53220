"""Searches: the settings tried on a training part, with their predictions for its inner folds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.fits import Tally, features_used, fitted, said_of
from proxmargin.comparing.evaluating.folds import TrainTestRows
from proxmargin.runtime.interrupts import interrupts

__all__ = ["AlphaPath", "CPath", "Given", "Grid", "Search", "SearchPredictions"]

Settings = dict[str, Any]
Make = Callable[..., Any]
Array = NDArray[np.float64]

# relative gap of fits that only rank settings: a smaller one does not change their scores
SELECTION_TOL = 1e-4


@dataclass
class SearchPredictions:
    """Out-of-fold predictions of every setting for the training rows.

    Attributes
    ----------
    settings : list of dict
        In the order of preference among equals.
    parameter : str or None
        The strength that varies along a path or a grid.
    folds : list of Split
    labels : (n_settings, n_rows) integers
        Predicted classes; -1 for rows that were never held out.
    scores : (n_settings, n_rows[, n_classes]), or None if the models have no decision values
    sizes : (n_settings,)
        Mean number of features.
    tally : Tally
    """

    settings: list[Settings]
    parameter: str | None = None
    folds: Sequence[TrainTestRows] = ()
    labels: NDArray[np.intp] | None = None
    scores: Array | None = None
    sizes: Array | None = None
    tally: Tally = field(default_factory=Tally)


class Search(Protocol):
    """Which settings of a model are tried, and how they are fitted."""

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        """Out-of-fold predictions of all settings for these training rows."""


class _Path(ABC):
    """Warm-started paths of all inner folds, by the engine of cross-validation (`selection`)."""

    parameter: str
    tol: float

    @abstractmethod
    def templates(self, make: Make) -> list[Any]:
        """The estimators whose strength varies, one a mix of norms."""

    @abstractmethod
    def grid(self, template: Any, assembly: Any) -> Array:
        """The strengths of one of them, the strongest penalty first."""

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        from proxmargin.inputs.targets import Targets
        from proxmargin.selection import folds as engine

        templates = self.templates(make)
        found = _Collected(np.unique(data.y), data.n_samples)
        targets = Targets.encode(data.y, data.weights, templates[0].class_weight)
        rows = engine.ValidatedRows(data.prepared()[0].X, targets, data.weights, {})
        first = templates[0]._assembled(rows.design, targets)
        grids = [self.grid(each, each._reassembled(first)) for each in templates]
        plan = engine.Plan(templates, np.stack(grids))
        with interrupts:
            for number, split in enumerate(folds):
                fold = engine.Fold(number, split.train, split.test)
                if data.preprocess is not None:
                    transformer = data.rows(split.train).prepared()[1]
                    rows = replace(rows, X=data.transformed(transformer).X)
                scored = list(engine.path_models(plan, rows, fold, lambda count: None))
                # a path keeps what is complete: shorter than those of other folds, and to choose
                # from it would be to choose among less
                interrupts.act()
                found.fold(split, ((each.models, each.decisions) for each in scored))
        settings = [
            {self.parameter: float(value), **self.mix(template)}
            for template, grid in zip(templates, grids, strict=True)
            for value in grid
        ]
        return found.tried(settings, self.parameter, folds)

    def mix(self, template: Any) -> Settings:
        return {}


@dataclass(frozen=True)
class AlphaPath(_Path):
    """Paths in ``alpha``, one for each ``l1_ratio``.

    Parameters
    ----------
    l1_ratios : tuple of float
        In the order of preference among equals.
    n_alphas : int
        In geometric progression from `proxmargin.alpha_max` of the training rows.
    eps : float
        The last alpha as a share of the first.
    tol : float
        Relative gap of these fits.
    """

    l1_ratios: tuple[float, ...] = (0.95, 0.5)
    n_alphas: int = 30
    eps: float = 1e-3
    tol: float = SELECTION_TOL
    parameter = "alpha"

    def templates(self, make: Make) -> list[Any]:
        return [
            _template(make().set_params(l1_ratio=ratio, tol=self.tol)) for ratio in self.l1_ratios
        ]

    def grid(self, template: Any, assembly: Any) -> Array:
        from proxmargin.paths.grid import default_grid

        return default_grid(template, assembly, self.n_alphas, self.eps)

    def mix(self, template: Any) -> Settings:
        return {"l1_ratio": template.l1_ratio}


@dataclass(frozen=True)
class CPath(_Path):
    """A path through given values of ``C`` of a linear model.

    Parameters
    ----------
    values : tuple of float
        Increasing: the strongest penalty first.
    tol : float
        Relative gap of these fits.
    """

    values: tuple[float, ...]
    tol: float = SELECTION_TOL
    parameter = "C"

    def templates(self, make: Make) -> list[Any]:
        return [_template(make().set_params(tol=self.tol))]

    def grid(self, template: Any, assembly: Any) -> Array:
        return np.array(self.values, np.float64)


def _template(estimator: Any) -> Any:
    """The estimator as the engine of paths takes it, with checked parameters."""
    from proxmargin.paths.grid import unfitted

    template = unfitted(estimator)
    template._check_parameters()
    template._check_model()
    return template


@dataclass(frozen=True)
class Grid:
    """Every combination of the given values, fitted one by one.

    Parameters
    ----------
    values : mapping from parameter to the values to try
        In the order of preference among equals. None of them: the defaults, whose held-out scores
        calibrate the model.
    tol : float, optional
        Relative gap of these fits, for estimators that have one.
    """

    values: Mapping[str, Iterable[Any]]
    tol: float | None = None

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        from sklearn.model_selection import ParameterGrid

        settings = list(ParameterGrid({k: list(v) for k, v in self.values.items()}))
        varied = [name for name, each in self.values.items() if len(list(each)) > 1]
        found = _Collected(np.unique(data.y), data.n_samples)
        for split in folds:
            train, transformer = data.rows(split.train).prepared()
            test = data.rows(split.test).transformed(transformer)
            models = self._fitted(make, settings, train)
            found.models(split, models, test.X, len(settings))
        return found.tried(settings, varied[0] if len(varied) == 1 else None, folds)

    def _fitted(self, make: Make, settings: list[Settings], data: LabelledRows) -> Iterator[Any]:
        from proxmargin.estimators.base import MarginEstimator
        from proxmargin.paths import fitted_grid

        model = make()
        if isinstance(model, MarginEstimator):
            quick = {} if self.tol is None else {"tol": self.tol}
            model.set_params(**quick)
            return fitted_grid(model, settings, data.X, data.y, data.weights)
        return (fitted(make().set_params(**each), data) for each in settings)


@dataclass(frozen=True)
class Given:
    """No choice: an estimator as it is. Held-out scores are fitted only if it needs them to be
    calibrated, because it has no probabilities."""

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        model = make()
        if hasattr(model, "predict_proba") or not hasattr(model, "decision_function"):
            return SearchPredictions([{}])
        return Grid({}).tried(make, data, folds)


class _Collected:
    """Predictions of the settings, gathered fold by fold."""

    def __init__(self, classes: NDArray[Any], n_rows: int) -> None:
        self.classes, self.n_rows = classes, n_rows
        self.labels: NDArray[np.intp] | None = None
        self.scores: Array | None = None
        self.sizes: list[Array] = []
        self.tally = Tally()

    def fold(self, split: TrainTestRows, paths: Iterable[tuple[Any, Array]]) -> None:
        """The paths of one fold, with their decision values for its held-out rows."""
        found = list(paths)
        for path, _ in found:
            self._count(path.certificates)
        self.sizes.append(np.concatenate([path.n_nonzero for path, _ in found]).astype(float))
        decisions = np.concatenate([each for _, each in found])
        many = decisions.ndim == 3
        labels = decisions.argmax(axis=2) if many else (decisions > 0).astype(np.intp)
        self._put(split, labels, decisions)

    def models(self, split: TrainTestRows, models: Iterable[Any], X: Any, count: int) -> None:
        """Models of all settings, one after the other."""
        sizes, labels, scores = [], [], []
        for model in models:
            self._count([getattr(model, "certificate_", None)])
            sizes.append(float(features_used(model)))
            said, score = said_of(model, X, self.classes)
            labels.append(said)
            scores.append(score)
        self.sizes.append(np.array(sizes))
        known = [each for each in scores if each is not None]
        self._put(split, np.array(labels), np.array(known) if len(known) == count else None)

    def _count(self, certificates: Iterable[Any]) -> None:
        for certificate in certificates:
            self.tally.count(certificate)

    def _put(self, split: TrainTestRows, labels: NDArray[np.intp], scores: Array | None) -> None:
        if self.labels is None:
            self.labels = np.full((len(labels), self.n_rows), -1, np.intp)
        self.labels[:, split.test] = labels
        if scores is None:
            return
        if self.scores is None:
            self.scores = np.full((len(scores), self.n_rows, *scores.shape[2:]), np.nan)
        self.scores[:, split.test] = scores

    def tried(
        self, settings: list[Settings], parameter: str | None, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        sizes = np.mean(self.sizes, axis=0)
        return SearchPredictions(
            settings, parameter, folds, self.labels, self.scores, sizes, self.tally
        )
