"""Stability selection: features that enter the path on most halves of the samples."""

from __future__ import annotations

import os
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from proxmargin.data.designs.blocks.device import in_memory
from proxmargin.data.inputs.aligned import by_sample, checked_groups
from proxmargin.data.inputs.kinds import Features, Labels, Seed
from proxmargin.data.inputs.parameters import check_number, check_threads, check_verbose
from proxmargin.data.inputs.validation import validated, validated_weights
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.bases import MetaEstimatorMixin
from proxmargin.models.fitting.factors import unpenalised
from proxmargin.models.fitting.notebook import ToldEstimator
from proxmargin.models.paths.grid import default_grid, strength_of, unfitted
from proxmargin.models.selection.scoring import forget, warn_of_ordered_rows
from proxmargin.models.selection.stability.bounds import SelectionTerms
from proxmargin.models.selection.stability.half_samples import (
    HalfSampleTask,
    PathEntry,
    Samples,
    check_classes,
    path_entries,
)
from proxmargin.models.selection.stability.units import units_of
from proxmargin.runtime.brief import Listing, html_line, shown, users_level, with_pages
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.optional import optional
from proxmargin.runtime.threads import quiet_threads
from proxmargin.runtime.types import Array, Estimator, Values

if TYPE_CHECKING:
    import pandas as pd

    from proxmargin.models.fitting.bases import SelectorMixin
else:
    from sklearn.feature_selection import SelectorMixin


SHOWN = 10  # features in a notebook
POSSIBLE = (
    "HuberizedSVC, ElasticNetSVC, SquaredHingeSVC or SparseLogisticRegression with l1_ratio > 0, "
    "or MulticlassSVC with an l1 or group norm"
)


@dataclass(eq=False, repr=False)
class StabilitySelection(SelectorMixin, MetaEstimatorMixin, ToldEstimator):
    """Features that a sparse classifier selects on most halves of the samples.

    Complementary pairs (Shah and Samworth 2013): the samples are halved at random ``n_pairs``
    times, each class on its own, and the path of the estimator is fitted to both halves. A feature
    is stable if it enters at least the share ``threshold`` of all paths among the first ``q``.
    ``pfer`` bounds the expected number of stable features whose probability to be selected by a
    half-sample is at most ``q / n_features``, which noise features are if the
    estimator selects them no more often than by chance. Two of the three give the third.

    Parameters
    ----------
    estimator : a classifier with an l1 or group norm
        HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression or MulticlassSVC. Is
        not changed; its strength (``alpha``, or ``C``) does not matter.
    n_pairs : int, default 50
    threshold : float in (0.5, 1], optional
        Alone, half-samples select all features that enter at any strength, and ``pfer_`` is
        the bound for their mean number: an estimate, as q has to be fixed beforehand.
    pfer : float > 0, optional
        Per-family error rate. Alone with threshold=0.75, as is q. If nothing is given: threshold
        0.75 and pfer 1.
    q : int, optional
        The number of features that a half-sample selects. One that follows from the others is no
        more than half of its samples: of many features ``pfer_`` is far below ``pfer`` then.
    fdr : float in (0, 1], optional
        With ``q``: takes the least threshold whose bound is at most this share of the number of
        stable features. An estimate of the false discovery rate, not a bound on it: the threshold
        is chosen on the same data. (``pfer=0.05`` does bound that rate by 0.05, as it does the
        probability of any false selection.)
    assumption : {'unimodal', 'r-concave', 'none'}
        Of the bound, on the distribution of the frequency of a feature; 'none' is the bound of
        Meinshausen and Buehlmann, 'r-concave' the tightest. As in R's stabs.
    alphas : int or (n_alphas,), default 30
        Strengths of the penalty (values of ``C`` for MulticlassSVC), or their number: the default
        grid of `proxmargin.margin_path` for all rows then.
    eps : float in (0, 1], default 0.01
        Ratio of the weakest to the strongest penalty of a default grid.
    cluster : float in (0, 1], optional
        Absolute correlation from which features are reported together: clusters are those of
        complete linkage. They take the place of features, also in ``q`` and in the bounds: a
        cluster enters a path with its first member, and is stable with all its members.
    checkpoint : path-like, optional
        A file of finished half-samples (.npz). A run that was killed continues from it, with
        the result of a run that was not; after a complete run another threshold takes no time.
    n_jobs : int, optional
        Threads, over the half-samples; -1 for all cores. Within ``joblib.parallel_config("dask")``
        they are tasks of the cluster. The result does not depend on it.
    random_state : int, numpy.random.Generator, RandomState or None, default 0
        Draws the halves.
    verbose : int, default 0
        1 shows progress on standard error after two seconds.
    min_features : int, default 0
        Where fewer features are stable, `get_support` and `transform` take as many of the most
        frequent ones, with a warning: a pipeline needs one at least on every fold. ``stable_``
        and the bounds are of the stable ones alone.

    Attributes
    ----------
    frequencies_ : (n_features, n_alphas)
        The share of half-samples in which the feature (with ``cluster`` any of its cluster) has
        entered the path at this or a stronger penalty, among the first ``q`` to enter. Features
        with penalty factor 0 do not compete: 1.
    max_frequencies_ : (n_features,)
    stable_ : (n_features,) bool
    alphas_ : (n_alphas,)
        From the strongest penalty.
    threshold_ : float
        Infinite where none meets ``fdr``.
    pfer_ : float
        The bound for ``threshold_`` and ``q_``: at most ``pfer``.
    q_ : int or float
    fdr_ : float
        ``pfer_`` by the number of stable features (or clusters), at most 1: an estimate.
    cluster_ : (n_features,) integers
        The cluster of each feature, numbered by first features.
    classes_ : (n_classes,)
    n_features_in_ : int
    feature_names_in_ : (n_features,), for data frames

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import SparseLogisticRegression, StabilitySelection
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    >>> stable = StabilitySelection(lasso, n_pairs=25, threshold=0.75, pfer=1, random_state=0)
    >>> stable.fit(X, y).q_, stable.frequencies_.shape, stable.transform(X).shape[1] <= 30
    (5, (30, 30), True)
    """

    estimator: Estimator
    _: KW_ONLY
    n_pairs: int = 50
    threshold: float | None = None
    pfer: float | None = None
    q: int | None = None
    fdr: float | None = None
    assumption: str = "unimodal"
    alphas: int | ArrayLike = 30
    eps: float = 0.01
    cluster: float | None = None
    checkpoint: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    random_state: Seed = 0
    verbose: int = 0
    min_features: int = 0

    @with_pages
    def fit(
        self,
        X: Features,
        y: Labels | None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the paths of all half-samples, and find the stable features.

        Parameters
        ----------
        X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
        y : (n_samples,) labels of any type
            Samples must be independent, or rows of one patient fall into both halves: `groups`.
        sample_weight : (n_samples,), optional
            Weights in the fits. Halves are drawn from the samples of positive weight, each as
            likely as any other.
        offset : (n_samples,), optional
            As in the estimator.
        groups : (n_samples,), optional
            Patients, batches or centres: halves are of whole groups, and have as many of those
            with the same classes.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            The estimator selects no features; the message says which do.
        ValueError
            An invalid parameter or invalid data, named in the message; a class of fewer than four
            samples; a ``pfer`` that is impossible; a checkpoint of another run.
        KeyboardInterrupt
            After an interruption; the checkpoint has the half-samples that are finished.

        Warns
        -----
        ConvergenceWarning
            When fits ended before their gap met ``tol``; names the worst gap.
        UserWarning
            When features are constant: they do not count in the bounds. When ``q`` is more than
            the samples of a half. When fewer than ``min_features`` are stable.
        """
        terms = self._checked_terms()
        template = self._template()
        sample_weight = by_sample("sample_weight", sample_weight, X)
        offset = by_sample("offset", offset, X)
        groups = by_sample("groups", groups, X)
        given = X
        X, y = validated(template, X, y)
        if X.shape[1] < 2:
            raise ValueError("a selection needs at least 2 features, got 1 (n_features = 1)")
        weights = validated_weights(sample_weight, X)
        targets = template._encoded(y, weights, given)
        shift = template._checked_offset(offset, X, targets.classes)
        own = np.ones(targets.codes.size) if weights is None else weights
        names = template._without_names().get("feature_names_in_")
        blocks = None if groups is None else checked_groups(groups, targets.codes.size)[1]
        check_classes(targets.classes, targets.codes, own, blocks)
        warn_of_ordered_rows(None, groups, X, targets.codes, names)
        data = Samples(X, replace(targets, offset=shift), own, blocks)
        units, clusters = units_of(template, data.design, own / own.sum(), self.cluster)
        n_units = int(units.max()) + 1
        half = int(np.count_nonzero(own)) // 2
        terms = terms.completed(n_units, max(1, half // 2))
        if terms.q is not None and terms.q > half:
            warnings.warn(
                f"q={terms.q:g} is more than the {half} samples of a half, on which a lasso "
                f"selects hardly more features than samples: give q={max(1, half // 2)} or so and "
                "pfer, which lowers the threshold",
                UserWarning,
                stacklevel=users_level(),
            )
        with interrupts, quiet_threads(0):
            task = HalfSampleTask(template, self._grid(template, data), units, terms.q)
            entries = path_entries(self, task, data, n_units)
        forget(self)
        self.n_features_in_ = template.n_features_in_
        if names is not None:
            self.feature_names_in_ = names
        self.classes_, self.alphas_, self.cluster_ = targets.classes, task.grid, clusters
        self._publish(task, terms, entries, n_units)
        self._warn_of_unmet(entries, template.tol)
        return self

    def _checked_terms(self) -> SelectionTerms:
        terms = SelectionTerms.checked(self)
        check_number("eps", self.eps, low=0.0, low_open=True, high=1.0)
        check_number("cluster", self.cluster, low=0.0, low_open=True, high=1.0, optional=True)
        check_number("min_features", self.min_features, low=0, integer=True)
        check_threads(self.n_jobs)
        check_verbose(self.verbose)
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise ValueError(f"checkpoint must be a path or None, got {shown(self.checkpoint)}")
        return terms

    def _template(self) -> MarginEstimator:
        """An unfitted copy of the estimator, of which every parameter is checked. Raises TypeError:
        it has no path on which features enter."""
        given = self.estimator
        name = given.__name__ if isinstance(given, type) else type(given).__name__
        if isinstance(given, Pipeline):
            last = type(given.steps[-1][1]).__name__
            raise TypeError(
                "estimator must be a classifier of the features as they are given, got a Pipeline: "
                f"put StabilitySelection({last}(...)) in the place of its last step, whose fit "
                "takes sample_weight, and standardize=True in that of a scaler"
            )
        if not isinstance(given, MarginEstimator):
            raise TypeError(f"estimator must be a classifier that selects: {POSSIBLE}; got {name}")
        try:
            template = unfitted(given)
        except TypeError as error:
            raise TypeError(f"{name} selects no features: choose {POSSIBLE}") from error
        template.__dict__.update(callbacks=(), verbose=0, warm_start=False)
        template._check_parameters()
        template._check_model()
        if getattr(template, "norm_share", None) == 0:
            raise TypeError(f"{name} with these parameters selects no features: choose {POSSIBLE}")
        return template

    def _grid(self, template: MarginEstimator, data: Samples) -> Array:
        strength = strength_of(template)
        if isinstance(self.alphas, Integral) and not isinstance(self.alphas, bool):
            check_number("alphas, the number of strengths,", self.alphas, low=1, integer=True)
            assembly = template._assembled(data.design, data.targets)
            return default_grid(template, assembly, int(self.alphas), self.eps)
        grid = strength.checked(self.alphas)
        return grid[strength.order(grid)]

    def _publish(
        self, task: HalfSampleTask, terms: SelectionTerms, entries: list[PathEntry], n_units: int
    ) -> None:
        entered = np.zeros((n_units, task.grid.size), np.intp)
        for entry in entries:
            entered[entry.units, entry.strengths] += 1
        counts = entered.cumsum(axis=1)
        mean = float(np.mean([entry.units.size for entry in entries]))
        terms = terms.judged(counts[:, -1], mean, n_units)
        assert terms.threshold is not None
        assert terms.pfer is not None
        # features without a penalty are in every model; others outside of all units in none
        free = np.zeros(task.units.size, np.bool_)
        free[unpenalised(task.template, free.size)] = True
        competes, outside = task.units >= 0, free.astype(float)[:, None]
        of_units = (counts / len(entries))[task.units]
        self.frequencies_ = np.where(competes[:, None], of_units, outside)
        self.max_frequencies_ = self.frequencies_[:, -1].copy()
        stable = terms.stable(counts[:, -1])
        self.stable_ = np.where(competes, stable[task.units], free)
        self._support = self._at_least(int(self.min_features))
        self.threshold_, self.pfer_ = terms.threshold, terms.pfer
        self.q_ = mean if terms.q is None else terms.q
        self.fdr_ = min(1.0, terms.pfer / max(int(stable.sum()), 1))
        if not np.isfinite(terms.threshold):
            warnings.warn(
                f"no threshold meets fdr={self.fdr:g}: no feature is stable; try a smaller q",
                UserWarning,
                stacklevel=users_level(),
            )

    def _at_least(self, count: int) -> NDArray[np.bool_]:
        """The stable features, or the most frequent ones where too few are stable."""
        support: NDArray[np.bool_] = self.stable_.copy()
        short = min(count, support.size) - int(np.count_nonzero(support))
        if short > 0:
            order = np.argsort(-self.max_frequencies_, kind="stable")
            support[order[~support[order]][:short]] = True
            warnings.warn(
                f"{np.count_nonzero(self.stable_)} features are stable: min_features={count} "
                f"takes the {short} most frequent others, for which the bound does not hold",
                UserWarning,
                stacklevel=users_level(),
            )
        return support

    def _warn_of_unmet(self, entries: list[PathEntry], tol: float) -> None:
        unmet, fits = (sum(getattr(e, name) for e in entries) for name in ("unmet", "fits"))
        if unmet:
            worst = max(entry.worst for entry in entries)
            warnings.warn(
                f"{unmet} of {fits} fits of {type(self).__name__} stopped before their tolerance "
                f"was met; the worst is certified to be within a relative gap of {worst:.2e} of "
                f"its optimum (tol={tol:g})",
                ConvergenceWarning,
                stacklevel=users_level(),
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "max_frequencies_")
        mask: NDArray[np.bool_] = self._support
        return mask

    def transform(self, X: Features) -> Values:
        """The columns of the selected features, (n_samples, n_selected_features)."""
        return super().transform(in_memory(X))

    def _told(self) -> str:
        if not hasattr(self, "max_frequencies_"):
            return html_line("not fitted: fit() finds the stable features")
        frame = self.to_frame()
        rows = [
            (str(row.feature), f"{row.frequency:.2f}", "yes" if row.stable else "no")
            for row in frame.head(SHOWN).itertuples()
        ]
        of = (
            f"{np.count_nonzero(self.stable_)} of {len(frame)} features are stable: selected on at "
            f"least {self.threshold_:.0%} of {2 * self.n_pairs} half-samples; of features that are "
            f"selected by chance at most {self.pfer_:.2g} are expected among them"
        )
        return f"{html_line(of)}{Listing(('feature', 'frequency', 'stable'), rows).html()}"

    def to_frame(self) -> pd.DataFrame:
        """One row a feature, the most frequent first: feature, frequency, stable and cluster.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        check_is_fitted(self, "max_frequencies_")
        pandas = optional("pandas", "a data frame of frequencies")
        order = np.argsort(-self.max_frequencies_, kind="stable")
        names = getattr(self, "feature_names_in_", np.arange(order.size))
        frame: pd.DataFrame = pandas.DataFrame(
            {
                "feature": names[order],
                "frequency": self.max_frequencies_[order],
                "stable": self.stable_[order],
                "cluster": self.cluster_[order],
            }
        )
        return frame

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
