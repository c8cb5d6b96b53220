"""Clinical numbers of a comparison: of whom they speak, and which rows they count."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import ShuffleSplit

from proxmargin import Comparison, compare
from proxmargin.studies.stats.clinical import wilson

X, Y = load_iris(return_X_y=True, as_frame=True)
TWO = Y.to_numpy() > 0
X_TWO = X[TWO].set_axis([f"P{k}" for k in range(100)], axis=0)
Y_TWO = np.array(["well", "sick"])[Y[TWO] - 1]
SHORT = {"models": ["L2SVC"], "cv": 3, "progress": False}


def test_the_positive_class_is_the_one_named_and_kept_with_the_run(tmp_path) -> None:
    before = compare(X_TWO, Y_TWO, **SHORT, run_dir=tmp_path)
    default, chances = before.clinical(), before.predictions
    assert default.positive == "well"
    named = compare(X_TWO, Y_TWO, **SHORT, run_dir=tmp_path, positive="sick")
    found = named.clinical()
    of_positive = named.predictions["L2SVC: probability of sick"]
    assert chances["L2SVC: probability of well"].to_numpy() == pytest.approx(
        1 - of_positive.to_numpy()
    )
    assert (found.positive, found.n, found.events) == ("sick", 100, 50)
    assert found.predicted.fn == default.predicted.fp
    assert found.auc.value == pytest.approx(default.auc.value)
    again = Comparison.from_run(tmp_path).clinical()
    assert again.misclassified == default.misclassified


def test_mistakes_have_the_names_of_the_rows() -> None:
    found = compare(X_TWO, Y_TWO, **SHORT)
    facts = found.to_dict()
    wrong = {each["id"]: each["true"] for each in found.clinical().misclassified}
    assert wrong
    assert all(Y_TWO[int(name[1:])] == true for name, true in wrong.items())
    assert facts["clinical"]["positive"] == "well"
    columns = facts["clinical"]["models"]["L2SVC"]["thresholds"]
    assert len(columns["sensitivity"]) == len(columns["net_benefit"]) == 99
    assert sorted(facts["predictions"]["ids"]) == sorted(X_TWO.index)
    given = compare(X_TWO.to_numpy(), Y_TWO, **SHORT, ids=range(500, 600))
    assert {each["id"] - 500 for each in given.clinical().misclassified} == {
        int(name[1:]) for name in wrong
    }


def test_of_three_classes_one_is_named() -> None:
    assert compare(X, Y, **SHORT).to_dict()["clinical"] is None
    found = compare(X, Y, **SHORT, positive=2).clinical()
    assert (found.positive, found.events, found.n) == ("2", 50, 150)
    with pytest.raises(ValueError, match="positive=3 is no class"):
        compare(X, Y, **SHORT, positive=3)


def test_rows_that_are_held_out_twice_count_once() -> None:
    splits = ShuffleSplit(4, test_size=0.4, random_state=0)
    found = compare(X_TWO, Y_TWO, **{**SHORT, "cv": splits}).clinical()
    assert found.n < 100


def test_intervals_of_grouped_rows_are_wider() -> None:
    groups = np.arange(100) // 5
    found = compare(X_TWO, Y_TWO, **SHORT, groups=groups).clinical()
    assert "one group" in found.method
    twice = compare(
        np.repeat(X_TWO.to_numpy(), 2, axis=0),
        np.repeat(Y_TWO, 2),
        **SHORT,
        groups=np.repeat(np.arange(100), 2),
    ).clinical()
    rate = twice.predicted.sensitivity
    alike = wilson(rate.value, 50 / (1 + 3 / 2))  # as of 50 rows, not of 100, in three folds
    assert rate.high - rate.low == pytest.approx(alike.high - alike.low, rel=0.15)
