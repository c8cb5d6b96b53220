"""Probabilities for classifiers that have scores only, from held-out scores."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, check_is_fitted, column_or_1d

from proxmargin.compiled.rounding import score_levels
from proxmargin.data.designs.blocks.device import in_memory
from proxmargin.data.inputs.aligned import by_sample, refuse_masked, refuse_other_order
from proxmargin.data.inputs.kinds import Features, Labels, Seed, Splits
from proxmargin.data.inputs.parameters import (
    check_choice,
    check_number,
    check_threads,
    is_number_of_folds,
)
from proxmargin.data.inputs.targets import few_classes, refuse_small_classes
from proxmargin.data.inputs.validation import validated_weights
from proxmargin.models.fitting.bases import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from proxmargin.models.selection.base import CrossValidated
from proxmargin.models.selection.calibrators import CALIBRATORS, fit_calibrator
from proxmargin.models.selection.scoring import (
    check_disjoint,
    forget,
    names_checked,
    routed_splitter,
    splitter_of,
    warn_of_ordered_rows,
    weight_argument,
)
from proxmargin.runtime.brief import users_level, with_pages
from proxmargin.runtime.types import Array, Estimator, Facts, Values

Metadata = Facts

FEWEST_COUNTED = 0.5  # mean weight below which weights are likely shares, and not counts


@dataclass(eq=False, repr=False)
class CalibratedMargin(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with calibrated probabilities, by a map of held-out scores.

    The scores of each sample come from a fit that did not see it, and one map is fitted to all of
    them. Probabilities are the mean over the fits of the folds, or those of one fit to all samples.
    A classifier that chooses its strength by cross-validation (`HuberizedSVCCV` and its like)
    chooses once, on the same folds, which are then fitted with that strength.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function``: of this package, of scikit-learn, or a pipeline.
    method : {'sigmoid', 'isotonic', 'temperature', 'beta'}, default 'sigmoid'
        'sigmoid' is Platt's map with two parameters, and for more than two classes multinomial
        logistic regression on the scores with a ridge. 'temperature' is one factor on all scores,
        without a shift: for scores that are log-odds up to a factor. 'isotonic' is any
        non-decreasing map, for a thousand samples and more. 'beta' has three parameters and
        contains the sigmoid. The last two treat each of several classes against the rest.
    cv : int, splitter or iterable, default 5
        Folds of the held-out scores; of a classifier that chooses its strength in place of its own.
        A number of them are stratified and shuffled, unlike scikit-learn's.
    ensemble : bool or 'auto', default 'auto'
        Whether probabilities are the mean over the fits of the folds, which is a little more
        accurate. False: of ``estimator_``, one fit to all samples. 'auto': True, but of kernel
        matrices False.
    reject_cost : float in (0, 0.5], optional
        The cost of rejecting a sample, where that of an error is 1. `predict` then rejects
        those whose most probable class is wrong with a greater probability (Chow's rule), and
        `score` is the accuracy of the others.
    n_jobs : int, optional
        Parallel jobs for the folds.
    random_state : int, numpy.random.Generator, RandomState or None, default 0
        Shuffles a number of folds: the same ones each time.

    Attributes
    ----------
    estimators_ : list of classifiers
        Fitted to the training parts of the folds.
    estimator_ : classifier
        Fitted to all samples; without ``ensemble``, and if it chooses its strength.
    classes_ : (n_classes,)
    calibrator_ : object
        With ``probabilities(scores)``.
    oof_scores_ : (n_samples,), or (n_samples, n_classes)
        The held-out scores, their mean for a sample that was held out several times; NaN if never.
    n_features_in_, feature_names_in_
        Of the classifiers, if they have them.

    Notes
    -----
    Where the strength is chosen by the scores that calibrate it, probabilities are slightly too
    sure; nested folds, ``cross_val_predict`` over this class, show by how much.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines. Zadrozny and Elkan (2002),
    Transforming classifier scores into accurate multiclass probability estimates. Kull, Silva Filho
    and Flach (2017), Beta calibration. Guo et al. (2017), On calibration of modern neural networks.
    Chow (1970), On optimum recognition error and reject tradeoff.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import SVC, CalibratedMargin
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = CalibratedMargin(SVC(standardize=True), reject_cost=0.1).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)
    """

    estimator: Estimator
    method: str = "sigmoid"
    cv: Splits = 5
    _: KW_ONLY
    ensemble: bool | str = "auto"
    reject_cost: float | None = None
    n_jobs: int | None = None
    random_state: Seed = 0

    @with_pages
    def fit(
        self,
        X: Features,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        **params: ArrayLike | None,
    ) -> Self:
        """Fit the classifiers and the map of their scores.

        Parameters
        ----------
        X : (n_samples, n_features)
        y : (n_samples,) labels
        sample_weight : (n_samples,), optional
            Weights of the samples, in the fits and in the map. They count samples: weight 2 is a
            repeated row. Of a pipeline the last step gets them.
        **params
            ``groups``, which folds keep whole if ``cv`` is a number or a splitter that does so;
            with scikit-learn's metadata routing whatever classifier and splitter ask for. The map
            has the weights in any case.

        Raises
        ------
        ValueError
            An invalid parameter or invalid data, named in the message; a class with fewer samples
            than folds, or that a training part lacks; fewer groups than folds; a fold that holds
            out rows of its training part; scores of pairs of classes; a kernel matrix
            with ``ensemble=True``; an ``offset``, which held-out scores would lack.
        TypeError
            The estimator has no ``decision_function``, or takes no ``sample_weight`` and gets one.

        Warns
        -----
        UserWarning
            When the map falls as the scores rise, which reverses the classifier; names the AUC of
            the held-out scores. When weights are likely shares.
        """
        self._check_parameters()
        sample_weight = by_sample("sample_weight", sample_weight, X)
        named = {name: by_sample(name, each, X) for name, each in params.items()}
        refuse_masked("X", X)
        refuse_masked("y", y)
        refuse_other_order("y", y, X)
        labels: Values = column_or_1d(in_memory(y), warn=True)
        samples, labels, _ = indexable(in_memory(X), labels, named.get("groups"))
        check_classification_targets(labels)
        weights = validated_weights(sample_weight, samples)
        fitting, splitting = self._routed(weights, named)
        live = np.ones(len(labels), bool) if weights is None else weights > 0
        self.classes_ = np.unique(labels[live])  # classes without weight are as good as absent
        codes = np.minimum(np.searchsorted(self.classes_, labels), max(self.classes_.size - 1, 0))
        splitter = splitter_of(self.cv, labels, splitting.get("groups"), self.random_state)
        self._check_classes(codes[live], splitter.get_n_splits(samples, labels, **splitting))
        folds = list(splitter.split(samples, labels, **splitting))
        check_disjoint(folds, len(labels))
        if not self._is_pairwise:
            warn_of_ordered_rows(self.cv, splitting.get("groups"), samples, codes)
        plain, fitting = self._plain(samples, labels, fitting, folds)
        self.estimators_ = self._fitted_to_folds(plain, samples, labels, fitting, folds)
        if not self._is_ensemble and not hasattr(self, "estimator_"):
            self.estimator_ = clone(plain).fit(samples, labels, **fitting)
        scores, rows = self._held_out(samples, labels, folds)
        used = live[rows]
        counted = np.ones(rows.size) if weights is None else weights[rows]
        total, number = counted[used].sum(), int(used.sum())
        if total < FEWEST_COUNTED * number:  # shares that sum to one would count as one sample
            warnings.warn(
                f"sample_weight sums to {total:.3g} over {number} held-out samples, and weights "
                "count samples: probabilities will be unsure; scale them to a mean of one",
                stacklevel=users_level(),
            )
        self.calibrator_ = fit_calibrator(
            self.method, scores[used], codes[rows][used], counted[used]
        )
        if scores.ndim == 1:
            self._warn_of_reversed(scores[used], codes[rows][used], counted[used])
        model = self.estimators_[0] if self._is_ensemble else self.estimator_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def _check_parameters(self) -> None:
        forget(self)
        check_threads(self.n_jobs)
        check_choice("method", self.method, CALIBRATORS)
        if not isinstance(self.ensemble, bool | np.bool_):
            check_choice("ensemble, if not True or False,", self.ensemble, ("auto",))
        check_number(
            "reject_cost", self.reject_cost, low=0.0, high=0.5, low_open=True, optional=True
        )
        if not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                "estimator must have a decision_function, and "
                f"{type(self.estimator).__name__} has none"
            )
        if self._is_ensemble and self._is_pairwise:
            raise ValueError(
                "ensemble must be False or 'auto' for a kernel matrix, of which folds see parts"
            )

    @property
    def _is_pairwise(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.pairwise)

    @property
    def _is_ensemble(self) -> bool:
        return not self._is_pairwise if self.ensemble == "auto" else bool(self.ensemble)

    def _check_classes(self, codes: NDArray[np.intp], folds: int) -> None:
        """Raise ValueError for one class, and where stratified folds would lack a class."""
        counts = np.bincount(codes)
        if counts.size < 2:
            raise few_classes(self.classes_)
        if is_number_of_folds(self.cv):
            what = f"{folds} folds need"
            refuse_small_classes(self.classes_, counts, folds, what, ", or give a smaller cv")

    def get_metadata_routing(self) -> MetadataRouter:
        """Which of the arguments of `fit` go to the classifier and which to the splitter."""
        classifier = self.estimator
        if isinstance(classifier, CrossValidated):  # has the folds of this class, not its own
            classifier = clone(classifier).set_params(cv=None)
        mapping = MethodMapping
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=classifier, method_mapping=mapping().add(caller="fit", callee="fit"))
            .add(
                splitter=routed_splitter(self.cv),
                method_mapping=mapping().add(caller="fit", callee="split"),
            )
        )

    def _routed(self, weights: Array | None, params: Facts) -> tuple[Metadata, Metadata]:
        """What the fits get, and what the splitter gets."""
        _raise_for_params({n: v for n, v in params.items() if n != "groups"}, self, "fit")
        if not _routing_enabled():
            named = {} if weights is None else {weight_argument(self.estimator): weights}
            return named, {n: value for n, value in params.items() if value is not None}
        given = {} if weights is None else {"sample_weight": weights}
        routed = process_routing(self, "fit", **given, **params)
        if "offset" in routed.estimator.fit:
            raise ValueError("offset: probabilities are those of scores without one")
        return routed.estimator.fit, routed.splitter.split

    def _plain(
        self, X: Values, y: Values, fitting: Metadata, folds: list[Any]
    ) -> tuple[Any, Metadata]:
        """The classifier to fit to the folds, with the strength that it has chosen if it does, and
        the metadata for its fits."""
        if not isinstance(self.estimator, CrossValidated):
            return self.estimator, fitting
        search = clone(self.estimator).set_params(cv=folds, refit=True)
        self.estimator_ = search.fit(X, y, **fitting)
        weights = {n: value for n, value in fitting.items() if n == "sample_weight"}
        return self.estimator_.best_estimator_, weights

    def _fitted_to_folds(
        self, plain: Estimator, X: Features, y: Labels, fitting: Metadata, folds: list[Any]
    ) -> list[Any]:
        """A classifier for each fold. Raises ValueError: the training part of a fold lacks a
        class."""
        models: list[Any] = Parallel(n_jobs=self.n_jobs)(
            delayed(_fitted)(clone(plain), X, y, fitting, train) for train, _ in folds
        )
        for number, model in enumerate(models):
            missing = [label for label in self.classes_ if label not in model.classes_]
            if missing:
                raise ValueError(
                    f"the training part of fold {number} has no sample of class {missing[0]!s}: "
                    "choose fewer folds, or stratified ones"
                )
        return models

    def _held_out(self, X: Features, y: Values, folds: list[Any]) -> tuple[Array, NDArray[np.intp]]:
        """Scores of the held-out samples of all folds, and their rows; sets ``oof_scores_``."""
        scores, rows = [], []
        for model, (train, test) in zip(self.estimators_, folds, strict=True):
            samples, _ = _safe_split(model, X, y, test, train)
            scores.append(self._scores_of(model, samples))
            rows.append(np.arange(len(y))[test])
        every, numbers = np.concatenate(scores), np.concatenate(rows)
        total = np.zeros((len(y), *every.shape[1:]))
        np.add.at(total, numbers, every)
        times = np.bincount(numbers, minlength=len(y)).astype(float)
        times[times == 0] = np.nan
        self.oof_scores_ = total / times.reshape(-1, *[1] * (every.ndim - 1))
        return every, numbers

    def _warn_of_reversed(self, scores: Array, codes: NDArray[np.intp], weights: Array) -> None:
        """Warn of a map that falls: it predicts the class against which the scores speak."""
        ends = self.calibrator_.probabilities(np.array([scores.min(), scores.max()]))[:, 1]
        if ends[1] < ends[0]:
            area = roc_auc_score(codes, score_levels(scores), sample_weight=weights)
            warnings.warn(
                f"the map of the held-out scores, whose AUC is {area:.3f}, reverses the "
                "classifier: probabilities fall as scores rise, as scores of held-out rows say "
                "little or nothing of their classes; there may be nothing to learn in these data",
                UserWarning,
                stacklevel=users_level(),
            )

    def predict_proba(self, X: Features) -> Array:
        """Probabilities of the classes, (n_samples, n_classes)."""
        if not hasattr(self, "calibrator_"):
            check_is_fitted(self, "calibrator_")  # whose look at the tags takes its time
        models, X = self._predicting, in_memory(X)
        with names_checked(self, X):
            scores = [self._scores_of(model, X) for model in models]
        each = [self.calibrator_.probabilities(of_one) for of_one in scores]
        return np.asarray(np.mean(each, axis=0))

    @property
    def _predicting(self) -> list[object]:
        """The fitted classifiers whose probabilities are averaged."""
        name = "estimators_" if self._is_ensemble else "estimator_"
        if not hasattr(self, name):
            fitted = not self._is_ensemble
            raise NotFittedError(f"fitted with ensemble={fitted}: fit again for {not fitted}")
        return self.estimators_ if self._is_ensemble else [self.estimator_]

    def _scores_of(self, model: Estimator, X: Features) -> Array:
        """Scores of the classes; raises ValueError for those of pairs of classes."""
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        count = self.classes_.size
        by_pairs = getattr(model, "decision_function_shape", "ovr") == "ovo" and count > 2
        if by_pairs or scores.shape[1:] != (() if count == 2 else (count,)):
            raise ValueError(
                f"{type(model).__name__} must have one score for two classes, and one a class for "
                f"more: its scores have shape {scores.shape} for {count} classes"
                + (", one a pair (decision_function_shape='ovo')" if by_pairs else "")
            )
        return scores

    def score(self, X: Features, y: Labels, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy of `predict`, weighted by ``sample_weight``; with ``reject_cost`` that of
        the samples that are not rejected, NaN if all are."""
        predicted = self.predict(X)
        kept = ~np.ma.getmaskarray(predicted)
        if not kept.any():
            return float("nan")
        refuse_masked("y", y)
        refuse_other_order("y", y, X)
        weights = by_sample("sample_weight", sample_weight, X)
        weights = None if weights is None else np.asarray(weights)[kept]
        right = np.ma.getdata(predicted)[kept] == np.asarray(y)[kept]
        return float(np.average(right, weights=weights))

    def predict(self, X: Features) -> Values:
        """The most probable class, the first of equally probable ones, (n_samples,).

        With ``reject_cost`` a masked array (`numpy.ma`), in which rejected samples are masked.
        """
        probabilities = self.predict_proba(X)
        labels = self.classes_[probabilities.argmax(axis=1)]
        if self.reject_cost is None:
            return np.asarray(labels)
        return np.ma.masked_array(labels, mask=self._rejects(probabilities))

    def rejects(self, X: Features) -> NDArray[np.bool_]:
        """Which samples `predict` rejects, (n_samples,); none without ``reject_cost``."""
        return self._rejects(self.predict_proba(X))

    def _rejects(self, probabilities: Array) -> NDArray[np.bool_]:
        cost = 1.0 if self.reject_cost is None else self.reject_cost
        return np.asarray(1.0 - probabilities.max(axis=1) > cost)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            tags.input_tags = inner().input_tags
        return tags


def _fitted(model: Estimator, X: Features, y: Labels, fitting: Metadata, train: object) -> Any:
    samples, labels = _safe_split(model, X, y, train)
    return model.fit(samples, labels, **_check_method_params(X, fitting, indices=train))
