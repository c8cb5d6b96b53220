"""The first promise, in exact arithmetic: no certificate is below the true distance.

Random problems whose features have scales of 24 orders of magnitude and offsets far beyond them,
with penalties down to nothing. Each is fitted to several tolerances; objectives of the published
models are computed in fifty digits, and the best of them is what each certificate is held to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    ElasticNetSVC,
    HuberizedSVC,
    LogisticRegression,
    MarginFDA,
    MarginMPM,
    MulticlassSVC,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from tests.oracles import exact

TOLERANCES = (1e-2, 1e-6, 1e-10)
SECONDS = 0.2
# of a certificate's own sums, in fifty digits nothing
ROOM = Decimal("1e-30")
QUICK = 12
MANY = 40


Objective = Callable[..., Decimal]


@dataclass(frozen=True)
class Case:
    """A model, its random parameters, its objective in fifty digits, its number of classes.

    With ``shifted`` samples have offsets, of which the objective is told.
    """

    make: Callable[..., Any]
    parameters: Callable[[np.random.Generator], dict[str, Any]]
    objective: Objective
    classes: int = 2
    shifted: bool = False


def units(model: Any, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The scale of each feature; zero where it is constant, and not in the model."""
    scale = model._assemble(X, codes, None).scale
    return np.where(np.isfinite(scale), scale, 0.0)


def mean_with_net(loss: exact.Scored) -> Objective:
    """The mean loss with ``alpha`` and ``l1_ratio``."""

    def objective(
        model: Any, X: np.ndarray, codes: np.ndarray, offset: np.ndarray | None = None
    ) -> Decimal:
        l1, l2 = model.alpha * model.l1_ratio, model.alpha * (1.0 - model.l1_ratio)
        weights, scale = [1.0 / len(codes)] * len(codes), units(model, X, codes)
        terms = {"weights": weights, "l1": l1, "l2": l2, "scale": scale, "offset": offset}
        return exact.objective(X, codes, model, loss, **terms)

    return objective


def sum_with_price(loss: exact.Scored, l1: float = 0.0, l2: float = 1.0) -> Objective:
    """``C`` times the sum of losses, with a penalty of given strengths."""

    def objective(
        model: Any, X: np.ndarray, codes: np.ndarray, offset: np.ndarray | None = None
    ) -> Decimal:
        weights, scale = [model.C] * len(codes), units(model, X, codes)
        terms = {"weights": weights, "l1": l1, "l2": l2, "scale": scale, "offset": offset}
        return exact.objective(X, codes, model, loss, **terms)

    return objective


def of_direction(loss: Callable[[list[Decimal], np.ndarray, Any], Decimal]) -> Objective:
    """The least of ``t loss(w) + t^2 |w|^2 / 2`` over t: of homogeneous losses."""

    def objective(model: Any, X: np.ndarray, codes: np.ndarray) -> Decimal:
        with localcontext() as context:
            context.prec = exact.DIGITS
            lengths = exact.sizes(model, units(model, X, codes))
            square = sum((w * w for w in lengths), Decimal(0))
            value = loss([z for (z,) in exact.scores(X, model)], codes, model)
            return -value * value / (2 * square) if value < 0 else Decimal(0)

    return objective


def tail(z: list[Decimal], codes: np.ndarray, model: Any) -> Decimal:
    margins = [value if code else -value for value, code in zip(z, codes, strict=True)]
    return exact.tail_mean(margins, model.nu_)


def fisher(z: list[Decimal], codes: np.ndarray, model: Any) -> Decimal:
    return exact.separation(z, codes, model.kappa_, pooled=True)


def probability(z: list[Decimal], codes: np.ndarray, model: Any) -> Decimal:
    return exact.separation(z, codes, model.kappa_, pooled=False)


def distances(model: Any, X: np.ndarray, codes: np.ndarray) -> Decimal:
    """The sum of losses of distances, which is that of a model in the unit ball."""
    loss = exact.distance_weighted(float(np.sqrt(len(codes) * model.nu_)))
    terms = {"weights": [1.0] * len(codes), "l1": 0.0, "l2": 0.0}
    square = sum((w * w for w in exact.sizes(model, units(model, X, codes))), Decimal(0))
    assert square <= 1 + Decimal("1e-11")
    return exact.objective(X, codes, model, exact.of_margin(loss), **terms)


def priced(rng: np.random.Generator) -> dict[str, Any]:
    return {"C": 10.0 ** rng.uniform(-3, 9)}


def netted(rng: np.random.Generator) -> dict[str, Any]:
    ratio = float(rng.choice([0.0, 0.5, 1.0, rng.random()]))
    return {"alpha": 10.0 ** rng.uniform(-9, 0), "l1_ratio": ratio}


def shared(name: str) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda rng: {name: str(rng.choice(["0.1max", "0.5max", "0.9max"]))}


def of_classes(loss: str, penalty: str) -> Callable[..., Any]:
    return lambda **parameters: MulticlassSVC(loss=loss, penalty=penalty, **parameters)


def margin(loss: exact.Margin) -> exact.Scored:
    return exact.of_margin(loss)


wrong_huberized = exact.of_wrong_classes(exact.huberized(1.0))
CASES = {
    "hinge, ridge": Case(SVC, priced, sum_with_price(margin(exact.hinge))),
    "squared hinge, ridge": Case(L2SVC, priced, sum_with_price(margin(exact.squared_hinge))),
    "logistic, ridge": Case(LogisticRegression, priced, sum_with_price(margin(exact.logistic))),
    "hinge": Case(ElasticNetSVC, netted, mean_with_net(margin(exact.hinge))),
    "huberized": Case(HuberizedSVC, netted, mean_with_net(margin(exact.huberized(1.0)))),
    "squared hinge": Case(SquaredHingeSVC, netted, mean_with_net(margin(exact.squared_hinge))),
    "logistic": Case(SparseLogisticRegression, netted, mean_with_net(margin(exact.logistic))),
    "distance weighted": Case(DWD, lambda rng: {}, distances),
    "tail mean": Case(NuSVC, shared("nu"), of_direction(tail)),
    "fisher": Case(MarginFDA, shared("kappa"), of_direction(fisher)),
    "probability": Case(MarginMPM, shared("kappa"), of_direction(probability)),
    "wrong classes": Case(HuberizedSVC, netted, mean_with_net(wrong_huberized), 3),
    "multinomial": Case(SparseLogisticRegression, netted, mean_with_net(exact.multinomial(0.0)), 3),
    "crammer singer": Case(
        of_classes("hinge", "l2"), priced, sum_with_price(exact.crammer_singer), 3
    ),
    "crammer singer, l1": Case(
        of_classes("hinge", "l1"), priced, sum_with_price(exact.crammer_singer, 1.0, 0.0), 3
    ),
    "pairs": Case(
        of_classes("squared_hinge", "l2"), priced, sum_with_price(exact.pairwise_squared_hinge), 3
    ),
    "multinomial with a margin": Case(
        of_classes("logistic", "l2"), priced, sum_with_price(exact.multinomial(1.0)), 3
    ),
    "lee": Case(
        of_classes("lee", "l2"), priced, sum_with_price(exact.of_wrong_classes(exact.hinge)), 3
    ),
}
SHIFTED = ("hinge, ridge", "squared hinge, ridge", "logistic, ridge")
SHIFTED += ("hinge", "huberized", "squared hinge", "logistic")
CASES |= {f"{name}, with an offset": replace(CASES[name], shifted=True) for name in SHIFTED}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def random_data(rng: np.random.Generator, classes: int) -> tuple[np.ndarray, np.ndarray]:
    n, p = int(rng.integers(2 * classes, 16)), int(rng.integers(1, 10))
    X, codes = rng.standard_normal((n, p)), np.arange(n) % classes
    X[:, 0] += rng.choice([0.3, 3.0]) * codes
    kind = rng.integers(5)
    if kind == 0:
        X = X * 10.0 ** rng.uniform(-12, 12, p)
    elif kind == 1:
        X = X * 10.0 ** rng.uniform(-12, 12)
    elif kind == 2:
        X = X + 10.0 ** rng.uniform(0, 10)
    elif kind == 3:
        X = np.round(np.exp(rng.normal(7, 2, (n, p))))
        X[:, 0] *= 1 + codes
    return X, codes


def random_offset(rng: np.random.Generator, n: int) -> np.ndarray:
    """Of any size, with a mean of any size."""
    return 10.0 ** rng.uniform(-3, 6) * (rng.standard_normal(n) + rng.choice([0.0, 1e3]))


def violation(case: Case, seed: int) -> str | None:
    """What is wrong with the certificates of one random problem; None if nothing is.

    A ``kappa`` that is a share of the largest is estimated within the time limit: fits whose
    ``kappa_`` differs from that of the last one have other objectives.
    """
    rng = np.random.default_rng(seed)
    X, codes = random_data(rng, case.classes)
    parameters = {**case.parameters(rng), "standardize": bool(rng.random() < 0.3)}
    given = {"offset": random_offset(rng, len(codes))} if case.shifted else {}
    fits = []
    for tol in TOLERANCES:
        model = case.make(tol=tol, time_limit=SECONDS, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, codes, **given)
        fits.append(model)
    kappa = getattr(fits[-1], "kappa_", None)
    alike = [model for model in fits if getattr(model, "kappa_", None) == kappa]
    values = [case.objective(model, X, codes, **given) for model in alike]
    best = min(values)
    for value, certificate in zip(values, (model.certificate_ for model in alike), strict=True):
        # shares of samples are 1 / n rounded, and so is the objective itself
        room = ROOM + abs(value) * Decimal("4e-16")
        if not np.isfinite(certificate.gap):
            continue
        if value - best > Decimal(certificate.gap) + room:
            return f"{parameters}: {value - best:.3e} above the best, claimed {certificate.gap:.3e}"
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
    found = {seed: violation(case, seed) for seed in range(QUICK, MANY)}
    assert {seed: fault for seed, fault in found.items() if fault} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (HuberizedSVC, {}),
        (ElasticNetSVC, {}),
        (SquaredHingeSVC, {"l1_ratio": 1.0}),
        (SVC, {}),
        (LogisticRegression, {}),
    ],
)
def test_optimal_intercepts_are_as_small_as_certificates_assume(make: Any, parameters: Any) -> None:
    """The assumption of `certify` about the intercept that its dual point cannot see."""
    compared = 0
    for seed in range(MANY):
        rng = np.random.default_rng(seed)
        X, codes = random_data(rng, 2)
        strength = 10.0 ** rng.uniform(-4, 1)
        given = {"C": strength} if make in (SVC, LogisticRegression) else {"alpha": strength / 10}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            loose, best = (
                make(tol=tol, time_limit=SECONDS, **given, **parameters).fit(X, codes)
                for tol in (1e-6, 1e-9)
            )
        if loose.certificate_.converged and best.certificate_.converged:
            sizes = np.abs(X) @ np.abs(loose.coef_[0]) + abs(loose.intercept_[0])
            assert abs(best.intercept_[0]) <= 1.0 + sizes.max()
            compared += 1
    assert compared > MANY // 2
