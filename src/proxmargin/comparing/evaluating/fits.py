"""Fitted models behind one interface, whatever library they are of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import has_fit_parameter

from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.metrics import HeldOutPredictions

__all__ = ["Tally", "features_used", "fitted", "held_out", "own_probabilities", "said_of"]

Array = NDArray[np.float64]


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
            self.fits + other.fits,
            self.unmet + other.unmet,
            max(self.worst_gap, other.worst_gap),
        )


def fitted(model: Any, data: LabelledRows) -> Any:
    """The model, fitted to weighted samples; with their groups if it splits them again.

    Raises
    ------
    ValueError
        There are weights, and the model takes none.
    """
    given: dict[str, Any] = {}
    if data.weights is not None:
        if not has_fit_parameter(model, "sample_weight") and not isinstance(model, BaseSearchCV):
            raise ValueError(
                f"sample_weight: {type(model).__name__} takes no weights; leave it out of models"
            )
        given["sample_weight"] = data.weights
    if data.groups is not None and isinstance(model, BaseSearchCV):
        given["groups"] = data.groups
    return model.fit(data.X, data.y, **given)


def held_out(model: Any, data: LabelledRows, classes: NDArray[Any]) -> HeldOutPredictions:
    """What a fitted model says about rows; ``classes`` are those of the whole data."""
    labels, scores = said_of(model, data.X, classes)
    return HeldOutPredictions(
        codes=np.searchsorted(classes, data.y),
        labels=labels,
        classes=classes,
        scores=scores,
        weights=data.weights,
        X=data.X,
    )


def said_of(model: Any, X: Any, classes: NDArray[Any]) -> tuple[NDArray[np.intp], Array | None]:
    """Numbers of the classes that a fitted model predicts, and its decision values (`_scores_of`).

    The classes of this library's margin models are those of their decision values, which are then
    computed once.
    """
    from proxmargin.estimators.base import MarginEstimator

    scores = _scores_of(model, X, classes.size)
    by_scores = getattr(type(model), "predict", None) is MarginEstimator.predict
    labels = model._labels_of(scores) if by_scores and scores is not None else model.predict(X)
    return np.searchsorted(classes, labels), scores


def _scores_of(model: Any, X: Any, n_classes: int) -> Array | None:
    """The decision values, one a sample and class, or one a sample of two classes; else None."""
    if not hasattr(model, "decision_function"):
        return None
    scores = np.asarray(model.decision_function(X), np.float64)
    expected = (X.shape[0],) if n_classes == 2 else (X.shape[0], n_classes)
    return scores if scores.shape == expected else None  # such as those of pairs of classes


def own_probabilities(model: Any, X: Any) -> Array | None:
    """The model's own probabilities, where it has them."""
    if not hasattr(model, "predict_proba"):
        return None
    return np.asarray(model.predict_proba(X), np.float64)


def features_used(model: Any) -> int:
    """Features with a nonzero coefficient; all of them for models without coefficients."""
    coef = coefficients(model)
    if isinstance(model, DummyClassifier):
        return 0
    if coef is None:
        return int(getattr(model, "n_features_in_", 0))
    return int(np.count_nonzero(np.any(coef != 0, axis=0)))


def coefficients(model: Any) -> Array | None:
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


def _of_pipeline(model: Any, steps: Any) -> Array | None:
    """Those of a pipeline that only rescales the features before a linear model."""
    coef = coefficients(steps[-1][1])
    scale = np.ones(getattr(model, "n_features_in_", -1) if coef is None else coef.shape[1])
    for _, step in steps[:-1]:
        if type(step).__name__ not in ("StandardScaler", "MaxAbsScaler"):
            return None
        if step.scale_ is not None:
            scale = scale * step.scale_
    return None if coef is None else coef / scale
