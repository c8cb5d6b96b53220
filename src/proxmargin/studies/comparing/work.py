"""One unit of work: choose the settings of a model on training rows, refit, score on test rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import as_design, moments
from proxmargin.data.inputs.preprocessing import Preprocessed
from proxmargin.data.inputs.row_order import RowOrderWarning
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.models.selection.calibrators import Calibrator, fit_calibrator, margin_model
from proxmargin.models.selection.stability.units import partners_of
from proxmargin.runtime.threads import quiet_threads
from proxmargin.runtime.types import Array, Estimator, Record, Values
from proxmargin.studies.comparing.candidates import Candidate
from proxmargin.studies.comparing.metrics import METRICS, HeldOutPredictions, Metric
from proxmargin.studies.comparing.rows import LabelledRows, TrainTestRows, inner_splits
from proxmargin.studies.comparing.searches import (
    SearchPredictions,
    Settings,
    Tally,
    coefficients,
    features_used,
    fitted,
    said_of,
)
from proxmargin.studies.reports.card import single_feature_auc

LARGEST_WEIGHTS = 50  # features of a model that are described
PARTNERS = 0.8  # absolute correlation from which features go along with each other
MOST_PARTNERS = 3  # that are named
# mean scores closer than this count as equal: the order of summation alone may make them differ
TIE = 1e-12
CALIBRATION = "sigmoid"  # two parameters: fits any number of held-out scores
OWN = "own"
CALIBRATED = "calibrated"
JUDGED_ONLY = "judged only"
_OF_SCORES = (
    "Probabilities are its scores through Platt's sigmoid (of several classes multinomial "
    "regression), fitted to rows held out inside each training part"
)
# whose probabilities are judged
PROBABILITIES: Mapping[str, str] = {
    OWN: "Probabilities are the model's own.",
    CALIBRATED: f"{_OF_SCORES}; the saved model carries the map made in this way of all samples.",
    JUDGED_ONLY: f"{_OF_SCORES}; the model itself has none: CalibratedMargin gives it such.",
    "": "The model has no probabilities.",
}
# beginnings of scikit-learn's warnings about held-out rows that lack a class
_OF_SMALL_FOLDS = ("y_pred contains classes not in y_true", "A single label was found")
# of a log-likelihood: in one case of twenty chance gains as much by one parameter more
EVIDENCE = 2.0
MOST_FURTHER = 2  # times that a search goes on
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
    """The result of a task, all plain values but for the estimator."""

    model: str
    fold: int | None  # among those of all repeats; None for all rows
    scores: dict[str, float]  # for each metric, on the test rows; NaN where it does not exist
    features_used: int
    seconds: float  # of the refit, without the compilation of kernels
    # certified for the refit; NaN for a model without a certificate
    relative_gap: float
    passes: float
    certified: bool | None  # whether the gap of the refit met its tolerance
    settings: Settings  # as chosen on the training rows
    tally: Tally  # over all fits of the task
    # the features with a coefficient: ``features`` (their numbers; None for all of them) and
    # ``weights``, a list a class; of a fit to all rows ``largest`` (`_largest`); empty for models
    # without coefficients
    used: Record = field(default_factory=dict)
    # predictions for the test rows, if kept: ``labels``, ``scores``, ``probabilities``
    held: Record = field(default_factory=dict)
    curve: Record = field(default_factory=dict)  # inner scores along the strength
    # wall-clock seconds of the task, and those of them in which kernels were compiled
    spent: float = 0.0
    compiling: float = 0.0
    messages: tuple[str, ...] = ()  # other warnings, each once
    probabilities: str = ""  # whose they are: a key of `PROBABILITIES`
    estimator: Estimator | None = None  # the refit on all rows

    @property
    def key(self) -> tuple[str, int]:
        return self.model, -1 if self.fold is None else self.fold

    def to_plain(self) -> Record:
        """Everything but the estimator, as JSON has it; numbers keep all their bits."""
        return asdict(replace(self, estimator=None))

    @classmethod
    def from_plain(cls, plain: Record) -> Outcome:
        tally, messages = Tally(**plain["tally"]), (*plain["messages"],)
        return cls(**{**plain, "tally": tally, "messages": messages})


def perform(task: FoldTask, data: LabelledRows, metrics: Sequence[Metric]) -> Outcome:
    """Choose the settings, refit, and score; test rows are read by the scores only."""
    started, without_compiling = perf_counter(), clock()
    train = data if task.split is None else data.rows(task.split.train)
    # the number of BLAS threads changes the last bits of sums
    with warnings.catch_warnings(record=True) as caught, quiet_threads(0):
        warnings.simplefilter("always")
        folds = inner_splits(train, task.seed)
        tried, choice = _searched(task.candidate, train, folds, metrics[0])
        if choice.end and task.split is None:
            warnings.warn(f"{task.candidate.name}: {choice.end}", UserWarning, stacklevel=2)
        ready, transformer = train.prepared()
        model, begun = task.candidate.make().set_params(**choice.settings), clock()
        model = fitted(model, ready)
        seconds = clock() - begun
        source = _source(model, choice)
        certificate = getattr(model, "certificate_", None)
        tried.tally.count(certificate)
        judged = None
        if task.split is not None:
            test = data.rows(task.split.test).transformed(transformer)
            judged = _held_out(model, test, np.unique(data.y), choice.calibrator)
        elif source == CALIBRATED:
            margin_model(model).calibrator_ = choice.calibrator
        scores = {} if judged is None else {each.name: each(judged) for each in metrics}
    whole = model if transformer is None else Preprocessed.of(transformer, model)
    spent = perf_counter() - started
    # each warning once, without those on unmet tolerances, which the tally counts, and on the order
    # of the rows, which is that of the whole data
    told = (ConvergenceWarning, RowOrderWarning)
    others = [w for w in caught if not issubclass(w.category, told)]
    texts = dict.fromkeys(str(w.message) for w in others)
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
        used=_used(model, ready, task.split is None) if ready.outputs == data.outputs else {},
        held=_plain(judged) if judged is not None and task.keeps else {},
        curve=choice.curve,
        spent=spent,
        compiling=max(0.0, spent - (clock() - without_compiling)),
        messages=tuple(text for text in texts if not text.startswith(_OF_SMALL_FOLDS)),
        probabilities=source,
        estimator=whole if task.split is None else None,
    )


def _held_out(
    model: Estimator, data: LabelledRows, classes: Values, calibrator: Calibrator | None
) -> HeldOutPredictions:
    """What a fitted model says about rows; ``classes`` are those of the whole data."""
    labels, scores = said_of(model, data.X, classes)
    shares = None
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(data.X), np.float64)
    elif calibrator is not None and scores is not None:
        shares = calibrator.probabilities(scores)
    codes = np.searchsorted(classes, data.y)
    return HeldOutPredictions(codes, labels, classes, scores, shares, data.weights, data.X)


def _searched(
    candidate: Candidate, train: LabelledRows, folds: Sequence[TrainTestRows], metric: Metric
) -> tuple[SearchPredictions, ChosenSettings]:
    """The search, which goes on where the best strength is the last one that was tried."""
    make, search = candidate.make, candidate.search
    tried, model = search.tried(make, train, folds), make()
    log_odds = model if isinstance(model, LogisticProbabilities) else None
    choice, name = chosen(tried, train, metric, log_odds), str(tried.parameter)
    for _ in range(MOST_FURTHER):
        values = tried.further(choice.index)
        if not values:
            return tried, choice
        tried = tried.joined(search.at(choice.settings, values).tried(make, train, folds))
        choice = chosen(tried, train, metric, log_odds)
    end = ""
    if tried.further(choice.index):
        end = f"the chosen {name}={choice.settings[name]:.3g} is the last that was tried"
    return tried, replace(choice, end=end)


def _source(model: Estimator, choice: ChosenSettings) -> str:
    """Whose the probabilities of a fitted model are."""
    if hasattr(model, "predict_proba"):
        return OWN
    if choice.calibrator is None:
        return ""
    return JUDGED_ONLY if margin_model(model) is None else CALIBRATED


def _settings(model: Estimator, choice: ChosenSettings) -> Settings:
    """The chosen settings; of a classifier that has chosen by itself its choice."""
    own = dict(getattr(model, "best_params_", {}))
    if hasattr(model, "cv_scores_"):
        own = {n.rstrip("_"): getattr(model, n) for n in STRENGTHS if hasattr(model, n)}
    found = {name.removeprefix("model__"): v for name, v in {**own, **choice.settings}.items()}
    plain = {name: v.item() if isinstance(v, np.generic) else v for name, v in found.items()}
    kept = bool | int | float | str | None
    return {name: v if isinstance(v, kept) else str(v) for name, v in plain.items()}


def _used(model: Estimator, ready: LabelledRows, is_final: bool) -> Record:
    """The features with a coefficient, and their coefficients; constant ones are no selection, and
    count as used where all others are."""
    coef = coefficients(model)
    if coef is None:
        return {}
    more = {"largest": _largest(coef, ready)} if is_final else {}
    used = np.any(coef != 0, axis=0)
    # in a model that selects, mostly the first one without a coefficient varies
    others = (ready.X[:, [j]] for j in np.flatnonzero(~used))
    dense = (x.toarray() if hasattr(x, "toarray") else x for x in others)
    if used.any() and all(np.ptp(column) == 0 for column in dense):
        return {"features": None, "weights": coef.tolist(), **more}
    return {"features": np.flatnonzero(used).tolist(), "weights": coef[:, used].tolist(), **more}


def _largest(coef: Array, ready: LabelledRows) -> Record:
    """Of the ``features`` of the largest weights: the area under the ROC curve of each alone, for
    the class where its weight is largest, and the correlated ones, the closest first."""
    design, shares = as_design(ready.X), ready.shares / ready.shares.sum()
    weights = np.abs(coef) * moments(design, shares, constant=0.0)[1]
    rows, sizes = weights.argmax(axis=0), weights.max(axis=0)
    top = np.argsort(-sizes, kind="stable")[:LARGEST_WEIGHTS]
    top = top[sizes[top] > 0]
    labels = np.unique(ready.y)[1 if len(coef) == 1 else 0 :]
    columns = ready.X[:, top]
    columns = columns.tocsc() if hasattr(columns, "tocsc") else columns
    members = (ready.y[:, None] == labels).astype(np.float64)
    areas = single_feature_auc(columns, members)[rows[top], np.arange(top.size)]
    found = []
    for j, correlations in zip(top, partners_of(design, shares, top), strict=True):
        near = np.flatnonzero(np.abs(correlations) >= PARTNERS)
        near = near[near != j]
        near = near[np.argsort(-np.abs(correlations[near]), kind="stable")][:MOST_PARTNERS]
        found.append([[int(k), round(float(correlations[k]), 3)] for k in near])
    return {"features": top.tolist(), "auc": areas.tolist(), "partners": found}


def _plain(judged: HeldOutPredictions) -> Record:
    arrays = {name: getattr(judged, name) for name in ("labels", "scores", "probabilities")}
    return {name: None if each is None else each.tolist() for name, each in arrays.items()}


@dataclass(frozen=True, eq=False)
class ChosenSettings:
    """The chosen settings."""

    settings: Settings
    # from decision values to probabilities, fitted to those of held-out training rows; None if the
    # models have none
    calibrator: Calibrator | None
    # inner scores along the strength, for the other chosen settings; empty without a strength
    curve: Record
    index: int = 0  # among those tried
    end: str = ""  # what is said of a strength that is still the last one tried


def chosen(
    tried: SearchPredictions,
    data: LabelledRows,
    metric: Metric,
    log_odds: LogisticProbabilities | None = None,
) -> ChosenSettings:
    """The settings with the best mean inner score; among equals the sparser, then the earlier, but
    where one of these names a single class for all rows, so that labels hardly tell, only those of
    about the least log-loss. ``log_odds``: the model, if its scores are such, and its probabilities
    its own."""
    if tried.labels is None:
        return ChosenSettings(tried.settings[0], None, {})
    classes = np.unique(data.y)
    codes = np.searchsorted(classes, data.y)

    def judged(by: Metric, places: Iterable[int]) -> Array:
        found = [_inner(tried, k, codes, classes, data, by, log_odds) for k in places]
        return np.array(found)

    index, scores = 0, None
    if len(tried.settings) > 1:
        scores = judged(metric, range(len(tried.settings)))
        tied = ties(metric.sign * _means(scores))
        if tried.scores is not None and any(map(tried.names_one_class, tied)):
            losses = _means(judged(METRICS["log_loss"], tied))
            if np.isfinite(losses).any():
                tied = tied[losses <= np.nanmin(losses) + EVIDENCE / codes.size]
        index = int(tied[tried.sizes[tied].argmin()])
    calibrator = None if tried.scores is None else _calibrator(tried.scores[index], codes, data)
    curve = {} if scores is None else _curve(tried, index, scores, metric.sign)
    return ChosenSettings(tried.settings[index], calibrator, curve, index)


def ties(scores: Array) -> NDArray[np.intp]:
    """The places of the largest score, and of those that are equal to it."""
    scores = np.where(np.isnan(scores), -np.inf, scores)
    if scores.max() == -np.inf:
        raise ValueError("the scoring gave no number for any setting; choose another one")
    return np.flatnonzero(scores >= scores.max() - TIE)


def _inner(
    tried: SearchPredictions,
    index: int,
    codes: NDArray[np.intp],
    classes: Values,
    data: LabelledRows,
    metric: Metric,
    log_odds: LogisticProbabilities | None,
) -> list[float]:
    """The metric of one setting on each inner fold."""
    assert tried.labels is not None
    scores = None if tried.scores is None else tried.scores[index]
    labels, probabilities = tried.labels[index], None
    least = metric.probabilities_from
    if least is not None and classes.size >= least and scores is not None:
        known = _held_out_rows(scores)
        probabilities = np.full((codes.size, classes.size), np.nan)
        calibrator = None if log_odds is not None else _calibrator(scores, codes, data)
        if log_odds is not None:
            probabilities[known] = log_odds._probabilities_of(scores[known])
        elif calibrator is not None:
            probabilities[known] = calibrator.probabilities(scores[known])
    X = data.X if metric.needs_rows else None
    held_out = HeldOutPredictions(codes, labels, classes, scores, probabilities, data.weights, X)
    return [metric(held_out.rows(split.test)) for split in tried.folds]


def _calibrator(scores: Array, codes: NDArray[np.intp], data: LabelledRows) -> Calibrator | None:
    """The map from held-out scores to probabilities."""
    known = _held_out_rows(scores)
    if np.unique(codes[known]).size < np.unique(codes).size:
        return None
    return fit_calibrator(CALIBRATION, scores[known], codes[known], data.shares[known])


def _held_out_rows(scores: Array) -> NDArray[np.bool_]:
    """The rows that were held out."""
    return np.isfinite(scores if scores.ndim == 1 else scores.sum(axis=1))


def _means(scores: Array) -> Array:
    """Means over the folds that tell the metric; NaN if none does."""
    known = np.isfinite(scores)
    count = known.sum(axis=1)
    total = np.where(known, scores, 0.0).sum(axis=1)
    return np.divide(total, count, out=np.full(len(scores), np.nan), where=count > 0)


def _curve(tried: SearchPredictions, index: int, scores: Array, sign: float) -> Record:
    """Mean and standard error along the strength, the strongest penalty first, with what else was
    chosen, and the place of the strongest one within a standard error of the best."""
    name = tried.parameter
    if name is None:
        return {}
    own = {k: v for k, v in tried.settings[index].items() if k != name}
    along = tried.along(index)[:: -1 if name == "alpha" else 1]
    picked, errors = scores[along], np.full(len(along), np.nan)
    if picked.shape[1] > 1:
        errors = picked.std(axis=1, ddof=1) / np.sqrt(picked.shape[1])
    means, place = _means(picked), along.index(index)
    enough = sign * means >= sign * means[place] - np.nan_to_num(errors[place])
    return {
        "parameter": name,
        "strengths": [tried.settings[k][name] for k in along],
        "mean": means.tolist(),
        "one_standard_error": int(np.argmax(enough)),
        "se": errors.tolist(),
        "n_features": tried.sizes[along].tolist(),
        "chosen": tried.settings[index][name],
        **own,
    }
