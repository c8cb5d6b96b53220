"""Nested cross-validation of several models, every choice made on training rows only."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from proxmargin.comparing.apart import performed_apart
from proxmargin.comparing.candidates import Candidate, named_candidates
from proxmargin.comparing.comparison import Comparison, Ending, Setup
from proxmargin.comparing.data import Data
from proxmargin.comparing.folds import Split, outer_splits
from proxmargin.comparing.scores import Scorer, scorer_of
from proxmargin.comparing.work import Outcome, Task, perform
from proxmargin.designs import as_design, moments
from proxmargin.inputs.seeds import drawn_seeds
from proxmargin.runtime.progress import Progress

__all__ = ["compare"]

LARGEST_SEED = 2**31 - 1


def compare(
    X: Any,
    y: Any,
    *,
    models: str | Iterable[str | Candidate] = "all",
    cv: Any = 5,
    scoring: str | Callable[..., float] = "balanced_accuracy",
    n_jobs: int | None = None,
    random_state: Any = 0,
    progress: bool = True,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Comparison:
    """Compare models by nested cross-validation, and fit each on all data.

    In every outer training part the parameters are chosen by stratified 3-fold cross-validation
    along a short warm-started path, or over a small grid; the model is then refitted on that part
    and scored on the part held out. Standardisation, the grid of strengths and the choice use
    training rows only.

    Parameters
    ----------
    X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
    y : (n_samples,) labels of any type
    models : 'all', a name, or a list of names
        Names of estimators, each with ``standardize=True`` (the keys of
        `proxmargin.comparing.candidates.CANDIDATES`), and ``'SVC-rbf'``. A
        `proxmargin.comparing.candidates.Candidate` adds a model.
    cv : int or a scikit-learn splitter, default 5
        A number means shuffled stratified folds; fewer where the smallest class has fewer
        samples, which leaves a note.
    scoring : str or callable, default 'balanced_accuracy'
        As in scikit-learn: larger is better.
    n_jobs : int, optional
        Processes that share the pairs of model and fold.
    random_state : int, numpy.random.Generator, RandomState or None, default 0
        Shuffles the folds; the same number gives the same result.
    progress : bool, default True
        On standard error, once two seconds have passed.
    sample_weight : (n_samples,), optional
        Used in fits and scores; samples of weight 0 are left out.
    feature_names : (n_features,), optional
        For reports and the final models; by default those of a data frame.

    Returns
    -------
    Comparison
        After an interruption (Ctrl-C), or when a process of ``n_jobs`` died, with what was
        finished, and ``interrupted=True``.

    Raises
    ------
    ValueError
        Bad data or an unknown name; a class has fewer than 2 samples.
    KeyboardInterrupt
        Interrupted before anything was finished.

    Warns
    -----
    ConvergenceWarning
        Once, when fits ended before their tolerance was met.
    UserWarning
        What else the fits warned about, each text once.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from proxmargin import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare(X, y, models=["HuberizedSVC", "SquaredHingeSVC"], cv=3)
    >>> bool(comparison.table.loc["HuberizedSVC", "score_mean"] > 0.9)
    True
    """
    candidates = named_candidates(models)
    scorer = scorer_of(scoring, candidates[0].make())
    data = Data.checked(candidates[0].make(), X, y, sample_weight)
    data = data if feature_names is None else data.named(feature_names)
    outer_seed, inner_seed = drawn_seeds(random_state, 2, below=LARGEST_SEED)
    splits, notes = outer_splits(data.X, data.y, cv, outer_seed)
    setup = _setup(data, splits, scoring, scorer, notes)
    tasks = list(_tasks(candidates, splits, inner_seed))
    outcomes, ending = _performed(tasks, data, scorer, n_jobs, progress)
    order = {id_: place for place, id_ in enumerate((t.candidate.name, t.fold) for t in tasks)}
    outcomes.sort(key=lambda outcome: order[outcome.model, outcome.fold])
    comparison = Comparison(setup, _with_names(outcomes, data), ending)
    _warn(comparison)
    return comparison


def _tasks(candidates: Sequence[Candidate], splits: Sequence[Split], seed: int) -> Iterator[Task]:
    """Fold by fold, so that after an interruption the models were scored on the same folds."""
    for fold, split in enumerate(splits):
        for candidate in candidates:
            yield Task(candidate, fold, split, seed)
    for candidate in candidates:
        yield Task(candidate, None, None, seed)


def _performed(
    tasks: Sequence[Task], data: Data, scorer: Scorer, n_jobs: int | None, progress: bool
) -> tuple[list[Outcome], Ending]:
    """The outcomes in the order of completion, and how that ended."""
    outcomes: list[Outcome] = []
    try:
        with Progress("compare", len(tasks), shown=progress) as shown:
            for outcome in _running(tasks, data, scorer, n_jobs):
                outcomes.append(outcome)
                shown.advance(latest=_label(outcome))
    except (KeyboardInterrupt, BrokenExecutor) as error:
        if not outcomes:
            raise
        died = isinstance(error, BrokenExecutor)
        return outcomes, Ending.WORKER_DIED if died else Ending.INTERRUPTED
    return outcomes, Ending.COMPLETE


def _running(
    tasks: Sequence[Task], data: Data, scorer: Scorer, n_jobs: int | None
) -> Iterator[Outcome]:
    from joblib import Parallel, delayed

    parallel, me = Parallel(n_jobs=n_jobs, return_as="generator_unordered"), os.getpid()
    outcomes: Iterator[Outcome] = parallel(
        delayed(performed_apart)(me, perform, task, data, scorer) for task in tasks
    )
    return outcomes


def _label(outcome: Outcome) -> str:
    where = "all samples" if outcome.fold is None else f"fold {outcome.fold + 1}"
    return f"{outcome.model}, {where}"


def _setup(
    data: Data,
    splits: Sequence[Split],
    scoring: str | Callable[..., float],
    scorer: Scorer,
    notes: Sequence[str],
) -> Setup:
    classes, sizes = np.unique(data.y, return_counts=True)
    names = [f"x{j}" for j in range(data.n_features)] if data.names is None else data.names
    shares = np.ones(data.n_samples) if data.weights is None else data.weights
    _, scale = moments(as_design(data.X), shares / shares.sum())
    return Setup(
        scoring=_in_words(scoring),
        n_folds=len(splits),
        classes=classes,
        class_sizes=sizes,
        feature_names=[str(name) for name in names],
        feature_scale=scale,
        baseline=np.array([_majority_score(data, split, scorer) for split in splits]),
        notes=notes,
    )


def _majority_score(data: Data, split: Split, scorer: Scorer) -> float:
    train, test = data.rows(split.train), data.rows(split.test)
    model = DummyClassifier(strategy="most_frequent")
    model.fit(np.zeros((train.n_samples, 1)), train.y, sample_weight=train.weights)
    with warnings.catch_warnings():
        # undefined precisions of the classes that it never predicts
        warnings.simplefilter("ignore")
        return scorer(model, replace(test, X=np.zeros((test.n_samples, 1))))


def _in_words(scoring: str | Callable[..., float]) -> str:
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    return name.replace("_", " ")


def _with_names(outcomes: Sequence[Outcome], data: Data) -> Sequence[Outcome]:
    """The fits saw plain arrays; give the final ones the names of the caller's columns."""
    if data.names is not None:
        for outcome in outcomes:
            if outcome.estimator is not None:
                outcome.estimator.feature_names_in_ = data.names
    return outcomes


def _warn(comparison: Comparison) -> None:
    for message in dict.fromkeys(m for outcome in comparison.outcomes for m in outcome.messages):
        warnings.warn(message, UserWarning, stacklevel=3)
    tally = comparison.tally
    if tally.unmet:
        warnings.warn(
            f"{tally}; the table shows the gap of each model", ConvergenceWarning, stacklevel=3
        )
