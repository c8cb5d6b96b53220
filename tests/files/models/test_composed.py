"""Files of pipelines, graphs, selections and searches: they predict as before, to the bit."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler

from proxmargin import (
    L2SVC,
    SVC,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVCCV,
    SparseLogisticRegression,
    StabilitySelection,
    load_model,
    save_model,
)
from proxmargin.cli import main
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.composed import RECORDS
from proxmargin.files.models.model import describe_model
from tests.files.model_files import forged_file, there_and_back

WRITTEN = Path(__file__).parent / "written"
NUMBERS, CODES = load_iris(return_X_y=True, as_frame=True)
NUMBERS = NUMBERS.set_axis(["sl", "sw", "pl", "pw"], axis=1)
THREE = np.array(["setosa", "versicolor", "virginica"])[CODES]
TWO = np.where(CODES == 2, "virginica", "other")
ROWS = np.arange(150)
HOLED = NUMBERS.mask((ROWS[:, None] + np.arange(4)) % 7 == 0)
MIXED = HOLED.assign(
    site=np.array(["left", "right", "top"])[ROWS % 3],
    batch=ROWS % 4,
    kind=pd.Series(np.array(["a", np.nan, "b"], dtype=object)[ROWS // 3 % 3]),
)
MODEL = L2SVC(C=0.1)


def columns(**options):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore", drop="if_binary")
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    return ColumnTransformer(
        [
            ("numbers", numbers, ["sl", "sw"]),
            ("levels", levels, ["site", "batch"]),
            ("words", words, ["kind"]),
            ("rest", "drop", ["pw"]),
        ],
        **options,
    )


REST = {"remainder": SimpleImputer(strategy="constant", fill_value=-1.0)}
LASSO = SparseLogisticRegression(alpha=0.05, l1_ratio=1.0)
SELECTION = StabilitySelection(LASSO, n_pairs=10, threshold=0.9, q=1, alphas=8, min_features=1)
PIPELINES = {
    "standardised": (make_pipeline(StandardScaler(), MODEL), NUMBERS),
    "without a mean": (make_pipeline(StandardScaler(with_mean=False), MODEL), NUMBERS),
    "scaled": (make_pipeline(MinMaxScaler((-1, 1), clip=True), LASSO), NUMBERS),
    "imputed": (make_pipeline(SimpleImputer(strategy="median"), MinMaxScaler(), MODEL), HOLED),
    "indicated": (make_pipeline(SimpleImputer(add_indicator=True), MODEL), HOLED),
    "arrays": (make_pipeline(SimpleImputer(), StandardScaler(), MODEL), HOLED.to_numpy()),
    "levels": (make_pipeline(OneHotEncoder(), MODEL), MIXED[["site", "batch"]]),
    "columns": (Pipeline([("of", columns(**REST)), ("model", MODEL)]), MIXED),
    "no rest": (make_pipeline(columns(sparse_threshold=0), MODEL), MIXED),
    "by kind": (
        make_pipeline(
            ColumnTransformer(
                [("levels", OneHotEncoder(), make_column_selector(dtype_include=object))],
                remainder="passthrough",
            ),
            MODEL,
        ),
        NUMBERS.assign(site=MIXED["site"].astype(object)),
    ),
    "as frames": (
        make_pipeline(
            StandardScaler(), ColumnTransformer([("some", "passthrough", ["pl", "pw"])]), MODEL
        ).set_output(transform="pandas"),
        NUMBERS,
    ),
    "selected": (make_pipeline(StandardScaler(), SelectFromModel(LASSO), MODEL), NUMBERS),
    "at most": (
        make_pipeline(SelectFromModel(LASSO, threshold=-np.inf, max_features=2), MODEL),
        NUMBERS,
    ),
    "stable": (make_pipeline("passthrough", SELECTION, MODEL), NUMBERS.to_numpy()),
    "a search": (make_pipeline(StandardScaler(), HuberizedSVCCV(alphas=3)), NUMBERS),
    "a kernel": (make_pipeline(StandardScaler(), SVC(kernel="rbf")), NUMBERS),
    "calibrated": (CalibratedMargin(make_pipeline(StandardScaler(), MODEL), cv=2), NUMBERS),
    "calibrated at the end": (
        make_pipeline(StandardScaler(), CalibratedMargin(MODEL, cv=2)),
        NUMBERS,
    ),
    "a graph": (make_pipeline(StandardScaler(), DDAGClassifier(MODEL)), NUMBERS),
}


def fitted(name, y=THREE):
    model, X = PIPELINES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y), X


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_predicts_as_before(tmp_path, name):
    model, X = fitted(name, TWO)
    again = there_and_back(model, tmp_path)
    assert isinstance(again, Pipeline) == isinstance(model, Pipeline)
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert list(getattr(again, "feature_names_in_", ())) == list(
        getattr(model, "feature_names_in_", ())
    )
    if isinstance(model, Pipeline):
        assert [step for step, _ in again.steps] == [step for step, _ in model.steps]
        if hasattr(model[:-1], "get_feature_names_out") and hasattr(X, "columns"):
            names = model[:-1].get_feature_names_out()
            assert again[:-1].get_feature_names_out().tolist() == names.tolist()
    save_model(again, tmp_path / "twice.pmz")
    assert (tmp_path / "twice.pmz").read_bytes() == (tmp_path / "model.pmz").read_bytes()


@pytest.mark.parametrize("name", ["imputed", "columns", "selected", "calibrated"])
def test_what_comes_back_can_be_fitted_again(tmp_path, name):
    model, X = fitted(name, TWO)
    again = there_and_back(model, tmp_path).fit(X, TWO)
    np.testing.assert_allclose(again.predict(X) == model.predict(X), True)


def test_a_graph_of_pairs_comes_back(tmp_path):
    for estimator in (None, MODEL, SVC(kernel="rbf"), HuberizedSVCCV(alphas=3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DDAGClassifier(estimator).fit(NUMBERS, THREE)
        again = there_and_back(model, tmp_path)
        np.testing.assert_array_equal(
            again.decision_function(NUMBERS), model.decision_function(NUMBERS)
        )
        assert str(again.certificate_) == str(model.certificate_)
    assert again.feature_names_in_.tolist() == list(NUMBERS.columns)
    facts = describe_model(again)
    assert (facts["pairs_of"], facts["fits"]) == ("HuberizedSVC", 3)


def test_a_selection_comes_back_with_its_frequencies(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SELECTION.fit(NUMBERS, TWO)
    again = there_and_back(model, tmp_path)
    pd.testing.assert_frame_equal(again.to_frame(), model.to_frame())
    assert (again.pfer_, again.q_, again.threshold_) == (model.pfer_, model.q_, model.threshold_)
    assert repr(again) == repr(model)
    assert describe_model(again)["features_selected"] == int(model.get_support().sum())


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PolynomialFeatures(), r"step 'it': A PolynomialFeatures .*skops"),
        (OneHotEncoder(min_frequency=3), "step 'it': .*min_frequency"),
        (StandardScaler(with_mean=False, with_std=False), "step 'it': .*changes nothing: leave"),
    ],
)
def test_a_step_that_cannot_be_stored_is_named(tmp_path, step, reason):
    model = Pipeline([("it", step), ("model", MODEL)]).fit(NUMBERS, TWO)
    with pytest.raises(ModelFileError, match=f"Pipeline: {reason}"):
        save_model(model, tmp_path / "model.pmz")
    assert list(tmp_path.iterdir()) == []


def test_so_is_one_of_some_columns(tmp_path):
    words = ColumnTransformer([("words", TfidfVectorizer(), "site")])
    model = make_pipeline(words, MODEL).fit(MIXED, TWO)
    named = r"Pipeline: step 'columntransformer': transformer 'words': A TfidfVectorizer"
    with pytest.raises(ModelFileError, match=named):
        save_model(model, tmp_path / "model.pmz")


def test_what_is_not_fitted_is_told(tmp_path):
    for model in (
        make_pipeline(StandardScaler(), MODEL),
        DDAGClassifier(),
        SELECTION.__class__(LASSO),
        StandardScaler(),
    ):
        with pytest.raises(ModelFileError, match="not fitted"):
            save_model(model, tmp_path / "model.pmz")


def step(document, *keys):
    for key in keys:
        document = document["models"][key]
    return document


FORGERIES = {
    "no steps": lambda d: d.update(models=[]),
    "another step": lambda d: step(d, 0).update(estimator="PolynomialFeatures"),
    "a step that is a word": lambda d: d["models"].__setitem__(0, "os.system"),
    "a step without a model": lambda d: d["models"].pop(),
    "a name for two steps": lambda d: d["fitted"]["names"].update(value=["a", "a"]),
    "a folder for a cache": lambda d: d["settings"].update(memory="cache"),
    "processes": lambda d: step(d, 0)["settings"].update(n_jobs=10**6),
    "columns beyond the table": lambda d: step(d, 0)["fitted"]["columns"].update(
        value=[[0, 10**9], [4, 5], [6], [3], [2]]
    ),
    "a column less": lambda d: step(d, 0)["fitted"]["columns"].update(
        value=[[0], [4, 5], [6], [3], [1, 2]]
    ),
    "a category twice": lambda d: step(d, 0, 1)["fitted"]["categories_"].update(
        value=[["a", "a"], [1, 2]]
    ),
    "no categories": lambda d: step(d, 0, 1)["fitted"]["categories_"].update(value=[]),
    "an unknown attribute": lambda d: step(d, 0, 0, 1)["fitted"].update(transform={"value": 1}),
    "no scale": lambda d: step(d, 0, 0, 1)["fitted"].pop("mean_"),
    "an unknown parameter": lambda d: step(d, 0, 1)["settings"].update(encoder=1),
    "a parameter of another kind": lambda d: step(d, 0, 1)["settings"].update(drop=3.5),
    "a way that there is not": lambda d: step(d, 0, 0, 0)["settings"].update(strategy="best"),
    "names of fewer features": lambda d: step(d, 0)["fitted"]["feature_names_in_"].update(
        value={"tuple": ["sl"]}
    ),
    "a name that is a number": lambda d: step(d, 0)["fitted"]["feature_names_in_"].update(
        value={"tuple": ["sl", "sw", "pl", "pw", -1, True, 1e300]}
    ),
    "names that contradict each other": lambda d: step(d, 0, 0, 0)["fitted"][
        "feature_names_in_"
    ].update(value={"tuple": ["sw", "sl"]}),
    "other columns by name": lambda d: step(d, 0)["fitted"]["by_name"].update(
        value=[["sl"], None, None, None]
    ),
    "an imputer of the last version": lambda d: d.update(imputed={}),
    "a part that is no estimator": lambda d: d["models"].__setitem__(0, 3),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_steps_are_refused(tmp_path, what):
    model, _ = fitted("columns", TWO)
    path = forged_file(tmp_path, model, lambda d: FORGERIES[what](d) and None)
    with pytest.raises(ModelFileError, match=str(path)):
        load_model(path)


def test_names_of_steps_with_frames_between_them_agree(tmp_path):
    model, _ = fitted("as frames", TWO)
    names = {"value": {"tuple": ["pl", "pw", "sl", "sw"]}}
    path = forged_file(
        tmp_path, model, lambda d: step(d, 1)["fitted"].update(feature_names_in_=names)
    )
    with pytest.raises(ModelFileError, match="names of features contradict"):
        load_model(path)


@pytest.mark.parametrize("given", [["pw"], "pw", slice("pl", "pw"), lambda X: ["pw"], [3]])
def test_columns_by_name_stay_so(tmp_path, given):
    """In a refit to a table in another order; those by number are others there."""
    chosen = ColumnTransformer([("s", "drop", given)], remainder="passthrough")
    model = make_pipeline(chosen, MODEL).fit(NUMBERS, TWO)
    loaded = there_and_back(there_and_back(model, tmp_path), tmp_path)
    other = NUMBERS[["sw", "pl", "pw", "sl"]]
    dropped = other.drop(columns=["pl", "pw"] if isinstance(given, slice) else "pw")
    dropped = other[["sw", "pl", "pw"]] if given == [3] else dropped
    expected = MODEL.fit(dropped, TWO).coef_
    np.testing.assert_allclose(loaded.fit(other, TWO)[-1].coef_, expected, rtol=1e-6)


def test_an_encoder_of_numbers_as_objects_loads(tmp_path):
    X = MIXED[["batch"]].astype(object)
    model = make_pipeline(OneHotEncoder(), MODEL).fit(X, TWO)
    np.testing.assert_array_equal(there_and_back(model, tmp_path).predict(X), model.predict(X))


GRAPHS = {
    "a pair less": lambda d: d["models"].pop(),
    "another order": lambda d: d["models"].reverse(),
    "no classifier": lambda d: d["settings"].update(estimator=3),
    "another class": lambda d: d["fitted"]["classes_"].update(
        value={"tuple": ["setosa", "versicolor", "c"]}
    ),
    "classes that are gone": lambda d: d["fitted"].pop("classes_"),
}


@pytest.mark.parametrize("what", GRAPHS)
def test_forged_graphs_are_refused(tmp_path, what):
    model = DDAGClassifier(MODEL).fit(NUMBERS, THREE)
    path = forged_file(tmp_path, model, lambda d: GRAPHS[what](d) and None)
    with pytest.raises(ModelFileError):
        load_model(path)


def test_nothing_in_the_file_is_executed(tmp_path, monkeypatch):
    """Names are looked up in the table alone, and modules imported are those that it names."""
    model, _ = fitted("standardised", TWO)
    path = forged_file(
        tmp_path, model, lambda d: d["models"][0].update(estimator="FunctionTransformer")
    )
    with pytest.raises(ModelFileError, match="no estimator of this version"):
        load_model(path)
    assert {record.home.split(".")[0] for record in RECORDS.values()} == {"sklearn", "proxmargin"}


@pytest.mark.parametrize("name", json.loads((WRITTEN / "0.1.0.json").read_text())["scores"])
def test_files_of_the_last_version_load(name):
    known = json.loads((WRITTEN / "0.1.0.json").read_text())
    model = load_model(WRITTEN / f"0.1.0-{name}.pmz")
    rows = pd.DataFrame(known["rows"], columns=["sl", "sw", "pl", "pw"])
    method = "predict_proba" if name == "calibrated" else "decision_function"
    scores = getattr(model, method)(rows)
    scores = scores[:, 1] if name == "calibrated" else scores
    np.testing.assert_allclose(scores, known["scores"][name], rtol=1e-13)


@pytest.mark.parametrize("name", ["columns", "imputed", "calibrated", "levels"])
def test_the_command_line_predicts_and_describes(tmp_path, capsys, name):
    model, X = fitted(name, TWO)
    path, table = str(tmp_path / "model.pmz"), tmp_path / "rows.csv"
    save_model(model, path)
    X.iloc[:20].to_csv(table, index=False)
    assert main(["predict", path, str(table), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["prediction"] == model.predict(X.iloc[:20]).tolist()
    assert main(["info", path, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["estimator"] == ("CalibratedMargin" if name == "calibrated" else "L2SVC")
    assert main(["info", path]) == 0


def test_a_pipeline_names_its_transformed_features(tmp_path):
    model, _ = fitted("levels", TWO)
    facts = describe_model(there_and_back(model, tmp_path))
    assert facts["steps"] == ["OneHotEncoder"]
    assert facts["top_features"][0]["feature"] in {*model[:-1].get_feature_names_out()}


def test_a_pipeline_names_the_columns_of_its_table(tmp_path):
    model = make_pipeline(columns(), DDAGClassifier(MODEL)).fit(MIXED, THREE)
    facts = describe_model(there_and_back(model, tmp_path))
    assert facts["columns"] == [*MIXED.columns]
    assert facts["feature_names"] == [*model[:-1].get_feature_names_out()]
    assert facts["imputed"] == "mean, most_frequent"
    graph = DDAGClassifier(MODEL).fit(NUMBERS, THREE)
    assert describe_model(graph)["feature_names"] == [*NUMBERS.columns]
