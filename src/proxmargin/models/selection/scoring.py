"""Scores of the models of a path on held-out rows, and the metadata that scorers ask for.

Scores with a formula in the decision values take one product with the data for all models of a
path; other scorers are called once a model.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial, update_wrapper
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _get_feature_names,
    _num_features,
    has_fit_parameter,
)

from proxmargin.data.designs import Design
from proxmargin.data.designs.blocks.device import in_memory
from proxmargin.data.inputs.beyond_memory import is_beyond_memory
from proxmargin.data.inputs.kinds import Features, Labels, Scoring, Splits
from proxmargin.data.inputs.parameters import (
    SEEDS,
    check_folds,
    checked_random_state,
    drawn_seeds,
    is_number_of_folds,
)
from proxmargin.data.inputs.row_order import warn_of_row_order
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.inputs.validation import offset_argument
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.runtime.brief import shown, users_level
from proxmargin.runtime.types import Array, Estimator, Facts, Values

DEFAULT_FOLDS = 5  # of cv=None, as in scikit-learn


def splitter_of(cv: Any, y: Values, groups: Values | None = None, random_state: object = 0) -> Any:
    """The splitter of a value of ``cv``. A number means stratified folds, shuffled by
    ``random_state`` because rows of files are ordered, and keeps ``groups`` whole. ValueError:
    ``cv`` is none of these, ``random_state`` no seed, or there are fewer groups than folds."""
    check_folds("cv", cv)
    if not is_number_of_folds(cv):
        return check_cv(cv, y, classifier=True)
    folds = DEFAULT_FOLDS if cv is None else int(cv)
    if isinstance(random_state, np.random.Generator):
        (random_state,) = drawn_seeds(random_state, 1, below=SEEDS)
    checked_random_state(random_state)
    if groups is None:
        return StratifiedKFold(folds, shuffle=True, random_state=random_state)
    count = np.unique(np.asarray(groups)).size
    if count < folds:
        raise ValueError(
            f"cv={folds} folds of whole groups need as many groups, and there are {count}"
        )
    return StratifiedGroupKFold(folds, shuffle=True, random_state=random_state)


def routed_splitter(cv: object) -> Any:
    """The splitter that says whether groups are wanted: a number of folds takes them."""
    plain = check_cv(cv, classifier=True)
    is_count = cv is not None and is_number_of_folds(cv)
    return StratifiedGroupKFold(plain.get_n_splits()) if is_count else plain


def warn_of_ordered_rows(
    cv: Any, groups: Labels | None, X: Any, codes: object, names: Sequence[str] | None = None
) -> None:
    """Where shuffled folds hide that the order of the rows carries information, say so."""
    if groups is None and is_number_of_folds(cv):
        has_numbers = isinstance(getattr(X, "dtype", None), np.dtype) and X.ndim == 2
        has_numbers = has_numbers and X.dtype.kind in "biuf"
        warn_of_row_order(X if has_numbers else None, np.asarray(codes), names)


PARTED = "rows of one sample on both sides of a split make scores too good"


def warn_of_repeated_ids(ids: Any, groups: Values | None, name: Any, harm: str = PARTED) -> None:
    """Where several rows have one id, and no groups keep them together, say so. ``ids``:
    (n_samples,) or None. ``name``: of what holds them. ``harm``: what comes of it, or of it and
    what to do."""
    repeats = 0 if ids is None or groups is not None else len(ids) - len(set(ids))
    if repeats:
        given = name if str(name).replace(".", "").isidentifier() else repr(str(name))
        warnings.warn(
            f"{repeats} of {len(ids)} rows have the id of an earlier one ({name}), and {harm}"
            f"{'' if ':' in harm else f': keep them together (groups={given})'}",
            stacklevel=users_level(),
        )


def check_disjoint(folds: Iterable[tuple[Any, Any]], count: int) -> None:
    """Raise ValueError for a fold that holds out rows of its own training part. ``folds``: pairs of
    row numbers or masks. ``count``: rows of the data."""
    rows = np.arange(count)
    for number, (train, test) in enumerate(folds):
        shared = np.intersect1d(rows[train], rows[test])
        if shared.size:
            raise ValueError(
                f"cv: fold {number} holds out row {shared[0]} and {shared.size - 1} more that its "
                "training part has, too: held-out scores need rows that the fit did not see"
            )


def forget(estimator: Estimator) -> None:
    """Drop what an earlier fit has learned."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


@contextmanager
def no_convergence_warnings() -> Iterator[None]:
    """Of single fits: one warning sums them up at the end. Filters are shared by all threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@contextmanager
def names_checked(estimator: Estimator, X: Features) -> Iterator[None]:
    """Predictions by classifiers within another one, in whose name another number of features is
    refused, and a warning is given, once, where the fit or ``X`` alone has feature names."""
    named = hasattr(estimator, "feature_names_in_")
    has_features = hasattr(estimator, "n_features_in_") and not is_beyond_memory(X)
    if has_features:
        with suppress(TypeError):  # what is no matrix is refused by the fitted classifier
            if _num_features(X) != estimator.n_features_in_:
                _check_n_features(estimator, X, reset=False)
    if not has_features or named == (_get_feature_names(X) is not None):
        yield
        return
    _check_feature_names(estimator, X, reset=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (does not have valid|has) feature names")
        yield


def weight_argument(estimator: Estimator) -> str:
    """The argument of ``fit`` for the weights: of a pipeline that of its last step. Raises
    TypeError: it takes none; names the last step."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_argument(last)}"
    if isinstance(estimator, BaseSearchCV):  # whose fit passes its arguments on
        return weight_argument(estimator.estimator)
    raise TypeError(f"{type(estimator).__name__} takes no sample_weight")


class Models(Protocol):
    """Fitted models of several strengths: `proxmargin.Path`, or a class with its methods."""

    @property
    def template(self) -> MarginEstimator: ...
    @property
    def certificates(self) -> Sequence[Any]: ...
    def __len__(self) -> int: ...
    def model(self, index: int) -> MarginEstimator: ...


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """The held-out rows of a fold."""

    design: Design  # the rows, without a copy
    # with the classes of the whole data, and with the weights and the offset of a fit to it
    targets: Targets
    sample_weight: Array | None  # (n_samples,), the given weights, without class weights
    arguments: Facts  # what scorers take besides the data: a value a row
    # returns the rows as an array or a matrix. A callable, because few scorings read them
    copied: Callable[[], Any]

    @cached_property
    def X(self) -> Any:
        return self.copied()

    @property
    def labels(self) -> Values:
        return np.asarray(self.targets.classes[self.targets.codes])


# (models, their scores, rows) -> a number for each model, more is better
Judge = Callable[[Models, Array, HeldOutRows], Array]


def judge_of(scoring: object, plain: MarginEstimator) -> Judge:
    """The `Judge` for a value of ``scoring``. Raises ValueError: there is no such scoring, or the
    model has no probabilities to compute it from."""
    if scoring is None:
        return _mean_loss
    if isinstance(scoring, str) and scoring in _OF_LIKELIHOOD:
        if not isinstance(plain, LogisticProbabilities):
            raise ValueError(f"scoring={shown(scoring)} needs a model with probabilities")
        factor = _OF_LIKELIHOOD[scoring]
        return lambda models, scores, rows: factor * _log_likelihoods(models, scores, rows)
    if isinstance(scoring, str) and scoring in OF_CLASSES:
        return OF_CLASSES[scoring]
    if not callable(scoring) and not (isinstance(scoring, str) and scoring in get_scorer_names()):
        raise ValueError(
            "scoring must be None, 'deviance', a name that sklearn.metrics.get_scorer_names() "
            f"lists, or a callable, got {shown(scoring)}"
        )
    return SklearnScorer(check_scoring(plain, scoring))


def score_of(
    scoring: Any, model: MarginEstimator, X: Any, y: Any, sample_weight: Any, offset: Any
) -> float:
    """The value of a ``scoring`` of one fitted model; the accuracy if ``scoring`` is None."""
    if scoring is None or (isinstance(scoring, str) and scoring == "accuracy"):
        return model.score(X, y, sample_weight, **offset_argument(offset))
    X, y, sample_weight = (in_memory(each) for each in (X, y, sample_weight))
    if is_beyond_memory(X):
        raise ValueError(
            f"scoring={scoring!r} needs data in memory: best_estimator_.score is the accuracy, "
            "also of data in passes"
        )
    shifted: Any = _with_offset(model, offset)
    if isinstance(scoring, str) and scoring in _OF_LIKELIHOOD:
        rows, columns = np.nonzero(np.asarray(y)[:, None] == model.classes_)
        if rows.size < len(y):
            raise ValueError(f"y has labels that are not among the classes {model.classes_}")
        own = shifted.predict_log_proba(X)[rows, columns]
        return float(_OF_LIKELIHOOD[scoring] * np.average(own, weights=sample_weight))
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(check_scoring(model, scoring)(shifted, X, y, **weights))


def _mean_loss(models: Models, scores: Array, rows: HeldOutRows) -> Array:
    """The negated mean loss of the models, over rows weighted as in the fit."""
    each = scores if scores.ndim == 3 else scores[:, :, None]
    return -models.template._losses_of_scores(each, rows.targets, rows.design)


def _log_likelihoods(models: Models, scores: Array, rows: HeldOutRows) -> Array:
    """The mean log-likelihood of the true classes, from the scores. Computed with log_expit and
    logsumexp: large margins do not round a probability to 0 or 1."""
    codes = rows.targets.codes
    if scores.ndim == 2:
        logs = log_expit(np.where(codes == 1, scores, -scores))
    else:
        # one-vs-rest probabilities are normalised by their sum
        joint = models.template.multi_class == "joint"
        each = scores if joint else log_expit(scores)
        own = np.take_along_axis(each, codes[None, :, None], axis=2)[:, :, 0]
        logs = own - logsumexp(each, axis=2)
    return np.asarray(np.average(logs, axis=1, weights=rows.sample_weight))


def _hits(scores: Array, rows: HeldOutRows) -> NDArray[np.bool_]:
    """Whether each model predicts the class of each row, (n_models, n_samples)."""
    codes = scores.argmax(axis=2) if scores.ndim == 3 else (scores > 0).astype(int)
    return np.asarray(codes == rows.targets.codes)


def _accuracy(models: Models, scores: Array, rows: HeldOutRows) -> Array:
    return np.asarray(np.average(_hits(scores, rows), axis=1, weights=rows.sample_weight))


def _balanced_accuracy(models: Models, scores: Array, rows: HeldOutRows) -> Array:
    """The mean of the recall of the classes that occur in the rows."""
    codes = rows.targets.codes
    weights = np.ones(codes.size) if rows.sample_weight is None else rows.sample_weight
    totals = np.bincount(codes, weights)
    weights = weights / totals[codes] / np.count_nonzero(totals)
    return np.asarray(_hits(scores, rows) @ weights)


# scores that depend on the predicted classes only, by scikit-learn's name
OF_CLASSES: Mapping[str, Judge] = {"accuracy": _accuracy, "balanced_accuracy": _balanced_accuracy}
# scikit-learn's name, and the deviance of statistics and glmnet: minus twice the log-likelihood
_OF_LIKELIHOOD = {"neg_log_loss": 1.0, "deviance": 2.0}


# losses of comparisons by the names of scikit-learn's scorers, of which larger is better
OF_LOSSES: Mapping[str, str] = {"log_loss": "neg_log_loss", "brier": "neg_brier_score"}
_OF_CLASSIFIERS = ("sklearn.metrics._classification", "sklearn.metrics._ranking")
HELD_OUT = frozenset(OF_LOSSES).union(
    name
    for name in get_scorer_names()
    if getattr(get_scorer(name)._score_func, "__module__", "") in _OF_CLASSIFIERS
)
"""Names of scores of classifiers on held-out rows."""


def held_out_scorer(name: str, n_classes: int) -> str:
    """scikit-learn's scorer for one of `HELD_OUT`; the area under the curve of several classes is
    the mean of one against the rest, as comparisons have it."""
    several = name == "roc_auc" and n_classes > 2
    return "roc_auc_ovr" if several else OF_LOSSES.get(name, name)


def of_second_class(scorer: str, classes: Values) -> Any:
    """The scorer; where it asks for a positive one of two classes that it cannot know, one with the
    second of them."""
    found = get_scorer(scorer)
    asks = "pos_label" in signature(found._score_func).parameters
    by_class = found._kwargs.get("average", "binary") == "binary"
    if classes.size > 2 or not asks or not by_class:
        return scorer
    if scorer != OF_LOSSES["brier"] and 1 in classes.tolist():  # the default of scikit-learn
        return scorer
    found._kwargs = {**found._kwargs, "pos_label": classes[1]}
    return found


def needs_probabilities(scorer: str) -> bool:
    return bool(get_scorer(scorer)._response_method == "predict_proba")


@dataclass(frozen=True)
class SklearnScorer:
    scorer: Callable[..., float]

    def __call__(self, models: Models, scores: Array, rows: HeldOutRows) -> Array:
        offset = rows.targets.offset
        each = (_with_offset(models.model(index), offset) for index in range(len(models)))
        return np.array([self.scorer(m, rows.X, rows.labels, **rows.arguments) for m in each])


def _with_offset(model: MarginEstimator, offset: Array | None) -> MarginEstimator:
    """The model with ``offset`` added in all its predictions, because scorers pass no offset."""
    if offset is None:
        return model
    shifted = copy(model)
    for name in ("decision_function", "predict", "predict_proba", "predict_log_proba", "score"):
        method = getattr(model, name, None)
        if method is not None:  # with its name, which scikit-learn reads
            setattr(shifted, name, update_wrapper(partial(method, offset=offset), method))
    return shifted


class RoutesMetadata:
    """Routing of the arguments of `fit`, with scikit-learn's metadata routing or without."""

    cv: Splits
    scoring: Scoring

    @abstractmethod
    def _template(self) -> MarginEstimator:
        """The plain classifier."""

    def get_metadata_routing(self) -> MetadataRouter:
        """Which of the arguments of `fit` go to the splitter (groups) and which to the scorer."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping
        router.add(
            splitter=routed_splitter(self.cv),
            method_mapping=fit().add(caller="fit", callee="split"),
        )
        judge = judge_of(self.scoring, self._template())
        if isinstance(judge, SklearnScorer):
            mapping = fit().add(caller="fit", callee="score")
            router.add(scorer=judge.scorer, method_mapping=mapping)
        return router

    def _routed(self, sample_weight: ArrayLike, params: Facts) -> Any:
        unrouted = {name: value for name, value in params.items() if name != "groups"}
        _raise_for_params(unrouted, self, "fit")
        if _routing_enabled():
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "fit", **weights, **params)
            return Bunch(splitter=routed["splitter"], scorer=routed.get("scorer", Bunch(score={})))
        weights = {}
        if sample_weight is not None and self._scores_with_weights():
            weights = {"sample_weight": sample_weight}
        return Bunch(splitter=Bunch(split=dict(params)), scorer=Bunch(score=weights))

    def _scores_with_weights(self) -> bool:
        """Whether the scoring takes weights; says so if not, as scikit-learn's searches do."""
        judge = judge_of(self.scoring, self._template())
        takes = True
        if isinstance(judge, SklearnScorer):
            # scorers made of a metric always accept sample_weight, so ask the metric itself
            asked = getattr(judge.scorer, "_score_func", judge.scorer)
            takes = "sample_weight" in signature(asked).parameters
        if not takes:
            warnings.warn(
                f"scoring={self.scoring!r} takes no sample_weight: held-out rows are judged as if "
                "all weighed the same; give a callable with an argument sample_weight",
                stacklevel=users_level(),
            )
        return takes
