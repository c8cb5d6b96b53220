"""Files of calibrated models: they predict as before, and forged maps are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from proxmargin import L2SVC, SVC, CalibratedMargin, HuberizedSVCCV, load_model, save_model
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.model import describe_model
from proxmargin.models.selection.calibrators import CALIBRATORS
from tests.files.model_files import forged_file, there_and_back

X, Y = load_iris(return_X_y=True, as_frame=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def data(classes):
    kept = NAMES != "setosa" if classes == 2 else np.ones(150, bool)
    return X[kept], NAMES[kept]


@pytest.mark.parametrize("method", CALIBRATORS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ensemble", [False, True])
def test_a_calibrated_classifier_comes_back(tmp_path, method, classes, ensemble):
    x, y = data(classes)
    model = CalibratedMargin(L2SVC(C=0.1), method, cv=3, ensemble=ensemble, reject_cost=0.2)
    again = there_and_back(model.fit(x, y), tmp_path)
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    assert again.predict(x).tolist() == model.predict(x).tolist()
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.feature_names_in_.tolist() == list(X.columns)
    assert again.n_features_in_ == 4
    assert repr(again) == repr(model)
    assert np.isfinite(again.fit(x, y).predict_proba(x)).all()


@pytest.mark.parametrize(
    "estimator",
    [SVC(kernel="rbf"), HuberizedSVCCV(alphas=3), make_pipeline(SimpleImputer(), L2SVC())],
    ids=["kernel", "search", "imputer"],
)
@pytest.mark.filterwarnings("ignore:the chosen alpha")
def test_so_do_those_of_kernels_searches_and_imputers(tmp_path, estimator):
    x, y = data(2)
    x = x.mask(np.eye(*x.shape, dtype=bool)) if hasattr(estimator, "steps") else x
    model = CalibratedMargin(estimator, cv=2).fit(x, y)
    again = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_a_splitter_becomes_the_number_of_its_folds(tmp_path):
    x, y = data(2)
    model = CalibratedMargin(L2SVC(), cv=StratifiedKFold(4)).fit(x, y)
    assert there_and_back(model, tmp_path).cv == 4
    grouped = CalibratedMargin(L2SVC(), cv=GroupKFold(3)).fit(x, y, groups=np.arange(100) // 5 % 7)
    assert there_and_back(grouped, tmp_path).cv == 3


def test_what_cannot_be_stored_is_told(tmp_path):
    x, y = data(2)
    for model in (CalibratedMargin(L2SVC()), CalibratedMargin(LinearSVC(), cv=2).fit(x, y)):
        with pytest.raises(ModelFileError, match=r"not fitted|LinearSVC cannot be stored"):
            save_model(model, tmp_path / "model.pmz")


def test_it_is_described(tmp_path):
    x, y = data(3)
    model = CalibratedMargin(L2SVC(), cv=3).fit(x, y)
    facts = describe_model(model)
    assert (facts["estimator"], facts["calibrates"], facts["fits"]) == (
        "CalibratedMargin",
        "L2SVC",
        3,
    )
    assert facts["classes"] == model.classes_.tolist()
    one = L2SVC().fit(*data(2))
    one.calibrator_ = CalibratedMargin(L2SVC(), cv=3).fit(*data(2)).calibrator_
    facts = describe_model(there_and_back(one, tmp_path))
    assert 0 < facts["boundary_probability"] < 1


def set_part(document, **settings):
    document["calibrator"]["settings"].update(settings)


FORGERIES = {
    "no map": lambda d: d.update(calibrator=3.0),
    "another part": lambda d: d.update(calibrator={"part": "HuberizedHinge", "settings": {}}),
    "a scale of zero": lambda d: set_part(d, scale=0.0),
    "a scale of text": lambda d: set_part(d, scale="1"),
    "a map without probabilities": lambda d: set_part(d, inner={"part": "Ridge", "settings": {}}),
    "more classes": lambda d: set_part(
        d,
        inner={
            "part": "MultinomialMap",
            "settings": {
                "coef": {"tuple": [{"array": [1.0, 2.0], "type": "<f8"}] * 2},
                "intercept": {"array": [0.0, 0.0], "type": "<f8"},
            },
        },
    ),
    "not finite": lambda d: d["calibrator"]["settings"]["inner"]["settings"]["odds"][
        "settings"
    ].update(slope={"float": "nan"}),
}
OF_SEVERAL = {
    "no models": lambda d: d.update(models=[]),
    "one model of three": lambda d: d.update(models=d["models"][:1]),
    "within itself": lambda d: d["models"][0].update(estimator="CalibratedMargin"),
    "other classes": lambda d: d["models"][1]["fitted"]["classes_"]["text"].reverse(),
    "an unknown method": lambda d: d["settings"].update(method="none"),
    "an unknown setting": lambda d: d["settings"].update(n_folds=2),
    "no map at all": lambda d: d.pop("calibrator"),
}


def calibrated(several):
    x, y = data(2)
    model = CalibratedMargin(L2SVC(), cv=3).fit(x, y)
    if several:
        return model
    one = L2SVC().fit(x, y)
    one.calibrator_ = model.calibrator_
    return one


@pytest.mark.parametrize("what", [*FORGERIES, *OF_SEVERAL])
def test_forged_maps_and_models_are_refused(tmp_path, what):
    change = (FORGERIES | OF_SEVERAL)[what]
    path = forged_file(tmp_path, calibrated(what in OF_SEVERAL), lambda d: change(d) and None)
    with pytest.raises(ModelFileError):
        load_model(path)
