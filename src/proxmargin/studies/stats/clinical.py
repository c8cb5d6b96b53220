"""What a clinical paper reports of predictions for two classes, with 95 % intervals.

How often they are right at a threshold, discrimination, calibration and net benefit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from proxmargin.compiled.rounding import EPS, SCORE_ROUNDING, levels
from proxmargin.runtime.brief import Listing, number
from proxmargin.runtime.types import Mask, Record
from proxmargin.studies.stats.scores import CONFIDENCE, INTERVAL, Floats

Groups = NDArray[np.intp]

QUANTILE: Final = float(norm.isf(0.5 * (1 - CONFIDENCE)))
THRESHOLDS: Final = np.arange(1, 100) / 100
DIGITS: Final = 6  # of the numbers along the thresholds
RATES: Final = {
    **{name: name for name in ("sensitivity", "specificity")},
    **{"ppv": "positive predictive value", "npv": "negative predictive value"},
}
METHOD: Final = (
    "Predictions are those for rows that the model was not fitted to. 95 % intervals: Wilson "
    "(1927) for shares of rows; for the area under the ROC curve the same with the variance of "
    "DeLong et al. (1988); for calibration those of logistic regression"
)
OF_GROUPS: Final = "; all allow for rows of one group being alike (Obuchowski 1997)"
OF_FOLDS: Final = (
    ". Rows of all folds are taken together, and the area compares rows of the same fold. Models "
    "fitted to other rows would differ, too: variances are multiplied by 1 + {folds} x "
    "{test_ratio:.3g} = {factor:.3g}, for {folds} folds of {test_ratio:.3g} test rows for each "
    "training row (Nadeau and Bengio 2003), and the upper end of a slope that is above zero is "
    "that of its logarithm"
)


@dataclass(frozen=True)
class _Sampling:
    """What makes numbers vary more than independent rows would that one model is judged by."""

    folds: Groups  # (n,) numbers of the folds from 0
    groups: Groups | None  # (n,) numbers of the groups
    factor: float  # of all variances


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class OperatingPoint:
    """Counts and rates where rows from a probability on are called positive.

    Attributes
    ----------
    threshold : float or None
        None: as the model predicts.
    tp, fp, fn, tn : int
        True and false positives, false and true negatives.
    sensitivity, specificity, ppv, npv : Estimate
        Shares tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), tn / (tn + fn).
    net_benefit, net_benefit_all : float
        ``(tp - fp t / (1 - t)) / n`` for the threshold t, and that of calling all rows positive
        (Vickers and Elkin 2006); calling none has 0. NaN without a threshold.
    """

    threshold: float | None
    tp: int
    fp: int
    fn: int
    tn: int
    sensitivity: Estimate
    specificity: Estimate
    ppv: Estimate
    npv: Estimate
    net_benefit: float
    net_benefit_all: float


@dataclass(frozen=True, repr=False)
class ClinicalSummary:
    """`clinical_summary`.

    Attributes
    ----------
    positive : str
        The positive class; all others together are the negative one.
    n, events : int
        Rows, and those of the positive class.
    auc : Estimate
        Area under the ROC curve of the probabilities: of the pairs of a positive and a negative row
        in one fold, the share in order. NaN where no fold has both.
    brier : float
        Mean squared error of the probabilities.
    expected : float
        Sum of the probabilities, to be compared with ``events``.
    intercept, slope : Estimate
        Of a logistic regression of the classes on the log-odds of the probabilities: the intercept
        for slope one (calibration in the large; 0 is right), and the slope (1 is right, less is too
        sure). NaN where no finite number fits best, as of classes that are separated.
    predicted : OperatingPoint
        As the model predicts.
    thresholds : tuple of OperatingPoint
        In the order asked for.
    misclassified : tuple of dict
        ``id``, ``true``, ``predicted`` and ``probability`` of the rows that the model takes for
        the wrong class, those first of which it was most sure.
    method : str
        How the intervals were made, in a sentence.
    """

    positive: str
    n: int
    events: int
    auc: Estimate
    brier: float
    expected: float
    intercept: Estimate
    slope: Estimate
    predicted: OperatingPoint
    thresholds: tuple[OperatingPoint, ...]
    misclassified: tuple[Record, ...]
    method: str

    def listing(self) -> Listing:
        """The numbers in a table, without those along the thresholds."""
        named = {"AUC": self.auc, **{name: getattr(self.predicted, name) for name in RATES}}
        named |= {"calibration slope": self.slope, "calibration intercept": self.intercept}
        rows = [
            (
                name,
                number(each.value, ".3f"),
                "-" if np.isnan(each.low) else f"{each.low:.3f} to {each.high:.3f}",
            )
            for name, each in named.items()
        ]
        events = (f"{self.positive} (positive)", str(self.events), f"of {self.n}")
        return Listing(("", "", INTERVAL), [events, *rows, ("Brier", f"{self.brier:.3f}", "")])

    def __repr__(self) -> str:
        return f"{self.listing().plain()}\n\n{self.method}"

    def _repr_html_(self) -> str:
        return self.listing().html()

    def to_dict(self) -> Record:
        """Plain values; ``thresholds`` as columns, a rate as ``[value, low, high]``."""
        columns: dict[str, list[object]] = {}
        for point in self.thresholds:
            for name, value in asdict(point).items():
                flat = [round(each, DIGITS) for each in value.values()] if name in RATES else value
                flat = round(flat, DIGITS) if isinstance(flat, float) else flat
                columns.setdefault(name, []).append(flat)
        return {**asdict(self), "misclassified": [*self.misclassified], "thresholds": columns}


def clinical_summary(
    y: ArrayLike,
    probabilities: ArrayLike,
    positive: object,
    *,
    predicted: ArrayLike | None = None,
    ids: Sequence[object] | None = None,
    groups: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    test_ratio: float | None = None,
    thresholds: Sequence[float] | Floats = THRESHOLDS,
) -> ClinicalSummary:
    """Judge predictions as a clinical paper does.

    Parameters
    ----------
    y : (n,) true labels
    probabilities : (n,)
        Of the positive class, from models that did not see the row.
    positive : a label
    predicted : (n,) labels, optional
        By default positive from a probability of one half on.
    ids : (n,), optional
        Names of the rows; by default their numbers from 0.
    groups : (n,), optional
        Rows of one group (patient) are not independent: intervals allow for that.
    folds : (n,), optional
        The fold in which a row was held out. Each fold has a model of its own: intervals allow for
        the training rows, and only rows of one fold are compared. By default one model predicts all
        rows, and intervals are of that model.
    test_ratio : float, optional
        Test rows of a fold by its training rows; by default these are the rows of all other folds.
    thresholds : sequence of float, optional
        Probabilities from 0 to below 1 from which on rows are called positive; by default .01 to
        .99.

    Raises
    ------
    ValueError
        Another length; probabilities outside [0, 1], or thresholds outside [0, 1); all rows are
        positive, or none; one fold without ``test_ratio``.
    """
    labels, shares = np.asarray(y), np.asarray(probabilities, np.float64)
    if labels.ndim != 1 or shares.shape != labels.shape:
        raise ValueError(f"probabilities must have shape {labels.shape} as y, got {shares.shape}")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError("probabilities must be numbers from 0 to 1")
    beyond = [t for t in thresholds if not 0 <= t < 1]
    if beyond:
        raise ValueError(f"thresholds must be numbers from 0 to below 1, got {beyond[0]:g}")
    is_positive = labels == positive
    events = int(np.count_nonzero(is_positive))
    if not 0 < events < labels.size:
        raise ValueError(f"positive={positive!r}: {events} of {labels.size} rows have this label")
    own = shares >= 0.5 if predicted is None else np.asarray(predicted) == positive
    sampling, method = _sampling(labels.size, groups, folds, test_ratio)
    names = np.arange(labels.size) if ids is None else ids
    intercept, slope = _calibration(is_positive, shares, sampling)
    points = (_point(is_positive, shares >= t, float(t), sampling) for t in thresholds)
    if predicted is None:
        wrong, said = is_positive != own, own
    else:  # of several classes also one other for another
        said = np.asarray(predicted)
        wrong = said != labels
    order = np.argsort(-np.abs(shares - is_positive), kind="stable")
    plain = labels.tolist(), said.tolist(), shares.tolist()
    return ClinicalSummary(
        positive=str(positive),
        n=labels.size,
        events=events,
        auc=_area(is_positive, shares, sampling),
        brier=float(np.mean((shares - is_positive) ** 2)),
        expected=float(shares.sum()),
        intercept=intercept,
        slope=slope,
        predicted=_point(is_positive, own, None, sampling),
        thresholds=tuple(points),
        misclassified=tuple(
            {"id": names[k], **{n: v[k] for n, v in zip(OF_ROW, plain, strict=True)}}
            for k in order[wrong[order]].tolist()
        ),
        method=method,
    )


OF_ROW: Final = ("true", "predicted", "probability")


def _sampling(
    n: int, groups: ArrayLike | None, folds: ArrayLike | None, test_ratio: float | None
) -> tuple[_Sampling, str]:
    """And how intervals allow for it, in sentences."""
    members = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    method = METHOD if members is None else METHOD + OF_GROUPS
    if folds is None:
        return _Sampling(np.zeros(n, np.intp), members, 1.0), f"{method}."
    each, numbers = np.unique(np.asarray(folds), return_inverse=True)
    if test_ratio is None:
        if each.size < 2:
            raise ValueError("folds must be two or more; of one fold give test_ratio as well")
        test_ratio = 1 / (each.size - 1)
    # the variance of a mean over J folds, s^2 / J, becomes (1 / J + n_test / n_train) s^2
    factor = 1 + each.size * test_ratio
    told = OF_FOLDS.format(folds=each.size, test_ratio=test_ratio, factor=factor)
    return _Sampling(numbers, members, factor), f"{method}{told}."


def wilson(share: float, rows: float) -> Estimate:
    """Wilson's interval of a share of so many independent rows."""
    if not rows > 0:
        return Estimate(np.nan, np.nan, np.nan)
    square = QUANTILE**2 / rows
    middle, width = share + square / 2, np.sqrt(square * (share * (1 - share) + square / 4))
    low, high = (middle - width) / (1 + square), (middle + width) / (1 + square)
    # up to rounding the ends are those of the unit interval for shares of none and all
    return Estimate(share, 0.0 if share == 0 else float(low), 1.0 if share == 1 else float(high))


def _point(
    is_positive: Mask, called: Mask, threshold: float | None, sampling: _Sampling
) -> OperatingPoint:
    tp, fp = int((called & is_positive).sum()), int((called & ~is_positive).sum())
    events, n = int(is_positive.sum()), is_positive.size
    fn, tn = events - tp, n - events - fp
    odds = np.nan if threshold is None else threshold / (1 - threshold)
    return OperatingPoint(
        threshold,
        *(tp, fp, fn, tn),
        _rate(called, is_positive, sampling),
        _rate(~called, ~is_positive, sampling),
        _rate(is_positive, called, sampling),
        _rate(~is_positive, ~called, sampling),
        net_benefit=float((tp - fp * odds) / n),
        net_benefit_all=float((events - (n - events) * odds) / n),
    )


def _rate(hit: Mask, among: Mask, sampling: _Sampling) -> Estimate:
    """The share of hits among some rows, as of so many independent rows as have its variance."""
    rows = int(among.sum())
    if rows == 0:
        return Estimate(np.nan, np.nan, np.nan)
    share = int((hit & among).sum()) / rows
    independent: float = rows
    if sampling.groups is not None:
        variance, count = _clustered((hit[among] - share) / rows, sampling.groups[among])
        plain = share * (1 - share)
        if plain == 0 or count < 2:
            independent = count
        elif variance > 0:
            independent = min(rows, plain / variance)
    return wilson(share, independent / sampling.factor)


def _clustered(influence: Floats, groups: Groups) -> tuple[float, int]:
    """The variance of a sum of centred contributions that are alike in each group, and the number
    of groups."""
    numbers = np.unique(groups, return_inverse=True)[1]
    each = np.bincount(numbers, influence)
    return float((each**2).sum() * each.size / max(each.size - 1, 1)), each.size


def _area(is_positive: Mask, shares: Floats, sampling: _Sampling) -> Estimate:
    """The area under the ROC curve with DeLong's variance, as a share of the independent rows that
    have it; without variance (all pairs are in order) of the rows of the smaller class."""
    folds, groups = sampling.folds, sampling.groups
    # ranks of rows of one fold are next to each other
    order = rankdata(levels(shares, SCORE_ROUNDING * shares), "dense").astype(np.intp)
    ranks, inside = rankdata(folds * (order.size + 1) + order), np.empty(order.size)
    others, before = np.empty(order.size), np.empty(order.size)  # of the other class
    for own in (is_positive, ~is_positive):
        sizes = np.bincount(folds[~own], minlength=folds.max() + 1)
        others[own], before[own] = sizes[folds[own]], (np.cumsum(sizes) - sizes)[folds[own]]
        inside[own] = rankdata(ranks[own])
    below = ranks - inside - before  # rows of the other class and the same fold
    pairs = float(others[is_positive].sum())
    if pairs == 0:
        return Estimate(np.nan, np.nan, np.nan)
    in_order = np.where(is_positive, below, others - below)
    area = float(in_order[is_positive].sum()) / pairs
    influence = (in_order - area * others) / pairs
    classes = [own & (others > 0) for own in (is_positive, ~is_positive)]
    if groups is None:
        smaller = min(int(own.sum()) for own in classes)
        variance = sum(_clustered(influence[own], np.flatnonzero(own))[0] for own in classes)
    else:
        smaller = min(np.unique(groups[own]).size for own in classes)
        variance, _ = _clustered(influence, groups)
    spread = area * (1 - area)
    rows = spread / variance if variance > 0 and spread > 0 else smaller
    return wilson(area, rows / sampling.factor)


def _calibration(
    is_positive: Mask, shares: Floats, sampling: _Sampling
) -> tuple[Estimate, Estimate]:
    """Intercept for slope one, and slope with an intercept of its own."""
    odds = logit(np.clip(shares, EPS, 1 - EPS))
    ones = np.ones((odds.size, 1))
    intercept = _logistic(ones, odds, is_positive, sampling)
    ends = [(odds[each].min(), odds[each].max()) for each in (is_positive, ~is_positive)]
    (low, high), (least, most) = ends
    if low >= most or least >= high:  # a threshold separates the classes: the slope is infinite
        return intercept, Estimate(np.nan, np.nan, np.nan)
    slope = _logistic(np.column_stack([odds, ones]), 0 * odds, is_positive, sampling)
    if sampling.factor > 1 and slope.low > 0:
        # models of other rows err in the scale of their log-odds, by which the slope is divided
        high = slope.value * float(np.exp(slope.high / slope.value - 1))
        slope = replace(slope, high=high)
    return intercept, slope


def _logistic(design: Floats, offset: Floats, y: Mask, sampling: _Sampling) -> Estimate:
    """The first coefficient of a logistic regression, with Wald's interval; of groups with the
    variance of their scores."""

    def loss(coef: Floats) -> tuple[float, Floats]:
        scores = offset + design @ coef
        value = float((np.logaddexp(0.0, scores) - y * scores).sum())
        return value, design.T @ (expit(scores) - y)

    def hessian(coef: Floats) -> Floats:
        share = expit(offset + design @ coef)
        return np.asarray((design.T * (share * (1 - share))) @ design)

    start = np.zeros(design.shape[1])
    coef = minimize(loss, start, jac=True, hess=hessian, method="trust-exact").x
    covariance = np.linalg.inv(hessian(coef))
    if sampling.groups is not None:
        residuals = design * (y - expit(offset + design @ coef))[:, None]
        each = np.column_stack([np.bincount(sampling.groups, column) for column in residuals.T])
        count = each.shape[0]
        covariance = covariance @ (each.T @ each) @ covariance * count / max(count - 1, 1)
    width = QUANTILE * float(np.sqrt(covariance[0, 0] * sampling.factor))
    value = float(coef[0])
    return Estimate(value, value - width, value + width)
