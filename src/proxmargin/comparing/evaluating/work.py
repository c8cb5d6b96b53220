"""One unit of work: choose the settings of a model on training rows, refit, score on test rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from proxmargin.comparing.evaluating.candidates import Candidate
from proxmargin.comparing.evaluating.choosing import ChosenSettings, chosen
from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.fits import (
    Tally,
    coefficients,
    features_used,
    fitted,
    held_out,
    own_probabilities,
)
from proxmargin.comparing.evaluating.folds import TrainTestRows, inner_splits
from proxmargin.comparing.evaluating.metrics import HeldOutPredictions, Metric
from proxmargin.comparing.evaluating.searches import Settings
from proxmargin.compiled.clock import clock
from proxmargin.inputs.preprocessing import Preprocessed
from proxmargin.runtime.threads import quiet_threads

__all__ = ["FoldTask", "Outcome", "Tally", "perform"]

# beginnings of scikit-learn's warnings about held-out rows that lack a class
_OF_SMALL_FOLDS = ("y_pred contains classes not in y_true", "A single label was found")
STRENGTHS = ("alpha_", "C_", "l1_ratio_", "gamma_")  # of classifiers that choose them by themselves


@dataclass(frozen=True, eq=False)
class FoldTask:
    """A model and a fold; without a split, all rows are training rows and nothing is scored."""

    candidate: Candidate
    fold: int | None
    split: TrainTestRows | None
    seed: int
    keeps: bool = True

    @property
    def key(self) -> tuple[str, int]:
        """Which task of a comparison it is; the fit to all rows has the number -1."""
        return self.candidate.name, -1 if self.fold is None else self.fold


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a task, all plain values but for the estimator.

    Attributes
    ----------
    model : str
    fold : int or None
        Among those of all repeats; None for all rows.
    scores : dict
        A number for each metric, on the test rows; NaN where it does not exist.
    features_used : int
    seconds : float
        Time of the refit, without the compilation of kernels.
    relative_gap, passes : float
        Certified for the refit; NaN for a model without a certificate.
    certified : bool or None
        Whether the gap of the refit met its tolerance.
    settings : dict
        As chosen on the training rows.
    tally : Tally
        Over all fits of the task.
    used : dict
        The features with a coefficient: ``features`` (their numbers; None for all of them) and
        ``weights``, a list a class; empty for models without coefficients.
    held : dict
        Predictions for the test rows, if they are kept: ``labels``, ``scores``, ``probabilities``.
    curve : dict
        Inner scores along the strength.
    spent, compiling : float
        Wall-clock seconds of the task, and those of them in which kernels were compiled.
    messages : tuple of str
        Other warnings, each once.
    estimator : the refit on all rows, else None
    """

    model: str
    fold: int | None
    scores: dict[str, float]
    features_used: int
    seconds: float
    relative_gap: float
    passes: float
    certified: bool | None
    settings: Settings
    tally: Tally
    used: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Any] = field(default_factory=dict)
    curve: dict[str, Any] = field(default_factory=dict)
    spent: float = 0.0
    compiling: float = 0.0
    messages: tuple[str, ...] = ()
    estimator: Any = None

    @property
    def key(self) -> tuple[str, int]:
        return self.model, -1 if self.fold is None else self.fold

    def to_plain(self) -> dict[str, Any]:
        """Everything but the estimator, as JSON has it; numbers keep all their bits."""
        return asdict(replace(self, estimator=None))

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Outcome:
        tally, messages = Tally(**plain["tally"]), (*plain["messages"],)
        return cls(**{**plain, "tally": tally, "messages": messages})


def perform(task: FoldTask, data: LabelledRows, metrics: Sequence[Metric]) -> Outcome:
    """Choose the settings, refit, and score; test rows are read by the scores only."""
    started, without_compiling = perf_counter(), clock()
    train = data if task.split is None else data.rows(task.split.train)
    # the number of BLAS threads changes the last bits of sums
    with warnings.catch_warnings(record=True) as caught, quiet_threads(0):
        warnings.simplefilter("always")
        tried = task.candidate.search.tried(
            task.candidate.make, train, inner_splits(train, task.seed)
        )
        choice = chosen(tried, train, metrics[0])
        ready, transformer = train.prepared()
        model, seconds = _refitted(task, choice, ready)
        certificate = getattr(model, "certificate_", None)
        tried.tally.count(certificate)
        judged = None
        if task.split is not None:
            test = data.rows(task.split.test).transformed(transformer)
            judged = _judged(model, choice, test, np.unique(data.y))
        scores = {} if judged is None else {each.name: each(judged) for each in metrics}
    spent = perf_counter() - started
    return Outcome(
        model=task.candidate.name,
        fold=task.fold,
        scores=scores,
        features_used=features_used(model),
        seconds=seconds,
        relative_gap=float(getattr(certificate, "relative_gap", np.nan)),
        passes=float(getattr(certificate, "n_passes", np.nan)),
        certified=None if certificate is None else bool(certificate.converged),
        settings=_settings(model, choice),
        tally=tried.tally,
        # features of other folds may be others
        used=_used(model) if ready.outputs == data.outputs else {},
        held=_plain(judged) if judged is not None and task.keeps else {},
        curve=choice.curve,
        spent=spent,
        compiling=max(0.0, spent - (clock() - without_compiling)),
        messages=_messages(caught),
        estimator=_whole(model, transformer) if task.split is None else None,
    )


def _refitted(task: FoldTask, choice: ChosenSettings, train: LabelledRows) -> tuple[Any, float]:
    model = task.candidate.make().set_params(**choice.settings)
    started = clock()
    model = fitted(model, train)
    return model, clock() - started


def _whole(model: Any, transformer: Any) -> Any:
    """The model for the caller's data."""
    return model if transformer is None else Preprocessed.of(transformer, model)


def _judged(
    model: Any, choice: ChosenSettings, test: LabelledRows, classes: NDArray[Any]
) -> HeldOutPredictions:
    """What the model says about the test rows, with calibrated probabilities."""
    said = held_out(model, test, classes)
    if choice.calibrator is not None and said.scores is not None:
        return replace(said, probabilities=choice.calibrator.probabilities(said.scores))
    return replace(said, probabilities=own_probabilities(model, test.X))


def _settings(model: Any, choice: ChosenSettings) -> Settings:
    """The chosen settings; of a classifier that has chosen by itself its choice."""
    own = dict(getattr(model, "best_params_", {}))
    if hasattr(model, "cv_scores_"):
        own = {n.rstrip("_"): getattr(model, n) for n in STRENGTHS if hasattr(model, n)}
    return {
        name.removeprefix("model__"): _as_json(value)
        for name, value in {**own, **choice.settings}.items()
    }


def _as_json(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _used(model: Any) -> dict[str, Any]:
    """The features with a coefficient, and their coefficients."""
    coef = coefficients(model)
    if coef is None:
        return {}
    features = np.flatnonzero(np.any(coef != 0, axis=0))
    every = features.size == coef.shape[1]
    return {
        "features": None if every else features.tolist(),
        "weights": coef[:, features].tolist(),
    }


def _plain(judged: HeldOutPredictions) -> dict[str, Any]:
    arrays = {"scores": judged.scores, "probabilities": judged.probabilities}
    told = {name: None if each is None else each.tolist() for name, each in arrays.items()}
    return {"labels": judged.labels.tolist(), **told}


def _messages(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Each warning once, without those on unmet tolerances (in the tally) and on small folds."""
    texts = (str(w.message) for w in caught if not _expected(w))
    return tuple(dict.fromkeys(texts))


def _expected(warning: warnings.WarningMessage) -> bool:
    early = issubclass(warning.category, ConvergenceWarning)
    return early or str(warning.message).startswith(_OF_SMALL_FOLDS)
