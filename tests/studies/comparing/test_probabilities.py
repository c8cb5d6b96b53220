"""Probabilities that are judged are those that one gets: of the model, or of the map it carries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit
from sklearn.svm import LinearSVC

from proxmargin import HuberizedSVCCV, SparseLogisticRegression, compare, load_model, save_model
from proxmargin.studies.comparing.candidates import CANDIDATES

X, Y = load_iris(return_X_y=True, as_frame=True)
TWO = Y.to_numpy() > 0
NAMES = np.array(["a", "b", "c"])[Y]
SPLIT = [next(ShuffleSplit(1, test_size=0.3, random_state=0).split(X[TWO]))]
SHORT = {"cv": 2, "progress": False, "quick": True}


def test_a_logistic_model_is_judged_by_its_own_probabilities() -> None:
    (train, test), *_ = SPLIT
    x, y = X[TWO].to_numpy(), NAMES[TWO]
    found = compare(x, y, models=["SparseLogisticRegression"], cv=SPLIT, progress=False)
    settings = found.folds.iloc[0][["alpha", "l1_ratio"]].to_dict()
    model = SparseLogisticRegression(**settings, standardize=True).fit(x[train], y[train])
    expected = log_loss(y[test], model.predict_proba(x[test]))
    assert found.folds["log_loss"].iloc[0] == pytest.approx(expected, rel=1e-6)
    facts = found.to_dict()["models"][0]["probabilities"]
    assert facts["kind"] == "own"
    assert "own" in facts["sentence"]


# where some pairs of classes cannot be told apart, the nu-SVM says so
@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CANDIDATES)
def test_every_final_model_has_probabilities_and_its_file_too(tmp_path, name) -> None:
    found = compare(X[TWO], NAMES[TWO], models=[name], **SHORT)
    model = found.models_[name]
    save_model(model, tmp_path / "model.pmz")
    again = load_model(tmp_path / "model.pmz")
    shares = again.predict_proba(X[TWO])
    np.testing.assert_array_equal(shares, model.predict_proba(X[TWO]))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(again.classes_[shares.argmax(axis=1)] == NAMES[TWO]) > 0.8
    assert again.predict(X[TWO]).tolist() == model.predict(X[TWO]).tolist()
    kind = found.to_dict()["models"][0]["probabilities"]["kind"]
    assert kind == ("own" if "Logistic" in name else "calibrated")


def test_several_classes_an_imputer_and_a_run_that_is_read_again(tmp_path) -> None:
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    given = {"models": ["DWD"], "preprocess": SimpleImputer(), "run_dir": tmp_path / "run"}
    found = compare(holes, NAMES, **SHORT, **given)
    again = compare(holes, NAMES, **SHORT, **given)
    shares = found.best_.predict_proba(holes)
    assert shares.shape == (150, 3)
    np.testing.assert_array_equal(again.best_.predict_proba(holes), shares)


def test_a_refit_forgets_the_map() -> None:
    found = compare(X[TWO], NAMES[TWO], models=["L2SVC"], **SHORT).best_
    assert hasattr(found, "predict_proba")
    found.fit(X[TWO], NAMES[TWO])
    assert not hasattr(found, "predict_proba")


def test_of_others_it_is_told_that_they_have_none() -> None:
    models = {"svc": LinearSVC(), "search": HuberizedSVCCV(alphas=3, standardize=True)}
    found = compare(X[TWO], NAMES[TWO], models=models, **SHORT)
    kinds = {each["name"]: each["probabilities"]["kind"] for each in found.to_dict()["models"]}
    assert kinds == {"svc": "judged only", "search": "calibrated"}
    assert hasattr(found.models_["search"].best_estimator_, "predict_proba")
