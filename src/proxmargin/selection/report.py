"""A table of the features that a model uses, as one would publish it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from proxmargin.designs import Design, as_design, moments
from proxmargin.inputs.validation import check_number, validated_features, validated_weights
from proxmargin.runtime.optional import optional
from proxmargin.selection.stability.clusters import partners_of
from proxmargin.selection.stability.selector import StabilitySelection

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["feature_report"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

MOST_PARTNERS = 5  # named for each feature


def feature_report(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    stability: StabilitySelection | None = None,
    cv: Any = 5,
    partners: float = 0.8,
    sample_weight: Any = None,
) -> pd.DataFrame:
    """The features of a fitted model with what a reader of a list of features asks for.

    Parameters
    ----------
    estimator : a fitted linear classifier, also a cross-validated one
    X, y, sample_weight
        The data that it was fitted to.
    stability : fitted StabilitySelection, optional
        Adds frequencies, and the stable features that the model does not use.
    cv : int, splitter or None, default 5
        Folds on whose training parts the model, with its strength fixed, is fitted again for the
        ranks; None leaves them out.
    partners : float in (0, 1], default 0.8
        Absolute correlation from which another feature is named as a partner.

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
        The model has no coefficients.
    ValueError
        The data are not those of the model; a parameter is out of its range.
    ImportError
        pandas is not installed.
    """
    pandas = optional("pandas", "a report of features")
    check_number("partners", partners, low=0.0, low_open=True, high=1.0)
    data = _Data.checked(estimator, X, y, sample_weight)
    table = _Table(data, np.atleast_2d(estimator.coef_), estimator.classes_)
    rows, features = table.used()
    if stability is not None:
        rows, features = _with_stable(rows, features, stability, table)
    names = data.names
    frame: dict[str, Any] = {
        "feature": names[features],
        "class": table.labels(rows),
        "coef": table.coef[rows, features],
        "coef_per_sd": table.per_deviation(table.coef)[rows, features],
        "sign": np.sign(table.coef[rows, features]).astype(int),
        "auc": table.areas(rows, features),
    }
    if stability is not None:
        frame["frequency"] = stability.max_frequencies_[features]
        frame["stable"] = stability.get_support()[features]
    if cv is not None:
        ranks = table.ranks(estimator, cv)
        frame["rank"], frame["folds"] = (each[rows, features] for each in ranks)
    frame["partners"] = _partners(data, features, partners)
    return pandas.DataFrame(frame)


@dataclass(frozen=True, eq=False)
class _Data:
    """Validated data of a fitted model."""

    X: Any
    design: Design
    y: NDArray[Any]
    weights: Array
    names: NDArray[Any]

    @classmethod
    def checked(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> _Data:
        name = type(estimator).__name__
        check_is_fitted(estimator)
        if not hasattr(estimator, "coef_"):
            raise TypeError(f"{name} has no coefficients: a report needs a linear classifier")
        given = validated_features(estimator, X)
        labels, weights = np.asarray(y), validated_weights(sample_weight, given)
        if labels.shape != (given.shape[0],):
            raise ValueError(f"y must be one label a row, ({given.shape[0]},), got {labels.shape}")
        weights = np.ones(labels.size) if weights is None else weights
        unknown = np.setdiff1d(labels[weights > 0], estimator.classes_)
        if unknown.size:
            raise ValueError(f"y holds {unknown[0]!r}, and the model has no such class")
        live = weights > 0
        kept = given if live.all() else given[np.flatnonzero(live)]
        names = getattr(estimator, "feature_names_in_", np.arange(given.shape[1]))
        return cls(kept, as_design(kept), labels[live], weights[live], names)

    @property
    def shares(self) -> Array:
        return np.asarray(self.weights / self.weights.sum())


@dataclass(frozen=True, eq=False)
class _Table:
    """Coefficients of all classes, (n_rows, n_features), and what belongs to them."""

    data: _Data
    coef: Array
    classes: NDArray[Any]

    def used(self) -> tuple[Index, Index]:
        """Rows and features of the nonzero coefficients: by class, the largest first."""
        rows, features = np.nonzero(self.coef)
        sizes = np.abs(self.per_deviation(self.coef)[rows, features])
        order = np.lexsort((features, -sizes, rows))
        return rows[order], features[order]

    def per_deviation(self, coef: Array) -> Array:
        """Coefficients of features with unit variance."""
        return coef * moments(self.data.design, self.data.shares, constant=0.0)[1]

    def positive(self, row: int) -> Any:
        """The class for which positive coefficients of a row speak."""
        return self.classes[1] if len(self.coef) == 1 else self.classes[row]

    def labels(self, rows: Index) -> list[Any]:
        return [self.positive(row) for row in rows.tolist()]

    def marked_by(self, features: Index) -> Index:
        """The row of the class that each feature tells best from the others."""
        count = len(self.coef)
        areas = [self.areas(np.full(features.size, row), features) for row in range(count)]
        return np.abs(np.array(areas) - 0.5).argmax(axis=0)

    def areas(self, rows: Index, features: Index) -> Array:
        """The area under the ROC curve of each feature, for its class against the others."""
        areas = np.full(rows.size, np.nan)
        for place, (row, feature) in enumerate(zip(rows.tolist(), features.tolist(), strict=True)):
            column = self.data.design.dense_columns(np.array([feature]))[:, 0]
            own = self.data.y == self.positive(row)
            areas[place] = roc_auc_score(own, column, sample_weight=self.data.weights)
        return areas

    def ranks(self, estimator: Any, cv: Any) -> tuple[Array, Array]:
        """Mean ranks in the folds that use a feature, and the share of these folds."""
        plain = getattr(estimator, "best_estimator_", estimator)
        total, times = np.zeros_like(self.coef), np.zeros_like(self.coef)
        splits = list(check_cv(cv, self.data.y, classifier=True).split(self.data.X, self.data.y))
        for train, _ in splits:
            weights = np.zeros(self.data.y.size)
            weights[train] = self.data.weights[train]
            missing = np.setdiff1d(self.classes, self.data.y[weights > 0])
            if missing.size:
                raise ValueError(
                    f"cv: the training rows of a fold have no sample of class {missing[0]!s}: "
                    "choose fewer folds"
                )
            model = clone(plain).set_params(callbacks=(), verbose=0)
            model.fit(self.data.X, self.data.y, sample_weight=weights)
            sizes = np.abs(self.per_deviation(np.atleast_2d(model.coef_)))
            used = sizes > 0
            total += np.where(used, rankdata(-sizes, axis=1), 0.0)
            times += used
        mean = np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)
        return mean, times / len(splits)


def _with_stable(
    rows: Index, features: Index, stability: StabilitySelection, table: _Table
) -> tuple[Index, Index]:
    """The rows and, after them, the stable features that the model does not use."""
    support, count = stability.get_support(), table.coef.shape[1]
    if support.size != count:
        raise ValueError(
            f"stability was fitted to {support.size} features, and the model has {count}"
        )
    absent = np.setdiff1d(np.flatnonzero(support), features)
    absent = absent[np.argsort(-stability.max_frequencies_[absent], kind="stable")]
    marked = table.marked_by(absent)
    return np.concatenate([rows, marked]), np.concatenate([features, absent])


def _partners(data: _Data, features: Index, level: float) -> list[str]:
    """For each feature, in words, those that are correlated with it."""
    distinct, place = np.unique(features, return_inverse=True)
    told = []
    each = zip(distinct, partners_of(data.design, data.shares, distinct), strict=True)
    for feature, correlations in each:
        near = np.flatnonzero(np.abs(correlations) >= level)
        near = near[near != feature]
        near = near[np.argsort(-np.abs(correlations[near]), kind="stable")]
        words = [f"{data.names[j]} ({correlations[j]:.2f})" for j in near[:MOST_PARTNERS]]
        more = near.size - len(words)
        told.append(", ".join(words) + (f" and {more} more" if more > 0 else ""))
    return [told[k] for k in place]
