"""Certificates of kernel models whose features have large means, in fifty digits.

Each model is fitted to the same numbers in every layout; objectives of the published weights are
computed from the published means and scales. No certificate is below the distance from the best of
them, and published scores are those of the exact kernel.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from proxmargin import DWD, L2SVC, SVC, LogisticRegression, NuSVC
from proxmargin.data.designs import as_design, moments
from proxmargin.data.kernels import Kernel, Linear, Polynomial, Rbf, Sigmoid
from tests.oracles import exact

TOL = 1e-10
GAMMA = 0.25
# of a certificate's own sums, over the objective
ROOM = Decimal("4e-16")
# largest error of a published score, over the sum of absolute terms
SCORE_ERROR = Decimal("1e-9")

digits = np.vectorize(exact.exact, otypes=[object])
exponential = np.vectorize(Decimal.exp, otypes=[object])


def gaussian(left: Any, right: Any) -> np.ndarray:
    """A kernel as a user writes one, of dense samples."""
    apart = np.asarray(left, dtype=float)[:, None] - np.asarray(right, dtype=float)
    return np.exp(-GAMMA * np.square(apart).sum(axis=2))


def exact_gaussian(Z: np.ndarray) -> np.ndarray:
    return exponential(-digits(GAMMA) * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))


RBF = ({"kernel": "rbf", "gamma": GAMMA}, exact_gaussian)
POLY = (
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": GAMMA},
    lambda Z: (digits(GAMMA) * (Z @ Z.T) + 1) ** 2,
)
LINEAR = ({"kernel": Linear()}, lambda Z: Z @ Z.T)
FUNCTION = ({"kernel": gaussian}, exact_gaussian)
KERNELS = {"rbf": RBF, "poly": POLY, "linear": LINEAR, "function": FUNCTION}

LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
}
MEANS = (1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e11, 1e12)


def samples(mean: float, dtype: type, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of a large mean, one with a few zeros, one half empty, one without; and pairs of
    samples that are close together."""
    rng = np.random.default_rng(seed)
    X = np.round(4.0 * rng.standard_normal((24, 5))) / 4.0
    y = (X[:, 0] + X[:, 2] + rng.standard_normal(24) > 0).astype(int)
    X[:, :2] += mean
    X[:, 2] += mean * (np.arange(24) > 0)
    X[:, 3] = (X[:, 3] + mean) * (rng.random(24) < 0.5)
    X[12:16] = X[:4]
    X[12:16, 0] += 0.25
    return X.astype(dtype), y


def units(model: Any, X: np.ndarray) -> np.ndarray:
    """The samples in the units of the kernel."""
    if not model.standardize:
        return digits(X)
    return (digits(X) - digits(model.feature_centre_)) / digits(model.feature_scale_)


def weights_of(model: Any, n: int) -> np.ndarray:
    weights = np.full(n, Decimal(0))
    weights[model.support_] = digits(model.dual_coef_[0])
    return weights


def priced(loss: exact.Margin) -> Callable[..., Decimal]:
    def objective(model: Any, t: np.ndarray, square: Decimal, _: Any) -> Decimal:
        return exact.exact(model.C) * sum(loss(each) for each in t) + square / 2

    return objective


def tail_mean(model: Any, t: np.ndarray, square: Decimal, of: Any) -> Decimal:
    """The least of the objective over the multiples of a direction."""
    value = exact.tail_mean(list(t), of.nu_)
    return -value * value / (2 * square) if value < 0 else Decimal(0)


def distances(model: Any, t: np.ndarray, square: Decimal, of: Any) -> Decimal:
    loss = exact.distance_weighted(float(np.sqrt(t.size * of.nu_)))
    inside = t / max(Decimal(1), square.sqrt())
    return sum((loss(each) for each in inside), Decimal(0))


Objective = Callable[[Any, np.ndarray, Decimal, Any], Decimal]
MODELS: dict[Any, Objective] = {
    SVC: priced(exact.hinge),
    L2SVC: priced(exact.squared_hinge),
    LogisticRegression: priced(exact.logistic),
    NuSVC: tail_mean,
    DWD: distances,
}


def fits(
    make: Any, kernel: str, X: np.ndarray, y: np.ndarray, *, standardize: bool
) -> dict[str, Any]:
    """The model of each layout whose digits are not refused."""
    models = {}
    for name, form in LAYOUTS.items():
        if kernel == "function" and name.startswith("CS") and not standardize:
            continue  # it would be shown sparse samples
        model = make(tol=TOL, standardize=standardize, **KERNELS[kernel][0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            with contextlib.suppress(ValueError):
                models[name] = model.fit(form(X), y)
    return models


def faults(
    make: Any, kernel: str, mean: float, dtype: type, *, standardize: bool, seed: int = 0
) -> list[str]:
    X, y = samples(mean, dtype, seed)
    models, found = fits(make, kernel, X, y, standardize=standardize), []
    assert standardize <= (len(models) == len(LAYOUTS))
    with localcontext() as context:
        context.prec = exact.DIGITS
        for name, model in models.items():
            K = KERNELS[kernel][1](units(model, X))
            roots = np.array([each.sqrt() for each in K.diagonal()])
            values = {}
            for other, one in models.items():
                weights = weights_of(one, len(y))
                own = K @ weights
                margins = (own + exact.exact(one.intercept_[0])) * np.where(y == 1, 1, -1)
                values[other] = MODELS[make](one, margins, weights @ own, model)
            gap, value = model.certificate_.gap, values[name]
            above = value - min(values.values())
            if np.isfinite(gap) and above > Decimal(gap) + ROOM * abs(value):
                found.append(f"{name}: {above:.2e} above the best, claimed {gap:.2e}")
            weights = weights_of(model, len(y))
            scores = K @ weights + exact.exact(model.intercept_[0])
            away = abs(digits(model.decision_function(LAYOUTS[name](X))) - scores).max()
            if (
                model.certificate_.converged
                and away > SCORE_ERROR * (roots @ abs(weights)) * roots.max()
            ):
                found.append(f"{name}: scores off by {away:.2e}")
    return found


def law_cases() -> list[Any]:
    """Every model with every kernel and mean; precisions and ``standardize`` in turns."""
    cases = []
    for number, (make, kernel, mean) in enumerate(itertools.product(MODELS, KERNELS, MEANS)):
        turn = number + number // len(MEANS)
        dtype, standardize = (np.float64, np.float32)[turn % 2], turn % 3 > 0
        label = f"{make.__name__} {kernel} {mean:g} {dtype.__name__} {standardize}"
        cases.append(pytest.param(make, kernel, mean, dtype, standardize, number, id=label))
    return cases


@pytest.mark.sampled(30)
@pytest.mark.parametrize(("make", "kernel", "mean", "dtype", "standardize", "seed"), law_cases())
def test_no_certificate_is_below_the_exact_distance_at_any_mean(
    make: Any, kernel: str, mean: float, dtype: type, standardize: bool, seed: int
) -> None:
    assert not faults(make, kernel, mean, dtype, standardize=standardize, seed=seed)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("mean", [1e8, 1e11])
def test_sparse_samples_of_large_means_are_standardised_exactly(kernel: str, mean: float) -> None:
    assert not faults(SVC, kernel, mean, np.float64, standardize=True)


@pytest.mark.parametrize("mean", [0.0, 1e8])
def test_standardised_support_vectors_stay_sparse(mean: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40)) * (rng.random((60, 40)) < 0.1)
    X[:, 0] += mean
    y = (X.sum(axis=1) - mean > 0).astype(int)
    model = SVC(kernel="rbf", standardize=True).fit(sp.csr_array(X), y)
    assert model.support_vectors_.nnz <= np.count_nonzero(X[model.support_]) / 0.8
    for data in (X, sp.csr_array(X), sp.csc_array(X)):
        scores = SVC(kernel="rbf", standardize=True).fit(X, y).decision_function(X)
        np.testing.assert_allclose(model.decision_function(data), scores, atol=1e-4)


@pytest.mark.parametrize(
    "kernel", [Linear(), Rbf(0.3), Polynomial(3, 0.5, 1.5), Sigmoid(0.2, -0.4)], ids=repr
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [1.0, 1e-12])
def test_no_value_of_standardised_samples_has_lost_more_than_is_said(
    kernel: Kernel, form: Any, weight: float
) -> None:
    """Light samples are many scales away from the centre, close to each other."""
    rng = np.random.default_rng(0)
    X = np.round(64.0 * rng.standard_normal((30, 3))) / 64.0 + [1e6, 3.0, 0.0]
    X[20:] += 50.0
    shares = np.where(np.arange(30) < 20, 1.0, weight)
    centre, scale = moments(as_design(X), shares / shares.sum())
    exact = (X.astype(np.longdouble) - centre) / scale.astype(np.longdouble)
    if isinstance(kernel, Rbf):
        values = np.exp(-kernel.gamma * ((exact[:, None] - exact) ** 2).sum(axis=2))
    else:
        values = exact @ exact.T
        kernel.transform(values, values)
    is_dense = form is np.asarray
    model = SVC(standardize=True)
    model.feature_centre_, model.feature_scale_ = centre, scale
    Z = model._prepared(form(X), dense=is_dense)
    standardized = model._standardized_kernel(kernel, Z)
    others = standardized.others(Z)
    lost = standardized.lost(others, standardized.diagonal(Z))
    allowed = lost.relative * np.outer(lost.roots, lost.roots)
    allowed = allowed + lost.own[:, None] + lost.own
    assert (np.abs(standardized(Z, Z) - values) <= allowed).all()
    weights = rng.standard_normal(30)
    found = standardized.precisely(Z, np.arange(30), weights)
    assert (found is None) == (not is_dense or not isinstance(kernel, Rbf))
    if found is not None:
        room = 1e-15 * np.abs(values @ weights)
        assert (np.abs(found[0] - values @ weights) <= found[1].of(weights) + room).all()


@pytest.mark.parametrize(
    ("make", "kernel", "mean", "seed"),
    [
        (LogisticRegression, "poly", 1e8, 1),
        pytest.param(LogisticRegression, "linear", 1e8, 3, marks=pytest.mark.slow),
    ],
)
def test_rounding_of_the_dual_norm_counts_where_it_is_all_there_is(
    make: Any, kernel: str, mean: float, seed: int
) -> None:
    """Kernel values of raw samples beyond all differences: the best model may be zero."""
    assert not faults(make, kernel, mean, np.float64, standardize=False, seed=seed)
