"""Scores, labels, accuracy and probabilities of a linear classifier, of data of all kinds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.special import log_expit, log_softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from proxmargin.data.datasets import Chunk, Dataset
from proxmargin.data.designs import as_design
from proxmargin.data.designs.blocks.device import DEVICES, DeviceDesign, in_memory, on_host
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.beyond_memory import (
    is_beyond_memory,
    is_dask,
    predicting_chunks,
)
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.inputs.validation import (
    ANY_SIZE,
    check_labels,
    offset_argument,
    validated_features,
    validated_offset,
)
from proxmargin.models.fitting.bases import ClassifierMixin
from proxmargin.models.fitting.coefficients import HasCoefficients
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.optional import library_of
from proxmargin.runtime.types import Array, Estimator, Record, Values


class PredictsByScores(HasCoefficients, ClassifierMixin):
    """Predictions of a classifier whose largest score wins."""

    calibrator_: Any
    # why the scores of a model take no offset; empty if they do
    _without_offset: ClassVar[str] = ""

    def decision_function(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Scores, ``X @ coef_.T + intercept_`` of linear models, or sums of kernel values:
        (n_samples,) if binary, else one column a class.

        Parameters
        ----------
        X : (n_samples, n_features)
            For ``kernel='precomputed'`` the kernel of the given samples with the training samples,
            (n_samples, n_training_samples).
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
            outputs = len(getattr(self, "coef_", self.intercept_))
            return _beyond_memory(self, X, offset, np.asarray, outputs if outputs > 1 else None)
        offset = by_sample("offset", offset, X)
        X = validated_features(self, X)
        offset = self._predicting_offset(offset, X, self.classes_)
        scores = self._scores_of(X)
        if scores.shape[1] > 1:
            return scores
        return scores[:, 0] if offset is None else scores[:, 0] + offset

    def _scores_of(self, X: Values) -> Array:
        """Scores of validated features without offset, (n_samples, n_outputs)."""
        coef = np.ascontiguousarray(self.coef_.T)
        scores: Array = as_design(X).scores(coef) + self.intercept_
        return scores

    def _by_scores(self, X: Features, offset: Any, made: Callable[[Array], Any]) -> Values:
        """What ``made`` returns for the scores of X: labels, or numbers for all classes."""
        if not is_beyond_memory(X):
            return made(self.decision_function(X, **offset_argument(offset)))
        check_is_fitted(self)
        if made == self._labels_of:
            return _beyond_memory(self, X, offset, made, None, self.classes_.dtype)
        return _beyond_memory(self, X, offset, made, len(self.classes_))

    def predict(self, X: Features, offset: ArrayLike | None = None) -> Values:
        """The class with the largest score, (n_samples,); ``offset`` as in `decision_function`.

        Of a `proxmargin.Dataset` an iterator of arrays, one a chunk.
        """
        labels: Values = self._by_scores(X, offset, self._labels_of)
        return labels

    @available_if(lambda self: hasattr(self, "calibrator_"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Probabilities of the classes, (n_samples, n_classes), by a map of the scores.

        Models have it that a comparison or the command line has calibrated, by the scores of rows
        held out; others get probabilities from `proxmargin.CalibratedMargin`. `predict` goes by
        the scores as before, so that its class need not be the most probable one. ``offset`` as in
        `decision_function`.
        """
        found: Array = self._by_scores(X, offset, self._probabilities_of)
        return found

    def _probabilities_of(self, scores: Array) -> Array:
        found: Array = self.calibrator_.probabilities(scores)
        return found

    def _labels_of(self, scores: Array) -> Values:
        """The class with the largest score."""
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return np.asarray(self.classes_[codes])

    def score(
        self,
        X: Features,
        y: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """The accuracy of `predict`, weighted by ``sample_weight``."""
        from sklearn.metrics import accuracy_score  # imported late: it loads plotting code

        if is_beyond_memory(X):
            check_is_fitted(self)
            return _accuracy_beyond_memory(self, X, y, sample_weight, offset)
        check_labels(y, X)
        weights = by_sample("sample_weight", sample_weight, X)
        predicted = self.predict(X, **offset_argument(offset))
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def _checked_offset(self, offset: ArrayLike, X: Features, classes: Values) -> Array | None:
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

    def _with_offset(self, targets: Targets, offset: Any, X: Features) -> Targets:
        """The targets of a fit with this offset, which predictions are reminded of."""
        offset = self._checked_offset(offset, X, targets.classes)
        if offset.any():
            self.largest_offset_ = float(np.abs(offset).max())
        return replace(targets, offset=offset)

    def _predicting_offset(self, offset: ArrayLike, X: Features, classes: Values) -> Array | None:
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


def _beyond_memory(
    estimator: Any,
    X: Any,
    offset: Any,
    made: Callable[[Array], Any],
    columns: int | None,
    dtype: DTypeLike = np.float64,
) -> Any:
    """What ``made`` returns for the scores of such data: an iterator of arrays of a data set, a
    Dask array of Dask data, with ``columns`` entries a row, or one (None)."""
    if library_of(X) in DEVICES and not hasattr(estimator, "coef_"):
        return made(estimator.decision_function(in_memory(X), offset))
    shift = _checked(estimator, offset)
    if isinstance(X, Dataset):
        chunks = predicting_chunks(estimator, X, ANY_SIZE)
        return (made(_scores_of(estimator, chunk)) for chunk in chunks)
    if is_dask(X):
        empty = np.empty(0 if columns is None else (0, columns), dtype)
        return _mapped(
            X, _OfBlock(estimator.decision_function, offset_argument(shift), made, empty)
        )
    design = DeviceDesign.checked(X, ANY_SIZE.most)
    if design.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {design.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    found = design.scores(np.ascontiguousarray(estimator.coef_.T)) + estimator.intercept_
    return made(found[:, 0] if found.shape[1] == 1 else found)


def _accuracy_beyond_memory(
    estimator: Estimator, X: Any, y: Any, sample_weight: ArrayLike | None, offset: ArrayLike | None
) -> float:
    """The weighted share of rows whose class `predict` finds."""
    from sklearn.metrics import accuracy_score  # imported late: it loads plotting code

    if not isinstance(X, Dataset):
        if y is None:
            raise ValueError("score requires y to be passed, but the target y is None")
        found = np.asarray(estimator.predict(X, **offset_argument(offset)))
        labels = _in_memory(X, y, "y", found.size)
        weights = None
        if sample_weight is not None:
            weights = _in_memory(X, sample_weight, "sample_weight", found.size)
            _check_total(float(weights.sum()))
        return float(accuracy_score(labels, found, sample_weight=weights))
    if y is not None or sample_weight is not None:
        raise ValueError(
            "y and sample_weight must be left out for a data set on disk, which has its own"
        )
    _checked(estimator, offset)
    right = total = 0.0
    for chunk in predicting_chunks(estimator, X, ANY_SIZE):
        if chunk.y is None:
            raise ValueError("the data set has no labels: open it with target=")
        weight = np.ones(chunk.y.size) if chunk.weight is None else chunk.weight
        right += float(weight @ (estimator._labels_of(_scores_of(estimator, chunk)) == chunk.y))
        total += float(weight.sum())
    _check_total(total)
    return right / total


def _scores_of(estimator: Estimator, chunk: Chunk) -> Array:
    found: Array = estimator._scores_of(chunk.X)
    return found[:, 0] if found.shape[1] == 1 else found


def _checked(estimator: Estimator, offset: Any) -> float | None:
    """The offset of each block: 0 for a model that was fitted with one, else None. Warns
    of a model that was fitted with an offset where none is given."""
    if offset is not None and not (np.ndim(offset) == 0 and offset == 0):
        raise ValueError("offset must be None or 0 for data that are not in memory")
    if not hasattr(estimator, "coef_"):
        raise ValueError("a model with a nonlinear kernel takes data in memory, block by block")
    if offset is None:
        estimator._warn_without_offset()
    return 0.0 if hasattr(estimator, "largest_offset_") else None


def _check_total(total: float) -> None:
    if not total > 0.0:
        raise ValueError(
            f"sample_weight must have a positive sum for an accuracy, and its sum is {total:g}"
        )


@dataclass(frozen=True, eq=False)
class _OfBlock:
    """What is made of the scores of a block, which may have no rows."""

    scores: Callable[..., Array]
    shift: Record
    made: Callable[[Array], Any]
    empty: Values

    def __call__(self, block: Values) -> Any:
        return self.made(self.scores(block, **self.shift)) if block.shape[0] else self.empty


def _mapped(X: Any, of_block: _OfBlock) -> Any:
    """What is made of each block of Dask data."""
    empty = of_block.empty
    if hasattr(X, "to_dask_array"):  # a data frame
        return X.map_partitions(of_block, meta=empty)
    X = X.rechunk({1: -1})
    if empty.ndim == 1:
        return X.map_blocks(of_block, dtype=empty.dtype, drop_axis=1, meta=empty)
    chunks = X.chunks[0], (empty.shape[1],)
    return X.map_blocks(of_block, dtype=empty.dtype, chunks=chunks, meta=empty)


def _in_memory(X: Features, values: ArrayLike, name: str, count: int) -> Values:
    """Labels or weights of rows that are on workers or a device."""
    if is_dask(X):
        from proxmargin.data.designs.blocks.dask_blocks import gathered

        return gathered(values, name, count)
    return on_host(values)


# scores are clipped here, so that their differences are finite
LARGEST = float(np.finfo(np.float64).max) / 4.0


class LogisticProbabilities:
    """Adds probabilities to a classifier whose scores are log-odds."""

    _by_scores: Callable[..., Array]
    multi_class: Any

    def predict_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Probabilities of the classes, (n_samples, n_classes), rows summing to one.

        Binary: ``1 / (1 + exp(-score))``. More classes: with ``multi_class='joint'`` those of the
        multinomial model, ``exp(score_k) / sum_j exp(score_j)``; otherwise the binary ones of each
        class against the rest, divided by their sum. The class of `predict` has the first of the
        largest ones, also where rounding makes others equal. ``offset`` as in `decision_function`.
        Of a `proxmargin.Dataset` an iterator of arrays, one a chunk; of a Dask collection a Dask
        array.
        """
        return self._by_scores(X, offset, self._probabilities_of)

    def predict_log_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Logarithms of `predict_proba`, of the same kinds; finite, where those round to zero."""
        return self._by_scores(X, offset, self._log_probabilities_of)

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
