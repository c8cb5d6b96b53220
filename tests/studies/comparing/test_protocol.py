"""How models are compared: groups, repeats, other estimators, baselines, probabilities, facts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC

from proxmargin import SVC, SquaredHingeSVC, compare
from proxmargin.models.selection.calibrators import fit_calibrator
from proxmargin.studies.comparing.candidates import (
    CANDIDATES,
    MAJORITY,
    AlphaPath,
    CPath,
    named_candidates,
)
from proxmargin.studies.comparing.metrics import metric_of
from proxmargin.studies.comparing.rows import LabelledRows, inner_splits, outer_splits
from proxmargin.studies.comparing.work import chosen
from proxmargin.studies.stats.scores import corrected_resampled_ttest

QUICK = replace(CANDIDATES["SquaredHingeSVC"], search=AlphaPath(l1_ratios=(0.9,), n_alphas=4))
RIDGE = CANDIDATES["L2SVC"]


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def grouped():
    """Samples in pairs that are nearly alike, each pair of one class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 6))
    y = np.repeat(np.arange(40) % 2, 2)
    X = np.repeat(centres, 2, axis=0) + 0.01 * rng.normal(size=(80, 6)) + 0.3 * y[:, None]
    return X, y, np.repeat([f"patient {k}" for k in range(40)], 2)


class TestGroups:
    def test_no_group_is_on_both_sides_neither_outside_nor_inside(self, grouped):
        X, y, groups = grouped
        data = LabelledRows.checked(SquaredHingeSVC(), X, y, groups=groups)
        splits, notes = outer_splits(data, 4, 2, seed=0)
        assert (len(splits), notes) == (8, [])
        for split in splits:
            train = data.rows(split.train)
            assert not set(data.groups[split.train]) & set(data.groups[split.test])
            assert set(y[split.test]) == {0, 1}
            for inner in inner_splits(train, 1):
                assert not set(train.groups[inner.train]) & set(train.groups[inner.test])

    def test_groups_give_honest_scores_where_rows_are_repeated(self, grouped):
        X, y, groups = grouped
        given = {"models": {"rbf": TheirSVC(gamma=30.0)}, "cv": 4, "progress": False}
        apart = compare(X, y, groups=groups, **given)
        assert apart.table.score_mean.iloc[0] < compare(X, y, **given).table.score_mean.iloc[0]
        assert apart.to_dict()["protocol"]["groups"] is True
        assert "4 folds of whole groups" in str(apart)

    def test_a_splitter_of_groups_works(self, grouped):
        X, y, groups = grouped
        found = compare(X, y, groups=groups, models=[QUICK], cv=GroupKFold(3), progress=False)
        assert found.setup.protocol.folds == 3

    def test_few_groups_leave_a_note_or_an_error(self, grouped):
        X, y, _ = grouped
        found = compare(X, y, groups=np.arange(80) % 4, models=[QUICK], cv=5, progress=False)
        assert "there are only 4 groups, so there are 4" in str(found)
        with pytest.raises(ValueError, match="all samples are of one group"):
            compare(X, y, groups=np.zeros(80), models=[QUICK])
        with pytest.raises(ValueError, match="needs 3 groups or more"):
            compare(X, y, groups=np.arange(80) % 2, models=[QUICK])
        with pytest.raises(ValueError, match="have no sample of class 1: its samples are all in"):
            compare(X, y, groups=y, models=[QUICK])
        with pytest.raises(ValueError, match=r"groups must have one entry a sample, \(80,\)"):
            compare(X, y, groups=[1, 2], models=[QUICK])
        with pytest.raises(ValueError, match="groups has no value in row 1"):
            compare(X, y, groups=["a", None] * 40, models=[QUICK])


class TestRepeats:
    def test_repeats_have_new_folds_and_begin_with_those_of_one(self, cancer):
        one = compare(*cancer, models=[QUICK], cv=3, progress=False)
        two = compare(*cancer, models=[QUICK, RIDGE], cv=3, repeats=2, progress=False)
        rows = two.folds[two.folds.model == "SquaredHingeSVC"]
        assert list(rows.repeat) == [0, 0, 0, 1, 1, 1]
        assert list(rows.score[:3]) == list(one.folds.score)
        assert list(rows.score[3:]) != list(one.folds.score)
        assert sorted(two.to_dict()["predictions"]["rows"]) == list(range(569))

    def test_differences_are_those_of_nadeau_and_bengio(self, cancer):
        found = compare(*cancer, models=[QUICK, RIDGE], cv=3, repeats=2, progress=False)
        scores = found.folds.pivot_table("score", ["repeat", "fold"], "model")
        best, other = found.best_name_, next(n for n in found.names if n != found.best_name_)
        test = corrected_resampled_ttest(scores[[other, best]].to_numpy(), test_share=1 / 3)
        row = found.tests().loc[other]
        assert row.difference == pytest.approx(scores[other].mean() - scores[best].mean())
        assert row.p >= 0.99 * test.pvalue[0, 1]  # rows of the test sets may widen it

    def test_a_splitter_repeats_by_itself(self, cancer):
        with pytest.raises(ValueError, match="repeats=2 needs a number of folds"):
            compare(*cancer, cv=GroupKFold(3), repeats=2)

    def test_passes_of_a_splitter_are_repeats(self, cancer):
        splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
        found = compare(*cancer, models=[QUICK], cv=splitter, progress=False)
        assert (found.setup.protocol.folds, found.setup.protocol.repeats) == (3, 2)
        assert sorted(found.to_dict()["predictions"]["rows"]) == list(range(len(cancer[1])))
        assert found.setup.test_ratio == pytest.approx(0.5, rel=1e-2)

    @pytest.mark.parametrize(
        ("splitter", "counts"),
        [
            (RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), (3, 2)),
            (StratifiedKFold(4), (4, 1)),
            (ShuffleSplit(6, test_size=0.25, random_state=0), (6, 1)),
            (RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=0), (2, 5)),
        ],
    )
    def test_splits_are_numbered_by_their_pass_over_the_rows(self, splitter, counts):
        data = LabelledRows(np.zeros((40, 1)), np.arange(40) % 2)
        splits, _ = outer_splits(data, splitter, 1, 0)
        folds = [split.repeat for split in splits].count(0)
        assert (folds, splits[-1].repeat + 1) == counts


class TestModels:
    def test_estimators_of_any_library_take_part(self):
        X, y = load_wine(return_X_y=True)
        ridge = make_pipeline(StandardScaler(), RidgeClassifier())
        grid = GridSearchCV(
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"logisticregression__C": [0.1, 1.0]},
            cv=3,
        )
        given = {"bayes": GaussianNB(), "ridge": ridge, "grid": grid, "own": "L2SVC", "mine": QUICK}
        found = compare(X, y, models=given, cv=3, progress=False)
        assert set(found.table.index) == set(given)
        assert (found.table.score_mean > 0.9).all()
        assert found.table.loc["grid", "logisticregression__C"] in (0.1, 1.0)
        # probabilities of its own, or calibrated decision values: none lacks them
        assert found.table.log_loss.notna().all()
        assert found.models_["bayes"].predict(X).shape == y.shape
        coef = found.models_["ridge"][1].coef_ / found.models_["ridge"][0].scale_
        strongest = np.abs(coef * X.std(axis=0)).max(axis=0).argmax()
        assert found.to_dict()["features"]["ridge"][0]["feature"] == f"x{strongest}"

    @pytest.mark.parametrize(
        ("models", "words"),
        [
            ({"a": 3}, "must be a classifier with fit and predict"),
            ({"a": Ridge()}, "is_classifier, got Ridge"),
            (Ridge(), "give estimators by name"),
            ({"a": LogisticRegression}, "must be a classifier with fit and predict"),
            ({"": GaussianNB()}, "names must be text"),
            ([GaussianNB()], "give estimators by name"),
            ({}, "at least one"),
        ],
    )
    def test_what_is_no_classifier_is_refused(self, models, words):
        with pytest.raises(ValueError, match=words):
            compare(*load_iris(return_X_y=True), models=models)

    def test_baselines_are_models_of_scikit_learn_and_the_majority(self, cancer):
        found = compare(*cancer, models=[QUICK], baselines=True, cv=3, progress=False)
        kinds = found.table.kind
        assert set(kinds[kinds == "baseline"].index) == {
            MAJORITY,
            "sklearn LinearSVC",
            "sklearn LogisticRegression",
            "sklearn SVC-rbf",
        }
        assert found.table.loc[MAJORITY, "score_mean"] == pytest.approx(0.5)
        assert MAJORITY not in found.equivalent_
        assert (found.table.drop(index=MAJORITY).score_mean > 0.9).all()
        with pytest.raises(ValueError, match="is the name of a baseline"):
            compare(*cancer, models={MAJORITY: GaussianNB()}, baselines=True)

    def test_baselines_take_weights_where_their_last_step_does(self, cancer):
        X, y = (part[:200] for part in cancer)
        weights = (np.arange(200) % 5 > 0).astype(float)
        options = {"models": [QUICK], "baselines": True, "cv": 2, "progress": False}
        found = compare(X, y, sample_weight=weights, **options)
        removed = compare(X[weights > 0], y[weights > 0], **options)
        np.testing.assert_allclose(found.folds.score, removed.folds.score)
        neighbours = {"near": KNeighborsClassifier()}
        with pytest.raises(ValueError, match="sample_weight: KNeighborsClassifier takes no"):
            compare(X, y, models=neighbours, sample_weight=weights + 1, progress=False)

    def test_a_quick_comparison_has_fewer_models_and_folds(self):
        quick = named_candidates("all", quick=True)
        assert 3 <= len(quick) < len(CANDIDATES) / 2
        for each in quick:
            assert isinstance(each.search, AlphaPath | CPath)
        found = compare(*load_iris(return_X_y=True), models=[RIDGE], quick=True, progress=False)
        assert found.setup.protocol.folds == 3
        assert found.to_dict()["protocol"]["quick"] is True

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("given", "dense", "thin"), [("auto", 1, 0), (True, 1, 1), (False, 0, 0)]
    )
    def test_sparse_data_are_standardised_on_request_only(self, given, dense, thin):
        X, y = load_iris(return_X_y=True)
        for data, expected in ((X, dense), (sparse.csr_array(X), thin)):
            found = compare(data, y, models=["L2SVC"], cv=2, standardize=given, progress=False)
            assert found.best_.standardize is bool(expected)
            assert found.setup.protocol.standardize is bool(expected)
            assert ("standardised" if expected else "as they are") in str(found)


class TestCalibration:
    def test_probabilities_come_from_inner_scores_of_training_rows(self, cancer):
        """By hand: the paths of the inner folds, the map of their held-out scores, the refit."""
        X, y = cancer
        found = compare(X, y, models=[QUICK], cv=3, progress=False)
        seeds = np.random.RandomState(0).randint(2**31 - 1, size=2)
        split = outer_splits(LabelledRows(X, y), 3, 1, int(seeds[0]))[0][0]
        train = LabelledRows(X, y).rows(split.train)
        row = found.folds.iloc[0]
        held_out = np.zeros(train.n_samples)
        model = SquaredHingeSVC(alpha=row.alpha, l1_ratio=row.l1_ratio, standardize=True, tol=1e-8)
        for inner in inner_splits(train, int(seeds[1])):
            model.fit(train.X[inner.train], train.y[inner.train])
            held_out[inner.test] = model.decision_function(train.X[inner.test])
        calibrator = fit_calibrator("sigmoid", held_out, train.y, np.ones(train.n_samples))
        scores = model.fit(train.X, train.y).decision_function(X[split.test])
        shares = calibrator.probabilities(scores)[:, 1]
        assert row.log_loss == pytest.approx(log_loss(y[split.test], shares), rel=0.02)
        assert row.brier == pytest.approx(np.mean((shares - y[split.test]) ** 2), rel=0.02)
        assert row.roc_auc == pytest.approx(roc_auc_score(y[split.test], scores), abs=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["L2SVC", "NuSVC", "SVC-rbf"])
    def test_every_model_has_probabilities(self, name):
        found = compare(*load_iris(return_X_y=True), models=[name], cv=2, progress=False)
        shares = np.array(found.to_dict()["predictions"][name]["probabilities"])
        assert shares.shape == (150, 3)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert found.table.log_loss.iloc[0] < np.log(3)


class TestChoice:
    def test_a_path_chooses_as_its_single_fits_would(self, cancer):
        X, y = cancer
        data, metric = LabelledRows(X, y), metric_of("accuracy")
        folds = inner_splits(data, 0)
        tried = CANDIDATES["L2SVC"].search.tried(CANDIDATES["L2SVC"].make, data, folds)
        scores = []
        for setting in tried.settings:
            model = CANDIDATES["L2SVC"].make().set_params(**setting)
            fits = (model.fit(X[f.train], y[f.train]).score(X[f.test], y[f.test]) for f in folds)
            scores.append(np.mean(list(fits)))
        choice = chosen(tried, data, metric)
        assert choice.settings == tried.settings[int(np.argmax(scores))]
        np.testing.assert_allclose(choice.curve["mean"], scores, rtol=1e-12)

    def test_a_metric_of_which_less_is_better_is_minimised(self, cancer):
        found = compare(*cancer, models=[QUICK, RIDGE], scoring="log_loss", cv=2, progress=False)
        assert found.table.score_mean.is_monotonic_increasing
        assert found.best_name_ == found.table.index[0]


class TestFacts:
    def test_they_are_the_contract_of_reports(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        found = compare(X, y, models=[QUICK, RIDGE], cv=3, progress=False, name="iris")
        facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert (facts["format"], facts["version"]) == ("proxmargin comparison", 1)
        assert facts["data"]["name"] == "iris"
        assert facts["data"]["classes"][2] == {"label": "2", "count": 50}
        assert facts["data"]["card"]["duplicate_rows"]["count"] == 1
        assert [each["name"] for each in facts["models"]] == found.names
        assert facts["models"][0]["metrics"]["balanced_accuracy"]["mean"] == pytest.approx(
            found.table.score_mean.iloc[0]
        )
        assert {"low", "high", "p_holm", "p_equal", "equivalent"} <= set(
            facts["models"][1]["metrics"]["accuracy"]
        )
        path = facts["paths"]["SquaredHingeSVC"]
        assert path["parameter"] == "alpha"
        assert path["chosen"] == found.models_["SquaredHingeSVC"].alpha
        assert len(path["strengths"]) == len(path["mean"]) == len(path["se"]) == 4
        assert path["n_features"][0] <= path["n_features"][-1]
        feature = facts["features"]["L2SVC"][0]
        assert feature["feature"] in X.columns
        assert feature["frequency"] == feature["sign_agreement"] == 1.0
        assert facts["certificates"]["worst_gap"] <= 1e-6

    def test_predictions_are_those_that_were_scored(self):
        X, y = load_iris(return_X_y=True)
        found = compare(X, y, models=[RIDGE], cv=3, progress=False)
        said = found.to_dict()["predictions"]
        assert list(y[said["rows"]]) == said["true"]
        size = found.setup.splits[0][2]
        correct = np.array(said["L2SVC"]["label"]) == said["true"]
        assert found.folds.accuracy[0] == pytest.approx(correct[:size].mean())
        assert np.array(said["L2SVC"]["scores"]).shape == (150, 3)

    def test_rows_are_those_of_the_caller_also_where_some_have_no_weight(self, cancer):
        X, y = cancer
        weights = (np.arange(y.size) % 2).astype(float)
        found = compare(X, y, models=[QUICK], cv=2, progress=False, sample_weight=weights)
        assert sorted(found.to_dict()["predictions"]["rows"]) == list(range(1, 569, 2))

    def test_they_are_written_to_a_file(self, tmp_path):
        found = compare(*load_iris(return_X_y=True), models=[QUICK], cv=2, progress=False)
        found.to_json(tmp_path / "facts.json")
        assert json.loads((tmp_path / "facts.json").read_text()) == found.to_dict()


class TestData:
    def test_one_feature_is_enough(self):
        X, y = load_iris(return_X_y=True)
        found = compare(X[:, 2:3], y, models=[QUICK, RIDGE], cv=3, progress=False)
        assert found.setup.n_features == 1
        assert "1 features" in str(found)

    def test_measurements_are_no_classes_and_the_message_says_what_to_do(self):
        with pytest.raises(ValueError, match=r"measurements .* name another column .*median"):
            compare(np.ones((6, 2)), [0.5, 1.25, 2.5, 3.0, 4.0, 5.0])

    def test_the_winner_is_told_to_be_optimistic(self):
        found = compare(*load_iris(return_X_y=True), models=[QUICK, RIDGE], cv=2, progress=False)
        assert "a little optimistic, because it is the best of 2" in str(found)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"standardize": "yes"},
            {"quick": 1},
            {"baselines": "all"},
            {"time_limit": 0},
            {"repeats": 0},
            {"cv": True},
            {"cv": "5"},
            {"metrics": None},
            {"metrics": ["r2"]},
            {"scoring": "neg_mean_squared_error"},
            {"feature_names": ["a", "b", "b", "c"]},
        ],
    )
    def test_wrong_values_name_the_parameter(self, wrong):
        (name,) = wrong
        with pytest.raises(ValueError, match=name):
            compare(*load_iris(return_X_y=True), models=[QUICK], **wrong)


@pytest.mark.slow
def test_two_processes_give_the_same_table_to_the_bit(cancer):
    X, y = cancer
    asked = {"models": [QUICK, RIDGE, "SVC-rbf"], "cv": 2, "progress": False}
    tables = [
        compare(X, y, **asked, n_jobs=jobs).table.drop(columns="seconds_per_fit") for jobs in (1, 2)
    ]
    assert tables[0].equals(tables[1])


def test_models_of_kernels_take_part(cancer):
    X, y = cancer
    found = compare(X, y, models={"rbf": SVC(kernel="rbf", standardize=True)}, cv=2, progress=False)
    assert found.table.score_mean.iloc[0] > 0.9
    assert np.isnan(found.table.stability.iloc[0])


def test_fewer_tested_rows_widen_the_interval() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    models = ["L2SVC", "SquaredHingeSVC"]
    few = StratifiedShuffleSplit(1, test_size=0.05, random_state=0)
    rows = {
        name: compare(X, y, models=models, metrics=["accuracy"], scoring="accuracy", cv=cv,
                      progress=False).evidence().row("L2SVC")
        for name, cv in (("all", 5), ("few", few))
    }  # fmt: skip
    widths = {name: row["high"] - row["low"] for name, row in rows.items()}
    hits = round(rows["few"]["mean"] * 29)
    exact = binomtest(hits, 29).proportion_ci(method="exact")
    assert rows["few"]["low"] == pytest.approx(exact.low, abs=1e-6)
    assert widths["few"] > 2 * widths["all"]


def test_folds_that_are_asked_for_are_those_of_a_quick_comparison():
    X, y = load_iris(return_X_y=True)
    keep = y < 2
    for asked, folds in ((None, 3), (5, 5)):
        found = compare(X[keep], y[keep], models=[QUICK], cv=asked, quick=True, progress=False)
        assert found.setup.protocol.folds == folds
