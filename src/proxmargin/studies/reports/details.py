"""Predictions for held-out rows as curves and confusions; features and path of one model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from proxmargin.studies.reports.standings import (
    NONE,
    Column,
    HtmlTable,
    count,
    known,
    leaning,
    percent,
    score,
    setting,
    signed,
)

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
    shares = counts / np.where(sizes, sizes, np.nan)[:, None]
    shades = (SHADES * np.nan_to_num(shares)).round().astype(int)
    parts = (counts, shares, shades)
    cells = [
        [(int(c), percent(float(share)), int(shade)) for c, share, shade in zip(*row, strict=True)]
        for row in zip(*parts, strict=True)
    ]
    wrong = counts - np.diag(counts.diagonal())
    row, column = divmod(int(wrong.argmax()), len(labels))
    often = int(wrong.max())
    times = "once" if often == 1 else f"{often:,} times"
    mistake = (
        f"The most frequent mistake: {labels[row]} taken for {labels[column]}, {times}."
        if often
        else "None is in a wrong one."
    )
    right = f"{counts.trace():,} of {counts.sum():,} samples are in the right class."
    rows = [*zip(labels, cells, strict=True)]
    return {"labels": labels, "rows": rows, "summary": f"{right} {mistake}"}


def feature_chart(rows: Sequence[Facts], labels: Sequence[str]) -> list[Record]:
    """Values of the chart of the largest weights."""
    return [
        {
            "row": place,
            "feature": row["feature"] if len(labels) == 2 else f"{row['feature']} · {row['class']}",
            "weight": row["weight"],
            "sign": "for" if row["weight"] > 0 else "against",
            "frequency": row.get("frequency"),
            "tip": f"{row['feature']}: {signed(row['weight'])}, {leaning(row, labels)}; "
            f"in {percent(row.get('frequency'))} of the folds",
        }
        for place, row in enumerate(rows[:CHARTED])
    ]


def feature_table(name: str, model: str, rows: Sequence[Facts], labels: Sequence[str]) -> HtmlTable:
    def agreeing(row: Facts) -> float | None:
        used, same = row.get("frequency"), row.get("sign_agreement")
        return used * (same if known(same) else 0.0) if known(used) else None

    columns = (
        Column("feature", "feature", None),
        Column("weight", "weight", signed, "of the score, per standard deviation of the feature"),
        Column("higher values speak", lambda row: leaning(row, labels), None),
        Column(
            "used in folds", "frequency", percent, "share of the outer folds whose model uses it"
        ),
        Column(
            "with this sign",
            agreeing,
            percent,
            "share of the outer folds whose model uses it in this direction",
        ),
        Column("area under ROC alone", "auc", why="of the feature, for the class it is of"),
        Column("goes along with", partners, None, "features with a correlation of 0.8 or more"),
    )
    return HtmlTable.of(name, f"Features of {model}, the largest weights first", columns, rows)


def partners(row: Facts) -> str:
    """The correlated features of a row, with their correlations."""
    near = [f"{name} ({score(value, 2)})" for name, value in row.get("partners") or ()]
    return ", ".join(near) or NONE


def _path_rows(path: Facts) -> list[Record]:
    keys, size = ("mean", "se", "n_features"), len(path["strengths"])
    columns = [path["strengths"], *(path.get(key) or [None] * size for key in keys)]
    return [
        dict(zip(("strength", *keys), each, strict=True)) for each in zip(*columns, strict=True)
    ]


def path_chart(path: Facts) -> Record | None:
    """Values of the chart of scores along the strengths; None where these are no numbers."""
    rows = []
    for strength, mean, se, n in map(dict.values, _path_rows(path)):
        # a logarithmic axis has no place for zero
        if known(mean) and known(strength) and strength > 0:
            spread = se if known(se) else 0.0
            tip = (
                f"{path['parameter']} {strength:.3g}: {score(mean)} ± {score(se)}, "
                f"{count(n)} features"
            )
            found = {"strength": strength, "mean": mean, "n": n, "tip": tip}
            rows.append({**found, "low": mean - spread, "high": mean + spread})
    if not rows:
        return None
    chosen = path.get("chosen")
    return {
        "rows": rows,
        "chosen": [{"strength": chosen}] if known(chosen) and chosen > 0 else [],
        "parameter": str(path["parameter"]),
        # strong penalties at the left: fewer features there, as everywhere in the library
        "falls": str(path["parameter"]) != "C",
    }


def path_table(name: str, model: str, path: Facts) -> HtmlTable:
    columns = (
        Column(str(path["parameter"]), "strength", setting),
        Column("mean score", "mean"),
        Column("standard error", "se"),
        Column("features used", "n_features", count),
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


def class_of_curves(facts: Facts) -> int:
    """The class whose curves come first: the positive one, by default the second."""
    labels = [str(each["label"]) for each in facts["data"]["classes"]]
    positive = (facts.get("clinical") or {}).get("positive")
    return labels.index(str(positive)) if str(positive) in labels else min(1, len(labels) - 1)


def curves_of(
    held_out: Mapping[int, ModelPredictions], counts: Sequence[int], first: int = 1
) -> tuple[list[Record], list[int]]:
    """Curves of all models, by index, and classes, as plain values, and the classes that have some;
    ``counts`` are the samples of each class. Of two classes the curves of the ``first`` say all."""
    largest = np.argsort(-np.asarray(counts), kind="stable")[:MOST_CURVES]
    classes = [first] if len(counts) == 2 else sorted(largest.tolist())
    points = max(20, min(MOST_POINTS, ALL_POINTS // max(1, 2 * len(held_out) * len(classes))))
    found = [
        {"m": m, "k": k, **_curves(each, k, points)}
        for m, each in held_out.items()
        for k in classes
        if 0 < (each.true == k).sum() < each.true.size
    ]
    return found, classes


def curve_of(kind: str, is_class: NDArray[np.bool_], scores: Array) -> tuple[Array, Array, float]:
    """The 'roc' or 'precision_recall' curve of the scores of a class over the unit square, from the
    left to the right, and the area under it."""
    ranked = score_levels(scores)
    if kind == "roc":
        x, y, _ = roc_curve(is_class, ranked)
        return x, y, float(roc_auc_score(is_class, ranked))
    precision, recall, _ = precision_recall_curve(is_class, ranked, drop_intermediate=True)
    # precision at a recall is that of the next threshold which reaches it: steps
    x, y = np.repeat(recall[::-1], 2)[:-1], np.repeat(precision[::-1], 2)[1:]
    return x, y, float(average_precision_score(is_class, ranked))


def _curves(held_out: ModelPredictions, k: int, points: int) -> Record:
    is_class, scores = held_out.true == k, held_out.scores[:, k]
    x, y, auc = curve_of("roc", is_class, scores)
    recall, precision, average_precision = curve_of("precision_recall", is_class, scores)
    return {
        "roc": _points(x, y, points),
        "precision_recall": _points(recall, precision, points),
        "calibration": calibration(held_out, k),
        "auc": auc,
        "average_precision": average_precision,
        "share": float(is_class.mean()),
    }


def calibration(held_out: ModelPredictions, k: int) -> list[list[float]] | None:
    """Predicted probabilities of a class and observed shares, of rows in equal numbers; None
    without probabilities."""
    shares = held_out.probabilities
    if shares is None:
        return None
    bins = max(2, min(BINS, shares.shape[0] // BIN_SAMPLES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bins that coincide where probabilities are tied
        observed, predicted = calibration_curve(
            held_out.true == k, np.clip(shares[:, k], 0, 1), n_bins=bins, strategy="quantile"
        )
    return _points(predicted, observed, bins)


def _points(x: Array, y: Array, limit: int) -> list[list[float]]:
    kept = thinned(x, y, limit)
    found: list[list[float]] = np.column_stack([x, y])[kept].round(DIGITS).tolist()
    return found


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
