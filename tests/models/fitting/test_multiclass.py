"""The sparse multiclass machine: every form of it, against a second statement of the model."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from proxmargin import SVC, MulticlassSVC, SquaredHingeSVC, critical_C, load_model, save_model

LOSSES = ["hinge", "squared_hinge", "logistic", "multinomial", "lee"]
GROUPS = [0, 0, 1, 1, 2]
PENALTIES: dict[str, dict[str, Any]] = {
    "l1": {"penalty": "l1"},
    "l2": {"penalty": "l2"},
    "elasticnet": {"penalty": "elasticnet", "l1_ratio": 0.3},
    "group_l2": {"penalty": "group_l2", "groups": GROUPS},
    "group_linf": {"penalty": "group_linf", "groups": GROUPS},
    "group_l2 of features": {"penalty": "group_l2", "groups": "features"},
    "group_linf of features": {"penalty": "group_linf", "groups": "features"},
}
FORMS = [(loss, name) for loss in LOSSES for name in PENALTIES]
every_form = pytest.mark.parametrize(("loss", "name"), FORMS)


@cache
def wine(rows: int = 45, features: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Some standardised rows and features, with classes that overlap."""
    X, y = load_wine(return_X_y=True)
    chosen = np.sort(np.random.default_rng(3).permutation(y.size)[:rows])
    X, y = X[chosen, :features], y[chosen]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def losses(loss: str, scores: np.ndarray, y: np.ndarray, margins: Any = 1.0) -> np.ndarray:
    own = scores[np.arange(y.size), y][:, None]
    wrong = np.arange(scores.shape[1]) != y[:, None]
    if loss == "hinge":
        return (margins * wrong + scores - own).max(axis=1)
    if loss == "squared_hinge":
        return (wrong * np.maximum(margins + scores - own, 0) ** 2).sum(axis=1)
    if loss in ("logistic", "multinomial"):
        return logsumexp(margins * wrong * (loss == "logistic") + scores - own, axis=1)
    return (wrong * np.maximum(margins + scores, 0)).sum(axis=1)


def blocks(name: str, features: int, classes: int) -> list[tuple[Any, Any]]:
    if name.endswith("features"):
        return [(slice(None), j) for j in range(features)]
    codes = np.array(GROUPS)
    return [(k, np.flatnonzero(codes == g)) for k in range(classes) for g in range(codes.max() + 1)]


def norm(name: str, W: np.ndarray) -> float:
    if "group" not in name:
        l1, l2 = {"l1": (1, 0), "l2": (0, 1), "elasticnet": (0.3, 0.7)}[name]
        return l1 * np.abs(W).sum() + l2 / 2 * (W**2).sum()
    order = 2 if "l2" in name else np.inf
    return sum(np.linalg.norm(W[block], order) for block in blocks(name, W.shape[1], len(W)))


@cache
def optimum(loss: str, name: str, C: float | None, eta: float | None) -> float:
    return solved(loss, name, C, eta)


def solved(loss: str, name: str, C: float | None, eta: float | None, margins: Any = None) -> float:
    """By an interior-point solver, with weights 1, 2, 3, 1, ..."""
    X, y = wine()
    n, p = X.shape
    s = 1.0 + np.arange(n) % 3
    W, b = cp.Variable((3, p)), cp.Variable(3)
    z = X @ W.T + np.ones((n, 1)) @ cp.reshape(b, (1, 3), order="C")
    own = cp.sum(cp.multiply(z, np.eye(3)[y]), axis=1)
    wrong = (np.arange(3) != y[:, None]).astype(float)
    known = np.full((n, 3), 0.0 if loss == "multinomial" else 1.0)
    margin = known if margins is None else np.broadcast_to(margins, (n, 3))
    off = cp.vstack([z[:, k] - own + margin[:, k] * wrong[:, k] for k in range(3)])
    total = {
        "hinge": lambda: s @ cp.max(off, axis=0),
        "squared_hinge": lambda: cp.sum(cp.multiply(s * wrong.T, cp.square(cp.pos(off)))),
        "logistic": lambda: s @ cp.log_sum_exp(off, axis=0),
        "multinomial": lambda: s @ cp.log_sum_exp(off, axis=0),
        "lee": lambda: cp.sum(cp.multiply(s[:, None] * wrong, cp.pos(margin + z))),
    }[loss]()
    if "group" in name:
        order = 2 if "l2" in name else "inf"
        g = sum(cp.norm(W[block], order) for block in blocks(name, p, 3))
    else:
        l1, l2 = {"l1": (1, 0), "l2": (0, 1), "elasticnet": (0.3, 0.7)}[name]
        g = l1 * cp.sum(cp.abs(W)) + l2 / 2 * cp.sum_squares(W)
    limits = [cp.sum(W, axis=0) == 0, cp.sum(b) == 0] if loss == "lee" else []
    objective = g if C is None else C * total + g
    program = cp.Problem(cp.Minimize(objective), limits + ([total <= eta] if C is None else []))
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def weighted() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = wine()
    return X, y, 1.0 + np.arange(y.size) % 3


def spent(model: MulticlassSVC, loss: str) -> float:
    X, y, s = weighted()
    return float(s @ losses(loss, X @ model.coef_.T + model.intercept_, y))


@pytest.mark.sampled(4)
@every_form
@pytest.mark.parametrize("C", [0.03, 0.5])
def test_the_losses_as_a_penalty_reach_the_interior_point_optimum(loss, name, C) -> None:
    X, y, s = weighted()
    model = MulticlassSVC(C=C, loss=loss, **PENALTIES[name]).fit(X, y, sample_weight=s)
    value = C * spent(model, loss) + norm(name, model.coef_)
    best = optimum(loss, name, C, None)
    assert model.certificate_.converged
    assert value == pytest.approx(best, rel=2e-6)
    assert value == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert model.certificate_.dual <= best * (1 + 1e-6)
    if loss == "lee":
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9)
    assert abs(model.intercept_.sum()) <= 1e-9


@pytest.mark.sampled(3)
@every_form
def test_the_losses_within_a_budget_reach_the_interior_point_optimum(loss, name) -> None:
    X, y, s = weighted()
    null = float(s @ losses(loss, np.zeros((y.size, 3)), y))
    eta = 0.6 * null
    model = MulticlassSVC(C=None, eta=eta, loss=loss, **PENALTIES[name])
    model.fit(X, y, sample_weight=s)
    best = optimum(loss, name, None, eta)
    certificate = model.certificate_
    assert certificate.converged
    assert spent(model, loss) <= eta * (1 + 1e-8)
    assert norm(name, model.coef_) == pytest.approx(best, rel=1e-5)
    assert certificate.primal == pytest.approx(norm(name, model.coef_), rel=1e-5)
    assert certificate.dual <= best * (1 + 1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["l1", "l2", "group_linf"])
def test_the_paper_s_method_is_within_a_thousandth_or_says_how_far_it_got(name) -> None:
    X, y, s = weighted()
    for settings in ({"C": 0.1}, {"C": None, "eta": 60.0}):
        model = MulticlassSVC(solver="fbpd", tol=1e-3, max_iter=3000, **settings, **PENALTIES[name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, sample_weight=s)
        best = optimum("hinge", name, settings["C"], settings.get("eta"))
        certificate = model.certificate_
        assert certificate.dual <= best * (1 + 1e-6)
        assert certificate.primal >= best * (1 - 1e-6)
        assert certificate.primal - best <= certificate.gap * (1 + 1e-6)
        if certificate.converged:
            assert certificate.primal <= best * (1 + 2e-3)


@pytest.mark.parametrize("name", ["l1", "group_linf", "l2", "group_l2"])
def test_the_budget_that_a_regularised_model_spends_gives_its_penalty_back(name) -> None:
    X, y, s = weighted()
    model = MulticlassSVC(C=0.1, tol=1e-9, **PENALTIES[name]).fit(X, y, sample_weight=s)
    again = MulticlassSVC(C=None, eta=spent(model, "hinge"), **PENALTIES[name])
    again.fit(X, y, sample_weight=s)
    expected = norm(name, model.coef_)
    assert again.certificate_.primal == pytest.approx(expected, rel=1e-5)


def test_a_budget_above_the_null_loss_gives_the_zero_model() -> None:
    X, y, s = weighted()
    for loss in LOSSES:
        for name in ("l1", "l2"):
            null = float(s @ losses(loss, np.zeros((y.size, 3)), y))
            model = MulticlassSVC(C=None, eta=null, loss=loss, **PENALTIES[name])
            model.fit(X, y, sample_weight=s)
            assert not model.coef_.any()
            assert model.certificate_.primal == 0.0
            assert model.certificate_.converged
            assert spent(model, loss) <= null * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["l1", "l2"])
def test_a_budget_below_the_least_loss_is_an_error_that_names_it(loss, name, rng) -> None:
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 3
    W, b = cp.Variable((3, 2)), cp.Variable(3)
    z = X @ W.T + np.ones((40, 1)) @ cp.reshape(b, (1, 3), order="C")
    own = cp.sum(cp.multiply(z, np.eye(3)[y]), axis=1)
    wrong = (np.arange(3) != y[:, None]).astype(float)
    margin = 0.0 if loss == "multinomial" else 1.0
    off = cp.vstack([z[:, k] - own + margin * wrong[:, k] for k in range(3)])
    total = {
        "hinge": lambda: cp.sum(cp.max(off, axis=0)),
        "squared_hinge": lambda: cp.sum(cp.multiply(wrong.T, cp.square(cp.pos(off)))),
        "logistic": lambda: cp.sum(cp.log_sum_exp(off, axis=0)),
        "multinomial": lambda: cp.sum(cp.log_sum_exp(off, axis=0)),
        "lee": lambda: cp.sum(cp.multiply(wrong, cp.pos(1 + z))),
    }[loss]()
    limits = [cp.sum(W, axis=0) == 0, cp.sum(b) == 0] if loss == "lee" else []
    least = cp.Problem(cp.Minimize(total), limits).solve(solver=cp.CLARABEL)
    model = MulticlassSVC(C=None, eta=0.9 * least, loss=loss, **PENALTIES[name])
    with pytest.raises(ValueError, match="less than the weighted losses can sum to") as error:
        model.fit(X, y)
    named = float(str(error.value).rsplit(" ", 1)[1])
    assert named == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("name", ["l1", "elasticnet", "group_l2", "group_linf of features"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_critical_C_is_where_coefficients_appear(loss, name) -> None:
    X, y, s = weighted()
    estimator = MulticlassSVC(C=None, eta=3.0, loss=loss, **PENALTIES[name])
    C = critical_C(estimator, X, y, s)
    for factor, expected in ((0.999, False), (1.002, True)):
        model = MulticlassSVC(C=factor * C, loss=loss, tol=1e-10, **PENALTIES[name])
        model.fit(X, y, sample_weight=s)
        assert bool(np.abs(model.coef_).max() > 1e-7) == expected
    assert critical_C(MulticlassSVC(penalty="l2"), X, y) == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["l1", "l2"])
def test_two_classes_have_one_row_and_predict_like_the_binary_models(loss, name) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[:150, :8] - X[:150, :8].mean(axis=0)) / X[:150, :8].std(axis=0)
    y = np.array(["a", "b"])[y[:150]]
    model = MulticlassSVC(C=0.1, loss=loss, tol=1e-8, **PENALTIES[name]).fit(X, y)
    assert model.coef_.shape == (1, 8)
    assert model.intercept_.shape == (1,)
    assert list(model.classes_) == ["a", "b"]
    scores = model.decision_function(X)
    assert scores.shape == (150,)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "b", "a"))
    t = np.where(y == "b", 1.0, -1.0) * scores
    each = {
        "hinge": np.maximum(1 - t, 0),
        "squared_hinge": np.maximum(1 - t, 0) ** 2,
        "logistic": np.logaddexp(0, 1 - t),
        "multinomial": np.logaddexp(0, -t),
        "lee": np.maximum(1 - t, 0),
    }[loss]
    # W = (-w / 2, w / 2), or (-w, w) where scores are absolute
    W = model.coef_ * (1.0 if loss == "lee" else 0.5)
    value = 0.1 * each.sum() + norm(name, np.vstack([-W, W]))
    assert value == pytest.approx(model.certificate_.primal, rel=1e-7)


def test_two_classes_with_pairwise_squared_hinges_are_the_binary_machine() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[:150, :8] - X[:150, :8].mean(axis=0)) / X[:150, :8].std(axis=0)
    model = MulticlassSVC(C=0.1, loss="squared_hinge", tol=1e-10).fit(X, y[:150])
    binary = SquaredHingeSVC(alpha=1 / (0.1 * 150), l1_ratio=1.0, tol=1e-10).fit(X, y[:150])
    np.testing.assert_allclose(model.coef_, binary.coef_, atol=1e-4)
    primal = model.certificate_.primal
    assert primal == pytest.approx(0.1 * 150 * binary.certificate_.primal, rel=1e-8)


def test_a_warm_start_begins_at_the_last_solution() -> None:
    X, y = wine()
    for labels in (y, (y > 0).astype(int)):
        model = MulticlassSVC(penalty="l2", C=0.1, loss="squared_hinge", warm_start=True)
        first = model.fit(X, labels).certificate_
        again = model.fit(X, labels).certificate_
        assert again.n_iter <= max(first.n_iter // 2, 1)
        assert again.primal == pytest.approx(first.primal, rel=2e-6)


def test_labels_lists_of_features_and_repeated_fits_mean_the_same_groups() -> None:
    X, y = wine()
    forms = (GROUPS, np.array(GROUPS), ["a", "a", "b", "b", "c"], [[0, 1], [2, 3], [4]],
             [np.array([0, 1]), (3, 2), [4]])  # fmt: skip
    models = [MulticlassSVC(penalty="group_linf", groups=g, C=0.1).fit(X, y) for g in forms]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"C": 1.0, "eta": 2.0}, "give C .* or eta"),
        ({"C": None}, "give C .* or eta"),
        ({"C": 0.0}, "C must be"),
        ({"C": None, "eta": -1.0}, "eta must be"),
        ({"C": None, "eta": 0.0, "loss": "logistic"}, "eta must be > 0 with loss='logistic'"),
        ({"C": None, "eta": 0.0, "loss": "squared_hinge"}, "eta must be > 0"),
        ({"penalty": "l3"}, "penalty must be one of"),
        ({"loss": "zero-one"}, "loss must be one of"),
        ({"l1_ratio": 2.0}, "l1_ratio must be"),
        ({"penalty": "group_l2"}, "needs groups"),
        ({"groups": GROUPS}, "takes no groups"),
        ({"penalty": "group_l2", "groups": "rows"}, "groups must be 'features', one label"),
        (
            {"penalty": "group_l2", "groups": ["a", None, "b", "b", "b"]},
            "labels must be of one kind",
        ),
        ({"penalty": "group_l2", "groups": [[0, 1], [True] * 3]}, "or a mask of the features"),
        ({"penalty": "group_l2", "groups": [0, 0, 1]}, "3 labels, but X has 5 features"),
        ({"penalty": "group_l2", "groups": [[0, 1], [2, 3]]}, "do not cover"),
        ({"penalty": "group_l2", "groups": [[0, 1, 2], [2, 3, 4]]}, "overlap"),
        ({"penalty": "group_l2", "groups": [[0, 1, 2], [3, 4, 5]]}, "5"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, word) -> None:
    with pytest.raises(ValueError, match=word):
        MulticlassSVC(**settings).fit(*wine())


def test_groups_may_be_labels_lists_masks_or_sets() -> None:
    X, y = wine()
    labels = np.array([0, 0, 1, 1, 1])
    forms = (
        ["a", "a", "b", "b", "b"],
        [[0, 1], [4, 2, 3]],
        [{0, 1}, {2, 3, 4}],
        [labels == 0, labels == 1],
    )
    expected = MulticlassSVC("group_l2", groups=labels).fit(X, y)
    for groups in forms:
        model = MulticlassSVC("group_l2", groups=groups).fit(X, y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_weights_and_constant_features_change_nothing(loss) -> None:
    X, y = wine()
    s = (np.arange(y.size) % 3).astype(float)
    wide = np.hstack([X, np.full((y.size, 1), 7.0), np.zeros((y.size, 1))])
    for name in ("l1", "l2"):
        plain = MulticlassSVC(C=0.2, loss=loss, tol=1e-8, **PENALTIES[name]).fit(
            X[s > 0], y[s > 0], s[s > 0]
        )
        full = MulticlassSVC(C=0.2, loss=loss, tol=1e-8, **PENALTIES[name])
        for form in (wide, sparse.csr_matrix(wide)):
            full.fit(form, y, sample_weight=s)
            primal = full.certificate_.primal
            assert primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
            assert not full.coef_[:, -1].any()
            assert np.abs(full.coef_[:, -2]).max() <= 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_of_one_sample_and_classes_without_weight(loss, rng) -> None:
    X = rng.standard_normal((5, 8))
    model = MulticlassSVC(C=1.0, loss=loss).fit(X, np.arange(5))
    assert model.certificate_.converged
    if loss != "lee":  # whose scores of one class in five are far below zero
        np.testing.assert_array_equal(model.predict(X), np.arange(5))
    X, y = wine()
    partial = MulticlassSVC(C=0.2, loss=loss, class_weight={2: 0.0}).fit(X, y)
    assert partial.certificate_.converged
    assert partial.coef_.shape == (3, 5)
    assert set(partial.predict(X)) <= {0, 1}


@pytest.mark.parametrize("loss", LOSSES)
def test_ten_and_more_classes_are_fitted_together(loss, rng) -> None:
    y = np.arange(130) % 26
    X = rng.standard_normal((130, 12)) + 3.0 * rng.standard_normal((26, 12))[y]
    model = MulticlassSVC(C=0.2, loss=loss, penalty="l2", tol=1e-4).fit(X, y)
    assert model.certificate_.converged
    assert model.coef_.shape == (26, 12)
    if loss != "lee":
        assert model.score(X, y) > 0.9


def test_standardised_sparse_and_dense_data_give_one_model() -> None:
    X, y = wine()
    raw = np.abs(X) * (np.abs(X) > 0.5) * 10.0
    forms = [raw, sparse.csr_matrix(raw), sparse.csc_matrix(raw)]
    for name in ("l1", "group_l2"):
        values = [
            MulticlassSVC(C=0.2, standardize=True, tol=1e-8, **PENALTIES[name])
            .fit(form, y)
            .certificate_.primal
            for form in forms
        ]
        np.testing.assert_allclose(values, values[0], rtol=1e-7)


def test_models_are_saved_with_their_groups(tmp_path) -> None:
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "model.pmz"
    listed = [[[0, 1], [2, 3]], [np.array([0, 3]), np.array([1, 2])]]
    labels = [np.array([0, 0, 1, 1]), ["a", "a", "b", "b"], np.array(["x", "y", "x", "y"])]
    for groups in (*listed, *labels, "features"):
        model = MulticlassSVC(penalty="group_l2", groups=groups, C=0.1, tol=1e-2).fit(X, y)
        save_model(model, path)
        back = load_model(path)
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert repr(back.groups) == repr(groups)
        assert str(back.certificate_) == str(model.certificate_)
    budget = MulticlassSVC(C=None, eta=20.0).fit(X, y)
    save_model(budget, path)
    assert load_model(path).C is None
    assert load_model(path).eta == 20.0


@pytest.mark.parametrize("penalty", ["group_l2", "group_linf"])
def test_features_of_any_units_have_their_norms_of_groups_fast(penalty: Any) -> None:
    X, y = load_digits(return_X_y=True)
    model = MulticlassSVC(penalty, groups="features", tol=1e-3).fit(X[:200], y[:200])
    assert model.certificate_.converged
    assert model.certificate_.n_iter < 2000
    relayed = clone(model).set_params(solver="fapg-ssnal", solver_options={"first": "fbpd"})
    assert relayed.fit(X[:200], y[:200]).certificate_.converged
    assert relayed.certificate_.n_iter < 2000


def test_predictions_are_good_on_data_it_has_not_seen() -> None:
    X, y = load_wine(return_X_y=True)
    fold = np.arange(y.size) % 3 == 0
    for loss in LOSSES:
        model = MulticlassSVC(C=0.1, loss=loss, standardize=True).fit(X[~fold], y[~fold])
        assert model.score(X[fold], y[fold]) > 0.93
        assert model.coef_.shape == (3, 13)


@pytest.mark.parametrize("limit", [0, 1])
def test_a_fit_that_ends_above_its_budget_proves_no_distance(limit: int) -> None:
    X, y = load_iris(return_X_y=True)
    model = MulticlassSVC("l1", C=None, eta=60.0, standardize=True, max_iter=limit)
    with pytest.warns(ConvergenceWarning, match=r"losses of .* above eta=60"):
        model.fit(X, y)
    certificate = model.certificate_
    assert not certificate.converged
    assert certificate.gap == np.inf
    optimum = MulticlassSVC("l1", C=None, eta=60.0, standardize=True).fit(X, y).certificate_
    assert certificate.dual <= optimum.primal * (1 + 1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_with_a_limit_of_time_a_fit_that_ends_early_is_within_its_budget(standardize) -> None:
    X, y = load_iris(return_X_y=True)
    model = MulticlassSVC("l1", C=None, eta=60.0, standardize=standardize)
    best = clone(model).fit(X, y).certificate_
    model.set_params(max_iter=1, time_limit=600.0)
    with pytest.warns(ConvergenceWarning, match="the budget was met by a mixture"):
        model.fit(X, y)
    certificate = model.certificate_
    assert np.isfinite(certificate.gap)
    assert certificate.primal - best.primal <= certificate.gap
    assert certificate.dual <= best.primal * (1 + 1e-12)
    own = losses("hinge", X @ model.coef_.T + model.intercept_, y)
    assert own.sum() <= 60.0 * (1 + 1e-8)


def test_with_a_limit_of_time_a_budget_below_the_least_loss_is_refused_by_a_bound() -> None:
    X, y = load_iris(return_X_y=True)
    y = np.random.default_rng(0).permutation(y)
    with pytest.raises(ValueError, match=r"eta=5 is less than .* the least is at least"):
        MulticlassSVC(C=None, eta=5.0, time_limit=60.0).fit(X, y)


def test_a_critical_C_of_models_without_one_is_refused_in_words() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="critical_C needs an estimator with C and eta"):
        critical_C(SVC(), X, y)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("distance", [1e-3, 1e-5])
def test_a_budget_that_only_large_coefficients_meet_is_met(penalty: str, distance: float) -> None:
    """The loss stays at two until the price lets coefficients tell the two nearest apart."""
    ends = np.linspace(1, 2, 20)
    X = np.concatenate([-ends, ends, [-distance, distance]])[:, None]
    y = np.concatenate([np.zeros(20), np.ones(20), [0, 1]])
    model = MulticlassSVC(penalty, C=None, eta=0.001).fit(X, y)
    assert model.certificate_.converged
    # the margins of the two are coef * distance: each may be short by half of the budget
    assert model.coef_[0, 0] == pytest.approx((1 - 0.0005) / distance, rel=1e-4)


@pytest.mark.slow
def test_a_small_budget_of_the_logistic_loss_of_separable_classes_is_met() -> None:
    X, y = np.array([[-2.0], [-1.5], [2.0], [1.5], [0.1], [-1.2]]), [0, 0, 1, 1, 1, 0]
    model = MulticlassSVC("l1", C=None, eta=1e-6, loss="logistic", time_limit=60.0).fit(X, y)
    assert model.certificate_.converged


@pytest.mark.parametrize("loss", ["hinge", "lee"])
def test_features_that_say_nothing_have_an_infinite_critical_strength(loss: str) -> None:
    X, y = [[0.0], [1.0], [2.0], [0.0], [1.0]], [0, 1, 2, 2, 2]
    if loss == "lee":
        X, y = [[1.0], [2.0], [1.0], [0.0]], [0, 1, 2, 1]
    assert critical_C(MulticlassSVC("l1", loss=loss), X, y) == np.inf


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_features_cannot_meet_a_small_budget(loss: str) -> None:
    y = load_iris(return_X_y=True)[1]
    with pytest.raises(ValueError, match="the least is"):
        MulticlassSVC("l1", C=None, eta=10.0, loss=loss).fit(np.ones((150, 3)), y)
