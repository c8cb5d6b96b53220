"""Duality gaps, and the certificate that a fit publishes with the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar, overload

import numpy as np

from proxmargin.compiled.rounding import SUM_ROUNDING, TINY
from proxmargin.optimality.problem import Point
from proxmargin.runtime.brief import MET, UNMET, html_line
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.types import Array, Record


@dataclass(frozen=True)
class Certificate:
    """The proven quality of a fit, with its iterations, passes and time.

    Attributes
    ----------
    primal : float
        Objective value of the fitted model; of a kernel machine at the scores as computed, whose
        rounding is in ``gap``.
    dual : float
        A lower bound of the optimal objective value.
    gap : float
        ``primal - dual``: the model is at most this far from the optimum. Proved, with rounding,
        but for one assumption with a free intercept: its optimal value is at most one unit of the
        margins, ``max_i (|b| + sum_j |x_ij w_j|) + 1``. Were it k times that, the gap could be too
        small by k times some unit roundoffs (1e-16) of the sum of the absolute dual variables.
    relative_gap : float
        ``gap / max(|primal|, |dual|, z)`` with the objective z that counts as zero: 2e-16 without a
        penalty or in a ball; the objective of a margin of 3e-4 typical distances for a nu-SVM,
        MM-FDA or MM-MPM without a margin; otherwise the least positive float64.
    kkt_residual : float
        Largest violation of the optimality conditions ``-X'q in dG(w)`` and ``-1'q in dB(b)``: G is
        the penalty, B that of the intercept, q the dual point of the certificate before it is
        scaled, a gradient of the loss in the scores (a subgradient at its kinks). With
        ``v = -X'q`` it is the largest entry of ``|v - g|``, g the point of the subdifferential of G
        at w that is nearest to v; for an elastic net

            ``|v_j - l2 w_j - l1 sign(w_j)|``  where ``w_j != 0``,
            ``(|v_j| - l1)_+``                 where ``w_j == 0``,

        and ``|1'q|`` for a free intercept, before rounding is taken out of that sum. Its unit is
        that of the l1 strength, the objective per unit of a coefficient (of standardised features,
        where the model standardises). With a nonlinear kernel the one coefficient is ``|w|``. It
        proves nothing by itself: the gap does.
    converged : bool
        Whether ``relative_gap`` is at most the tolerance asked for.
    stop_reason : str
    n_iter : int
    n_passes : float
        Products with the data, or with copies of some of its rows or columns, in units of one full
        product. Of a pass over blocks of rows that several classes share each has an equal part,
        so that the sum over the classes is how often the data were read.
    seconds : float
        Wall-clock time, including the compilation of kernels.
    solver : str
    because : str
        Why this solver was chosen.

    See Also
    --------
    certify : Makes one for coefficients from anywhere.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> certificate = SVC(C=0.1, standardize=True).fit(X, y).certificate_
    >>> certificate.converged, bool(certificate.gap <= 1e-6 * certificate.primal)
    (True, True)
    >>> bool(certificate.dual <= certificate.primal)
    True
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

    def _repr_html_(self) -> str:
        return _in_html(self)

    def to_dict(self) -> Record:
        return asdict(self)

    def scaled(self, factor: float) -> Certificate:
        """The same certificate for the objective times ``factor > 0``."""
        names = ("primal", "dual", "gap", "kkt_residual")
        return Certificate(**{**vars(self), **{each: factor * vars(self)[each] for each in names}})


class CertificateList(Sequence[Certificate]):
    """Certificates of several fits that make up one model, with the fields in aggregate.

    Values, gaps, iterations, passes and seconds add up; relative gap and residual are the worst.

    Parameters
    ----------
    certificates : sequence of Certificate
    classes : sequence, optional
        The class of each, by which texts name it.

    See Also
    --------
    Certificate : One of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from proxmargin import L2SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> certificates = L2SVC().fit(X, y).certificate_
    >>> len(certificates), certificates.converged, certificates[0].converged
    (3, True, True)
    """

    def __init__(self, certificates: Sequence[Certificate], classes: Iterable[object] = ()) -> None:
        self._all = each = tuple(certificates)
        self._classes = tuple(map(str, classes))
        worst = self._worst()
        self.primal: float = sum([c.primal for c in each])
        self.dual: float = sum([c.dual for c in each])
        self.gap: float = sum([c.gap for c in each])
        self.relative_gap = max(c.relative_gap for c in each)
        self.kkt_residual = max(c.kkt_residual for c in each)
        self.converged = all(c.converged for c in each)
        self.stop_reason, self.solver = worst.stop_reason, worst.solver
        self.n_iter = sum([c.n_iter for c in each])
        self.n_passes: float = sum([c.n_passes for c in each])
        self.seconds: float = sum([c.seconds for c in each])

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
    def because(self) -> str:
        """Why these solvers were chosen, each reason once, with its classes where they differ."""
        classes: dict[str, list[str]] = {}
        for name, one in zip(self._names(), self, strict=True):
            classes.setdefault(one.because, []).append(name)
        if len(classes) == 1:
            return next(iter(classes))
        return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in classes.items())

    def __str__(self) -> str:
        worst = self._worst()
        name = self._names()[self._all.index(worst)]
        return f"worst of {len(self)} class problems ({name}): {worst}"

    def __repr__(self) -> str:
        return f"<CertificateList, {self}>"

    def _repr_html_(self) -> str:
        return _in_html(self)

    def _names(self) -> list[str]:
        if len(self._classes) == len(self):
            return [f"class {label}" for label in self._classes]
        return [f"problem {k}" for k in range(len(self))]

    def _worst(self) -> Certificate:
        return max(self, key=lambda c: (not c.converged, c.relative_gap))


def _in_html(found: Certificate | CertificateList) -> str:
    """One line for notebooks."""
    several = isinstance(found, CertificateList)
    of = f", sum of {len(found)} problems" if isinstance(found, CertificateList) else ""
    met = "met" if found.converged else f"not met ({found.stop_reason})"
    return html_line(
        f"certificate {met}: objective {found.primal:.6g}{of}, within {found.gap:.2g} of the "
        f"optimum ({'largest relative' if several else 'relative'} gap {found.relative_gap:.2g}); "
        f"solver {found.solver}, {found.n_iter} iterations, {found.seconds:.3g} s",
        MET if found.converged else UNMET,
    )


def combined(
    certificates: Sequence[Certificate], classes: Iterable[object] = ()
) -> Certificate | CertificateList:
    """The certificate of a model: of its one problem, or of all that make it up, one a class."""
    return certificates[0] if len(certificates) == 1 else CertificateList(certificates, classes)


Number = TypeVar("Number", float, Array)
NEGATIVE_TOLERANCE = 1e-10  # objective over the negligible one, below which it is rounded zero
ROUNDING_FACTOR = 1.5  # gap over its rounding below which the gap counts as rounding


def lower_bound(primal: Number, gap: Number) -> Number:
    """``primal - gap``, less a bound on the rounding of that subtraction."""
    return primal - gap - SUM_ROUNDING * (abs(primal) + abs(gap))


@dataclass(frozen=True, eq=False)
class Gap:
    """The duality gap of a point, and what it was computed from.

    Attributes
    ----------
    point : Point
        The certified point: the given coefficients with their best intercept.
    primal, dual, gap, relative_gap, kkt_residual : float
        ``dual`` is a lower bound of the optimum and ``gap = primal - dual``;
        ``kkt_residual`` is the largest of ``violations`` and that of the intercept; see
        `proxmargin.optimality.certificates.certificate.Certificate`.
    violations : (n_features,)
        ``|v - g|`` of each feature, g the point of the subdifferential of the penalty nearest to
        ``v = -X'q`` for the dual point q before it is scaled; the largest of several outputs.
    dual_point : (n_samples, n_outputs)
        The feasible dual point of the bound.
    negligible : float
        The scale of relative gaps where the objective is zero (`Problem.negligible`).
    rounding : float
        The part of the gap that bounds the rounding of products with the data.
    is_refined : bool
        Products were compensated: the rounding cannot be reduced further.
    """

    point: Point
    primal: float
    gap: float
    kkt_residual: float
    violations: Array
    dual_point: Array
    negligible: float
    rounding: float
    is_refined: bool

    @cached_property
    def dual(self) -> float:
        """The `lower_bound` of the optimum."""
        return lower_bound(self.primal, self.gap)

    @property
    def is_finite(self) -> bool:
        """The point is finite, and the gap is not NaN; it may be infinite."""
        coef, intercept = self.point.coef, self.point.intercept
        finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
        return bool(finite) and not math.isnan(self.gap)

    @property
    def relative_gap(self) -> float:
        return self.gap / self.scale

    @property
    def numbers(self) -> Record:
        """The fields of a `Certificate` that it decides."""
        names = ("primal", "dual", "gap", "relative_gap", "kkt_residual")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def scale(self) -> float:
        """The denominator of relative gaps."""
        scale = max(abs(self.primal), abs(self.dual) if math.isfinite(self.dual) else 0.0)
        return max(scale, TINY if self.is_negative else self.negligible)

    def is_rounding(self, tol: float) -> bool:
        """Whether rounding beyond ``tol`` > 0 is most of the gap, with compensated products."""
        exceeds = 0.0 < tol * self.scale < self.rounding
        return exceeds and self.is_mostly_rounding and self.is_refined

    @property
    def is_mostly_rounding(self) -> bool:
        """Whether the rounding bound is most of the gap; false if neither is finite."""
        return self.gap < ROUNDING_FACTOR * self.rounding

    @property
    def is_negative(self) -> bool:
        """Whether the objective is below zero beyond rounding: a homogeneous loss has a margin."""
        return self.primal < -NEGATIVE_TOLERANCE * self.negligible
