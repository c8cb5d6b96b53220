"""Paths in nu and kappa, and of elastic nets with a fixed ridge: single fits are the reference."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification

import proxmargin as pm
from proxmargin import margin_path

X, Y = make_classification(80, 6, n_informative=4, flip_y=0.1, random_state=1)
GRIDS = [
    (pm.NuSVC, "nu", [0.9, 0.6, 0.5]),
    (pm.DWD, "nu", [2.0, 0.5, 0.1]),
    (pm.MarginFDA, "kappa", [0.8, 0.4, 0.0]),
    (pm.MarginMPM, "kappa", [0.5, 0.3, 0.1]),
]


@pytest.mark.parametrize(("make", "name", "values"), GRIDS, ids=lambda each: str(each)[:40])
def test_the_models_of_a_path_are_those_of_single_fits(make, name, values) -> None:
    estimator = make(tol=1e-9, standardize=True)
    path = margin_path(estimator, X, Y, **{f"{name}s": values[::-1]})
    np.testing.assert_array_equal(getattr(path, f"{name}s"), values[::-1])
    for index, value in enumerate(values[::-1]):
        alone = make(tol=1e-9, standardize=True, **{name: value}).fit(X, Y)
        np.testing.assert_allclose(path.coefs[index], alone.coef_, rtol=1e-3, atol=1e-4)
        assert path.certificates[index].converged
        model = path.model(index)
        assert getattr(model, name) == value
        np.testing.assert_allclose(path.scores(X)[index], model.decision_function(X), atol=1e-9)
    assert getattr(estimator, name) == make().get_params()[name]


@pytest.mark.parametrize("make", [pm.NuSVC, pm.DWD, pm.MarginFDA, pm.MarginMPM])
@pytest.mark.parametrize("data", [(X, Y), load_iris(return_X_y=True)], ids=["two", "three"])
@pytest.mark.filterwarnings("ignore")
def test_the_default_values_leave_every_class_a_margin(make, data) -> None:
    path = margin_path(make(tol=1e-4), *data, n_alphas=4)
    assert len(path) == 4
    assert np.all(np.diff(path.strengths) < 0)
    assert np.all(np.abs(path.coefs).max(axis=2) > 0)
    assert path.ended == "complete"
    assert path.coefs.shape[1] == (1 if np.unique(data[1]).size == 2 else 3)


def test_each_fit_starts_from_the_one_before() -> None:
    values = np.linspace(0.9, 0.5, 12)
    warm = margin_path(pm.DWD(), X, Y, nus=values)
    cold = [pm.DWD(nu=float(value)).fit(X, Y) for value in values]
    assert sum(c.n_iter for c in warm.certificates) < sum(m.certificate_.n_iter for m in cold)


@pytest.mark.parametrize("make", [pm.HuberizedSVC, pm.SparseLogisticRegression, pm.SquaredHingeSVC])
def test_a_fixed_ridge_beside_a_falling_l1_part(make) -> None:
    path = margin_path(make(tol=1e-9), X, Y, l2=0.05, n_alphas=5)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[-1] > 0
    assert path.l2 == 0.05
    np.testing.assert_allclose(path.l1s, path.l1s[0] * np.geomspace(1, 1e-3, 5))
    for index, l1 in enumerate(path.l1s):
        model = path.model(index)
        assert model.alpha * model.l1_ratio == pytest.approx(l1, rel=1e-12)
        assert model.alpha * (1 - model.l1_ratio) == pytest.approx(0.05, rel=1e-9)
        alone = make(alpha=l1 + 0.05, l1_ratio=l1 / (l1 + 0.05), tol=1e-9).fit(X, Y)
        np.testing.assert_allclose(path.coefs[index], alone.coef_, rtol=1e-3, atol=1e-5)
        assert path.certificates[index].relative_gap <= 1e-9


def test_values_of_another_parameter_are_refused() -> None:
    with pytest.raises(TypeError, match="the path is one in nu: give nus"):
        margin_path(pm.NuSVC(), X, Y, kappas=[0.5])
    with pytest.raises(TypeError, match="the path is one in alpha: give alphas"):
        margin_path(pm.HuberizedSVC(), X, Y, nus=[0.5])
    with pytest.raises(TypeError, match="l2 is for elastic nets with alpha"):
        margin_path(pm.L2SVC(), X, Y, l2=0.1)
    with pytest.raises(ValueError, match="stop_at"):
        margin_path(pm.HuberizedSVC(), X, Y, l2=0.1, stop_at=0.9)
    with pytest.raises(TypeError, match="linear model"):
        margin_path(pm.NuSVC(kernel="rbf"), X, Y)
    with pytest.raises(AttributeError, match="it has nus and no alphas"):
        _ = margin_path(pm.NuSVC(), X, Y, nus=[0.5]).alphas
