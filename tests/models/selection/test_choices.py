"""Grids, the choice among their strengths, and the model that is published."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone

from proxmargin import (
    SVCCV,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegressionCV,
    MulticlassSVCCV,
    SparseLogisticRegressionCV,
    SquaredHingeSVCCV,
    margin_path,
)
from tests.models.selection.cases import EXACT, plain_of


def test_the_grid_is_that_of_all_rows_for_each_l1_ratio(data) -> None:
    model = HuberizedSVCCV(alphas=4, l1_ratios=(1.0, 0.5), cv=3, standardize=True).fit(*data)
    for row, ratio in enumerate(model.l1_ratios):
        plain = HuberizedSVC(l1_ratio=ratio, standardize=True)
        path = margin_path(plain, *data, n_alphas=4)
        np.testing.assert_allclose(model.alphas_[row], path.alphas)
    assert model.cv_scores_.shape == (2, 4, 3)
    assert model.l1_ratio_ in (1.0, 0.5)
    np.testing.assert_array_equal(model.path_.alphas, model.alphas_[model.best_index_ // 4])


def test_the_chosen_model_is_the_plain_one_fitted_to_all_rows(sets) -> None:
    X, y = sets
    for model in (
        HuberizedSVCCV(alphas=4, cv=3, **EXACT),
        SVCCV(Cs=4, cv=3, **EXACT),
        SVCCV(Cs=3, cv=3, kernel="rbf", **EXACT),
        MulticlassSVCCV(Cs=3, cv=3, **EXACT),
    ):
        name = model.fit(X, y).strength.name
        plain = plain_of(model).set_params(**{name: getattr(model, f"{name}_")})
        if hasattr(model, "l1_ratio_"):
            plain.set_params(l1_ratio=model.l1_ratio_)
        plain.fit(X, y)
        assert type(model.best_estimator_) is type(plain)
        np.testing.assert_allclose(
            model.decision_function(X), plain.decision_function(X), atol=1e-3
        )
        learned = {n for n in vars(plain) if n.endswith("_") and n[0] != "_"}
        assert learned <= set(vars(model))
        assert model.certificate_.converged
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_one_standard_error_takes_a_stronger_penalty(data) -> None:
    best = SparseLogisticRegressionCV(alphas=12, cv=4, standardize=True).fit(*data)
    simple = clone(best).set_params(selection="1se").fit(*data)
    frame = best.cv_results_
    top = frame.iloc[best.best_index_]
    enough = top["mean_test_score"] - top["standard_error"]
    expected = frame.alpha[frame.mean_test_score >= enough].max()
    assert simple.alpha_ == pytest.approx(expected)
    assert simple.alpha_ > best.alpha_


def test_the_results_are_a_frame_with_a_row_for_each_strength(data) -> None:
    model = HuberizedSVCCV(alphas=3, l1_ratios=(1.0, 0.5), cv=3, standardize=True).fit(*data)
    frame = model.cv_results_
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 6
    np.testing.assert_array_equal(frame.alpha, model.alphas_.ravel())
    np.testing.assert_array_equal(frame.l1_ratio.unique(), [1.0, 0.5])
    assert frame.rank_test_score[model.best_index_] == 1
    assert frame.rank_test_score.dtype == np.int32
    np.testing.assert_array_equal(
        frame.rank_test_score, frame.mean_test_score.rank(ascending=False, method="min")
    )
    assert frame.alpha[model.best_index_] == model.alpha_
    folds = frame[[f"split{k}_test_score" for k in range(3)]].to_numpy()
    np.testing.assert_array_equal(folds, model.cv_scores_.reshape(6, 3))


def test_a_choice_at_the_edge_of_the_grid_is_told_of(data) -> None:
    X, y = data
    lasso = SquaredHingeSVCCV(cv=3, standardize=True)
    with pytest.warns(UserWarning, match="weakest penalty of its grid: a weaker one may") as caught:
        lasso.set_params(alphas=[0.5, 0.4]).fit(X, y)
    assert [each.filename for each in caught] == [__file__]
    noise = np.random.default_rng(1).permutation(y)
    with pytest.warns(UserWarning, match="the strongest penalty .* its model has no features"):
        lasso.set_params(alphas=5).fit(X, noise)
    assert not lasso.coef_.any()
    free = clone(lasso).set_params(penalty_factor=np.arange(X.shape[1]) > 0)
    with pytest.warns(UserWarning, match="its model has no features with a penalty"):
        free.fit(X, noise)
    assert np.flatnonzero(free.coef_[0]).tolist() == [0]
    ridge = SquaredHingeSVCCV(cv=3, standardize=True, l1_ratios=(0.0,), alphas=[1.0, 0.1])
    with pytest.warns(UserWarning, match="strongest penalty of its grid: a stronger one may be"):
        ridge.fit(X, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lasso.set_params(alphas=[0.2]).fit(X, y)
        lasso.set_params(alphas=[0.9, 0.01, 1e-4]).fit(X, y)


def test_without_a_refit_there_is_a_choice_and_no_model(data) -> None:
    model = LogisticRegressionCV(Cs=3, cv=3, refit=False).fit(*data)
    assert model.C_ in model.Cs_
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(data[0])
