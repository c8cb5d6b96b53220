"""Probabilities from the scores of logistic models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from proxmargin.estimators import beyond_memory
from proxmargin.inputs.beyond_memory import is_beyond_memory

__all__ = ["LogisticProbabilities"]

Array = NDArray[np.float64]


class LogisticProbabilities:
    """Adds probabilities to a classifier whose scores are log-odds."""

    decision_function: Any
    multi_class: str

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Probabilities of the classes, (n_samples, n_classes), rows summing to one.

        Binary: ``1 / (1 + exp(-score))``. More classes: with ``multi_class='joint'`` those of the
        multinomial model, ``exp(score_k) / sum_j exp(score_j)``; otherwise the binary ones of each
        class against the rest, divided by their sum. ``offset`` as in `decision_function`. Of a
        `proxmargin.Dataset` an iterator of arrays, one a chunk; of a Dask collection a Dask array.
        """
        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.probabilities(self, X, offset, self.predict_proba)
        return self._probabilities_of(self.decision_function(X, offset))

    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """Logarithms of `predict_proba`, of the same kinds."""
        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.probabilities(self, X, offset, self.predict_log_proba)
        return self._log_probabilities_of(self.decision_function(X, offset))

    def _probabilities_of(self, scores: Array) -> Array:
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if self.multi_class == "joint":
            return np.asarray(softmax(scores, axis=1))
        each = expit(scores)
        total = each.sum(axis=1, keepdims=True)
        even = np.full_like(each, 1.0 / each.shape[1])
        return np.divide(each, total, out=even, where=total > 0)

    def _log_probabilities_of(self, scores: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._probabilities_of(scores))
