"""``compare(preprocess=...)``: transformers are fitted to the training rows of each fold alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from proxmargin import compare, load_model, save_model
from proxmargin.models.classifiers.regularized import L2SVC
from proxmargin.studies.comparing.rows import LabelledRows, TrainTestRows
from proxmargin.studies.comparing.searches import CPath, Grid

X, Y = make_classification(90, 6, n_informative=4, random_state=0)
HOLED = X.copy()
HOLED[::7, 1] = np.nan
MODELS = ["L2SVC", "SquaredHingeSVC", "SVC-rbf"]


def quick(X, preprocess, **settings):
    return compare(
        X, Y, models=MODELS, cv=2, quick=True, progress=False, preprocess=preprocess, **settings
    )


class Recorded(TransformerMixin, BaseEstimator):
    """Leaves everything as it is, and notes which rows (by their last column) it was fitted to."""

    fits: list[frozenset[int]] = []
    pairs: list[tuple[frozenset[int], frozenset[int]]] = []

    def fit(self, X, y=None):
        self.rows_ = frozenset(X[:, -1].astype(int).tolist())
        self.fits.append(self.rows_)
        return self

    def transform(self, X):
        self.pairs.append((self.rows_, frozenset(X[:, -1].astype(int).tolist())))
        return X[:, :-1]


def test_an_imputer_gives_the_same_as_a_pipeline_that_begins_with_it() -> None:
    ours = quick(HOLED, SimpleImputer())
    for outcome in ours.outcomes:
        assert np.isfinite(list(outcome.scores.values())).all()
    whole = ours.models_["L2SVC"]
    assert np.all(np.isin(whole.predict(HOLED), [0, 1]))
    filled = SimpleImputer().fit_transform(HOLED)
    alone = L2SVC(**{**whole.model.get_params()}).fit(filled, Y)
    np.testing.assert_allclose(whole.coef_, alone.coef_, rtol=1e-3, atol=1e-6)
    assert whole.certificate_.converged


def test_transformers_are_fitted_to_training_rows_of_outer_and_inner_folds_only() -> None:
    Recorded.fits.clear()
    Recorded.pairs.clear()
    numbered = np.column_stack([X, np.arange(len(X))])
    quick(numbered, Recorded())
    every = frozenset(range(len(X)))
    partial = {each for each in Recorded.fits if each != every}
    outer = {each for each in partial if len(each) == len(X) // 2}
    assert len(outer) == 2
    inner = partial - outer
    assert inner
    # every other fit is one within an outer training part, or within all rows for the final model
    assert all(len(each) in (30, 60) for each in inner)
    assert all(any(each < part for part in (*outer, every)) for each in inner)


def test_poisoned_held_out_rows_change_neither_the_choice_nor_the_model() -> None:
    poisoned = HOLED.copy()
    test = np.arange(60, 90)
    poisoned[test] = 1e6
    found = []
    for data in (HOLED, poisoned):
        rows = LabelledRows(data, Y, preprocess=SimpleImputer())
        train = rows.rows(np.arange(60))
        inner = [
            TrainTestRows(np.arange(40), np.arange(40, 60)),
            TrainTestRows(np.arange(20, 60), np.arange(20)),
        ]
        tried = CPath((0.01, 0.1, 1.0)).tried(L2SVC, train, inner)
        found.append((tried.scores, train.prepared()[0].X))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_poisoned_rows_of_an_inner_fold_do_not_change_the_scores_of_its_other_rows() -> None:
    poisoned = HOLED[:60].copy()
    poisoned[50:] = 1e6  # held out, as rows 40 to 50 are
    split = [TrainTestRows(np.arange(40), np.arange(40, 60))]
    for search, make in ((CPath((0.1, 1.0)), L2SVC), (Grid({"C": [0.1, 1.0]}), L2SVC)):
        scores = []
        for data in (HOLED[:60], poisoned):
            rows = LabelledRows(
                data, Y[:60], preprocess=make_pipeline(SimpleImputer(), StandardScaler())
            )
            scores.append(search.tried(make, rows, split).scores[:, 40:50])
        np.testing.assert_array_equal(*scores)


@pytest.mark.slow
def test_a_frame_with_text_and_blanks_goes_through_a_column_transformer() -> None:
    frame = pd.DataFrame(HOLED, columns=[f"gene {j}" for j in range(6)])
    frame["site"] = np.where(Y == 1, "a", "b")
    frame.loc[3, "site"] = None
    columns = ColumnTransformer(
        [
            ("numbers", SimpleImputer(), frame.columns[:6].tolist()),
            ("text", OneHotEncoder(handle_unknown="ignore"), ["site"]),
        ]
    )
    comparison = quick(frame, columns)
    assert comparison.table.loc["L2SVC", "score_mean"] > 0.95
    assert any("site_a" in name for name in comparison.setup.feature_names)
    assert comparison.models_["L2SVC"].predict(frame).shape == (90,)


def test_the_settings_tell_the_transformer_and_a_run_goes_on_with_the_same_only(tmp_path) -> None:
    first = quick(HOLED, SimpleImputer(strategy="median"), run_dir=tmp_path / "run")
    assert "SimpleImputer(strategy='median')" in str(first)
    told = first.to_dict()
    assert "SimpleImputer(strategy='median')" in str(told)
    again = quick(HOLED, SimpleImputer(strategy="median"), run_dir=tmp_path / "run")
    pd.testing.assert_frame_equal(first.table, again.table)
    with pytest.raises(ValueError, match="preprocess"):
        quick(HOLED, SimpleImputer(strategy="mean"), run_dir=tmp_path / "run")


def test_blanks_without_a_transformer_are_refused_by_an_error_that_names_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"NaN in row 0, column 1 .*preprocess=.*--impute median"):
        quick(HOLED, None)
    with pytest.raises(TypeError, match="preprocess must be a transformer"):
        quick(HOLED, "median")


def test_a_model_with_an_imputer_is_saved_with_its_values(tmp_path) -> None:
    pipeline = make_pipeline(SimpleImputer(strategy="median"), L2SVC()).fit(HOLED, Y)
    save_model(pipeline, tmp_path / "model.pmz")
    loaded = load_model(tmp_path / "model.pmz")
    np.testing.assert_array_equal(loaded[0].statistics_, pipeline[0].statistics_)
    np.testing.assert_array_equal(
        loaded.decision_function(HOLED), pipeline.decision_function(HOLED)
    )
    assert loaded.certificate_ == pipeline[-1].certificate_


def test_pipelines_with_other_steps_are_not_saved(tmp_path) -> None:
    for steps in ([KBinsDiscretizer()], [SimpleImputer(), KBinsDiscretizer()]):
        pipeline = make_pipeline(*steps, L2SVC()).fit(X, Y)
        with pytest.raises(ValueError, match="A KBinsDiscretizer cannot be stored"):
            save_model(pipeline, tmp_path / "model.pmz")


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_texts_are_rows_of_a_transformer_that_counts_words(kind) -> None:
    texts = kind(["good film", "bad story film", "good good actors", "bad end"] * 10)
    labels = ["yes", "no"] * 20
    found = compare(
        *(texts, labels),
        models=["SquaredHingeSVC"],
        cv=2,
        quick=True,
        standardize=False,
        preprocess=TfidfVectorizer(),
        progress=False,
    )
    assert found.setup.feature_names == ["actors", "bad", "end", "film", "good", "story"]
    model = found.recommended_model_
    assert model.predict(texts).tolist() == labels
    assert set(model.coefficients()["feature"]) <= set(found.setup.feature_names)


def test_texts_are_scaled_as_their_matrix_is() -> None:
    words = np.array(["red", "green", "blue", "loud", "soft", "cold"])
    picked = np.random.default_rng(0).integers(0, 6, (60, 5)) * (1 + Y[:60, None] % 2) % 6
    texts = [" ".join(words[row]) for row in picked]
    asked = {"models": ["L2SVC"], "cv": 2, "quick": True, "progress": False}
    found = compare(texts, Y[:60], preprocess=TfidfVectorizer(), **asked)
    assert not found.setup.protocol.standardize
    assert not found.models_["L2SVC"].model.standardize
    given = compare(TfidfVectorizer().fit_transform(texts), Y[:60], **asked)
    assert given.setup.protocol.standardize == found.setup.protocol.standardize
    encoded = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    assert compare(picked, Y[:60], preprocess=encoded, **asked).setup.protocol.standardize
