"""Margins other than one in the joint multiclass machine, against a second statement of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from proxmargin import (
    MulticlassSVC,
    MulticlassSVCCV,
    StabilitySelection,
    certify,
    critical_C,
    load_model,
    margin_path,
    save_model,
)
from tests.models.fitting.test_multiclass import PENALTIES, losses, norm, solved, weighted

BY_CLASS = np.array([[9.0, 1.5, 0.5], [2.0, 9.0, 0.0], [0.7, 1.0, 9.0]])
BY_SAMPLE = 0.25 + np.arange(45) % 4
# what users give
GIVEN: dict[str, Any] = {
    "a number": 2.5,
    "one a sample": BY_SAMPLE,
    "by class": BY_CLASS.tolist(),
}
WITH_MARGINS = ("hinge", "squared_hinge", "logistic", "lee")
every_kind = pytest.mark.parametrize("kind", GIVEN)
every_form = pytest.mark.parametrize(
    ("loss", "name"), [(loss, name) for loss in WITH_MARGINS for name in PENALTIES]
)


def of_wrong(kind: str, y: np.ndarray) -> np.ndarray:
    """The margin of each sample and class."""
    by_row = {"one a sample": BY_SAMPLE[:, None], "by class": BY_CLASS[y]}
    return np.broadcast_to(by_row.get(kind, np.array(2.5)), (y.size, 3))


def spent(model: Any, loss: str, kind: str) -> float:
    X, y, s = weighted()
    return float(s @ losses(loss, X @ model.coef_.T + model.intercept_, y, of_wrong(kind, y)))


@pytest.mark.sampled(4)
@every_form
@every_kind
def test_the_losses_as_a_penalty_reach_the_interior_point_optimum(loss, name, kind) -> None:
    X, y, s = weighted()
    model = MulticlassSVC(C=0.3, loss=loss, margins=GIVEN[kind], **PENALTIES[name]).fit(X, y, s)
    value = 0.3 * spent(model, loss, kind) + norm(name, model.coef_)
    best = solved(loss, name, 0.3, None, of_wrong(kind, y))
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(value, rel=1e-10)
    assert value == pytest.approx(best, rel=2e-6)
    assert model.certificate_.dual <= best * (1 + 1e-7)


@pytest.mark.sampled(5)
@every_form
@every_kind
def test_the_losses_within_a_budget_reach_the_interior_point_optimum(loss, name, kind) -> None:
    X, y, s = weighted()
    eta = 0.7 * float(s @ losses(loss, np.zeros((y.size, 3)), y, of_wrong(kind, y)))
    form = PENALTIES[name]
    model = MulticlassSVC(C=None, eta=eta, loss=loss, margins=GIVEN[kind], **form).fit(X, y, s)
    assert model.certificate_.converged
    assert spent(model, loss, kind) <= eta * (1 + 1e-7)
    best = solved(loss, name, None, eta, of_wrong(kind, y))
    assert norm(name, model.coef_) == pytest.approx(best, rel=2e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("solver", ["linear-program", "ssnal", "fbpd"])
@every_kind
def test_solvers_that_take_margins_agree(solver: str, kind: str) -> None:
    X, y, s = weighted()
    model = MulticlassSVC("l1", margins=GIVEN[kind], solver=solver, tol=1e-4).fit(X, y, s)
    assert model.certificate_.converged
    best = solved("hinge", "l1", 1.0, None, of_wrong(kind, y))
    assert model.certificate_.primal == pytest.approx(best, rel=2e-4)


def test_a_solver_with_the_margin_fixed_says_which_take_others() -> None:
    X, y, _ = weighted()
    MulticlassSVC("l1", margins=2.0, solver="multiplier-newton").fit(X, y)  # other units of one
    with pytest.raises(ValueError, match=r"'multiplier-newton' cannot take .*'ssnal'"):
        MulticlassSVC("l1", margins=GIVEN["one a sample"], solver="multiplier-newton").fit(X, y)


@pytest.mark.parametrize("name", ["l1", "group_l2", "group_linf"])
def test_equal_margins_are_the_problem_of_margins_one_in_other_units(name: str) -> None:
    X, y, s = weighted()
    form = PENALTIES[name]
    plain = MulticlassSVC(tol=1e-9, **form).fit(X, y, s)
    wider = MulticlassSVC(tol=1e-9, margins=3.0, **form).fit(X, y, s)
    assert wider.certificate_.primal == pytest.approx(3.0 * plain.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(wider.coef_, 3.0 * plain.coef_, atol=1e-3)
    halved = MulticlassSVC("l2", C=0.1 / 3.0, tol=1e-10).fit(X, y, s)
    ridge = MulticlassSVC("l2", C=0.1, margins=1.0 / 3.0, tol=1e-10).fit(X, y, s)
    np.testing.assert_allclose(
        3.0 * ridge.coef_, MulticlassSVC("l2", C=0.3, tol=1e-10).fit(X, y, s).coef_, atol=1e-4
    )
    assert halved.certificate_.converged


@every_kind
def test_everything_around_a_fit_knows_the_margins(kind: str, tmp_path: Any) -> None:
    X, y, s = weighted()
    model = MulticlassSVC("l1", C=0.2, margins=GIVEN[kind]).fit(X, y, s)
    assert certify(model, X, y, sample_weight=s).converged
    path = margin_path(clone(model), X, y, Cs=[0.05, 0.2], sample_weight=s)
    np.testing.assert_allclose(path.coefs[1], model.coef_, atol=1e-4)
    least = critical_C(clone(model), X, y, sample_weight=s)
    below, above = (clone(model).set_params(C=share * least).fit(X, y, s) for share in (0.99, 1.05))
    assert np.abs(below.coef_).max() < 1e-10
    assert np.abs(above.coef_).max() > 1e-4
    dropped = np.where(np.arange(45) < 10, 0.0, s)
    kept = GIVEN[kind][10:] if kind == "one a sample" else GIVEN[kind]
    part = clone(model).set_params(margins=kept).fit(X[10:], y[10:], s[10:])
    np.testing.assert_allclose(clone(model).fit(X, y, dropped).coef_, part.coef_, atol=1e-6)
    save_model(model, tmp_path / "model.pmz")
    loaded = load_model(tmp_path / "model.pmz")
    assert np.array_equal(loaded.margins, GIVEN[kind])
    assert loaded.fit(X, y, s).certificate_.primal == model.certificate_.primal


@every_kind
def test_searches_judge_held_out_rows_by_their_own_margins(kind: str) -> None:
    X, y, s = weighted()
    rows = np.arange(45)
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(2)]
    search = MulticlassSVCCV([0.1, 0.3], cv=folds, margins=GIVEN[kind]).fit(X, y, s)
    for column, C in enumerate([0.1, 0.3]):
        for place, (train, test) in enumerate(folds):
            given = GIVEN[kind][train] if kind == "one a sample" else GIVEN[kind]
            one = MulticlassSVC("l1", C=C, margins=given).fit(X[train], y[train], s[train])
            scores = X[test] @ one.coef_.T + one.intercept_
            each = losses("hinge", scores, y[test], of_wrong(kind, y)[test])
            mean = -float(np.average(each, weights=s[test]))
            assert search.cv_scores_[0, column, place] == pytest.approx(mean, rel=1e-3)
    StabilitySelection(MulticlassSVC("l1", margins=GIVEN[kind]), n_pairs=2, pfer=1, q=2).fit(X, y)


def test_two_classes_have_margins_too() -> None:
    X, y, s = weighted()
    X, y, s = X[y < 2], y[y < 2], s[y < 2]
    plain = MulticlassSVC("l1").fit(X, y, s)
    model = MulticlassSVC("l1", margins=[[0.0, 2.0], [2.0, 0.0]]).fit(X, y, s)
    assert model.coef_.shape == (1, X.shape[1])
    np.testing.assert_allclose(model.coef_, 2.0 * plain.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"margins": -1.0}, r"margins must be a number >= 0, one a sample, or a matrix .*got -1"),
        ({"margins": "one"}, "margins must be a number >= 0"),
        ({"margins": np.inf}, "margins must be a number >= 0"),
        (
            {"margins": [1.0, 2.0]},
            r"margins must be one a sample, \(45,\) here, got \(2,\): .* type a number",
        ),
        ({"margins": np.ones((2, 2))}, r"for each of the 3 classes, got shape \(2, 2\)"),
        ({"margins": 2.0, "loss": "multinomial"}, "loss='logistic' has"),
    ],
)
def test_margins_that_fit_no_data_are_refused(settings: dict[str, Any], told: str) -> None:
    X, y, _ = weighted()
    with pytest.raises(ValueError, match=told):
        MulticlassSVC(**settings).fit(X, y)
