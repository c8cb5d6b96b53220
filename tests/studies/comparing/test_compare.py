"""Comparisons: no leakage, the same result twice, and small or odd data handled in the open."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from proxmargin import Comparison, SquaredHingeSVC, compare
from proxmargin.runtime.brief import Listing, number
from proxmargin.studies.comparing import run, work
from proxmargin.studies.comparing.candidates import CANDIDATES, AlphaPath, Candidate, Grid
from proxmargin.studies.comparing.metrics import metric_of, metrics_of
from proxmargin.studies.comparing.rows import (
    LabelledRows,
    TrainTestRows,
    inner_splits,
    outer_splits,
)
from proxmargin.studies.comparing.searches import SearchPredictions
from proxmargin.studies.comparing.work import chosen, ties
from proxmargin.studies.reports import text
from tests.compiled.test_clock import standing_still

QUICK = replace(CANDIDATES["SquaredHingeSVC"], search=AlphaPath(l1_ratios=(0.9,), n_alphas=4))
OTHER = replace(CANDIDATES["HuberizedSVC"], search=AlphaPath(l1_ratios=(0.9,), n_alphas=3))


class Compiling(RidgeClassifier):
    """Its fits compile."""

    seconds = 0.08

    def fit(self, X, y, sample_weight=None):
        with standing_still():
            time.sleep(self.seconds)
        return super().fit(X, y, sample_weight)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def found(cancer) -> Comparison:
    return compare(*cancer, models=[QUICK, OTHER], cv=3, progress=False)


class TestResults:
    def test_the_table_has_a_row_a_model_and_the_best_first(self, found):
        table = found.table
        assert sorted(table.index) == ["HuberizedSVC", "SquaredHingeSVC"]
        assert table.index[0] == found.best_name_
        assert table.score_mean.is_monotonic_decreasing
        assert (table.score_mean > 0.93).all()
        assert (table.relative_gap <= 1e-6).all()
        assert (table.folds == 3).all()
        assert {"score_sd", "features_used", "seconds_per_fit", "alpha", "l1_ratio"} <= set(table)

    def test_the_table_summarises_the_folds(self, found):
        means = found.folds.groupby("model").score.mean()
        deviations = found.folds.groupby("model").score.std()
        for name, row in found.table.iterrows():
            assert row.score_mean == pytest.approx(means[name])
            assert row.score_sd == pytest.approx(deviations[name])

    def test_the_best_model_is_fitted_on_all_data_with_names(self, found, cancer):
        X, y = cancer
        best = found.best_
        assert best is found.models_[found.best_name_]
        assert best.alpha == found.table.alpha.iloc[0]
        assert best.certificate_.converged
        assert list(best.feature_names_in_) == list(X.columns)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert best.score(X, y) > 0.95

    def test_the_majority_class_scores_one_half(self, found):
        assert found.majority == pytest.approx(0.5)

    def test_printing_shows_what_a_reader_needs(self, found):
        told = str(found)
        assert told.startswith("Recommended: ")
        assert "569 samples, 30 features (standardised), 2 classes (0 212, 1 357); 3 folds" in told
        for words in ("balanced accuracy", "the largest class", "Certificate: converged"):
            assert words in told
        recommended, best = found.recommended_, found.best_name_
        assert found.recommended_model_ is found.models_[recommended]
        if recommended == best:
            assert f"\nRecommended and best: {best}(" in told
        else:
            assert f"\nRecommended: {recommended}(" in told
            assert f"\nBest: {best}(" in told
        name, weight, label = found.top_features(model=recommended)[0]
        assert name in told
        assert f"{weight:+.3g}" in told
        assert label == "1"

    def test_features_are_those_of_the_model_that_one_gets(self, found):
        name = found.recommended_
        count = np.count_nonzero(found.recommended_model_.coef_)
        of_folds = found.folds[found.folds.model == name].features_used
        assert found.table.features_used[name] == count
        told = f"features used: {count} of 30"
        if set(of_folds) != {count}:
            told += f"; {of_folds.min()} to {of_folds.max()} in the folds"
        assert told in str(found)
        assert not re.search(r"\d\.\d+ of 30", str(found))

    def test_top_features_weigh_coefficients_by_standard_deviation(self, found, cancer):
        X, _ = cancer
        weights = found.best_.coef_[0] * X.to_numpy().std(axis=0)
        top = found.top_features(3)
        largest = np.argsort(-np.abs(weights))[:3]
        assert [name for name, _, _ in top] == [X.columns[j] for j in largest]
        np.testing.assert_allclose([w for _, w, _ in top], weights[largest])

    def test_features_are_described_alone_with_their_partners(self, found, cancer):
        X, y = cancer
        correlations = X.corr()
        for name, rows in found.facts["features"].items():
            assert len(rows) == np.count_nonzero(found.models_[name].coef_)
            for row in rows:
                assert row["auc"] == pytest.approx(roc_auc_score(y, X[row["feature"]]))
                own = correlations[row["feature"]].drop(row["feature"])
                near = own[own.abs() >= 0.8].sort_values(key=np.abs, ascending=False)
                assert [name for name, _ in row["partners"]] == list(near.index[:3])

    def test_it_is_plain_enough_for_json(self, found):
        facts = found.to_dict()
        again = json.loads(json.dumps(facts, allow_nan=False))
        assert again["best"] == found.best_name_
        assert len(again["fold_results"]) == 6
        assert again["interrupted"] is False


class TestHonesty:
    def test_scores_are_those_of_a_refit_on_the_training_rows_alone(self, found, cancer):
        """An oracle by hand: same folds, chosen parameters, nothing of the test rows."""
        X, y = (part.to_numpy() for part in cancer)
        seed = np.random.RandomState(0).randint(run.LARGEST_SEED, size=2)[0]
        splits, _ = outer_splits(LabelledRows(X, y), 3, 1, int(seed))
        rows = found.folds[found.folds.model == "SquaredHingeSVC"]
        for row, split in zip(rows.itertuples(), splits, strict=True):
            model = SquaredHingeSVC(alpha=row.alpha, l1_ratio=row.l1_ratio, standardize=True)
            model.fit(X[split.train], y[split.train])
            expected = balanced_accuracy_score(y[split.test], model.predict(X[split.test]))
            assert row.score == pytest.approx(expected)

    def test_test_rows_do_not_change_what_is_chosen(self):
        X, y = load_breast_cancer(return_X_y=True)
        splits, _ = outer_splits(LabelledRows(X, y), 3, 1, 1)
        task = work.FoldTask(QUICK, 0, splits[0], seed=2)
        metrics = metrics_of("accuracy", [])
        garbled = X.copy()
        garbled[splits[0].test] = 1e6 * np.random.default_rng(0).normal(
            size=garbled[splits[0].test].shape
        )
        chosen = [work.perform(task, LabelledRows(x, y), metrics).settings for x in (X, garbled)]
        assert chosen[0] == chosen[1]

    def test_permuted_labels_score_near_chance(self):
        rng = np.random.default_rng(7)
        X = rng.normal(size=(150, 40))
        y = rng.permutation(np.repeat([0, 1], 75))
        score = compare(X, y, models=[QUICK], cv=5, progress=False).table.score_mean.iloc[0]
        assert 0.33 < score < 0.67

    def test_constant_columns_are_harmless_and_unused(self):
        X, y = (part[:130] for part in load_wine(return_X_y=True))
        padded = np.column_stack([np.zeros(len(X)), X, np.full(len(X), 3.7)])
        plain = compare(X, y, models=[QUICK], cv=2, progress=False)
        with_constants = compare(padded, y, models=[QUICK], cv=2, progress=False)
        assert not with_constants.best_.coef_[:, [0, -1]].any()
        np.testing.assert_allclose(with_constants.folds.score, plain.folds.score)

    @pytest.mark.slow
    def test_the_same_seed_gives_the_same_result_and_so_do_two_processes(self):
        X, y = load_iris(return_X_y=True)
        runs = [
            compare(X, y, models=[QUICK], cv=2, progress=False, n_jobs=jobs, random_state=seed)
            for seed, jobs in ((3, None), (3, 2), (4, None))
        ]
        same = [r.folds[["score", "features_used", "alpha"]] for r in runs]
        assert same[0].equals(same[1])
        assert not same[0].equals(same[2])

    def test_a_generator_shuffles_the_folds(self):
        X, y = load_iris(return_X_y=True)
        options = {"models": [QUICK], "cv": 2, "progress": False}
        runs = [compare(X, y, random_state=np.random.default_rng(1), **options) for _ in range(2)]
        assert runs[0].folds.score.equals(runs[1].folds.score)
        with pytest.raises(ValueError, match="random_state must be an int"):
            compare(X, y, random_state=1.5, **options)

    def test_weight_zero_is_the_same_as_a_removed_sample(self, cancer):
        X, y = (part.to_numpy() for part in cancer)
        weights = (np.arange(y.size) < 300).astype(float)
        weighted = compare(X, y, models=[QUICK], cv=2, progress=False, sample_weight=weights)
        removed = compare(X[:300], y[:300], models=[QUICK], cv=2, progress=False)
        np.testing.assert_allclose(weighted.folds.score, removed.folds.score)

    def test_sparse_data_give_the_result_of_dense_data(self):
        X, y = load_wine(return_X_y=True)
        dense = compare(X, y, models=[QUICK], cv=2, progress=False)
        thin = compare(sparse.csc_array(X), y, models=[QUICK], cv=2, progress=False)
        np.testing.assert_allclose(thin.folds.score, dense.folds.score, atol=0.03)

    def test_fits_that_end_early_are_visible_and_mentioned_once(self):
        X, y = load_breast_cancer(return_X_y=True)
        hasty = replace(QUICK, make=lambda: SquaredHingeSVC(standardize=True, max_iter=3))
        with pytest.warns(ConvergenceWarning, match="fits stopped before") as caught:
            result = compare(X, y, models=[hasty], cv=2, progress=False)
        assert sum("fits stopped before" in str(each.message) for each in caught) == 1
        assert result.table.relative_gap.iloc[0] > 1e-6
        assert result.tally.unmet > 0
        assert "Note: " in str(result)


class TestChoice:
    def test_ties_go_to_the_sparser_and_then_to_the_earlier(self):
        y = np.arange(8) % 2
        folds = [TrainTestRows(np.arange(8) ^ 4 * k, np.arange(8)[4 * k :][:4]) for k in (0, 1)]
        labels = np.array([1 - y, y, y, y])
        sizes = [np.array([1.0, 7.0, 5.0, 5.0])] * 2
        names = [{"C": each} for each in (1, 2, 3, 4)]
        tried = SearchPredictions(names, "C", folds, labels, labels - 0.5, sizes)
        found = chosen(tried, LabelledRows(np.zeros((8, 1)), y), metric_of("accuracy"))
        assert found.settings == {"C": 3}

    def test_a_setting_without_a_score_is_not_chosen(self):
        assert ties(np.array([np.nan, 0.1, 0.1 + 1e-15])).tolist() == [1, 2]

    def test_any_estimator_joins_with_a_grid(self):
        X, y = load_wine(return_X_y=True)
        ridge = Candidate("ridge", RidgeClassifier, Grid({"alpha": [1.0, 100.0]}))
        result = compare(X, y, models=["SquaredHingeSVC", ridge], cv=2, progress=False)
        assert set(result.table.index) == {"SquaredHingeSVC", "ridge"}
        assert np.isnan(result.table.loc["ridge", "relative_gap"])
        assert "ridge" in str(result)

    def test_compiling_is_no_part_of_the_seconds(self):
        X, y = load_wine(return_X_y=True)
        slow = Candidate("slow", Compiling, Grid({"alpha": [1.0]}))
        result = compare(X, y, models=[slow], cv=2, progress=False)
        assert (result.folds.seconds < 0.5 * Compiling.seconds).all()

    def test_names_are_checked_first(self):
        with pytest.raises(ValueError, match="no model 'Nope' to compare"):
            compare([[0.0]], [0], models=["Nope"])
        with pytest.raises(ValueError, match="each model once"):
            compare([[0.0]], [0], models=["HuberizedSVC", "HuberizedSVC"])

    def test_an_unknown_scoring_is_refused(self):
        X, y = load_breast_cancer(return_X_y=True)
        with pytest.raises(ValueError, match="unknown scoring 'nope'"):
            compare(X, y, scoring="nope")
        with pytest.raises(ValueError, match="unknown metrics 'nope'"):
            compare(X, y, metrics=["nope"])

    def test_scores_of_probabilities_are_of_calibrated_scores(self):
        X, y = load_breast_cancer(return_X_y=True)
        found = compare(X, y, scoring="neg_log_loss", models=[QUICK], cv=2, progress=False)
        assert (found.folds.score < 0).all()
        np.testing.assert_allclose(found.folds.score, -found.folds.log_loss)

    def test_other_scores_and_splitters_work(self):
        X, y = load_breast_cancer(return_X_y=True)
        cv = StratifiedShuffleSplit(2, test_size=0.3, random_state=0)
        result = compare(X, y, models=[QUICK], cv=cv, scoring="roc_auc", progress=False)
        assert (result.folds.score > 0.98).all()
        assert result.majority == pytest.approx(0.5)
        assert "ROC AUC" in str(result)


class TestShown:
    def test_a_screen_holds_its_repr_however_many_models(self, found):
        assert repr(found).startswith("Recommended: ")
        facts = found.facts
        many = {**facts, "models": facts["models"] * 20}
        lines = text.short(many).splitlines()
        assert len(lines) == 20
        assert lines[-1].startswith("(27 more rows")

    def test_a_notebook_shows_the_first_screen_with_names_as_text(self, cancer):
        X, y = cancer
        names = ["<b>bold</b>", *X.columns[1:5]]
        shown = compare(X.iloc[:, :5], y, models=[QUICK], cv=2, progress=False, feature_names=names)
        html = shown._repr_html_()
        assert f"{shown.table.score_mean.iloc[0]:.3f}" in html
        assert "SquaredHingeSVC" in html
        assert "<b>bold</b>" not in html

    def test_predictions_have_the_index_of_the_data(self, cancer):
        X, y = cancer
        X = X.iloc[::4].set_index(X["mean area"].iloc[::4].rename("area").astype(str))
        weights = np.ones(len(X))
        weights[[0, 5]] = 0.0
        y = y.iloc[::4].to_numpy()
        found = compare(X, y, models=[QUICK], cv=3, sample_weight=weights, progress=False)
        frame = found.predictions
        assert frame.index.tolist() == X.index[weights > 0].tolist()
        assert (frame["true"] == y[weights > 0].astype(str)).all()
        right = [
            balanced_accuracy_score(part["true"], part["SquaredHingeSVC"])
            for _, part in frame.groupby("fold")
        ]
        assert len(right) == 3
        assert set(frame["fold"]) == set(found.folds["fold"]) == {0, 1, 2}
        assert frame["SquaredHingeSVC: probability of 1"].between(0, 1).all()

    def test_ids_are_of_all_samples(self, cancer):
        with pytest.raises(ValueError, match="ids must be one name a sample, 569 here, got 2"):
            compare(*cancer, ids=["a", "b"])

    def test_repeated_ids_without_groups_are_counted(self, cancer):
        X, y = (each.iloc[::8] for each in cancer)
        patients = pd.Series(np.arange(len(X)) // 2, X.index, name="patient")
        options = {"models": [QUICK], "cv": 2, "progress": False}
        message = rf"^{len(X) // 2} of {len(X)} rows .*groups=patient\)"
        with pytest.warns(UserWarning, match=message) as told:
            compare(X, y, ids=patients, **options)
        assert sum("rows have the id" in str(each.message) for each in told) == 1
        with pytest.warns(UserWarning, match=r"groups=X.index\)"):
            compare(X.set_axis(patients.to_numpy()), y.to_numpy(), **options)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*rows have the id")
            compare(X, y, ids=patients, groups=patients, **options)
            compare(X, y, ids=patients, **{**options, "cv": [(np.arange(36), np.arange(36, 72))]})


class TestSmallClasses:
    def test_fewer_folds_for_a_small_class_leave_a_note(self):
        X, y = load_iris(return_X_y=True)
        keep = np.r_[0:50, 50:53, 100:150]
        result = compare(X[keep], y[keep], models=[QUICK], cv=5, progress=False)
        assert result.setup.protocol.folds == 3
        assert "the smallest class (1) has only 3 samples, so there are 3" in str(result)

    def test_two_samples_of_a_class_are_enough(self):
        X, y = load_iris(return_X_y=True)
        keep = np.r_[0:50, 50:52]
        result = compare(X[keep], y[keep], models=[QUICK], cv=5, progress=False)
        assert result.setup.protocol.folds == 2
        assert not np.isnan(result.table.score_mean.iloc[0])

    @pytest.mark.parametrize(
        ("counts", "message"),
        [([5, 1], "only 1 of 1"), ([6], "only one class"), ([2, 2], "largest class has 2")],
    )
    def test_too_few_samples_are_refused(self, counts, message):
        y = np.repeat(np.arange(len(counts)), counts)
        X = np.random.default_rng(0).normal(size=(y.size, 2))
        with pytest.raises(ValueError, match=message):
            compare(X, y, progress=False)

    @pytest.mark.parametrize("cv", [0, 1, -3])
    def test_fewer_than_two_folds_are_refused(self, cv):
        with pytest.raises(ValueError, match="at least 2 folds"):
            compare(*load_iris(return_X_y=True), cv=cv)

    def test_inner_folds_always_train_on_every_class(self):
        y = np.array([0] * 7 + [1])
        splits = inner_splits(LabelledRows(np.zeros((8, 1)), y), 0)
        assert splits
        assert all(set(y[split.train]) == {0, 1} for split in splits)

    def test_names_of_features_must_fit(self):
        with pytest.raises(ValueError, match="1 feature_names were given for 4 features"):
            compare(*load_iris(return_X_y=True), feature_names=["one"])


class TestInterruption:
    def test_what_is_finished_is_kept(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        calls = []

        def perform(*arguments):
            calls.append(arguments)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return work.perform(*arguments)

        monkeypatch.setattr(run, "perform", perform)
        result = compare(X, y, models=[QUICK, OTHER], cv=2, progress=False)
        assert result.interrupted
        assert len(result.folds) == 2
        assert result.best_ is None
        assert "interrupted" in str(result)
        json.dumps(result.to_dict(), default=str)

    def test_nothing_finished_is_an_interruption(self, monkeypatch):
        def perform(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(run, "perform", perform)
        with pytest.raises(KeyboardInterrupt):
            compare(*load_iris(return_X_y=True), models=[QUICK], progress=False)

    def test_a_signal_in_the_middle_of_a_fit_ends_it_soon(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(600, 300)), rng.integers(0, 2, 600)
        compare(X[:60, :5], y[:60], models=[QUICK], cv=2, progress=False)  # compiles
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            result = compare(X, y, cv=10, progress=False)
        except KeyboardInterrupt:
            return
        finally:
            timer.cancel()
        assert result.interrupted


class TestLayout:
    def test_columns_are_aligned(self):
        text = Listing(["name", "n"], [["a", "10"], ["long name", "1"]]).plain()
        assert text.splitlines() == ["name        n", "a          10", "long name   1"]

    def test_missing_numbers_are_dashes(self):
        assert [number(v) for v in (None, float("nan"), 0.123456)] == ["-", "-", "0.1235"]
