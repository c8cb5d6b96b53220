"""A table of the features that a model uses, as one would publish it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import NuSVC as ScikitNuSVC
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from proxmargin.data.designs import Design, as_design, moments
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features, Labels, Splits
from proxmargin.data.inputs.parameters import check_number
from proxmargin.data.inputs.validation import check_labels, validated_features, validated_weights
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.coefficients import Ranked
from proxmargin.models.selection.scoring import splitter_of
from proxmargin.models.selection.stability.selector import StabilitySelection
from proxmargin.models.selection.stability.units import partners_of
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Array, Estimator, Index, Record, Values

if TYPE_CHECKING:
    import pandas as pd


MOST_PARTNERS = 5  # named for each feature


def feature_report(
    estimator: Estimator,
    X: Features,
    y: Labels,
    *,
    stability: StabilitySelection | None = None,
    cv: Splits = 5,
    partners: float = 0.8,
    sample_weight: ArrayLike | None = None,
    groups: Labels | None = None,
) -> pd.DataFrame:
    """The features of a fitted model with what a reader of a list of features asks for.

    Parameters
    ----------
    estimator : a fitted linear classifier, also a cross-validated one
        Of this package, or one with ``coef_`` of scikit-learn, which is fitted again to the
        training rows alone.
    X, y, sample_weight
        The data that it was fitted to.
    stability : fitted StabilitySelection, optional
        Adds frequencies, and the stable features that the model does not use. Of data frames
        its columns may be in another order: features are matched by name.
    cv : int, splitter or None, default 5
        Folds on whose training parts the model, with its strength fixed, is fitted again for the
        ranks; None leaves them out.
    partners : float in (0, 1], default 0.8
        Absolute correlation from which another feature is named as a partner.
    groups : (n_samples,), optional
        Samples that the folds of ``cv`` keep together.

    Returns
    -------
    pandas.DataFrame
        A row for each class and feature with a nonzero coefficient, largest first; of two classes
        for the second. ``frame.to_csv(path, index=False)`` writes it.

        - ``feature``, ``class``
        - ``coef``, ``coef_per_sd``: in the units of the data, and times the standard deviation
        - ``sign``: 1 if large values speak for the class, else -1; 0 without a coefficient
        - ``auc``: of the feature alone, for the class against the others, on these data
        - ``frequency``, ``stable``: of ``stability``
        - ``rank``, ``folds``: the mean rank of ``|coef_per_sd|`` in the folds whose model uses
          the feature for this class, and the share of these folds
        - ``partners``: correlated features, the closest first, with their correlations

    Raises
    ------
    TypeError
        The model has no coefficients, or those of pairs of classes; ``stability`` is no
        StabilitySelection; there are weights, and the model takes none.
    ValueError
        The data are not those of the model; ``stability`` has other features or classes; a
        parameter is out of its range.
    ImportError
        pandas is not installed.

    See Also
    --------
    StabilitySelection : Frequencies of features.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression, feature_report
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> lasso = SparseLogisticRegression(alpha=0.1, l1_ratio=1.0, standardize=True).fit(X, y)
    >>> report = feature_report(lasso, X, y, cv=3)
    >>> report["feature"].tolist()
    ['worst concave points', 'worst radius', 'mean concave points', 'worst texture']
    """
    pandas = optional("pandas", "a report of features")
    check_number("partners", partners, low=0.0, low_open=True, high=1.0)
    if not (stability is None or isinstance(stability, StabilitySelection)):
        raise TypeError(
            f"stability must be a fitted StabilitySelection, got {type(stability).__name__}"
        )
    fitted = _Fitted.checked(estimator, X, y, sample_weight, groups)
    own = fitted.ranked(fitted.coef)
    rows, features, _ = own.order()
    if stability is not None:
        frequencies, support = _matched(stability, estimator, fitted)
        absent = np.setdiff1d(np.flatnonzero(support), features)
        absent = absent[np.argsort(-frequencies[absent], kind="stable")]
        rows = np.concatenate([rows, fitted.best_rows(absent)])
        features = np.concatenate([features, absent])
    frame: Record = {
        "feature": fitted.names[features],
        "class": [own.label(row) for row in rows.tolist()],
        "coef": fitted.coef[rows, features],
        "coef_per_sd": own.per_deviation[rows, features],
        "sign": np.sign(fitted.coef[rows, features]).astype(int),
        "auc": fitted.areas(rows, features),
    }
    if stability is not None:
        frame |= {"frequency": frequencies[features], "stable": support[features]}
    if cv is not None:
        ranks = fitted.ranks(estimator, cv)
        frame["rank"], frame["folds"] = (each[rows, features] for each in ranks)
    frame["partners"] = _partners(fitted, features, partners)
    return pandas.DataFrame(frame)


def _coefficients(estimator: Estimator) -> Array:
    """One row for two classes, and one a class for more."""
    given: Any = estimator.coef_
    coef = np.atleast_2d(given.toarray() if hasattr(given, "toarray") else given)
    count = len(estimator.classes_)
    if isinstance(estimator, ScikitSVC | ScikitNuSVC) and count > 2:
        raise TypeError(f"{type(estimator).__name__} has coefficients of pairs of classes")
    return np.asarray(coef, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Coefficients of all classes, (n_rows, n_features), and the rows of positive weight."""

    coef: Array
    classes: Values
    names: Values
    X: Any
    y: Values
    weights: Array
    groups: Values | None

    @classmethod
    def checked(
        cls,
        estimator: Estimator,
        X: Any,
        y: Labels,
        sample_weight: ArrayLike | None,
        groups: Labels | None,
    ) -> _Fitted:
        check_is_fitted(estimator)
        if not hasattr(estimator, "coef_"):
            name = type(estimator).__name__
            raise TypeError(f"{name} has no coefficients: a report needs a linear classifier")
        sample_weight = by_sample("sample_weight", sample_weight, X)
        groups = by_sample("groups", groups, X)
        check_labels(y, X)
        given = validated_features(estimator, X)
        labels, weights = np.asarray(y), validated_weights(sample_weight, given)
        if labels.shape != (given.shape[0],):
            raise ValueError(f"y must be one label a row, ({given.shape[0]},), got {labels.shape}")
        parts = None if groups is None else np.asarray(groups)
        if parts is not None and parts.shape != labels.shape:
            raise ValueError(f"groups must be one a row, {labels.shape}, got {parts.shape}")
        weights = np.ones(labels.size) if weights is None else weights
        live, classes = weights > 0, estimator.classes_
        unknown = np.setdiff1d(labels[live], classes)
        if unknown.size:
            raise ValueError(f"y holds {unknown[0]!r}, and the model has no such class")
        kept = given if live.all() else given[np.flatnonzero(live)]
        names = getattr(estimator, "feature_names_in_", np.arange(given.shape[1]))
        parts = None if parts is None else parts[live]
        coef = _coefficients(estimator)
        return cls(coef, classes, names, kept, labels[live], weights[live], parts)

    @cached_property
    def design(self) -> Design:
        return as_design(self.X)

    @property
    def shares(self) -> Array:
        return np.asarray(self.weights / self.weights.sum())

    def ranked(self, coef: Array) -> Ranked:
        deviations = moments(self.design, self.shares, constant=0.0)[1]
        return Ranked(coef, deviations, self.names, self.classes)

    def areas(self, rows: Index, features: Index) -> Array:
        """The area under the ROC curve of each feature, for its class against the others."""
        areas, label = np.full(rows.size, np.nan), self.ranked(self.coef).label
        for place, (row, feature) in enumerate(zip(rows.tolist(), features.tolist(), strict=True)):
            column = self.design.dense_columns(np.array([feature]))[:, 0]
            own = self.y == label(row)
            areas[place] = roc_auc_score(own, column, sample_weight=self.weights)
        return areas

    def best_rows(self, features: Index) -> Index:
        """The class that each of some features tells best from the others."""
        rows = (np.full(features.size, row) for row in range(len(self.coef)))
        areas = np.array([self.areas(each, features) for each in rows])
        return np.abs(areas - 0.5).argmax(axis=0)

    def ranks(self, estimator: Estimator, cv: Splits) -> tuple[Array, Array]:
        """Mean ranks in the folds that use a feature, and the share of these folds."""
        plain = getattr(estimator, "best_estimator_", estimator)
        total, times = np.zeros_like(self.coef), np.zeros_like(self.coef)
        splits = list(splitter_of(cv, self.y, self.groups).split(self.X, self.y, self.groups))
        for train, _ in splits:
            weights = np.zeros(self.y.size)
            weights[train] = self.weights[train]
            missing = np.setdiff1d(self.classes, self.y[weights > 0])
            if missing.size:
                raise ValueError(
                    f"cv: the training rows of a fold have no sample of class {missing[0]!s}: "
                    "choose fewer folds"
                )
            sizes = self.ranked(_coefficients(self._refitted(plain, weights))).sizes
            used = sizes > 0
            total += np.where(used, rankdata(-sizes, axis=1), 0.0)
            times += used
        mean = np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)
        return mean, times / len(splits)

    def _refitted(self, plain: Estimator, weights: Array) -> Any:
        """A copy of the model, fitted to the rows of positive weight. Models of this package leave
        out rows without weight, and are spared a copy of the data."""
        model = clone(plain)
        if isinstance(model, MarginEstimator):
            model.set_params(callbacks=(), verbose=0)
            return model.fit(self.X, self.y, sample_weight=weights)
        rows = np.flatnonzero(weights)
        if np.all(weights[rows] == 1.0):
            return model.fit(self.X[rows], self.y[rows])
        if not has_fit_parameter(model, "sample_weight"):
            raise TypeError(f"sample_weight: {type(model).__name__} takes none: give cv=None")
        return model.fit(self.X[rows], self.y[rows], sample_weight=weights[rows])


def _matched(
    stability: StabilitySelection, estimator: Estimator, fitted: _Fitted
) -> tuple[Array, NDArray[np.bool_]]:
    """Frequencies, and which features are stable, in the order of the model's features; by name
    where both have names."""
    check_is_fitted(stability)
    support, count = stability.stable_, fitted.coef.shape[1]
    if support.size != count:
        raise ValueError(
            f"stability was fitted to {support.size} features, and the model has {count}"
        )
    if not np.array_equal(stability.classes_, fitted.classes):
        raise ValueError(
            f"stability was fitted to the classes {list(stability.classes_)}, and the model "
            f"to {list(fitted.classes)}"
        )
    own, other = (getattr(each, "feature_names_in_", None) for each in (estimator, stability))
    if own is None or other is None:
        return stability.max_frequencies_, support
    places = {name: place for place, name in enumerate(other)}
    missing = [name for name in own if name not in places]
    if missing:
        raise ValueError(
            f"stability was fitted to other features than the model: it has no {missing[0]!r}"
        )
    order = [places[name] for name in own]
    return stability.max_frequencies_[order], support[order]


def _partners(data: _Fitted, features: Index, level: float) -> list[str]:
    """For each feature, in words, those that are correlated with it."""
    distinct, place = np.unique(features, return_inverse=True)
    found = []
    each = zip(distinct, partners_of(data.design, data.shares, distinct), strict=True)
    for feature, correlations in each:
        near = np.flatnonzero(np.abs(correlations) >= level)
        near = near[near != feature]
        near = near[np.argsort(-np.abs(correlations[near]), kind="stable")]
        words = [f"{data.names[j]} ({correlations[j]:.2f})" for j in near[:MOST_PARTNERS]]
        more = near.size - len(words)
        found.append(", ".join(words) + (f" and {more} more" if more > 0 else ""))
    return [found[k] for k in place]
