"""Scores of the models of a path on held-out rows, and the metadata that scorers ask for.

Scores with a formula in the decision values take one product with the data for all models of a
path; other scorers are called once a model.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial, update_wrapper
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from proxmargin.data.designs import Design
from proxmargin.data.designs.blocks.device import in_memory
from proxmargin.data.inputs.beyond_memory import is_beyond_memory
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.inputs.validation import offset_argument
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.frames import users_level
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.models.selection.splitting import routed_splitter
from proxmargin.runtime.brief import shown

Array = NDArray[np.float64]


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
    arguments: Mapping[str, Any]  # what scorers take besides the data: a value a row
    # returns the rows as an array or a matrix. A callable, because few scorings read them
    copied: Callable[[], Any]

    @cached_property
    def X(self) -> Any:
        return self.copied()

    @property
    def labels(self) -> NDArray[Any]:
        return np.asarray(self.targets.classes[self.targets.codes])


# (models, their scores, rows) -> a number for each model, more is better
Judge = Callable[[Models, Array, HeldOutRows], Array]


def judge_of(scoring: Any, plain: MarginEstimator) -> Judge:
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
    shifted = _with_offset(model, offset)
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

    cv: Any
    scoring: Any

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

    def _routed(self, sample_weight: Any, params: Mapping[str, Any]) -> Any:
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
