"""Predictions of a classifier that has chosen another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from proxmargin.estimators.base import MarginEstimator
from proxmargin.inputs.validation import offset_argument
from proxmargin.selection.fitting import names_checked
from proxmargin.selection.scoring import score_of

__all__ = ["PredictsWithBest"]

Array = NDArray[np.float64]


def _plain_has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.plain, name)


class PredictsWithBest:
    """Predictions by ``best_estimator_``, which is of the class ``plain``."""

    plain: ClassVar[type[MarginEstimator]]
    scoring: Any
    best_estimator_: Any
    _scores_with_weights: Callable[[], bool]

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Scores of the chosen classifier: (n_samples,) if binary, else one column a class.

        ``offset``, (n_samples,), is added to them; so in the methods below.
        """
        check_is_fitted(self, "best_estimator_")
        with names_checked(self, X):
            return self.best_estimator_.decision_function(X, **offset_argument(offset))

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """The class with the largest score, (n_samples,)."""
        check_is_fitted(self, "best_estimator_")
        with names_checked(self, X):
            return self.best_estimator_.predict(X, **offset_argument(offset))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """The value of ``scoring``, which is the accuracy of `predict` if ``scoring`` is None.

        ``sample_weight``, (n_samples,), weighs the samples; a scoring that takes no weights
        ignores them with a warning.
        """
        check_is_fitted(self, "best_estimator_")
        if sample_weight is not None and not self._scores_with_weights():
            sample_weight = None
        with names_checked(self, X):
            return score_of(self.scoring, self.best_estimator_, X, y, sample_weight, offset)

    @available_if(_plain_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Probabilities of the classes, (n_samples, n_classes)."""
        check_is_fitted(self, "best_estimator_")
        with names_checked(self, X):
            return self.best_estimator_.predict_proba(X, **offset_argument(offset))

    @available_if(_plain_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """Logarithms of `predict_proba`."""
        check_is_fitted(self, "best_estimator_")
        with names_checked(self, X):
            return self.best_estimator_.predict_log_proba(X, **offset_argument(offset))
