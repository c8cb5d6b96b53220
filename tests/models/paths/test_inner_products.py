"""Paths in inner products of the samples, against interior points, single fits and their laws."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from benchmarks.objective import Hinge, Logistic, MarginLoss, SquaredHinge, relative_gap
from benchmarks.objective import Problem as Stated
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from proxmargin import (
    L2SVC,
    SVC,
    SVCCV,
    ElasticNetSVC,
    HuberizedSVC,
    LogisticRegression,
    LogisticRegressionCV,
    margin_path,
)
from proxmargin.models.paths import chord_path
from proxmargin.models.paths.chord_path import PRODUCTS_BECAUSE, InnerProducts
from proxmargin.optimality.certificates.certify import certify, certify_together
from proxmargin.optimality.problem import Problem
from proxmargin.solvers.interior.active_set import ActiveSet
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.ridge.newton import RidgeNewton
from tests.oracles.models import binary_optimum

MODELS = [SVC, L2SVC, LogisticRegression]
NAMES = {ActiveSet.name, RidgeNewton.name}
STATED: dict[Any, MarginLoss] = {
    SVC: Hinge(),
    L2SVC: SquaredHinge(),
    LogisticRegression: Logistic(),
}
IN_WORDS = {SVC: "hinge", L2SVC: "squared_hinge", LogisticRegression: "logistic"}
GRID = np.geomspace(1e-4, 1e3, 12)
Data = tuple[Any, np.ndarray]


def wide(kind: str = "float64") -> Data:
    rng = np.random.default_rng(7)
    X = 3.0 + rng.standard_normal((36, 150))
    y = np.where(X[:, :4].sum(axis=1) - 12.0 + rng.standard_normal(36) > 0.4, 1, -1)
    if kind == "sparse":
        X[rng.random(X.shape) < 0.7] = 0.0
        return sparse.csr_array(X), y
    if kind == "repeated":
        X[5:15] = X[4]
    if kind == "flat":  # of a rank far below the number of samples
        X = X[:, :3] @ rng.standard_normal((3, 150))
    if kind == "int32":
        X = np.rint(50.0 * X)
    return X.astype("int32" if kind == "int32" else "float64"), y


def shares(count: int) -> np.ndarray:
    weights = np.random.default_rng(0).integers(0, 4, count).astype(float)
    weights[:4] = 1.0
    return weights


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("intercept", [True, False])
def test_every_model_is_an_optimum_of_an_interior_point_method(model: Any, intercept: bool) -> None:
    X, y = wide()
    weights = shares(y.size)
    path = margin_path(model(fit_intercept=intercept), X, y, Cs=GRID, sample_weight=weights)
    for k in (0, 4, 8):
        alpha = 1.0 / (GRID[k] * weights.sum())
        best = binary_optimum(
            X,
            y,
            fit_intercept=intercept,
            loss=IN_WORDS[model],
            alpha=alpha,
            l1_ratio=0.0,
            weights=weights,
        )
        value = best.value / alpha
        found = path.certificates[k]
        assert found.solver in NAMES
        assert found.primal <= value * (1.0 + model().tol)
        assert found.dual <= value
        assert abs(found.primal - found.gap) <= value * (1.0 + 1e-12)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["float64", "sparse", "repeated", "int32", "flat"])
@pytest.mark.parametrize("standardize", [False, True])
def test_paths_are_those_of_single_fits(model: Any, kind: str, standardize: bool) -> None:
    X, y = wide(kind)
    template = model(standardize=standardize, tol=1e-7)
    path = margin_path(template, X, y, Cs=GRID)
    solvers = {one.solver for one in path.certificates}
    assert kind == "flat" or solvers <= NAMES
    for k in range(0, GRID.size, 3):
        claimed = path.certificates[k]
        single = clone(template).set_params(C=GRID[k], tol=1e-9).fit(X, y).certificate_
        room = 1e-12 * abs(single.primal)
        assert claimed.converged
        assert single.dual - room <= claimed.primal <= single.primal + claimed.gap + room
        assert claimed.dual <= single.primal + room


@pytest.mark.parametrize("model", MODELS)
def test_published_coefficients_meet_the_tolerance_by_a_certificate_of_their_own(
    model: Any,
) -> None:
    X, y = wide()
    path = margin_path(model(), X, y, Cs=GRID)
    for k, C in enumerate(GRID):
        stated = Stated(X, y.astype(float), STATED[model], l1=0.0, l2=1.0 / (C * y.size))
        coef, intercept = path.coefs[k, 0], float(path.intercepts[k, 0])
        scores = y * (X @ coef + intercept)
        kept = np.abs(scores - 1.0) < 1e-6  # margins at a kink, whose dual points it does not see
        duals = [_dual_of(X, y, coef, scores, kept, stated)] if model is SVC else []
        assert relative_gap(stated, coef, intercept, duals) <= model().tol


def _dual_of(
    X: np.ndarray, y: np.ndarray, coef: np.ndarray, t: np.ndarray, kept: np.ndarray, stated: Stated
) -> np.ndarray:
    """Dual coordinates of a hinge: by least squares where its margins are at the kink."""
    beta = np.where(t < 1.0, 1.0, 0.0)
    beta[kept] = 0.0
    columns = np.vstack([(y[:, None] * X).T, y[None, :]]) / y.size
    right = np.append(stated.l2 * coef, 0.0) - columns @ beta
    beta[kept] = np.linalg.lstsq(columns[:, kept], right, rcond=None)[0]
    return beta


@pytest.mark.parametrize("delta", [0.05, 1.0])
def test_a_huberized_hinge_with_a_ridge_alone(delta: float) -> None:
    X, y = wide()
    template = HuberizedSVC(l1_ratio=0.0, delta=delta)
    path = margin_path(template, X, y, n_alphas=8)
    assert {one.solver for one in path.certificates} == {ActiveSet.name}
    single = clone(template).set_params(alpha=float(path.alphas[5]), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(path.coefs[5], single.coef_, atol=1e-6 * np.abs(single.coef_).max())


@pytest.mark.parametrize("model", MODELS)
def test_classes_against_the_rest_share_their_inner_products(model: Any) -> None:
    X, y = wide()
    y = y + 3 * (np.arange(y.size) % 3 == 0)
    path = margin_path(model(standardize=True), X, y, Cs=GRID[::3])
    for k, certificate in enumerate(path.certificates):
        assert {one.solver for one in certificate} <= NAMES
        single = model(standardize=True, C=GRID[3 * k], tol=1e-9).fit(X, y)
        assert certificate.primal <= single.certificate_.primal * (1.0 + 2e-6)
        scores = X @ single.coef_.T + single.intercept_
        np.testing.assert_allclose(path.scores(X)[k], scores, atol=5e-3 * np.abs(scores).max())


def test_a_strong_ridge_leaves_no_coordinate_of_balanced_classes_inside_its_box() -> None:
    X, _ = wide()
    y = np.where(np.arange(36) % 2, 1, -1)
    path = margin_path(SVC(), X, y, Cs=[1e-7, 1e-6, 1e-5])
    assert {one.solver for one in path.certificates} == {ActiveSet.name}
    assert all(one.converged for one in path.certificates)


@pytest.mark.parametrize("model", MODELS)
def test_the_path_goes_on_after_a_strength_that_was_given_up(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = wide()
    whole, calls = InnerProducts.solved, []

    def given_up(self: InnerProducts, problems: Sequence[Problem]) -> list[Solution]:
        calls.append(len(problems))
        return [] if len(calls) % 2 == 0 else whole(self, problems[:3])

    expected = margin_path(model(tol=1e-10), X, y, Cs=GRID)
    monkeypatch.setattr(InnerProducts, "solved", given_up)
    path = margin_path(model(tol=1e-10), X, y, Cs=GRID)
    assert len({one.because for one in path.certificates}) == 2
    values = [[one.primal for one in each.certificates] for each in (path, expected)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_strengths_that_cannot_be_met_are_tried_about_once(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, solved = [], InnerProducts.solved

    def counted(self: InnerProducts, problems: Sequence[Problem]) -> list[Solution]:
        tried.append(len(problems))
        return solved(self, problems)

    monkeypatch.setattr(InnerProducts, "solved", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        margin_path(model(tol=1e-17), *wide(), n_alphas=20)
    assert 20 <= sum(tried) <= 2 * 20


@pytest.mark.parametrize("model", MODELS)
def test_several_calls_give_the_same_path(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide()
    expected = margin_path(model(), X, y, Cs=GRID)
    monkeypatch.setattr(chord_path, "ENTRIES_PER_CALL", 2 * X.shape[1])
    path = margin_path(model(), X, y, Cs=GRID)
    np.testing.assert_allclose(path.coefs, expected.coefs, rtol=1e-9, atol=1e-12)


def test_data_are_read_a_few_times_a_path() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2000))
    y = np.where(X[:, :30].sum(axis=1) > 0, 1, -1)
    for model in MODELS:
        path = margin_path(model(), X, y, Cs=np.geomspace(1e-5, 1.0, 50))
        assert sum(one.n_passes for one in path.certificates) < 10


def test_what_these_paths_do_not_solve_is_left_to_others() -> None:
    X, y = wide()
    for model in (SVC(solver="interior-point"), SVC(max_iter=50), SVC(time_limit=60.0)):
        path = margin_path(model, X, y, Cs=GRID[:2])
        assert all(one.because != PRODUCTS_BECAUSE for one in path.certificates)
    tall = margin_path(SVC(), X[:, :20], y, Cs=GRID[:2])
    mixed = margin_path(ElasticNetSVC(l1_ratio=0.5), X, y, n_alphas=2, eps=0.5)
    shifted = margin_path(LogisticRegression(), X, y, Cs=GRID[:2], offset=np.full(36, 0.3))
    for path in (tall, mixed, shifted):
        assert all(one.because != PRODUCTS_BECAUSE for one in path.certificates)


@pytest.mark.parametrize("model", [SVCCV, LogisticRegressionCV])
def test_held_out_rows_have_no_part_in_their_fold(model: Any) -> None:
    X, y = wide()
    splits = list(StratifiedKFold(3).split(X, y))[:1]
    search = model(Cs=GRID[::3], cv=splits, standardize=True, keep_scores=True, refit=False)
    honest = clone(search).fit(X, y).oof_scores_
    test = splits[0][1]
    poisoned, labels = X.copy(), y.copy()
    poisoned[test[1:]] = 1e30
    labels[test] = -labels[test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores of 1e30 overflow
        found = clone(search).fit(poisoned, labels).oof_scores_
    np.testing.assert_array_equal(found[0, :, test[0]], honest[0, :, test[0]])


@pytest.mark.parametrize("model", MODELS)
def test_certificates_together_are_those_one_by_one(model: Any) -> None:
    X, y = wide()
    assembly = model(standardize=True)._assemble(X, y, None)
    problems, points, duals = [], [], []
    for C in GRID[::2]:
        template = model(standardize=True, C=C).fit(X, y)
        (problem,) = template._reassembled(assembly).problems
        (point,) = assembly.points(template.coef_, template.intercept_)
        gap = certify(problem, point)
        problems.append(problem)
        points.append(point)
        duals.append(gap.dual_point)
    together = certify_together(problems, points, duals, 1e-6)
    for problem, point, dual, found in zip(problems, points, duals, together, strict=True):
        alone = certify(problem, point, dual=dual, tol=1e-6)
        assert found.primal == pytest.approx(alone.primal, rel=1e-12)
        assert found.gap == pytest.approx(alone.gap, rel=1e-6, abs=1e-12 * alone.primal)
        np.testing.assert_allclose(found.point.coef, alone.point.coef, rtol=1e-12)
