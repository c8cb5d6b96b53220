"""Fitted models behind one interface, and the settings that are tried on a training part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV

from proxmargin.models.selection.scoring import weight_argument
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.types import Array, Estimator, Record, Values
from proxmargin.studies.comparing.rows import LabelledRows, TrainTestRows

Settings = Record
Make = Callable[..., Any]

# relative gap of fits that only rank settings: a smaller one does not change their scores
SELECTION_TOL = 1e-4
FURTHER = 10.0  # factor by which a search goes on beyond its last strength


@dataclass
class Tally:
    """The number of fits, of those that did not meet their tolerance, and their worst gap."""

    fits: int = 0
    unmet: int = 0
    worst_gap: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.unmet} of {self.fits} fits stopped before their tolerance was met, the worst "
            f"at a relative gap of {self.worst_gap:.1e}"
        )

    def count(self, certificate: Any) -> None:
        """Take in one fitted model; those without a certificate count as fits only."""
        self.fits += 1
        if certificate is not None and not certificate.converged:
            self.unmet += 1
            self.worst_gap = max(self.worst_gap, float(certificate.relative_gap))

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.fits + other.fits, self.unmet + other.unmet, max(self.worst_gap, other.worst_gap)
        )


def fitted(model: Estimator, data: LabelledRows) -> Estimator:
    """The model, fitted to weighted samples; with their groups if it splits them again."""
    given: Record = {}
    if data.weights is not None:
        try:
            given[weight_argument(model)] = data.weights
        except TypeError as error:
            raise ValueError(f"sample_weight: {error}; leave it out of models") from error
    if data.groups is not None and isinstance(model, BaseSearchCV):
        given["groups"] = data.groups
    return model.fit(data.X, data.y, **given)


def said_of(model: Estimator, X: Values, classes: Values) -> tuple[NDArray[np.intp], Array | None]:
    """Numbers of the predicted classes, and the decision values (`_scores_of`), which are computed
    once for the margin models of this library, as those give the classes."""
    from proxmargin.models.fitting.base import MarginEstimator

    scores = _scores_of(model, X, classes.size)
    by_scores = getattr(type(model), "predict", None) is MarginEstimator.predict
    labels = model._labels_of(scores) if by_scores and scores is not None else model.predict(X)
    return np.searchsorted(classes, labels), scores


def _scores_of(model: Estimator, X: Values, n_classes: int) -> Array | None:
    """The decision values, one a sample and class, or one a sample of two classes; else None."""
    if not hasattr(model, "decision_function"):
        return None
    scores = np.asarray(model.decision_function(X), np.float64)
    expected = (X.shape[0],) if n_classes == 2 else (X.shape[0], n_classes)
    return scores if scores.shape == expected else None  # such as those of pairs of classes


def features_used(model: Estimator) -> int:
    """Features with a nonzero coefficient; all of them for models without coefficients."""
    coef = coefficients(model)
    if isinstance(model, DummyClassifier):
        return 0
    if coef is None:
        return int(getattr(model, "n_features_in_", 0))
    return int(np.count_nonzero(np.any(coef != 0, axis=0)))


def coefficients(model: Estimator) -> Array | None:
    """(n_rows, n_features) in the units of the data, or None."""
    steps = getattr(model, "steps", None)
    if steps is not None:
        return _of_pipeline(model, steps)
    best = getattr(model, "best_estimator_", model)
    if best is not model:
        return coefficients(best)
    try:
        coef = getattr(model, "coef_", None)
    except AttributeError:  # of a kernel machine of scikit-learn
        return None
    if coef is None or getattr(coef, "ndim", 0) not in (1, 2):
        return None
    dense = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef, np.float64)
    return np.atleast_2d(dense)


def _of_pipeline(model: Estimator, steps: Any) -> Array | None:
    """Those of a pipeline that only rescales the features before a linear model."""
    coef = coefficients(steps[-1][1])
    scale = np.ones(getattr(model, "n_features_in_", -1) if coef is None else coef.shape[1])
    for _, step in steps[:-1]:
        if type(step).__name__ not in ("StandardScaler", "MaxAbsScaler"):
            return None
        if step.scale_ is not None:
            scale = scale * step.scale_
    return None if coef is None else coef / scale


@dataclass
class SearchPredictions:
    """Out-of-fold predictions of every setting for the training rows, gathered fold by fold."""

    settings: list[Settings]  # in the order of preference among equals
    parameter: str | None = None  # the strength that varies along a path or a grid
    folds: Sequence[TrainTestRows] = ()
    labels: NDArray[np.intp] | None = None  # (n_settings, n_rows), -1 where never held out
    scores: Array | None = None  # (n_settings, n_rows[, n_classes]), if there are decision values
    fold_sizes: list[Array] = field(default_factory=list)  # numbers of features, (n_settings,) each
    tally: Tally = field(default_factory=Tally)

    @property
    def sizes(self) -> Array:
        """Mean numbers of features, (n_settings,)."""
        return np.mean(self.fold_sizes, axis=0)

    def names_one_class(self, index: int) -> bool:
        """Whether a setting predicts the same class for all rows that were held out."""
        assert self.labels is not None
        known = self.labels[index][self.labels[index] >= 0]
        return bool((known == known[:1]).all())

    def along(self, index: int) -> list[int]:
        """The settings that differ from one in the strength alone, the smallest value first."""
        name = str(self.parameter)
        others = [{k: v for k, v in each.items() if k != name} for each in self.settings]
        same = [k for k, each in enumerate(others) if each == others[index]]
        return sorted(same, key=lambda k: self.settings[k][name])

    def further(self, index: int) -> tuple[float, ...]:
        """Strengths beyond the one of a setting, in steps as before it, if it is the last one;
        none where it is not, or where it is no number."""
        along = self.along(index) if self.parameter is not None else []
        if len(along) < 2 or index not in (along[0], along[-1]):
            return ()
        if self.parameter == "alpha" and index == along[-1]:
            return ()  # the null model, or near it
        nearest = along[1] if index == along[0] else along[-2]
        last, before = (self.settings[k][str(self.parameter)] for k in (index, nearest))
        if not all(isinstance(each, float | int) and each > 0 for each in (last, before)):
            return ()
        ratio = last / before
        steps = max(2, round(abs(np.log(FURTHER) / np.log(ratio))))
        return tuple(sorted(float(last * ratio**k) for k in range(1, steps + 1)))

    def joined(self, other: SearchPredictions) -> SearchPredictions:
        """With the settings of another search on the same folds."""
        assert self.labels is not None
        assert other.labels is not None
        known = self.scores is not None and other.scores is not None
        sizes = zip(self.fold_sizes, other.fold_sizes, strict=True)
        return replace(
            self,
            settings=[*self.settings, *other.settings],
            labels=np.concatenate([self.labels, other.labels]),
            scores=np.concatenate([self.scores, other.scores]) if known else None,
            fold_sizes=[np.concatenate(pair) for pair in sizes],
            tally=self.tally + other.tally,
        )

    def add_paths(
        self, split: TrainTestRows, data: LabelledRows, paths: Iterable[tuple[Any, Array]]
    ) -> None:
        """The paths of one fold, with their decision values for its held-out rows."""
        found = list(paths)
        for path, _ in found:
            for certificate in path.certificates:
                self.tally.count(certificate)
        self.fold_sizes.append(np.concatenate([path.n_nonzero for path, _ in found]).astype(float))
        decisions = np.concatenate([each for _, each in found])
        many = decisions.ndim == 3
        labels = decisions.argmax(axis=2) if many else (decisions > 0).astype(np.intp)
        self._put(split, data.n_samples, labels, decisions)

    def add_models(self, split: TrainTestRows, data: LabelledRows, X: Values, models: Any) -> None:
        """Models of all settings, one after the other, for the held-out rows X."""
        sizes, found, classes = [], [], np.unique(data.y)
        for model in models:
            self.tally.count(getattr(model, "certificate_", None))
            sizes.append(float(features_used(model)))
            found.append(said_of(model, X, classes))
        self.fold_sizes.append(np.array(sizes))
        labels, scores = zip(*found, strict=True)
        known = None if any(each is None for each in scores) else np.array(scores)
        self._put(split, data.n_samples, np.array(labels), known)

    def _put(
        self, split: TrainTestRows, n_rows: int, labels: NDArray[np.intp], scores: Array | None
    ) -> None:
        if self.labels is None:
            self.labels = np.full((len(labels), n_rows), -1, np.intp)
        self.labels[:, split.test] = labels
        if scores is None:
            return
        if self.scores is None:
            self.scores = np.full((len(scores), n_rows, *scores.shape[2:]), np.nan)
        self.scores[:, split.test] = scores


@dataclass(frozen=True)
class _Path:
    """Warm-started paths of all inner folds, by the engine of cross-validation (`selection`)."""

    parameter: ClassVar[str]
    values: tuple[float, ...]
    tol: float

    @property
    def mixes(self) -> list[Settings]:
        """What else an estimator has whose strength varies, in the order of preference."""
        return [{}]

    def grid(self, template: Estimator, assembly: Any) -> Array:
        """The strengths of one of them, the strongest penalty first."""
        return np.array(self.values, np.float64)

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        from proxmargin.models.paths.grid import unfitted
        from proxmargin.models.selection import folds as engine

        made = [make().set_params(**mix, tol=self.tol) for mix in self.mixes]
        templates = [unfitted(each) for each in made]
        for template in templates:
            template._check_parameters()
            template._check_model()
        targets = templates[0]._encoded(data.y, data.weights)
        rows = engine.ValidatedRows(data.prepared()[0].X, targets, data.weights, {})
        first = templates[0]._assembled(rows.design, targets)
        grids = [self.grid(each, each._reassembled(first)) for each in templates]
        settings = [
            {self.parameter: float(value), **mix}
            for mix, grid in zip(self.mixes, grids, strict=True)
            for value in grid
        ]
        found = SearchPredictions(settings, self.parameter, folds)
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
                found.add_paths(split, data, ((each.models, each.decisions) for each in scored))
        return found


@dataclass(frozen=True)
class AlphaPath(_Path):
    """Paths in ``alpha``, one for each ``l1_ratio``, from `proxmargin.alpha_max` of the rows."""

    values: tuple[float, ...] = ()  # in place of the default grid
    tol: float = SELECTION_TOL
    l1_ratios: tuple[float, ...] = (0.95, 0.5)  # in the order of preference among equals
    n_alphas: int = 30
    eps: float = 1e-3  # the last alpha as a share of the first
    parameter = "alpha"

    @property
    def mixes(self) -> list[Settings]:
        return [{"l1_ratio": ratio} for ratio in self.l1_ratios]

    def at(self, setting: Settings, values: tuple[float, ...]) -> AlphaPath:
        return replace(self, l1_ratios=(setting["l1_ratio"],), values=values[::-1])

    def grid(self, template: Estimator, assembly: Any) -> Array:
        from proxmargin.models.paths.grid import default_grid

        if self.values:
            return super().grid(template, assembly)
        return default_grid(template, assembly, self.n_alphas, self.eps)


@dataclass(frozen=True)
class CPath(_Path):
    """A path through given values of ``C``, increasing, of a linear model."""

    tol: float = SELECTION_TOL
    parameter = "C"

    def at(self, setting: Settings, values: tuple[float, ...]) -> CPath:
        return replace(self, values=values)


@dataclass(frozen=True)
class Grid:
    """Every combination of the values, in the order of preference among equals, fitted one by one;
    without values the defaults, whose held-out scores calibrate the model."""

    values: Mapping[str, Iterable[Any]]
    tol: float | None = None  # of these fits, for estimators that have one

    def at(self, setting: Settings, values: tuple[float, ...]) -> Grid:
        (name,) = (name for name, each in self.values.items() if len(list(each)) > 1)
        return replace(self, values={k: [v] for k, v in setting.items()} | {name: values})

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        settings = list(ParameterGrid({k: list(v) for k, v in self.values.items()}))
        varied = [name for name, each in self.values.items() if len(list(each)) > 1]
        found = SearchPredictions(settings, varied[0] if len(varied) == 1 else None, folds)
        for split in folds:
            train, transformer = data.rows(split.train).prepared()
            test = data.rows(split.test).transformed(transformer)
            found.add_models(split, data, test.X, self._fitted(make, settings, train))
        return found

    def _fitted(self, make: Make, settings: list[Settings], data: LabelledRows) -> Iterator[Any]:
        from proxmargin.models.fitting.base import MarginEstimator
        from proxmargin.models.paths import fitted_grid

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

    calibrated: bool = True  # whether probabilities are wanted

    def at(self, setting: Settings, values: tuple[float, ...]) -> Given:
        return self

    def tried(
        self, make: Make, data: LabelledRows, folds: Sequence[TrainTestRows]
    ) -> SearchPredictions:
        model = make()
        known = hasattr(model, "predict_proba") or not hasattr(model, "decision_function")
        if known or not self.calibrated:
            return SearchPredictions([{}])
        return Grid({}).tried(make, data, folds)


# which settings of a model are tried, and how they are fitted; ``at``: the same search of some
# strengths alone, beside the rest of a setting
Search: TypeAlias = AlphaPath | CPath | Grid | Given
