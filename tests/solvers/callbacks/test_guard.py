"""Callbacks that end a fit: by an error, or by returning False."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

import proxmargin
from proxmargin import History, HuberizedSVC, margin_path
from tests.cases import ESTIMATORS


class _Broken(RuntimeError):
    pass


def broken(report: Any) -> None:
    raise _Broken("disk full")


def enough(report: Any) -> bool:
    return report.gap.relative_gap > 0.1


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
@pytest.mark.parametrize("classes", [2, 3])
def test_an_error_of_a_callback_is_raised_once_the_model_is_published(
    make: Any, classes: int, rng: np.random.Generator
) -> None:
    y = np.arange(42) % classes
    X = rng.standard_normal((42, 4)) + (np.arange(4) == y[:, None])
    model = make().set_params(callbacks=[broken])
    with pytest.raises(_Broken, match="disk full"):
        model.fit(X, y)
    assert np.isfinite(model.certificate_.gap)
    assert "callback raised" in model.certificate_.stop_reason
    assert model.predict(X).shape == y.shape


def test_a_kernel_machine_is_published_too() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = proxmargin.LogisticRegression(kernel="rbf", standardize=True, callbacks=[broken])
    with pytest.raises(_Broken):
        model.fit(X, y)
    assert np.isfinite(model.certificate_.gap)


def test_a_callback_that_returns_false_ends_the_fit() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(
        1e-4, standardize=True, solver="b-pgh", callbacks=[enough, History(every=1)]
    )
    with pytest.warns(ConvergenceWarning, match="a callback asked to stop"):
        model.fit(X, y)
    assert model.certificate_.stop_reason == "a callback asked to stop"
    assert 1e-6 < model.certificate_.relative_gap <= 0.1
    assert model.set_params(callbacks=()).fit(X, y).certificate_.converged


def test_classes_after_the_end_are_certified_as_they_are() -> None:
    X, y = load_iris(return_X_y=True)
    model = proxmargin.SquaredHingeSVC(callbacks=[lambda report: False])
    with pytest.warns(ConvergenceWarning, match="3 of 3"):
        model.fit(X, y)
    assert len(model.certificate_) == 3
    assert np.isfinite([one.gap for one in model.certificate_]).all()


def test_other_answers_do_not_end_a_fit() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    for answer in (None, True, 0, np.True_, ""):
        model = HuberizedSVC(standardize=True, callbacks=[lambda report, a=answer: a])
        assert model.fit(X, y).certificate_.converged


def test_a_path_raises_the_error_of_its_callback() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(_Broken):
        margin_path(HuberizedSVC(standardize=True, callbacks=[broken]), X, y, n_alphas=3)
