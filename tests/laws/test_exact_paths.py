"""The same promise of whole paths: no certificate of theirs is below the true distance.

Of random problems objectives in fifty digits, of larger ones those of an independent formula.
"""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from benchmarks import objective
from proxmargin import HuberizedSVC, SparseLogisticRegression, SquaredHingeSVC, margin_path
from proxmargin.models.paths.chord_path import NAME
from tests.laws.test_exact_certificates import CASES, ROOM, random_data

KINDS = ("huberized", "squared hinge", "logistic")
FORMS = (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix)
LOSSES = {
    HuberizedSVC: objective.HuberizedHinge(),
    SquaredHingeSVC: objective.SquaredHinge(),
    SparseLogisticRegression: objective.Logistic(),
}
RIDGES = ("hinge, ridge", "squared hinge, ridge", "logistic, ridge")
every_kind = pytest.mark.parametrize("kind", [*KINDS, *RIDGES])


def data_of(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random data; for a ridge alone with more features than samples."""
    X, codes = random_data(rng, 2)
    if kind in RIDGES:
        more = X[:, :1].std() * rng.standard_normal((len(X), 16))
        X = np.hstack([X, more])
    return X, codes


def violation(kind: str, seed: int) -> str | None:
    """What is wrong with the certificates of one random path; None if nothing is."""
    rng, case = np.random.default_rng(seed), CASES[kind]
    X, codes = data_of(kind, rng)
    mixed = {} if kind in RIDGES else {"l1_ratio": float(rng.choice([1.0, 0.5]))}
    settings: dict[str, Any] = {
        **mixed,
        "standardize": bool(rng.random() < 0.4),
        "fit_intercept": bool(rng.random() < 0.8),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = case.make(tol=float(rng.choice([1e-3, 1e-6])), **settings)
        form = FORMS[rng.integers(len(FORMS))]
        path = margin_path(model, form(X), codes, n_alphas=5, eps=0.1)
        fine = case.make(tol=1e-10, time_limit=0.5, **settings)
        for k, certificate in enumerate(path.certificates):
            strength = {path.strength.name: float(path.strengths[k])}
            single = fine.set_params(**strength).fit(X, codes)
            value, other = (case.objective(each, X, codes) for each in (path.model(k), single))
            best, room = min(value, other), ROOM + abs(value) * Decimal("4e-16")
            if not np.isfinite(certificate.gap):
                continue
            if value - best > Decimal(certificate.gap) + room:
                return f"{settings}: {value - best:.3e} above, claimed {certificate.gap:.3e}"
            if Decimal(certificate.dual) > best + room:
                return f"{settings}: a dual of {certificate.dual!r} above the best, {best:.20g}"
    return None


@every_kind
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(3)
def test_no_certificate_of_a_path_is_below_the_exact_distance(kind: str, seed: int) -> None:
    assert violation(kind, seed) is None


@pytest.mark.slow
@every_kind
def test_no_certificate_of_many_paths_is_below_the_exact_distance(kind: str) -> None:
    found = {seed: violation(kind, seed) for seed in range(6, 40)}
    assert {seed: fault for seed, fault in found.items() if fault} == {}


SHAPES = {
    "wide": lambda rng: rng.standard_normal((50, 800)),
    "wide, far": lambda rng: rng.standard_normal((50, 300)) + 1e6 * rng.random(300),
    "tall": lambda rng: rng.standard_normal((900, 15)) * np.logspace(-4, 4, 15),
    "sparse": lambda rng: sp.random_array((300, 2500), density=0.02, format="csc", rng=rng),
}


@pytest.mark.parametrize("estimator", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sampled(3)
def test_an_independent_formula_confirms_the_gaps_of_larger_paths(
    estimator: Any, shape: str
) -> None:
    rng = np.random.default_rng(4)
    X = SHAPES[shape](rng)
    first = np.asarray(X[:, [0]].todense() if sp.issparse(X) else X[:, [0]]).ravel()
    noisy = first - first.mean() + first.std() * rng.standard_normal(first.size)
    path = margin_path(estimator(l1_ratio=1.0), X, noisy > 0, n_alphas=12, eps=0.05)
    assert {one.solver for one in path.certificates} == {NAME}
    labels = np.where(noisy > 0, 1.0, -1.0)
    bare = objective.Problem(X, labels, LOSSES[estimator], 1.0, 0.0)
    for k, certificate in enumerate(path.certificates):
        problem = bare.with_strength(float(path.alphas[k]), 1.0)
        coef, intercept = path.model(k).coef_[0], float(path.intercepts[k, 0])
        assert problem.primal(coef, intercept) == pytest.approx(certificate.primal, rel=1e-9)
        assert objective.relative_gap(problem, coef, intercept) <= 10.0 * 1e-6
