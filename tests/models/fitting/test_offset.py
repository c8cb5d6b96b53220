"""Offsets of the scores against CVXPY, against features with fixed coefficients, and refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    SVCCV,
    Checkpoint,
    ElasticNetSVC,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    MarginClassifier,
    MarginFDA,
    MarginMPM,
    MulticlassSVC,
    NuSVC,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SquaredHingeSVC,
    alpha_max,
    load_model,
    margin_path,
    open_dataset,
    save_model,
)
from proxmargin.losses import Hinge, HuberizedHinge, Logistic, MarginLoss, SquaredHinge
from proxmargin.paths import alpha_grid, fitted_grid
from proxmargin.penalties import Ball
from proxmargin.solvers.loop.solver import UnsuitableSolverError

Loss = Callable[[cp.Expression], cp.Expression]
LOSSES: dict[str, Loss] = {
    "hinge": lambda t: cp.pos(1 - t),
    "huberized": lambda t: cp.huber(cp.pos(1 - t), 1.0) / 2,
    "squared hinge": lambda t: cp.square(cp.pos(1 - t)),
    "logistic": lambda t: cp.logistic(-t),
}
NETS = {
    "hinge": ElasticNetSVC,
    "huberized": HuberizedSVC,
    "squared hinge": SquaredHingeSVC,
    "logistic": SparseLogisticRegression,
}
SUMS = {"hinge": SVC, "squared hinge": L2SVC, "logistic": LogisticRegression}
MARGINS: dict[str, MarginLoss] = {
    "hinge": Hinge(),
    "huberized": HuberizedHinge(),
    "squared hinge": SquaredHinge(),
    "logistic": Logistic(),
}
KERNELS = ("linear", "rbf")
HINGES = ("multiplier-newton", "isvm1", "isvm2", "isvm3", "admm", "linear-program", "fbpd")
SMOOTH = ("newton", "gcd", "b-pgh", "b-pgh-2", "fapg-ws", "ridge-newton")
BOTH = ("interior-point", "fapg", "apg", "fapg-star")
every_net = pytest.mark.parametrize("loss", NETS)
every_sum = pytest.mark.parametrize("loss", SUMS)
WITHOUT = [NuSVC(), DWD(), MarginFDA(), MarginMPM(), MulticlassSVC()]


class Data:
    """Two classes, with an offset that matters, and weights."""

    def __init__(self, n: int = 40, p: int = 5, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((n, p)) * rng.uniform(0.5, 3.0, p) + rng.standard_normal(p)
        self.offset = 2.0 * rng.standard_normal(n)
        noise = 0.5 * rng.standard_normal(n)
        self.y = (self.X[:, 0] - self.X[:, 1] + self.offset + noise > 0).astype(int)
        self.weights = rng.uniform(0.2, 2.0, n)

    @property
    def given(self) -> dict[str, np.ndarray]:
        return {"sample_weight": self.weights, "offset": self.offset}

    def scores(self, coef: cp.Variable, intercept: Any) -> cp.Expression:
        return self.X @ coef + intercept + self.offset

    def margins(self, coef: cp.Variable, intercept: Any) -> cp.Expression:
        return cp.multiply(2 * self.y - 1, self.scores(coef, intercept))


def least(objective: cp.Expression, *limits: cp.Constraint) -> float:
    problem = cp.Problem(cp.Minimize(objective), list(limits))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-8, tol_gap_abs=1e-10)
    return float(problem.value)


def net_optimum(data: Data, loss: Loss, l1: float, l2: float) -> float:
    w, b = cp.Variable(data.X.shape[1]), cp.Variable()
    mean = (data.weights / data.weights.sum()) @ loss(data.margins(w, b))
    return least(mean + l1 * cp.norm1(w) + l2 / 2 * cp.sum_squares(w))


# -- optima ---------------------------------------------------------------------------------------


@every_net
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_the_optimum_is_that_of_clarabel(loss: str, l1_ratio: float) -> None:
    data = Data()
    model = NETS[loss](alpha=0.05, l1_ratio=l1_ratio, tol=1e-8).fit(data.X, data.y, **data.given)
    expected = net_optimum(data, LOSSES[loss], 0.05 * l1_ratio, 0.05 * (1 - l1_ratio))
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)


@every_sum
def test_the_optimum_of_a_sum_with_a_ridge_is_that_of_clarabel(loss: str) -> None:
    data = Data()
    w, b = cp.Variable(5), cp.Variable()
    total = 0.7 * data.weights @ LOSSES[loss](data.margins(w, b))
    expected = least(total + cp.sum_squares(w) / 2)
    model = SUMS[loss](0.7, tol=1e-8).fit(data.X, data.y, **data.given)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [2.0, 3.0])
def test_the_optimum_in_a_ball_is_that_of_clarabel(loss: str, p: float) -> None:
    data = Data()
    w, b = cp.Variable(5), cp.Variable()
    mean = (data.weights / data.weights.sum()) @ LOSSES[loss](data.margins(w, b))
    expected = least(mean, cp.pnorm(w, p) <= 0.3)
    model = MarginClassifier(MARGINS[loss], Ball(p, 0.3), tol=1e-7)
    model.fit(data.X, data.y, **data.given)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)


@every_sum
def test_the_optimum_with_a_kernel_is_that_of_clarabel(loss: str) -> None:
    data = Data()
    kernel = np.exp(-0.05 * np.sum((data.X[:, None] - data.X[None]) ** 2, axis=-1))
    root = np.linalg.cholesky(kernel + 1e-12 * np.eye(len(kernel)))
    v, b = cp.Variable(len(kernel)), cp.Variable()
    margins = cp.multiply(2 * data.y - 1, root @ v + b + data.offset)
    expected = least(0.7 * data.weights @ LOSSES[loss](margins) + cp.sum_squares(v) / 2)
    model = SUMS[loss](0.7, kernel="rbf", gamma=0.05, tol=1e-7).fit(data.X, data.y, **data.given)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)
    moved = model.decision_function(data.X, data.offset) - model.decision_function(data.X)
    np.testing.assert_allclose(moved, data.offset, atol=1e-12)


@every_net
@pytest.mark.parametrize("solver", [*HINGES, *SMOOTH, *BOTH])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.sampled(3)
def test_every_solver_that_takes_the_model_finds_it(
    loss: str, solver: str, l1_ratio: float
) -> None:
    data = Data(120)
    model = NETS[loss](alpha=0.05, l1_ratio=l1_ratio, tol=1e-5)
    expected = model.fit(data.X, data.y, **data.given).certificate_
    try:
        found = clone(model).set_params(solver=solver).fit(data.X, data.y, **data.given)
    except UnsuitableSolverError:
        with pytest.raises(UnsuitableSolverError):  # without an offset, too
            clone(model).set_params(solver=solver).fit(data.X, data.y)
        return
    assert found.certificate_.converged
    assert found.certificate_.primal == pytest.approx(expected.primal, rel=2e-5)


# -- what an offset is ----------------------------------------------------------------------------


@every_net
def test_a_constant_offset_moves_the_intercept_alone(loss: str) -> None:
    data = Data()
    model = NETS[loss](alpha=0.05, tol=1e-10)
    plain = clone(model).fit(data.X, data.y)
    moved = clone(model).fit(data.X, data.y, offset=np.full(len(data.y), 3.0))
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=2e-5)
    assert moved.intercept_[0] == pytest.approx(plain.intercept_[0] - 3.0, abs=1e-3)
    assert moved.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-9)


@every_net
def test_no_offset_is_one_of_zeros(loss: str) -> None:
    data = Data()
    model = NETS[loss](alpha=0.05)
    plain = clone(model).fit(data.X, data.y)
    zeros = clone(model).fit(data.X, data.y, offset=np.zeros(len(data.y)))
    np.testing.assert_array_equal(zeros.coef_, plain.coef_)
    np.testing.assert_array_equal(zeros.intercept_, plain.intercept_)


@pytest.mark.parametrize("loss", ["huberized", "squared hinge", "logistic"])
def test_the_offset_of_an_unpenalised_feature_at_its_optimum_leaves_the_others(loss: str) -> None:
    data = Data()
    both = NETS[loss](alpha=0.05, tol=1e-11, penalty_factor=[0, 0, 1, 1, 1]).fit(data.X, data.y)
    offset = data.X[:, :2] @ both.coef_[0, :2]
    rest = NETS[loss](alpha=0.05, tol=1e-11).fit(data.X[:, 2:], data.y, offset=offset)
    np.testing.assert_allclose(rest.coef_[0], both.coef_[0, 2:], atol=1e-4)
    assert rest.certificate_.primal == pytest.approx(both.certificate_.primal, rel=1e-9)


def test_features_without_a_penalty_go_with_an_offset() -> None:
    data = Data()
    model = SparseLogisticRegression(alpha=0.05, l1_ratio=1.0, penalty_factor=[0, 1, 1, 1, 1])
    model.fit(data.X, data.y, **data.given)
    w, b = cp.Variable(5), cp.Variable()
    mean = (data.weights / data.weights.sum()) @ cp.logistic(-data.margins(w, b))
    expected = least(mean + 0.05 * cp.norm1(w[1:]))
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-5)


@every_net
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_standardised_weighted_data_are_those_of_the_dense_ones(
    loss: str, fit_intercept: bool
) -> None:
    data = Data()
    X = np.where(np.abs(data.X) < 1.0, 0.0, data.X)
    model = NETS[loss](alpha=0.05, standardize=True, fit_intercept=fit_intercept, tol=1e-10)
    weights = data.weights * (np.arange(len(data.y)) % 4 > 0)
    dense = clone(model).fit(X, data.y, sample_weight=weights, offset=data.offset)
    thin = clone(model).fit(sparse.csr_array(X), data.y, sample_weight=weights, offset=data.offset)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-4)
    live = weights > 0
    fewer = clone(model).fit(
        X[live], data.y[live], sample_weight=weights[live], offset=data.offset[live]
    )
    np.testing.assert_array_equal(fewer.coef_, dense.coef_)


def test_predictions_take_an_offset_and_without_one_it_is_zero() -> None:
    data = Data()
    model = LogisticRegression().fit(data.X, data.y, offset=data.offset)
    bare = data.X @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(data.X), bare)
    scores = model.decision_function(data.X, offset=data.offset)
    np.testing.assert_allclose(scores, bare + data.offset)
    np.testing.assert_array_equal(model.predict(data.X, data.offset), scores > 0)
    odds = model.predict_proba(data.X, offset=data.offset)
    np.testing.assert_allclose(np.log(odds[:, 1] / odds[:, 0]), scores)
    logs = model.predict_log_proba(data.X, offset=data.offset)
    np.testing.assert_allclose(logs, np.log(odds))
    assert model.score(data.X, data.y, offset=data.offset) == np.mean((scores > 0) == data.y)
    assert model.score(data.X, data.y) == np.mean((bare > 0) == data.y)


# -- paths ----------------------------------------------------------------------------------------


@every_net
def test_alpha_max_is_the_least_alpha_without_coefficients(loss: str) -> None:
    data = Data()
    model = NETS[loss](l1_ratio=1.0, tol=1e-9)
    most = alpha_max(model, data.X, data.y, data.weights, data.offset)
    above = clone(model).set_params(alpha=most * (1 + 1e-6)).fit(data.X, data.y, **data.given)
    below = clone(model).set_params(alpha=most * (1 - 1e-3)).fit(data.X, data.y, **data.given)
    null = net_optimum(data, LOSSES[loss], 1e6, 0.0)
    assert not above.coef_.any()
    assert above.certificate_.primal == pytest.approx(null, rel=1e-6)
    assert below.coef_.any()
    assert below.certificate_.primal < null * (1 - 1e-9)


def test_paths_and_grids_are_those_of_single_fits() -> None:
    data = Data()
    model = SparseLogisticRegression(l1_ratio=0.9, tol=1e-9)
    path = margin_path(model, data.X, data.y, n_alphas=4, eps=0.05, **data.given)
    np.testing.assert_array_equal(
        path.alphas, alpha_grid(model, data.X, data.y, n_alphas=4, eps=0.05, **data.given)
    )
    assert path.alphas[0] == alpha_max(model, data.X, data.y, data.weights, data.offset)
    assert path.n_nonzero[0] == 0 < path.n_nonzero[-1]
    scores = path.scores(data.X, data.offset)
    np.testing.assert_allclose(scores, path.scores(data.X) + data.offset, atol=1e-12)
    np.testing.assert_array_equal(path.predict(data.X, data.offset), scores > 0)
    settings = [{"alpha": float(alpha)} for alpha in path.alphas]
    grid = fitted_grid(model, settings, data.X, data.y, **data.given)
    for k, found in enumerate(grid):
        single = clone(model).set_params(**settings[k]).fit(data.X, data.y, **data.given)
        np.testing.assert_allclose(path.coefs[k], single.coef_, atol=1e-4)
        np.testing.assert_allclose(found.coef_, single.coef_, atol=1e-4)


def test_a_grid_of_a_kernel_model_takes_an_offset() -> None:
    data = Data()
    (found,) = fitted_grid(SVC(kernel="rbf"), [{"C": 2.0}], data.X, data.y, offset=data.offset)
    single = SVC(2.0, kernel="rbf").fit(data.X, data.y, offset=data.offset)
    np.testing.assert_array_equal(found.dual_coef_, single.dual_coef_)


# -- resuming, routing ----------------------------------------------------------------------------


def test_a_fit_resumes_with_the_same_offset_only(tmp_path) -> None:
    data, file = Data(), tmp_path / "fit.npz"
    model = SquaredHingeSVC(solver="b-pgh", tol=1e-9)
    whole = clone(model).fit(data.X, data.y, **data.given)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        clone(model).set_params(max_iter=20, callbacks=[Checkpoint(file, every=0.0)]).fit(
            data.X, data.y, **data.given
        )
    resumed = clone(model).fit(data.X, data.y, **data.given, resume_from=file)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.certificate_.n_iter == whole.certificate_.n_iter
    for offset in (None, data.offset + 1.0):
        with pytest.raises(ValueError, match="another offset"):
            clone(model).fit(data.X, data.y, data.weights, offset, resume_from=file)


def test_it_is_routed_through_pipelines_and_cross_validation() -> None:
    data = Data(60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SquaredHingeSVC(alpha=0.05)
        model.set_fit_request(sample_weight=False, offset=True)
        model.set_score_request(sample_weight=True, offset=True)
        model.set_predict_request(offset=True)
        line = make_pipeline(StandardScaler(), model)
        line.fit(data.X, data.y, offset=data.offset)
        direct = SquaredHingeSVC(alpha=0.05).fit(
            StandardScaler().fit_transform(data.X), data.y, offset=data.offset
        )
        np.testing.assert_allclose(line[-1].coef_, direct.coef_)
        np.testing.assert_array_equal(
            line.predict(data.X, offset=data.offset),
            direct.predict(StandardScaler().fit_transform(data.X), data.offset),
        )
        scores = cross_validate(line, data.X, data.y, params={"offset": data.offset}, cv=3)
    without = cross_validate(SquaredHingeSVC(alpha=0.05), data.X, data.y, cv=3)
    assert scores["test_score"].mean() > without["test_score"].mean()


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (np.zeros(39), r"offset must be one number a sample, \(40,\) here, .* shape \(39,\)"),
        (np.zeros((40, 2)), r"offset must be one number a sample, .* shape \(40, 2\)"),
        (1.0, r"offset must be one number a sample, .* shape \(\)"),
        (np.where(np.arange(40) == 7, np.nan, 0.0), r"offset must hold finite .* nan in row 7"),
        (np.where(np.arange(40) == 8, -np.inf, 0.0), r"offset must hold finite .* -inf in row 8"),
        (np.where(np.arange(40) == 9, 1e80, 0.0), r"offset must hold .* at most 1e\+70.* row 9"),
        (["a"] * 40, "offset must be one number a sample: could not convert"),
    ],
)
def test_an_offset_that_is_none_is_refused(offset: Any, words: str) -> None:
    data = Data()
    with pytest.raises(ValueError, match=words):
        SVC().fit(data.X, data.y, offset=offset)
    model = SVC().fit(data.X, data.y)
    with pytest.raises(ValueError, match=words):
        model.predict(data.X, offset=offset)


def test_columns_and_lists_are_offsets() -> None:
    data = Data()
    expected = L2SVC().fit(data.X, data.y, offset=data.offset)
    for form in (data.offset.tolist(), data.offset[:, None], pd.Series(data.offset)):
        found = L2SVC().fit(data.X, data.y, offset=form)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("model", [HuberizedSVC(), HuberizedSVC(multi_class="ovr"), SVC()])
def test_more_than_two_classes_take_no_offset(model: Any) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="offset is one number a sample, and needs two classes"):
        model.fit(X, y, offset=np.zeros(len(y)))
    fitted = model.fit(X, y)
    with pytest.raises(ValueError, match="needs two classes: got 3"):
        fitted.decision_function(X, offset=np.zeros(len(y)))


@pytest.mark.parametrize("model", WITHOUT, ids=lambda model: type(model).__name__)
def test_models_without_a_place_for_an_offset_say_so(model: Any) -> None:
    data = Data()
    with pytest.raises(ValueError, match=rf"{type(model).__name__} takes no offset: .{{10}}"):
        model.fit(data.X, data.y, offset=data.offset)


@pytest.mark.parametrize("beyond", [1.0, 5.0])
@pytest.mark.parametrize(
    "model",
    [
        *(SUMS[loss](kernel=kernel) for loss in ("hinge", "squared hinge") for kernel in KERNELS),
        *(NETS[loss](standardize=True) for loss in NETS if loss != "logistic"),
        HuberizedSVC(fit_intercept=False),
        SVC(solver="interior-point"),
        SVC(solver="decomposition", kernel="rbf"),
        ElasticNetSVC(solver="fbpd"),
    ],
)
def test_an_optimum_of_zero_is_proved(model: Any, beyond: float, rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((40, 5)), np.where(np.arange(40) % 2, 1, -1)
    fitted = clone(model).fit(X, y, offset=beyond * y)
    certificate = fitted.certificate_
    assert certificate.converged
    assert certificate.primal == certificate.gap == 0.0
    assert np.array_equal(fitted.predict(X, beyond * y), y)


def test_an_optimum_that_is_almost_zero_is_not_taken_for_it(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((40, 5)), np.where(np.arange(40) % 2, 1, -1)
    certificate = SVC(fit_intercept=False).fit(X, y, offset=(1 - 1e-9) * y).certificate_
    assert certificate.converged
    assert certificate.dual > 0


# -- predictions without the offset of the fit ----------------------------------------------------


@pytest.fixture
def shifted() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 4))
    offset = np.where(np.arange(50) % 3 == 0, -2.5, 1.0)
    return X, np.where(X[:, 0] + offset > 0, "yes", "no"), offset


WITHOUT = r"fitted with an offset, the largest of size 2\.5, .*offset=0"


@pytest.mark.parametrize(
    "model",
    [HuberizedSVC(), SVC(), SVC(kernel="rbf"), SparseLogisticRegression(), LogisticRegression()],
    ids=repr,
)
def test_predictions_without_the_offset_of_the_fit_warn_once(
    shifted: tuple[np.ndarray, ...], model: Any
) -> None:
    X, y, offset = shifted
    model = clone(model).fit(X, y, offset=offset)
    methods = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    calls = [getattr(model, name) for name in methods if hasattr(model, name)]
    for call in (*calls, lambda X, **given: model.score(X, y, **given)):
        with pytest.warns(UserWarning, match=WITHOUT) as told:
            found = call(X)
        assert len(told) == 1
        assert told[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.array_equal(call(X, offset=0), found)
            assert np.array_equal(call(X, offset=np.zeros(50)), found)
            call(X, offset=offset)
    model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        model.fit(X, y, offset=np.zeros(50)).predict(X)


def test_every_holder_of_a_model_with_an_offset_warns(
    shifted: tuple[np.ndarray, ...], tmp_path: Path
) -> None:
    X, y, offset = shifted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = margin_path(HuberizedSVC(), X, y, n_alphas=3, offset=offset)
        searches = [
            HuberizedSVCCV([0.1, 0.03, 0.01], cv=3),
            SVCCV([0.1, 1.0, 10.0], kernel="rbf", cv=3),
            SparseLogisticRegressionCV([0.1, 0.03, 0.01], cv=3, scoring="roc_auc"),
        ]
        for search in searches:
            search._warn_of_edge = lambda: None
            search.fit(X, y, offset=offset)
    save_model(searches[0], tmp_path / "model.pmz")
    holders = [path.model(1), *searches, load_model(tmp_path / "model.pmz")]
    for model in [*holders, copy.deepcopy(searches[1])]:
        with pytest.warns(UserWarning, match=WITHOUT):
            found = model.predict(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.array_equal(model.predict(X, offset=0), found)
    for call in (path.scores, path.predict):
        with pytest.warns(UserWarning, match=WITHOUT):
            found = call(X)
        assert np.array_equal(call(X, offset=0), found)


def test_data_in_passes_are_predicted_with_a_warning(
    shifted: tuple[np.ndarray, ...], tmp_path: Path
) -> None:
    X, y, offset = shifted
    np.savez(tmp_path / "data.npz", X=X, y=y == "yes")
    data = open_dataset(tmp_path / "data.npz", target="y")
    model = HuberizedSVC().fit(X, y == "yes", offset=offset)
    with pytest.warns(UserWarning, match=WITHOUT):
        found = np.concatenate(list(model.predict(data)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(np.concatenate(list(model.predict(data, offset=0))), found)
    with pytest.raises(ValueError, match="None or 0"):
        model.predict(data, offset=1.0)
