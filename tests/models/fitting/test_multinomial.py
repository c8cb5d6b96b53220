"""Multinomial logistic regression with an elastic net, against other solvers of the same model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression as Peer

from proxmargin import (
    SVC,
    HuberizedSVC,
    MarginClassifier,
    MulticlassSVC,
    SparseLogisticRegression,
    alpha_max,
    certify,
    margin_path,
)
from proxmargin.losses import Multinomial
from proxmargin.penalties import ElasticNet, SumToZero
from proxmargin.solvers.choice.names import suitable
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.accelerated import FastProximalGradient

NETS = [(0.05, 0.5), (0.02, 1.0), (0.1, 0.0), (0.004, 0.8)]


@cache
def wine(rows: int = 178) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    chosen = np.sort(np.random.default_rng(3).permutation(y.size)[:rows])
    X, y = X[chosen], y[chosen]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def objective(model, X, y, alpha, l1_ratio, weights=None) -> float:
    """What the fitted numbers are worth, by the statement of the model."""
    W, s = model.coef_, np.ones(y.size) if weights is None else weights
    z = X @ W.T + model.intercept_
    losses = logsumexp(z, axis=1) - z[np.arange(y.size), y]
    net = alpha * l1_ratio * np.abs(W).sum() + alpha * (1 - l1_ratio) / 2 * (W**2).sum()
    return float(s @ losses / s.sum() + net)


def interior_point(X, y, alpha, l1_ratio, weights, fit_intercept) -> float:
    n, p = X.shape
    W, b = cp.Variable((3, p)), cp.Variable(3)
    z = X @ W.T + np.ones((n, 1)) @ cp.reshape(b, (1, 3), order="C")
    losses = cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(z, np.eye(3)[y]), axis=1)
    total = weights @ losses / weights.sum() + alpha * l1_ratio * cp.sum(cp.abs(W))
    total += alpha * (1 - l1_ratio) / 2 * cp.sum_squares(W)
    program = cp.Problem(cp.Minimize(total), [] if fit_intercept else [b == 0])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    return float(program.value)


@pytest.mark.parametrize(("alpha", "l1_ratio"), NETS)
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
def test_weighted_fits_reach_the_interior_point_optimum(alpha, l1_ratio, fit_intercept) -> None:
    X, y = wine(60)
    weights = 1.0 + np.arange(y.size) % 3
    best = interior_point(X, y, alpha, l1_ratio, weights, fit_intercept)
    model = SparseLogisticRegression(alpha, l1_ratio, fit_intercept=fit_intercept, tol=1e-8)
    model.fit(X, y, sample_weight=weights)
    value = objective(model, X, y, alpha, l1_ratio, weights)
    assert value == pytest.approx(best, rel=1e-6)
    assert value == pytest.approx(model.certificate_.primal, rel=1e-11)
    assert model.certificate_.dual <= best * (1 + 1e-8)
    assert np.any(model.intercept_) == fit_intercept
    assert abs(model.intercept_.sum()) <= 1e-12


@pytest.mark.parametrize("solver", ["auto", "m-pgh", "m-pgh-2", "fapg", "fapg-ws", "fapg-star"])
@pytest.mark.parametrize(("alpha", "l1_ratio"), NETS[:2])
def test_every_solver_gives_what_saga_gives(solver, alpha, l1_ratio) -> None:
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = Peer(
        penalty="elasticnet", solver="saga", l1_ratio=l1_ratio, C=1 / (alpha * y.size),
        tol=1e-9, max_iter=20_000,
    ).fit(X, y)  # fmt: skip
    model = SparseLogisticRegression(alpha, l1_ratio, solver=solver).fit(X, y)
    theirs = objective(peer, X, y, alpha, l1_ratio)
    assert objective(model, X, y, alpha, l1_ratio) == pytest.approx(theirs, rel=1e-6)
    assert model.certificate_.converged
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=5e-3)


def test_probabilities_are_those_of_the_multinomial_model() -> None:
    X, y = wine()
    model = SparseLogisticRegression(0.01).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), softmax(model.decision_function(X), axis=1))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    each = SparseLogisticRegression(0.01, multi_class="ovr").fit(X, y)
    assert len(each.certificate_) == 3
    shares = 1 / (1 + np.exp(-each.decision_function(X)))
    np.testing.assert_allclose(each.predict_proba(X), shares / shares.sum(axis=1, keepdims=True))


def test_alpha_max_is_where_the_first_coefficient_appears() -> None:
    X, y = wine()
    most = alpha_max(SparseLogisticRegression(l1_ratio=0.9), X, y)
    assert not SparseLogisticRegression(most * (1 + 1e-9), 0.9, tol=1e-9).fit(X, y).coef_.any()
    assert SparseLogisticRegression(most * 0.999, 0.9, tol=1e-10).fit(X, y).coef_.any()


def test_a_path_gives_the_single_fits() -> None:
    X, y = wine()
    path = margin_path(SparseLogisticRegression(l1_ratio=0.9, tol=1e-8), X, y, n_alphas=4, eps=0.05)
    assert path.n_nonzero[0] == 0
    for index in (1, 3):
        alone = SparseLogisticRegression(path.alphas[index], 0.9, tol=1e-8).fit(X, y)
        primal = path.certificates[index].primal
        assert primal == pytest.approx(alone.certificate_.primal, rel=2e-8)
        probabilities = path.model(index).predict_proba(X)
        np.testing.assert_allclose(probabilities, alone.predict_proba(X), atol=1e-3)


def test_sparse_data_weights_and_standardisation_give_the_same_model() -> None:
    X, y = wine()
    raw = 3.0 * X + 2.0
    weights = (np.arange(y.size) % 3).astype(float)
    repeated = np.repeat(np.arange(y.size), weights.astype(int))
    expected = SparseLogisticRegression(0.02, standardize=True, tol=1e-10)
    expected.fit(raw[repeated], y[repeated])
    for form in (raw, sparse.csr_matrix(raw), sparse.csc_matrix(raw)):
        model = SparseLogisticRegression(0.02, standardize=True, tol=1e-10)
        model.fit(form, y, sample_weight=weights)
        primal = model.certificate_.primal
        assert primal == pytest.approx(expected.certificate_.primal, rel=1e-9)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)


def test_more_features_than_samples_are_solved_on_a_working_set(rng) -> None:
    X, y = rng.standard_normal((40, 600)), np.arange(40) % 4
    X[:, :4] += 2.0 * np.eye(4)[y]
    model = SparseLogisticRegression(0.05, 0.9, tol=1e-8).fit(X, y)
    assert model.certificate_.solver == "class-newton"
    assert model.certificate_.converged
    assert 0 < np.count_nonzero(model.coef_) < 200


def test_a_class_without_weight_is_never_predicted() -> None:
    X, y = wine()
    model = SparseLogisticRegression(0.02, class_weight={2: 0.0}, tol=1e-8).fit(X, y)
    pair = SparseLogisticRegression(0.04, tol=1e-8).fit(X[y < 2], y[y < 2])
    assert model.certificate_.converged
    assert np.all(model.predict(X) < 2)
    # two classes: |W|_1 = |w|_1 and |W|^2 = |w|^2 / 2 with w the difference
    assert not model.coef_[2].any()
    difference = model.coef_[1] - model.coef_[0]
    assert pair.coef_.shape == (1, X.shape[1])
    assert np.corrcoef(difference, pair.coef_[0])[0, 1] > 0.98


def test_two_classes_equal_the_binary_model() -> None:
    X, y = wine()
    X, y = X[y < 2], y[y < 2]
    binary = SparseLogisticRegression(0.03, 0.5, tol=1e-10)
    assembly = binary._assemble(X, y, None)
    binary.fit(X, y)
    shares = np.full(y.size, 1 / y.size)
    joint = replace(
        assembly.problems[0],
        loss=Multinomial(assembly.targets.codes, shares, 2, float(y.size)),
        penalty=ElasticNet(0.015, 0.03),
        intercept=SumToZero(ElasticNet(0.0, 0.0)),
    )
    assert {"m-pgh", "fapg", "fapg-ws"} <= set(suitable(joint))
    solution = minimize(joint, FastProximalGradient(), stop=Stop(tol=1e-10))
    primal = solution.certificate.primal
    assert primal == pytest.approx(binary.certificate_.primal, rel=1e-9)
    difference = solution.point.coef[:, 1] - solution.point.coef[:, 0]
    np.testing.assert_allclose(difference, binary.coef_[0], atol=1e-4)


@pytest.mark.parametrize("seed", [3, 5])
def test_the_gradient_at_a_fit_of_few_samples_is_zero_but_for_rounding(seed: int) -> None:
    """Of a residual the gap is the square, which is rounding long before the residual is."""
    X, y = np.random.default_rng(seed).random((15, 30)), np.arange(15) % 3
    model = SparseLogisticRegression().fit(X, y)
    gradient = (model.predict_proba(X) - np.eye(3)[y]).T @ X / len(y)
    ridge = model.alpha * (1.0 - model.l1_ratio) * model.coef_
    slopes = gradient + ridge + model.alpha * model.l1_ratio * np.sign(model.coef_)
    assert np.abs(slopes[model.coef_ != 0]).max() <= 1e-11


JOINT = [
    SparseLogisticRegression(),
    SparseLogisticRegression(l1_ratio=1.0, penalty_factor=[1, 2, 1, 0.5]),
    SparseLogisticRegression(bounds=(-0.3, None)),
    MulticlassSVC(),
    MulticlassSVC("group_l2", groups="features", loss="logistic"),
    MulticlassSVC("l2", loss="squared_hinge"),
    MulticlassSVC("elasticnet", loss="lee"),
    MulticlassSVC(C=None, eta=20.0),
    HuberizedSVC(),
    MarginClassifier(),
]
FORMS = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_array}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", JOINT, ids=repr)
def test_published_intercepts_sum_to_zero(model: Any, form: str) -> None:
    X, y = load_iris(return_X_y=True)
    X, weights = X + np.array([0.0, 100.0, -5.0, 1e4]), np.arange(150) % 4
    for weighted in (None, weights):
        model = clone(model).set_params(standardize=True).fit(FORMS[form](X), y, weighted)
        assert abs(model.intercept_.sum()) <= 1e-14 * np.abs(model.intercept_).max()
        scores = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-8)
        told = certify(model, X, y, sample_weight=weighted)
        assert told.relative_gap <= 1e-5
        assert told.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
        again = clone(model).set_params(warm_start=True)
        again.__dict__.update(coef_=model.coef_, intercept_=model.intercept_)
        again.fit(FORMS[form](X), y, weighted)
        assert again.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize("strengths", [{"n_alphas": 4}])
@pytest.mark.parametrize("model", [SparseLogisticRegression(), MulticlassSVC()], ids=repr)
def test_intercepts_of_paths_sum_to_zero(model: Any, strengths: dict[str, int]) -> None:
    X, y = load_iris(return_X_y=True)
    path = margin_path(model.set_params(standardize=True), X, y, **strengths)
    np.testing.assert_allclose(path.intercepts.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [SVC(standardize=True), HuberizedSVC(multi_class="ovr"), SparseLogisticRegression()],
    ids=repr,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_intercepts_of_paths_are_those_of_single_fits(model: Any, classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y >= 3 - classes], y[y >= 3 - classes]
    path = margin_path(clone(model).set_params(tol=1e-10), X, y, n_alphas=3)
    for k, strength in enumerate(path.strengths):
        name = path.strength.name
        single = clone(model).set_params(tol=1e-10, **{name: strength}).fit(X, y)
        np.testing.assert_allclose(path.intercepts[k], single.intercept_, atol=1e-4)


def test_a_common_constant_of_the_intercepts_is_of_no_meaning() -> None:
    X, y = load_iris(return_X_y=True)
    model = SparseLogisticRegression(standardize=True).fit(X, y)
    moved = certify(
        SparseLogisticRegression(standardize=True), X, y, model.coef_, model.intercept_ + 7
    )
    assert moved.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    joint = HuberizedSVC().fit(X, y)
    with pytest.raises(ValueError, match="sums over the classes"):
        certify(HuberizedSVC(), X, y, joint.coef_, joint.intercept_ + 7)
