"""What came of a random fit: how it ended, and what is wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tests.fuzz.cases import Case, Data
from tests.oracles import exact
from tests.oracles.crammer_singer import crammer_singer_optimum
from tests.oracles.models import binary_optimum

__all__ = ["Ending", "Outcome", "outcome"]

# a sentence says what was given and what would work; a bare assertion of NumPy's says neither
SHORTEST_SENTENCE = 20
# the objective of an interior point is this good, relative to the loss of zero scores
CLARABELS = 1e-7
LOSSES = {
    "SVC": exact.hinge,
    "L2SVC": exact.squared_hinge,
    "LogisticRegression": exact.logistic,
    "ElasticNetSVC": exact.hinge,
    "SquaredHingeSVC": exact.squared_hinge,
    "SparseLogisticRegression": exact.logistic,
}
NAMES = {
    "ElasticNetSVC": "hinge",
    "SquaredHingeSVC": "squared_hinge",
    "SparseLogisticRegression": "logistic",
    "HuberizedSVC": "huberized_hinge",
    "SVC": "hinge",
    "L2SVC": "squared_hinge",
    "LogisticRegression": "logistic",
}


class Ending(Enum):
    """How a fit may end."""

    CONVERGED = "converged"
    SHORT = "ended short, with one warning that says so"
    REFUSED = "refused in a sentence"


class Outcome(NamedTuple):
    """How a fit ended, what it was compared with, and its faults."""

    ending: Ending
    compared: tuple[str, ...]
    faults: tuple[str, ...]


def outcome(case: Case) -> Outcome:
    """Fit a case and look at everything that can be wrong with the result."""
    data, model = case.data(), case.model()
    before = data.dense.copy()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model.fit(data.X, data.y, sample_weight=data.weights)
        except ValueError as error:
            short = len(str(error)) < SHORTEST_SENTENCE
            return Outcome(Ending.REFUSED, (), (f"refused with {error!s}",) if short else ())
    faults = list(_faults_of_warnings(said, model))
    faults += _faults_of_model(case, data, model)
    if not np.array_equal(before, case.data().dense, equal_nan=True):
        faults.append("the data were changed")
    compared = []
    for name, compare in (("exact objective", _exactly), ("clarabel", _independently)):
        found = compare(case, data, model)
        if found is not None:
            compared.append(name)
            faults += found
    ending = Ending.CONVERGED if _certificate(model).converged else Ending.SHORT
    return Outcome(ending, tuple(compared), tuple(faults))


def _certificate(model: Any) -> Any:
    return model.certificate_


def _faults_of_warnings(said: list[Any], model: Any) -> Iterator[str]:
    short = [w for w in said if issubclass(w.category, ConvergenceWarning)]
    others = [w for w in said if not issubclass(w.category, (ConvergenceWarning, UserWarning))]
    yield from (f"a warning of another kind: {w.message}" for w in others)
    if len(short) > 1:
        yield f"{len(short)} warnings of one fit"
    if not _certificate(model).converged and not short:
        yield "ended short in silence"


def _faults_of_model(case: Case, data: Data, model: Any) -> Iterator[str]:
    for name in ("coef_", "intercept_", "dual_coef_"):
        if hasattr(model, name) and not np.isfinite(getattr(model, name)).all():
            yield f"{name} is not finite"
    certificate = _certificate(model)
    tol = dict(case.parameters)["tol"]
    if not certificate.gap >= 0:
        yield f"a gap of {certificate.gap}"
    if certificate.converged and not certificate.relative_gap <= tol:
        yield f"converged at a relative gap of {certificate.relative_gap}"
    if certificate.dual > certificate.primal + 1e-12 * abs(certificate.primal):
        yield f"a dual {certificate.dual!r} above the primal {certificate.primal!r}"
    scores = model.decision_function(data.X)
    if not np.isfinite(scores).all():
        yield "scores are not finite"
    predicted = model.predict(data.X)
    if predicted.shape != data.y.shape or not np.isin(predicted, data.y).all():
        yield "predictions are not labels"


def _weights(case: Case, data: Data) -> np.ndarray:
    """Sample weights times class weights."""
    weights = np.ones(case.n) if data.weights is None else data.weights.copy()
    if dict(case.parameters)["class_weight"] == "balanced":
        classes = np.unique(data.y[weights > 0])
        total = weights.sum()
        for one in classes:
            weights[data.y == one] *= total / (classes.size * weights[data.y == one].sum())
    return weights


def _strengths(case: Case, total: float) -> tuple[float, float]:
    """l1 and l2 of the mean of losses with an elastic net, or of the sum with ``C``."""
    known = dict(case.parameters)
    if "C" in known:
        return 0.0, 1.0 / (known["C"] * total)
    return known["alpha"] * known["l1_ratio"], known["alpha"] * (1.0 - known["l1_ratio"])


def _is_linear_binary(case: Case, names: Any) -> bool:
    kernel = dict(case.parameters).get("kernel", "linear")
    return case.estimator in names and case.classes == 2 and kernel == "linear"


def _exactly(case: Case, data: Data, model: Any) -> list[str] | None:
    """The objective in fifty digits against what the certificate says it is."""
    known = dict(case.parameters)
    if not _is_linear_binary(case, {*LOSSES, "HuberizedSVC"}) or known.get("intercept_ridge"):
        return None
    loss = LOSSES.get(case.estimator) or exact.huberized(known["delta"])
    weights, codes = _weights(case, data), (data.y == np.unique(data.y)[1]).astype(int)
    l1, l2 = _strengths(case, weights.sum())
    scale = model._assemble(data.X, data.y, data.weights).scale
    scale = np.where(np.isfinite(scale), scale, 0.0)
    shares = weights / weights.sum()
    terms = {"weights": shares, "l1": l1, "l2": l2, "scale": scale}
    value = exact.objective(data.dense, codes, model, exact.of_margin(loss), **terms)
    certificate, factor = _certificate(model), known.get("C", 1.0 / weights.sum()) * weights.sum()
    value *= Decimal(float(factor))
    room = Decimal(certificate.gap) + abs(value) * Decimal("1e-13")
    if abs(value - Decimal(certificate.primal)) > room:
        return [f"primal {certificate.primal!r} of an objective of {value:.17g}"]
    if Decimal(certificate.dual) > value + abs(value) * Decimal("1e-15"):
        return [f"dual {certificate.dual!r} above an objective of {value:.17g}"]
    return []


def _independently(case: Case, data: Data, model: Any) -> list[str] | None:
    """The optimum of an interior-point solver against the bounds of the certificate."""
    known = dict(case.parameters)
    if not case.is_tame or known["standardize"]:
        return None
    weights = _weights(case, data)
    l1, l2 = None, None
    if _is_linear_binary(case, NAMES):
        l1, l2 = _strengths(case, weights.sum())
        if max(l1, l2) < 1e-6:
            return None  # beyond what an interior point resolves
        best = binary_optimum(
            data.dense,
            np.where(data.y == np.unique(data.y)[1], 1.0, -1.0),
            fit_intercept=known["fit_intercept"],
            loss=NAMES[case.estimator],
            alpha=l1 + l2,
            l1_ratio=l1 / (l1 + l2),
            weights=weights,
            delta=known.get("delta", 1.0),
            intercept_ridge=known.get("intercept_ridge", 0.0) * known["fit_intercept"],
        ).value
    elif case.estimator == "MulticlassSVC" and _is_crammer_singer(known):
        strength = 1.0 / (known["C"] * weights.sum())
        if strength < 1e-6:
            return None
        best = crammer_singer_optimum(
            data.dense,
            np.unique(data.y, return_inverse=True)[1],
            l1=strength * (known["penalty"] == "l1"),
            l2=strength * (known["penalty"] == "l2"),
            weights=weights,
            fit_intercept=known["fit_intercept"],
        )
    else:
        return None
    factor = known.get("C", 1.0 / weights.sum()) * weights.sum()
    certificate, room = _certificate(model), CLARABELS * factor
    if certificate.dual > factor * best + room:
        return [f"dual {certificate.dual!r} above the optimum {factor * best!r}"]
    if certificate.primal - factor * best > certificate.gap + room:
        return [f"{certificate.primal - factor * best:.3e} above, claimed {certificate.gap:.3e}"]
    return []


def _is_crammer_singer(known: dict[str, Any]) -> bool:
    return known["loss"] == "hinge" and known["penalty"] in ("l1", "l2")
