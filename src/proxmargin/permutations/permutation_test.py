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
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import check_consistent_length, column_or_1d

from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.frames import users_level
from proxmargin.inputs.seeds import drawn_seeds
from proxmargin.inputs.validation import (
    check_choice,
    check_folds,
    check_labels,
    check_number,
    validated,
)
from proxmargin.permutations.fits import (
    CrossValidatedAccuracy,
    Measure,
    Measured,
    OneByOne,
    SideBySide,
)
from proxmargin.permutations.labelings import (
    DRAWN_TOGETHER,
    Codes,
    all_labelings,
    count_labelings,
    drawn_labelings,
)
from proxmargin.permutations.statistics import OF_PROJECTIONS
from proxmargin.runtime.cluster import Carried
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import Progress
from proxmargin.runtime.threads import quiet_threads

__all__ = ["PermutationTest", "permutation_test"]

Array = NDArray[np.float64]

ACCURACY = ("accuracy", "accuracy-cv")  # the first is the name, the second says how
STATISTICS = (*OF_PROJECTIONS, *ACCURACY)
TIE = 1e-7  # relative difference of statistics that are equal up to rounding: mirrored labelings
SEEDS = 2**32  # what scikit-learn takes as random_state
BLOCK_ENTRIES = 1 << 22  # signs of labelings held at a time: 32 MB each of a few arrays


@dataclass(frozen=True, eq=False)
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
    """

    name: str
    statistic: float
    null: Array
    pvalue: float
    zscore: float
    exact: bool
    largest_gap: float

    @property
    def n_permutations(self) -> int:
        return self.null.size

    def __str__(self) -> str:
        kind = "all" if self.exact else "random"
        return (
            f"{self.name} {self.statistic:.4g}, p = {self.pvalue:.4g}, z = {self.zscore:.2f} "
            f"({self.n_permutations} {kind} labelings; largest gap {self.largest_gap:.1e})"
        )


def permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    statistic: str = "mean-difference",
    n_permutations: int = 1000,
    groups: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
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
        Of two classes, unless the statistic is an accuracy.
    statistic : {'mean-difference', 't', 'auc', 'accuracy'}
        Of the projections: the difference of the class means, Welch's t, or the area under the ROC
        curve (1 for all labels that can be separated: of no use with more features than samples).
        'accuracy' (also called 'accuracy-cv') is the mean accuracy on held-out folds.
    n_permutations : int >= 1, default 1000
        If there are no more different labelings than this, each is taken once: an exact test.
    groups : (n_samples,), optional
        Labels are permuted within each group only: pairs, batches, centres. Splitters get them too.
    cv : int or splitter, default 5
        Folds for 'accuracy': stratified, and of whole groups where there are groups.
    n_jobs : int, optional
        Parallel jobs. The result does not depend on it.
    random_state : int, numpy.random.Generator, RandomState or None
        Draws the permutations, and is the ``random_state`` of estimators of other packages.
    verbose : int
        Shows progress on standard error if positive.

    Returns
    -------
    PermutationTest

    Raises
    ------
    ValueError
        Invalid parameters or data, named in the message; one class, or more than two for a
        statistic of projections; groups of one class each, so that there is no other labeling.
    TypeError
        The estimator is no classifier.

    Warns
    -----
    ConvergenceWarning
        Fits missed their tolerance; names how many and the largest gap.
    UserWarning
        After Ctrl-C: the test is that of the permutations that were complete.

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
    check_choice("statistic", statistic, STATISTICS)
    check_number("n_permutations", n_permutations, low=1, integer=True)
    n_permutations = int(n_permutations)
    X, codes, classes = _checked(estimator, X, y, statistic)
    blocks = _group_codes(groups, codes)
    distinct = count_labelings(codes, blocks, n_permutations)
    if distinct == 1:
        raise ValueError("groups hold samples of one class each: no other labeling is possible")
    exact = distinct <= n_permutations
    (seed,) = drawn_seeds(random_state, 1, below=SEEDS)
    model = _repeatable(estimator, seed)
    with interrupts, quiet_threads(0):  # the number of BLAS threads changes the last bits of sums
        measure = _measure(model, X, codes, classes, statistic, cv, groups)
        if exact:
            others = iter([all_labelings(codes, blocks)[:, 1:]])
        else:
            block = _block(measure, codes.size)
            others = drawn_labelings(codes, blocks, n_permutations, seed, block)
        count = distinct - 1 if exact else n_permutations
        label = f"{type(estimator).__name__}, {statistic}: labelings" if verbose else None
        found = _measured(measure, codes, others, count, n_jobs, label)
    return _concluded(statistic, found, exact, count, getattr(estimator, "tol", 0.0))


def _repeatable(estimator: Any, seed: int) -> Any:
    """A clone that fits the same labels to the same model whenever it is asked."""
    model = clone(estimator)
    if "random_state" in model.get_params(deep=False) and not isinstance(model, MarginEstimator):
        model.set_params(random_state=seed)
    return model


def _block(measure: Measure, samples: int) -> int:
    """Labelings at a time: of large data as many as keep their arrays small."""
    most = max(DRAWN_TOGETHER, BLOCK_ENTRIES // samples)
    return min(measure.block, most - most % DRAWN_TOGETHER)


def _checked(estimator: Any, X: Any, y: Any, statistic: str) -> tuple[Any, Codes, NDArray[Any]]:
    """Validated features, and labels as class indices with the classes."""
    if not is_classifier(estimator):
        raise TypeError(f"estimator must be a classifier, got {estimator!r}")
    if isinstance(estimator, MarginEstimator):
        estimator._check_parameters()
        estimator._check_model()
        X, y = validated(copy(estimator), X, y)
    else:  # checks its data itself
        check_labels(y)
        y = column_or_1d(y)
        check_consistent_length(X, y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y holds the one class {classes[0]!s}: a test needs at least 2")
    if statistic in OF_PROJECTIONS and classes.size > 2:
        raise ValueError(
            f"statistic={statistic!r} compares two classes, and y holds {classes.size}: choose "
            "two, or statistic='accuracy'"
        )
    return X, codes.astype(np.min_scalar_type(-classes.size)), classes


def _group_codes(groups: Any, codes: Codes) -> Codes:
    if groups is None:
        return np.zeros(codes.size, dtype=np.intp)
    given = np.asarray(groups)
    if given.shape != codes.shape:
        raise ValueError(f"groups must have one entry a sample, ({codes.size},), got {given.shape}")
    return np.unique(given, return_inverse=True)[1].astype(np.intp)


def _measure(
    estimator: Any,
    X: Any,
    codes: Codes,
    classes: NDArray[Any],
    statistic: str,
    cv: Any,
    groups: Any = None,
) -> Measure:
    if statistic in ACCURACY:
        splitter = _splitter(cv, codes, classes, groups)
        return CrossValidatedAccuracy(estimator, X, classes, splitter, groups)
    single = OneByOne(estimator, X, classes, OF_PROJECTIONS[statistic])
    return SideBySide.of(single, codes)


def _splitter(cv: Any, codes: Codes, classes: NDArray[Any], groups: Any) -> Any:
    """The folds of the accuracy; a number of folds means whole groups, where there are groups."""
    check_folds("cv", cv)
    if not isinstance(cv, Integral):
        return check_cv(cv, classes[codes], classifier=True)
    least = int(np.bincount(codes).min())
    if least < int(cv):
        raise ValueError(
            f"cv={cv} folds need as many samples of each class, and the smallest has {least}"
        )
    if groups is None:
        return check_cv(cv, classes[codes], classifier=True)
    count = np.unique(groups).size
    if count < int(cv):
        raise ValueError(
            f"cv={cv} folds of whole groups need as many groups, and there are {count}"
        )
    splitter = StratifiedGroupKFold(int(cv))
    # permutations within groups do not change these folds
    for train, _ in splitter.split(codes, codes, groups):
        lacking = np.setdiff1d(codes, codes[train])
        if lacking.size:
            raise ValueError(
                f"cv={cv} folds of whole groups leave training rows without class "
                f"{classes[lacking[0]]!s}: give fewer folds, or merge groups"
            )
    return splitter


def _measured(
    measure: Measure,
    codes: Codes,
    others: Iterator[Codes],
    count: int,
    n_jobs: int | None,
    label: str | None,
) -> Measured:
    """The given labels, then the others, up to an interruption; ``label`` is of the progress."""
    parallel = Parallel(
        n_jobs=n_jobs,
        prefer="processes" if measure.in_processes else "threads",
        return_as="generator",
    )
    found: list[Measured] = []
    with Progress(label or "", count, shown=label is not None) as progress:
        found.append(measure(codes[:, None]))
        parts = (part for whole in others for part in _pieces(whole, measure.block))
        carried = Carried(measure)
        results: Iterator[Measured] = parallel(delayed(_of_part)(carried, part) for part in parts)
        while not interrupts.pending:
            try:
                found.append(next(results))
            except StopIteration:
                break
            except KeyboardInterrupt:
                interrupts.pending = True
                break
            progress.advance(found[-1].gaps.size)
    return Measured(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _of_part(measure: Carried[Measure], part: Codes) -> Measured:
    with quiet_threads(0):  # in a process of its own
        return measure.value(part)


def _pieces(labelings: Codes, size: int) -> Iterator[Codes]:
    for start in range(0, labelings.shape[1], size):
        yield labelings[:, start : start + size]


def _concluded(name: str, found: Measured, exact: bool, asked: int, tol: float) -> PermutationTest:
    """``asked``: the labelings besides the given one, of which ``found`` may lack the last."""
    if found.statistics.size < 2:
        raise KeyboardInterrupt("before any permutation was complete")
    observed, others = float(found.statistics[0]), found.statistics[1:]
    if others.size < asked:
        exact = False
        message = f"interrupted: the test is that of {others.size} of {asked} permutations"
        warnings.warn(message, stacklevel=users_level())
    _warn_of_gaps(found.gaps, tol)
    # the given labeling is one of all, and with drawn ones as likely as each of them
    reached = 1 + int(np.count_nonzero(others >= observed - TIE * abs(observed)))
    null = np.append(observed, others) if exact else others
    spread = float(null.std(ddof=1)) if null.size > 1 else 0.0
    zscore = (observed - float(null.mean())) / spread if spread > 0 else float("nan")
    known = found.gaps[~np.isnan(found.gaps)]
    gap = float(known.max()) if known.size else float("nan")
    return PermutationTest(name, observed, null, reached / (1 + others.size), zscore, exact, gap)


def _warn_of_gaps(gaps: Array, tol: float) -> None:
    short = gaps[gaps > tol]
    if short.size:
        warnings.warn(
            f"{short.size} of {gaps.size} fits missed their tolerance: the largest relative gap is "
            f"{short.max():.2e} (tol={tol:g})",
            ConvergenceWarning,
            stacklevel=users_level(),
        )
