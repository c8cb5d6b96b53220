"""ONNX graphs predict as the models do, to 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import proxmargin as pm
from proxmargin.data.kernels import Rbf
from proxmargin.models.fitting.registry import model_names
from proxmargin.models.selection.calibrators import CALIBRATORS

pytest.importorskip("skl2onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

X, CODES = load_iris(return_X_y=True)
X = X[:, ::-1] * [1.0, 10.0, 1.0, 0.1]
NAMES = np.array(["setosa", "versicolor", "virginica"])[CODES]
KERNELS = {
    "rbf": {"gamma": 0.5},
    "poly": {"degree": 2, "coef0": 1.0},
    "linear": {},
}


def data(n_classes):
    kept = 3 - n_classes <= CODES
    return X[kept].astype(np.float32), NAMES[kept]


def outputs(model, rows, given=None):
    graph = pm.to_onnx(model, given)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: rows})


def assert_same(model, rows, given=None):
    labels, values = outputs(model, rows, given)
    assert labels.tolist() == model.predict(rows).tolist()
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(rows)
    else:
        expected = model.decision_function(rows)
        expected = np.column_stack([-expected, expected]) if expected.ndim == 1 else expected
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", model_names())
def test_models_of_one_set_of_coefficients(name, n_classes):
    rows, labels = data(n_classes)
    settings = {} if name in ("MarginClassifier", "MulticlassSVC") else {"standardize": True}
    model = getattr(pm, name)(tol=1e-2, **settings)
    assert_same(model.fit(rows, labels), rows)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel, n_classes):
    rows, labels = data(n_classes)
    for name in ("SVC", "LogisticRegression"):
        for standardize in (False, True):
            options = {"C": 0.1, "tol": 1e-3, "standardize": standardize, **KERNELS[kernel]}
            model = getattr(pm, name)(kernel=kernel, **options).fit(rows, labels)
            assert_same(model, rows)
    assert_same(pm.SVC(kernel=Rbf(0.2)).fit(rows, labels), rows)


def test_a_kernel_that_is_not_positive():
    rows, labels = data(3)
    model = pm.SVC(kernel="rbf", gamma=0.01).fit(rows, labels)
    assert_same(model.set_params(kernel="sigmoid", coef0=-0.5), rows)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_support_vectors():
    rows, labels = data(2)
    holed = np.where(rows > 1.0, rows, 0.0)
    for standardize in (False, True):
        model = pm.SVC(kernel="rbf", standardize=standardize)
        assert_same(model.fit(sparse.csr_array(holed), labels), holed.astype(np.float32))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", CALIBRATORS)
@pytest.mark.parametrize("ensemble", [False, True])
def test_calibrated_models(method, n_classes, ensemble):
    rows, labels = data(n_classes)
    pipeline = make_pipeline(StandardScaler(), pm.L2SVC(C=0.1))
    for estimator in (pm.L2SVC(C=0.1), pipeline):
        model = pm.CalibratedMargin(estimator, method, cv=2, ensemble=ensemble)
        assert_same(model.fit(rows, labels), rows)


def test_joint_classes_searches_pipelines_and_doubles(tmp_path):
    rows, labels = data(3)
    joint = pm.SparseLogisticRegression(alpha=0.01, multi_class="joint")
    assert_same(joint.fit(rows, labels), rows)
    search = pm.SparseLogisticRegressionCV(alphas=3, cv=2).fit(rows, labels)
    assert_same(search, rows)
    pipeline = make_pipeline(StandardScaler(), pm.HuberizedSVC()).fit(rows, labels)
    assert_same(pipeline, rows)
    pm.save_model(pipeline, tmp_path / "model.pmz")
    assert_same(pm.load_model(tmp_path / "model.pmz"), rows)
    precise = X + 1e-9
    assert_same(joint.fit(precise, CODES), precise, precise)


def test_labels_that_are_numbers_stay_so():
    labels, _ = outputs(pm.SVC().fit(X, CODES - 1), X.astype(np.float32))
    assert labels.dtype == np.int64
    assert set(labels.tolist()) == {-1, 0, 1}


def test_what_has_no_graph_is_told():
    rows, labels = data(2)
    with pytest.raises(NotImplementedError, match="kernel='precomputed'"):
        pm.to_onnx(pm.SVC(kernel="precomputed").fit(rows @ rows.T, labels))
    with pytest.raises(NotImplementedError, match="of a LinearSVC"):
        pm.to_onnx(pm.CalibratedMargin(LinearSVC(), cv=2).fit(rows, labels))
