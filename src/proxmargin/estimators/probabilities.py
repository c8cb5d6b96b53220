"""Probabilities from the scores of logistic models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

__all__ = ["LogisticProbabilities"]


class LogisticProbabilities:
    """Adds probabilities to a classifier whose scores are log-odds."""

    decision_function: Any
    multi_class: str

    def predict_proba(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Probabilities of the classes, (n_samples, n_classes), rows summing to one.

        Binary: ``1 / (1 + exp(-score))``. More classes: with ``multi_class='joint'`` those of the
        multinomial model, ``exp(score_k) / sum_j exp(score_j)``; otherwise the binary ones of each
        class against the rest, divided by their sum. ``offset`` as in `decision_function`.
        """
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if self.multi_class == "joint":
            return np.asarray(softmax(scores, axis=1))
        each = expit(scores)
        total = each.sum(axis=1, keepdims=True)
        even = np.full_like(each, 1.0 / each.shape[1])
        return np.divide(each, total, out=even, where=total > 0)

    def predict_log_proba(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))
