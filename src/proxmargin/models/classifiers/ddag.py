"""Many classes through a decision directed acyclic graph over pairs of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations, repeat
from math import ceil
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import TINY
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import check_threads
from proxmargin.data.inputs.targets import Targets, few_classes
from proxmargin.data.inputs.validation import (
    check_labels,
    validated,
    validated_features,
    validated_weights,
)
from proxmargin.models.classifiers.regularized import SVC
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.bases import ClassifierMixin, MetaEstimatorMixin
from proxmargin.models.fitting.notebook import CertifiedEstimator
from proxmargin.models.fitting.parameters import NAMES
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
from proxmargin.runtime.brief import shown, users_level, with_pages
from proxmargin.runtime.types import Array, Estimator, Index, Values
from proxmargin.solvers.loop.solver import Stop

OF_FEATURES = ("n_features_in_", *NAMES)  # what `validated` notes
# seconds for a pair when no time is left: enough for the null model and its certificate
NO_TIME = 1e-9


@dataclass(eq=False, repr=False)
class DDAGClassifier(MetaEstimatorMixin, ClassifierMixin, CertifiedEstimator):
    """Directed acyclic graph of binary classifiers (Platt et al. 2000).

    A classifier is fitted for each pair of classes. A prediction keeps a list of all classes and
    lets the classifier of its first and last class drop one of them, until one is left: n_classes -
    1 evaluations, instead of one for each pair.

    Parameters
    ----------
    estimator : a binary classifier, optional
        Cloned for each pair; `SVC` by default. A ``time_limit`` of it is the limit of all pairs
        together: each gets an equal share of the remaining time. Of a dict as its ``class_weight``
        each pair gets the part of its two labels.
    n_jobs : int, optional
        Pairs fitted at the same time; see `joblib.Parallel`.

    Attributes
    ----------
    classes_ : (n_classes,)
    estimators_ : list of fitted classifiers
        One for each of ``pairs_``.
    pairs_ : list of (i, j), i < j
        Class indices of each classifier.
    certificate_ : Certificate or CertificateList
        Certificates of all of them, if the binary classifiers have one.
    n_features_in_ : int

    See Also
    --------
    CalibratedMargin : Probabilities of the classes, from held-out scores of this classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from proxmargin import SVC, DDAGClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> len(DDAGClassifier(SVC()).fit(X, y).estimators_)
    3
    """

    estimator: Estimator | None = None
    _: KW_ONLY
    n_jobs: int | None = None

    @with_pages
    def fit(self, X: Features, y: Labels, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a classifier for each pair of classes.

        Parameters
        ----------
        X : (n_samples, n_features) numbers, or text for a pipeline that begins with its encoder
        y : (n_samples,)
        sample_weight : (n_samples,), optional
            Classes without positive weight are ignored.

        Raises
        ------
        ValueError
            Fewer than two classes, an estimator that is no classifier, a ``class_weight`` of a
            label that is not in y, or what the estimator raises.
        """
        check_threads(self.n_jobs)
        begun, estimator = clock(), self._checked_estimator()
        sample_weight = by_sample("sample_weight", sample_weight, X)
        X, y = validated(self, X, y)
        weights = validated_weights(sample_weight, X)
        counted = y if weights is None else y[weights > 0]
        self.classes_ = np.unique(counted)
        if self.classes_.size < 2:
            raise few_classes(self.classes_)
        pairs = _PairFits.of(estimator, self)
        if pairs.class_weight is not None:  # of the labels of all pairs
            Targets.encode(y, weights, pairs.class_weight)
        self.pairs_ = list(combinations(range(self.classes_.size), 2))
        members = [y == label for label in self.classes_]
        pairs.check(y, weights, [members[i] | members[j] for i, j in self.pairs_])
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(pairs.fit)(X, y, weights, members[i] | members[j], part)
            for (i, j), part in zip(self.pairs_, self._times(estimator, begun), strict=True)
        )
        self.estimators_ = [model for model, _ in fitted]
        self._note_certificates()
        self._warn([said for _, said in fitted])
        return self

    def _times(self, estimator: Estimator, begun: float) -> Iterator[float | None]:
        """Seconds for each pair, computed when its fit begins; None without a limit. Pairs that are
        fitted in parallel get equal times: unused time is not passed on."""
        pairs, jobs = len(self.pairs_), effective_n_jobs(self.n_jobs)
        limit = estimator.get_params(deep=False).get("time_limit")
        seconds = float(limit) if isinstance(limit, Real) else np.inf
        if not 0.0 < seconds < np.inf:  # no limit, or one that the estimator will reject
            yield from repeat(None, pairs)
        elif jobs > 1:
            yield from repeat(seconds / ceil(pairs / jobs), pairs)
        else:
            stop = Stop(time_limit=seconds).started(begun, ())
            for left in range(pairs, 0, -1):
                now = clock()
                yield max(stop.shared(now, left).deadline - now, NO_TIME)

    def _warn(self, said: Sequence[str | None]) -> None:
        """Warn once for all pairs, in whatever process they were fitted."""
        short = [k for k, words in enumerate(said) if words]
        if short:
            first, second = self.classes_[list(self.pairs_[short[0]])].tolist()
            warnings.warn(
                f"DDAGClassifier: {len(short)} of {len(said)} pairs of classes ended early; of "
                f"{first!r} and {second!r}: {said[short[0]]}",
                ConvergenceWarning,
                stacklevel=users_level(),
            )

    def score(self, X: Features, y: Labels, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy of `predict`, weighted by ``sample_weight``."""
        check_labels(y, X)
        return float(super().score(X, y, by_sample("sample_weight", sample_weight, X)))

    def predict(self, X: Features) -> Values:
        """The class that remains, (n_samples,)."""
        left, _ = self._eliminate(X, _side)
        return np.asarray(self.classes_[left])

    def decision_function(self, X: Features) -> Array:
        """Margins with which each class was kept or dropped on the way through the graph.

        The class that remains scores the least of the margins by which it was kept; every other
        class minus the margin by which it was dropped: the largest score is that of `predict`. A
        margin is the absolute ``decision_function`` of the binary classifier, or one without such a
        method.

        Returns
        -------
        (n_samples, n_classes), or (n_samples,) for two classes: positive for ``classes_[1]``
        """
        scores = self._eliminate(X, _margin)[1]
        return scores[:, 1] if scores.shape[1] == 2 else scores

    def _eliminate(
        self, X: Features, margin: Callable[[Any, Any, Any], Array]
    ) -> tuple[Index, Array]:
        """Index of the class that remains for each sample, and the scores of all classes.
        ``margin(model, rows, later)`` is positive for samples that go to the class ``later``."""
        check_is_fitted(self)
        X = validated_features(self, X)
        classes = self.classes_.size
        model_of = dict(zip(self.pairs_, self.estimators_, strict=True))
        first = np.zeros(_num_samples(X), dtype=np.intp)
        last = np.full_like(first, classes - 1)
        scores = np.full((first.size, classes), np.inf)
        for _ in range(classes - 1):
            nodes = first * classes + last
            for node in np.unique(nodes):
                i, j = divmod(int(node), classes)
                here, model = np.flatnonzero(nodes == node), model_of[i, j]
                margins = margin(model, self._rows(X, here, model), self.classes_[j])
                is_later = margins > 0
                scores[here, j] = np.minimum(scores[here, j], margins)
                scores[here, i] = np.minimum(scores[here, i], -margins)
                first[here] += is_later
                last[here] -= ~is_later
        return first, scores

    def _checked_estimator(self) -> Any:
        if self.estimator is None:
            return SVC()
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise ValueError(
                f"estimator must be a classifier, got the class {name}: {name}() is one"
            )
        if not (hasattr(self.estimator, "get_params") and is_classifier(self.estimator)):
            raise ValueError(f"estimator must be a classifier, got {shown(self.estimator)}")
        return self.estimator

    def _rows(self, X: Features, index: Index, model: Estimator) -> Any:
        rows = _safe_indexing(X, index)
        if get_tags(model).input_tags.pairwise:
            return rows[:, model.training_rows_]
        return rows

    def _note_certificates(self) -> None:
        self.__dict__.pop("certificate_", None)  # of an earlier fit
        found: list[Certificate] = []
        for model in self.estimators_:
            certificate = getattr(model, "certificate_", None)
            if isinstance(certificate, Certificate):
                found.append(certificate)
        if len(found) == len(self.estimators_):
            self.certificate_ = found[0] if len(found) == 1 else CertificateList(found)

    @property
    def _takes_objects(self) -> bool:
        """Whether the classifiers of pairs compare samples by a function, or first encode text."""
        if isinstance(self.estimator, Pipeline):
            tags = get_tags(self.estimator.steps[0][1]).input_tags
            return bool(tags.string or tags.categorical)
        own = getattr(self.estimator, "_takes_objects", None)
        return callable(getattr(self.estimator, "kernel", None)) if own is None else own

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(SVC() if self.estimator is None else self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.pairwise = inner.pairwise
        return tags


def _side(model: Estimator, rows: object, later: object) -> Array:
    """+1 for samples that are predicted as the class ``later``, else -1."""
    return np.where(model.predict(rows) == later, 1.0, -1.0)


def _margin(model: Estimator, rows: object, later: object) -> Array:
    """`_side` times the absolute decision function, if there is one."""
    side = _side(model, rows, later)
    if not hasattr(model, "decision_function"):
        return side
    # keep the sign of a decision that is exactly zero
    size = np.abs(np.asarray(model.decision_function(rows), dtype=np.float64).ravel())
    return side * np.maximum(size, TINY)


@dataclass(frozen=True, eq=False)
class _PairFits:
    """Fits the classifiers of pairs of classes."""

    estimator: Estimator  # of arrays, whose features have no names
    class_weight: Mapping[Any, float] | None  # of the labels of all pairs, if it is a mapping
    pairwise: bool  # whether the data are a kernel matrix

    @classmethod
    def of(cls, estimator: Estimator, named: DDAGClassifier) -> _PairFits:
        """Of an estimator, for the features that ``named`` was validated with."""
        estimator = clone(estimator)
        if isinstance(estimator, MarginEstimator):
            known = {name: value for name, value in vars(named).items() if name in OF_FEATURES}
            estimator.__dict__.update(known)
            estimator._without_names()
        class_weight = estimator.get_params(deep=False).get("class_weight")
        return cls(
            estimator,
            class_weight if isinstance(class_weight, Mapping) else None,
            get_tags(estimator).input_tags.pairwise,
        )

    def fit(
        self, X: Any, y: Values, weights: Any, pair: NDArray[np.bool_], seconds: float | None
    ) -> tuple[Any, str | None]:
        """The classifier of a pair, fitted on its samples, and its convergence warning."""
        rows, labels = np.flatnonzero(pair), y[pair]
        model = self._fresh(labels)
        part = X[np.ix_(rows, rows)] if self.pairwise else X[rows]
        if seconds is not None:
            model.set_params(time_limit=seconds)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            weighted = {} if weights is None else {"sample_weight": weights[rows]}
            model.fit(part, labels, **weighted)
        if seconds is not None:
            model.set_params(time_limit=self.estimator.time_limit)
        short = [one for one in caught if issubclass(one.category, ConvergenceWarning)]
        for one in caught:
            if one not in short:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        if self.pairwise:
            model.training_rows_ = rows
        return model, str(short[0].message) if short else None

    def check(self, y: Values, weights: Array | None, pairs: Sequence[NDArray[np.bool_]]) -> None:
        """Raise ValueError for a parameter that the classes of a pair do not admit."""
        if not isinstance(self.estimator, MarginEstimator):
            return
        self.estimator._check_parameters()
        self.estimator._check_model()
        self.estimator._check_targets(
            Targets.encode(
                y[pair],
                None if weights is None else weights[pair],
                self._fresh(y[pair]).class_weight,
            )
            for pair in pairs
        )

    def _fresh(self, labels: Values) -> Any:
        """A classifier to be fitted to these labels."""
        model = clone(self.estimator)
        if self.class_weight is not None:
            own = set(labels.tolist())
            model.set_params(class_weight={k: v for k, v in self.class_weight.items() if k in own})
        return model
