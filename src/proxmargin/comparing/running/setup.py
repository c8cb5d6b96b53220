"""The data and the settings of a comparison, as plain values that its run directory keeps."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

import proxmargin
from proxmargin.comparing.evaluating.candidates import Candidate
from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.fits import held_out, own_probabilities
from proxmargin.comparing.evaluating.folds import INNER_FOLDS, TrainTestRows
from proxmargin.comparing.evaluating.metrics import HeldOutPredictions, Metric
from proxmargin.designs import as_design, moments

__all__ = ["MetricFacts", "ModelFacts", "Protocol", "Setup", "setup_of"]

SHOWN_CLASSES = 6  # in the line on the data


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
    """How the models are compared.

    Attributes
    ----------
    metrics : list of MetricFacts
        The scoring first.
    folds, repeats : int
    grouped : bool
    random_state : int
    inner : str
    standardize : bool
    quick, baselines : bool
    command : str or None
    preprocess : str or None
        The transformer that each training part fits.
    """

    metrics: Sequence[MetricFacts]
    folds: int
    repeats: int
    grouped: bool
    random_state: int
    inner: str
    standardize: bool
    quick: bool
    baselines: bool
    command: str | None = None
    preprocess: str | None = None

    @property
    def scoring(self) -> MetricFacts:
        return self.metrics[0]


@dataclass(frozen=True, eq=False)
class Setup:
    """The data and the settings of a comparison.

    Attributes
    ----------
    protocol : Protocol
    models : list of ModelFacts
        In the order asked for.
    name : str or None
        Of the data.
    sparse : bool
    classes : list of str
    class_sizes : list of int
    feature_names : list of str
        Made up (``x0``, ``x1``, ...) where the data had none.
    feature_scale : list of float
        Standard deviations of the features.
    splits : list of (int, int, int)
        Repeat, and numbers of training and test rows, of each fold of each repeat.
    majority : dict
        For each metric its values on the folds for always predicting the largest class.
    tested : list of int
        Independent samples of each class that are tested: groups, where there are groups.
    codes : list of int
        Class of each sample.
    rows : list of lists of int
        The test rows of the folds of the first repeat.
    numbers : list of int or None
        Row numbers in the caller's data; None if no row was left out.
    card : dict
        What was found in the data before anything was fitted.
    versions : dict
    notes : list of str
    """

    protocol: Protocol
    models: Sequence[ModelFacts]
    name: str | None
    sparse: bool
    classes: Sequence[str]
    class_sizes: Sequence[int]
    feature_names: Sequence[str]
    feature_scale: Sequence[float]
    splits: Sequence[Sequence[int]]
    majority: Mapping[str, Sequence[float]]
    tested: Sequence[int]
    codes: Sequence[int]
    rows: Sequence[Sequence[int]]
    numbers: Sequence[int] | None = None
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
    def scoring(self) -> str:
        return self.protocol.scoring.label

    @property
    def test_ratio(self) -> float:
        """Test samples by training samples, the mean over the folds."""
        return float(np.mean([test / train for _, train, test in self.splits]))

    def model(self, name: str) -> ModelFacts:
        return next(each for each in self.models if each.name == name)

    def summary(self) -> str:
        """One line on the data."""
        sizes = zip(self.classes, self.class_sizes, strict=True)
        shown = [f"{label} {size}" for label, size in sizes]
        listed = ", ".join(shown[:SHOWN_CLASSES]) + (", ..." if len(shown) > SHOWN_CLASSES else "")
        repeated = f", {self.protocol.repeats} times" if self.protocol.repeats > 1 else ""
        grouped = " of whole groups" if self.protocol.grouped else ""
        transformer = self.protocol.preprocess
        prepared = f"; each training part fits {transformer}" if transformer else ""
        how = "standardised" if self.protocol.standardize else "as they are"
        return (
            f"{self.n_samples} samples, {self.n_features} features ({how}), {len(shown)} classes "
            f"({listed}); {self.n_folds} folds{grouped}{repeated}{prepared}"
        )

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
    data: LabelledRows,
    splits: Sequence[TrainTestRows],
    candidates: Sequence[Candidate],
    metrics: Sequence[Metric],
    notes: Sequence[str],
    *,
    name: str | None,
    card: Mapping[str, Any],
    **protocol: Any,
) -> Setup:
    """The setup of a comparison that is about to begin."""
    classes, codes, sizes = np.unique(data.y, return_inverse=True, return_counts=True)
    names = [f"x{j}" for j in range(data.n_features)] if data.names is None else data.names
    _, scale = moments(as_design(data.X), data.shares / data.shares.sum())
    first = [split for split in splits if split.repeat == 0]
    return Setup(
        protocol=Protocol(
            metrics=[MetricFacts(e.name, e.label, e.larger_is_better) for e in metrics],
            folds=len(first),
            repeats=splits[-1].repeat + 1,
            grouped=data.groups is not None,
            inner=f"{INNER_FOLDS} folds{'' if data.groups is None else ' of whole groups'}",
            **protocol,
        ),
        models=[ModelFacts(each.name, each.kind, each.is_kernel) for each in candidates],
        name=name,
        sparse=data.is_sparse,
        classes=[str(label) for label in classes],
        class_sizes=sizes.tolist(),
        feature_names=[str(each) for each in names],
        feature_scale=scale.tolist(),
        splits=[(each.repeat, each.train.size, each.test.size) for each in splits],
        majority=_majority(data, splits, metrics),
        tested=_tested(data, codes, classes.size),
        codes=codes.tolist(),
        rows=[split.test.tolist() for split in first],
        numbers=None if data.numbers is None else data.numbers.tolist(),
        card=card,
        versions=_versions(),
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


def _tested(data: LabelledRows, codes: Any, n_classes: int) -> list[int]:
    """Samples of each class, or groups that hold samples of it."""
    if data.groups is None:
        return np.bincount(codes, minlength=n_classes).tolist()
    return [int(np.unique(data.groups[codes == k]).size) for k in range(n_classes)]


def _versions() -> dict[str, str]:
    import scipy
    import sklearn

    modules = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "proxmargin": proxmargin}
    versions = {name: str(module.__version__) for name, module in modules.items()}
    return {**versions, "python": platform.python_version()}
