"""Scores, labels and accuracy of a linear classifier, and the offsets of its scores."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from proxmargin.designs import as_design
from proxmargin.estimators import beyond_memory
from proxmargin.estimators.coefficients import HasCoefficients
from proxmargin.estimators.frames import users_level
from proxmargin.inputs.aligned import by_sample
from proxmargin.inputs.beyond_memory import is_beyond_memory
from proxmargin.inputs.validation import offset_argument, validated_features, validated_offset

__all__ = ["PredictsByScores"]

Array = NDArray[np.float64]


class PredictsByScores(HasCoefficients, ClassifierMixin):  # type: ignore[misc]
    """Predictions of a classifier whose largest score wins."""

    # why the scores of a model take no offset; empty if they do
    _without_offset: ClassVar[str] = ""

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Scores ``X @ coef_.T + intercept_``: (n_samples,) if binary, else one column a class.

        Parameters
        ----------
        X : (n_samples, n_features)
        offset : (n_samples,) or 0, optional
            Added to the scores. Without it the offset is zero; give 0 to say that it is meant.

        Returns
        -------
        scores : array
            Of a `proxmargin.Dataset` an iterator of arrays, one a chunk; of a Dask collection a
            Dask array.

        Warns
        -----
        UserWarning
            The model was fitted with an offset, and none is given.
        """
        check_is_fitted(self)
        if is_beyond_memory(X):
            return beyond_memory.scores(self, X, offset)
        offset = by_sample("offset", offset, X)
        X = validated_features(self, X)
        offset = self._predicting_offset(offset, X, self.classes_)
        scores = self._scores_of(X)
        if scores.shape[1] > 1:
            return scores
        return scores[:, 0] if offset is None else scores[:, 0] + offset

    def _scores_of(self, X: Any) -> Array:
        """Scores of validated features without offset, (n_samples, n_outputs)."""
        coef = np.ascontiguousarray(self.coef_.T)
        scores: Array = as_design(X).scores(coef) + self.intercept_
        return scores

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """The class with the largest score, (n_samples,); ``offset`` as in `decision_function`.

        Of a `proxmargin.Dataset` an iterator of arrays, one a chunk.
        """
        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.predictions(self, X, offset)
        return self._labels_of(self.decision_function(X, **offset_argument(offset)))

    def _labels_of(self, scores: Array) -> NDArray[Any]:
        """The class with the largest score."""
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return np.asarray(self.classes_[codes])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """The accuracy of `predict`, weighted by ``sample_weight``."""
        from sklearn.metrics import accuracy_score  # imported late: it loads plotting code

        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.accuracy(self, X, y, sample_weight, offset)
        weights = by_sample("sample_weight", sample_weight, X)
        predicted = self.predict(X, **offset_argument(offset))
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def _checked_offset(self, offset: Any, X: Any, classes: NDArray[Any]) -> Array | None:
        """The validated offset; None stays None. Raises if the model takes no offset."""
        if offset is None:
            return None
        if self._without_offset:
            raise ValueError(f"{type(self).__name__} takes no offset: {self._without_offset}")
        if classes.size > 2:
            raise ValueError(
                f"offset is one number a sample, and needs two classes: got {classes.size}, with a "
                "score each"
            )
        return validated_offset(offset, X)

    def _predicting_offset(self, offset: Any, X: Any, classes: NDArray[Any]) -> Array | None:
        """`_checked_offset` of predictions; warns of none where the fit had one."""
        if offset is None:
            self._warn_without_offset()
        return self._checked_offset(offset, X, classes)

    def _warn_without_offset(self) -> None:
        largest = getattr(self, "largest_offset_", None)
        if largest is not None:
            warnings.warn(
                "this model was fitted with an offset, the largest of size "
                f"{largest:.3g}, and its scores are computed without one: give the offset of these "
                "samples, or offset=0 if none is meant",
                UserWarning,
                stacklevel=users_level(),
            )
