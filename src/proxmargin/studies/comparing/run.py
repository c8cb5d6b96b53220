"""Nested cross-validation of several models, every choice made on training rows only."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any

import numpy as np
from joblib import hash as joblib_hash
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import TimeSeriesSplit

from proxmargin.data.inputs.kinds import Features, Labels, Seed, Splits
from proxmargin.data.inputs.parameters import (
    check_choice,
    check_flag,
    check_number,
    drawn_seeds,
    is_number_of_folds,
)
from proxmargin.data.inputs.preprocessing import Preprocessed, described
from proxmargin.data.inputs.row_order import RowOrderWarning, drift, told
from proxmargin.models.classifiers.elastic_net import HuberizedSVC
from proxmargin.models.selection.scoring import warn_of_repeated_ids
from proxmargin.runtime.brief import users_level, with_pages
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import Carried
from proxmargin.runtime.types import Estimator, Facts, Record, Values
from proxmargin.solvers.resuming.journal import Identity
from proxmargin.studies.comparing.candidates import Candidate, baselines_for, named_candidates
from proxmargin.studies.comparing.comparison import Comparison
from proxmargin.studies.comparing.metrics import DEFAULT_METRICS, Metric, metrics_of
from proxmargin.studies.comparing.results import ComparisonEnding
from proxmargin.studies.comparing.rows import (
    INNER_FOLDS,
    LARGEST_SEED,
    LabelledRows,
    TrainTestRows,
    outer_splits,
)
from proxmargin.studies.comparing.setup import (
    MetricFacts,
    Protocol,
    RunDirectory,
    Setup,
    seed_of,
    setup_of,
)
from proxmargin.studies.comparing.work import FoldTask, Outcome, perform
from proxmargin.studies.reports.card import data_card

FOLDS = 5  # Kohavi 1995: five to ten
# seconds between two checks that the parent is alive; joblib keeps an idle worker, with hundreds
# of megabytes, for five minutes
LOOK_EVERY = 1.0
QUICK_FOLDS = 3  # of a first answer in seconds
REPEATS = ((200, 5), (500, 3))  # repetitions below a number of samples; above, one


@with_pages
def compare(
    X: Features,
    y: Labels,
    *,
    models: str | Iterable[str | Candidate] | Facts = "all",
    cv: Splits | None = None,
    repeats: int | None = None,
    scoring: str | Callable[..., float] = "balanced_accuracy",
    metrics: Sequence[str | Callable[..., float]] = DEFAULT_METRICS,
    baselines: bool = False,
    standardize: str | bool = "auto",
    groups: Labels | None = None,
    n_jobs: int | None = None,
    random_state: Seed = 0,
    run_dir: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    quick: bool = False,
    progress: bool = True,
    preprocess: Estimator | None = None,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    positive: object = None,
    ids: Labels | None = None,
    name: str | None = None,
    command: str | None = None,
) -> Comparison:
    """Compare models by nested cross-validation, and fit each on all data.

    In every outer training part the parameters are chosen by stratified 3-fold cross-validation
    along whole warm-started paths, or over a small grid; the model is then refitted on that part
    and scored on the part held out. Standardisation, the grid of strengths, the choice and the
    calibration of probabilities use training rows only.

    Parameters
    ----------
    X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
    y : (n_samples,) labels of any type
    models : 'all', a name, a list of names, or a mapping from names to estimators
        Names of estimators (the keys of
        `proxmargin.studies.comparing.candidates.CANDIDATES`) and ``'SVC-rbf'``. In a
        mapping a value is a classifier with scikit-learn's interface, such as a pipeline or a
        ``GridSearchCV``, which is fitted as it is; or the name of a model.
    cv : int or a scikit-learn splitter, optional
        By default 5, and 3 for a ``quick`` comparison. A number means shuffled stratified folds;
        fewer where the smallest class has fewer samples, which leaves a note. With ``groups`` no
        group is on both sides. With ``TimeSeriesSplit`` the inner folds test later rows, too.
    repeats : int, optional
        Repetitions with new random folds. By default five for fewer than 200 samples, three for
        fewer than 500, and one for more, for a ``quick`` comparison, or with a ``cv`` of your own.
    scoring : str or callable, default 'balanced_accuracy'
        By which parameters and models are chosen: one of the metrics, or a scorer as in
        scikit-learn. A callable is given the predictions for the held-out rows in place of a model.
    metrics : sequence of str
        What is computed besides: by default balanced accuracy, accuracy, the area under the ROC
        curve (of more than two classes: the mean of one against the rest), Matthews' correlation,
        log-loss and Brier score. Logistic models are judged by their own probabilities, others by
        decision values through Platt's sigmoid of the inner held-out scores: the map that the final
        models have, too, in ``predict_proba``.
    baselines : bool
        Whether to compare with the majority and with scikit-learn's ``LinearSVC``,
        ``LogisticRegression`` and ``SVC``, their C chosen on the same inner folds.
    standardize : 'auto', True or False
        Whether models given by name, and baselines, standardise the features. 'auto': dense ones.
    groups : (n_samples,), optional
        Samples of one group (patient, batch) are held out together, in the outer and inner folds.
    n_jobs : int, optional
        Processes that share the pairs of model and fold. The result is the same for any number.
    random_state : int, RandomState or None, default 0
        Shuffles the folds; the same number gives the same result.
    run_dir : path-like, optional
        Directory that keeps every finished task and the final models (of this library). The same
        call continues an interrupted comparison and ends with the same table; other data or
        settings are refused, as is a directory in which another process is at work.
        `Comparison.from_run` reads it.
    time_limit : float, optional
        Seconds after which no further task is begun.
    quick : bool
        A first answer in seconds: the fastest models, shorter paths, 3 folds instead of 5.
    progress : bool, default True
        On standard error, once two seconds have passed.
    preprocess : transformer of scikit-learn, optional
        Such as ``SimpleImputer()`` or a pipeline: a copy is fitted to the training rows of each
        outer and inner fold, before anything else, and transforms the held-out rows. X may then be
        what it takes. Final models are pipelines that begin with it.
    sample_weight : (n_samples,), optional
        Used in fits and scores; samples of weight 0 are left out.
    feature_names : (n_features,), optional
        For reports and the final models; by default those of a data frame.
    positive : a label, optional
        The class of which `Comparison.clinical` tells sensitivity, calibration and net benefit; by
        default the second of two. With more than two classes against all others.
    ids : (n_samples,), optional
        Names of the samples, for their predictions; by default the index of a data frame.
    name, command : str, optional
        Of the data, and how this was called; for reports.

    Returns
    -------
    Comparison
        After an interruption (Ctrl-C), at the time limit, or when a process of ``n_jobs`` died,
        with what was finished, and ``interrupted=True``.

    Raises
    ------
    ValueError
        Bad data or an unknown name; a class has fewer than 2 samples, or too few groups;
        ``run_dir`` holds another comparison, or is in use.
    KeyboardInterrupt
        Interrupted before anything was finished.

    Warns
    -----
    ConvergenceWarning
        Once, when fits ended before their tolerance was met.
    UserWarning
        Where the order of the rows carries information, which shuffled folds do not tell. What
        else the fits warned about, each text once. Once, when ``run_dir`` cannot be written
        any more, and the comparison goes on in memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from proxmargin import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare(X, y, models=["L2SVC", "SquaredHingeSVC"], cv=3)
    >>> bool(comparison.table.loc["L2SVC", "score_mean"] > 0.9)
    True
    """
    check_flag("baselines", baselines)
    check_flag("quick", quick)
    if cv is None:
        cv = QUICK_FOLDS if quick else FOLDS
    if not isinstance(standardize, bool | np.bool_):
        check_choice("standardize", standardize, ("auto",))
    check_number("time_limit", time_limit, low=0.0, low_open=True, optional=True)
    judges = metrics_of(scoring, metrics)
    named_candidates(models)  # names are checked before data
    # any model's checks of data: all share them
    data = LabelledRows.checked(HuberizedSVC(), X, y, sample_weight, groups, preprocess, ids)
    data = data if feature_names is None else data.named(feature_names)
    shown = data.seen()
    scaled = not shown.is_sparse if standardize == "auto" else bool(standardize)
    candidates = named_candidates(models, standardize=scaled, quick=quick)
    if baselines:
        rivals = baselines_for(shown.is_sparse, scaled)
        taken = {each.name for each in candidates} & {each.name for each in rivals}
        if taken:
            raise ValueError(f"models: {taken.pop()!r} is the name of a baseline")
        candidates = [*candidates, *rivals]
    if data.names is not None and preprocess is None:
        candidates = [each.of_features(data.names) for each in candidates]
    data = replace(data, outputs=shown.outputs, in_time=isinstance(cv, TimeSeriesSplit))
    seed = _seed(random_state, run_dir)
    outer_seed, inner_seed = drawn_seeds(seed, 2, below=LARGEST_SEED)
    if repeats is None:
        repeats = 1 if quick or cv != FOLDS else repeats_of(data.n_samples)
    if is_number_of_folds(cv) or data.in_time:  # other splitters may keep samples whole
        of, called = (
            (getattr(X, "index", None), "X.index")
            if ids is None and data.ids is not None
            else (ids, "ids")
        )
        warn_of_repeated_ids(data.ids, data.groups, getattr(of, "name", None) or called)
    splits, notes = outer_splits(data, cv, repeats, outer_seed)
    moves = drift(shown.X, np.unique(data.y, return_inverse=True)[1])
    if moves is not None and data.groups is None and is_number_of_folds(cv):
        sentence = told(moves, None if shown.names is None else shown.names.tolist())
        warnings.warn(sentence, RowOrderWarning, stacklevel=users_level())
        notes.append(sentence)
    if data.weights is not None:
        notes.append(
            "fits and scores weigh the samples; counts, clinical numbers, curves and tests of "
            "disagreements take each of them once"
        )
    tasks = list(tasks_of(candidates, splits, inner_seed))
    protocol = Protocol(
        metrics=[MetricFacts(each.name, each.label, each.larger_is_better) for each in judges],
        folds=sum(split.repeat == 0 for split in splits),
        repeats=splits[-1].repeat + 1,
        grouped=data.groups is not None,
        random_state=seed,
        inner=f"{INNER_FOLDS} folds{' in time' if data.in_time else ''}"
        f"{'' if data.groups is None else ' of whole groups'}",
        standardize=scaled,
        quick=quick,
        baselines=baselines,
        command=command,
        preprocess=None if preprocess is None else described(preprocess),
        positive=None if positive is None else _known_class(positive, data.y),
        weighted=data.weights is not None,
    )
    seen = data if _holds_numbers(data.X) else shown
    card = data_card(seen.X, seen.y, None if seen.names is None else seen.names.tolist())
    setup = setup_of(protocol, shown, splits, candidates, judges, name, card, notes)
    kept = None if run_dir is None else _directory(run_dir, tasks, data, judges, setup, cv)
    comparison = _finished(tasks, data, judges, setup, kept, n_jobs, progress, time_limit)
    for message in dict.fromkeys(m for outcome in comparison.outcomes for m in outcome.messages):
        warnings.warn(message, UserWarning, stacklevel=users_level())
    tally = comparison.tally
    if tally.unmet:
        warnings.warn(
            f"{tally}; the table shows the gap of each model",
            ConvergenceWarning,
            stacklevel=users_level(),
        )
    return comparison


def _known_class(positive: object, y: Values) -> str:
    classes = [str(label) for label in np.unique(y)]
    if str(positive) not in classes:
        raise ValueError(f"positive={positive!r} is no class; there are {', '.join(classes)}")
    return str(positive)


def repeats_of(n_samples: int) -> int:
    """Repetitions of the folds: of few samples five choose a model that is .005 of balanced
    accuracy better than one does, and ten hardly a better one (docs/guide/recommendation.md)."""
    return next((count for below, count in REPEATS if n_samples < below), 1)


def _seed(random_state: Seed, run_dir: str | os.PathLike[str] | None) -> int:
    """The seed; without one of its own that of the run that is continued."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    known = None if run_dir is None or random_state is not None else seed_of(run_dir)
    return drawn_seeds(random_state, 1, below=LARGEST_SEED)[0] if known is None else known


def _holds_numbers(X: Any) -> bool:
    """Whether the data card can read the data as they are."""
    kinds = X.dtypes if hasattr(X, "columns") else [X.dtype]
    return all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)


def _directory(
    run_dir: str | os.PathLike[str],
    tasks: Sequence[FoldTask],
    data: LabelledRows,
    metrics: Sequence[Metric],
    setup: Setup,
    cv: Splits,
) -> RunDirectory:
    """The run directory, known by its data and by what decides the result."""
    candidates = {task.candidate.name: task.candidate for task in tasks}
    settings = _Settings(
        models=list(candidates),
        **{f"models[{n!r}]": [repr(each.make()), each.search] for n, each in candidates.items()},
        cv=cv if isinstance(cv, int) else [list(split) for split in setup.splits],
        repeats=setup.protocol.repeats,
        scoring=metrics[0].name,
        metrics=sorted(metric.name for metric in metrics),
        scorers=[metric.of for metric in metrics if metric.needs_rows],
        groups=setup.protocol.grouped,
        preprocess=setup.protocol.preprocess,
        **({} if data.preprocess is None else {"entries": joblib_hash(data.X)}),
        seed=setup.protocol.random_state,
        feature_names=None if data.names is None else [str(name) for name in data.names],
    )
    classes, codes = np.unique(data.y, return_inverse=True)
    parts = [each for each in (data.weights, data.groups) if each is not None]
    identity = Identity.of(settings, data.seen().X, classes, codes, *parts)
    return RunDirectory(Path(run_dir), [task.key for task in tasks], identity, setup)


class _Settings:
    """What decides a comparison besides the data, as the parameters of an estimator."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings

    def get_params(self, deep: bool = False) -> Record:
        return self.settings


def _finished(
    tasks: Sequence[FoldTask],
    data: LabelledRows,
    metrics: Sequence[Metric],
    setup: Setup,
    kept: RunDirectory | None,
    n_jobs: int | None,
    progress: bool,
    time_limit: float | None,
) -> Comparison:
    """The comparison, of what is done and what is not yet, in the order of completion."""
    from joblib import Parallel, delayed

    me, carried, ending = os.getpid(), Carried(data), ComparisonEnding.COMPLETE
    # one by one, so that nothing is lost at an interruption and limits of time hold
    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
    )
    with nullcontext(setup) if kept is None else kept.opened() as setup:
        done = {} if kept is None else dict(kept.outcomes)
        # a model of another library is in no file: it is to be fitted again
        whole = {k for k, o in done.items() if o.fold is not None or o.estimator is not None}
        missing = [task for task in tasks if task.key not in whole]
        try:
            with ProgressBar("compare", len(tasks), shown=progress) as shown:
                shown.skip(len(tasks) - len(missing))
                begun = _in_time(missing, time_limit, setup.protocol.folds, shown)
                for outcome in parallel(
                    delayed(_performed)(me, task, carried, metrics) for task in begun
                ):
                    _name_features(outcome.estimator, data.names)
                    first = done.get(outcome.key)  # of which only the model was missing
                    done[outcome.key] = (
                        outcome if first is None else replace(first, estimator=outcome.estimator)
                    )
                    if first is None and kept is not None:
                        kept.add(outcome)
                    shown.advance()
        except (KeyboardInterrupt, BrokenExecutor) as error:
            if not done:
                raise
            died = isinstance(error, BrokenExecutor)
            ending = ComparisonEnding.WORKER_DIED if died else ComparisonEnding.INTERRUPTED
        else:
            if not all(task.key in done for task in tasks):
                ending = ComparisonEnding.TIME_LIMIT
        outcomes = [done[task.key] for task in tasks if task.key in done]
        return Comparison(setup, outcomes, ending, kept.notes if kept else ())


def _name_features(estimator: Estimator | None, names: Values | None) -> None:
    """The fits saw plain arrays; the final ones get the names of the caller's columns."""
    if estimator is not None and names is not None:
        whole = isinstance(estimator, Preprocessed)
        with suppress(AttributeError):  # of a pipeline, which asks its first step
            (estimator.transformer if whole else estimator).feature_names_in_ = names


def _in_time(
    tasks: Iterable[FoldTask], limit: float | None, folds: int, shown: ProgressBar
) -> Iterator[FoldTask]:
    """The tasks until the time limit, and the first in any case; shows what begins."""
    started = time.perf_counter()
    for number, task in enumerate(tasks):
        if number and limit is not None and time.perf_counter() - started > limit:
            return
        label = "all samples"
        if task.fold is not None:
            repeat, fold = divmod(task.fold, folds)
            again = f" (repeat {repeat + 1})" if repeat else ""
            label = f"fold {fold + 1} of {folds}{again}"
        shown.starts(f"{task.candidate.name}, {label}")
        yield task


def tasks_of(
    candidates: Sequence[Candidate], splits: Sequence[TrainTestRows], seed: int
) -> Iterator[FoldTask]:
    """Fold by fold, so that after an interruption the models were scored on the same folds; the
    fits to all rows after the first repeat."""
    count = sum(split.repeat == 0 for split in splits)
    parts: list[tuple[int | None, TrainTestRows | None]] = list(enumerate(splits))
    parts.insert(count, (None, None))
    for fold, split in parts:
        for candidate in candidates:
            yield FoldTask(candidate, fold, split, seed, keeps=fold is None or fold < count)


def _performed(
    parent: int, task: FoldTask, data: Carried[LabelledRows], metrics: Sequence[Metric]
) -> Outcome:
    """`perform`; a process other than ``parent`` first ties its life to it."""
    if os.getpid() != parent:
        _belong_to(parent)
    return perform(task, data.value, metrics)


@cache
def _belong_to(parent: int) -> None:
    """Ignore Ctrl-C, which the terminal sends to the whole group, and end when the parent does."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() == parent:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
