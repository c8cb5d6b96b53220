"""The compiled engine of paths against single fits, which have other solvers."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from proxmargin import (
    ElasticNetSVC,
    HuberizedSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
    margin_path,
)
from proxmargin.data.designs import SparseDesign
from proxmargin.models.paths.chord_path import NAME, ChordPath
from proxmargin.optimality.unpenalised import smooth_critical_strength
from proxmargin.solvers.l1 import chord_engine as engine

MODELS = [SparseLogisticRegression, SquaredHingeSVC, HuberizedSVC]
Data = tuple[Any, np.ndarray]


def wide(layout: str = "C") -> Data:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 300))
    y = np.where(X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(40) > 0, 1, -1)
    if layout == "CSR":
        X[rng.random(X.shape) < 0.7] = 0.0
        return sparse.csr_array(X), y
    return np.array(X, order=layout), y  # type: ignore[call-overload]


def tall(layout: str = "C") -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (sparse.csr_array(X) if layout == "CSR" else np.array(X, order=layout)), y  # type: ignore[call-overload]


def check(
    model: Any,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray | None = None,
    offset: np.ndarray | None = None,
) -> None:
    """Every model of a path is as good as it claims, and as one of a single fit."""
    path = margin_path(model, X, y, n_alphas=12, eps=0.02, sample_weight=weights, offset=offset)
    assert {one.solver for one in path.certificates} == {NAME}
    assembly = model._assemble(X, y, weights, offset)
    for k in (0, 3, 7, 11):
        found, claimed = path.model(k), path.certificates[k]
        single = type(model)(**{**found.get_params(), "tol": 1e-9}).fit(X, y, weights, offset)
        penalty = found._penalty(assembly.targets, assembly.problems[0].design)
        (problem,) = assembly.with_penalty(penalty).problems
        value = problem.value(assembly.points(found.coef_, found.intercept_)[0])
        room = 1e-14 * abs(value)
        assert claimed.converged
        assert claimed.relative_gap <= model.tol
        assert abs(value - claimed.primal) <= 1e-12 * abs(value)
        assert value - single.certificate_.primal <= claimed.gap + room
        assert claimed.dual <= single.certificate_.primal + room


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", ["C", "F", "CSR"])
@pytest.mark.parametrize("data", [wide, tall])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.sampled(3)
def test_paths_are_as_good_as_they_claim(
    model: Any, layout: str, data: Any, l1_ratio: float
) -> None:
    check(model(l1_ratio=l1_ratio, tol=1e-7), *data(layout))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "settings",
    [
        {"standardize": True},
        {"fit_intercept": False},
        {"standardize": True, "fit_intercept": False},
        {"bounds": (0.0, np.inf)},
        {"bounds": (-0.05, 0.1), "standardize": True},
    ],
)
@pytest.mark.sampled(3)
def test_settings(model: Any, settings: dict[str, Any]) -> None:
    check(model(l1_ratio=0.8, tol=1e-7, **settings), *wide())


@pytest.mark.parametrize("model", MODELS)
def test_factors_and_weights(model: Any) -> None:
    X, y = wide()
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(y)).astype(float)
    weights[:2] = 1.0
    factors = rng.uniform(0.2, 3.0, X.shape[1])
    check(model(penalty_factor=factors, tol=1e-7), X, y, weights)


def unpenalised(p: int) -> np.ndarray:
    """Factors of which three are zero."""
    factors = np.linspace(0.5, 2.0, p)
    factors[[1, 4, p - 1]] = 0.0
    return factors


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("data", "layout"), [(wide, "C"), (wide, "CSR"), (tall, "F")])
@pytest.mark.parametrize("settings", [{}, {"standardize": True}, {"fit_intercept": False}])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.sampled(4)
def test_unpenalised_features(
    model: Any, data: Any, layout: str, settings: dict[str, Any], l1_ratio: float
) -> None:
    X, y = data(layout)
    factors = unpenalised(X.shape[1])
    check(model(penalty_factor=factors, l1_ratio=l1_ratio, tol=1e-7, **settings), X, y)


def test_unpenalised_features_far_from_zero_with_weights_and_offset() -> None:
    X, y = wide()
    X[:, [1, 4]] += 300.0
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 3, len(y)).astype(float)
    offset = rng.standard_normal(len(y))
    model = SparseLogisticRegression(penalty_factor=unpenalised(300), tol=1e-6)
    check(model, X, y, weights, offset)


def test_a_path_with_unpenalised_features_starts_at_their_model() -> None:
    X, y = wide()
    model = SparseLogisticRegression(penalty_factor=unpenalised(300), l1_ratio=1.0, tol=1e-9)
    path = margin_path(model, X, y, n_alphas=5, eps=0.5)
    assert np.flatnonzero(path.coefs[0]).tolist() == [1, 4, 299]
    assert path.coefs[1].astype(bool).sum() > 3
    bare = LogisticRegression(C=np.inf, tol=1e-10).fit(X[:, [1, 4, 299]], y)
    np.testing.assert_allclose(path.coefs[0, 0, [1, 4, 299]], bare.coef_[0], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (SparseLogisticRegression, cp.logistic),
        (SquaredHingeSVC, lambda u: cp.square(cp.pos(1.0 + u))),
        (HuberizedSVC, lambda u: cp.huber(cp.pos(1.0 + u), 2.0) / 4.0),
    ],
)
def test_unpenalised_features_reach_the_optimum_of_another_package(model: Any, loss: Any) -> None:
    X, y = wide()
    factors, signs = unpenalised(X.shape[1]), np.sign(y)
    options = {"delta": 2.0} if model is HuberizedSVC else {}
    path = margin_path(
        model(l1_ratio=0.7, tol=1e-8, penalty_factor=factors, **options),
        X,
        y,
        n_alphas=2,
        eps=0.2,
    )
    assert {one.solver for one in path.certificates} == {NAME}
    coef, intercept = cp.Variable(X.shape[1]), cp.Variable()
    total = cp.sum(loss(-cp.multiply(signs, X @ coef + intercept))) / len(y)
    lasso, ridge = cp.norm1(cp.multiply(factors, coef)), cp.sum(cp.multiply(factors, coef**2))
    for alpha, found in zip(path.alphas, path.certificates, strict=True):
        objective = total + 0.7 * alpha * lasso + 0.15 * alpha * ridge
        best = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
        assert found.dual - 1e-7 <= best <= found.primal + 1e-7
        assert found.relative_gap <= 1e-8


@pytest.mark.parametrize("model", MODELS)
def test_unpenalised_features_that_separate_the_classes_end_soon(model: Any) -> None:
    X, y = wide()
    X[:, 7] = y + 0.1 * X[:, 7]
    factors = np.ones(300)
    factors[7] = 0.0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        path = margin_path(model(penalty_factor=factors), X, y, n_alphas=5)
    assert any("without a penalty separate the classes" in str(one.message) for one in told)
    for one in path.certificates:
        assert 0.0 <= one.primal <= one.gap + 1e-7
    assert sum(one.n_iter for one in path.certificates) < 100


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("data", "layout"), [(wide, "C"), (wide, "CSR"), (tall, "C")])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.sampled(4)
def test_offsets_of_the_scores(model: Any, data: Any, layout: str, free: bool) -> None:
    X, y = data(layout)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, len(y)).astype(float)
    offset = 3.0 + 2.0 * rng.standard_normal(len(y))
    check(model(l1_ratio=0.8, tol=1e-7, fit_intercept=free), X, y, weights, offset)


def test_a_path_with_an_offset_is_that_of_another_package() -> None:
    X, y = wide()
    offset = np.random.default_rng(2).standard_normal(len(y))
    model = SparseLogisticRegression(l1_ratio=1.0, tol=1e-8)
    path = margin_path(model, X, y, n_alphas=4, eps=0.1, offset=offset)
    coef, intercept, signs = cp.Variable(X.shape[1]), cp.Variable(), np.sign(y)
    loss = cp.sum(cp.logistic(-cp.multiply(signs, X @ coef + intercept + offset))) / len(y)
    for k, alpha in enumerate(path.alphas):
        best = cp.Problem(cp.Minimize(loss + alpha * cp.norm1(coef))).solve(solver="CLARABEL")
        assert path.certificates[k].dual <= best + 1e-7
        assert path.certificates[k].primal >= best - 1e-7


def single_precision(X: Any) -> Any:
    return X.astype(np.float32)


def whole_numbers(X: Any) -> Any:
    return np.round(10.0 * X).astype(np.int32)


def every_other_column(X: Any) -> Any:
    return np.repeat(X, 2, axis=1)[:, ::2]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", [single_precision, whole_numbers, every_other_column])
@pytest.mark.parametrize(("data", "layout"), [(wide, "C"), (wide, "F"), (tall, "C")])
@pytest.mark.sampled(4)
def test_dense_data_that_kernels_do_not_read(model: Any, kind: Any, data: Any, layout: str) -> None:
    X, y = data(layout)
    check(model(l1_ratio=0.8, tol=1e-7), kind(X), y)


@pytest.mark.slow  # its kernels take twenty seconds to compile, and are of no other test
def test_sparse_data_in_single_precision() -> None:
    X, y = wide("CSR")
    check(SparseLogisticRegression(tol=1e-7), X.astype(np.float32), y)
    check(SparseLogisticRegression(tol=1e-7), X.astype(np.float32).tocsc(), y)


def test_of_large_data_no_copy_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide()
    monkeypatch.setattr(engine, "SAMPLE_BYTES", 8 * X.size - 1)
    model = SparseLogisticRegression(tol=1e-8)
    assert not ChordPath.takes(model._assemble(X.astype(np.float32), y, None).problems[0])
    assert ChordPath.takes(model._assemble(X, y, None).problems[0])


@pytest.mark.parametrize("data", [wide, tall])
def test_arrays_grow_as_they_have_to(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FIRST_CAPACITY", 1)
    check(SparseLogisticRegression(l1_ratio=0.5, tol=1e-7), *data())


@pytest.mark.parametrize("data", [wide, tall])
def test_the_path_goes_on_after_a_strength_that_was_given_up(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    whole, calls = ChordPath.solved, []

    def given_up(self: ChordPath, l1: np.ndarray, l2: np.ndarray) -> Any:
        calls.append(l1.size)
        count = 0 if len(calls) % 2 == 0 else 3
        return whole(self, l1[:count], l2[:count])

    expected = margin_path(SparseLogisticRegression(tol=1e-10), X, y, n_alphas=9, eps=0.05)
    monkeypatch.setattr(ChordPath, "solved", given_up)
    path = margin_path(SparseLogisticRegression(tol=1e-10), X, y, n_alphas=9, eps=0.05)
    assert len({one.solver for one in path.certificates}) == 2
    np.testing.assert_allclose(path.coefs, expected.coefs, atol=2e-4)


def test_what_single_fits_alone_have_is_left_to_them() -> None:
    X, y = wide()
    for model in (
        SparseLogisticRegression(solver="newton"),
        SparseLogisticRegression(max_iter=1000),
        SparseLogisticRegression(time_limit=60.0),
        SparseLogisticRegression(penalty_factor=np.r_[0.0, np.ones(299)], bounds=(-1.0, 1.0)),
        ElasticNetSVC(),
    ):
        path = margin_path(model, X, y, n_alphas=3, eps=0.3)
        assert all(one.solver != NAME for one in path.certificates)


def test_only_a_strength_of_zero_is_a_single_fit() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] + 2.0 * rng.standard_normal(60) > 0, 1, -1)
    model = SparseLogisticRegression(tol=1e-10)
    path = margin_path(model, X, y, alphas=[0.0, 0.1, 0.0, 0.01])
    assert [one.solver == NAME for one in path.certificates] == [False, True, False, True]
    bare = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(path.coefs[[0, 2]], [bare.coef_] * 2, atol=1e-5)
    np.testing.assert_array_equal(
        path.coefs[1::2], margin_path(model, X, y, alphas=[0.1, 0.01]).coefs
    )


def test_few_passes_over_wide_data() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3000))
    y = np.where(X[:, :3].sum(axis=1) > 0, 1, -1)
    path = margin_path(SparseLogisticRegression(), X, y, n_alphas=50, eps=0.05)
    assert sum(one.n_passes for one in path.certificates) < len(path)


def test_a_coarse_grid_takes_little_more_than_the_fine_one_that_holds_it() -> None:
    """One strong rule for a fall of the strength by ten would let in most features."""
    X, y = wide()
    fine = margin_path(SparseLogisticRegression(), X, y, n_alphas=91, eps=0.01)
    coarse = margin_path(SparseLogisticRegression(), X, y, alphas=fine.alphas[::30])
    alone = margin_path(SparseLogisticRegression(), X, y, alphas=fine.alphas[-1:])
    effort = [sum(one.n_passes for one in path.certificates) for path in (fine, coarse, alone)]
    assert max(effort[1:]) <= 1.5 * effort[0]
    assert alone.certificates[0].n_iter >= 20
    np.testing.assert_allclose(coarse.coefs, fine.coefs[::30], atol=2e-3)
    np.testing.assert_allclose(alone.coefs[0], fine.coefs[-1], atol=2e-3)


def test_a_model_that_would_be_larger_than_the_data_is_left_to_single_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "FIRST_CAPACITY", 4)
    monkeypatch.setattr(engine, "SAMPLE_BYTES", 1)
    few = property(lambda design: 16 * 5**2, lambda design, nbytes: None)
    monkeypatch.setattr(SparseDesign, "nbytes", few, raising=False)
    path = margin_path(SparseLogisticRegression(tol=1e-8), *wide("CSR"), n_alphas=40, eps=0.05)
    assert path.certificates[1].solver == NAME != path.certificates[-1].solver
    assert path.coefs[-1].astype(bool).sum() > 5
    assert all(one.converged for one in path.certificates)


def test_a_path_that_diverges_is_left_to_single_fits() -> None:
    """Features whose centre is 5e7 standard deviations off: of inner products rounding is left."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = sparse.csr_array(5e7 + rng.standard_normal((10, 6)))
        y = np.where(rng.standard_normal(10) > 0, 1, -1)
        y[:2] = -1, 1
        model = SparseLogisticRegression(l1_ratio=0.5, standardize=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            path = margin_path(model, X, y, n_alphas=5, eps=0.1)
        for one in path.certificates:
            assert np.isfinite(one.primal)
            assert one.converged == (one.relative_gap <= model.tol)


def test_columns_by_rows_are_the_same_in_a_small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide("C")
    model = SparseLogisticRegression(l1_ratio=0.9, tol=1e-7)
    large = margin_path(model, X, y, n_alphas=30, eps=0.02)
    monkeypatch.setattr(engine, "CACHED_COLUMNS", 2)
    small = margin_path(model, X, y, n_alphas=30, eps=0.02)
    np.testing.assert_array_equal(small.coefs, large.coefs)
    assert [one.gap for one in small.certificates] == [one.gap for one in large.certificates]


@pytest.mark.parametrize("model", MODELS)
def test_uneven_strides_reach_the_tolerance(model: Any) -> None:
    X, y = wide()
    alphas = 0.3 * np.cumprod(np.tile([0.99, 0.5, 0.97, 1.0, 0.8], 4))
    path = margin_path(model(l1_ratio=0.9, tol=1e-6), X, y, alphas=alphas)
    assert all(one.relative_gap <= 1e-6 for one in path.certificates)
    assert {one.solver for one in path.certificates} == {NAME}


@pytest.mark.parametrize("alphas", [[1e10, 1e-300], [1e-310], [1.0, 1e-2]])
def test_strengths_that_are_far_apart_or_tiny(alphas: list[float]) -> None:
    X, y = wide()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = margin_path(SparseLogisticRegression(), X, y, alphas=alphas)
    assert len(path) == len(alphas)
    assert not any(np.isnan(one.gap) for one in path.certificates)


def test_a_strength_far_below_the_last_one_is_left_to_a_single_fit() -> None:
    (problem,) = SparseLogisticRegression(l1_ratio=1.0)._assemble(*wide(), None).problems
    path, top = ChordPath(problem, 1e-6), smooth_critical_strength(problem)
    strengths = top * np.array([0.5, 0.25, 1e-7])
    assert path.solved(strengths, np.zeros(3)).count == 2
    assert path.solved(strengths[2:], np.zeros(1)).count == 0


@pytest.mark.parametrize("layout", ["C", "F", "CSR"])
@pytest.mark.parametrize("data", [wide, tall])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_revised_model_is_that_of_its_curvatures(
    data: Any, layout: str, fit_intercept: bool
) -> None:
    X, y = data(layout)
    model = SquaredHingeSVC(standardize=True, fit_intercept=fit_intercept)
    (problem,) = model._assemble(X, y, None).problems
    path = ChordPath(problem, 1e-6)
    strengths = smooth_critical_strength(problem) * np.geomspace(1.0, 0.2, 12)
    assert path.solved(strengths, np.zeros(12)).count == 12
    quadratic, candidates = path.progress.model, path.progress.candidates
    m, curvatures = int(quadratic.scalars["size"]), quadratic.curvatures
    assert 0 < quadratic.scalars["formed"] < path.progress.scalars["steps"]
    features = candidates.feature[quadratic.members[:m]]
    columns = problem.design.dense_columns(features)
    if fit_intercept:
        columns = columns - np.average(columns, axis=0, weights=curvatures)
    expected = columns.T @ (curvatures[:, None] * columns)
    np.testing.assert_allclose(
        quadratic.quadratic.hessian[:m, :m], expected, rtol=1e-10, atol=1e-12 * expected.max()
    )


def test_models_of_a_path_do_not_share_its_arrays() -> None:
    path = margin_path(SparseLogisticRegression(), *wide(), n_alphas=2)
    before = path.intercepts.copy()
    path.model(1).intercept_ += 1.0
    np.testing.assert_array_equal(path.intercepts, before)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_the_effort_before_there_was_room_is_told(
    l1_ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FIRST_CAPACITY", 1)
    X, y = wide()
    model = SparseLogisticRegression(l1_ratio=l1_ratio)
    (problem,) = model._assemble(X, y, None).problems
    path = ChordPath(problem, 1e-6)
    begun = float(path.progress.scalars["read"])
    strengths = smooth_critical_strength(problem) * np.geomspace(1.0, 0.1, 12)
    found = path.solved(strengths, strengths / l1_ratio - strengths)
    told = [found.certify(number) for number in range(12)]
    assert all(one.n_iter > 0 for one in told[1:])
    assert sum(one.n_iter for one in told) == path.progress.scalars["steps"]
    assert sum(one.n_passes for one in told) == pytest.approx(path.progress.scalars["read"] - begun)


def test_features_that_a_bound_keeps_at_zero_are_not_read_for_it() -> None:
    X, y = wide()
    free, bounded = (
        margin_path(SparseLogisticRegression(bounds=bounds), X, y)
        for bounds in ((-np.inf, np.inf), (0.0, np.inf))
    )
    passes = [sum(one.n_passes for one in path.certificates) for path in (free, bounded)]
    assert passes[1] < 3.0 * passes[0]
