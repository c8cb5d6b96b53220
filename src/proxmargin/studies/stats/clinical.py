"""What a clinical paper reports of predictions for two classes, with 95 % intervals.

How often they are right at a threshold, discrimination, calibration and net benefit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from proxmargin.compiled.rounding import EPS, SCORE_ROUNDING, levels
from proxmargin.runtime.brief import Listing, number
from proxmargin.studies.stats.scores import CONFIDENCE, INTERVAL, Floats

Mask = NDArray[np.bool_]
Groups = NDArray[np.intp]

QUANTILE: Final = float(norm.isf(0.5 * (1 - CONFIDENCE)))
THRESHOLDS: Final = np.arange(1, 100) / 100
DIGITS: Final = 6  # of the numbers along the thresholds
RATES: Final = ("sensitivity", "specificity", "ppv", "npv")
METHOD: Final = (
    "Predictions are those for rows that the model was not fitted to, pooled over the folds. "
    "95 % intervals: Wilson (1927) for shares of rows; for the area under the ROC curve the same "
    "with the variance of DeLong et al. (1988); for calibration those of logistic regression. They "
    "tell how sure these rows are about these predictions, and not how much models fitted to other "
    "rows would differ"
)
OF_GROUPS: Final = "; all allow for rows of one group being alike (Obuchowski 1997)"


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
        Area under the ROC curve of the probabilities.
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
    misclassified: tuple[dict[str, Any], ...]
    method: str

    def listing(self) -> Listing:
        """The numbers in a table, without those along the thresholds."""
        named = {"AUC": self.auc, **{name: getattr(self.predicted, name) for name in RATES}}
        named |= {"calibration slope": self.slope, "calibration intercept": self.intercept}
        rows = [
            (name, number(each.value, ".3f"), f"{each.low:.3f} to {each.high:.3f}")
            for name, each in named.items()
        ]
        events = (f"{self.positive} (positive)", str(self.events), f"of {self.n}")
        return Listing(("", "", INTERVAL), [events, *rows, ("Brier", f"{self.brier:.3f}", "")])

    def __repr__(self) -> str:
        return self.listing().plain()

    def _repr_html_(self) -> str:
        return self.listing().html()

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ``thresholds`` as columns, a rate as ``[value, low, high]``."""
        columns: dict[str, list[Any]] = {}
        for point in self.thresholds:
            for name, value in asdict(point).items():
                flat = [round(each, DIGITS) for each in value.values()] if name in RATES else value
                flat = round(flat, DIGITS) if isinstance(flat, float) else flat
                columns.setdefault(name, []).append(flat)
        return {**asdict(self), "misclassified": [*self.misclassified], "thresholds": columns}


def clinical_summary(
    y: ArrayLike,
    probabilities: ArrayLike,
    positive: Any,
    *,
    predicted: ArrayLike | None = None,
    ids: Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
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
    thresholds : sequence of float, optional
        Probabilities from 0 to 1 from which on rows are called positive; by default .01 to .99.

    Raises
    ------
    ValueError
        Another length; probabilities outside [0, 1]; all rows are positive, or none.
    """
    labels, shares = np.asarray(y), np.asarray(probabilities, np.float64)
    if labels.ndim != 1 or shares.shape != labels.shape:
        raise ValueError(f"probabilities must have shape {labels.shape} as y, got {shares.shape}")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError("probabilities must be numbers from 0 to 1")
    is_positive = labels == positive
    events = int(np.count_nonzero(is_positive))
    if not 0 < events < labels.size:
        raise ValueError(f"positive={positive!r}: {events} of {labels.size} rows have this label")
    own = shares >= 0.5 if predicted is None else np.asarray(predicted) == positive
    members = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    names = np.arange(labels.size) if ids is None else ids
    intercept, slope = _calibration(is_positive, shares, members)
    points = (_point(is_positive, shares >= t, float(t), members) for t in thresholds)
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
        auc=_area(is_positive, shares, members),
        brier=float(np.mean((shares - is_positive) ** 2)),
        expected=float(shares.sum()),
        intercept=intercept,
        slope=slope,
        predicted=_point(is_positive, own, None, members),
        thresholds=tuple(points),
        misclassified=tuple(
            {"id": names[k], **{n: v[k] for n, v in zip(OF_ROW, plain, strict=True)}}
            for k in order[wrong[order]].tolist()
        ),
        method=f"{METHOD}{'' if members is None else OF_GROUPS}.",
    )


OF_ROW: Final = ("true", "predicted", "probability")


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
    is_positive: Mask, called: Mask, threshold: float | None, groups: Groups | None
) -> OperatingPoint:
    tp, fp = int((called & is_positive).sum()), int((called & ~is_positive).sum())
    events, n = int(is_positive.sum()), is_positive.size
    fn, tn = events - tp, n - events - fp
    odds = np.nan if threshold is None else threshold / (1 - threshold)
    return OperatingPoint(
        threshold,
        *(tp, fp, fn, tn),
        _rate(called, is_positive, groups),
        _rate(~called, ~is_positive, groups),
        _rate(is_positive, called, groups),
        _rate(~is_positive, ~called, groups),
        net_benefit=float((tp - fp * odds) / n),
        net_benefit_all=float((events - (n - events) * odds) / n),
    )


def _rate(hit: Mask, among: Mask, groups: Groups | None) -> Estimate:
    """The share of hits among some rows; of groups as of so many independent rows as have the
    variance of the share of clustered ones."""
    rows = int(among.sum())
    if rows == 0:
        return Estimate(np.nan, np.nan, np.nan)
    share = int((hit & among).sum()) / rows
    if groups is None:
        return wilson(share, rows)
    variance, count = _clustered((hit[among] - share) / rows, groups[among])
    plain = share * (1 - share)
    if plain == 0 or count < 2:
        return wilson(share, count)
    return wilson(share, rows if variance == 0 else min(rows, plain / variance))


def _clustered(influence: Floats, groups: Groups) -> tuple[float, int]:
    """The variance of a sum of centred contributions that are alike in each group, and the number
    of groups."""
    numbers = np.unique(groups, return_inverse=True)[1]
    each = np.bincount(numbers, influence)
    return float((each**2).sum() * each.size / max(each.size - 1, 1)), each.size


def _area(is_positive: Mask, shares: Floats, groups: Groups | None) -> Estimate:
    """The area under the ROC curve with DeLong's variance, as a share of the independent rows that
    have it; without variance (all pairs are in order) of the rows of the smaller class."""
    scores = levels(shares, SCORE_ROUNDING * shares)
    positives, negatives = scores[is_positive], scores[~is_positive]
    ranks, m, n = rankdata(scores), positives.size, negatives.size
    # share of the other class below each positive row, and above each negative one
    below = (ranks[is_positive] - rankdata(positives)) / n
    above = 1 - (ranks[~is_positive] - rankdata(negatives)) / m
    area = float(below.mean())
    smaller: float = min(m, n)
    if groups is None:
        variance = sum(
            float(np.var(each, ddof=1)) / each.size for each in (below, above) if each.size > 1
        )
    else:
        influence = np.empty(scores.size)
        influence[is_positive], influence[~is_positive] = (below - area) / m, (above - area) / n
        variance, _ = _clustered(influence, groups)
        smaller = min(np.unique(groups[each]).size for each in (is_positive, ~is_positive))
    spread = area * (1 - area)
    return wilson(area, spread / variance if variance > 0 and spread > 0 else smaller)


def _calibration(
    is_positive: Mask, shares: Floats, groups: Groups | None
) -> tuple[Estimate, Estimate]:
    """Intercept for slope one, and slope with an intercept of its own."""
    odds = logit(np.clip(shares, EPS, 1 - EPS))
    ones = np.ones((odds.size, 1))
    intercept = _logistic(ones, odds, is_positive, groups)
    ends = [(odds[each].min(), odds[each].max()) for each in (is_positive, ~is_positive)]
    (low, high), (least, most) = ends
    if low >= most or least >= high:  # a threshold separates the classes: the slope is infinite
        return intercept, Estimate(np.nan, np.nan, np.nan)
    return intercept, _logistic(np.column_stack([odds, ones]), 0 * odds, is_positive, groups)


def _logistic(design: Floats, offset: Floats, y: Mask, groups: Groups | None) -> Estimate:
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
    if groups is not None:
        residuals = design * (y - expit(offset + design @ coef))[:, None]
        each = np.column_stack([np.bincount(groups, column) for column in residuals.T])
        count = each.shape[0]
        covariance = covariance @ (each.T @ each) @ covariance * count / max(count - 1, 1)
    width = QUANTILE * float(np.sqrt(covariance[0, 0]))
    value = float(coef[0])
    return Estimate(value, value - width, value + width)
