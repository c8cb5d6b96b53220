"""Model files: everything comes back, nothing is executed, damage is a sentence."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import io
import json
import math
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris

import proxmargin
from proxmargin import MarginClassifier, load_model, save_model
from proxmargin.certificate import Certificate, CertificateList
from proxmargin.files import archive, known
from proxmargin.files.errors import ModelFileError
from proxmargin.files.model import describe_model
from proxmargin.kernels import Linear, Polynomial, Rbf
from proxmargin.losses import DistanceWeighted, HuberizedHinge
from proxmargin.penalties import Ball, ElasticNet, Ridge
from proxmargin.solvers.accelerated import FastProximalGradientStar
from proxmargin.solvers.coordinate_descent import CoordinateDescent
from proxmargin.solvers.names import SOLVERS
from proxmargin.solvers.working_set import WorkingSet

CERTIFICATE = Certificate(
    primal=0.1 + 0.2,
    dual=-math.inf,
    gap=math.nan,
    relative_gap=1e-17,
    kkt_residual=5e-324,
    converged=False,
    stop_reason="out of time “é”",
    n_iter=12,
    n_passes=3.5,
    seconds=0.25,
    solver="apg",
    because="few samples",
)


def learned(classes=("no", "yes"), n_features=4, names=True, dtype=np.float64, **settings):
    """A model with attributes set by hand: what is stored is up to the test."""
    model = MarginClassifier(**settings)
    rng = np.random.default_rng(3)
    outputs = 1 if len(classes) == 2 else len(classes)
    model.classes_ = np.array(classes)
    model.coef_ = rng.standard_normal((outputs, n_features)).astype(dtype)
    model.coef_[:, 1] = 0.0
    model.intercept_ = rng.standard_normal(outputs).astype(dtype)
    model.n_features_in_ = n_features
    model.n_iter_ = 12
    if names:
        model.feature_names_in_ = np.array([f"größe={j}" for j in range(n_features)], dtype=object)
    model.certificate_ = CERTIFICATE
    return model


def there_and_back(model, folder: Path):
    save_model(model, folder / "model.pmz")
    return load_model(folder / "model.pmz")


def numbers(certificate):
    """The fields of each certificate, floats of NumPy as those of Python."""
    several = certificate if isinstance(certificate, CertificateList) else [certificate]
    return [
        {k: float(v) if isinstance(v, float) else v for k, v in dataclasses.asdict(one).items()}
        for one in several
    ]


def assert_same(first, second):
    assert type(first) is type(second)
    assert set(vars(first)) == set(vars(second))
    for name in vars(first):
        a, b = getattr(first, name), getattr(second, name)
        if sp.issparse(a):
            assert type(a) is type(b)
            assert a.shape == b.shape
            a, b = (np.concatenate([m.data, m.indices, m.indptr]) for m in (a, b))
        if isinstance(a, np.ndarray) and name.endswith("_"):
            assert a.dtype.kind == b.dtype.kind
            np.testing.assert_array_equal(a, b)
    assert first.n_features_in_ == second.n_features_in_
    assert getattr(first, "gamma_", None) == getattr(second, "gamma_", None)
    np.testing.assert_array_equal(first.n_iter_, second.n_iter_)
    assert repr(numbers(first.certificate_)) == repr(numbers(second.certificate_))
    assert repr(first.get_params(deep=False)) == repr(second.get_params(deep=False))


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


KERNEL_MODELS = ("SVC", "L2SVC", "LogisticRegression", "NuSVC", "DWD", "MarginFDA", "MarginMPM")


def kernel_data(kind, n_classes):
    """Training and further samples of a form, with labels that depend on products of features."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((48, 5)) * (rng.random((48, 5)) < 0.7)
    X[:, 3] = 1.0
    y = np.array(["p", "q", "r"])[np.argmax(X[:, :n_classes], axis=1)]
    X = X.astype(np.float32) if "float32" in kind else X
    form = getattr(sp, kind.split(",")[0], None)
    X = X if form is None else form(X)
    return X[:36], y[:36], X[36:]


def kernel_model(name, data="dense", n_classes=2, **settings):
    """A fitted kernel model, and further samples to predict."""
    X, y, further = kernel_data(data, n_classes)
    if settings.get("kernel") == "precomputed":
        X, further = X @ X.T, further @ X.T
    return getattr(proxmargin, name)(**settings).fit(X, y), further


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestKernelModels:
    @pytest.mark.parametrize("name", KERNEL_MODELS)
    @pytest.mark.parametrize(
        ("settings", "n_classes"),
        [
            ({"kernel": "rbf", "standardize": True}, 2),
            ({"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "auto"}, 3),
            ({"kernel": "precomputed"}, 3),
            ({"kernel": "linear", "standardize": True}, 3),
        ],
    )
    def test_predictions_and_certificates_are_the_same(self, tmp_path, name, settings, n_classes):
        model, further = kernel_model(name, n_classes=n_classes, **settings)
        again = there_and_back(model, tmp_path)
        assert_same(model, again)
        np.testing.assert_array_equal(
            model.decision_function(further), again.decision_function(further)
        )
        np.testing.assert_array_equal(model.predict(further), again.predict(further))
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(
                model.predict_proba(further), again.predict_proba(further)
            )

    @pytest.mark.parametrize("standardize", [False, True])
    @pytest.mark.parametrize(
        "data", ["dense, float32", "csr_matrix", "csr_array, float32", "csc_matrix", "csc_array"]
    )
    def test_support_vectors_of_every_form_come_back(self, tmp_path, data, standardize):
        model, further = kernel_model("SVC", data, kernel="rbf", standardize=standardize)
        again = there_and_back(model, tmp_path)
        assert_same(model, again)
        assert again.support_vectors_.dtype == model.support_vectors_.dtype
        np.testing.assert_array_equal(
            model.decision_function(further), again.decision_function(further)
        )

    def test_a_kernel_given_as_an_object_comes_back(self, tmp_path):
        for kernel in (Rbf(0.3), Polynomial(2, 0.5, 1.0), Linear()):
            model, further = kernel_model("SVC", kernel=kernel)
            again = there_and_back(model, tmp_path)
            assert again.kernel == kernel
            np.testing.assert_array_equal(
                model.decision_function(further), again.decision_function(further)
            )

    def test_solvers_and_balls_given_as_objects_come_back(self, tmp_path):
        X, y, _ = kernel_data("dense", 2)
        ball = Ball(p=1.5, radius=0.5)
        solver = FastProximalGradientStar(stability=0.5)
        model = MarginClassifier(DistanceWeighted(0.4), ball, solver=solver).fit(X, y)
        again = there_and_back(model, tmp_path)
        assert (again.loss, again.penalty, again.solver) == (DistanceWeighted(0.4), ball, solver)
        assert_same(model, again)

    def test_a_model_fitted_again_with_a_linear_kernel_leaves_the_other_behind(self, tmp_path):
        model, further = kernel_model("SVC", kernel="rbf")
        X, y, _ = kernel_data("dense", 2)
        model.set_params(kernel="linear").fit(X, y)
        again = there_and_back(model, tmp_path)
        assert not hasattr(again, "support_vectors_")
        np.testing.assert_array_equal(
            model.decision_function(further), again.decision_function(further)
        )

    def test_a_kernel_that_is_a_function_is_refused_in_a_sentence(self, tmp_path):
        model, _ = kernel_model("SVC", kernel=linear_kernel)
        with pytest.raises(
            ModelFileError, match=r"parameter 'kernel' cannot be stored: .*function"
        ):
            save_model(model, tmp_path / "model.pmz")
        assert list(tmp_path.iterdir()) == []

    def test_a_graph_of_classifiers_says_what_to_store_instead(self, tmp_path):
        X, y, further = kernel_data("dense", 3)
        model = proxmargin.DDAGClassifier(proxmargin.SVC()).fit(X, y)
        with pytest.raises(ModelFileError, match=r"DDAGClassifier cannot be stored: .*estimators_"):
            save_model(model, tmp_path / "model.pmz")
        again = there_and_back(model.estimators_[0], tmp_path)
        np.testing.assert_array_equal(model.estimators_[0].predict(further), again.predict(further))

    def test_the_facts_name_the_support_vectors(self):
        model, _ = kernel_model("SVC", kernel="rbf")
        facts = describe_model(model)
        assert facts["support_vectors"] == model.support_.size
        assert (facts["features"], facts["features_used"]) == (5, 5)

    @pytest.mark.parametrize(
        ("attribute", "value", "sentence"),
        [
            ("dual_coef_", np.zeros((1, 2)), "one column a support vector"),
            ("dual_coef_", np.zeros((2, 3)), "need 1 rows"),
            ("dual_coef_", np.zeros(3), "shape"),
            ("support_", np.array([0, 0, 1]), "different samples"),
            ("support_", np.array([-1, 0, 1]), "different samples"),
            ("support_", np.array([0.0, 1.0, 2.0]), "different samples"),
            ("support_vectors_", np.zeros((2, 5)), "3 rows"),
            ("support_vectors_", np.zeros((3, 4)), "width"),
            ("support_vectors_", np.arange(3), "rows of floats"),
            ("support_vectors_", sp.csr_matrix((2, 5)), "3 rows"),
            ("support_vectors_", sp.coo_matrix((3, 5)), "is a coo_matrix"),
            ("gamma_", None, "number > 0"),
            ("gamma_", 0.0, "number > 0"),
            ("gamma_", np.inf, "gamma_"),
            ("gamma_", "scale", "gamma_"),
            ("feature_scale_", np.zeros(5), "> 0"),
            ("feature_scale_", np.ones(4), "one a feature"),
            ("feature_centre_", np.ones(5, dtype=int), "one a feature"),
        ],
    )
    def test_attributes_that_contradict_each_other(self, tmp_path, attribute, value, sentence):
        model = hand_made_kernel_model()
        there_and_back(model, tmp_path)
        setattr(model, attribute, value)
        with pytest.raises(ModelFileError, match=sentence):
            save_model(model, tmp_path / "other.pmz")

    def test_a_kernel_model_without_its_support_vectors_is_not_fitted(self, tmp_path):
        model = hand_made_kernel_model()
        del model.support_vectors_
        with pytest.raises(ModelFileError, match=r"not fitted .*support_vectors_"):
            save_model(model, tmp_path / "model.pmz")

    def test_precomputed_support_vectors_are_numbers_of_samples(self, tmp_path):
        model, _ = kernel_model("SVC", kernel="precomputed")
        model.support_vectors_ = model.support_ + 1
        with pytest.raises(ModelFileError, match="for a precomputed kernel"):
            save_model(model, tmp_path / "model.pmz")
        model.support_[-1] = model.support_vectors_[-1] = 36
        model.support_vectors_ = model.support_
        with pytest.raises(ModelFileError, match="less than 'n_features_in_'"):
            save_model(model, tmp_path / "model.pmz")

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d["settings"].update(kernel="linear"),
            lambda d: d["settings"].update(kernel="precomputed"),
            lambda d: d["settings"].update(standardize=False),
            lambda d: d["settings"].update(kernel={"part": "Linear", "settings": {}}),
            lambda d: d["fitted"].update(coef_={"array": "coef_.npy"}),
            lambda d: d["fitted"].pop("dual_coef_"),
            lambda d: d["fitted"].update(gamma_="scale"),
            lambda d: d["fitted"].update(gamma_=True),
            lambda d: d["fitted"].update(gamma_=-1),
            lambda d: d["fitted"].update(dual_coef_=1.0),
            lambda d: d["fitted"].update(support_vectors_=None),
            lambda d: d["fitted"]["support_vectors_"].update(sparse="dok_matrix"),
            lambda d: d["fitted"]["support_vectors_"].update(sparse=["csr_matrix"]),
            lambda d: d["fitted"]["support_vectors_"].update(sparse="csc_matrix"),
            lambda d: d["fitted"]["support_vectors_"].update(shape=[3, 2]),
            lambda d: d["fitted"]["support_vectors_"].update(shape=[2, 5]),
            lambda d: d["fitted"]["support_vectors_"].update(shape=[3, 10**30]),
            lambda d: d["fitted"]["support_vectors_"].update(shape=[3.0, 5]),
            lambda d: d["fitted"]["support_vectors_"].update(shape=15),
        ],
    )
    def test_a_document_that_is_no_kernel_model_is_refused(self, tmp_path, change):
        with pytest.raises(ModelFileError, match="forged: not a valid model file"):
            load_model(forged_kernel_model(tmp_path, change))

    @pytest.mark.parametrize(
        ("part", "content"),
        [
            ("indices", [0, 9, 1]),
            ("indices", [0, -1, 1]),
            ("indices", [0.0, 1.0, 2.0]),
            ("indptr", [0, 2, 1, 3]),
            ("indptr", [0, 3]),
            ("data", [1.0, 2.0]),
            ("data", [1, 2, 3]),
            ("data", [[1.0, 2.0, 3.0]]),
        ],
    )
    def test_sparse_support_vectors_that_are_damaged_are_refused(self, tmp_path, part, content):
        members = {f"support_vectors_.{part}.npy": npy(np.array(content))}
        with pytest.raises(ModelFileError, match=r"forged: .*support_vectors_"):
            load_model(forged_kernel_model(tmp_path, members=members))


def linear_kernel(left, right):
    return left @ right.T


def hand_made_kernel_model(vectors=None):
    """A model with attributes set by hand: what is stored is up to the test."""
    model = proxmargin.SVC(kernel="rbf", standardize=True)
    model.classes_ = np.array(["no", "yes"])
    model.dual_coef_ = np.array([[0.5, -1.0, 0.5]])
    model.intercept_ = np.array([0.25])
    model.support_ = np.array([1, 4, 6])
    model.support_vectors_ = np.eye(3, 5) if vectors is None else vectors
    model.gamma_ = 0.2
    model.feature_centre_, model.feature_scale_ = np.zeros(5), np.full(5, 2.0)
    model.n_features_in_, model.n_iter_ = 5, 7
    model.certificate_ = CERTIFICATE
    return model


def forged_kernel_model(folder, change=lambda document: None, members=None):
    """A file of sparse support vectors whose document or members were changed by hand."""
    save_model(hand_made_kernel_model(sp.csr_matrix(np.eye(3, 5))), folder / "whole")
    load_model(folder / "whole")
    with zipfile.ZipFile(folder / "whole") as source:
        content = {name: source.read(name) for name in source.namelist()}
    document = json.loads(content["model.json"])
    change(document)
    content.update({"model.json": json.dumps(document).encode(), **(members or {})})
    with zipfile.ZipFile(folder / "forged", "w") as target:
        for name, data in content.items():
            target.writestr(name, data)
    return folder / "forged"


def test_every_public_estimator_can_be_stored():
    public = {
        name
        for name, home in proxmargin._HOMES.items()
        if home.startswith("estimators") and issubclass(getattr(proxmargin, name), BaseEstimator)
    }
    assert public == set(known.ESTIMATORS) | set(known.COMPOSED)


@pytest.mark.parametrize("package", ["losses", "penalties"])
def test_every_public_part_of_plain_settings_can_be_stored(package):
    module = importlib.import_module(f"proxmargin.{package}")
    parts = {
        name
        for name in module.__all__
        if dataclasses.is_dataclass(part := getattr(module, name))
        and not inspect.isabstract(part)
        and name != "MarginSum"  # holds data: it is what a loss becomes during a fit
    }
    assert parts <= set(known.PARTS)


def test_every_solver_is_listed():
    listed = {known.named(known.PARTS, name) for name in known.PARTS}
    for make in SOLVERS.values():
        solver = make()
        inner = [getattr(solver, name, None) for name in ("inner", "fallback")]
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


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(options=st.dictionaries(st.text(max_size=5), PLAIN, max_size=4), tol=st.floats())
def test_plain_parameters_come_back_exactly(tmp_path, options, tol):
    again = there_and_back(learned(solver_options=options, tol=tol), tmp_path)
    assert repr(again.solver_options) == repr(options)
    assert repr(again.tol) == repr(tol)


class TestWhatCannotBeStored:
    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ({"random_state": np.random.RandomState(0)}, "random_state"),
            ({"random_state": np.random.default_rng(0)}, "random_state"),
            ({"tol": np.zeros(3)}, "tol"),
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

    def test_an_unfitted_estimator(self, tmp_path):
        with pytest.raises(ModelFileError, match="not fitted"):
            save_model(MarginClassifier(), tmp_path / "model.pmz")

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
            ("n_iter_", -1, "iterations"),
            ("n_iter_", "many", "iterations"),
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


@pytest.fixture
def forged(tmp_path):
    """Write a model file whose document or members were changed by hand."""

    def forge(change=lambda document: None, *, members=None, compression=zipfile.ZIP_STORED):
        save_model(learned(), tmp_path / "whole")
        with zipfile.ZipFile(tmp_path / "whole") as source:
            content = {name: source.read(name) for name in source.namelist()}
        document = json.loads(content["model.json"])
        content["model.json"] = json.dumps(change(document) or document).encode()
        content.update(members or {})
        with zipfile.ZipFile(tmp_path / "forged", "w", compression) as target:
            for name, data in content.items():
                if data is not None:
                    target.writestr(name, data)
        return tmp_path / "forged"

    return forge


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def setting(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(document):
        for key in keys:
            document = document[key]
        document[last] = value

    return change


class TestReading:
    def test_an_unchanged_forgery_loads(self, forged):
        assert_same(learned(), load_model(forged()))

    def test_a_newer_format_says_to_upgrade(self, forged):
        path = forged(lambda _: {"format": "proxmargin model", "version": 7, "proxmargin": "9.1"})
        with pytest.raises(ModelFileError, match=r"version 7, written by proxmargin 9\.1.*upgrade"):
            load_model(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: [d],
            lambda d: {"format": "something else"},
            lambda d: {**d, "more": 1},
            lambda d: {k: v for k, v in d.items() if k != "certificate"},
            setting("version", "1"),
            setting("version", True),
            setting("version", 0),
            setting("proxmargin", 1),
            setting("estimator", "os.system"),
            setting("estimator", "SVC2"),
            setting("estimator", ["MarginClassifier"]),
            setting("settings", [1]),
            setting("settings", "unheard_of", 1),
            setting("settings", "loss", {"part": "Popen", "settings": {"args": "true"}}),
            setting("settings", "loss", {"part": "MarginClassifier", "settings": {}}),
            setting("settings", "loss", {"part": ["Ridge"], "settings": {}}),
            setting("settings", "loss", {"part": "Ridge", "settings": {"l3": 1}}),
            setting("settings", "loss", {"part": "HuberizedHinge", "settings": {"delta": -1}}),
            setting("settings", "loss", {"part": "HuberizedHinge", "settings": {"delta": "x"}}),
            setting("settings", "loss", {"part": "Ridge"}),
            setting("settings", "tol", {"float": "1.0"}),
            setting("settings", "tol", {"float": []}),
            setting("settings", "tol", {"tuple": 3}),
            setting("settings", "tol", {"entries": [[1]]}),
            setting("settings", "tol", {"entries": [[[], 1]]}),
            setting("settings", "tol", {"entries": 1}),
            setting("settings", "tol", {"unknown": 1}),
            setting("settings", "tol", {}),
            setting("settings", "tol", math.nan),
            setting("fitted", []),
            setting("fitted", "extra_", 1),
            setting("fitted", "coef_", 1),
            setting("fitted", "coef_", {"array": "intercept_.npy"}),
            setting("fitted", "coef_", {"array": "../coef_.npy"}),
            setting("fitted", "coef_", None),
            setting("fitted", "n_features_in_", 5),
            setting("fitted", "n_features_in_", True),
            setting("fitted", "n_iter_", -1),
            setting("fitted", "classes_", {"text": ["a"], "dtype": "U"}),
            setting("fitted", "classes_", {"text": ["a", "a"], "dtype": "U"}),
            setting("fitted", "classes_", {"text": ["a", 1], "dtype": "O"}),
            setting("fitted", "classes_", {"text": ["a", "b"], "dtype": "V"}),
            setting("fitted", "classes_", {"text": ["a", "b"], "dtype": []}),
            setting("fitted", "classes_", {"text": ["a", "b", "c"], "dtype": "U"}),
            setting("fitted", "classes_", {"text": ["a" * 100_000, *"b" * 1000], "dtype": "U"}),
            setting("fitted", "feature_names_in_", {"text": ["a"], "dtype": "O"}),
            setting("certificate", 3),
            setting("certificate", []),
            setting("certificate", {"gap": 1.0}),
            setting("certificate", "gap", "small"),
            setting("certificate", "converged", 1),
            setting("certificate", "n_iter", 1.5),
        ],
    )
    def test_a_document_that_is_no_model_is_refused(self, forged, change):
        with pytest.raises(ModelFileError, match="forged: not a valid model file"):
            load_model(forged(change))

    @pytest.mark.parametrize(
        "coef",
        [
            npy(np.zeros((1, 5))),
            npy(np.zeros((2, 4))),
            npy(np.zeros(4)),
            npy(np.zeros((1, 4), dtype=int)),
            npy(np.zeros((1, 4), dtype=complex)),
            npy(np.zeros((1, 4), dtype=[("x", float)])),
            npy(np.array([[None] * 4]), allow_pickle=True),
            npy(np.zeros((1, 4)))[:-1],
            npy(np.zeros((1, 4))) + b"x",
            npy(np.zeros((1, 4))).replace(b"(1, 4)", b"(-1,4)"),
            npy(np.zeros((1, 4))).replace(b"(1, 4), ", b"(9**9,),"),
            npy(np.zeros((1, 4))).replace(b"(1, 4), }   ", b"(10**9,4), }"),
            npy(np.zeros((1, 4))).replace(b"(1, 4), }         ", b"(1000000000, 4), }"),
            npy(np.zeros((1, 4))).replace(b"\x01\x00", b"\x09\x00", 1),
            b"",
            None,
        ],
    )
    def test_an_array_that_does_not_fit_is_refused(self, forged, coef):
        with pytest.raises(ModelFileError, match=r"forged: .*coef_"):
            load_model(forged(members={"coef_.npy": coef}))

    def test_extra_members_are_refused(self, forged):
        with pytest.raises(ModelFileError, match="do not belong"):
            load_model(forged(members={"evil.py": b"1 / 0"}))

    def test_compressed_members_are_refused(self, forged):
        with pytest.raises(ModelFileError, match="compressed"):
            load_model(forged(compression=zipfile.ZIP_DEFLATED))

    @pytest.mark.parametrize(
        "text", [b"{", b"\xff", b"[" * 100_000, b'{"a": 1, "a": 2}', b"1" * 5000, b'{"a": NaN}']
    )
    def test_a_document_that_is_no_json_is_refused(self, forged, text):
        with pytest.raises(ModelFileError, match="forged"):
            load_model(forged(members={"model.json": text}))

    def test_deeply_nested_parameters_are_refused(self, forged):
        deep: list = []
        for _ in range(600):
            deep = [deep]
        with pytest.raises(ModelFileError, match="forged"):
            load_model(forged(setting("settings", "tol", {"tuple": deep, "x": deep})))

    @pytest.mark.parametrize("content", [b"", b"P", b"PK\x03\x04", b"a,b,y\n1,2,3\n", bytes(5000)])
    def test_foreign_files_are_refused(self, tmp_path, content):
        (tmp_path / "foreign").write_bytes(content)
        with pytest.raises(ModelFileError, match="foreign"):
            load_model(tmp_path / "foreign")

    def test_another_zip_archive_is_refused(self, tmp_path):
        np.savez(tmp_path / "data.npz", X=np.zeros(3))
        with pytest.raises(ModelFileError, match=r"no 'model\.json'"):
            load_model(tmp_path / "data.npz")

    def test_missing_files_and_folders_are_sentences(self, tmp_path):
        with pytest.raises(ModelFileError, match="No such file"):
            load_model(tmp_path / "absent")
        with pytest.raises(ModelFileError, match="cannot be read"):
            load_model(tmp_path)


def test_damaged_files_load_the_same_model_or_are_refused(tmp_path):
    model = learned(loss=Ridge(0.5), solver_options={"step": 0.1})
    save_model(model, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    rng = np.random.default_rng(11)
    refused = 0
    for trial in range(800):
        content = bytearray(whole)
        for at in rng.integers(0, len(whole), size=1 + trial % 3):
            content[at] ^= rng.integers(1, 256)
        if trial % 5 == 0:
            content = content[: rng.integers(0, len(content))]
        (tmp_path / "damaged").write_bytes(content)
        try:
            again = load_model(tmp_path / "damaged")
        except ModelFileError:
            refused += 1
        else:
            assert_same(model, again)
    assert refused > 500


def test_reading_a_file_opens_no_process_and_imports_nothing_new(tmp_path, monkeypatch):
    save_model(learned(loss=HuberizedHinge()), tmp_path / "model.pmz")
    load_model(tmp_path / "model.pmz")
    monkeypatch.setattr("pickle.loads", lambda *_: pytest.fail("unpickled"))
    monkeypatch.setattr("pickle.load", lambda *_: pytest.fail("unpickled"))
    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("ran a command"))
    assert_same(learned(loss=HuberizedHinge()), load_model(tmp_path / "model.pmz"))


class TestDescription:
    def test_a_file_and_its_model_are_described_alike(self, tmp_path):
        model = learned(loss=HuberizedHinge(delta=0.5))
        save_model(model, tmp_path / "model.pmz")
        facts = describe_model(tmp_path / "model.pmz")
        assert facts["format_version"] == 1
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
