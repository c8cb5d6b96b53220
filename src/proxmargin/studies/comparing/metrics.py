"""Metrics of predictions for held-out rows, what their scores rest on, and other scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring, get_scorer_names

from proxmargin.compiled.rounding import EPS, SCORE_ROUNDING, levels, score_levels
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.models.selection.scoring import OF_LOSSES
from proxmargin.runtime.types import Array, Record, Values

LEAST_PROBABILITY = EPS  # of a class, in a logarithm; as scikit-learn's
DEFAULT_METRICS = (
    "balanced_accuracy",
    "accuracy",
    "roc_auc",
    "matthews_corrcoef",
    "log_loss",
    "brier",
)


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """What a model says about rows that it was not fitted to."""

    codes: NDArray[np.intp]  # of the true classes
    labels: NDArray[np.intp]  # of the predicted ones
    classes: Values
    scores: Array | None = None  # (n,), or (n, n_classes) of more than two classes
    probabilities: Array | None = None  # (n, n_classes)
    weights: Array | None = None
    X: Features | None = None  # only for scorers of the caller

    @cached_property
    def confusion(self) -> Array:
        """Weights of (true, predicted) classes, (n_classes, n_classes)."""
        count = self.classes.size
        pairs = np.bincount(self.codes * count + self.labels, self.weights, count**2)
        return pairs.reshape(count, count).astype(np.float64)

    def rows(self, index: NDArray[np.intp]) -> HeldOutPredictions:
        """Some of the rows."""
        names = ("scores", "probabilities", "weights", "X")
        picked: Record = {n: v if (v := getattr(self, n)) is None else v[index] for n in names}
        return replace(self, codes=self.codes[index], labels=self.labels[index], **picked)


@dataclass(frozen=True)
class Metric:
    """A number that judges predictions; NaN where they do not tell it."""

    name: str
    label: str
    of: Callable[[HeldOutPredictions], float]
    larger_is_better: bool = True
    # the least number of classes for which it reads probabilities; None: never
    probabilities_from: int | None = None
    needs_rows: bool = False  # whether it reads the features

    def __call__(self, held_out: HeldOutPredictions) -> float:
        return float(self.of(held_out))

    @property
    def sign(self) -> float:
        """What makes more of it better."""
        return 1.0 if self.larger_is_better else -1.0


def _accuracy(held_out: HeldOutPredictions) -> float:
    return float(np.trace(held_out.confusion) / held_out.confusion.sum())


def _balanced_accuracy(held_out: HeldOutPredictions) -> float:
    """The mean recall of the classes that are there."""
    totals = held_out.confusion.sum(axis=1)
    live = totals > 0
    return float(np.mean(np.diag(held_out.confusion)[live] / totals[live]))


def _matthews(held_out: HeldOutPredictions) -> float:
    """Gorodkin's R_K (2004), Matthews' coefficient of two classes; 0 if either is constant."""
    table = held_out.confusion
    true, said, total = table.sum(axis=1), table.sum(axis=0), table.sum()
    spread = (total**2 - said @ said) * (total**2 - true @ true)
    return float((np.trace(table) * total - true @ said) / np.sqrt(spread)) if spread > 0 else 0.0


def _roc_auc(held_out: HeldOutPredictions) -> float:
    """Of two classes by the score; of more the mean of one against the rest, by probabilities."""
    count, scores, shares = held_out.classes.size, held_out.scores, held_out.probabilities
    if np.unique(held_out.codes).size < count:
        return np.nan
    if count > 2:
        if shares is None:
            return np.nan
        ranked = levels(shares.T, SCORE_ROUNDING * shares.T)
        return float(np.mean([_auc(held_out, k, ranks) for k, ranks in enumerate(ranked)]))
    if scores is None and shares is not None:
        scores = shares[:, 1]
    if scores is None:
        return np.nan
    if not np.isfinite(scores).all():
        raise ValueError("roc_auc: decision values must be finite numbers")
    return _auc(held_out, 1, score_levels(scores))


def _auc(held_out: HeldOutPredictions, of: int, ranked: NDArray[np.intp]) -> float:
    """The share of pairs of a row of the class and one of another in which the first has the higher
    level, equal levels counting half; scikit-learn's takes a hundred times as long for few rows."""
    weights = np.ones(ranked.size) if held_out.weights is None else held_out.weights
    weights = weights / weights.max()
    own = weights * (held_out.codes == of)
    members, rest = np.bincount(ranked, own), np.bincount(ranked, weights - own)
    return float(members @ (np.cumsum(rest) - rest / 2) / (members.sum() * rest.sum()))


def _log_loss(held_out: HeldOutPredictions) -> float:
    if held_out.probabilities is None:
        return np.nan
    own = held_out.probabilities[np.arange(held_out.codes.size), held_out.codes]
    logs = np.log(np.clip(own, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))
    return -float(np.average(logs, weights=held_out.weights))


def _brier(held_out: HeldOutPredictions) -> float:
    """Squared error of the probabilities: of the second of two classes, summed over more."""
    if held_out.probabilities is None:
        return np.nan
    wrong = held_out.probabilities - np.eye(held_out.classes.size)[held_out.codes]
    each = wrong[:, 1:] if held_out.classes.size == 2 else wrong
    return float(np.average((each**2).sum(axis=1), weights=held_out.weights))


_OWN = (
    Metric("balanced_accuracy", "balanced accuracy", _balanced_accuracy),
    Metric("accuracy", "accuracy", _accuracy),
    Metric("roc_auc", "ROC AUC", _roc_auc, probabilities_from=3),
    Metric("matthews_corrcoef", "Matthews correlation", _matthews),
    Metric("log_loss", "log-loss", _log_loss, False, probabilities_from=2),
    Metric("brier", "Brier score", _brier, False, probabilities_from=2),
)
METRICS: Mapping[str, Metric] = MappingProxyType({each.name: each for each in _OWN})
# names of scikit-learn for the same numbers, with another sign
_NEGATED = {scorer: loss for loss, scorer in OF_LOSSES.items()}


def metrics_of(scoring: object, metrics: Iterable[object]) -> list[Metric]:
    """The scoring first, then the other metrics; raises ValueError where there is none such."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if not isinstance(metrics, Iterable):
        raise ValueError(f"metrics must be names of metrics, or scorers, got {metrics!r}")
    found = [metric_of(scoring), *(metric_of(each, "metrics") for each in metrics)]
    unique: dict[str, Metric] = {}
    for metric in found:
        unique.setdefault(metric.name, metric)
    return list(unique.values())


def metric_of(scoring: object, parameter: str = "scoring") -> Metric:
    """The metric for a name, or for a scorer as scikit-learn takes it; else raises ValueError."""
    if isinstance(scoring, str) and scoring in METRICS:
        return METRICS[scoring]
    if isinstance(scoring, str) and scoring in _NEGATED:
        own = METRICS[_NEGATED[scoring]]
        label, of = f"minus {own.label}", partial(_negative, own)
        return replace(own, name=scoring, label=label, of=of, larger_is_better=True)
    if callable(scoring):
        name = getattr(scoring, "__name__", getattr(scoring, "_score_func", scoring))
        name = name if isinstance(name, str) else getattr(name, "__name__", "score")
    elif isinstance(scoring, str) and scoring in get_scorer_names():
        name = scoring
    else:
        raise ValueError(
            f"unknown {parameter} {scoring!r}; there are {', '.join(map(repr, METRICS))}, and the "
            "names of scikit-learn's scorers, such as 'f1_macro'"
        )
    scorer = check_scoring(_Answers(), scoring)
    judge = getattr(scorer, "_score_func", None)
    if getattr(judge, "__module__", "") == "sklearn.metrics._regression":
        raise ValueError(
            f"{parameter} {name!r} judges predicted numbers, not classes; there are "
            f"{', '.join(map(repr, METRICS))}, and the names of scikit-learn's scorers of "
            "classifiers, such as 'f1_macro'"
        )
    rows = not isinstance(scoring, str)
    of = partial(_asked, name, scorer, rows)
    return Metric(name, name.replace("_", " "), of, probabilities_from=2, needs_rows=rows)


def _negative(metric: Metric, held_out: HeldOutPredictions) -> float:
    return -metric(held_out)


def _asked(
    name: str, scorer: Callable[..., float], rows: bool, held_out: HeldOutPredictions
) -> float:
    """A scorer of scikit-learn, which is shown the predictions as if they were a model."""
    weights = {} if held_out.weights is None else {"sample_weight": held_out.weights}
    X = held_out.X if rows else np.zeros((held_out.codes.size, 1))
    try:
        return float(scorer(_Answers(held_out), X, held_out.classes[held_out.codes], **weights))
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"scoring={name!r} cannot be computed from predictions: {error}"
        ) from error


class _Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier that knows its answers for the held-out rows only."""

    def __init__(self, held_out: HeldOutPredictions | None = None) -> None:
        self.held_out = held_out
        if held_out is None:
            return
        self.classes_ = held_out.classes
        answers = {
            "predict": held_out.classes[held_out.labels],
            "decision_function": held_out.scores,
            "predict_proba": held_out.probabilities,
        }
        for name, answer in answers.items():
            if answer is not None:
                setattr(self, name, method := lambda X, answer=answer: answer)
                method.__name__ = name  # which scikit-learn reads

    def fit(self, X: Features, y: Labels) -> _Answers:
        return self


UNSEEN = 1.0  # row: added to those on which two models differ (Agresti and Min 2005: half to each)


@dataclass(frozen=True)
class MetricRange:
    """The range of a metric, and the independent test rows that its mean rests on: few rows agree
    by chance, and a score without spread over the folds is not certain."""

    low: float = -np.inf
    high: float = np.inf
    rows: float = np.nan  # once each, however often folds are repeated; NaN if not known
    # whether the score is a share of rows, as an accuracy. Otherwise ``rows`` is a lower bound that
    # is used only where scores have no spread
    counted: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the rows say anything: the range is finite and there is a number of rows."""
        return bool(np.isfinite([self.low, self.high, self.rows]).all())

    def unit(self, majority: float) -> float:
        """What makes differences comparable with those of a balanced accuracy: the width of the
        range, and of a loss, which has none, twice that of the largest class; else NaN."""
        ends = [end for end in (self.low, self.high) if np.isfinite(end)]
        if len(ends) == 1:
            return 2.0 * abs(majority - ends[0])
        return self.high - self.low if ends else np.nan

    def interval(self, mean: Array, confidence: float) -> tuple[Array, Array]:
        """The interval of Clopper and Pearson (1934) for a share of the rows; else the mean."""
        if not self.is_known:
            return mean, mean
        width, tail = self.high - self.low, 0.5 * (1 - confidence)
        hits = np.clip((mean - self.low) / width, 0.0, 1.0) * self.rows
        misses = self.rows - hits
        with np.errstate(invalid="ignore"):
            low = np.where(hits <= 0, 0.0, beta.ppf(tail, hits, misses + 1))
            high = np.where(misses <= 0, 1.0, beta.isf(tail, hits + 1, misses))
        return self.low + width * low, self.low + width * high

    def error(self, difference: Array) -> Array:
        """The least standard error of a difference ``d`` between shares of the same n rows (zero
        where unknown): the models differ on ``n d`` rows or more, and `UNSEEN`, with variance ``(d
        - d^2) / n``."""
        if not self.is_known:
            return np.zeros_like(difference)
        width = self.high - self.low
        share = np.minimum(np.abs(difference) / width, 1.0)
        return np.asarray(width * np.sqrt((share + UNSEEN / self.rows - share**2) / self.rows))


def _of_classes(sizes: Array) -> float:
    """The rows of as certain a mean over rows as one over classes that are all as hard."""
    return float(sizes.size**2 / (1 / sizes).sum())


# of each metric: the range, the rows by the sizes of the classes, and whether it is a share of
# them. Pairs of rows of two classes: their variance is below ``A (1 - A) / min(n)``
_RANGES: dict[str, tuple[float, float, Callable[[Array], float] | None, bool]] = {
    "accuracy": (0.0, 1.0, np.sum, True),
    "balanced_accuracy": (0.0, 1.0, _of_classes, True),
    "matthews_corrcoef": (-1.0, 1.0, _of_classes, True),
    **dict.fromkeys(("roc_auc", "roc_auc_ovr", "roc_auc_ovo"), (0.0, 1.0, np.min, False)),
    **dict.fromkeys(("average_precision", "f1"), (0.0, 1.0, np.min, False)),
    **dict.fromkeys(("f1_macro", "f1_weighted"), (0.0, 1.0, np.min, False)),
    "log_loss": (0.0, np.inf, None, False),
    "neg_log_loss": (-np.inf, 0.0, None, False),
    "brier": (0.0, np.inf, None, False),
    "neg_brier_score": (-np.inf, 0.0, None, False),
}


def independent_samples(
    codes: NDArray[np.intp], weights: Array | None, groups: Values | None
) -> Array:
    """Independent samples of each class: groups, where there are groups; of rows with weights as
    many as have the variance of their mean (Kish 1965)."""
    if groups is not None:
        members = [np.unique(groups[codes == k]).size for k in range(codes.max() + 1)]
        return np.array(members, np.float64)
    shares = np.ones(codes.size) if weights is None else weights
    return np.asarray(np.bincount(codes, shares) ** 2 / np.bincount(codes, shares**2))


def basis_of(metric: str, class_sizes: Sequence[int] | ArrayLike) -> MetricRange:
    """What the scores of a metric rest on; nothing of an unknown one. ``class_sizes``: tested
    samples of each class, or groups, within which samples are not independent."""
    sizes = np.asarray(class_sizes, dtype=np.float64)
    if metric not in _RANGES:
        return MetricRange()
    low, high, rows, counted = _RANGES[metric]
    return MetricRange(low, high, np.nan if rows is None else rows(sizes), counted)
