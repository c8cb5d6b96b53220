"""Duality gaps: how far a point can be from the optimum, at most.

For any dual point q, with v = -X'q and c = -1'q,

    gap = [L(z) + L*(q) - <z, q>] + [G(w) + G*(v) - <v, w>] + [B(b) + B*(c) - <c, b>]

bounds the suboptimality of (w, b). Every bracket is a sum of non-negative Fenchel-Young terms,
computed in closed form: subtracting a dual from a primal value would lose the last digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem

__all__ = ["Certificate", "CertificateList", "Gap", "certify"]

FEATURE_BLOCK = 1 << 12
# share of the negligible objective that rounding can make of zero
ROUNDED_MARGIN = 1e-10
# a gap of so many times the rounding in it is all but rounding
MOSTLY = 1.5


@dataclass(frozen=True, eq=False)
class Gap:
    """What one certificate computation found.

    Attributes
    ----------
    point : Point
        The point it speaks of: the given coefficients with their best intercept.
    primal, dual, gap, relative_gap, kkt_residual : float
        ``dual`` is a lower bound of the optimum and ``gap = primal - dual``;
        ``kkt_residual`` is the largest entry of ``violations``.
    violations : (n_features,)
        Distance of each feature from optimality, before the dual point is scaled.
    dual_point : (n_samples, n_outputs)
        The feasible dual point that proves the bound.
    negligible : float
        Where the objective is zero, gaps are relative to this (`Problem.negligible`).
    rounding : float
        What of the gap allows for the rounding of products with the data.
    """

    point: Point
    primal: float
    gap: float
    kkt_residual: float
    violations: Array
    dual_point: Array
    negligible: float
    rounding: float

    @property
    def dual(self) -> float:
        """``primal - gap``, less what that subtraction may have rounded up."""
        error = 16 * float(np.finfo(float).eps) * (abs(self.primal) + abs(self.gap))
        return self.primal - self.gap - error

    @property
    def is_finite(self) -> bool:
        """The point has finite numbers only, and the gap is a number, which may be infinite."""
        coef, intercept = self.point.coef, self.point.intercept
        finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
        return bool(finite) and not np.isnan(self.gap)

    @property
    def relative_gap(self) -> float:
        return self.gap / self._scale

    @property
    def _scale(self) -> float:
        """What gaps are relative to."""
        scale = max(abs(self.primal), abs(self.dual) if np.isfinite(self.dual) else 0.0)
        return max(scale, np.finfo(float).tiny if self.is_negative else self.negligible)

    def is_rounding(self, tol: float) -> bool:
        """Most of the gap is rounding, and rounding alone is more than the relative ``tol`` > 0."""
        return 0.0 < tol * self._scale < self.rounding and self.gap <= MOSTLY * self.rounding

    @property
    def is_negative(self) -> bool:
        """The objective is below zero by more than rounding: a homogeneous loss has a margin."""
        return self.primal < -ROUNDED_MARGIN * self.negligible


def certify(
    problem: Problem, point: Point, *, scores: Array | None = None, dual: Array | None = None
) -> Gap:
    """Certify the coefficients of ``point`` together with their best intercept.

    Where the loss is homogeneous, the best multiple of the point is certified instead: only its
    direction matters then, and a wrong length would hide how good it is.

    The gap includes a bound on the rounding of the products with the data, so that data with
    means far larger than their spread cannot pass for solved.

    The dual point is the gradient of the loss at the exact intercept, so that it meets the
    constraint of a free intercept by optimality; it is then clipped into the domain, balanced to
    remove rounding, and scaled into the domain of the penalty's conjugate. It is therefore exactly
    feasible whatever the coefficients are.

    Parameters
    ----------
    scores : (n_samples, n_outputs), optional
        ``X @ coef + intercept`` when known, which saves one of the two products with X.
    dual : (n_samples, n_outputs), optional
        A dual point to prove the bound with instead of a gradient of the loss, which proves
        little where the loss has kinks.
    """
    coef = point.coef
    scores = problem.design.scores(coef) if scores is None else scores - point.intercept
    intercept = problem.loss.best_intercept(scores, problem.intercept, point.intercept)
    scores += intercept
    value, gradient = problem.loss.value_and_gradient(scores)
    if problem.loss.is_homogeneous:
        multiple = problem.best_multiple(Point(coef, intercept), value)
        coef, intercept, scores = multiple * coef, multiple * intercept, multiple * scores
        value *= multiple
    gradient = gradient if dual is None else dual
    slope = gradient.sum(axis=0, keepdims=True)
    dual = problem.loss.balanced(gradient, problem.intercept)
    del gradient  # as large as the scores
    pulled = problem.design.adjoint(dual)
    np.negative(pulled, out=pulled)
    penalty = problem.penalty
    scale = penalty.domain_scale(pulled)
    b = intercept[None, :]
    c = -scale * dual.sum(axis=0, keepdims=True)
    proof, sizes = scale * dual, np.abs(dual).sum(axis=0)
    del dual  # as large again
    # feature by feature the work is independent: in blocks, so that temporaries stay small
    size = FEATURE_BLOCK if penalty.by_features else max(len(coef), 1)
    blocks = [slice(k, k + size) for k in range(0, max(len(coef), 1), size)]  # one, if empty
    violations = np.concatenate([penalty.violations(coef[k], pulled[k]) for k in blocks])
    gap = (
        problem.loss.fenchel_young(scores, proof)
        + sum(float(penalty.fenchel_young(coef[k], scale * pulled[k]).sum()) for k in blocks)
        + float(problem.intercept.fenchel_young(b, c).sum())
    )
    # what the products with X may have rounded: the scores, and the pulled-back dual against coef
    rounding = 2.0 * float(sizes @ problem.design.product_error(coef))
    gap += rounding
    primal = value + sum(penalty.value(coef[k]) for k in blocks) + problem.intercept.value(b)
    residual = max(
        float(violations.max(initial=0.0)),
        float(problem.intercept.violations(b, -slope).max()),
    )
    return Gap(
        point=Point(coef, intercept, proof),
        primal=float(primal),
        gap=float(gap),
        kkt_residual=residual,
        violations=violations,
        dual_point=proof,
        negligible=problem.negligible,
        rounding=rounding,
    )


@dataclass(frozen=True)
class Certificate:
    """What a fit can prove about itself.

    Attributes
    ----------
    primal : float
        Objective value of the fitted model.
    dual : float
        A lower bound of the optimal objective value.
    gap : float
        ``primal - dual``: the model is at most this far from the optimum.
    relative_gap : float
        ``gap / max(|primal|, |dual|)``.
    kkt_residual : float
        Largest violation of the optimality conditions, in units of the gradient.
    converged : bool
        Whether ``relative_gap`` is at most the tolerance asked for.
    stop_reason : str
    n_iter : int
    n_passes : float
        Products with the data, in units of one full product.
    seconds : float
    solver : str
    because : str
        Why this solver was chosen.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    kkt_residual: float
    converged: bool
    stop_reason: str
    n_iter: int
    n_passes: float
    seconds: float
    solver: str
    because: str = ""

    def __str__(self) -> str:
        verdict = "converged" if self.converged else "not converged"
        return (
            f"{verdict}: objective {self.primal:.10g} is within {self.gap:.2e} "
            f"(relative {self.relative_gap:.1e}) of the optimum; {self.solver}, "
            f"{self.n_iter} iterations, {self.n_passes:.4g} passes over the data, "
            f"{self.seconds:.3g} s; {self.stop_reason}"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def scaled(self, factor: float) -> Certificate:
        """The same certificate for the objective times ``factor > 0``."""
        return replace(
            self,
            primal=factor * self.primal,
            dual=factor * self.dual,
            gap=factor * self.gap,
            kkt_residual=factor * self.kkt_residual,
        )


class CertificateList(Sequence[Certificate]):
    """Certificates of several fits that make up one model, with the fields in aggregate.

    Values, gaps, iterations, passes and seconds add up; relative gap and residual are the worst.
    """

    def __init__(self, certificates: Sequence[Certificate]) -> None:
        self._all = tuple(certificates)

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | Sequence[Certificate]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CertificateList) and self._all == other._all

    __hash__ = None  # type: ignore[assignment]

    @property
    def primal(self) -> float:
        return sum(c.primal for c in self)

    @property
    def dual(self) -> float:
        return sum(c.dual for c in self)

    @property
    def gap(self) -> float:
        return sum(c.gap for c in self)

    @property
    def relative_gap(self) -> float:
        return max(c.relative_gap for c in self)

    @property
    def kkt_residual(self) -> float:
        return max(c.kkt_residual for c in self)

    @property
    def converged(self) -> bool:
        return all(c.converged for c in self)

    @property
    def stop_reason(self) -> str:
        return self._worst().stop_reason

    @property
    def n_iter(self) -> int:
        return sum(c.n_iter for c in self)

    @property
    def n_passes(self) -> float:
        return sum(c.n_passes for c in self)

    @property
    def seconds(self) -> float:
        return sum(c.seconds for c in self)

    @property
    def solver(self) -> str:
        return self._worst().solver

    @property
    def because(self) -> str:
        return self._worst().because

    def __str__(self) -> str:
        return f"worst of {len(self)} class problems: {self._worst()}"

    def __repr__(self) -> str:
        return f"CertificateList({list(self._all)!r})"

    def _worst(self) -> Certificate:
        return max(self, key=lambda c: (not c.converged, c.relative_gap))
