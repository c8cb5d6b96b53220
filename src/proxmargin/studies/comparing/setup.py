"""The data and the settings of a comparison, as plain values that its run directory keeps."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

import proxmargin
from proxmargin.data.designs import as_design, moments
from proxmargin.studies.comparing.candidates import Candidate
from proxmargin.studies.comparing.metrics import HeldOutPredictions, Metric
from proxmargin.studies.comparing.rows import LabelledRows, TrainTestRows
from proxmargin.studies.comparing.searches import held_out, own_probabilities


@dataclass(frozen=True)
class MetricFacts:
    """What a reader must know of a metric."""

    name: str
    label: str
    larger_is_better: bool


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model before it is fitted."""

    name: str
    kind: str
    is_kernel: bool


@dataclass(frozen=True)
class Protocol:
    """How the models are compared."""

    metrics: Sequence[MetricFacts]  # the scoring first
    folds: int
    repeats: int
    grouped: bool
    random_state: int
    inner: str  # the folds inside a training part, in words
    standardize: bool
    quick: bool
    baselines: bool
    command: str | None = None
    preprocess: str | None = None  # the transformer that each training part fits

    @property
    def scoring(self) -> MetricFacts:
        return self.metrics[0]


@dataclass(frozen=True, eq=False)
class Setup:
    """The data and the settings of a comparison."""

    protocol: Protocol
    models: Sequence[ModelFacts]  # in the order asked for
    name: str | None  # of the data
    sparse: bool
    classes: Sequence[str]
    class_sizes: Sequence[int]
    feature_names: Sequence[str]  # made up (``x0``, ``x1``, ...) where the data had none
    feature_scale: Sequence[float]  # standard deviations
    # repeat, and numbers of training and test rows, of each fold of each repeat
    splits: Sequence[Sequence[int]]
    # for each metric its values on the folds for always predicting the largest class
    majority: Mapping[str, Sequence[float]]
    tested: Sequence[int]  # independent samples of each class: groups, where there are groups
    codes: Sequence[int]  # class of each sample
    rows: Sequence[Sequence[int]]  # the test rows of the folds of the first repeat
    numbers: Sequence[int] | None = None  # of rows in the caller's data; None if none is left out
    # what was found in the data before anything was fitted
    card: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def n_samples(self) -> int:
        return int(sum(self.class_sizes))

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_folds(self) -> int:
        return self.protocol.folds

    @property
    def test_ratio(self) -> float:
        """Test samples by training samples, the mean over the folds."""
        return float(np.mean([test / train for _, train, test in self.splits]))

    def model(self, name: str) -> ModelFacts:
        return next(each for each in self.models if each.name == name)

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Setup:
        protocol = dict(plain["protocol"])
        metrics = [MetricFacts(**each) for each in protocol.pop("metrics")]
        models = [ModelFacts(**each) for each in plain["models"]]
        rest = {k: v for k, v in plain.items() if k not in ("protocol", "models")}
        return cls(Protocol(metrics=metrics, **protocol), models, **rest)


def setup_of(
    protocol: Protocol,
    data: LabelledRows,
    splits: Sequence[TrainTestRows],
    candidates: Sequence[Candidate],
    metrics: Sequence[Metric],
    name: str | None,
    card: Mapping[str, Any],
    notes: Sequence[str],
) -> Setup:
    """The setup of a comparison that is about to begin."""
    classes, codes, sizes = np.unique(data.y, return_inverse=True, return_counts=True)
    names = [f"x{j}" for j in range(data.n_features)] if data.names is None else data.names
    _, scale = moments(as_design(data.X), data.shares / data.shares.sum())
    tested = sizes
    if data.groups is not None:
        tested = np.array([np.unique(data.groups[codes == k]).size for k in range(classes.size)])
    return Setup(
        protocol=protocol,
        models=[ModelFacts(each.name, each.kind, each.is_kernel) for each in candidates],
        name=name,
        sparse=data.is_sparse,
        classes=[str(label) for label in classes],
        class_sizes=sizes.tolist(),
        feature_names=[str(each) for each in names],
        feature_scale=scale.tolist(),
        splits=[(each.repeat, each.train.size, each.test.size) for each in splits],
        majority=_majority(data, splits, metrics),
        tested=tested.tolist(),
        codes=codes.tolist(),
        rows=[split.test.tolist() for split in splits if split.repeat == 0],
        numbers=None if data.numbers is None else data.numbers.tolist(),
        card=card,
        versions={
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
            "proxmargin": proxmargin.__version__,
            "python": platform.python_version(),
        },
        notes=notes,
    )


def _majority(
    data: LabelledRows, splits: Sequence[TrainTestRows], metrics: Sequence[Metric]
) -> dict[str, list[float]]:
    """The metrics of always predicting the largest class, with the shares as probabilities."""
    found: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    for split in splits:
        said = _guess(data.rows(split.train), data.rows(split.test), np.unique(data.y))
        with warnings.catch_warnings():
            # undefined precisions of the classes that it never predicts
            warnings.simplefilter("ignore")
            for metric in metrics:
                found[metric.name].append(metric(said))
    return found


def _guess(train: LabelledRows, test: LabelledRows, classes: Any) -> HeldOutPredictions:
    model = DummyClassifier(strategy="prior")
    model.fit(np.zeros((train.n_samples, 1)), train.y, sample_weight=train.weights)
    blank = replace(test, X=np.zeros((test.n_samples, 1)))
    said = held_out(model, blank, classes)
    flat = np.zeros(test.n_samples if classes.size == 2 else (test.n_samples, classes.size))
    return replace(said, scores=flat, probabilities=own_probabilities(model, blank.X), X=test.X)
