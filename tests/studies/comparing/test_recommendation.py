"""The recommended model: features saved against score lost, and what decides among equals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from proxmargin import Comparison, compare
from proxmargin.studies.comparing.agreement import exact_mcnemar, missed_difference
from proxmargin.studies.comparing.evidence import (
    ONE_HALVING,
    TIE,
    TYPICAL,
    Evidence,
    Traits,
    price_of_halving,
)
from proxmargin.studies.comparing.metrics import basis_of
from proxmargin.studies.comparing.run import repeats_of
from proxmargin.studies.reports.standings import main_of
from proxmargin.studies.reports.text import answer_of, power

NAMES = ("a", "b", "c")


def scores(*means: float, splits: int = 25, noise: float = 1e-4, seed: int = 0) -> Any:
    """Scores of models with these means, exactly, over some splits."""
    drawn = np.random.default_rng(seed).normal(0.0, noise, (splits, len(means)))
    return np.array(means) + drawn - drawn.mean(axis=0)


def recommended(
    values: Any, unit: float = 1.0, better: bool = True, majority: float = np.nan, **traits: Any
) -> str | None:
    """Traits: a list with an entry a model each."""
    given = [Traits(**{n: each[k] for n, each in traits.items()}) for k in range(values.shape[1])]
    options = {"test_ratio": 0.25, "larger_is_better": better, "unit": unit, "majority": majority}
    return Evidence.of(values, NAMES[: values.shape[1]], traits=given, **options).recommended


def test_halving_the_features_may_cost_half_a_hundredth() -> None:
    for loss, chosen in ((0.004, "b"), (0.007, "a")):
        assert recommended(scores(0.9, 0.9 - loss), features=[40.0, 20.0]) == chosen
    # a quarter may cost twice as much, and no less than half the features are worth nothing
    assert recommended(scores(0.9, 0.891), features=[40.0, 10.0]) == "b"
    assert recommended(scores(0.9, 0.898), features=[40.0, 30.0]) == "a"


def test_fewer_features_do_not_speak_for_a_model_that_has_learned_nothing() -> None:
    values = scores(0.52, 0.51, splits=5, noise=0.05)
    assert recommended(values, features=[40.0, 1.0]) == "b"
    assert recommended(values, majority=0.515, features=[40.0, 1.0]) == "a"
    loss = -values
    assert recommended(loss, better=False, majority=-0.515, features=[40.0, 1.0]) == "a"


def test_noisy_folds_raise_the_price() -> None:
    values = scores(0.9, 0.88, splits=5, noise=0.2, seed=3)
    centred = values - values.mean(axis=1, keepdims=True)
    v = centred.var(axis=0, ddof=1).mean() * (1 / 5 + 0.25)
    price = price_of_halving(values, 0.25, 1.0)
    assert price == pytest.approx(ONE_HALVING * (1 + v / TYPICAL**2))
    assert price > 0.01
    assert recommended(values, features=[40.0, 10.0]) == "b"


def test_a_loss_has_a_scale_of_its_own() -> None:
    # always naming the larger of two even classes has log-loss log 2
    unit = basis_of("log_loss", [20, 20]).unit(np.log(2))
    assert unit == pytest.approx(2 * np.log(2))
    for excess, chosen in ((0.004 * unit, "b"), (0.007 * unit, "a")):
        values = scores(0.3, 0.3 + excess)
        assert recommended(values, unit, better=False, features=[40.0, 20.0]) == chosen
    assert basis_of("matthews_corrcoef", [20, 20]).unit(0.0) == 2.0
    unknown = basis_of("revenue", [20, 20]).unit(0.0)
    assert np.isnan(unknown)
    assert recommended(scores(0.3, 0.29), unknown, features=[40.0, 1.0]) == "a"


def test_among_equals_stability_then_probabilities_then_no_kernel() -> None:
    even = scores(0.9, 0.9, 0.9)
    some = {"features": [20.0] * 3, "stability": [0.5, 0.7, 0.6]}
    assert recommended(even, **some) == "b"
    some["stability"] = [0.5] * 3
    assert recommended(even, **some, has_probabilities=[False, False, True]) == "c"
    assert recommended(even, **some, is_kernel=[True, False, False]) == "b"


def test_two_classes_never_end_with_a_machine_for_several_where_a_binary_model_is_its_equal() -> (
    None
):
    machine = {"is_multiclass": [True, False]}
    close = scores(0.9, 0.88, splits=5, noise=0.05)
    assert recommended(close, **machine) == "b"
    assert recommended(scores(0.9, 0.8), **machine) == "a"  # distinguishably better
    assert recommended(scores(0.9, splits=5), is_multiclass=[True]) == "a"


def test_dense_models_stay_with_the_best() -> None:
    """One feature less is worth nothing, whatever the folds can distinguish."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = rng.normal([0.85, 0.80, 0.78], 0.06, (5, 3))
        chosen = recommended(values, features=[40.0, 39.0, 38.0])
        assert chosen is not None
        means = values.mean(axis=0)
        assert means[NAMES.index(chosen)] >= means.max() - TIE


def test_paired_counts_have_the_exact_p_value() -> None:
    first, second = np.array([13, 9, 4, 0, 5]), np.array([0, 4, 9, 0, 5])
    found = exact_mcnemar(first, second)
    for p, b, c in zip(found, first, second, strict=True):
        expected = binomtest(int(b), int(b + c), 0.5).pvalue if b + c else 1.0
        assert p == pytest.approx(expected)


def test_the_difference_that_is_missed_is_found_in_four_of_five_data_sets() -> None:
    """Of normal differences with a known spread, as the corrected test has them."""
    from scipy.stats import nct, t

    reach = t.isf(0.025, 24) * np.array([0.03])
    found = missed_difference(reach, 25, np.array([np.nan]), np.nan, 5)
    power = nct.sf(t.isf(0.025, 24), 24, found / 0.03)
    assert power == pytest.approx(0.8, abs=0.01)
    assert missed_difference(reach, 25, np.array([0.4]), 100.0, 5) == pytest.approx(
        3 * np.sqrt(0.004)
    )
    assert missed_difference(reach, 25, np.array([0.4]), 100.0, 5, pairs=78) > 0.2


def test_few_samples_are_split_several_times() -> None:
    assert [repeats_of(n) for n in (60, 199, 200, 499, 569)] == [5, 5, 3, 3, 1]


@pytest.fixture(scope="module")
def small() -> Comparison:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, "yes", "no")
    return compare(X, y, models=["L2SVC", "SquaredHingeSVC", "MulticlassSVC"], progress=False)


@pytest.mark.slow
def test_three_choices_are_shown_with_what_each_costs(small: Comparison) -> None:
    found = {row["role"]: row for row in small.choices()}
    # the selections agree poorly: none is called the most stable
    assert small.table.stability.max() < 0.4
    assert set(found) == {"recommended", "most accurate", "simplest"}
    means = {row["model"]: row["mean"] for row in found.values()}
    best = means[small.best_name_]
    for row in found.values():
        assert row["cost"] == pytest.approx(best - row["mean"])
    assert found["recommended"]["model"] != "MulticlassSVC"
    assert small.setup.protocol.repeats == 5


def test_the_simplest_uses_the_fewest_features_as_they_are_shown(small: Comparison) -> None:
    found = {row["role"]: row for row in small.choices()}
    final = {each["name"]: each["final"]["n_features"] for each in small.facts["models"]}
    assert found["simplest"]["n_features"] == min(final[name] for name in small.equivalent_)
    assert all(row["n_features"] == final[row["model"]] for row in found.values())


def chosen(recommended: str, **models: tuple[float, float]) -> str:
    """The sentence on a choice among models of two classes, (mean score, features); the first has
    the best mean."""
    best, _ = next(iter(models.values()))
    rows = [
        {
            "name": name,
            "n_features": features,
            "metrics": {"accuracy": {"mean": mean, "difference": mean - best}},
        }
        for name, (mean, features) in models.items()
    ]
    protocol = {"metrics": [{"name": "accuracy", "label": "accuracy", "larger_is_better": True}]}
    facts: dict[str, Any] = {
        "models": rows,
        "best": rows[0]["name"],
        "recommended": recommended,
        "protocol": {"scoring": "accuracy", **protocol},
        "price_of_half_the_features": 0.006,
        "unit": 1.0,
        "majority": {"accuracy": 0.5},
        "data": {"n_features": 9, "classes": []},
    }
    return answer_of(facts, main_of(facts)).choice


def test_fewer_features_are_the_reason_only_where_they_are_fewer() -> None:
    assert "fewer features are worth it" in chosen("b", a=(0.9, 8), b=(0.89, 2))
    same = chosen("b", a=(0.9, 1), b=(0.9, 1))
    assert "fewer features" not in same
    assert "probabilities of its own" in same
    assert "several classes" in chosen("b", MulticlassSVC=(0.93, 8), b=(0.9, 8))
    assert "no model with half" in chosen("a", a=(0.9, 8), b=(0.89, 2))


def test_what_would_be_missed_and_who_disagrees_is_told(small: Comparison) -> None:
    missed = small.missed
    assert missed["rows"] == 60
    assert 0.0 < missed["difference"] < missed["difference_of_all"]
    (first, _) = small.agreement.against(small.best_name_)
    held = small.to_dict()["predictions"]
    true, ours, theirs = (
        np.array(each)
        for each in (held["true"], held[first["best"]]["label"], held[first["model"]]["label"])
    )
    assert first["best_alone"] == int(np.sum((ours == true) & (theirs != true)))
    assert first["model_alone"] == int(np.sum((ours != true) & (theirs == true)))
    text = str(small)
    assert "Not distinguishable is therefore not equal." in " ".join(text.split())


def test_data_that_tell_nothing_apart_say_so(small: Comparison) -> None:
    facts = small.to_dict()
    assert facts["missed"]["largest"] == 1.0

    def told(once: float, several: float, largest: float | None = 1.0) -> str:
        known = {"difference": once, "difference_of_all": several, "largest": largest}
        return power({"missed": {**facts["missed"], **known}})

    assert "(0.4 for any pair of these 3)" in told(0.2, 0.4)
    assert "cannot" not in told(0.2, 0.4)
    assert "below about 0.5 more often" in told(0.5, 1.0)
    assert "cannot tell any two of the 3 models apart" in told(0.5, 1.0)
    assert "would mostly miss every difference. These data cannot" in told(1.3, 2.0)
    assert "(2 for any pair of these 3)" in told(1.3, 2.0, None)


def test_missing_labels_are_told_as_labels() -> None:
    X, y = np.ones((6, 2)), np.array([0.0, 1, 0, 1, np.nan, 1])
    with pytest.raises(ValueError, match="no label in row 4") as error:
        compare(X, y)
    assert "Imputer" not in str(error.value)


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((90, 4)), np.where(np.arange(90) < 7, "sick", "well")
    return compare(x, y, models=["HuberizedSVC", "DWD"], cv=2, progress=False, quick=True)


def test_a_model_that_says_the_same_of_all_is_told_with_a_score_that_asks_more(rare) -> None:
    found = answer_of(rare.to_dict(), main_of(rare.to_dict()))
    assert "gives every sample the same answer" in found.caution
    assert "Class sick is rare (7 of 90)" in found.caution
    assert "--scoring roc_auc" in found.caution
    assert "half of its features" not in found.choice


def test_models_that_never_disagree_tell_of_no_difference_that_would_be_found() -> None:
    missed = {"rows": 300, "repeats": 2, "disagreement": 0.0, "difference": 0.06, "models": 3}
    missed |= {"difference_of_all": 0.08, "largest": 1.0}
    told = power({"missed": missed})
    assert "all 300 rows the same labels" in told
    assert "0.06" not in told
