"""One unit of work: choose the settings of a model on training rows, refit, score on test rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from proxmargin.comparing.candidates import Candidate, Settings
from proxmargin.comparing.data import Data
from proxmargin.comparing.fits import features_used
from proxmargin.comparing.folds import Split, inner_splits
from proxmargin.comparing.scores import Scorer
from proxmargin.compiled.clock import clock

__all__ = ["Outcome", "Tally", "Task", "perform"]

# mean scores closer than this count as equal: the order of summation alone may make them differ
TIE = 1e-12
# prefixes of scikit-learn's warnings about held-out rows that lack a class
_OF_SMALL_FOLDS = ("y_pred contains classes not in y_true", "A single label was found")


@dataclass(frozen=True, eq=False)
class Task:
    """A model and a fold; without a split, all rows are training rows and nothing is scored."""

    candidate: Candidate
    fold: int | None
    split: Split | None
    seed: int


@dataclass
class Tally:
    """The number of fits, of those that did not meet their tolerance, and their worst gap."""

    fits: int = 0
    unmet: int = 0
    worst_gap: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.unmet} of {self.fits} fits stopped before their tolerance was met, the worst "
            f"at a relative gap of {self.worst_gap:.1e}"
        )

    def count(self, certificate: Any) -> None:
        """Take in one fitted model; those without a certificate count as fits only."""
        self.fits += 1
        if certificate is not None and not certificate.converged:
            self.unmet += 1
            self.worst_gap = max(self.worst_gap, float(certificate.relative_gap))


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a task.

    Attributes
    ----------
    model : str
    fold : int or None
        None for all rows.
    score : float
        On the test rows; NaN for all rows.
    features_used : int
    seconds : float
        Time of the refit, without the compilation of kernels.
    relative_gap : float
        Certified for the refit; NaN for a model without a certificate.
    settings : dict
        As chosen on the training rows.
    tally : Tally
        Over all fits of the task.
    estimator : the refit on all rows, else None
    messages : tuple of str
        Other warnings, each once.
    """

    model: str
    fold: int | None
    score: float
    features_used: int
    seconds: float
    relative_gap: float
    settings: Settings
    tally: Tally
    estimator: Any = None
    messages: tuple[str, ...] = field(default=())


def perform(task: Task, data: Data, scorer: Scorer) -> Outcome:
    """Choose the settings, refit, and score; test rows are read by the score only."""
    train = data if task.split is None else data.rows(task.split.train)
    tally = Tally()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = _chosen(task, train, scorer, tally)
        started = clock()
        model = task.candidate.make().set_params(**settings)
        model.fit(train.X, train.y, sample_weight=train.weights)
        seconds = clock() - started
        tally.count(getattr(model, "certificate_", None))
        reached = np.nan
        if task.split is not None:
            reached = scorer(model, data.rows(task.split.test))
    return Outcome(
        model=task.candidate.name,
        fold=task.fold,
        score=reached,
        features_used=features_used(model),
        seconds=seconds,
        relative_gap=float(getattr(getattr(model, "certificate_", None), "relative_gap", np.nan)),
        settings=settings,
        tally=tally,
        estimator=model if task.split is None else None,
        messages=_messages(caught),
    )


def _chosen(task: Task, train: Data, scorer: Scorer, tally: Tally) -> Settings:
    """The settings with the best mean inner score; among equals the sparser, then the earlier."""
    make, search = task.candidate.make, task.candidate.search
    settings = search.settings(make, train)
    if len(settings) == 1:
        return settings[0]
    scores, sizes = [], []
    for split in inner_splits(train.y, task.seed):
        inner, held_out = train.rows(split.train), train.rows(split.test)
        tried = list(search.models(make, settings, inner))
        for certificate in chain.from_iterable(models.certificates for models in tried):
            tally.count(certificate)
        scores.append(np.concatenate([scorer.each(models, held_out) for models in tried]))
        sizes.append(np.concatenate([models.n_nonzero for models in tried]))
    return settings[_best(np.mean(scores, axis=0), np.mean(sizes, axis=0))]


def _best(scores: NDArray[np.float64], sizes: NDArray[np.float64]) -> int:
    scores = np.where(np.isnan(scores), -np.inf, scores)
    if scores.max() == -np.inf:
        raise ValueError("the scoring gave no number for any setting; choose another one")
    ties = np.flatnonzero(scores >= scores.max() - TIE)
    return int(ties[sizes[ties].argmin()])


def _messages(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Each warning once, without those on unmet tolerances (in the tally) and on small folds."""
    texts = (str(w.message) for w in caught if not _expected(w))
    return tuple(dict.fromkeys(texts))


def _expected(warning: warnings.WarningMessage) -> bool:
    early = issubclass(warning.category, ConvergenceWarning)
    return early or str(warning.message).startswith(_OF_SMALL_FOLDS)
