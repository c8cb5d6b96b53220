"""The models of Ito, Takeda, Toh (2017), each with a certificate of its own.

Written apart from the library, with z_i = y_i (x_i'w + b) and v = X'(y alpha):

    Regularized  sum l(z_i) + |w|^2 / (2C)                C-SVM, l2-SVM, logistic      (G1)
    OneVsRest    the same for each class against the others            the largest of  (G1)
    InBall       sum l(z_i) over |w| <= 1                 DWD                          (G2)
    Tail         the mean of the worst share nu of margins                             (G3)
    Ellipsoids   the difference of the means less kappa deviations: MM-FDA, MM-MPM     (G3)

    (G1)  gap = sum FY_i + |w - C v|^2 / (2C) + |b y'alpha|
    (G2)  gap = sum FY_i + |v| - w'v + |b y'alpha|
    (G3)  relative gap = 1 - (g(w) / (|w| |v|))^2, of a margin g(w) > 0 that is linear along rays

FY_i = l(z_i) + l*(-alpha_i) + alpha_i z_i >= 0 in closed form, so that nothing cancels. Any
feasible alpha proves a bound; the smallest counts. Losses with kinks say little of alpha, so
those models are also judged with the dual points that are handed in, once made feasible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Design
from benchmarks.objective import (
    FLOOR,
    Floats,
    Hinge,
    Logistic,
    MarginLoss,
    Problem,
    SquaredHinge,
    balanced,
    exact_intercept,
)
from benchmarks.peers.base import Fitted


class Model(Protocol):
    """A model with its parameter."""

    @property
    def name(self) -> str: ...
    @property
    def parameter(self) -> str: ...
    def relative_gap(self, case: Case, solved: Fitted, duals: Sequence[Floats]) -> float: ...


@dataclass(frozen=True)
class Case:
    """A model on data: what a solver is asked to fit."""

    design: Design
    labels: Floats
    model: Model


def augmented(design: Design) -> Design:
    """With a last column of ones, whose coefficient is a penalised intercept."""
    ones = np.ones((design.shape[0], 1))
    if sp.issparse(design):
        return sp.hstack([design, sp.csr_matrix(ones)], format="csr")
    return np.hstack([design, ones])


# ---- losses of a margin, in the terms of `objective.MarginLoss` ---------------------------------


@dataclass(frozen=True)
class DistanceWeighted:
    """1/t from the threshold r on, its tangent (2r - t)/r^2 below."""

    threshold: float
    name: str = "distance weighted"

    @property
    def dual_bound(self) -> float:
        return 1.0 / self.threshold**2

    def value(self, t: Floats) -> Floats:
        r = self.threshold
        return np.where(t >= r, 1.0 / np.maximum(t, r), (2.0 * r - t) / r**2)

    def dual(self, t: Floats) -> Floats:
        return 1.0 / np.maximum(t, self.threshold) ** 2

    def mismatch(self, t: Floats, beta: Floats) -> Floats:
        r, root = self.threshold, np.sqrt(beta)
        far = np.maximum(t, r)
        beyond = (1.0 / np.sqrt(far) - root * np.sqrt(far)) ** 2
        below = (1.0 / r - root) * (2.0 - t * (1.0 / r + root))
        return np.where(t >= r, beyond, np.maximum(below, 0.0))


# ---- models -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Regularized:
    """(7): a loss with the weight C. `augmented`: the intercept is a penalised coefficient."""

    loss: MarginLoss
    C: float
    augmented: bool = False

    @property
    def name(self) -> str:
        names = {Hinge: "C-SVM", SquaredHinge: "l2-SVM", Logistic: "logistic"}
        return names[type(self.loss)]

    @property
    def parameter(self) -> str:
        return f"C {self.C:g}"

    def relative_gap(self, case: Case, solved: Fitted, duals: Sequence[Floats]) -> float:
        design, w, b = case.design, solved.coef, solved.intercept
        if self.augmented:
            design, w, b = augmented(design), np.append(w, b), 0.0
        problem = Problem(design, case.labels, self.loss, 0.0, 0.0, 0.0, not self.augmented)
        scores = design @ w
        gaps = []
        for intercept in (b, exact_intercept(problem, scores, b)):
            t = case.labels * (scores + intercept)
            primal = float(self.loss.value(t).sum()) + w @ w / (2.0 * self.C)
            for alpha, v in _feasible(problem, t, duals):
                gap = float(self.loss.mismatch(t, alpha).sum())
                gap += float(((w - self.C * v) ** 2).sum()) / (2.0 * self.C)
                gap += abs(intercept * float(case.labels @ alpha))
                gaps.append(gap / max(primal, FLOOR))
        return min(gaps)


@dataclass(frozen=True)
class OneVsRest:
    """A model for each class against the others; the labels are the classes.

    A fit of it has the coefficients (k, p + 1), a row for each class with its intercept last, and
    dual points (k, n). Its gap is the largest of them.
    """

    each: Regularized

    @property
    def name(self) -> str:
        return f"{self.each.name}, one against the rest"

    @property
    def parameter(self) -> str:
        return self.each.parameter

    def relative_gap(self, case: Case, solved: Fitted, duals: Sequence[Floats]) -> float:
        gaps = []
        for k, one in enumerate(np.unique(case.labels)):
            labels = np.where(case.labels == one, 1.0, -1.0)
            found = Fitted(solved.coef[k, :-1], float(solved.coef[k, -1]))
            alone = Case(case.design, labels, self.each)
            gaps.append(self.each.relative_gap(alone, found, [dual[k] for dual in duals]))
        return max(gaps)


def with_penalised_intercept(model: Model) -> Iterator[Model]:
    """The model as LIBLINEAR and others have it, where it is one of theirs."""
    match model:
        case Regularized(augmented=False):
            yield replace(model, augmented=True)
        case OneVsRest(each=Regularized(augmented=False) as each):
            yield OneVsRest(replace(each, augmented=True))


@dataclass(frozen=True)
class InBall:
    """(8) with the Euclidean norm and lambda = 1; the intercept is the best one."""

    loss: DistanceWeighted
    name: str = "DWD"

    @property
    def parameter(self) -> str:
        return f"r {self.loss.threshold:.3g}"

    def relative_gap(self, case: Case, solved: Fitted, duals: Sequence[Floats]) -> float:
        w = solved.coef / max(1.0, float(np.linalg.norm(solved.coef)))
        problem = Problem(case.design, case.labels, self.loss, 0.0, 0.0)
        scores = case.design @ w
        b = exact_intercept(problem, scores, solved.intercept)
        t = case.labels * (scores + b)
        primal = float(self.loss.value(t).sum())
        gaps = []
        for alpha, v in _feasible(problem, t, duals):
            gap = float(self.loss.mismatch(t, alpha).sum()) + _hoelder(w, v)
            gaps.append(gap + abs(b * float(case.labels @ alpha)))
        return min(gaps) / max(primal, FLOOR)


@dataclass(frozen=True)
class Tail:
    """The nu-SVM: alpha sums to 1/2 in each class and is at most 1/(m nu)."""

    nu: float
    name: str = "nu-SVM"

    @property
    def parameter(self) -> str:
        return f"nu {self.nu:.3g}"

    def relative_gap(self, case: Case, solved: Fitted, duals: Sequence[Floats]) -> float:
        cap = 1.0 / (case.labels.size * self.nu)
        margins = case.labels * (case.design @ solved.coef)
        classes = [case.labels > 0, case.labels < 0]
        g = sum(_least_mean(margins[one], cap) for one in classes)
        lengths = [
            float(np.linalg.norm(_pulled(case, _capped(alpha, classes, cap)))) for alpha in duals
        ]
        return _ray_gap(g, solved.coef, min(lengths, default=float("inf")))


@dataclass(frozen=True)
class Ellipsoids:
    """MM-FDA (`joint`: one ellipsoid around the difference of the means) or MM-MPM (two)."""

    kappa: float
    joint: bool

    @property
    def name(self) -> str:
        return "MM-FDA" if self.joint else "MM-MPM"

    @property
    def parameter(self) -> str:
        return f"kappa {self.kappa:.3g}"

    def relative_gap(self, case: Case, solved: Fitted, duals: Sequence[Floats]) -> float:
        """The dual point is that of the two ends of the ellipsoids in the direction w."""
        scores, signs = case.design @ solved.coef, case.labels
        up, down = scores[signs > 0], scores[signs < 0]
        reach = self._reach(up, down)
        spent = float(np.hypot(*reach)) if self.joint else sum(reach)
        g = float(up.mean() - down.mean()) - self.kappa * spent
        weights = np.empty_like(scores)
        for part, sign, size in ((up, 1.0, reach[0]), (down, -1.0, reach[1])):
            scale = float(np.hypot(*reach)) if self.joint else size
            towards = (part - part.mean()) / scale if scale > 0 else np.zeros_like(part)
            weights[signs == sign] = (1.0 - sign * self.kappa * towards) / part.size
        length = float(np.linalg.norm(_pulled(case, weights)))
        return _ray_gap(g, solved.coef, length)

    @staticmethod
    def _reach(up: Floats, down: Floats) -> tuple[float, float]:
        return float(up.std()), float(down.std())


def _feasible(
    problem: Problem, t: Floats, duals: Sequence[Floats]
) -> Iterator[tuple[Floats, Floats]]:
    """Feasible dual points with their v: the slope of the loss at t, and those handed in."""
    for alpha in (problem.loss.dual(t), *duals):
        beta = balanced(problem, np.clip(alpha, 0.0, problem.loss.dual_bound))
        yield beta, problem.design.T @ (problem.labels * beta)


def _pulled(case: Case, alpha: Floats) -> Floats:
    return np.asarray(case.design.T @ (case.labels * alpha))


def _capped(alpha: Floats, classes: Sequence[Floats], cap: float) -> Floats:
    """Each class to the sum 1/2 within [0, cap]: scaled, or moved towards the cap."""
    result = np.empty_like(alpha)
    for one in classes:
        part = np.clip(alpha[one] * (0.5 / max(float(alpha[one].sum()), FLOOR)), 0.0, cap)
        missing, room = 0.5 - float(part.sum()), cap - part
        part += room * max(missing, 0.0) / max(float(room.sum()), FLOOR)
        result[one] = part * min(1.0, 0.5 / float(part.sum()))
    return result


def _least_mean(margins: Floats, cap: float) -> float:
    """The least sum of alpha_i z_i with 0 <= alpha <= cap and the sum 1/2."""
    whole = min(int(0.5 / cap), margins.size - 1)
    smallest = np.partition(margins, whole)
    rest = max(0.5 - whole * cap, 0.0)
    return cap * float(smallest[:whole].sum()) + rest * float(smallest[whole])


def _hoelder(w: Floats, v: Floats) -> float:
    """|v| - w'v for |w| <= 1, in two terms that do not cancel."""
    size = float(np.linalg.norm(v))
    if size == 0.0:
        return 0.0
    apart = w - v / size
    return size * 0.5 * (float(apart @ apart) + max(1.0 - float(w @ w), 0.0))


def _ray_gap(g: float, w: Floats, length: float) -> float:
    """(G3); 1, the gap of w = 0, where there is no margin or no dual point."""
    size = float(np.linalg.norm(w))
    if not np.isfinite(size) or size == 0.0 or g <= 0.0:
        return 1.0
    return max(1.0 - (g / (size * length)) ** 2, 0.0)
