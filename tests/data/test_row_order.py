"""The order of the rows: what carries information is told, what chance explains is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline

from proxmargin import (
    DWD,
    L2SVC,
    CalibratedMargin,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StabilitySelection,
    compare,
    permutation_test,
)
from proxmargin.data.inputs.row_order import RowOrderWarning, drift

DRAWN = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "one outlier": lambda rng, shape: 100.0 * (rng.random(shape) < 1 / shape[0]),
    "counts": lambda rng, shape: rng.poisson(0.1, shape).astype(float),
}


def followed_up(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Samples in the order of their time, later ones less often of class 1; and noise."""
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(size=n))
    return np.c_[time, rng.normal(size=n)], (rng.uniform(size=n) > time).astype(int)


@pytest.mark.parametrize("kind", DRAWN)
def test_chance_is_hardly_ever_called_a_drift(kind: str) -> None:
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, p = int(rng.choice([20, 50, 200])), int(rng.choice([5, 50]))
        y = np.arange(n) % 2
        rng.shuffle(y)
        alarms += drift(DRAWN[kind](rng, (n, p)), y) is not None
    assert alarms <= 4  # 1 % of 200 are 2


def test_drifts_of_features_and_classes_are_found_in_any_storage() -> None:
    X, y = followed_up()
    found = drift(X, y)
    assert found is not None
    assert found.column is None  # the classes
    for data in (X, X.astype(np.float32), sparse.csr_array(X), sparse.csc_matrix(X)):
        found = drift(data, np.sort(y))  # sorted by class, and by time within the classes
        assert found is not None
        assert (found.column, round(found.correlation, 2)) == (0, 0.97)
    assert drift(X[:, 1:], np.sort(y)) is None
    batches = np.repeat(np.arange(10) % 3, 30)
    assert drift(X[:, 1:] + 2.0 * batches[:, None], np.arange(300) % 2) is not None
    assert drift(X[np.random.default_rng(1).permutation(300)], np.arange(300) % 2) is None


MANY_HALVES = StabilitySelection(
    SparseLogisticRegression(l1_ratio=1.0), n_pairs=10, q=1, threshold=0.9
)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: SparseLogisticRegressionCV(alphas=3).fit(X, y),
        lambda X, y: CalibratedMargin(L2SVC()).fit(X, y),
        lambda X, y: permutation_test(DWD(), X, y, n_permutations=5),
        lambda X, y: permutation_test(
            SparseLogisticRegressionCV(alphas=2, cv=2), X, y, statistic="accuracy", n_permutations=2
        ),
        lambda X, y: StabilitySelection(
            SparseLogisticRegression(l1_ratio=1.0), n_pairs=10, q=1, threshold=0.9
        ).fit(X, y),
        lambda X, y: compare(X, y, models=["L2SVC"], cv=2, progress=False),
        lambda X, y: cross_val_score(SparseLogisticRegressionCV(alphas=3), X, y, cv=3),
        lambda X, y: cross_val_score(make_pipeline(MANY_HALVES, L2SVC()), X, y, cv=3),
    ],
)
def test_it_is_told_once_with_what_to_do(fit) -> None:
    X, y = followed_up()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(X, y)
    told = [str(each.message) for each in caught if each.category is RowOrderWarning]
    assert len(told) == 1
    assert "the classes change along them (correlation 0." in told[0]
    assert "--splits time" in told[0]


def test_a_splitter_and_groups_do_as_they_say() -> None:
    X, y = followed_up()
    search = SparseLogisticRegressionCV(alphas=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowOrderWarning)
        found = search.set_params(cv=TimeSeriesSplit(3)).fit(X, y)
        assert found.cv_scores_.shape[2] == 3
        compare(X, y, models=["L2SVC"], cv=TimeSeriesSplit(3), progress=False)
        search.set_params(cv=5).fit(X, y, groups=np.arange(300) // 10)


@pytest.mark.filterwarnings("ignore::proxmargin.data.inputs.row_order.RowOrderWarning")
def test_a_number_means_shuffled_folds_the_same_each_time() -> None:
    X, y = followed_up()
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    found = SparseLogisticRegressionCV(alphas=5, random_state=3).fit(X, y)
    again = SparseLogisticRegressionCV(alphas=5, random_state=3).fit(X, y)
    other = SparseLogisticRegressionCV(alphas=5).fit(X, y)
    expected = SparseLogisticRegressionCV(alphas=5, cv=folds).fit(X, y)
    np.testing.assert_array_equal(found.cv_scores_, expected.cv_scores_)
    np.testing.assert_array_equal(found.cv_scores_, again.cv_scores_)
    assert not np.array_equal(found.cv_scores_, other.cv_scores_)
