"""The permutation test of DiProPerm (Wei et al. 2016) for classifiers with a direction."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, column_or_1d

from proxmargin.data.inputs.aligned import by_sample, checked_groups
from proxmargin.data.inputs.kinds import Features, Labels, Seed, Splits
from proxmargin.data.inputs.parameters import SEEDS, check_number, drawn_seeds, seeded_model
from proxmargin.data.inputs.targets import few_classes
from proxmargin.data.inputs.validation import check_labels, validated
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.permutations.labelings import (
    DRAWN_TOGETHER,
    OF_PROJECTIONS,
    Codes,
    Labelings,
    spread_of_t,
)
from proxmargin.models.permutations.measures import (
    CrossValidatedScore,
    LabelingStatistics,
    Measure,
    OneByOne,
    SideBySide,
    seeded_folds,
)
from proxmargin.models.selection.scoring import (
    HELD_OUT,
    held_out_scorer,
    needs_probabilities,
    warn_of_ordered_rows,
)
from proxmargin.runtime.brief import html_line, users_level
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import Carried, quiet_threads
from proxmargin.runtime.types import Array, Estimator, Values

ACCURACY = ("accuracy", "accuracy-cv")  # the first is the name, the second says how
TIE = 1e-7  # relative difference of statistics that are equal up to rounding: mirrored labelings
PILED = 0.1  # spread within classes over the difference of their means: overfitting, if permuted
EXACT_PILE = 1e-3  # the same, of the order of what solvers leave of zero
BLOCK_ENTRIES = 1 << 22  # signs of labelings held at a time: 32 MB each of a few arrays


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest:
    """Whether classes are farther apart than classes that are drawn by chance.

    Attributes
    ----------
    name : str
        Of the statistic.
    statistic : float
        Of the given labels.
    null : (n_permutations,)
        Of the permuted labels; where ``exact`` of all different labelings, the given one included.
    pvalue : float
        ``(1 + k) / (1 + n)`` for k of n permutations that reach the statistic; if exact the share
        of all labelings that do.
    zscore : float
        The statistic minus the mean of ``null``, in its standard deviations; NaN if they are zero.
    exact : bool
    largest_gap : float
        The largest relative duality gap of all fits; NaN if they have no certificates.
    asked : int
        The parameter ``n_permutations``: more than were taken if there are no more labelings, or
        after an interruption.
    interrupted : bool
        Whether it was ended by Ctrl-C before it had all of its permutations.

    See Also
    --------
    permutation_test : Makes one.
    PermutationDisplay : Draws it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import DWD, permutation_test
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> test = permutation_test(DWD(standardize=True), X[:40], y[:40], n_permutations=99)
    >>> test.null.shape, test.exact, test.pvalue
    ((99,), False, 0.01)
    """

    name: str
    statistic: float
    null: Array
    pvalue: float
    zscore: float
    exact: bool
    largest_gap: float
    asked: int
    interrupted: bool

    @property
    def n_permutations(self) -> int:
        return self.null.size

    @property
    def sentence(self) -> str:
        """The answer in words, with the p-value as a fraction."""
        n = self.n_permutations
        if self.exact:
            reached, whole = round(self.pvalue * n), n
            who = f"{reached} of all {n} orders of the labels, the given one included,"
        else:
            reached, whole = round(self.pvalue * (n + 1)), n + 1
            who = f"{reached - 1 or 'none'} of {n} permutations of the labels"
        value = "" if reached == 1 else f" = {self.pvalue:.3g}"
        return f"{who} scored as high: p = {reached}/{whole}{value}"

    def __str__(self) -> str:
        kind = "all orders of the labels" if self.exact else "random orders of the labels"
        end = f", interrupted of {self.asked}" if self.interrupted else ""
        found = f"{self.name} {self.statistic:.4g}, p = {self.pvalue:.4g}, z = {self.zscore:.2f}"
        gap = "" if np.isnan(self.largest_gap) else f"; largest gap {self.largest_gap:.1e}"
        return f"{found} ({self.n_permutations} {kind}{end}{gap})"

    def __repr__(self) -> str:
        return f"<PermutationTest: {self}>"

    def _repr_html_(self) -> str:
        return html_line(f"permutation test: {self}")


def permutation_test(
    estimator: Estimator,
    X: Features,
    y: Labels | None,
    *,
    statistic: str = "mean-difference",
    n_permutations: int = 1000,
    groups: Labels | None = None,
    cv: Splits = 5,
    n_jobs: int | None = None,
    random_state: Seed = 0,
    verbose: int = 0,
) -> PermutationTest:
    """Test whether two classes have the same distribution (direction, projection, permutation).

    The estimator is fitted, the samples are projected onto its coefficients, scaled to length one,
    and the statistic says how far apart the classes are there. In high dimensions any labels can be
    separated; so the same is done, from the fit on, for permuted labels.

    Parameters
    ----------
    estimator : classifier
        Of this package, or any with ``coef_`` after a fit; is not changed. `DWD`, `L2SVC`,
        `LogisticRegression` and `MarginFDA` (linear, with ``solver='auto'``, no class weights and
        no limits) are fitted to hundreds of labelings side by side, as are `SVC` and `NuSVC` to at
        most 500 samples of about as many features or more. Of a model that standardises, the
        direction is that in standardised features.
    X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
    y : (n_samples,) labels
        Of two classes, unless the statistic is one of held-out folds.
    statistic : {'mean-difference', 't', 'auc', 'accuracy'} or a name of a scorer
        Of the projections: the difference of the class means, Welch's t, or the area under the ROC
        curve (1 for all labels that can be separated: of no use with more features than samples).
        'accuracy' (also called 'accuracy-cv') is the mean accuracy on held-out folds, and so is any
        scorer of classifiers that `sklearn.metrics.get_scorer_names` lists, larger being better:
        'balanced_accuracy' where one class is much larger, 'roc_auc', 'neg_log_loss'. Where samples
        pile up on the margins (`SVC` with large C, `MarginFDA`, other models with more features
        than samples) t is large for any labels, and larger for random ones: use 'mean-difference'.
    n_permutations : int >= 1, default 1000
        If there are no more different labelings than this, each is taken once: an exact test.
    groups : (n_samples,), optional
        Labels are permuted within each group only: pairs, batches, centres. Where each is of one
        class, as the samples of a patient, groups exchange their labels as wholes. Splitters get
        them too, and with metadata routing estimators that ask for them.
    cv : int or splitter, default 5
        Folds of held-out scores: a number means stratified, shuffled ones, and of whole groups
        where there are groups. Every training part has to hold all classes, of permuted labels too.
    n_jobs : int, optional
        Parallel jobs. The result does not depend on it.
    random_state : int, numpy.random.Generator, RandomState or None, default 0
        Draws the permutations and the folds, and a seed for each ``random_state`` that is None: of
        the estimator, its parts (steps of a pipeline) and the splitters.
    verbose : int
        Shows progress on standard error if positive.

    Returns
    -------
    PermutationTest

    Raises
    ------
    ValueError
        Invalid parameters or data, named in the message; one class, or more than two for a
        statistic of projections; folds that train on some classes only; a statistic that is not
        finite, or of probabilities that the estimator does not have.
    TypeError
        The estimator is no classifier.

    Warns
    -----
    ConvergenceWarning
        Fits missed their tolerance; names how many and the largest gap.
    UserWarning
        After Ctrl-C: the test is that of the permutations that were complete. With 't': samples of
        permuted labels pile up.

    References
    ----------
    Wei, Lee, Wichers, Marron (2016), Direction-projection-permutation for high-dimensional
    hypothesis tests.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import DWD, permutation_test
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> test = permutation_test(DWD(standardize=True), X[:60], y[:60], random_state=0)
    >>> test.pvalue < 0.01
    True
    """
    check_number("n_permutations", n_permutations, low=1, integer=True)
    groups = by_sample("groups", groups, X)
    estimator, X, codes, classes, statistic = _checked(estimator, X, y, statistic)
    is_held_out = statistic not in OF_PROJECTIONS
    groups, blocks = checked_groups(groups, codes.size)
    (seed,) = drawn_seeds(random_state, 1, below=SEEDS)
    labelings = Labelings(codes, blocks, int(n_permutations), seed)
    _warn_of_fixed_groups(labelings)
    # rows that depend on their order cannot change places, with or without folds
    warn_of_ordered_rows(cv if is_held_out else None, groups, X, codes)
    model = seeded_model(estimator, seed)
    with interrupts, quiet_threads(0):  # the number of BLAS threads changes the last bits of sums
        if is_held_out:
            of_folds = int(random_state) if isinstance(random_state, Integral) else seed
            cv = seeded_folds(cv, classes[codes], None if groups is None else blocks, of_folds)
        measure = _measure(model, X, codes, classes, statistic, cv, groups)
        if isinstance(measure, CrossValidatedScore):
            measure.check(codes, labelings.others(_block(measure, codes.size)))
        label = f"{type(estimator).__name__}, {statistic}: permuted labels" if verbose else None
        found = measured(measure, labelings, n_jobs, label)
    tol = getattr(estimator, "tol", 0.0)
    short = found.gaps[found.gaps > tol]
    if short.size:
        warnings.warn(
            f"{short.size} of {found.gaps.size} fits missed their tolerance: the largest relative "
            f"gap is {short.max():.2e} (tol={tol:g})",
            ConvergenceWarning,
            stacklevel=users_level(),
        )
    if statistic == "t":
        _warn_of_piles(found.statistics, np.bincount(codes))
    return concluded(statistic, found, labelings)


def _block(measure: Measure, samples: int) -> int:
    """Labelings at a time: of large data as many as keep their arrays small."""
    most = min(measure.block, BLOCK_ENTRIES // samples)
    return max(DRAWN_TOGETHER, most - most % DRAWN_TOGETHER)


def _checked(
    estimator: Estimator, X: Any, y: Any, statistic: str
) -> tuple[Any, Any, Codes, Values, str]:
    """The estimator for the validated features, these, labels as class indices with the classes,
    and the statistic by scikit-learn's name."""
    if not isinstance(statistic, str) or statistic not in (*OF_PROJECTIONS, *ACCURACY, *HELD_OUT):
        raise ValueError(
            f"statistic must be one of {', '.join(map(repr, (*OF_PROJECTIONS, *ACCURACY)))}, or a "
            "scorer of scikit-learn for classifiers such as 'balanced_accuracy', 'roc_auc' or "
            f"'neg_log_loss', got {statistic!r}"
        )
    if not is_classifier(estimator):
        raise TypeError(f"estimator must be a classifier, got {estimator!r}")
    if isinstance(estimator, MarginEstimator):
        estimator._check_parameters()
        estimator._check_model()
        estimator, given = copy(estimator), X
        X, y = validated(estimator, X, y)
        targets = estimator._encoded(y, None, given)
        estimator._without_names()
        if targets.margins is not None:  # they stay with the samples, and labels change places
            estimator.margins = targets.margins
    else:  # checks its data itself
        check_labels(y, X)
        y = column_or_1d(y)
        check_consistent_length(X, y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise few_classes(classes)
    if statistic in OF_PROJECTIONS and classes.size > 2:
        raise ValueError(
            f"statistic={statistic!r} compares two classes, and y holds {classes.size}: choose "
            "two, or statistic='accuracy'"
        )
    if statistic in HELD_OUT:
        statistic = held_out_scorer(statistic, classes.size)
        if needs_probabilities(statistic) and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"statistic={statistic!r} judges probabilities, and {type(estimator).__name__} has "
                "none: take a model that has, such as CalibratedMargin of it"
            )
    return estimator, X, codes.astype(np.min_scalar_type(-classes.size)), classes, statistic


def _measure(
    estimator: Estimator,
    X: Any,
    codes: Codes,
    classes: Values,
    statistic: str,
    cv: Any,
    groups: Labels | None = None,
) -> Measure:
    if statistic not in OF_PROJECTIONS:
        scoring = "accuracy" if statistic in ACCURACY else statistic
        return CrossValidatedScore(estimator, X, classes, cv, groups, scoring)
    single = OneByOne(estimator, X, classes, OF_PROJECTIONS[statistic])
    return SideBySide.of(single, codes)


def measured(
    measure: Measure, labelings: Labelings, n_jobs: int | None, label: str | None
) -> LabelingStatistics:
    """The given labels, then the others, up to an interruption; ``label`` is of the progress."""
    parallel = Parallel(
        n_jobs=n_jobs,
        prefer="processes" if measure.in_processes else "threads",
        return_as="generator",
    )
    found: list[LabelingStatistics] = []
    others = labelings.others(_block(measure, labelings.codes.size))
    with ProgressBar(label or "", labelings.count, shown=label is not None) as progress:
        found.append(measure(labelings.codes[:, None]))
        parts = (part for whole in others for part in _pieces(whole, measure.block))
        carried = Carried(measure)
        results: Iterator[LabelingStatistics] = parallel(
            delayed(_of_part)(carried, part) for part in parts
        )
        while not interrupts.pending:
            try:
                found.append(next(results))
            except StopIteration:
                break
            except KeyboardInterrupt:
                interrupts.pending = True
                break
            progress.advance(found[-1].gaps.size)
    whole = LabelingStatistics(*(np.concatenate(each) for each in zip(*found, strict=True)))
    if whole.statistics.size < 2:
        raise KeyboardInterrupt("before any permutation was complete")
    return whole


def _of_part(measure: Carried[Measure], part: Codes) -> LabelingStatistics:
    with quiet_threads(0):  # in a process of its own
        return measure.value(part)


def _warn_of_fixed_groups(labelings: Labelings) -> None:
    """Say how many groups keep their labels where others have labels that change places."""
    groups = labelings.units[1]
    pairs = np.unique(np.stack([labelings.groups, labelings.codes]), axis=1)
    classes = np.bincount(pairs[0])
    fixed = int((classes == 1).sum())
    if groups is labelings.groups and 2 * fixed > classes.size:
        warnings.warn(
            f"{fixed} of {classes.size} groups hold one class and keep its label, and only the "
            f"labels of the {classes.size - fixed} others change places, so that p can hardly be "
            "small: if groups are patients of one class each, correct those that have two, and "
            "groups exchange their labels as wholes",
            UserWarning,
            stacklevel=users_level(),
        )


def _pieces(labelings: Codes, size: int) -> Iterator[Codes]:
    for start in range(0, labelings.shape[1], size):
        yield labelings[:, start : start + size]


def concluded(name: str, found: LabelingStatistics, labelings: Labelings) -> PermutationTest:
    """The test of what was measured, which may lack the last labelings."""
    observed, others = float(found.statistics[0]), found.statistics[1:]
    if not np.isfinite(observed):
        raise ValueError(f"statistic={name!r} of the given labels is {observed}: no p-value")
    wrong = others[~np.isfinite(others)]
    if wrong.size:
        raise ValueError(
            f"statistic={name!r} of {wrong.size} of {others.size} permutations is not finite (the "
            f"first: {wrong[0]}): no p-value"
        )
    interrupted = others.size < labelings.count
    exact = labelings.exact and not interrupted
    if interrupted:
        message = (
            f"interrupted: the test is that of {others.size} of {labelings.count} permutations"
        )
        warnings.warn(message, stacklevel=users_level())
    # the given labeling is one of all, and with drawn ones as likely as each of them
    reached = 1 + int(np.count_nonzero(others >= observed - TIE * abs(observed)))
    null = np.append(observed, others) if exact else others
    spread = float(null.std(ddof=1)) if null.size > 1 else 0.0
    zscore = (observed - float(null.mean())) / spread if spread > 0 else float("nan")
    known = found.gaps[~np.isnan(found.gaps)]
    gap = float(known.max()) if known.size else float("nan")
    pvalue, asked = reached / (1 + others.size), labelings.asked
    return PermutationTest(name, observed, null, pvalue, zscore, exact, gap, asked, interrupted)


def _warn_of_piles(statistics: Array, sizes: Codes) -> None:
    """Warn where t says how well labels are overfitted: random ones better than the given ones,
    whose structure is in the way."""
    observed, *others = spread_of_t(statistics, sizes)
    permuted = np.array(others)
    piled = int(np.count_nonzero(permuted < min(PILED, observed * (1 - TIE))))
    if piled or observed < EXACT_PILE:
        warnings.warn(
            f"statistic='t' divides by a spread that overfitting makes vanish: of {piled} of "
            f"{permuted.size} permutations the spread within the classes is less than {PILED:g} of "
            "the difference of their means, and less than that of the given labels (the least "
            f"{permuted.min():.1e}, given labels {observed:.1e}). Its p-value says little where "
            "samples pile up: take statistic='mean-difference'",
            stacklevel=users_level(),
        )
