"""ROC and precision-recall curves of the held-out scores of compared models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.inputs.validation import check_choice
from proxmargin.rounding import score_levels

__all__ = ["draw_precision_recall", "draw_roc"]

Array = NDArray[np.float64]
Facts = Mapping[str, Any]

GRID = 200  # values of x at which the curves of several classes are averaged
CHANCE = {"color": "0.4", "linestyle": ":", "linewidth": 0.8}


class ScoredSamples(NamedTuple):
    """True classes and scores, (n,) and (n, n_classes), of the samples that have some."""

    true: NDArray[np.intp]
    scores: Array

    @classmethod
    def of(cls, facts: Facts, model: str) -> ScoredSamples | None:
        """Those of a model; None if there are none."""
        predictions = facts.get("predictions") or {}
        given = (predictions.get(model) or {}).get("scores")
        rows = [_row(each) for each in given or ()]
        width = max(map(len, rows), default=0)
        if not width:
            return None
        scores = np.array([row or [np.nan] * width for row in rows], dtype=np.float64)
        if width == 1:  # of two classes, for the second
            scores = np.column_stack((-scores, scores))
        done = np.isfinite(scores).all(axis=1)
        true = np.asarray(predictions["true"], dtype=np.intp)
        return cls(true[done], scores[done]) if done.any() else None


class Curve(NamedTuple):
    """A curve from the left to the right, and the area under it."""

    x: Array
    y: Array
    area: float


def draw_roc(facts: Facts, models: Sequence[Facts], ax: Any, label: Any) -> list[Any]:
    """A line for each model; arguments as in `ComparisonDisplay.plot`."""
    from sklearn.metrics import auc, roc_curve

    def curve(is_class: NDArray[np.bool_], scores: Array) -> Curve:
        x, y, _ = roc_curve(is_class, scores)
        return Curve(x, y, float(auc(x, y)))

    def at(grid: Array, found: Curve) -> Array:
        return np.interp(grid, found.x, found.y)

    marks = _draw(facts, models, ax, label, curve, at)
    ax.plot([0, 1], [0, 1], **CHANCE)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    return marks


def draw_precision_recall(facts: Facts, models: Sequence[Facts], ax: Any, label: Any) -> list[Any]:
    """A line for each model; arguments as in `ComparisonDisplay.plot`."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    def curve(is_class: NDArray[np.bool_], scores: Array) -> Curve:
        precision, recall, _ = precision_recall_curve(is_class, scores)
        # the precision at a recall is that of the next threshold which reaches it
        x, y = np.repeat(recall[::-1], 2)[:-1], np.repeat(precision[::-1], 2)[1:]
        return Curve(x, y, float(average_precision_score(is_class, scores)))

    def at(grid: Array, found: Curve) -> Array:
        return found.y[np.searchsorted(found.x, grid, side="left")]

    marks = _draw(facts, models, ax, label, curve, at)
    ax.set(xlabel="recall", ylabel="precision", ylim=(0.0, 1.03))
    return marks


def _draw(
    facts: Facts, models: Sequence[Facts], ax: Any, label: Any, curve: Any, at: Any
) -> list[Any]:
    """Curves of one class, or their mean over the classes, with the areas in the legend."""
    labels = [str(each["label"]) for each in facts["data"]["classes"]]
    chosen = _classes(labels, label)
    grid, marks = np.linspace(0.0, 1.0, GRID), []
    for model in models:
        held_out = ScoredSamples.of(facts, str(model["name"]))
        if held_out is None:
            continue
        true, scores = held_out
        found = [
            curve(true == k, score_levels(scores[:, k]))
            for k in chosen
            if 0 < (true == k).sum() < true.size
        ]
        if not found:
            continue
        x, y, area = found[0]
        if len(found) > 1:
            x, y = grid, np.mean([at(grid, each) for each in found], axis=0)
            area = float(np.mean([each.area for each in found]))
        marks += ax.plot(x, y, label=f"{model['name']} ({area:.3f})")
    if not marks:
        raise ValueError("there are no held-out scores of these models to draw curves of")
    of = labels[chosen[0]] if len(chosen) == 1 else f"mean of {len(chosen)} classes"
    ax.legend(fontsize="x-small", edgecolor="none", framealpha=0.9, title=f"{of} (area)")
    return marks


def _classes(labels: Sequence[str], label: Any) -> list[int]:
    """The indices of the classes with curves."""
    if label is not None:
        check_choice("label", str(label), labels)
        return [labels.index(str(label))]
    return [1] if len(labels) == 2 else list(range(len(labels)))


def _row(given: Any) -> list[float]:
    """The scores of a sample; none where a fold was not finished."""
    if given is None:
        return []
    return [np.nan if each is None else float(each) for each in np.atleast_1d(given)]
