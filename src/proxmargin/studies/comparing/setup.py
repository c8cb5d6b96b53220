"""The data and the settings of a comparison, and the run directory that keeps every finished task.

``run.json`` holds the setup and the identity of data and settings, ``tasks/00007.json`` the outcome
of a task with a digest, ``models/`` the final models. All files are written whole or not at all; a
task file that is damaged all the same counts as not finished. One process at a time works in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import IO

import numpy as np

import proxmargin
from proxmargin.data.designs import as_design, moments
from proxmargin.models.classifiers.multiclass import MulticlassSVC
from proxmargin.runtime.files import replaced, taken
from proxmargin.runtime.types import Estimator, Facts, Record
from proxmargin.solvers.resuming.journal import Identity
from proxmargin.studies.comparing.candidates import MAJORITY_MODEL, Candidate
from proxmargin.studies.comparing.metrics import Metric, independent_samples
from proxmargin.studies.comparing.rows import LabelledRows, TrainTestRows
from proxmargin.studies.comparing.work import FoldTask, Outcome, perform


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
    has_probabilities: bool = False  # of its own
    is_multiclass: bool = False  # whether it treats two classes as it does several


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
    # the class whose presence is told by clinical numbers; None: the second of two, else none
    positive: str | None = None
    weighted: bool = False

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
    tested: Sequence[float]  # independent samples of each class (`independent_samples`)
    codes: Sequence[int]  # class of each sample
    rows: Sequence[Sequence[int]]  # the test rows of the folds of the first repeat
    numbers: Sequence[int] | None = None  # of rows in the caller's data; None if none is left out
    ids: Sequence[int | str] | None = None  # names of the samples, if they have such
    groups: Sequence[int] | None = None  # group of each sample, where there are groups
    # what was found in the data before anything was fitted
    card: Facts = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def n_samples(self) -> int:
        return int(sum(self.class_sizes))

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def row_ids(self) -> list[object]:
        """The name of each sample, or its number in the caller's data."""
        return list(self.ids or self.numbers or range(self.n_samples))

    @property
    def positive(self) -> int | None:
        """The number of the class whose presence is told by clinical numbers, if any."""
        if self.protocol.positive is not None:
            return list(self.classes).index(self.protocol.positive)
        return 1 if len(self.classes) == 2 else None

    @property
    def test_ratio(self) -> float:
        """Test samples by training samples, the mean over the folds."""
        return float(np.mean([test / train for _, train, test in self.splits]))

    def model(self, name: str) -> ModelFacts:
        return next(each for each in self.models if each.name == name)

    def to_plain(self) -> Record:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Facts) -> Setup:
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
    card: Facts,
    notes: Sequence[str],
) -> Setup:
    """The setup of a comparison that is about to begin."""
    classes, codes, sizes = np.unique(data.y, return_inverse=True, return_counts=True)
    names = [f"x{j}" for j in range(data.n_features)] if data.names is None else data.names
    _, scale = moments(as_design(data.X), data.shares / data.shares.sum())
    return Setup(
        protocol=protocol,
        models=[_facts_of(each) for each in candidates],
        name=name,
        sparse=data.is_sparse,
        classes=[str(label) for label in classes],
        class_sizes=sizes.tolist(),
        feature_names=[str(each) for each in names],
        feature_scale=scale.tolist(),
        splits=[(each.repeat, each.train.size, each.test.size) for each in splits],
        majority=_majority(data, splits, metrics),
        tested=independent_samples(codes, data.weights, data.groups).tolist(),
        codes=codes.tolist(),
        rows=[split.test.tolist() for split in splits if split.repeat == 0],
        numbers=None if data.numbers is None else data.numbers.tolist(),
        ids=None if data.ids is None else data.ids.tolist(),
        groups=None if data.groups is None else data.groups.tolist(),
        card=card,
        versions={
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
            "proxmargin": proxmargin.__version__,
            "python": platform.python_version(),
        },
        notes=notes,
    )


def _facts_of(candidate: Candidate) -> ModelFacts:
    model = candidate.make()
    own, multiclass = hasattr(model, "predict_proba"), isinstance(model, MulticlassSVC)
    return ModelFacts(candidate.name, candidate.kind, candidate.is_kernel, own, multiclass)


def _majority(
    data: LabelledRows, splits: Sequence[TrainTestRows], metrics: Sequence[Metric]
) -> dict[str, list[float]]:
    """The metrics of always predicting the largest class, with the shares as probabilities."""
    tasks = (FoldTask(MAJORITY_MODEL, k, split, 0, keeps=False) for k, split in enumerate(splits))
    scores = [perform(task, data, metrics).scores for task in tasks]
    return {metric.name: [each[metric.name] for each in scores] for metric in metrics}


FORMAT = "proxmargin run"  # by which a file is known
VERSION = 1  # of the format
RUN = "run.json"  # the file of setup and identity
TASKS = "tasks"  # the folder of outcomes
MODELS = "models"  # the folder of the final models
NAMED = 60  # characters of a model's name in the name of its file
# errors of damaged files
DAMAGE = (OSError, ValueError, KeyError, TypeError)


@dataclass
class RunDirectory:
    """The directory of one comparison."""

    path: Path
    keys: Sequence[tuple[str, int]]  # (model, fold) of all tasks, in their order
    identity: Identity
    setup: Setup
    # the finished tasks, those of earlier runs included
    outcomes: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def opened(self) -> Iterator[Setup]:
        """The setup of the first run, after reading what is finished, or beginning; no other
        process can open the directory meanwhile. ValueError: it holds something else, or is in use.
        OSError: unwritable."""
        name = os.fspath(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"run_dir={name!r} is a file: give a new or an empty directory")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"run_dir cannot be made ({error.strerror})"
            raise OSError(error.errno, reason, name) from error
        lock = locked(self.path)
        with lock if lock is not None else nullcontext():
            yield self._open()

    def _open(self) -> Setup:
        name = os.fspath(self.path)
        if (self.path / RUN).exists():
            facts = _read_facts(self.path)
            objection = self.identity.objection(Identity.from_plain(facts["identity"]))
            if objection is not None:
                raise ValueError(
                    f"run_dir={name!r} holds another comparison: {objection}; give another "
                    "directory, or the same data and settings"
                )
            known = Setup.from_plain(facts["setup"])
            # how results are shown is for each call to say
            protocol = replace(known.protocol, positive=self.setup.protocol.positive)
            self.setup = replace(known, protocol=protocol, ids=self.setup.ids)
        else:
            others = [each for each in sorted(os.listdir(self.path)) if not each.startswith(".")]
            if others:
                raise ValueError(
                    f"run_dir={name!r} holds {others[0]!r} and no comparison: give a new or an "
                    "empty directory"
                )
            facts = {
                "format": FORMAT,
                "version": VERSION,
                "identity": asdict(self.identity),
                "n_tasks": len(self.keys),
                "setup": self.setup.to_plain(),
            }
            with replaced(self.path / RUN) as stream:
                stream.write(json.dumps(facts, ensure_ascii=False).encode())
        for folder in (TASKS, MODELS):
            (self.path / folder).mkdir(exist_ok=True)
        for number, key in enumerate(self.keys):
            outcome = _read_task(self.path, number)
            if outcome is not None and outcome.key == key:
                self.outcomes[key] = outcome
        return self.setup

    def add(self, outcome: Outcome) -> None:
        """Keep a finished task, its model too. A full disk costs a warning and no result."""
        self.outcomes[outcome.key] = outcome
        try:
            number, estimator = self.keys.index(outcome.key), outcome.estimator
            # the model first: a task file says that the task is complete
            file = _model_file(self.path, number, outcome.model)
            saved = estimator is not None and _saved(estimator, file)
            text = json.dumps({**outcome.to_plain(), "saved": saved}, ensure_ascii=False)
            with replaced(_task_file(self.path, number)) as stream:
                stream.write(f"{_digest(text)}\n{text}\n".encode())
        except OSError as error:
            if not self.notes:
                note = f"{self.path} cannot be written ({error}): finished work is in memory only"
                warnings.warn(note, UserWarning, stacklevel=2)
                self.notes.append(note)


def seed_of(run_dir: str | os.PathLike[str]) -> int | None:
    """The seed of the comparison in a directory; None if there is none."""
    if not (Path(run_dir) / RUN).exists():
        return None
    return int(_read_facts(Path(run_dir))["setup"]["protocol"]["random_state"])


def read_run(run_dir: str | os.PathLike[str]) -> tuple[Setup, list[Outcome], bool]:
    """The setup, the finished tasks in their order, and whether these are all. Raises ValueError:
    there is no comparison in it."""
    path = Path(run_dir)
    facts = _read_facts(path)
    found = [_read_task(path, number) for number in range(facts["n_tasks"])]
    outcomes = [outcome for outcome in found if outcome is not None]
    return Setup.from_plain(facts["setup"]), outcomes, len(outcomes) == len(found)


def _read_facts(path: Path) -> Facts:
    name = os.fspath(path)
    if not (path / RUN).exists():
        raise ValueError(f"{name} is no directory of a comparison: it has no {RUN}")
    try:
        facts = json.loads((path / RUN).read_bytes())
        known, version = facts["format"] == FORMAT, facts["version"]
        facts["identity"], facts["setup"], facts["n_tasks"]
    except DAMAGE as error:
        raise ValueError(f"{name}/{RUN} is damaged ({error})") from error
    if not known or version != VERSION:
        raise ValueError(f"{name}/{RUN} was written by another version of proxmargin")
    return dict(facts)


def _task_file(path: Path, number: int) -> Path:
    return path / TASKS / f"{number:05d}.json"


def _model_file(path: Path, number: int, model: str) -> Path:
    return path / MODELS / f"{number:05d}-{re.sub(r'[^A-Za-z0-9_-]', '_', model)[:NAMED]}.pmz"


def _saved(estimator: Estimator, file: Path) -> bool:
    """Whether the model was saved; those of other libraries cannot be."""
    from proxmargin.data.inputs.preprocessing import Preprocessed
    from proxmargin.files.models.model import save_model
    from proxmargin.models.fitting.base import MarginEstimator

    model = estimator.model if isinstance(estimator, Preprocessed) else estimator
    if not isinstance(model, MarginEstimator):
        return False
    try:
        save_model(estimator, file)
    except (TypeError, ValueError) as error:
        if isinstance(error, OSError):
            raise
        return False
    return True


def _read_task(path: Path, number: int) -> Outcome | None:
    """The outcome of a task; None if it is not finished or its file is damaged."""
    from proxmargin.files.models.model import load_model

    try:
        digest, _, text = _task_file(path, number).read_text("utf-8").partition("\n")
        text = text.rstrip("\n")
        if digest != _digest(text):
            return None
        plain = json.loads(text)
        saved = plain.pop("saved")
        outcome = Outcome.from_plain(plain)
        if not saved:
            return outcome
        return replace(outcome, estimator=load_model(_model_file(path, number, outcome.model)))
    except DAMAGE:
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


LOCK = ".lock"  # in the run directory; a leftover file is no lock
OWNER = 200  # characters of what an owner writes into it


def locked(folder: Path) -> IO[str] | None:
    """The open lock file, locked until it is closed or its process ends; None where it cannot be
    written. ValueError names the process that works in the directory."""
    try:
        stream = open(folder / LOCK, "a+", encoding="utf-8")  # noqa: SIM115
    except OSError:
        return None
    if not taken(stream, without=True):
        with stream:
            stream.seek(0)
            owner = stream.read(OWNER).strip() or "another process"
        raise ValueError(
            f"run_dir={os.fspath(folder)!r} is in use by {owner}: wait until it has ended, or give "
            "another directory"
        )
    with suppress(OSError):  # a full disk
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
    return stream
