"""Model files: everything comes back, and what cannot be stored is a sentence."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import stat

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris

import proxmargin
from proxmargin import (
    CalibratedMargin,
    HuberizedSVC,
    MarginClassifier,
    MulticlassSVC,
    SparseLogisticRegression,
    load_model,
    save_model,
)
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models import archive
from proxmargin.files.models import archive as known
from proxmargin.files.models.archive import CODEC
from proxmargin.files.models.composed import RECORDS
from proxmargin.files.models.model import describe_model
from proxmargin.losses import HuberizedHinge
from proxmargin.optimality.certificates.certificate import CertificateList
from proxmargin.penalties import ElasticNet
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.papers.proximal_gradient import CoordinateDescent
from proxmargin.solvers.shared.working_set import WorkingSet
from tests.files.model_files import CERTIFICATE, assert_same, learned, there_and_back


class TestRoundTrip:
    @pytest.mark.parametrize(
        "classes", [("no", "yes"), ("a", "b", "ç"), (-1, 1), (0, 1, 2), (False, True), (0.5, 1.5)]
    )
    def test_labels_of_any_kind_come_back(self, tmp_path, classes):
        model = learned(classes)
        assert_same(model, there_and_back(model, tmp_path))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f8"])
    def test_coefficients_come_back_to_the_last_bit(self, tmp_path, dtype):
        model = learned(dtype=dtype)
        again = there_and_back(model, tmp_path)
        assert again.coef_.dtype == np.dtype(dtype).newbyteorder("=")
        X = np.random.default_rng(0).standard_normal((5, 4))
        np.testing.assert_array_equal(X @ model.coef_.T, X @ again.coef_.T)
        again.coef_[0, 0] = 1.0  # writable, as after a fit

    def test_names_of_features_are_optional(self, tmp_path):
        assert not hasattr(there_and_back(learned(names=False), tmp_path), "feature_names_in_")
        names = there_and_back(learned(), tmp_path).feature_names_in_
        assert names.dtype == object
        assert names.tolist() == [f"größe={j}" for j in range(4)]

    def test_labels_kept_as_objects_come_back(self, tmp_path):
        model = learned()
        model.classes_ = np.array(["no", "yes"], dtype=object)
        assert there_and_back(model, tmp_path).classes_.dtype == object

    def test_a_list_of_certificates_comes_back(self, tmp_path):
        model = learned(("a", "b", "c"))
        model.certificate_ = CertificateList([CERTIFICATE] * 3)
        model.n_iter_ = np.array([3, 4, 5])
        again = there_and_back(model, tmp_path)
        assert isinstance(again.certificate_, CertificateList)
        assert_same(model, again)

    def test_numbers_of_numpy_count_as_numbers(self, tmp_path):
        model = learned(tol=np.float32(0.1), random_state=np.int64(4))
        again = there_and_back(model, tmp_path)
        assert again.tol == float(np.float32(0.1))
        assert again.random_state == 4

    def test_parts_come_back_as_objects(self, tmp_path):
        model = learned(loss=HuberizedHinge(delta=0.3), penalty=ElasticNet(l1=0.1, l2=1 / 3))
        again = there_and_back(model, tmp_path)
        assert again.loss == model.loss
        assert again.penalty == model.penalty

    def test_solvers_given_as_objects_come_back_with_what_they_wrap(self, tmp_path):
        model = learned(solver=WorkingSet(CoordinateDescent()))
        assert repr(there_and_back(model, tmp_path).solver) == repr(model.solver)

    @pytest.mark.parametrize("weights", ["balanced", {"no": 1.5, "yes": 2}, {1: 0.5, -1: 2.0}])
    def test_class_weights_come_back(self, tmp_path, weights):
        assert there_and_back(learned(class_weight=weights), tmp_path).class_weight == weights

    def test_callbacks_are_left_behind(self, tmp_path):
        model = learned(callbacks=(print,))
        assert there_and_back(model, tmp_path).callbacks == ()
        assert model.callbacks == (print,)

    def test_equal_models_give_equal_files(self, tmp_path):
        save_model(learned(), tmp_path / "one")
        save_model(learned(), tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# where some pairs of classes cannot be told apart, the nu-SVM says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", known.ESTIMATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
class TestFittedModels:
    def fitted(self, name, n_classes):
        X, y = load_iris(return_X_y=True, as_frame=True)
        X, y = X.iloc[50 * (3 - n_classes) :], y.iloc[50 * (3 - n_classes) :]
        labels = np.array(["setosa", "versicolor", "virginica"])[y]
        return getattr(proxmargin, name)(tol=1e-2).fit(X, labels), X, labels

    def test_predictions_and_certificates_are_the_same(self, tmp_path, name, n_classes):
        model, X, _ = self.fitted(name, n_classes)
        again = there_and_back(model, tmp_path)
        assert_same(model, again)
        np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
        np.testing.assert_array_equal(model.predict(X), again.predict(X))
        assert again.feature_names_in_.tolist() == list(X.columns)

    def test_a_loaded_model_can_be_cloned_and_fitted_again(self, tmp_path, name, n_classes):
        model, X, labels = self.fitted(name, n_classes)
        again = clone(there_and_back(model, tmp_path)).fit(X, labels)
        np.testing.assert_array_equal(model.coef_, again.coef_)


def test_every_public_estimator_can_be_stored():
    public = {
        name
        for name, home in proxmargin._HOMES.items()
        if home.startswith("models.classifiers")
        and issubclass(getattr(proxmargin, name), BaseEstimator)
    }
    assert public <= {*known.ESTIMATORS, *RECORDS}


# what losses and penalties become during a fit, and groups of the features of one data set
HOLD_DATA = (
    "GroupL2",
    "GroupLinf",
    "Groups",
    "LevelSet",
    "MarginSum",
    "ProxJacobian",
    "Shifted",
    "SumToZeroGroups",
)


@pytest.mark.parametrize("package", ["losses", "penalties"])
def test_every_public_part_of_plain_settings_can_be_stored(package):
    module = importlib.import_module(f"proxmargin.{package}")
    parts = {
        name
        for name in module.__all__
        if dataclasses.is_dataclass(part := getattr(module, name))
        and not inspect.isabstract(part)
        and name not in HOLD_DATA
    }
    assert parts <= set(known.parts())


def test_no_part_that_holds_data_or_functions_is_ever_looked_up() -> None:
    assert set(known.parts()).isdisjoint({*HOLD_DATA, "Custom"})
    for name in known.parts():
        part = known.parts()[name]
        assert part.__module__.startswith("proxmargin.")
        assert part.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_every_solver_is_listed():
    listed = set(known.parts().values())
    for make in SOLVERS.values():
        solver = make()
        inner = [getattr(solver, name, None) for name in ("inner", "first", "second")]
        for part in [solver, *filter(None, inner)]:
            assert type(part) in listed


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    options=st.dictionaries(st.text(max_size=5), PLAIN, max_size=4),
    tol=st.floats(min_value=0.0, allow_infinity=False),
)
def test_plain_parameters_come_back_exactly(tmp_path, options, tol):
    again = there_and_back(learned(solver="fapg", solver_options=options, tol=tol), tmp_path)
    assert repr(again.solver_options) == repr(options)
    assert repr(again.tol) == repr(tol)


@given(value=st.floats())
def test_floats_of_any_kind_are_plain_json_and_back(value):
    plain = json.dumps(CODEC.encode(value, "tol"), allow_nan=False)
    assert repr(CODEC.decode(json.loads(plain), "tol")) == repr(value)


class TestWhatCannotBeStored:
    @pytest.mark.parametrize(
        "settings", [{"tol": -1.0}, {"tol": np.nan}, {"standardize": 2}, {"loss": ElasticNet(1, 1)}]
    )
    def test_parameters_with_which_no_fit_begins(self, tmp_path, settings):
        with pytest.raises(ModelFileError, match=f"cannot be stored: .*{next(iter(settings))}"):
            save_model(learned(**settings), tmp_path / "model.pmz")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ({"random_state": np.random.RandomState(0)}, "random_state"),
            ({"random_state": np.random.default_rng(0)}, "random_state"),
            ({"tol": np.zeros((3, 1))}, "tol"),
            ({"tol": 1j}, "tol"),
            ({"loss": print}, "loss"),
            ({"loss": type("HuberizedHinge", (HuberizedHinge,), {})()}, "loss"),
            (
                {"solver_options": {"step": {"size": object()}}},
                r"solver_options\['step'\]\['size'\]",
            ),
            ({"class_weight": {(1, 2): {3}}}, r"class_weight\[\(1, 2\)\]"),
        ],
    )
    def test_the_parameter_is_named_and_no_file_appears(self, tmp_path, settings, name):
        with pytest.raises(ModelFileError, match=f"parameter [\"']{name}"):
            save_model(learned(**settings), tmp_path / "model.pmz")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("model", [MarginClassifier(), HuberizedSVC(penalty_factor={"a": 0})])
    def test_an_unfitted_estimator(self, tmp_path, model):
        with pytest.raises(ModelFileError, match="not fitted"):
            save_model(model, tmp_path / "model.pmz")

    @pytest.mark.parametrize(
        "model", [object(), BaseEstimator(), type("MarginClassifier", (MarginClassifier,), {})(), 3]
    )
    def test_other_objects(self, tmp_path, model):
        with pytest.raises(ModelFileError, match="cannot be stored; models that can"):
            save_model(model, tmp_path / "model.pmz")

    @pytest.mark.parametrize(
        ("attribute", "value", "sentence"),
        [
            ("coef_", np.zeros((2, 4)), "need 1 rows"),
            ("coef_", np.zeros(4), "shape"),
            ("coef_", np.zeros((1, 4), dtype=object), "floats"),
            ("intercept_", np.zeros(3), "1 entries"),
            ("intercept_", 0.0, "floats"),
            ("classes_", np.array(["a", "a"]), "different labels"),
            ("classes_", np.array(["a", 1], dtype=object), "'classes_' cannot be stored"),
            ("n_features_in_", 5, "width"),
            ("feature_names_in_", np.array(["a", "a", "b", "c"]), "4 different names"),
            ("coef_", np.array([[0.0, np.nan, 1.0, 2.0]]), "'coef_' must be finite"),
            ("intercept_", np.array([np.inf]), "'intercept_' must be finite"),
            ("coef_", np.zeros((1, 4), dtype=np.float16), "float32 or float64"),
            ("classes_", np.array([0.0, np.nan]), "'classes_' must be finite"),
            ("nu_", np.inf, "'nu_'"),
            ("n_iter_", -1, "iterations"),
            ("n_iter_", "many", "iterations"),
            ("nu_", -0.5, "'nu_' must be >= 0"),
            ("nu_", 1, "'nu_' must be a float"),
            ("kappa_", np.ones(2), "'kappa_' must be a float"),
            ("kappa_", np.array([np.nan]), "'kappa_' must be >= 0"),
        ],
    )
    def test_attributes_that_contradict_each_other(self, tmp_path, attribute, value, sentence):
        model = learned()
        setattr(model, attribute, value)
        with pytest.raises(ModelFileError, match=sentence):
            save_model(model, tmp_path / "model.pmz")


class TestWriting:
    def test_the_old_file_survives_a_failure(self, tmp_path, monkeypatch):
        save_model(learned(), tmp_path / "model.pmz")
        before = (tmp_path / "model.pmz").read_bytes()

        def fail(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(archive.os, "replace", fail)
        with pytest.raises(KeyboardInterrupt):
            save_model(learned(tol=9.0), tmp_path / "model.pmz")
        assert (tmp_path / "model.pmz").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["model.pmz"]

    def test_the_file_is_as_readable_as_any_other(self, tmp_path):
        save_model(learned(), tmp_path / "model.pmz")
        (tmp_path / "other").touch()
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("model.pmz", "other")]
        assert modes[0] == modes[1]

    def test_a_link_keeps_pointing_to_the_model(self, tmp_path):
        (tmp_path / "latest").symlink_to(tmp_path / "real.pmz")
        save_model(learned(), tmp_path / "latest")
        assert (tmp_path / "latest").is_symlink()
        assert_same(learned(), load_model(tmp_path / "real.pmz"))

    def test_a_folder_is_refused(self, tmp_path):
        with pytest.raises(ModelFileError, match="folder"):
            save_model(learned(), tmp_path)

    def test_a_missing_folder_is_a_sentence(self, tmp_path):
        with pytest.raises(ModelFileError, match="cannot be written: No such file"):
            save_model(learned(), tmp_path / "nowhere" / "model.pmz")


class TestDescription:
    def test_a_file_and_its_model_are_described_alike(self, tmp_path):
        model = learned(loss=HuberizedHinge(delta=0.5))
        save_model(model, tmp_path / "model.pmz")
        facts = describe_model(tmp_path / "model.pmz")
        assert facts["format_version"] == 2
        assert facts["source"] == str(tmp_path / "model.pmz")
        alike = describe_model(model)
        assert repr({name: facts[name] for name in alike}) == repr(alike)

    def test_the_facts_are_plain(self):
        facts = describe_model(learned(tol=0.25, loss=HuberizedHinge(delta=0.5)))
        assert facts["estimator"] == "MarginClassifier"
        assert facts["settings"]["tol"] == 0.25
        assert facts["settings"]["loss"] == "HuberizedHinge(delta=0.5)"
        assert facts["classes"] == ["no", "yes"]
        assert (facts["features"], facts["features_used"]) == (4, 3)
        assert facts["certificate"]["n_iter"] == 12
        assert facts["certificate"]["summary"] == str(CERTIFICATE)
        json.dumps(facts)


DISORDERED = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=[*"dbca"])
SIDES = np.where(DISORDERED["d"] + DISORDERED["a"] > 0, "p", "q")
NAMED = {
    "factors": {"penalty_factor": {"d": 0.0, "a": 9.0}},
    "a series": {"penalty_factor": pd.Series([0.0, 1.0, 1.0, 9.0], index=[*"dbca"])},
    "by position": {"penalty_factor": pd.Series([0.0, 1.0, 1.0, 9.0])},
    "bounds": {"bounds": {"d": (0, None), "a": (None, 0)}},
    "a side": {"bounds": (None, pd.Series(0.0, index=[*"dbca"]))},
}


@pytest.mark.parametrize("given", NAMED)
@pytest.mark.parametrize("within", [False, True])
def test_parameters_by_name_stay_with_the_names(tmp_path, given, within):
    """A refit to columns in another order is that of the model that was saved."""
    model = SparseLogisticRegression(0.05, **NAMED[given])
    model = (CalibratedMargin(model, cv=2) if within else model).fit(DISORDERED, SIDES)
    loaded = there_and_back(there_and_back(model, tmp_path), tmp_path)
    sorted_ = DISORDERED[[*"abcd"]]
    once, again = (clone(each).fit(sorted_, SIDES) for each in (model, loaded))
    shares = (each.predict_proba(sorted_) for each in (once, again))
    np.testing.assert_array_equal(*shares)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("of", ["penalty_factor", "bounds"])
def test_parameters_by_number_stay_with_the_names_that_are_numbers(tmp_path, of, within):
    X = DISORDERED.set_axis([2, 3, 1, 0], axis=1)
    series = pd.Series([0.0, 0.5, 1.0, 9.0])
    model = SparseLogisticRegression(0.05, **{of: series if of != "bounds" else (None, series)})
    model = (CalibratedMargin(model, cv=2) if within else model).fit(X, SIDES)
    loaded = there_and_back(there_and_back(model, tmp_path), tmp_path)
    sorted_ = X[[0, 1, 2, 3]]
    once, again = (clone(each).fit(sorted_, SIDES) for each in (model, loaded))
    shares = (each.predict_proba(sorted_) for each in (once, again))
    np.testing.assert_array_equal(*shares)
    refitted = clone(loaded).fit(X, SIDES).predict_proba(X)
    np.testing.assert_allclose(refitted, model.predict_proba(X), rtol=1e-6)


def test_groups_by_name_stay_with_the_names(tmp_path):
    groups = {"d": "one", "a": "one", "b": "two", "c": "three"}
    model = MulticlassSVC("group_l2", C=0.1, groups=groups).fit(DISORDERED, SIDES)
    assert there_and_back(model, tmp_path).groups == groups


def test_margins_come_back_as_lists(tmp_path):
    margins = np.linspace(0.5, 1.5, len(SIDES))
    model = MulticlassSVC(C=0.1, margins=margins).fit(DISORDERED, SIDES)
    loaded = there_and_back(model, tmp_path)
    assert loaded.margins == margins.tolist()
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    matrix = np.array([[1.0, 2.0], [0.5, 1.0]])
    model = MulticlassSVC(C=0.1, margins=matrix).fit(DISORDERED, SIDES)
    assert there_and_back(model, tmp_path).margins == matrix.tolist()
    labelled = pd.DataFrame(matrix, [*"pq"], [*"pq"]).loc[[*"qp"], [*"qp"]]
    model = MulticlassSVC(C=0.1, margins=labelled).fit(DISORDERED, SIDES)
    assert there_and_back(model, tmp_path).margins == matrix.tolist()
