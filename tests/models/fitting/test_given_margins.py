"""Margins as users give them: labelled, masked, of other types, of a class without weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from proxmargin import (
    MulticlassSVC,
    MulticlassSVCCV,
    StabilitySelection,
    certify,
    critical_C,
    margin_path,
    permutation_test,
)
from proxmargin.models.permutations.labelings import mean_difference

X, codes = load_iris(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(X))[:60]
X, y = X[rows], np.array(["a", "b", "c"])[codes[rows]]
BY_CLASS = np.array([[1.0, 2.0, 0.5], [3.0, 1.0, 0.25], [1.5, 4.0, 1.0]])
BY_SAMPLE = 0.5 + np.arange(60) % 4
INDEX = pd.Index(1000 + np.arange(60))
FRAME = pd.DataFrame(X, index=INDEX, columns=list("pqrs"))
SERIES = pd.Series(BY_SAMPLE, INDEX)
two = y != "c"


def coef(margins: Any, X: Any = X) -> np.ndarray:
    return MulticlassSVC("l1", margins=margins).fit(X, y).coef_


def test_a_data_frame_is_aligned_by_the_labels_of_the_classes() -> None:
    frame = pd.DataFrame(BY_CLASS, list("abc"), list("abc"))
    frame.loc["b", "b"] = np.nan
    for given in (frame, frame.loc[list("cab")], frame.loc[list("bca"), list("cba")]):
        np.testing.assert_array_equal(coef(given), coef(BY_CLASS))
        search = MulticlassSVCCV([0.1], cv=2, margins=given).fit(X, y)
        plain = MulticlassSVCCV([0.1], cv=2, margins=BY_CLASS).fit(X, y)
        np.testing.assert_array_equal(search.coef_, plain.coef_)
    truth = frame.set_axis([False, True, 2], axis=0).set_axis([False, True, 2], axis=1)
    in_pairs = truth.iloc[[1, 0], [1, 0]]
    np.testing.assert_array_equal(
        MulticlassSVC(margins=in_pairs).fit(X[two], y[two] == "b").coef_,
        MulticlassSVC(margins=BY_CLASS[:2, :2]).fit(X[two], y[two] == "b").coef_,
    )


@pytest.mark.parametrize(
    ("index", "columns", "told"),
    [
        ("abd", "abc", r"one column for each class, .*'d'.*, got the columns .*'c'"),
        (
            "abd",
            "abd",
            r"one row for each class, .*'c'.*, got the rows \['a', 'b', 'd'\]",
        ),
        ("aab", "aab", r"one row for each class"),
        (range(3), range(3), r"margins must have one row for each class, \['a', 'b', 'c'\]"),
    ],
)
def test_a_data_frame_with_other_labels_is_refused(index: Any, columns: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        coef(pd.DataFrame(BY_CLASS, list(index), list(columns)))


def test_a_series_is_aligned_with_the_index_of_the_samples() -> None:
    expected = coef(BY_SAMPLE)
    shuffled = SERIES.sample(frac=1.0, random_state=0)
    np.testing.assert_array_equal(coef(shuffled, FRAME), expected)
    np.testing.assert_array_equal(coef(SERIES, X), expected)  # no index to align with
    path = margin_path(MulticlassSVC("l1", margins=shuffled), FRAME, y, Cs=[1.0])
    np.testing.assert_array_equal(path.coefs[0], expected)
    search = MulticlassSVCCV([1.0], cv=2, margins=shuffled).fit(FRAME, y)
    plain = MulticlassSVCCV([1.0], cv=2, margins=BY_SAMPLE).fit(X, y)
    np.testing.assert_array_equal(search.cv_scores_, plain.cv_scores_)
    chosen = [
        StabilitySelection(MulticlassSVC("l1", margins=given), n_pairs=2, pfer=1, q=2)
        .fit(data, y)
        .frequencies_
        for given, data in ((shuffled, FRAME), (BY_SAMPLE, X))
    ]
    np.testing.assert_array_equal(*chosen)
    with pytest.raises(ValueError, match="margins has no entry for row 1059 of X"):
        coef(SERIES.rename({1059: 7}), FRAME)


@pytest.mark.parametrize(
    "given",
    [
        True,
        "1.5",
        1.5 + 0j,
        BY_CLASS + 0j,
        BY_CLASS.astype(str),
        [[1.0, "2", 0.5], *BY_CLASS[1:].tolist()],
        [True] * 60,
        two,
        np.datetime64("2020-01-01"),
        [[1.0], [1.0, 2.0]],
    ],
)
def test_margins_are_real_numbers(given: Any) -> None:
    with pytest.raises(ValueError, match="margins must be a number >= 0, one a sample, or"):
        coef(given)


def test_a_mask_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match="margins has a masked entry in row 1, column 2"):
        coef(np.ma.array(BY_CLASS, mask=BY_CLASS == 0.25))
    with pytest.raises(ValueError, match="margins has a masked entry in row 0"):
        coef(np.ma.array(BY_SAMPLE, mask=np.arange(60) == 0))


@pytest.mark.parametrize("entry", [np.nan, np.inf, -1.0])
def test_the_diagonal_does_not_count(entry: float) -> None:
    given = BY_CLASS.copy()
    np.fill_diagonal(given, entry)
    np.testing.assert_array_equal(coef(given), coef(BY_CLASS))
    given[0, 1] = entry
    with pytest.raises(ValueError, match="margins must be a number >= 0"):
        coef(given)


def test_the_class_without_weight_is_named() -> None:
    weights = np.where(y == "b", 0.0, 1.0)
    with pytest.raises(ValueError, match=r"2 classes with a positive weight \(not \['b'\]\)"):
        MulticlassSVC(margins=BY_CLASS).fit(X, y, weights)
    kept = pd.DataFrame(BY_CLASS, list("abc"), list("abc")).drop("b").drop("b", axis=1)
    assert MulticlassSVC(margins=kept).fit(X, y, weights).certificate_.converged


def test_permuted_labels_leave_the_margins_with_the_samples() -> None:
    data, labels, margins = FRAME[two], y[two], SERIES[two]
    found = permutation_test(
        MulticlassSVC("l1", margins=margins[::-1]), data, labels, n_permutations=3
    )
    plain = permutation_test(
        MulticlassSVC("l1", margins=margins.to_numpy()), X[two], labels, n_permutations=3
    )
    np.testing.assert_allclose(found.null, plain.null, rtol=1e-12)
    model = MulticlassSVC("l1", margins=margins.to_numpy()).fit(X[two], labels)
    along = X[two] @ model.coef_.T / np.linalg.norm(model.coef_)
    own = mean_difference(along, (labels == "b")[:, None])
    assert found.statistic == pytest.approx(own[0], rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "lee"])
def test_there_is_no_critical_C_where_zero_has_no_loss(loss: Any) -> None:
    with pytest.raises(ValueError, match=r"critical_C is infinite.*give margins > 0, got 0"):
        critical_C(MulticlassSVC("l1", margins=0, loss=loss), X, y)
    assert np.isfinite(critical_C(MulticlassSVC("l1", margins=0, loss="logistic"), X, y))


@pytest.mark.parametrize("loss", ["hinge", "lee"])
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", "group_l2"])
def test_one_number_for_all_is_the_same_as_one_for_each(penalty: Any, loss: Any) -> None:
    groups = "features" if penalty == "group_l2" else None
    one, each = (
        MulticlassSVC(penalty, groups=groups, loss=loss, margins=given, C=0.3, tol=1e-8)
        for given in (2.5, np.full(len(y), 2.5))
    )
    one.fit(X, y), each.fit(X, y)
    assert one.certificate_.primal == pytest.approx(each.certificate_.primal, rel=2e-8)
    assert one.certificate_.converged
    known = certify(each, X, y, one.coef_, one.intercept_, tol=1e-7)
    assert known.converged
    first = one.certificate_.n_iter
    assert one.set_params(warm_start=True).fit(X, y).certificate_.n_iter <= max(first, 2)
    assert critical_C(one, X, y) == pytest.approx(critical_C(each, X, y), rel=1e-6)


@pytest.mark.parametrize("labels", [y[two], pytest.param(y, marks=pytest.mark.slow)])
def test_one_number_for_all_holds_in_searches_and_budgets(labels: Any) -> None:
    data = X[two] if labels.size < y.size else X
    margins = 3.0, np.full(labels.size, 3.0)
    one, each = (
        MulticlassSVCCV([0.1, 1.0, 9.0], penalty="l2", cv=2, tol=1e-8, margins=m) for m in margins
    )
    np.testing.assert_allclose(
        one.fit(data, labels).cv_scores_, each.fit(data, labels).cv_scores_, rtol=1e-4
    )
    one, each = (MulticlassSVC("l2", C=None, eta=12.0, tol=1e-7, margins=m) for m in margins)
    expected = each.fit(data, labels).certificate_
    assert one.fit(data, labels).certificate_.primal == pytest.approx(expected.primal, rel=2e-7)
    assert certify(each, data, labels, one.coef_, one.intercept_, tol=1e-5).converged
