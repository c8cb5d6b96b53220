"""What a path found: solutions with the features that they have, and all of them in one matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.certificates.certificate import Certificate, CertificateList
from proxmargin.estimators.assembly import Assembly, certificate_of
from proxmargin.estimators.base import MarginEstimator
from proxmargin.loop.outcome import Solution, Status
from proxmargin.problem import Point
from proxmargin.rows import live_rows

__all__ = ["Certificates", "Found", "published", "weights_of_samples"]

Array = NDArray[np.float64]
Index = NDArray[np.integer]


class Found(NamedTuple):
    """The solution of one problem at one strength.

    Attributes
    ----------
    features : (k,) integers
        Those with a coefficient.
    coef : (k, n_outputs)
    intercept : (n_outputs,)
    primal : float
        The objective of the problem, which that of the certificate may be a multiple of.
    certify : callable
        Makes the certificate: of the hundreds that a path has few are read.
    is_met : bool
        Whether what was asked for was reached, or nothing can be.
    weights : (n_samples,), optional
        Of the samples in the coefficients, where the model publishes them.
    """

    features: Index
    coef: Array
    intercept: Array
    primal: float
    certify: Callable[[], Certificate]
    is_met: bool
    weights: Array | None = None

    @property
    def certificate(self) -> Certificate:
        return self.certify()

    @classmethod
    def of(cls, solution: Solution, weights: Array | None = None) -> Found:
        coef, intercept = solution.point.coef, solution.point.intercept
        features = live_rows(coef)
        certificate = solution.certificate
        return cls(
            features,
            coef[features],
            intercept,
            solution.gap.primal,
            lambda: certificate,
            certificate.converged or solution.status is Status.SETTLED,
            weights,
        )

    def point(self, n_features: int) -> Point:
        """The solution with all of its coefficients."""
        coef = np.zeros((n_features, self.coef.shape[1]))
        coef[self.features] = self.coef
        return Point(coef, self.intercept)


class Certificates(Sequence[Certificate | CertificateList]):
    """Those of models, each made when it is read.

    Parameters
    ----------
    models : sequence of the solutions that make up a model
    """

    def __init__(self, models: Sequence[Sequence[Found]]) -> None:
        self._models = models
        self._made: dict[int, Certificate | CertificateList] = {}

    def __len__(self) -> int:
        return len(self._models)

    @overload
    def __getitem__(self, index: int) -> Certificate | CertificateList: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate | CertificateList]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        k = range(len(self))[index]
        if k not in self._made:
            self._made[k] = certificate_of(self._models[k])
        return self._made[k]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} certificates, {len(self.unmet)} with a tolerance that was not met>"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    @property
    def unmet(self) -> list[Certificate | CertificateList]:
        """Those with a solution that stopped before its tolerance was met."""
        short = {k for k, model in enumerate(self._models) for found in model if not found.is_met}
        return [self[k] for k in sorted(short)]


def published(
    template: MarginEstimator, assembly: Assembly, models: Sequence[Sequence[Found]]
) -> tuple[sparse.csr_array, Array]:
    """Coefficients of all models below each other, and their intercepts, in the units of the data.

    Parameters
    ----------
    models : sequence of the solutions that make up a model

    Returns
    -------
    coef : (n_models * n_rows, n_features) CSR array
    intercepts : (n_models, n_rows)
    """
    n_features = assembly.scale.size
    if not models:
        return sparse.csr_array((0, n_features)), np.empty((0, 1))
    each = [found for model in models for found in model]
    used, dense = _side_by_side(each, n_features)
    if dense.shape[2] == 1:  # like the outputs of a single point
        points = [Point(dense[:, :, 0].T, np.concatenate([found.intercept for found in each]))]
    else:
        points = [Point(coef, found.intercept) for coef, found in zip(dense, each, strict=True)]
    coef, intercepts = template._published(assembly, points, used)
    return _compressed(coef, used, n_features), intercepts.reshape(len(models), -1)


def weights_of_samples(
    assembly: Assembly, models: Sequence[Sequence[Found]]
) -> sparse.csr_array | None:
    """The weights of the given samples in all models, (n_models * n_rows, n_samples).

    None of models that publish none.
    """
    each = [found.weights for model in models for found in model if found.weights is not None]
    return _compressed(np.array(each), assembly.numbers, assembly.numbers[-1] + 1) if each else None


def _compressed(values: Array, columns: Index, width: int) -> sparse.csr_array:
    """What is not zero of the values in these columns."""
    rows, places = np.nonzero(values)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(values)))])
    parts = values[rows, places], columns[places], starts
    return sparse.csr_array(parts, shape=(len(values), width))


def _side_by_side(each: Sequence[Found], n_features: int) -> tuple[Index, Array]:
    """The features that any of them has, and the coefficients of these, (n, k, n_outputs)."""
    features = np.concatenate([found.features for found in each])
    place = np.zeros(n_features, dtype=np.intp)
    place[features] = 1
    used = np.flatnonzero(place)
    place[used] = np.arange(used.size)
    dense = np.zeros((len(each), used.size, each[0].coef.shape[1]))
    owner = np.repeat(np.arange(len(each)), [found.features.size for found in each])
    dense[owner, place[features]] = np.concatenate([found.coef for found in each])
    return used, dense
