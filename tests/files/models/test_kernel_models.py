"""Model files of kernel machines: support vectors of every form, and what contradicts them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import proxmargin
from proxmargin import MarginClassifier, load_model, save_model
from proxmargin.data.kernels import Linear, Polynomial, Rbf
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.model import describe_model
from proxmargin.losses import DistanceWeighted
from proxmargin.penalties import Ball
from proxmargin.solvers.papers.accelerated import FastProximalGradientStar
from tests.files.model_files import CERTIFICATE, assert_same, forged_file, npy, there_and_back

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
    model = hand_made_kernel_model(sp.csr_matrix(np.eye(3, 5)))
    load_model(forged_file(folder, model))
    return forged_file(folder, model, change, members)
