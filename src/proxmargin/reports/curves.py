"""Curves of held-out scores: ROC, precision and recall, calibration; confusion of classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from proxmargin.reports.thinning import thinned
from proxmargin.rounding import score_levels

__all__ = ["ModelPredictions", "curves_of"]

# corners of a curve at most: more cannot be seen
MOST_POINTS = 200
# corners of all curves of a page together, about 0.5 MB of it
ALL_POINTS = 40_000
# classes with curves of their own: the largest ones
MOST_CLASSES = 12
# bins of a calibration curve, and samples that a bin should have
BINS = 10
BIN_SAMPLES = 20
DIGITS = 4

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelPredictions:
    """Predictions of a model for samples that it was not fitted to; unfinished ones are left out.

    Attributes
    ----------
    true, label : (n,) integers
        Indices of classes.
    scores : (n, n_classes)
    probabilities : (n, n_classes) or None
    """

    true: NDArray[np.intp]
    label: NDArray[np.intp]
    scores: Array
    given: Array | None = None

    @classmethod
    def of(
        cls, predictions: Mapping[str, Any], model: str, n_classes: int
    ) -> ModelPredictions | None:
        """Those of a model in the facts of a comparison; None if there are none."""
        found = predictions.get(model)
        if not isinstance(found, Mapping) or not len(found.get("label", ())):
            return None
        label = np.array([-1 if each is None else each for each in found["label"]], dtype=np.intp)
        scores = _matrix(found["scores"], n_classes)
        done = (label >= 0) & np.isfinite(scores).all(axis=1)
        if not done.any():
            return None
        given = found.get("probabilities")
        shares = None if given is None else _matrix(given, n_classes, shares=True)[done]
        true = np.asarray(predictions["true"], dtype=np.intp)
        return cls(true[done], label[done], scores[done], shares)

    @cached_property
    def probabilities(self) -> Array | None:
        """Those given, or the scores if they are such."""
        if self.given is not None and np.isfinite(self.given).all():
            return self.given
        whole = self.scores.sum(axis=1)
        are = (self.scores >= 0).all() and np.allclose(whole, 1, atol=1e-6)
        return self.scores if are else None

    def confusion(self, n_classes: int) -> NDArray[np.intp]:
        """Counts of (true, predicted) classes."""
        found = confusion_matrix(self.true, self.label, labels=np.arange(n_classes))
        return np.asarray(found)


def curves_of(
    held_out: Mapping[int, ModelPredictions], counts: Sequence[int]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Curves of all models and classes, as plain values, and the classes that have some.

    Parameters
    ----------
    held_out : dict
        By index of the model.
    counts : (n_classes,)
        Samples of each class.
    """
    two = len(counts) == 2
    largest = np.argsort(-np.asarray(counts), kind="stable")[:MOST_CLASSES]
    # with two classes, the curves of the second one say all
    classes = [1] if two else sorted(largest.tolist())
    points = max(20, min(MOST_POINTS, ALL_POINTS // max(1, 2 * len(held_out) * len(classes))))
    found = [
        {"m": m, "k": k, **_curves(each, k, points)}
        for m, each in held_out.items()
        for k in classes
        if 0 < (each.true == k).sum() < each.true.size
    ]
    return found, classes


def _curves(held_out: ModelPredictions, k: int, points: int) -> dict[str, Any]:
    is_class, scores = held_out.true == k, score_levels(held_out.scores[:, k])
    false_rate, true_rate, _ = roc_curve(is_class, scores)
    precision, recall, _ = precision_recall_curve(is_class, scores, drop_intermediate=True)
    return {
        "roc": _points(false_rate, true_rate, points),
        "precision_recall": _points(*_stairs(recall[::-1], precision[::-1]), points),
        "calibration": _calibration(held_out, k),
        "auc": float(roc_auc_score(is_class, scores)),
        "average_precision": float(average_precision_score(is_class, scores)),
        "share": float(is_class.mean()),
    }


def _stairs(recall: Array, precision: Array) -> tuple[Array, Array]:
    """Precision at a recall is that of the next threshold which reaches it, so draw steps."""
    return np.repeat(recall, 2)[:-1], np.repeat(precision, 2)[1:]


def _calibration(held_out: ModelPredictions, k: int) -> list[list[float]] | None:
    shares = held_out.probabilities
    if shares is None:
        return None
    bins = max(2, min(BINS, shares.shape[0] // BIN_SAMPLES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bins that coincide where probabilities are tied
        observed, predicted = calibration_curve(
            held_out.true == k, np.clip(shares[:, k], 0, 1), n_bins=bins, strategy="quantile"
        )
    return _rounded(predicted, observed)


def _points(x: Array, y: Array, limit: int) -> list[list[float]]:
    kept = thinned(x, y, limit)
    return _rounded(x[kept], y[kept])


def _rounded(x: Array, y: Array) -> list[list[float]]:
    return [list(pair) for pair in zip(*(v.round(DIGITS).tolist() for v in (x, y)), strict=True)]


def _matrix(values: Any, n_classes: int, shares: bool = False) -> Array:
    """A score for each class; with two classes one column speaks for the second."""
    rows = [[None] if row is None else row for row in values]
    scores = np.array(list(_filled(rows, n_classes)), dtype=np.float64)
    if n_classes == 2 and scores.shape[1] == 1:
        other = 1 - scores if shares else -scores
        return np.hstack([other, scores])
    return scores


def _filled(rows: list[Any], n_classes: int) -> Iterator[list[float]]:
    listed = [row if isinstance(row, list | tuple | np.ndarray) else [row] for row in rows]
    width = max((len(row) for row in listed), default=n_classes)
    for row in listed:
        padded = list(row) if len(row) == width else [None] * width
        yield [np.nan if each is None else float(each) for each in padded]
