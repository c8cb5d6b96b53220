"""MM-FDA and MM-MPM on data in blocks of rows: the model of the data in memory, in few passes."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import proxmargin as pm
from proxmargin import open_dataset
from tests.oracles import exact
from tests.shared_data import clouds

MODELS = [pm.MarginFDA, pm.MarginMPM]
BOTH = pytest.mark.parametrize("make", MODELS, ids=["MM-FDA", "MM-MPM"])
MOST_PASSES = 80  # a problem; of features in usual units some 20


def sample(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    return clouds(n, 6, apart=0.4)


def read(
    make: Any, X: Any, y: np.ndarray, rows: int = 37, weight: np.ndarray | None = None, **given: Any
) -> tuple[Any, int]:
    """The fit to a data set in chunks, and how often that was read."""
    dataset = open_dataset(X, target=y, chunk_rows=rows, weight=weight)
    begun: list[int] = []
    chunks = dataset.chunks
    object.__setattr__(dataset, "chunks", lambda: (begun.append(1), chunks())[1])
    return make(**given).fit(dataset), len(begun)


def same(streamed: Any, model: Any, rel: float = 1e-9) -> None:
    """The fits have the same model, and certificates that agree."""
    for ours, theirs in zip(parts(streamed), parts(model), strict=True):
        assert ours.converged
        assert ours.primal == pytest.approx(theirs.primal, rel=rel)
        assert ours.dual <= theirs.primal
        assert theirs.dual <= ours.primal
    np.testing.assert_allclose(streamed.coef_, model.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(streamed.intercept_, model.intercept_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(streamed.kappa_, model.kappa_, rtol=1e-9)
    np.testing.assert_array_equal(streamed.support_, model.support_)
    np.testing.assert_allclose(streamed.dual_coef_, model.dual_coef_, rtol=1e-6, atol=1e-10)


def parts(model: Any) -> list[Any]:
    found = model.certificate_
    return list(found) if hasattr(found, "__len__") else [found]


@pytest.mark.sampled(8)
@BOTH
@pytest.mark.parametrize("rows", [1, 100, 300])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"standardize": True},
        {"standardize": True, "fit_intercept": False},
        {"kappa": 0.4, "bias": "minimax"},
        {"kappa": 0.0},
        {"class_weight": {True: 3.0}},
    ],
    ids=lambda given: ", ".join(given) or "defaults",
)
def test_chunks_of_any_size_give_the_model_of_the_data_in_memory(make, rows, given) -> None:
    X, y = sample()
    streamed, passes = read(make, X, y, rows, tol=1e-10, **given)
    assert passes <= MOST_PASSES
    same(streamed, make(tol=1e-10, **given).fit(X, y))


@BOTH
@pytest.mark.parametrize("standardize", [False, True])
def test_weights_and_several_classes(make, standardize) -> None:
    X, _ = sample()
    y = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    weights = np.random.default_rng(0).random(y.size)
    for weight, labels in ((None, y), (weights, y), (weights, y > 0)):
        given = {"standardize": standardize, "tol": 1e-9}
        streamed, passes = read(make, X, labels, weight=weight, **given)
        assert passes <= MOST_PASSES * np.unique(labels).size
        same(streamed, make(**given).fit(X, labels, sample_weight=weight))


@BOTH
@pytest.mark.parametrize("standardize", [False, True])
def test_rows_without_weight_do_not_count(make, standardize) -> None:
    X, y = sample()
    live = np.arange(y.size) % 4 != 1
    X[~live] = 1e3
    given = {"standardize": standardize, "tol": 1e-8}
    streamed, passes = read(make, X, y, weight=live.astype(float), **given)
    model = make(**given).fit(X, y, sample_weight=live.astype(float))
    assert passes <= MOST_PASSES
    same(streamed, model)


@BOTH
@pytest.mark.parametrize("standardize", [False, True])
def test_a_column_of_large_mean(make, standardize) -> None:
    X, y = sample()
    X[:, 2] += 1e6
    streamed, passes = read(make, X, y, standardize=standardize)
    model = make(standardize=standardize).fit(X, y)
    assert passes <= MOST_PASSES
    assert streamed.certificate_.converged
    assert streamed.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(streamed.coef_, model.coef_, atol=1e-8)


@BOTH
@pytest.mark.parametrize(
    "kind", ["sparse", "float32", "constant", "repeated", "graded", "indicator"]
)
def test_data_of_every_kind_have_the_model_of_those_in_memory(make, kind) -> None:
    X, y = sample()
    rng = np.random.default_rng(1)
    data: Any = {
        "sparse": lambda: sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0)),
        "float32": lambda: X.astype(np.float32),
        "constant": lambda: np.column_stack([X, np.full(y.size, 7.0)]),
        "repeated": lambda: np.column_stack([X, X[:, 0]]),
        "graded": lambda: X * 10.0 ** np.arange(-6, 6, 2),
        "indicator": lambda: np.column_stack([X, rng.random(y.size) < 0.02]),
    }[kind]()
    streamed, passes = read(make, data, y)
    assert passes <= MOST_PASSES
    model = make().fit(data, y)
    assert streamed.certificate_.converged
    assert streamed.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    np.testing.assert_array_equal(streamed.predict(data), model.predict(data))


def deviations(X: np.ndarray, shares: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of a class, and rows whose norm is its standard deviation."""
    part = shares[one] / shares[one].sum()
    mean = part @ X[one]
    return mean, np.sqrt(part)[:, None] * (X[one] - mean)


@BOTH
@pytest.mark.parametrize("max_iter", [1, 3, None])
@pytest.mark.parametrize("seed", range(3))
def test_no_certificate_is_below_the_distance_from_the_optimum_of_cvxpy(
    make, max_iter, seed
) -> None:
    rng = np.random.default_rng(seed)
    y, weights = rng.random(120) < 0.4, rng.random(120)
    X = rng.standard_normal((120, 4)) @ rng.standard_normal((4, 4)) + 0.8 * y[:, None]
    solver = {} if max_iter is None else {"solver": "apg", "max_iter": max_iter}
    dataset = open_dataset(X, target=y, chunk_rows=17, weight=weights)
    model = make(kappa=0.1, tol=1e-8, **solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(dataset)
    (up, high), (down, low) = (deviations(X, weights, y == label) for label in (True, False))
    w = cp.Variable(4)
    pooled = [np.vstack([high, low])] if make is pm.MarginFDA else [high, low]
    loss = (down - up) @ w + 0.1 * sum(cp.norm(each @ w) for each in pooled)
    best = cp.Problem(cp.Minimize(loss + 0.5 * cp.sum_squares(w))).solve(solver="CLARABEL")
    w.value = model.coef_[0]
    found, certificate = float(loss.value + 0.5 * w.value @ w.value), model.certificate_
    assert certificate.primal == pytest.approx(found, rel=1e-10)
    assert certificate.dual <= best + 1e-8
    assert found - best <= certificate.gap + 1e-8


@BOTH
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_certificates_hold_in_fifty_digits(make, offset) -> None:
    X, y = clouds(40, 3, apart=0.5)
    X[:, 1] += offset
    found = [read(make, X, y, 9, kappa=0.5)[0], make(kappa=0.5, tol=1e-13)]
    with localcontext() as context:
        context.prec = 50
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rounding is above the tolerance
            found[1].fit(X, y)
        values = [objective(model, X, y.astype(int)) for model in found]
    certificate = found[0].certificate_
    assert Decimal(certificate.dual) <= min(values)
    assert values[0] - min(values) <= Decimal(certificate.gap)


def objective(model: Any, X: np.ndarray, codes: np.ndarray) -> Decimal:
    z = [line[0] for line in exact.scores(X, model)]
    pooled = isinstance(model, pm.MarginFDA)
    loss = exact.separation(z, codes, model.kappa_, pooled=pooled)
    return loss + sum((Decimal(w) ** 2 for w in model.coef_[0]), Decimal(0)) / 2


@BOTH
def test_no_margin_is_refused(make) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=r"kappa=5\.0 leaves no margin .* kappa_max"):
        make(kappa=5.0).fit(open_dataset(X, target=y, chunk_rows=50))
