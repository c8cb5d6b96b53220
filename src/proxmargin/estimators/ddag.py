"""Many classes through a decision directed acyclic graph over pairs of classes."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from proxmargin.certificate import Certificate, CertificateList
from proxmargin.estimators.validation import validated, validated_features

__all__ = ["DDAGClassifier"]

Index = NDArray[np.intp]


class DDAGClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Directed acyclic graph of binary classifiers (Platt et al. 2000).

    A classifier is fitted for each pair of classes. A prediction starts with all classes in a row
    and asks, for the first and the last that are left, which of the two to drop: one evaluation
    less than there are classes, instead of one a pair.

    Parameters
    ----------
    estimator : a binary classifier
        Is cloned for each pair.
    n_jobs : int, optional
        Pairs fitted at the same time; see `joblib.Parallel`.

    Attributes
    ----------
    classes_ : (n_classes,)
    estimators_ : list of fitted classifiers
        In the order of ``pairs_``.
    pairs_ : list of (i, j), i < j
        The classes, by index, between which each decides.
    certificate_ : Certificate or CertificateList
        Of all of them, where the binary classifiers have one.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from proxmargin import SVC, DDAGClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> len(DDAGClassifier(SVC()).fit(X, y).estimators_)
    3
    """

    def __init__(self, estimator: Any, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a classifier for each pair of classes.

        Parameters
        ----------
        X : (n_samples, n_features)
        y : (n_samples,)
        sample_weight : (n_samples,), optional
            Classes without weight are no classes.

        Raises
        ------
        ValueError
            Fewer than two classes, or what the binary classifier raises.
        """
        X, y = validated(self, X, y)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X)
            if np.any(weights < 0):
                raise ValueError("sample_weight must be >= 0")
        counted = y if weights is None else y[weights > 0]
        self.classes_ = np.unique(counted)
        if self.classes_.size < 2:
            raise ValueError(
                f"y holds the one class {self.classes_[:1]!r}: a classifier needs samples of at "
                "least 2 classes"
            )
        self.pairs_ = list(combinations(range(self.classes_.size), 2))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_pair)(self.estimator, X, y, weights, self.classes_[[i, j]])
            for i, j in self.pairs_
        )
        self._note_certificates()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that is left, (n_samples,)."""
        check_is_fitted(self)
        X = validated_features(self, X)
        classes = self.classes_.size
        model_of = dict(zip(self.pairs_, self.estimators_, strict=True))
        first = np.zeros(_num_samples(X), dtype=np.intp)
        last = np.full_like(first, classes - 1)
        for _ in range(classes - 1):
            nodes = first * classes + last
            for node in np.unique(nodes):
                i, j = divmod(int(node), classes)
                here, model = np.flatnonzero(nodes == node), model_of[i, j]
                is_later = model.predict(self._rows(X, here, model)) == self.classes_[j]
                first[here] += is_later
                last[here] -= ~is_later
        return np.asarray(self.classes_[first])

    def _rows(self, X: Any, index: Index, model: Any) -> Any:
        rows = _safe_indexing(X, index)
        if get_tags(self.estimator).input_tags.pairwise:
            return rows[:, model.training_rows_]
        return rows

    def _note_certificates(self) -> None:
        found: list[Certificate] = []
        for model in self.estimators_:
            certificate = getattr(model, "certificate_", None)
            if isinstance(certificate, Certificate):
                found.append(certificate)
        if len(found) == len(self.estimators_):
            self.certificate_ = found[0] if len(found) == 1 else CertificateList(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.pairwise = inner.pairwise
        return tags


def _fit_pair(estimator: Any, X: Any, y: NDArray[Any], weights: Any, pair: NDArray[Any]) -> Any:
    """The classifier of two classes, fitted on their samples alone."""
    rows = np.flatnonzero(np.isin(y, pair))
    model = clone(estimator)
    part, labels = _safe_split(model, X, y, rows)
    if weights is None:
        model.fit(part, labels)
    else:
        model.fit(part, labels, sample_weight=weights[rows])
    if get_tags(estimator).input_tags.pairwise:
        model.training_rows_ = rows
    return model
