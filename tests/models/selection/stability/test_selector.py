"""Stability selection finds what it should, the same for all threads, and refuses the rest."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin import (
    SVC,
    ElasticNetSVC,
    HuberizedSVC,
    MulticlassSVC,
    NuSVC,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StabilitySelection,
    margin_path,
)
from proxmargin.models.selection.stability.half_samples import half_of
from tests.shared_data import data_root, load_set

LASSO = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
HUBER = HuberizedSVC(l1_ratio=1.0, standardize=True)


def planted(n=60, p=40, s=3, seed=0, classes=2):
    """Classes that differ in the first s features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, p))
    for k in range(s):
        X[:, k] += 1.6 * (y == k % classes)
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def fitted(data):
    return StabilitySelection(LASSO, n_pairs=20, threshold=0.7, q=5, random_state=1).fit(*data)


def test_planted_features_are_found(fitted) -> None:
    assert set(fitted.get_support(indices=True)) == {0, 1, 2}
    assert fitted.pfer_ < 1
    assert fitted.fdr_ == pytest.approx(fitted.pfer_ / 3)


def test_frequencies_are_those_of_the_paths_of_all_halves(data, fitted) -> None:
    """Fitted one by one as a reader would: entry on the path, at most five features."""
    X, y = data
    codes = np.unique(y, return_inverse=True)[1]
    seed = int(np.random.RandomState(1).randint(2**31 - 1))
    counts = np.zeros(fitted.frequencies_.shape)
    for number in range(40):
        rows = half_of(codes, np.ones(60), seed, number)
        path = margin_path(clone(LASSO), X[rows], y[rows], alphas=fitted.alphas_)
        sizes = np.abs(path.coefs[:, 0] * path.scale)
        entered = []
        for k, size in enumerate(sizes):
            new = [j for j in np.argsort(-size) if size[j] > 0 and j not in entered]
            entered += new[: 5 - len(entered)]
            counts[entered, k] += 1
    np.testing.assert_array_equal(fitted.frequencies_, counts / 40)
    np.testing.assert_array_equal(fitted.max_frequencies_, fitted.frequencies_.max(axis=1))
    assert counts[:, -1].sum() <= 40 * 5


def test_halves_are_disjoint_and_have_half_of_each_class() -> None:
    codes = np.repeat([0, 1, 2], [11, 6, 8])
    weights = np.ones(25)
    weights[:2] = 0
    for pair in range(5):
        first, second = (half_of(codes, weights, 3, 2 * pair + k) for k in (0, 1))
        assert not set(first) & set(second)
        for half in (first, second):
            assert np.bincount(codes[half]).tolist() == [4, 3, 4]
            assert weights[half].all()
    drawn = np.concatenate([half_of(codes, weights, 3, k) for k in range(400)])
    share = np.bincount(drawn, minlength=25) / 400
    np.testing.assert_allclose(share[2:11], 4 / 9, atol=0.09)
    np.testing.assert_allclose(share[11:], 0.5, atol=0.09)


def test_threads_and_storage_do_not_change_a_bit(data, fitted) -> None:
    X, y = data
    again = clone(fitted).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.frequencies_, fitted.frequencies_)
    stored = clone(fitted).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(stored.frequencies_, fitted.frequencies_, atol=0.051)
    other = clone(fitted).set_params(random_state=2).fit(X, y)
    assert (other.frequencies_ != fitted.frequencies_).any()


def test_two_of_three_are_given_and_the_third_follows(data) -> None:
    X, y = data
    settings = {"n_pairs": 10, "random_state": 0}
    by_pfer = StabilitySelection(LASSO, threshold=0.8, pfer=2.0, **settings).fit(X, y)
    assert by_pfer.q_ == 9
    assert by_pfer.pfer_ <= 2.0
    by_q = StabilitySelection(LASSO, threshold=0.8, q=9, **settings).fit(X, y)
    assert by_q.pfer_ == by_pfer.pfer_
    np.testing.assert_array_equal(by_q.frequencies_, by_pfer.frequencies_)
    by_both = StabilitySelection(LASSO, q=9, pfer=by_q.pfer_, **settings).fit(X, y)
    assert by_both.threshold_ == pytest.approx(0.8)
    default = StabilitySelection(LASSO, **settings).fit(X, y)
    assert (default.threshold_, default.pfer_ <= 1) == (0.75, True)


def test_of_many_features_q_follows_from_the_samples() -> None:
    """Without it most of a long list could be mistakes: q=111 of 51 samples."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3000)), np.arange(40) % 2
    X[:, 0] += 3 * y
    lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = StabilitySelection(lasso, n_pairs=10, alphas=10, threshold=0.8).set_params(pfer=1)
        found.fit(X, y)
    assert (found.q_, found.stable_[0]) == (10, True)
    assert found.pfer_ < 0.1


def test_a_threshold_alone_selects_over_all_strengths(data) -> None:
    X, y = data
    model = StabilitySelection(LASSO, threshold=0.9, n_pairs=10, random_state=0).fit(X, y)
    assert model.q_ == pytest.approx(model.max_frequencies_.sum())
    assert model.q_ > 5


def test_an_estimated_rate_of_false_discoveries_sets_the_threshold(data) -> None:
    X, y = data
    settings = {"q": 6, "n_pairs": 20, "random_state": 0}
    model = StabilitySelection(LASSO, fdr=0.3, **settings).fit(X, y)
    assert model.fdr_ <= 0.3
    one_lower = StabilitySelection(LASSO, threshold=model.threshold_ - 1 / 40, **settings).fit(X, y)
    assert one_lower.fdr_ > 0.3
    with pytest.warns(UserWarning, match=r"no threshold meets fdr=1e-09"):
        none = StabilitySelection(LASSO, fdr=1e-9, **settings).fit(X, y)
    assert not none.get_support().any()


def test_clusters_of_copies_are_reported_together() -> None:
    X, y = planted(s=2)
    rng = np.random.default_rng(5)
    near = X[:, [0]] + 0.2 * rng.standard_normal((60, 3))
    X = np.hstack([X, near])
    settings = {"threshold": 0.95, "q": 3, "n_pairs": 20, "random_state": 0}
    single = StabilitySelection(LASSO, **settings).fit(X, y)
    joined = StabilitySelection(LASSO, cluster=0.9, **settings).fit(X, y)
    assert not single.get_support()[[0, 40, 41, 42]].any()
    assert joined.get_support(indices=True).tolist() == [0, 1, 40, 41, 42]
    assert len(set(joined.cluster_[[0, 40, 41, 42]])) == 1
    assert joined.cluster_.max() == 39
    assert joined.max_frequencies_[40] == joined.max_frequencies_[0] >= 0.95


def test_clusters_are_those_of_complete_linkage() -> None:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    from proxmargin.data.designs import as_design
    from proxmargin.models.selection.stability.units import correlated

    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))[:, rng.integers(4, size=60)] + rng.standard_normal((30, 60))
    apart = 1 - np.abs(np.corrcoef(X.T))
    np.fill_diagonal(apart, 0)
    whole = fcluster(linkage(squareform(apart, checks=False), "complete"), 0.5, "distance")
    for data in (X, sparse.csr_array(X)):
        found = correlated(as_design(data), np.full(30, 1 / 30), 0.5)
        assert 5 < found.max() < 59
        pairs = found[:, None] == found, whole[:, None] == whole
        np.testing.assert_array_equal(*pairs)
        assert np.all(np.diff(np.unique(found, return_index=True)[1]) > 0)


@pytest.mark.parametrize(
    "estimator",
    [
        HUBER,
        HuberizedSVC(l1_ratio=1.0, multi_class="ovr", standardize=True),
        SparseLogisticRegression(l1_ratio=0.9, multi_class="joint", standardize=True),
        MulticlassSVC(penalty="group_l2", groups="features", loss="squared_hinge"),
    ],
)
def test_three_classes_are_fitted_jointly_or_one_by_one(estimator) -> None:
    X, y = planted(s=3, classes=3)
    model = StabilitySelection(estimator, n_pairs=3, threshold=0.8, q=4, alphas=6, random_state=0)
    model.fit(X, y)
    assert set(model.get_support(indices=True)) <= {0, 1, 2}
    assert model.max_frequencies_[:3].min() > model.max_frequencies_[3:].mean()
    assert model.max_frequencies_.sum() <= 4 + 1e-9


def test_the_hinge_is_fitted_strength_by_strength(data) -> None:
    model = StabilitySelection(
        ElasticNetSVC(l1_ratio=1.0, standardize=True),
        n_pairs=2,
        threshold=0.9,
        q=4,
        alphas=5,
        random_state=0,
    ).fit(*data)
    assert model.max_frequencies_[:3].min() > 0.4


def test_features_without_a_penalty_do_not_compete(data) -> None:
    X, y = data
    factors = np.ones(40)
    factors[7] = 0
    free = clone(LASSO).set_params(penalty_factor=factors)
    model = StabilitySelection(free, n_pairs=5, threshold=0.8, q=4, random_state=0).fit(X, y)
    assert model.max_frequencies_[7] == 1
    assert model.get_support()[7]
    assert np.delete(model.max_frequencies_, 7).sum() <= 4 + 1e-9


def test_samples_of_weight_zero_have_no_part(data) -> None:
    X, y = data
    weights = np.ones(60)
    weights[40:] = 0
    poisoned, labels = X.copy(), y.copy()
    poisoned[40:] = 1e30
    settings = {"n_pairs": 5, "threshold": 0.8, "q": 4, "alphas": [0.2, 0.1], "random_state": 0}
    honest = StabilitySelection(LASSO, **settings).fit(X, labels, weights)
    found = StabilitySelection(LASSO, **settings).fit(poisoned, labels, weights)
    np.testing.assert_array_equal(honest.frequencies_, found.frequencies_)


def test_the_other_half_has_no_part_in_a_path(data) -> None:
    """Giants in rows outside of a half change none of its bits."""
    from proxmargin.data.inputs.targets import Targets
    from proxmargin.models.selection.stability.half_samples import HalfSampleTask, Samples

    X, y = data
    targets = Targets.encode(y, None, None)
    rows = half_of(targets.codes, np.ones(60), 0, 0)
    poisoned = X.copy()
    poisoned[np.setdiff1d(np.arange(60), rows)] = 1e60
    task = HalfSampleTask(LASSO, np.array([0.2, 0.1, 0.05]), np.arange(40), 8)
    honest, found = (task.entry(Samples(each, targets, np.ones(60)), 0) for each in (X, poisoned))
    np.testing.assert_array_equal(honest.units, found.units)
    np.testing.assert_array_equal(honest.strengths, found.strengths)


def test_frames_have_names_and_pipelines_pass_them_on() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = StabilitySelection(LASSO, n_pairs=5, threshold=0.9, q=5, random_state=0)
    line = make_pipeline(StandardScaler(), model, SparseLogisticRegression())
    line.set_output(transform="pandas").fit(X, y)
    names = line[:-1].get_feature_names_out()
    assert list(names) == list(X.columns[line[1].get_support()])
    assert list(line[:-1].transform(X).columns) == list(names)
    frame = line[1].to_frame()
    assert frame["frequency"].is_monotonic_decreasing
    assert set(frame.loc[frame["stable"], "feature"]) == set(names)


def refused(data, match, error=ValueError, estimator=LASSO, **settings):
    with pytest.raises(error, match=match):
        StabilitySelection(estimator, **{"n_pairs": 5, **settings}).fit(*data)


def test_bad_settings_are_refused_before_work_starts(data) -> None:
    refused(data, r"threshold must be a finite number > 0\.5 and <= 1", threshold=0.5, q=3)
    refused(data, r"threshold must be .* got 1\.2", threshold=1.2, q=3)
    refused(data, r"q=41 is more than the 40 features", threshold=0.8, q=41)
    refused(data, r"pfer=1e-05 is impossible with threshold=0\.8", threshold=0.8, pfer=1e-5)
    refused(data, r"pfer=0\.01 is impossible with q=10 .* give", q=10, pfer=0.01)
    refused(data, r"give two of them, and the third follows", threshold=0.8, q=3, pfer=1)
    refused(data, r"fdr needs q", fdr=0.1)
    refused(data, r"threshold=0\.51 is too low", threshold=0.51, q=30)
    refused(data, r"assumption must be one of", assumption="normal")
    refused(data, r"n_pairs must be an integer >= 1", n_pairs=0)
    refused(data, r"n_jobs must be", n_jobs=0)
    refused(data, r"cluster must be", cluster=1.5)
    refused(data, r"alphas must be a non-empty list", alphas=[-1.0])
    refused(data, r"alphas must be a non-empty list", alphas=["0.1", 1.0])


def test_generators_draw_the_halves(data) -> None:
    def selected(random_state):
        settings = {"n_pairs": 3, "threshold": 0.9, "q": 4, "random_state": random_state}
        return StabilitySelection(LASSO, **settings).fit(*data).frequencies_

    first, again = (selected(np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, selected(np.random.default_rng(6)))
    refused(data, r"random_state must be an int from 0 .*Generator", random_state="seed")
    refused(data, r"random_state must be an int from 0 .* got -1", random_state=-1)


def test_weights_reach_it_as_the_last_step_of_a_pipeline(data) -> None:
    X, y = data
    weights = np.where(np.arange(y.size) < 40, 2.0, 1.0)
    selector = StabilitySelection(HUBER, n_pairs=3, threshold=0.9, q=4, random_state=0)
    expected = clone(selector).fit(X, y, weights).frequencies_
    assert not np.array_equal(expected, clone(selector).fit(X, y).frequencies_)
    piped = make_pipeline("passthrough", clone(selector))
    piped.fit(X, y, stabilityselection__sample_weight=weights)
    np.testing.assert_array_equal(piped[-1].frequencies_, expected)
    with config_context(enable_metadata_routing=True):
        selector.set_fit_request(sample_weight=True)
        routed = make_pipeline("passthrough", selector).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(routed[-1].frequencies_, expected)
    words = r"put StabilitySelection\(HuberizedSVC\(\.\.\.\)\) in the place of its last step"
    refused(data, words, TypeError, make_pipeline(StandardScaler(), HUBER))


def test_bad_data_are_refused_before_work_starts(data) -> None:
    X, y = data
    few = np.where(np.arange(60) < 3, "rare", y)
    refused((X, few), r"at least 4 samples of each class, and there are only 3 of rare")
    refused((X[:, :1], y), r"at least 2 features, got 1 \(n_features = 1\)")
    refused((np.ones((60, 3)), y), "all features are constant")
    refused((X, np.full(60, "a")), "one class")
    constant = X.copy()
    constant[:, 4] = 3.0
    with pytest.warns(UserWarning, match=r"1 feature is constant, the first one column 4"):
        model = StabilitySelection(LASSO, n_pairs=5, q=3, random_state=0).fit(constant, y)
    assert model.max_frequencies_[4] == 0


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        NuSVC(),
        Lasso(),
        SparseLogisticRegressionCV(),
        SparseLogisticRegression(l1_ratio=0.0),
        MulticlassSVC(penalty="l2"),
        SparseLogisticRegression,
    ],
)
def test_estimators_that_select_nothing_are_refused(data, estimator) -> None:
    refused(data, r"HuberizedSVC, .* or MulticlassSVC", TypeError, estimator)


def test_fits_that_end_early_are_told_once(data) -> None:
    hurried = clone(LASSO).set_params(max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"fits of StabilitySelection stopped") as caught:
        StabilitySelection(hurried, n_pairs=5, q=3, alphas=4, random_state=0).fit(*data)
    assert len(caught) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_false_selections_stay_below_the_bound(rho) -> None:
    """Ten draws of classes that differ in ten features, correlated with each other."""
    false, found, bounds = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.repeat([1, -1], 50)
        X = rng.standard_normal((100, 300))
        X[:, :10] = np.sqrt(1 - rho) * X[:, :10] + np.sqrt(rho) * rng.standard_normal((100, 1))
        X[:, :10] += y[:, None]
        model = StabilitySelection(HUBER, q=12, threshold=0.6, random_state=seed).fit(X, y)
        chosen = model.get_support()
        false.append(chosen[10:].sum())
        found.append(chosen[:10].sum())
        bounds.append(model.pfer_)
    assert np.mean(false) <= np.mean(bounds)
    assert np.mean(found) >= 4


@pytest.mark.slow
def test_noise_alone_stays_below_the_bound() -> None:
    stable = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 100)), np.arange(60) % 2
        model = StabilitySelection(LASSO, threshold=0.6, pfer=1.0, random_state=seed).fit(X, y)
        stable.append(model.get_support().sum())
    assert np.mean(stable) <= 1.0


def test_the_most_frequent_features_stand_in_where_too_few_are_stable(data) -> None:
    X, y = data
    strict = StabilitySelection(LASSO, n_pairs=5, q=2, threshold=1.0, random_state=0)
    noise = np.random.default_rng(0).standard_normal(X.shape)
    assert not clone(strict).fit(noise, y).get_support().any()
    kept = clone(strict).set_params(min_features=3)
    with pytest.warns(UserWarning, match="0 features are stable: min_features=3 takes the 3"):
        kept.fit(noise, y)
    assert kept.get_support().sum() == 3
    assert kept.max_frequencies_[~kept.get_support()].max() <= (
        kept.max_frequencies_[kept.get_support()].min()
    )
    assert not kept.stable_.any()
    assert not kept.to_frame()["stable"].any()
    with pytest.raises(ValueError, match="min_features"):
        clone(strict).set_params(min_features=-1).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["colon", "leukemia"])
def test_the_documented_pipeline_has_a_score_on_every_fold(name) -> None:
    """The recipe of docs/guide/selection.md."""
    if not (data_root() / "data" / f"{name}.npz").exists():
        pytest.skip(f"{name} is not in {data_root()}")
    X, y = load_set(name)
    stable = StabilitySelection(LASSO, q=12, pfer=1, min_features=1, n_pairs=25, random_state=0)
    scores = cross_val_score(make_pipeline(stable, LogisticRegression(max_iter=1000)), X, y)
    assert np.isfinite(scores).all()
    assert scores.mean() > 0.55


class TestGroups:
    GROUPS = np.repeat(np.arange(30), 2)

    def test_halves_are_of_whole_groups_with_as_many_of_each_class(self) -> None:
        codes = np.repeat(np.arange(30) % 3 % 2, 2)  # 20 groups of one class, 10 of the other
        weights = np.ones(60)
        weights[:2] = 0.0  # a group without a sample
        for pair in range(5):
            halves = [half_of(codes, weights, 3, 2 * pair + k, self.GROUPS) for k in (0, 1)]
            first, second = (set(self.GROUPS[rows]) for rows in halves)
            assert not first & second
            assert [len(rows) for rows in halves] == [28, 28]
            assert [int(codes[rows].sum()) for rows in halves] == [10, 10]

    def test_pairs_of_both_classes_are_halved_as_pairs(self) -> None:
        codes = np.arange(60) % 2
        rows = half_of(codes, np.ones(60), 0, 0, self.GROUPS)
        assert np.bincount(codes[rows]).tolist() == [15, 15]

    def test_a_selection_draws_them(self, rng) -> None:
        X = rng.standard_normal((60, 5))
        y = np.repeat(np.arange(30) % 2, 2)
        X[:, 0] += 3 * y
        options = {"n_pairs": 5, "q": 1, "threshold": 0.9}
        model = StabilitySelection(SparseLogisticRegression(), **options)
        names = [f"p{group}" for group in self.GROUPS]
        assert model.fit(X, y, groups=names).get_support()[0]
        with pytest.raises(ValueError, match="too few hold samples of class 1"):
            model.fit(X, y, groups=np.where(y == 1, 99, self.GROUPS))
