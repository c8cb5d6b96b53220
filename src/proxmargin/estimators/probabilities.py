"""Probabilities from the scores of logistic models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax
from sklearn.utils.validation import check_is_fitted

from proxmargin.estimators import beyond_memory
from proxmargin.inputs.beyond_memory import is_beyond_memory
from proxmargin.inputs.validation import offset_argument

__all__ = ["LogisticProbabilities"]

Array = NDArray[np.float64]

# scores are clipped here, so that their differences are finite
LARGEST = float(np.finfo(np.float64).max) / 4.0


class LogisticProbabilities:
    """Adds probabilities to a classifier whose scores are log-odds."""

    decision_function: Any
    multi_class: str

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Probabilities of the classes, (n_samples, n_classes), rows summing to one.

        Binary: ``1 / (1 + exp(-score))``. More classes: with ``multi_class='joint'`` those of the
        multinomial model, ``exp(score_k) / sum_j exp(score_j)``; otherwise the binary ones of each
        class against the rest, divided by their sum. The class of `predict` has the first of the
        largest ones, also where rounding makes others equal. ``offset`` as in `decision_function`.
        Of a `proxmargin.Dataset` an iterator of arrays, one a chunk; of a Dask collection a Dask
        array.
        """
        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.probabilities(self, X, offset, self.predict_proba)
        return self._probabilities_of(self.decision_function(X, **offset_argument(offset)))

    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """Logarithms of `predict_proba`, of the same kinds; finite, where those round to zero."""
        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.probabilities(self, X, offset, self.predict_log_proba)
        return self._log_probabilities_of(self.decision_function(X, **offset_argument(offset)))

    def _probabilities_of(self, scores: Array) -> Array:
        return _led(np.exp(self._normalised(scores)), scores)

    def _log_probabilities_of(self, scores: Array) -> Array:
        return _led(self._normalised(scores), scores)

    def _normalised(self, scores: Array) -> Array:
        """Logarithms of probabilities: sums of tiny ones are exact, and never zero."""
        clipped = np.clip(scores, -LARGEST, LARGEST)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-clipped), log_expit(clipped)])
        each = clipped if self.multi_class == "joint" else log_expit(clipped)
        return np.asarray(log_softmax(each, axis=1))


def _led(found: Array, scores: Array) -> Array:
    """Probabilities, or their logarithms, of which the class of the largest score has the largest.

    They rise with the scores, but rounding makes equals of some: 0.5 and 0.5 of the scores 79 and
    227 of classes against the rest. Its last bit then tells the predicted class.
    """
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
    rows = np.flatnonzero(found.argmax(axis=1) != best)
    found[rows, best[rows]] = np.nextafter(found[rows].max(axis=1), np.inf)
    return found
