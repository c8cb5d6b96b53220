"""The choice among tried settings, and calibration of the chosen one, from inner folds alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.metrics import HeldOutPredictions, Metric
from proxmargin.comparing.evaluating.searches import SearchPredictions, Settings
from proxmargin.selection.calibrators import Calibrator, fit_calibrator

__all__ = ["ChosenSettings", "chosen"]

Array = NDArray[np.float64]

# mean scores closer than this count as equal: the order of summation alone may make them differ
TIE = 1e-12
CALIBRATION = "sigmoid"  # two parameters: fits any number of held-out scores


@dataclass(frozen=True, eq=False)
class ChosenSettings:
    """The chosen settings.

    Attributes
    ----------
    settings : dict
    calibrator : Calibrator or None
        From decision values to probabilities, fitted to those of held-out training rows; None if
        the models have none.
    curve : dict
        Inner scores along the strength, for the other chosen settings; empty without a strength.
    """

    settings: Settings
    calibrator: Calibrator | None
    curve: dict[str, Any]


def chosen(tried: SearchPredictions, data: LabelledRows, metric: Metric) -> ChosenSettings:
    """The settings with the best mean inner score; among equals the sparser, then the earlier."""
    if tried.labels is None:
        return ChosenSettings(tried.settings[0], None, {})
    classes = np.unique(data.y)
    codes = np.searchsorted(classes, data.y)
    index, scores = 0, None
    if len(tried.settings) > 1:
        scores = np.array(
            [_inner(tried, k, codes, classes, data, metric) for k in range(len(tried.settings))]
        )
        assert tried.sizes is not None
        index = best(metric.sign * _means(scores), tried.sizes)
    calibrator = None if tried.scores is None else _calibrator(tried.scores[index], codes, data)
    curve = {} if scores is None else _curve(tried, index, scores)
    return ChosenSettings(tried.settings[index], calibrator, curve)


def best(scores: Array, sizes: Array) -> int:
    """The index of the largest score; of equal ones the least size, then the first."""
    scores = np.where(np.isnan(scores), -np.inf, scores)
    if scores.max() == -np.inf:
        raise ValueError("the scoring gave no number for any setting; choose another one")
    ties = np.flatnonzero(scores >= scores.max() - TIE)
    return int(ties[sizes[ties].argmin()])


def _inner(
    tried: SearchPredictions,
    index: int,
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    data: LabelledRows,
    metric: Metric,
) -> list[float]:
    """The metric of one setting on each inner fold."""
    assert tried.labels is not None
    scores = None if tried.scores is None else tried.scores[index]
    labels, probabilities = tried.labels[index], None
    if metric.needs_probabilities(classes.size) and scores is not None:
        told = _told(scores)
        probabilities = np.full((codes.size, classes.size), np.nan)
        calibrator = _calibrator(scores, codes, data)
        if calibrator is not None:
            probabilities[told] = calibrator.probabilities(scores[told])
    X = data.X if metric.needs_rows else None
    held_out = HeldOutPredictions(codes, labels, classes, scores, probabilities, data.weights, X)
    return [metric(held_out.rows(split.test)) for split in tried.folds]


def _calibrator(scores: Array, codes: NDArray[np.intp], data: LabelledRows) -> Calibrator | None:
    """The map from held-out scores to probabilities."""
    told = _told(scores)
    if np.unique(codes[told]).size < np.unique(codes).size:
        return None
    return fit_calibrator(CALIBRATION, scores[told], codes[told], data.shares[told])


def _told(scores: Array) -> NDArray[np.bool_]:
    """The rows that were held out."""
    return np.isfinite(scores if scores.ndim == 1 else scores.sum(axis=1))


def _means(scores: Array) -> Array:
    """Means over the folds that tell the metric; NaN if none does."""
    told = np.isfinite(scores)
    count = told.sum(axis=1)
    total = np.where(told, scores, 0.0).sum(axis=1)
    return np.divide(total, count, out=np.full(len(scores), np.nan), where=count > 0)


def _curve(tried: SearchPredictions, index: int, scores: Array) -> dict[str, Any]:
    """Mean and standard error along the strength, with what else was chosen."""
    name = tried.parameter
    if name is None:
        return {}
    own = {k: v for k, v in tried.settings[index].items() if k != name}
    along = [
        k
        for k, each in enumerate(tried.settings)
        if {n: v for n, v in each.items() if n != name} == own
    ]
    picked = scores[along]
    count = picked.shape[1]
    errors = (
        picked.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else np.full(len(along), np.nan)
    )
    assert tried.sizes is not None
    return {
        "parameter": name,
        "strengths": [tried.settings[k][name] for k in along],
        "mean": _means(picked).tolist(),
        "se": errors.tolist(),
        "n_features": tried.sizes[along].tolist(),
        "chosen": tried.settings[index][name],
        **own,
    }
