"""Probabilities for classifiers that have scores only, from held-out scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    indexable,
)

from proxmargin.inputs.validation import check_choice, check_number
from proxmargin.selection.base import CrossValidated
from proxmargin.selection.calibrators import CALIBRATORS, fit_calibrator

__all__ = ["CalibratedMargin"]

Array = NDArray[np.float64]


class CalibratedMargin(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with calibrated probabilities, by a map of held-out scores.

    The scores of each sample come from a fit that did not see it; one map is fitted to all of
    them, and one classifier to all samples. A classifier that chooses its strength by
    cross-validation (`HuberizedSVCCV` and its like) gives the held-out scores of its own folds, and
    is fitted once.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function``: of this package, of scikit-learn, or a pipeline.
    method : {'sigmoid', 'isotonic', 'temperature', 'beta'}, default 'sigmoid'
        'sigmoid' is Platt's map with two parameters, and for more than two classes multinomial
        logistic regression on the scores with a ridge. 'temperature' is one factor on all scores,
        without a shift: for scores that are log-odds up to a factor. 'isotonic' is any
        non-decreasing map, for a thousand samples and more. 'beta' has three parameters and
        contains the sigmoid. The last two treat each of several classes against the rest.
    cv : int, splitter or iterable, default 5
        Folds of the held-out scores, each sample held out once; of a classifier that has folds of
        its own these are taken.
    reject_cost : float in (0, 0.5], optional
        The cost of rejecting a sample, where that of an error is 1. `predict` then rejects
        those whose most probable class is wrong with a greater probability (Chow's rule).
    n_jobs : int, optional
        Parallel jobs for the folds.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all samples.
    classes_ : (n_classes,)
    calibrator_ : object
        With ``probabilities(scores)``.
    oof_scores_ : (n_samples,), or (n_samples, n_classes)
        The held-out scores; NaN for samples that no fold held out.
    n_features_in_, feature_names_in_
        Of ``estimator_``, if it has them.

    Notes
    -----
    Where the strength is chosen by the scores that calibrate it, probabilities are slightly too
    sure; nested folds, ``cross_val_predict`` over this class, show by how much.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines. Zadrozny and Elkan (2002),
    Transforming classifier scores into accurate multiclass probability estimates. Kull, Silva Filho
    and Flach (2017), Beta calibration. Guo et al. (2017), On calibration of modern neural networks.
    Chow (1970), On optimum recognition error and reject tradeoff.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SVC, CalibratedMargin
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedMargin(SVC(standardize=True), reject_cost=0.1).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)
    """

    def __init__(
        self,
        estimator: Any,
        method: str = "sigmoid",
        cv: Any = 5,
        *,
        reject_cost: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.reject_cost = reject_cost
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the classifier and the map of its scores.

        Parameters
        ----------
        X : (n_samples, n_features)
        y : (n_samples,) labels
        sample_weight : (n_samples,), optional
            Weights of the samples, in the fits and in the map.
        groups : (n_samples,), optional
            For splitters that keep groups together.

        Raises
        ------
        ValueError
            An invalid parameter or invalid data, named in the message; a class with fewer samples
            than folds.
        TypeError
            The estimator has no ``decision_function``, or takes no ``sample_weight`` and gets one.
        """
        self._check_parameters(sample_weight)
        X, y, groups = indexable(X, column_or_1d(y, warn=True), groups)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            held = f"the one class {self.classes_[0]!s}" if self.classes_.size else "no labels"
            raise ValueError(f"y holds {held}: at least 2 classes are needed")
        scores = self._fit_and_score(X, y, weights, groups)
        known = ~np.isnan(scores if scores.ndim == 1 else scores.sum(axis=1))
        weights = np.ones(codes.size) if weights is None else weights
        known &= weights > 0
        self.calibrator_ = fit_calibrator(self.method, scores[known], codes[known], weights[known])
        self.oof_scores_ = scores
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _check_parameters(self, sample_weight: Any) -> None:
        check_choice("method", self.method, CALIBRATORS)
        check_number(
            "reject_cost", self.reject_cost, low=0.0, high=0.5, low_open=True, optional=True
        )
        effective_n_jobs(self.n_jobs)
        if not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                "estimator must have a decision_function, and "
                f"{type(self.estimator).__name__} has none"
            )
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(f"{type(self.estimator).__name__} takes no sample_weight")

    def _fit_and_score(self, X: Any, y: Any, weights: Array | None, groups: Any) -> Array:
        """Fit ``estimator_`` to all samples; return held-out scores."""
        weighted = {} if weights is None else {"sample_weight": weights}
        model = clone(self.estimator)
        if isinstance(model, CrossValidated):
            model.set_params(keep_scores=True, refit=True)
            grouped = {} if groups is None else {"groups": groups}
            self.estimator_ = model.fit(X, y, **weighted, **grouped)
            return np.asarray(
                model.oof_scores_.reshape(-1, *model.oof_scores_.shape[2:])[model.best_index_]
            )
        self._check_classes(y)
        scores = cross_val_predict(
            model,
            X,
            y,
            groups=groups,
            cv=check_cv(self.cv, y, classifier=True),
            n_jobs=self.n_jobs,
            params=weighted,
            method="decision_function",
        )
        self.estimator_ = model.fit(X, y, **weighted)
        return np.asarray(scores, dtype=np.float64)

    def _check_classes(self, y: Any) -> None:
        """Raise ValueError where folds would lack a class."""
        if not isinstance(self.cv, int):
            return
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < self.cv:
            raise ValueError(
                f"cv={self.cv} folds need as many samples of each class, and class "
                f"{classes[counts.argmin()]!s} has {counts.min()}"
            )

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (n_samples, n_classes)."""
        check_is_fitted(self, "calibrator_")
        return self.calibrator_.probabilities(np.asarray(self.estimator_.decision_function(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, (n_samples,).

        With ``reject_cost`` a masked array (`numpy.ma`), in which rejected samples are masked.
        """
        probabilities = self.predict_proba(X)
        labels = self.classes_[probabilities.argmax(axis=1)]
        if self.reject_cost is None:
            return np.asarray(labels)
        return np.ma.masked_array(labels, mask=self._rejects(probabilities))

    def rejects(self, X: Any) -> NDArray[np.bool_]:
        """Which samples `predict` rejects, (n_samples,); none without ``reject_cost``."""
        return self._rejects(self.predict_proba(X))

    def _rejects(self, probabilities: Array) -> NDArray[np.bool_]:
        cost = 1.0 if self.reject_cost is None else self.reject_cost
        return np.asarray(1.0 - probabilities.max(axis=1) > cost)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            tags.input_tags = inner().input_tags
        return tags
