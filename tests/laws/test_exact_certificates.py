"""The first promise, in exact arithmetic: no certificate is below the true distance.

Random problems whose features have scales of 24 orders of magnitude and offsets far beyond them,
with penalties down to nothing. Each is fitted to several tolerances; objectives of the published
models are computed in fifty digits, and the best of them is what each certificate is held to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    L2SVC,
    SVC,
    ElasticNetSVC,
    HuberizedSVC,
    LogisticRegression,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from tests.oracles import exact

TOLERANCES = (1e-2, 1e-6, 1e-10)
SECONDS = 0.5
# of a certificate's own sums, in fifty digits nothing
ROOM = Decimal("1e-30")
QUICK = 12
MANY = 2000


@dataclass(frozen=True)
class Case:
    """A model, and the loss that its objective is the sum of."""

    make: Callable[..., Any]
    loss: exact.Margin
    is_sum: bool
    """The objective is ``C sum loss + |w|^2 / 2``, not a mean with ``alpha`` and ``l1_ratio``."""


CASES = {
    "hinge, ridge": Case(SVC, exact.hinge, True),
    "squared hinge, ridge": Case(L2SVC, exact.squared_hinge, True),
    "logistic, ridge": Case(LogisticRegression, exact.logistic, True),
    "hinge": Case(ElasticNetSVC, exact.hinge, False),
    "huberized hinge": Case(HuberizedSVC, exact.huberized(1.0), False),
    "squared hinge": Case(SquaredHingeSVC, exact.squared_hinge, False),
    "logistic": Case(SparseLogisticRegression, exact.logistic, False),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def random_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n, p = int(rng.integers(4, 16)), int(rng.integers(1, 10))
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + rng.choice([0.1, 1.0]) * rng.standard_normal(n) > 0, 1, -1)
    y[:2] = [-1, 1]
    kind = rng.integers(5)
    if kind == 0:
        X = X * 10.0 ** rng.uniform(-12, 12, p)
    elif kind == 1:
        X = X * 10.0 ** rng.uniform(-12, 12)
    elif kind == 2:
        X = X + 10.0 ** rng.uniform(0, 10)
    elif kind == 3:
        X = np.round(np.exp(rng.normal(7, 2, (n, p))))
    return X, y


def random_parameters(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    standardize = bool(rng.random() < 0.3)
    if case.is_sum:
        return {"C": 10.0 ** rng.uniform(-3, 9), "standardize": standardize}
    ratio = float(rng.choice([0.0, 0.5, 1.0, rng.random()]))
    return {"alpha": 10.0 ** rng.uniform(-9, 0), "l1_ratio": ratio, "standardize": standardize}


def exact_objective(case: Case, model: Any, X: np.ndarray, y: np.ndarray) -> Decimal:
    n, scale = len(y), model._assemble(X, y, None).scale
    scale = np.where(np.isfinite(scale), scale, 0.0)
    if case.is_sum:
        terms = {"weights": [model.C] * n, "l1": 0.0, "l2": 1.0}
    else:
        l1, l2 = model.alpha * model.l1_ratio, model.alpha * (1.0 - model.l1_ratio)
        terms = {"weights": [1.0 / n] * n, "l1": l1, "l2": l2}
    return exact.objective(X, y, model, case.loss, scale=scale, **terms)


def violation(case: Case, seed: int) -> str | None:
    """What is wrong with the certificates of one random problem; None if nothing is."""
    rng = np.random.default_rng(seed)
    X, y = random_data(rng)
    parameters = random_parameters(case, rng)
    fits = []
    for tol in TOLERANCES:
        model = case.make(tol=tol, time_limit=SECONDS, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        fits.append((exact_objective(case, model, X, y), model.certificate_))
    best = min(value for value, _ in fits)
    for value, certificate in fits:
        excess = value - best
        # shares of samples are 1 / n rounded, and so is the objective itself
        room = ROOM + abs(value) * Decimal("4e-16")
        if not np.isfinite(certificate.gap):
            continue
        if excess > Decimal(certificate.gap) + room:
            return f"{parameters}: {excess:.3e} above the best, claimed {certificate.gap:.3e}"
        if Decimal(certificate.dual) > best + room:
            return f"{parameters}: a dual of {certificate.dual!r} above the best, {best:.20g}"
    return None


@every_case
@pytest.mark.parametrize("seed", range(QUICK))
@pytest.mark.sampled(6)
def test_no_certificate_is_below_the_exact_distance(case: Case, seed: int) -> None:
    assert violation(case, seed) is None


@pytest.mark.slow
@every_case
def test_no_certificate_of_many_is_below_the_exact_distance(case: Case) -> None:
    found = {seed: violation(case, seed) for seed in range(QUICK, 60)}
    assert {seed: fault for seed, fault in found.items() if fault} == {}
