"""Maps from scores to probabilities of the classes, fitted to held-out scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, log_softmax, logit, softmax
from sklearn.isotonic import IsotonicRegression

from proxmargin.compiled.rounding import EPS
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.runtime.types import Array, Estimator, Mask, Record

Codes = NDArray[np.intp]
Map = Callable[[Array], Array]
"""From scores to log-odds of the second class."""

MATRIX_RIDGE = 1.0  # strength of that of the multinomial map, on scores of unit scale
FIT_TOLERANCE = 1e-9  # of the gradient of a mean log-loss
# range of the logarithm of the factor on scores of unit scale
LOG_FACTORS = (-10.0, 10.0)
SURE = EPS  # probabilities nearer to 0 or 1 have these log-odds
# largest score of a sample in units of the held-out ones: products with any map are finite
LARGEST = 1e150


class CalibratorPart:
    """What a calibrator is made of: plain numbers, so that a model file can hold it."""

    is_portable: ClassVar[bool] = True


class Calibrator(CalibratorPart, ABC):
    """A fitted map from scores to probabilities."""

    @abstractmethod
    def probabilities(self, scores: Array) -> Array:
        """(n_samples, n_classes) from scores (n_samples,), or (n_samples, n_classes) of more than
        two classes."""


Maker = Callable[[Array, Codes, Array], Calibrator]
"""From held-out scores, class indices and weights."""


def fit_calibrator(method: str, scores: Array, codes: Codes, weights: Array) -> Calibrator:
    """The calibrator of a method of `CALIBRATORS` for held-out scores, (n_samples,) or (n_samples,
    n_classes), class indices and weights, (n_samples,)."""
    scale = _scale(scores, weights)
    return ScaledMap(scale, CALIBRATORS[method](scores / scale, codes, weights))


def _scale(scores: Array, weights: Array) -> float:
    """The weighted root mean square of the scores; one if they are zero."""
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    each = (scores / largest) ** 2  # no overflow
    scale = np.sqrt(np.average(each if scores.ndim == 1 else each.mean(axis=1), weights=weights))
    return largest * float(scale) or 1.0


@dataclass(frozen=True, eq=False)
class ScaledMap(Calibrator):
    """A calibrator of scores of unit scale, for scores in their own."""

    scale: float
    inner: Calibrator

    def probabilities(self, scores: Array) -> Array:
        each = scores[:, None] if scores.ndim == 1 else scores
        largest = np.abs(each).max(axis=1, keepdims=True)
        # larger ones are as sure, and keep their order
        shrunk = each / np.maximum(self.scale, largest / LARGEST)
        return self.inner.probabilities(shrunk[:, 0] if scores.ndim == 1 else shrunk)


@dataclass(frozen=True, eq=False)
class TwoClassMap(Calibrator):
    """Two classes: the log-odds of the second one from the score."""

    odds: Map

    def probabilities(self, scores: Array) -> Array:
        odds = self.odds(scores)
        return np.column_stack([expit(-odds), expit(odds)])


@dataclass(frozen=True, eq=False)
class OneVersusRestMap(Calibrator):
    """A map of the log-odds of a first calibrator for each class against the rest; the results
    divided by their sum."""

    first: Calibrator
    each: tuple[Map, ...]

    def probabilities(self, scores: Array) -> Array:
        odds = _log_odds(self.first, scores)
        found = [one(column) for one, column in zip(self.each, odds.T, strict=True)]
        return np.asarray(softmax(log_expit(np.column_stack(found)), axis=1))


def _log_odds(calibrator: Calibrator, scores: Array) -> Array:
    """Of each class against the rest, (n_samples, n_classes); finite."""
    found = calibrator.probabilities(scores)
    return np.asarray(logit(np.clip(found, SURE, 1.0 - SURE)))


def _of_second(fit: Callable[[Array, Mask, Array], Map]) -> Maker:
    """A method for two classes, also for each class against the rest: there on the log-odds of the
    `_sigmoid` of all scores, as the score of one class says little without the others."""

    def make(scores: Array, codes: Codes, weights: Array) -> Calibrator:
        if scores.ndim == 1:
            return TwoClassMap(fit(scores, codes == 1, weights))
        first = _sigmoid(scores, codes, weights)
        columns = enumerate(_log_odds(first, scores).T)
        return OneVersusRestMap(
            first, tuple(fit(column, codes == k, weights) for k, column in columns)
        )

    return make


def _smoothed_targets(codes: Codes, weights: Array, count: int) -> Array:
    """Probabilities of the classes, (n_samples, n_classes), by Laplace's rule, for two Platt's: of
    N samples the own class has ``(N + 1) / (N + K)``, each other ``1 / (N + K)``, never zero."""
    totals = np.bincount(codes, weights, minlength=count)
    others = 1.0 / (totals + count)
    targets = np.repeat(others[codes][:, None], count, axis=1)
    targets[np.arange(codes.size), codes] += totals[codes] * others[codes]
    return targets


def _regression(
    ridge: float, features: Array, targets: Array, weights: Array
) -> tuple[Array, Array]:
    """Coefficients, (n_classes, n_features), and intercepts of multinomial logistic regression on
    probabilities, by Newton steps in a trust region."""
    centre = np.average(features, axis=0, weights=weights)
    rows = np.column_stack([features - centre, np.ones(len(features))])
    shares = (weights / weights.sum())[:, None]
    penalty = np.append(np.full(features.shape[1], ridge), 0.0) / weights.sum()

    def objective(point: Array) -> tuple[float, Array]:
        coef = point.reshape(targets.shape[1], -1)
        logs = log_softmax(rows @ coef.T, axis=1)
        gradient = (shares * (np.exp(logs) - targets)).T @ rows + penalty * coef
        value = 0.5 * np.sum(penalty * coef**2) - np.sum(shares * targets * logs)
        return value, gradient.ravel()

    def curvature(point: Array, direction: Array) -> Array:
        coef, moved = (each.reshape(targets.shape[1], -1) for each in (point, direction))
        chances = softmax(rows @ coef.T, axis=1)
        spread = chances * (rows @ moved.T)
        spread -= chances * spread.sum(axis=1, keepdims=True)
        return np.asarray((shares * spread).T @ rows + penalty * moved).ravel()

    how: Record = {"jac": True, "hessp": curvature, "method": "trust-ncg"}
    start = np.zeros(targets.shape[1] * rows.shape[1])
    best = minimize(objective, start, options={"gtol": FIT_TOLERANCE}, **how)
    found = best.x.reshape(targets.shape[1], -1)
    return found[:, :-1], found[:, -1] - found[:, :-1] @ centre


def _log_odds_fit(features: Array, targets: Array, weights: Array) -> tuple[Array, float]:
    """Coefficients and shift of the log-odds of the second of two classes, without a penalty."""
    off = features - np.average(features, axis=0, weights=weights)
    spread = np.sqrt(np.average(off**2, axis=0, weights=weights))
    unit = np.where(spread > 0, spread, 1.0)
    (coef,), (shift,) = (
        np.diff(each, axis=0) for each in _regression(0.0, features / unit, targets, weights)
    )
    return coef / unit, float(shift)


def _platt(scores: Array, second: Mask, weights: Array) -> SigmoidLogOdds:
    """Platt's sigmoid ``1 / (1 + exp(-(a s + b)))``, fitted to his smoothed targets."""
    targets = _smoothed_targets(second.astype(np.intp), weights, 2)
    (slope,), shift = _log_odds_fit(scores[:, None], targets, weights)
    return SigmoidLogOdds(float(slope), shift)


@dataclass(frozen=True)
class SigmoidLogOdds(CalibratorPart):
    """Log-odds ``slope s + shift``."""

    slope: float
    shift: float

    def __call__(self, scores: Array) -> Array:
        return self.slope * scores + self.shift


def _sigmoid(scores: Array, codes: Codes, weights: Array) -> Calibrator:
    """Platt's sigmoid; of more classes multinomial logistic regression, with a ridge on the map of
    scores that are log-odds by their `_temperature`, where the identity costs little."""
    if scores.ndim == 1:
        return TwoClassMap(_platt(scores, codes == 1, weights))
    targets = _smoothed_targets(codes, weights, scores.shape[1])
    factor = _best_factor(scores, targets, weights)
    coef, intercept = _regression(MATRIX_RIDGE, factor * scores, targets, weights)
    return MultinomialMap((*(factor * coef),), intercept)


@dataclass(frozen=True, eq=False)
class MultinomialMap(Calibrator):
    """``softmax(A s + b)``."""

    coef: tuple[Array, ...]  # a row a class
    intercept: Array

    def probabilities(self, scores: Array) -> Array:
        return np.asarray(softmax(scores @ np.array(self.coef).T + self.intercept, axis=1))


def _temperature(scores: Array, codes: Codes, weights: Array) -> Calibrator:
    """One factor on all scores."""
    count = 2 if scores.ndim == 1 else scores.shape[1]
    factor = _best_factor(scores, _smoothed_targets(codes, weights, count), weights)
    if scores.ndim == 1:
        return TwoClassMap(SigmoidLogOdds(factor, 0.0))
    return MultinomialMap((*(factor * np.eye(count)),), np.zeros(count))


def _best_factor(scores: Array, targets: Array, weights: Array) -> float:
    """The factor on the scores with the least log-loss of the targets, which is convex in it."""

    def loss(logarithm: float) -> float:
        scaled = np.exp(logarithm) * scores
        if scores.ndim == 1:
            logs = np.column_stack([log_expit(-scaled), log_expit(scaled)])
        else:
            logs = log_softmax(scaled, axis=1)
        return -float(np.average((targets * logs).sum(axis=1), weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=LOG_FACTORS, method="bounded").x))


def _isotonic(scores: Array, second: Mask, weights: Array) -> Map:
    """The non-decreasing step function with the least squared error, between Platt's targets."""
    targets = _smoothed_targets(second.astype(np.intp), weights, 2)[:, 1]
    steps = IsotonicRegression(y_min=targets.min(), y_max=targets.max(), out_of_bounds="clip")
    steps.fit(scores, second.astype(float), sample_weight=weights)
    return StepLogOdds(steps.X_thresholds_, steps.y_thresholds_)


@dataclass(frozen=True, eq=False)
class StepLogOdds(CalibratorPart):
    """Log-odds of a non-decreasing polygon of probabilities."""

    scores: Array
    shares: Array

    def __call__(self, scores: Array) -> Array:
        return np.asarray(logit(np.interp(scores, self.scores, self.shares)))


def _beta(scores: Array, second: Mask, weights: Array) -> Map:
    """Beta calibration (Kull, Silva Filho, Flach 2017) of Platt's probabilities p: log-odds ``c log
    p - d log(1 - p) + m`` with ``c, d >= 0``. The sigmoid is the case ``c = d = 1, m = 0``."""
    first = _platt(scores, second, weights)
    logits = first(scores)
    features = np.column_stack([log_expit(logits), -log_expit(-logits)])
    kept = np.array([True, True])
    targets = _smoothed_targets(second.astype(np.intp), weights, 2)
    found, shift = _log_odds_fit(features, targets, weights)
    if (found < 0).any():  # the other alone, as its authors do
        kept = np.arange(2) != int(np.argmin(found))
        found, shift = _log_odds_fit(features[:, kept], targets, weights)
    coef = np.zeros(2)
    coef[kept] = np.maximum(found, 0.0)
    return BetaLogOdds(first, coef, shift)


@dataclass(frozen=True, eq=False)
class BetaLogOdds(CalibratorPart):
    """Log-odds ``c log p - d log(1 - p) + m`` for p of a sigmoid."""

    first: SigmoidLogOdds
    coef: Array
    shift: float

    def __call__(self, scores: Array) -> Array:
        logits = self.first(scores)
        parts = self.coef[0] * log_expit(logits) - self.coef[1] * log_expit(-logits)
        return np.asarray(parts + self.shift)


CALIBRATORS: Mapping[str, Maker] = MappingProxyType(
    {
        "sigmoid": _sigmoid,
        "isotonic": _of_second(_isotonic),
        "temperature": _temperature,
        "beta": _of_second(_beta),
    }
)


def margin_model(model: Estimator) -> Estimator:
    """The margin model of this library in a fitted one: itself, the last step of a pipeline, the
    one that a search has chosen. None in others."""
    inner = getattr(model, "steps", [(None, model)])[-1][1]
    inner = getattr(inner, "best_estimator_", inner)
    return inner if isinstance(inner, MarginEstimator) else None
