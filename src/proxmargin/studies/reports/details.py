"""Predictions for held-out rows as curves and confusions; features and path of one model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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

from proxmargin.compiled.rounding import score_levels
from proxmargin.runtime.types import Array, Facts, Record, Values
from proxmargin.studies.reports import standings
from proxmargin.studies.reports.standings import HtmlTable, number_column, word_column
from proxmargin.studies.reports.text import leaning

CHARTED = 20  # features in a chart: more have no room for their names
MOST_CLASSES = 30  # of a confusion matrix that is shown
SHADES = 8  # of a cell
MOST_POINTS = 200  # of a curve: more cannot be seen
ALL_POINTS = 40_000  # of all curves of a page together, about 0.5 MB of it
MOST_CURVES = 12  # classes with curves of their own: the largest ones
BINS = 10  # of a calibration curve
BIN_SAMPLES = 20  # that a bin should have
DIGITS = 4


def confusion_of(held_out: ModelPredictions, labels: Sequence[str]) -> Record | None:
    """Counts of true and predicted classes, with a shade from 0 to 8 for each share of a row; None
    where there are too many classes for a table."""
    if len(labels) > MOST_CLASSES:
        return None
    counts = held_out.confusion(len(labels))
    sizes = counts.sum(axis=1)
    rows = []
    for k, label in enumerate(labels):
        shares = counts[k] / max(1, sizes[k])
        cells = [
            (int(c), standings.percent(s) if sizes[k] else standings.NONE, round(SHADES * s))
            for c, s in zip(counts[k], shares, strict=True)
        ]
        rows.append((label, int(sizes[k]), cells))
    right = int(counts.trace())
    summary = f"{right:,} of {counts.sum():,} samples are in the right class."
    summary = f"{summary} {_most_confused(counts, labels)}"
    return {"labels": labels, "rows": rows, "summary": summary}


def _most_confused(counts: NDArray[np.intp], labels: Sequence[str]) -> str:
    wrong = counts - np.diag(counts.diagonal())
    if not wrong.any():
        return "None is in a wrong one."
    row, column = divmod(int(wrong.argmax()), len(labels))
    often = int(wrong[row, column])
    times = "once" if often == 1 else f"{often:,} times"
    return f"The most frequent mistake: {labels[row]} taken for {labels[column]}, {times}."


def feature_chart(rows: Sequence[Facts], labels: Sequence[str]) -> list[Record]:
    """Values of the chart of the largest weights."""
    return [
        {
            "row": place,
            "feature": row["feature"] if len(labels) == 2 else f"{row['feature']} · {row['class']}",
            "weight": row["weight"],
            "sign": "for" if row["weight"] > 0 else "against",
            "frequency": row.get("frequency"),
            "tip": f"{row['feature']}: {standings.score(row['weight'])}, {leaning(row, labels)}; "
            f"in {standings.percent(row.get('frequency'))} of the folds",
        }
        for place, row in enumerate(rows[:CHARTED])
    ]


def feature_table(name: str, model: str, rows: Sequence[Facts], labels: Sequence[str]) -> HtmlTable:
    columns = (
        word_column("feature", "feature"),
        number_column(
            "weight", "weight", why="change of the score per standard deviation of the feature"
        ),
        word_column("higher values speak", lambda row: leaning(row, labels)),
        number_column(
            "used in folds",
            "frequency",
            standings.percent,
            "share of the outer folds whose model uses it",
        ),
        number_column(
            "with this sign",
            lambda row: _times(row.get("frequency"), row.get("sign_agreement")),
            standings.percent,
            "share of the outer folds whose model uses it in this direction",
        ),
        number_column("area under ROC alone", "auc", why="of the feature, for the class it is of"),
        word_column("goes along with", partners, "features with a correlation of 0.8 or more"),
    )
    return HtmlTable.of(name, f"Features of {model}, the largest weights first", columns, rows)


def _times(frequency: object, agreement: object) -> float | None:
    agreement = agreement if standings.known(agreement) else 0.0
    return frequency * agreement if standings.known(frequency) else None


def partners(row: Facts) -> str:
    """The correlated features of a row, with their correlations."""
    near = [f"{name} ({standings.score(value, 2)})" for name, value in row.get("partners") or ()]
    return ", ".join(near) or standings.NONE


def _path_rows(path: Facts) -> Iterator[Record]:
    keys, count = ("mean", "se", "n_features"), len(path["strengths"])
    columns = [path.get(key) or [None] * count for key in keys]
    for strength, *values in zip(path["strengths"], *columns, strict=True):
        yield {"strength": strength, **dict(zip(keys, values, strict=True))}


def path_chart(path: Facts) -> Record | None:
    """Values of the chart of scores along the strengths; None where these are no numbers."""
    rows = []
    for row in _path_rows(path):
        strength, mean, se, n = row.values()
        # a logarithmic axis has no place for zero
        if standings.known(mean) and standings.known(strength) and strength > 0:
            spread = se if standings.known(se) else 0.0
            found = {"strength": strength, "mean": mean, "low": mean - spread, "n": n}
            tip = (
                f"{path['parameter']} {strength:.3g}: {standings.score(mean)} ± "
                f"{standings.score(se)}, {standings.count(n)} features"
            )
            rows.append({**found, "high": mean + spread, "tip": tip})
    if not rows:
        return None
    chosen = path.get("chosen")
    return {
        "rows": rows,
        "chosen": [{"strength": chosen}] if standings.known(chosen) and chosen > 0 else [],
        "parameter": str(path["parameter"]),
        # strong penalties at the left: fewer features there, as everywhere in the library
        "falls": str(path["parameter"]) != "C",
    }


def path_table(name: str, model: str, path: Facts) -> HtmlTable:
    columns = (
        number_column(str(path["parameter"]), "strength", standings.setting),
        number_column("mean score", "mean"),
        number_column("standard error", "se"),
        number_column("features used", "n_features", standings.count),
    )
    return HtmlTable.of(name, f"Path of {model}", columns, _path_rows(path))


@dataclass(frozen=True, eq=False)
class ModelPredictions:
    """Predictions of a model for samples that it was not fitted to, but for unfinished ones."""

    true: NDArray[np.intp]  # indices of classes
    label: NDArray[np.intp]
    scores: Array  # (n, n_classes)
    given: Array | None = None  # probabilities, (n, n_classes)

    @classmethod
    def of(cls, predictions: Facts, model: str, n_classes: int) -> ModelPredictions | None:
        """Those of a model in the facts of a comparison; None if there are none."""
        found = predictions.get(model)
        if not isinstance(found, Mapping) or not len(found.get("label", ())):
            return None
        label = np.array([-1 if each is None else each for each in found["label"]], dtype=np.intp)
        scores = score_matrix(found["scores"], n_classes)
        done = (label >= 0) & np.isfinite(scores).all(axis=1)
        if not done.any():
            return None
        given = found.get("probabilities")
        shares = None if given is None else score_matrix(given, n_classes, shares=True)[done]
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
) -> tuple[list[Record], list[int]]:
    """Curves of all models, by index, and classes, as plain values, and the classes that have some;
    ``counts`` are the samples of each class."""
    largest = np.argsort(-np.asarray(counts), kind="stable")[:MOST_CURVES]
    # with two classes, the curves of the second one say all
    classes = [1] if len(counts) == 2 else sorted(largest.tolist())
    points = max(20, min(MOST_POINTS, ALL_POINTS // max(1, 2 * len(held_out) * len(classes))))
    found = [
        {"m": m, "k": k, **_curves(each, k, points)}
        for m, each in held_out.items()
        for k in classes
        if 0 < (each.true == k).sum() < each.true.size
    ]
    return found, classes


class Curve(NamedTuple):
    """A curve over the unit square from the left to the right, and the area under it."""

    x: Array
    y: Array
    area: float


def curve_of(kind: str, is_class: NDArray[np.bool_], scores: Array) -> Curve:
    """The 'roc' or 'precision_recall' curve of the scores of a class."""
    ranked = score_levels(scores)
    if kind == "roc":
        x, y, _ = roc_curve(is_class, ranked)
        return Curve(x, y, float(roc_auc_score(is_class, ranked)))
    precision, recall, _ = precision_recall_curve(is_class, ranked, drop_intermediate=True)
    # precision at a recall is that of the next threshold which reaches it: steps
    x, y = np.repeat(recall[::-1], 2)[:-1], np.repeat(precision[::-1], 2)[1:]
    return Curve(x, y, float(average_precision_score(is_class, ranked)))


def _curves(held_out: ModelPredictions, k: int, points: int) -> Record:
    is_class, kinds = held_out.true == k, ("roc", "precision_recall")
    found = {kind: curve_of(kind, is_class, held_out.scores[:, k]) for kind in kinds}
    return {
        **{kind: _points(x, y, points) for kind, (x, y, _) in found.items()},
        "calibration": _calibration(held_out, k),
        "auc": found["roc"].area,
        "average_precision": found["precision_recall"].area,
        "share": float(is_class.mean()),
    }


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


def score_matrix(values: Values, n_classes: int, shares: bool = False) -> Array:
    """A score for each class, NaN where unfinished; of two classes one column is for the second."""
    rows = [row if isinstance(row, list | tuple | np.ndarray) else [row] for row in values]
    width = max((len(row) for row in rows), default=n_classes)
    blank = [None] * width
    scores = np.array([row if len(row) == width else blank for row in rows], dtype=np.float64)
    if n_classes == 2 and width == 1:
        return np.hstack([1 - scores if shares else -scores, scores])
    return scores


def thinned(x: Array, y: Array, limit: int) -> NDArray[np.intp]:
    """Indices of at most ``limit`` points of a polyline, its ends among them, in about equal steps
    along it."""
    if x.size <= limit:
        return np.arange(x.size)
    along = np.concatenate([[0.0], np.hypot(np.diff(x), np.diff(y)).cumsum()])
    places = np.searchsorted(along, np.linspace(0.0, along[-1], limit - 1))
    return np.unique(np.append(places, x.size - 1))
