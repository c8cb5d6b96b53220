"""Constants of the papers' methods: their defaults as printed, and others by options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from proxmargin import (
    DWD,
    SVC,
    ElasticNetSVC,
    History,
    HuberizedSVC,
    LogisticRegression,
    MarginMPM,
    NuSVC,
)


def first_state(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    seen: list[Any] = []
    model.set_params(max_iter=0, callbacks=[lambda report: seen.append(report.state)]).fit(X, y)
    return seen[0]


@pytest.mark.parametrize("delta", [1.0, 0.1])
def test_the_first_step_constants_are_those_of_xu_et_al(delta: float) -> None:
    X, y = load_iris(return_X_y=True)
    squares = 1.0 + np.square(X).sum(axis=1)
    model = HuberizedSVC(delta=delta, solver="b-pgh")
    binary = first_state(model, X[:100], y[:100])
    L_f = squares[:100].sum() / (100 * delta)  # (8)
    assert binary.lipschitz == pytest.approx(2 * L_f / 100)
    joint = first_state(HuberizedSVC(delta=delta, solver="m-pgh", multi_class="joint"), X, y)
    L_m = 3 * squares.sum() / (150 * delta)  # (13)
    assert joint.lipschitz == pytest.approx(L_m / (150 * 3))


@pytest.mark.parametrize("solver", ["b-pgh", "apg", "fapg", "fapg-star"])
def test_the_first_step_constant_can_be_set(solver: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(solver=solver, solver_options={"first_lipschitz": 123.0})
    assert first_state(model, X, y).lipschitz == 123.0


@pytest.mark.parametrize("backtracking", [True, False])
def test_a_first_step_constant_far_above_the_bound_is_the_bound(backtracking: bool) -> None:
    # with L_0 = 1e6 the steps are so short that rule (20) held at a gap of 5 %
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    L_f = 1.0 + np.square(X).sum(axis=1).mean()
    options = {"first_lipschitz": 1e6, "backtracking": backtracking}
    model = HuberizedSVC(delta=1.0, solver="b-pgh", solver_options=options)
    assert first_state(model, X, y).lipschitz == pytest.approx(L_f)
    model.set_params(stopping="relative-change", max_iter=None, callbacks=()).fit(X, y)
    printed = {"first_lipschitz": L_f}
    plain = clone(model).set_params(solver_options=printed).fit(X, y)
    assert model.n_iter_ == plain.n_iter_
    assert model.certificate_.relative_gap == pytest.approx(plain.certificate_.relative_gap)


@pytest.mark.parametrize("solver", ["b-pgh-2", "m-pgh-2"])
@pytest.mark.parametrize("first", [1e-3, 1e9])
def test_two_stages_reach_the_same_optimum_from_any_step_constant(
    solver: str, first: float
) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = (X[50:], y[50:]) if solver == "b-pgh-2" else (X, y)
    options = {"first_lipschitz": first, "eta": 2.0}
    model = HuberizedSVC(alpha=0.05, solver=solver, solver_options=options).fit(X, y)
    newton = HuberizedSVC(alpha=0.05, tol=1e-9).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(newton.certificate_.primal, rel=1.1e-6)


def test_fits_from_any_step_constant_are_the_same() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    certificates = [
        SVC(solver="fapg-star", solver_options={"first_lipschitz": first}).fit(X, y).certificate_
        for first in (1e-3, 1.0, None)
    ]
    assert all(certificate.converged for certificate in certificates)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("solver", ["apg", "fapg", "fapg-star"])
@pytest.mark.parametrize(
    "model", [SVC(), LogisticRegression(), DWD(), NuSVC(), MarginMPM()], ids=repr
)
def test_fits_from_any_first_point_are_the_same(model: Any, solver: str) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    plain = model.set_params(tol=1e-7).fit(X, y).certificate_
    for level in (0.0, 0.3):
        options = {"first_point": level, "max_stalled": np.inf}
        other = clone(model).set_params(solver=solver, solver_options=options)
        moved = other.set_params(max_iter=100_000).fit(X, y).certificate_
        assert moved.converged
        assert moved.primal == pytest.approx(plain.primal, rel=1e-6)


def test_the_first_dual_point_is_as_asked_for() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    weights = np.repeat([1.0, 3.0], 50)
    # logistic loss: alpha_0 = xi e, as Ito et al. start
    options = {"first_point": 0.0, "floor": 1e-3}
    model = LogisticRegression(solver="apg", solver_options=options)
    np.testing.assert_allclose(first_state(model, X, y).u * 10.0, 1e-3)
    # without an intercept nothing cuts the box, and weights do not change the level
    model = SVC(solver="fapg", solver_options={"first_point": 0.25}, fit_intercept=False)
    seen: list[Any] = []
    model.set_params(max_iter=0, callbacks=[lambda report: seen.append(report.state)])
    model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(seen[0].u, 0.25 * np.sqrt(weights / weights.sum()))


def test_the_first_coefficients_are_as_asked_for() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[:100] * [1.0, 10.0, 0.1, 1.0], y[:100]
    options = {"first_point": 0.5, "scaled": False}
    plain = first_state(HuberizedSVC(solver="fapg", solver_options=options), X, y)
    np.testing.assert_allclose(plain.u, 0.5)
    # the same scores in the coordinates of features of unit variance
    options = {"first_point": 0.5}
    scaled = first_state(HuberizedSVC(solver="fapg", solver_options=options), X, y)
    np.testing.assert_allclose(scaled.forward, plain.forward)


def test_plain_coordinate_descent_sweeps_over_all_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 200))
    y = X[:, 0] > 0
    fits = {
        plain: HuberizedSVC(alpha=0.05, solver="gcd", solver_options={"plain": plain}).fit(X, y)
        for plain in (True, False)
    }
    primal = [fit.certificate_.primal for fit in fits.values()]
    assert primal[0] == pytest.approx(primal[1], rel=1e-6)
    history = History()
    fits[True].set_params(callbacks=[history], max_iter=10).fit(X, y)
    # a sweep reads every column about twice
    assert history.rows[-1]["n_passes"] >= 10


def test_the_two_stage_method_as_printed_ends_with_the_support_of_stage_one() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 120))
    X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
    y = X[:, :5].sum(axis=1) > 0
    options = {"alpha": 0.02, "l1_ratio": 1.0, "solver": "b-pgh-2"}
    loose = {"first_tol": 0.05}  # a support that is wrong
    with pytest.warns(UserWarning, match="stopped before its tolerance"):
        printed = HuberizedSVC(**options, solver_options={**loose, "repair": False}).fit(X, y)
    repaired = HuberizedSVC(**options, solver_options=loose).fit(X, y)
    assert repaired.certificate_.converged
    assert not printed.certificate_.converged
    assert printed.certificate_.primal > repaired.certificate_.primal * (1 + 1e-6)
    # its bound still holds
    assert printed.certificate_.dual <= repaired.certificate_.primal


def test_penalty_parameters_of_either_paper_by_name() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    own = {"setting": "xu"}, {"rho_margin": 100.0, "rho_coef": 50.0 * 100}
    courses = []
    for options in (*own, {}):
        model = ElasticNetSVC(alpha=0.01, solver="admm", solver_options=options, max_iter=50)
        with pytest.warns(UserWarning, match="iteration limit"):
            courses.append(model.set_params(tol=1e-12).fit(X, y).coef_)
    np.testing.assert_allclose(courses[0], courses[1], rtol=1e-9)
    assert not np.allclose(courses[0], courses[2])


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("b-pgh", {"first_lipschitz": 0.0}, "first_lipschitz must be a number > 0"),
        ("fapg", {"first_lipschitz": np.inf}, "first_lipschitz must be a number > 0"),
        ("fapg", {"first_point": np.nan}, "first_point must be a finite number"),
        ("fapg", {"first_point": "centre"}, "first_point must be a finite number"),
    ],
)
def test_constants_that_are_none_are_refused(
    solver: str, options: dict[str, Any], message: str
) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        HuberizedSVC(solver=solver, solver_options=options).fit(X[:100], y[:100])


def test_an_unknown_setting_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="liu, xu"):
        ElasticNetSVC(solver="admm", solver_options={"setting": "boyd"}).fit(X[:100], y[:100])
