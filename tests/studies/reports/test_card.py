"""The data card: what it finds, what it leaves in peace, and that it costs little."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import roc_auc_score

from proxmargin.reports import data_card
from proxmargin.studies.reports.card import single_feature_auc


def table(n: int = 60, p: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((n, p)), rng.permutation(np.arange(n) % 2)


def words(card: dict[str, Any]) -> str:
    return " ".join(f"{each['what']} {each['advice']}" for each in card["findings"])


def test_clean_data_are_left_in_peace() -> None:
    data = load_breast_cancer()
    card = data_card(data.data, data.target_names[data.target], data.feature_names)
    assert card["findings"] == []
    assert card["suspects"] == []
    assert card["classes"] == [
        {"label": "benign", "count": 357},
        {"label": "malignant", "count": 212},
    ]


def test_iris_is_sorted_and_has_a_copy_and_petals_that_tell_setosa() -> None:
    data = load_iris()
    card = data_card(data.data, data.target_names[data.target], data.feature_names)
    assert card["sorted_by_class"]
    assert card["duplicate_rows"]["count"] == pd.DataFrame(data.data).duplicated().sum() == 1
    told = {each["feature"]: (each["class"], each["auc"]) for each in card["suspects"]}
    assert told == {f"petal {name} (cm)": ("setosa", 1.0) for name in ("length", "width")}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_faults_are_counted_in_every_form(form: Any) -> None:
    X, y = table()
    X = np.column_stack([X.round(1), np.zeros(60), X[:, 0].round(1), X[:, 1].round(1) > 0])
    X[7] = X[3]
    X[9] = X[3]
    y[[3, 7, 9]] = [0, 1, 0]
    X[5, 2] = np.nan
    card = data_card(form(X), y)
    assert card["constant"] == {"count": 1, "features": ["x5"]}
    assert card["duplicate_columns"] == {"count": 1, "examples": [["x0", "x6"]]}
    assert card["duplicate_rows"] == {"count": 2, "conflicting": 3, "examples": [[4, 8, 10]]}
    assert card["missing"] == {"entries": 1, "count": 1, "features": ["x2"]}
    assert "different label" in words(card)
    assert json.loads(json.dumps(card)) == card


def test_a_column_in_row_order_or_of_shuffled_numbers_is_an_identifier() -> None:
    X, y = table()
    number = np.arange(60.0)
    shuffled = np.random.default_rng(0).permutation(60) + 100.0
    card = data_card(np.column_stack([X, 1e9 + 86400 * number, shuffled, -number]), y)
    assert [each["feature"] for each in card["suspects"]] == ["x5", "x6", "x7"]


def test_the_label_among_the_features_is_a_suspect_and_chance_is_none() -> None:
    X, y = table()
    card = data_card(
        np.column_stack([X, 3 - 2 * y]), y, ["a", "b", "c", "d", "e", "diagnosis code"]
    )
    (suspect,) = card["suspects"]
    assert suspect["feature"] == "diagnosis code"
    assert suspect["auc"] == 1
    assert suspect["advice"] in words(card)
    # of many features, one separates three samples from three by chance
    few = np.random.default_rng(0).standard_normal((6, 2000))
    assert data_card(few, np.arange(6) % 2)["suspects"] == []


def test_many_separating_features_are_counted_and_taken_for_markers() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([rng.standard_normal((60, 5)), rng.random((60, 25)) + y[:, None]])
    card = data_card(X, y)
    assert card["separating"] == 25
    assert len(card["suspects"]) == 10
    assert "15 more" in words(card)
    assert "hardly copies of the label" in words(card)
    few = data_card(X[:, :7], y)
    assert few["separating"] == 2
    assert "known only with the class" in words(few)


@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_areas_are_those_of_scikit_learn_with_ties_and_zeros(form: Any) -> None:
    X = (
        sp.random_array((200, 12), density=0.4, rng=np.random.default_rng(1)).toarray().round(1)
        - 0.3
    )
    X[np.abs(X + 0.3) < 1e-9] = 0
    y = np.arange(200) % 3
    areas = single_feature_auc(form(X), np.eye(3)[y])
    expected = [[roc_auc_score(y == k, X[:, j]) for j in range(12)] for k in range(3)]
    np.testing.assert_allclose(areas, expected, rtol=1e-12)


def test_large_data_are_screened_on_some_of_their_rows() -> None:
    n = 50_000
    y = np.arange(n) % 2
    X = np.column_stack([y + np.random.default_rng(0).uniform(0, 0.5, n), np.sin(np.arange(n))])
    card = data_card(X, y)
    assert card["screened_rows"] == 20_000
    assert [each["feature"] for each in card["suspects"]] == ["x0"]


def test_twelve_thousand_genes_take_about_a_second() -> None:
    X = np.random.default_rng(0).standard_normal((181, 12_534))
    start = time.process_time()
    data_card(X, np.arange(181) % 2)
    assert time.process_time() - start < 3  # 0.5 seconds on one core that is free


def test_the_data_stay_as_they_are_and_sparse_ones_sparse() -> None:
    # 1e9 entries, if they were made dense
    X = sp.random_array((20_000, 50_000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    before = X.copy()
    assert data_card(X, np.arange(20_000) % 2)["density"] == pytest.approx(1e-4)
    assert (before != X).nnz == 0


def test_names_come_from_a_data_frame() -> None:
    X, y = table()
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(same=1.0)
    assert data_card(frame, y)["constant"]["features"] == ["same"]


@pytest.mark.parametrize(
    ("X", "y", "names", "message"),
    [
        (np.zeros((3, 2)), [0, 1], None, "one label for each of the 3 rows"),
        (np.zeros((2, 2)), [0, 1], ["a"], "1 feature_names were given for 2 features"),
        (np.array([["a"], ["b"]]), [0, 1], None, "X must be a table of numbers"),
        (np.zeros(2), [0, 1], None, "X must be a table of numbers"),
    ],
)
def test_data_that_make_no_card_are_refused(X: Any, y: Any, names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data_card(X, y, names)
