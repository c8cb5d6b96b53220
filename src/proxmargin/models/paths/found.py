"""The solutions of a path in sparse form, and the coefficients of all models in a CSR matrix."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from proxmargin.functions.rows import live_rows
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.optimality.certificates.certificate import (
    Certificate,
    CertificateList,
    Gap,
    combined,
)
from proxmargin.optimality.problem import Point
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.types import Array, Record
from proxmargin.solvers.loop.report import Solution, Status

Index = NDArray[np.integer]

MOST_NARROW = np.iinfo(np.int32).max  # SciPy reads wider indices for whether they fit this


@dataclass(frozen=True)
class _Made:
    """Certificates by the number of their strength, of a type that files of skops name."""

    certificates: Sequence[Certificate]

    def __call__(self, number: int) -> Certificate:
        return self.certificates[number]


@dataclass(frozen=True, eq=False)
class Found:
    """Solutions of one problem at consecutive strengths."""

    features: Index  # (n_nonzero,); with a nonzero coefficient, strength by strength
    coef: Array  # (n_nonzero, n_outputs)
    # (n_strengths + 1,); start of each strength in these two, and the end of the last one
    starts: Index
    intercepts: Array  # (n_strengths, n_outputs)
    # (n_strengths,); objectives of the problem, of which those in certificates may be a multiple
    primal: Array
    # (n_strengths,); whether the fit met its tolerance, or the rule of a paper if that ends fits
    met: NDArray[np.bool_]
    # makes the certificate of a strength by its number: few of hundreds are ever read
    certify: Callable[[int], Certificate]
    # (n_strengths, n_samples); of the samples in the coefficients, where the model publishes them
    weights: Array | None = None

    @property
    def count(self) -> int:
        """The number of strengths."""
        return self.primal.size

    @classmethod
    def of(cls, solution: Solution, weights: Array | None = None) -> Found:
        """The solution of a single fit."""
        coef, intercept = solution.point.coef, solution.point.intercept
        features = live_rows(coef)
        certificate = solution.certificate
        return cls(
            features,
            coef[features],
            np.array([0, features.size]),
            intercept[None, :],
            np.array([solution.gap.primal]),
            np.array([certificate.converged or solution.status is Status.RULE_MET]),
            lambda _: certificate,
            None if weights is None else weights[None, :],
        )

    def part(self, first: int, last: int) -> Found:
        """The solutions of the strengths ``first`` to ``last - 1``."""
        if (first, last) == (0, self.count):
            return self
        inside, strengths = slice(self.starts[first], self.starts[last]), slice(first, last)
        return Found(
            self.features[inside],
            self.coef[inside],
            self.starts[first : last + 1] - self.starts[first],
            self.intercepts[strengths],
            self.primal[strengths],
            self.met[strengths],
            lambda number: self.certify(first + number),
            None if self.weights is None else self.weights[strengths],
        )

    @property
    def certificates_alone(self) -> Found:
        """The same without solutions, whose certificates have been made."""
        made = [self.certify(number) for number in range(self.count)]
        bare = replace(self, features=self.features[:0], coef=self.coef[:0], weights=None)
        return replace(bare, certify=_Made(made))

    def point(self, number: int, n_features: int) -> Point:
        """The solution of one strength with dense coefficients; -1 is the last strength."""
        number = range(self.count)[number]
        own = slice(self.starts[number], self.starts[number + 1])
        coef = np.zeros((n_features, self.coef.shape[1]))
        coef[self.features[own]] = self.coef[own]
        return Point(coef, self.intercepts[number])


def solution_of(
    gap: Gap, *, steps: int, passes: float, seconds: float, solver: str, because: str
) -> Solution:
    """The solution at which a path has met its tolerance."""
    certificate = Certificate(
        **gap.numbers,
        converged=True,
        stop_reason=Status.CONVERGED.value,
        n_iter=steps,
        n_passes=passes,
        seconds=seconds,
        solver=solver,
        because=because,
    )
    return Solution(gap.point, gap, Status.CONVERGED, certificate, None)


class Certificates(Sequence[Certificate | CertificateList]):
    """The certificates of the models of a path, each made when it is read. ``parts``: the solutions
    of each problem that makes up a model, for some strengths, the same for all problems.
    """

    def __init__(self, parts: Sequence[Sequence[Found]]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(part[0].count for part in self.parts)

    @overload
    def __getitem__(self, index: int) -> Certificate | CertificateList: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate | CertificateList]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        number, parts = range(len(self))[index], iter(self.parts)
        part = next(parts)
        while number >= part[0].count:
            number, part = number - part[0].count, next(parts)
        return combined([found.certify(number) for found in part])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} certificates, {len(self.unmet)} with a tolerance that was not met>"

    def __getstate__(self) -> Record:
        """Plain values alone, for files: all certificates, and of the solutions what tells them."""
        return {"parts": [[found.certificates_alone for found in part] for part in self.parts]}

    @property
    def unmet(self) -> list[Certificate | CertificateList]:
        """Certificates of models with a solution that stopped before it met its tolerance."""
        met = [np.all([found.met for found in part], axis=0) for part in self.parts]
        return [self[k] for k in np.flatnonzero(~np.concatenate(met or [[True]])).tolist()]


def published(
    template: MarginEstimator, assembly: Assembly, parts: Sequence[Sequence[Found]]
) -> tuple[sparse.csr_array, Array]:
    """Stacked coefficients of all models, (n_models * n_rows, n_features), and their intercepts,
    (n_models, n_rows), in the units of the data. ``parts``: as of `Certificates`.
    """
    n_features = assembly.scale.size
    if not parts:
        return sparse.csr_array((0, n_features)), np.empty((0, 1))
    used, dense, intercepts = _side_by_side(parts, n_features)
    if dense.shape[2] == 1:  # like the outputs of a single point
        points = [Point(dense[:, :, 0].T, intercepts[:, 0])]
    else:
        points = [Point(*each) for each in zip(dense, intercepts, strict=True)]
    coef, shifts = template._published(assembly, points, used)
    stacked = _compressed(coef, used, n_features)
    return stacked, shifts.reshape(sum(part[0].count for part in parts), -1)


def listed(features: Index, n_features: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The features in a list, in increasing order, and the place among them of each entry."""
    is_used = np.zeros(n_features, dtype=np.bool_)
    is_used[features] = True
    used, place = np.flatnonzero(is_used), np.empty(n_features, dtype=np.intp)
    place[used] = np.arange(used.size)
    return used, place[features]


def weights_of_samples(
    assembly: Assembly, parts: Sequence[Sequence[Found]]
) -> sparse.csr_array | None:
    """The weights of the given samples in all models, (n_models * n_rows, n_samples).

    None if the models publish no such weights.
    """
    known = [[found.weights for found in part if found.weights is not None] for part in parts]
    if not any(known):
        return None
    numbers = assembly.numbers
    rows = [np.stack(part, axis=1).reshape(-1, numbers.size) for part in known]
    return _compressed(np.concatenate(rows), numbers, int(numbers[-1]) + 1)


def _compressed(values: Array, columns: Index, width: int) -> sparse.csr_array:
    """A CSR array of ``width`` columns from values in the given columns, without their zeros."""
    flat = np.flatnonzero(values != 0)
    rows, places = np.divmod(flat, max(columns.size, 1))
    starts = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=len(values)), out=starts[1:])
    index = np.int32 if max(width, flat.size) <= MOST_NARROW else np.int64
    entries = values.ravel()[flat], columns[places].astype(index), starts.astype(index)
    return sparse.csr_array(entries, shape=(len(values), width))


def _side_by_side(parts: Sequence[Sequence[Found]], n_features: int) -> tuple[Index, Array, Array]:
    """The features used by any solution, (k,), the coefficients of these, (n_solutions, k,
    n_outputs), and the intercepts, (n_solutions, n_outputs); by strength, then by problem.
    """
    each = [found for part in parts for found in part]
    features = np.concatenate([found.features for found in each])
    used, places = listed(features, n_features)
    outputs, step = each[0].coef.shape[1], len(parts[0])
    size, first = sum(found.count for found in each), 0
    owners, intercepts = [], np.empty((size, outputs))
    for part in parts:
        for number, found in enumerate(part):
            rows = np.arange(first + number, first + step * found.count, step)
            owners.append(np.repeat(rows, np.diff(found.starts)))
            intercepts[rows] = found.intercepts
        first += step * part[0].count
    coef = np.zeros((size, used.size, outputs))
    coef[np.concatenate(owners), places] = np.concatenate([found.coef for found in each])
    return used, coef, intercepts


def warn_of_unmet(
    name: str, tol: float, fits: int, unmet: Sequence[Certificate | CertificateList]
) -> None:
    """One warning for all fits that stopped before their tolerance was met, ``unmet``."""
    gaps = [gap for certificate in unmet for gap in _unmet_gaps(certificate)]
    if gaps:
        warnings.warn(
            f"{len(unmet)} of {fits} fits of {name} stopped before their tolerance was "
            f"met; the worst is certified to be within a relative gap of {max(gaps):.2e} of its "
            f"optimum (tol={tol:g})",
            ConvergenceWarning,
            stacklevel=users_level(),
        )


def unmet_of(
    certificates: Sequence[Certificate | CertificateList],
) -> list[Certificate | CertificateList]:
    """The certificates of models with a fit that should have met its gap ``tol`` but did not."""
    if isinstance(certificates, Certificates):
        return certificates.unmet
    return [certificate for certificate in certificates if _unmet_gaps(certificate)]


def _unmet_gaps(certificate: Certificate | CertificateList) -> list[float]:
    """Relative gaps of the problems that should have met the gap ``tol`` but did not."""
    each = certificate if isinstance(certificate, CertificateList) else [certificate]
    by_rule = Status.RULE_MET.value
    return [one.relative_gap for one in each if not one.converged and one.stop_reason != by_rule]
