"""Paths of models of all classes together, against single fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine

from proxmargin import MulticlassSVC, SparseLogisticRegression, margin_path
from proxmargin.models.paths.chord_path import JOINT_BECAUSE, JointPath
from proxmargin.penalties import ElasticNet
from proxmargin.solvers.l1.class_newton import ClassNewton
from tests.cases.problems import multiclass_problem, smooth_class_problem
from tests.shared_data import load_set, needs_data


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_every_strength_is_certified_and_has_the_optimum_of_a_single_fit(l1_ratio, tol) -> None:
    X, y = load_wine(return_X_y=True)
    weights = (np.arange(y.size) % 3).astype(float)
    template = SparseLogisticRegression(l1_ratio=l1_ratio, standardize=True, tol=tol)
    path = margin_path(template, X, y, n_alphas=12, sample_weight=weights)
    for number in range(0, 12, 3):
        certificate = path.certificates[number]
        assert certificate.because == JOINT_BECAUSE
        assert certificate.relative_gap <= tol
        single = SparseLogisticRegression(
            path.alphas[number], l1_ratio, standardize=True, tol=1e-10, solver="fapg-ssnal"
        ).fit(X, y, sample_weight=weights)
        within = certificate.gap + single.certificate_.gap
        assert abs(certificate.primal - single.certificate_.primal) <= within
        np.testing.assert_allclose(
            path.scores(X)[number], single.decision_function(X), atol=3.0 * np.sqrt(tol)
        )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_paths_in_C_of_pairwise_squared_hinges_go_the_same_way(form) -> None:
    X, y = load_iris(return_X_y=True)
    template = MulticlassSVC(penalty="l1", loss="squared_hinge", tol=1e-8)
    path = margin_path(template, form(X), y, n_alphas=8)
    assert path.certificates[-1].because == JOINT_BECAUSE
    for number in (3, 7):
        model = MulticlassSVC(
            C=path.Cs[number], penalty="l1", loss="squared_hinge", tol=1e-8, solver="fapg-ssnal"
        ).fit(form(X), y)
        assert path.certificates[number].primal == pytest.approx(
            model.certificate_.primal, rel=1e-7
        )


def test_a_strength_that_is_not_solved_is_a_single_fit(monkeypatch) -> None:
    X, y = load_wine(return_X_y=True)
    template = SparseLogisticRegression(l1_ratio=0.9, standardize=True)
    expected = margin_path(template, X, y, n_alphas=4)
    solved = JointPath.solved
    last = expected.alphas[1] * 0.9

    def at_first(self, problems):
        return solved(self, problems) if problems[0].penalty.l1 != last * 0.9 else []

    monkeypatch.setattr(JointPath, "solved", at_first)
    path = margin_path(template, X, y, alphas=[*expected.alphas[:2], last, *expected.alphas[2:]])
    reasons = [certificate.because == JOINT_BECAUSE for certificate in path.certificates]
    assert reasons == [True, True, False, True, True]
    np.testing.assert_allclose(path.coefs[[0, 1, 3, 4]], expected.coefs, atol=1e-3)


def test_more_coefficients_than_the_solver_takes_are_not_solved(rng) -> None:
    path = JointPath(1e-6, polish=True)
    path.solver = ClassNewton(smallest=1, largest=2)
    assert path.solved([smooth_class_problem(rng, penalty=ElasticNet(1e-3))]) == []


@needs_data("data/srbct.npz")
def test_strengths_of_wide_data_take_a_few_steps_each() -> None:
    X, y = load_set("srbct")
    template = SparseLogisticRegression(l1_ratio=0.95, standardize=True, tol=1e-4)
    path = margin_path(template, X, y, n_alphas=30)
    assert max(certificate.n_iter for certificate in path.certificates) <= 12
    assert max(certificate.n_passes for certificate in path.certificates) <= 12.0


def test_only_problems_of_the_solver_are_taken(rng) -> None:
    assert JointPath.takes(smooth_class_problem(rng))
    assert not JointPath.takes(smooth_class_problem(rng, penalty=ElasticNet(0.0, 0.1)))
    assert not JointPath.takes(multiclass_problem(rng))


def test_the_multinomial_loss_with_single_coefficients_is_sparse_logistic_regression():
    X, y = load_wine(return_X_y=True)
    strength = 0.02
    model = MulticlassSVC("l1", C=1 / (178 * strength), loss="multinomial", standardize=True)
    same = SparseLogisticRegression(strength, 1.0, standardize=True, tol=1e-9)
    model.set_params(tol=1e-9).fit(X, y)
    same.fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, same.intercept_, atol=1e-4)
