"""Relaxed fits mix the penalised model with the unpenalised one of its features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from proxmargin import (
    CVDisplay,
    ElasticNetSVCCV,
    HuberizedSVC,
    HuberizedSVCCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SquaredHingeSVCCV,
    load_model,
    margin_path,
    save_model,
)


def overlapping(n=150, p=12, classes=2, seed=0):
    """Classes that overlap in the first three features, of different scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    scores = X[:, :3] @ rng.standard_normal((3, classes)) + rng.gumbel(size=(n, classes))
    return X * np.linspace(0.5, 5, p) + 1.0, scores.argmax(axis=1)


@pytest.fixture(scope="module")
def data():
    return overlapping()


SETTINGS = {"alphas": [0.2, 0.15, 0.1], "cv": StratifiedKFold(3), "standardize": True}


@pytest.fixture(scope="module")
def model(data):
    kind = SparseLogisticRegressionCV(relaxed=(0.0, 0.5, 1.0), keep_scores=True, **SETTINGS)
    return kind.fit(*data)


def refit(X, y, used):
    """The unpenalised logistic model of some features, by scikit-learn."""
    free = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X[:, used], y)
    coef = np.zeros(X.shape[1])
    coef[used] = free.coef_[0]
    return coef, free.intercept_[0]


def test_scores_of_folds_are_those_of_mixed_models(data, model) -> None:
    X, y = data
    assert model.cv_scores_.shape == (3, 3, 3)
    plain = SparseLogisticRegression(l1_ratio=1.0, standardize=True, tol=1e-9)
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        path = margin_path(plain, X[train], y[train], alphas=SETTINGS["alphas"])
        for k in range(3):
            coef, intercept = path.coefs[k, 0], path.intercepts[k, 0]
            other, shift = refit(X[train], y[train], np.flatnonzero(coef))
            for row, gamma in enumerate((1.0, 0.5, 0.0)):
                scores = X[test] @ (gamma * coef + (1 - gamma) * other)
                scores += gamma * intercept + (1 - gamma) * shift
                expected = -log_loss(y[test], 1 / (1 + np.exp(-scores)))
                assert model.cv_scores_[row, k, fold] == pytest.approx(expected, rel=2e-4)
                np.testing.assert_allclose(
                    model.oof_scores_[row, k, test], scores, rtol=2e-3, atol=2e-3
                )


def test_the_chosen_model_is_the_mixture_and_scores_best(data, model) -> None:
    X, y = data
    means = model.cv_scores_.mean(axis=2)
    row, column = np.unravel_index(means.argmax(), means.shape)
    assert model.gamma_ == (1.0, 0.5, 0.0)[row] < 1
    assert model.alpha_ == model.alphas_[row, column]
    coef, intercept = model.path_.coefs[column, 0], model.path_.intercepts[column, 0]
    other, shift = refit(X, y, np.flatnonzero(coef))
    mixed = model.gamma_ * coef + (1 - model.gamma_) * other
    np.testing.assert_allclose(model.coef_[0], mixed, rtol=1e-4, atol=1e-7)
    expected = model.gamma_ * intercept + (1 - model.gamma_) * shift
    assert model.intercept_[0] == pytest.approx(expected, rel=1e-4)
    frame = model.cv_results_
    assert frame["gamma"].tolist() == [1.0] * 3 + [0.5] * 3 + [0.0] * 3
    assert frame.loc[model.best_index_, "gamma"] == model.gamma_


def test_the_certificate_bounds_the_gap_of_the_mixture(data, model) -> None:
    X, y = data
    scale = X.std(axis=0)

    def objective(coef, intercept):
        margins = np.where(y == 1, 1, -1) * (X @ coef + intercept)
        loss = np.logaddexp(0, -margins).mean()
        return loss + model.alpha_ * np.abs(coef * scale).sum()

    certificate = model.certificate_
    reached = objective(model.coef_[0], model.intercept_[0])
    best = SparseLogisticRegression(alpha=model.alpha_, l1_ratio=1, standardize=True, tol=1e-10)
    best.fit(X, y)
    least = objective(best.coef_[0], best.intercept_[0])
    assert certificate.primal == pytest.approx(reached)
    assert reached - least <= certificate.gap <= (reached - least) * (1 + 1e-3) + 1e-5
    assert not certificate.converged
    assert certificate.stop_reason == "relaxed"


@pytest.mark.parametrize("kind", [HuberizedSVCCV, SquaredHingeSVCCV])
def test_other_losses_are_refitted_one_class_at_a_time(kind) -> None:
    X, y = overlapping(classes=3, seed=1)
    settings = {**SETTINGS, "alphas": [0.1], "multi_class": "ovr", "relaxed": [0.0]}
    model = kind(**settings).fit(X, y)
    assert model.gamma_ == 0
    penalised = model.path_.coefs[0]
    for k in range(3):
        used = np.flatnonzero(penalised[k])
        signs = np.where(y == k, 1.0, -1.0)

        def mean_loss(v, used=used, signs=signs):
            short = 1 - signs * (X[:, used] @ v[:-1] + v[-1])
            flat = 0.5 * np.maximum(short, 0) ** 2
            squared = kind is SquaredHingeSVCCV
            return (2 * flat if squared else np.where(short > 1, short - 0.5, flat)).mean()

        start = np.append(model.coef_[k, used], model.intercept_[k])
        least = minimize(mean_loss, np.zeros(start.size), method="BFGS").fun
        assert mean_loss(start) <= least + 1e-8
        assert not np.delete(model.coef_[k], used).any()


def test_off_by_default_and_true_is_the_grid_of_glmnet(data) -> None:
    X, y = data
    plain = SparseLogisticRegressionCV(**SETTINGS).fit(X, y)
    assert not hasattr(plain, "gamma_")
    assert "gamma" not in plain.cv_results_
    whole = SparseLogisticRegressionCV(relaxed=True, l1_ratios=(1.0, 0.5), **SETTINGS).fit(X, y)
    assert whole.cv_scores_.shape == (*whole.alphas_.shape, 3) == (10, 3, 3)
    np.testing.assert_array_equal(whole.cv_scores_[0], plain.cv_scores_[0])
    assert whole.cv_results_["gamma"].unique().tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]
    again = clone(whole).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.cv_scores_, whole.cv_scores_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    first = SparseLogisticRegressionCV(relaxed=(1.0,), **SETTINGS).fit(X, y)
    np.testing.assert_array_equal(first.coef_, plain.coef_)


def test_features_that_separate_the_classes_are_not_refitted() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 200)), np.arange(40) % 2
    X[:, 0] += 2.5 * y
    model = SparseLogisticRegressionCV(alphas=8, eps=0.05, cv=3, relaxed=True).fit(X, y)
    missing = np.isnan(model.cv_scores_).any(axis=2)
    assert not missing[0].any()
    assert missing[1:, -1].all()
    assert not missing[:, 0].any()
    assert np.isfinite(model.cv_scores_.mean(axis=2).ravel()[model.best_index_])


def test_a_choice_without_a_refit_on_all_rows_keeps_the_penalised_model() -> None:
    """Two copies of a feature: no fold's model uses both, the one of all rows does."""
    X, y = overlapping()
    X = np.column_stack([X, X[:, 0] * 2.0])
    ridge = HuberizedSVCCV(alphas=[0.05], l1_ratios=(0.5,), cv=2, relaxed=True, standardize=True)
    model = ridge.fit(X, y)
    assert model.gamma_ == 1.0
    assert model.certificate_.converged
    assert np.isnan(model.cv_scores_[1:]).all()


def test_a_relaxed_model_can_be_saved_and_drawn(model, data, tmp_path) -> None:
    save_model(model, tmp_path / "model.pmz")
    loaded = load_model(tmp_path / "model.pmz")
    assert isinstance(loaded, SparseLogisticRegression)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))
    pytest.importorskip("matplotlib")
    from proxmargin.studies.displays.axes import figure

    display = CVDisplay.from_estimator(model, ax=figure().subplots())
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"gamma=1", "gamma=0.5", "gamma=0"} < set(labels)


def test_what_cannot_be_relaxed_is_refused_in_words(data) -> None:
    X, y = data
    with pytest.raises(ValueError, match="relaxed needs a smooth loss"):
        ElasticNetSVCCV(relaxed=True, **SETTINGS).fit(X, y)
    with pytest.raises(ValueError, match=r"these are 3 classes together: use multi_class='ovr'"):
        HuberizedSVCCV(relaxed=True, **SETTINGS).fit(*overlapping(classes=3))
    for wrong in (2.0, "yes", [], [-0.5]):
        with pytest.raises(ValueError, match=r"relaxed must be True, False or numbers in \[0, 1\]"):
            HuberizedSVCCV(relaxed=wrong, **SETTINGS).fit(X, y)
    assert "relaxed" not in HuberizedSVC().get_params()


def test_what_relaxed_fits_lack_is_said() -> None:
    X, y = overlapping()
    X = np.column_stack([X, X[:, 0] * 2.0])
    twice = HuberizedSVCCV(l1_ratios=[0.5], alphas=[0.05, 0.02], relaxed=[0.0], standardize=True)
    with pytest.raises(ValueError, match=r"relaxed=\[0.0\].*separate the classes, or are linearly"):
        twice.fit(X, y)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 20)), np.arange(40) % 2
    X[:, 0] += 9.0 * y
    with pytest.warns(UserWarning, match=r"no features; relaxed=\[0.0\]: .*separate the classes"):
        HuberizedSVCCV(alphas=[10.0, 1.0, 0.5], cv=3, relaxed=[0.0]).fit(X, y)
