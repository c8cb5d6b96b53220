"""Libraries that people use with this one: each does with its models what it does with others."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

import proxmargin as pm

X, Y = shuffle(*load_breast_cancer(return_X_y=True, as_frame=True), random_state=0)
X = X.iloc[:, :10]
LOGISTIC = pm.SparseLogisticRegression(alpha=0.02, standardize=True)
L2 = pm.L2SVC(standardize=True)
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "clients.md"


def client(name: str):
    return pytest.importorskip(name, reason=f"{name} is not installed: requirements/clients.txt")


def test_imbalanced_learn() -> None:
    client("imblearn")
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline as with_samplers

    sampled = with_samplers(StandardScaler(), SMOTE(random_state=0), pm.L2SVC()).fit(X, Y)
    assert sampled.score(X, Y) > 0.9
    bags = BalancedBaggingClassifier(L2, n_estimators=3, random_state=0).fit(X, Y)
    assert bags.score(X, Y) > 0.9
    assert pm.CalibratedMargin(sampled, cv=2).fit(X, Y).predict_proba(X).shape == (569, 2)


MODELS = {
    "linear": LOGISTIC,
    "kernel": pm.SVC(kernel="rbf", standardize=True),
    "several": pm.MulticlassSVC(),
    "search": pm.HuberizedSVCCV(alphas=4, cv=3, standardize=True),
    "search by C": pm.SVCCV(Cs=[0.1, 1.0], cv=3, standardize=True),
    "calibrated": pm.CalibratedMargin(L2, cv=2),
    "graph": pm.DDAGClassifier(L2),
    "pipeline": make_pipeline(StandardScaler(), pm.L2SVC()),
}


@pytest.mark.filterwarnings("ignore:the chosen")
@pytest.mark.parametrize("name", MODELS)
def test_skops(name: str) -> None:
    io = client("skops.io")
    model = MODELS[name].fit(X, Y)
    kept = io.dumps(model)
    types = io.get_untrusted_types(data=kept)
    others = {each for each in types if not each.startswith("proxmargin.")}
    assert others <= {"scipy.sparse._csr.csr_array"}  # of the path of a search
    again = io.loads(kept, trusted=types)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_optuna() -> None:
    optuna = client("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def score(trial) -> float:
        alpha = trial.suggest_float("alpha", 1e-3, 1.0, log=True)
        return cross_val_score(LOGISTIC.set_params(alpha=alpha), X, Y, cv=3).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(score, n_trials=4)
    assert study.best_value > 0.9
    LOGISTIC.set_params(alpha=0.02)


def test_mlxtend() -> None:
    selection = client("mlxtend.feature_selection")
    selector = selection.SequentialFeatureSelector(L2, k_features=2, cv=2).fit(X.iloc[:, :4], Y)
    assert len(selector.k_feature_names_) == 2


def test_mapie() -> None:
    classification = client("mapie.classification")
    model = pm.CalibratedMargin(L2, cv=3).fit(X[:300], Y[:300])
    sets = classification.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    sets.conformalize(X[300:450], Y[300:450])
    _, members = sets.predict_set(X[450:])
    covered = members[np.arange(len(X) - 450), Y[450:].to_numpy(), 0].mean()
    assert covered > 0.85


def test_fairlearn() -> None:
    reductions = client("fairlearn.reductions")
    from fairlearn.postprocessing import ThresholdOptimizer

    groups = (X.iloc[:, 0] > 14).astype(int)
    parity = reductions.DemographicParity()
    fair = reductions.ExponentiatedGradient(L2, parity, max_iter=3)
    fair.fit(X.to_numpy(), Y.to_numpy(), sensitive_features=groups.to_numpy())
    assert set(fair.predict(X.to_numpy())) == {0, 1}
    for model, method in ((LOGISTIC, "predict_proba"), (L2, "decision_function")):
        found = ThresholdOptimizer(
            estimator=model, constraints="demographic_parity", predict_method=method
        ).fit(X, Y, sensitive_features=groups)
        assert set(found.predict(X, sensitive_features=groups, random_state=0)) == {0, 1}


def test_shap() -> None:
    shap = client("shap")
    model = LOGISTIC.fit(X, Y)
    explainer = shap.LinearExplainer(model, X)
    parts = explainer.shap_values(X.iloc[:5])
    total = parts.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.decision_function(X.iloc[:5]), rtol=1e-9)
    several = pm.SparseLogisticRegression(alpha=0.02, multi_class="joint")
    several.fit(X, np.arange(len(X)) % 3)
    assert shap.LinearExplainer(several, X).shap_values(X.iloc[:5]).shape == (5, 10, 3)


@pytest.mark.slow
def test_mlflow(tmp_path, monkeypatch) -> None:
    mlflow = client("mlflow")
    sklearn = client("mlflow.sklearn")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    model = make_pipeline(StandardScaler(), pm.L2SVC()).fit(X, Y)
    trusted = [f"{kind.__module__}.{kind.__name__}" for kind in (pm.L2SVC, pm.Certificate)]
    for options in (
        {"serialization_format": "cloudpickle"},
        {"serialization_format": "skops", "skops_trusted_types": trusted},
    ):
        with mlflow.start_run():
            logged = sklearn.log_model(
                model, name="model", pip_requirements=["scikit-learn"], **options
            )
        again = sklearn.load_model(logged.model_uri)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
def test_skore() -> None:
    skore = client("skore")
    parts = {"X_train": X[:400], "y_train": Y[:400], "X_test": X[400:], "y_test": Y[400:]}
    for model in (LOGISTIC, L2):
        report = skore.EstimatorReport(clone(model), **parts)
        assert report.metrics.accuracy() > 0.9
    assert len(report.inspection.coefficients().frame()) == 11


def test_polars() -> None:
    polars = client("polars")
    frame, labels = polars.DataFrame(X.to_dict("list")), polars.Series(Y.to_list())
    for model in (LOGISTIC, MODELS["search"], MODELS["calibrated"], MODELS["pipeline"]):
        found = model.fit(frame, labels)
        np.testing.assert_array_equal(found.predict(frame), model.predict(X))
        assert list(found.feature_names_in_) == list(X.columns)


def test_pandas_with_types_of_pyarrow() -> None:
    client("pyarrow")
    frame = X.convert_dtypes(dtype_backend="pyarrow")
    words = pd.Series(np.where(Y == 1, "b", "m"), index=Y.index, dtype="string[pyarrow]")
    for labels in (Y.convert_dtypes(dtype_backend="pyarrow"), words):
        for model in (LOGISTIC, MODELS["search"], MODELS["calibrated"], MODELS["graph"]):
            found = model.fit(frame, labels)
            assert found.predict(frame).tolist() == found.predict(X).tolist()
    pm.compare(frame, words, models=["L2SVC"], cv=2, repeats=1, progress=False)


def test_the_page_has_the_versions_that_are_tested() -> None:
    pins = (PAGE.parents[2] / "requirements" / "clients.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.\[\]-]+)` \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) >= 14
    for name, version in rows:
        assert f"\n{name}=={version} " in f"\n{pins}", name
