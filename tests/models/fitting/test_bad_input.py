"""Bad input gets one clear sentence, before any work starts; hard input a truthful answer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets

import proxmargin
from proxmargin import (
    ElasticNetSVC,
    HuberizedSVC,
    MarginClassifier,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from proxmargin.data.inputs.validation import _are_few_integers
from proxmargin.losses import Hinge
from proxmargin.penalties import ElasticNet
from proxmargin.solvers.papers.accelerated import FastProximalGradient

EVERY = [HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression, MarginClassifier]
every = pytest.mark.parametrize("make", EVERY)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 8))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(int)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1}, "alpha must be a finite number >= 0, got -1"),
        ({"alpha": np.nan}, "alpha must be a finite number >= 0, got nan"),
        ({"alpha": "1"}, "alpha must be a finite number >= 0, got '1'"),
        ({"l1_ratio": 1.5}, "l1_ratio must be a finite number >= 0 and <= 1, got 1.5"),
        ({"l1_ratio": -0.1}, "l1_ratio must be"),
        ({"delta": 0}, "delta must be a finite number > 0, got 0"),
        ({"delta": np.inf}, "delta must be a finite number > 0, got inf"),
        ({"intercept_ridge": -2.0}, "intercept_ridge must be"),
        ({"multi_class": "both"}, "multi_class must be one of 'joint', 'ovr', got 'both'"),
        (
            {"solver": "simplex"},
            "unknown solver 'simplex': for this problem there are 'auto', 'b-pgh'",
        ),
        ({"solver": "m-pgh"}, "cannot take this problem: it needs a joint multiclass .*these can"),
        (
            {"solver": "gcd", "solver_options": {"eta": 2}},
            "'gcd' has no 'eta'; it takes 'smallest'",
        ),
        ({"solver_options": {"eta": 2}}, "solver_options need a solver asked for by name"),
        ({"stopping": "never"}, "stopping must be one of 'gap', 'relative-change'"),
        ({"tol": -1e-6}, "tol must be"),
        ({"max_iter": 2.5}, "max_iter must be an integer >= 0 or None, got 2.5"),
        ({"time_limit": 0}, "time_limit must be a finite number > 0 or None, got 0"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False, got 1"),
        ({"standardize": "yes"}, "standardize must be True or False"),
        ({"callbacks": None}, "callbacks must be a list or tuple"),
        ({"verbose": None}, "verbose must be an integer >= 0, got None"),
        ({"solver": ["fapg"]}, r"solver must be a name or a solver object, got \['fapg'\]"),
        (
            {"solver": "fapg", "solver_options": {"growth": 1.0}},
            "growth must be a number > 1, got 1.0",
        ),
        ({"solver": "fapg", "solver_options": {"bt_every": 0}}, "bt_every must be an integer"),
        ({"solver": "b-pgh", "solver_options": {"eta": 1.0}}, "eta must be a number > 1, got 1.0"),
        ({"callbacks": [3]}, "callbacks must be a list or tuple of callables"),
        (
            {"class_weight": {7: 2.0}},
            r"class_weight names \[7\], none of which is among",
        ),
        ({"multi_class": "multinomial"}, "multi_class='joint', which is the multinomial"),
        ({"multi_class": "ovo"}, "'ovo': DDAGClassifier"),
        ({"class_weight": "even"}, "class_weight must be None, 'balanced' or a dict, got 'even'"),
        ({"class_weight": {0: -1.0}}, "class_weight: weights must be finite and >= 0"),
        ({"class_weight": {0: "2"}}, "class_weight: weights must be numbers, got '2'"),
        ({"class_weight": {0: True}}, "class_weight: weights must be numbers, got True"),
    ],
)
def test_a_bad_parameter_is_named_with_what_would_work(data, parameters, message) -> None:
    with pytest.raises(ValueError, match=message):
        HuberizedSVC(**parameters).fit(*data)


def test_a_solver_for_all_classes_together_is_offered_where_it_is_wanted(data) -> None:
    X, _ = data
    three = np.arange(60) % 3
    with pytest.raises(ValueError, match=r"it needs .*a binary problem.*'m-pgh', 'm-pgh-2', 'apg'"):
        HuberizedSVC(solver="gcd").fit(X, three)


def test_a_loss_with_a_kink_is_refused_in_words_by_methods_of_gradients(data) -> None:
    with pytest.raises(ValueError, match="Lipschitz continuous gradient"):
        MarginClassifier(loss=Hinge(), penalty=ElasticNet(0.01), solver="b-pgh").fit(*data)


def test_parts_that_are_no_parts_are_refused(data) -> None:
    with pytest.raises(ValueError, match="loss must be a MarginLoss"):
        MarginClassifier(loss="hinge").fit(*data)
    with pytest.raises(ValueError, match="penalty must be one of ElasticNet"):
        MarginClassifier(penalty=0.1).fit(*data)


@every
@pytest.mark.parametrize(
    ("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "1e\\+200")]
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix, "frame"])
def test_entries_that_cannot_be_used_are_named_by_row_and_column(
    data, make, bad, word, form
) -> None:
    X, y = data
    X[13, 5] = bad
    named = form == "frame"
    X = pd.DataFrame(X, columns=list("abcdefgh")) if named else form(X)
    where = "row 13, column 5 \\('f'\\)" if named else "row 13, column 5"
    with pytest.raises(ValueError, match=f"{word}.* in {where}"):
        make().fit(X, y)


@every
def test_prediction_checks_its_input_too(data, make) -> None:
    X, y = data
    model = make().fit(X, y)
    with pytest.raises(ValueError, match="8 features"):
        model.predict(X[:, :5])
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in row 2, column 1"):
        model.predict(X)


@every
def test_shapes_and_labels_that_cannot_be_used_are_refused(data, make) -> None:
    X, y = data
    cases = [
        (X, np.zeros(60, int), "one class only, 0: .*at least 2 classes"),
        (X[:1], y[:1], "1 sample"),
        (X[:, :0], y, "0 feature"),
        (X, y[:-1], "y has 59 labels but X has 60 rows"),
        (X[0], y, "Expected 2D array"),
        (X, np.linspace(0, 1, 60), "Unknown label type"),
        (X, np.where(y == 1, np.nan, 0.0), "y contains NaN"),
        (X, np.where(np.arange(60) == 5, None, y), "y has no label in row 5"),
        (X, None, "y cannot be None|target y is None"),
        (X, np.column_stack([y, y]), "1d array"),
        (X * 1j, y, "^Complex data not supported: X holds complex128, .* give numbers"),
        (pd.DataFrame({"a": X[:, 0], "b": 1j}), y, r"holds complex128 in column 1 \('b'\)"),
        (X, y * 1j, "y holds complex128, which is no label"),
        (X, pd.Series(pd.period_range("2020", periods=60)), r"y holds Period.* type Period, which"),
        (
            X,
            pd.interval_range(0, 60),
            "y holds Interval.* of the type Interval",
        ),
    ]
    for features, labels, message in cases:
        with pytest.raises(ValueError, match=message):
            make().fit(features, labels)


@every
def test_sample_weights_that_cannot_be_used_are_refused(data, make) -> None:
    X, y = data
    weights = np.ones(60)
    weights[7] = -0.5
    cases = [
        (weights, "sample_weight must be >= 0, got -0.5 in row 7"),
        (np.full(60, 1e300), "sample_weight must be at most 1e.100, got 1e.300 in row 0"),
        (np.zeros(60), "Sample weights must contain at least one non-zero number"),
        (np.ones(59), "sample_weight"),
        (np.where(y == 1, 0.0, 1.0), "one class only, 0 with a positive weight"),
        (np.where(np.arange(60) == 3, np.nan, 1.0), "sample_weight contains NaN"),
    ]
    for bad, message in cases:
        with pytest.raises(ValueError, match=message):
            make().fit(X, y, sample_weight=bad)


def test_a_word_among_numbers_is_found(data) -> None:
    X, y = data
    mixed = X.astype(object)
    HuberizedSVC().fit(mixed, y)
    mixed[4, 2] = "tall"
    with pytest.raises(ValueError, match="'tall' in row 4, column 2"):
        HuberizedSVC().fit(mixed, y)


def test_a_damaged_sparse_matrix_is_refused_before_it_is_read(data) -> None:
    X, y = data
    matrix = sparse.csr_matrix(X)
    matrix.indices[3] = 10_000
    with pytest.raises(ValueError, match="ind"):
        HuberizedSVC().fit(matrix, y)


def test_repeated_entries_of_a_sparse_matrix_add_up(data) -> None:
    X, y = data
    rows, columns = np.repeat(np.arange(60), 16), np.tile(np.repeat(np.arange(8), 2), 60)
    halves = sparse.csr_matrix((np.repeat(X.ravel() / 2, 2), columns, np.arange(0, 961, 16)))
    assert rows.size == halves.nnz
    twice = HuberizedSVC(tol=1e-10).fit(halves, y)
    np.testing.assert_allclose(twice.coef_, HuberizedSVC(tol=1e-10).fit(X, y).coef_, atol=1e-6)
    assert halves.nnz == rows.size


@every
def test_read_only_and_memory_mapped_arrays_work_unchanged(data, make, tmp_path) -> None:
    X, y = data
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    X.setflags(write=False)
    np.testing.assert_allclose(make().fit(mapped, y).coef_, make().fit(X, y).coef_, atol=1e-12)
    np.testing.assert_array_equal(mapped, X)


@every
def test_constant_columns_get_coefficient_zero_and_copies_share(data, make) -> None:
    X, y = data
    wide = np.hstack([X, np.zeros((60, 1)), np.full((60, 1), 3.7), X[:, :1]])
    for standardize in (False, True):
        model = make(standardize=standardize, tol=1e-9).fit(wide, y)
        assert model.certificate_.converged
        assert model.coef_[0, 8] == 0.0
        assert model.coef_[0, 9] == 0.0
        assert model.coef_[0, 10] == pytest.approx(model.coef_[0, 0], abs=1e-3)


@every
def test_columns_of_extreme_scales_converge_or_say_how_far_they_got(data, make) -> None:
    X, y = data
    scales = np.ones(8)
    scales[0], scales[1] = 1e12, 1e-12
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make().fit(X * scales, y)
    certificate = model.certificate_
    assert np.isfinite(certificate.gap)
    assert certificate.converged or (len(caught) == 1 and "relative gap" in str(caught[0].message))
    assert make(standardize=True).fit(X * scales, y).certificate_.converged


@every
@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 0.0])
def test_separable_data_with_a_vanishing_penalty_converge_or_say_so(make, alpha, rng) -> None:
    X = rng.standard_normal((40, 5))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.sign(X[:, 0])
    if make is MarginClassifier:
        pytest.skip("takes its penalty as an object")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(alpha=alpha, time_limit=10).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.certificate_.gap)


def test_a_fit_that_stops_early_warns_once_with_the_gap_reached(data) -> None:
    X, y = data
    with pytest.warns(ConvergenceWarning) as caught:
        model = HuberizedSVC(max_iter=2).fit(X, y)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"{model.certificate_.relative_gap:.2e}" in message
    assert "the iteration limit was reached after 2 iterations" in message
    assert not model.certificate_.converged


def test_two_samples_and_one_feature_are_enough() -> None:
    for make in EVERY:
        model = make().fit([[0.0], [1.0]], ["a", "b"])
        assert model.certificate_.converged


def test_a_solver_object_takes_no_options_beside_it(data) -> None:
    with pytest.raises(ValueError, match="asked for by name, not an object"):
        HuberizedSVC(solver=FastProximalGradient(), solver_options={"growth": 2.0}).fit(*data)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_a_class_without_weight_is_a_class_removed(rng, multi_class) -> None:
    X, y = rng.standard_normal((90, 6)), np.arange(90) % 3
    X[:, 0] += y
    weights = np.where(y == 1, 0.0, 1.0)
    kept = weights > 0
    some = HuberizedSVC(multi_class=multi_class, tol=1e-10).fit(X, y, sample_weight=weights)
    fewer = HuberizedSVC(multi_class=multi_class, tol=1e-10).fit(X[kept], y[kept])
    np.testing.assert_array_equal(some.classes_, [0, 2])
    np.testing.assert_allclose(some.coef_, fewer.coef_, atol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "gcd", "fapg", "fapg-ws", "newton", "b-pgh", "b-pgh-2"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("standardize", [False, True])
def test_every_solver_fits_every_form_of_data_or_says_why_not(
    rng, solver, form, standardize
) -> None:
    X = rng.standard_normal((30, 150))
    y = (X[:, 0] > 0).astype(int)
    model = HuberizedSVC(alpha=0.3, l1_ratio=0.9, solver=solver, standardize=standardize)
    if solver == "gcd" and standardize and form is not np.asarray:
        with pytest.raises(ValueError, match=r"reads single columns.*'newton'"):
            model.fit(form(X), y)
    else:
        assert model.fit(form(X), y).certificate_.converged


def test_standardised_sparse_and_dense_data_give_one_model_whatever_the_mean(rng) -> None:
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] + 0.3 * rng.standard_normal(200) > 0).astype(int)
    X = 1000.0 + 1e-4 * X
    dense = HuberizedSVC(standardize=True, tol=1e-9).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csc_matrix):
        model = HuberizedSVC(standardize=True, tol=1e-9).fit(form(X), y)
        assert model.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-3, atol=1.0)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("entry", [np.inf, -np.inf, np.nan])
def test_a_bad_entry_of_single_precision_is_named(form, entry, rng) -> None:
    X = rng.standard_normal((20, 4)).astype(np.float32)
    X[3, 2] = entry
    with pytest.raises(ValueError, match="row 3, column 2"):
        HuberizedSVC().fit(form(X), np.arange(20) % 2)


@pytest.mark.parametrize("most", [10**30, 10**400])
def test_any_whole_number_of_iterations_is_taken(most: int) -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = (X[:, 0] > 0).astype(int)
    assert HuberizedSVC(max_iter=most).fit(X, y).certificate_.converged


def test_data_that_overflow_products_raise_no_warnings_of_numpy() -> None:
    X = 2e69 * np.random.default_rng(0).standard_normal((12, 4))
    y = np.arange(12) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NuSVC(nu=0.9, solver="fapg", max_iter=50).fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("make", [SquaredHingeSVC, HuberizedSVC, SparseLogisticRegression])
def test_of_dependent_features_without_a_penalty_a_stationary_loss_is_told_at_once(make) -> None:
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[:, 4] = X[:, 3] - X[:, 2]
    with pytest.warns(ConvergenceWarning, match="without a penalty no dual point proves it"):
        model = make(alpha=0.0).fit(X, np.arange(30) % 2)
    assert model.certificate_.n_iter < 1000


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix, "frame"])
@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (1e90, r"contains .*e\+\d\d in row 0, {} .*beyond 1e\+70, where products overflow"),
        (1e-90, r"nothing larger than .*e-90 in row 7, {} .*below 1e-70, where products underflow"),
    ],
)
def test_units_whose_products_leave_the_range_are_refused_by_column(data, unit, words, form):
    X, y = data
    X[7, 5] = 9.0
    if unit > 1:
        X[:, :5] *= 1e-90
        X[:, 6:] *= 1e-90
    named = form == "frame"
    X = pd.DataFrame(unit * X, columns=list("abcdefgh")) if named else form(unit * X)
    column = r"column 5 \('f'\)" if named else "column 5"
    with pytest.raises(ValueError, match=words.format(column) + ".* set standardize=True"):
        SquaredHingeSVC().fit(X, y)


@every
@pytest.mark.parametrize("unit", [1e-130, 1e-90, 1e90, 1e130])
def test_standardising_brings_them_back_into_the_range(data, make, unit) -> None:
    X, y = data
    plain, other = (make(standardize=True, tol=1e-9).fit(part, y) for part in (X, unit * X))
    assert other.certificate_.converged
    np.testing.assert_allclose(unit * other.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_array_equal(other.predict(unit * X), plain.predict(X))


@every
@pytest.mark.parametrize("unit", [1e-12, 1e12, 1e-60, 1e60])
def test_units_of_any_use_are_taken(data, make, unit) -> None:
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(max_iter=20).fit(unit * X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.certificate_.gap)


def test_a_small_column_beside_others_is_no_harm(data) -> None:
    X, y = data
    X[:, 3] *= 1e-200
    X[:, 4] = 0.0
    model = SquaredHingeSVC(tol=1e-9).fit(X, y)
    kept = np.delete(X, [3, 4], axis=1)
    assert model.certificate_.converged
    np.testing.assert_allclose(
        model.decision_function(X),
        SquaredHingeSVC(tol=1e-9).fit(kept, y).decision_function(kept),
        atol=1e-5,
    )


def test_weights_as_good_as_none_overflow_nothing() -> None:
    X, y = np.random.default_rng(0).standard_normal((6, 3)), np.arange(6) % 2
    weights = np.array([1.0, 1.0, 1.0, 1.0, 1e-309, 1e-309])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = HuberizedSVC(alpha=1e9).fit(X, y, sample_weight=weights)
    assert model.certificate_.converged


def test_a_penalty_as_good_as_none_is_no_path_without_end() -> None:
    X, y = np.random.default_rng(0).standard_normal((30, 6)), np.arange(30) % 2
    with pytest.warns(ConvergenceWarning):
        model = HuberizedSVC(alpha=1e-320).fit(X, y)
    assert np.isfinite(model.coef_).all()


EXTREME = {
    "C": ("SVC", "L2SVC", "LogisticRegression"),
    "alpha": ("HuberizedSVC", "ElasticNetSVC", "SquaredHingeSVC", "SparseLogisticRegression"),
    "delta": ("HuberizedSVC",),
    "intercept_ridge": ("HuberizedSVC",),
    "nu": ("NuSVC", "DWD"),
    "kappa": ("MarginFDA", "MarginMPM"),
    "norm": ("DWD",),
    "coef0": ("SVC",),
    "gamma": ("SVC", "NuSVC", "DWD", "MarginFDA", "MarginMPM"),
    "class_weight": ("SVC", "HuberizedSVC", "NuSVC"),
    "penalty_factor": ("HuberizedSVC",),
    "bounds": ("ElasticNetSVC",),
}


@pytest.mark.parametrize("value", [1e101, 1e300, 1.7e308])
@pytest.mark.parametrize(
    ("parameter", "name"), [(key, name) for key, names in EXTREME.items() for name in names]
)
def test_numbers_whose_products_overflow_are_refused(parameter, name, value) -> None:
    X, y = np.random.default_rng(0).standard_normal((12, 4)), np.arange(12) % 2
    given = {
        "class_weight": {0: 1.0, 1: value},
        "penalty_factor": np.full(4, value),
        "bounds": (-value, value),
    }
    kernel = {"kernel": "rbf"} if parameter == "gamma" else {}
    kernel = {"kernel": "poly"} if parameter == "coef0" else kernel
    model = getattr(proxmargin, name)(**{parameter: given.get(parameter, value)}, **kernel)
    with pytest.raises(ValueError, match=rf"{parameter}.*at most 1e\+100 in magnitude"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "name"),
    [("C", "SVC"), ("delta", "HuberizedSVC"), ("nu", "DWD"), ("gamma", "SVC")],
)
def test_numbers_whose_reciprocals_overflow_are_refused(parameter, name) -> None:
    X, y = np.random.default_rng(0).standard_normal((12, 4)), np.arange(12) % 2
    kernel = {"kernel": "rbf"} if parameter == "gamma" else {}
    with pytest.raises(ValueError, match=rf"{parameter} must be at least 1e-100"):
        getattr(proxmargin, name)(**{parameter: 1e-308}, **kernel).fit(X, y)


def test_the_largest_numbers_that_are_taken_overflow_nothing() -> None:
    X, y = np.random.default_rng(0).standard_normal((12, 4)), np.arange(12) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in (
            HuberizedSVC(alpha=1e49, penalty_factor=np.full(4, 1e50)),
            ElasticNetSVC(alpha=1.0, penalty_factor=np.full(4, 1e100)),
            proxmargin.SVC(C=1e98, kernel="rbf"),
            proxmargin.L2SVC(C=1e-98, kernel="rbf"),
            proxmargin.MarginMPM(kappa=1e100, kernel="rbf", max_iter=20),
        ):
            model.fit(X, y)
            assert not np.isnan(model.certificate_.relative_gap)
            assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (proxmargin.SVC(C=1e60), "C times the total weight"),
        (proxmargin.MulticlassSVC(C=1e60), "C times the total weight"),
        (HuberizedSVC(alpha=1e60, penalty_factor=[1e60] * 4), "alpha times penalty_factor"),
    ],
)
def test_products_of_parameters_that_overflow_are_refused(model, words) -> None:
    X, y = np.random.default_rng(0).standard_normal((12, 4)), np.arange(12) % 2
    with pytest.raises(ValueError, match=rf"{words}.* must be at most 1e\+100 in magnitude"):
        model.fit(X, y, sample_weight=np.full(12, 1e60))


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=30),
    st.sampled_from(["i1", "i8", "f4", "f8"]),
    st.sampled_from([0.0, 0.5]),
)
def test_labels_that_need_no_check_are_classes(labels: list[int], kind: str, more: float) -> None:
    y = np.array(labels, dtype=kind)
    y[0] += np.array(more).astype(kind)
    if _are_few_integers(y):
        assert np.unique(y).size <= max(2, y.size // 2)
        check_classification_targets(y)
    else:
        assert y.dtype.kind == "f" or np.ptp(y) >= y.size // 2


@pytest.mark.parametrize(
    ("name", "parameter", "told"),
    [
        ("LogisticRegression", "penalty", "SparseLogisticRegression"),
        ("SVC", "loss", "squared hinge L2SVC"),
        ("HuberizedSVC", "C", "alpha"),
        ("SVC", "probability", "CalibratedMargin"),
        ("SVC", "nonsense", "it has C, kernel"),
    ],
)
def test_a_parameter_of_other_libraries_is_refused_with_where_it_is(
    name: str, parameter: str, told: str
) -> None:
    with pytest.raises(TypeError, match=f"{name} has no parameter '{parameter}'.*{told}"):
        getattr(proxmargin, name)(**{parameter: 1})


def test_classes_together_are_refused_with_the_models_that_do_so() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"each class against the rest.*MulticlassSVC"):
        proxmargin.SVC(multi_class="joint").fit(X, y)


def test_two_columns_of_one_name_are_refused(data) -> None:
    frame = pd.DataFrame(data[0], columns=list("abcdefga"))
    with pytest.raises(ValueError, match="X has 2 columns of the name 'a': rename them"):
        HuberizedSVC().fit(frame, data[1])
