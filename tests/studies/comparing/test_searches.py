"""Searches go on where the best strength is the last one, and say so where they end there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import proxmargin.studies.comparing.work as work
from proxmargin.models.fitting.registry import MODELS
from proxmargin.studies.comparing.candidates import CANDIDATES
from proxmargin.studies.comparing.metrics import metric_of
from proxmargin.studies.comparing.rows import LabelledRows
from proxmargin.studies.comparing.searches import AlphaPath, CPath, Grid, SearchPredictions
from proxmargin.studies.comparing.work import FoldTask, perform

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
DATA = LabelledRows(X, (X[:, 0] + 0.5 * RNG.standard_normal(60) > 0).astype(int))


def final(name: str, search: object):
    candidate = replace(CANDIDATES[name], search=search)
    return perform(FoldTask(candidate, None, None, seed=0), DATA, [metric_of("log_loss")])


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("L2SVC", CPath((1e-7, 1e-6))),
        ("MulticlassSVC", CPath((1e-4, 1e-3))),
        ("SVC-rbf", Grid({"C": (1e-4, 1e-3)}, 1e-4)),
        ("SparseLogisticRegression", AlphaPath(l1_ratios=(0.9,), n_alphas=3, eps=0.9)),
    ],
)
def test_a_search_goes_on_beyond_its_last_strength(name: str, search: object) -> None:
    found = final(name, search)
    strengths = found.curve["strengths"]
    assert len(strengths) > 3
    alpha = found.curve["parameter"] == "alpha"
    assert strengths == sorted(strengths, reverse=alpha)
    before, last = (
        (min(strengths), max(strengths)) if not alpha else (max(strengths), min(strengths))
    )
    assert last / before >= 50 if not alpha else before / last >= 50
    assert found.curve["chosen"] == found.settings[found.curve["parameter"]]


def test_one_that_ends_at_its_last_strength_says_so(monkeypatch) -> None:
    monkeypatch.setattr(work, "MOST_FURTHER", 0)
    path = AlphaPath(l1_ratios=(0.9,), n_alphas=3, eps=0.9)
    found = final("SparseLogisticRegression", path)
    assert any("is the last that was tried" in text for text in found.messages)
    monkeypatch.setattr(work, "MOST_FURTHER", 2)
    inside = final("SparseLogisticRegression", replace(path, eps=1e-3, n_alphas=20))
    assert not any("is the last" in text for text in inside.messages)


def test_the_strongest_penalty_within_a_standard_error_is_offered() -> None:
    curve = final("SparseLogisticRegression", AlphaPath(l1_ratios=(0.9,), n_alphas=20)).curve
    place, chosen = curve["one_standard_error"], curve["strengths"].index(curve["chosen"])
    assert place <= chosen
    assert curve["mean"][place] <= curve["mean"][chosen] + curve["se"][chosen]  # log-loss
    assert curve["n_features"][place] <= curve["n_features"][chosen]


def test_all_models_have_a_path_or_several_values() -> None:
    for name, model in MODELS.items():
        values = [len(each) for each in model.grid.values()]
        assert not model.compared or model.has_path or name == "DWD" or min(values) >= 5


def test_only_the_end_of_a_numeric_strength_has_a_beyond() -> None:
    tried = SearchPredictions([{"C": 0.1}, {"C": 1.0}, {"C": 10.0}], "C")
    assert tried.further(1) == ()
    assert tried.further(2) == pytest.approx((100.0, 1000.0))
    assert tried.further(0) == pytest.approx((0.001, 0.01))
    shares = SearchPredictions([{"nu": "0.2max"}, {"nu": "0.8max"}], "nu")
    assert shares.further(0) == shares.further(1) == ()


@pytest.mark.parametrize(("signal", "is_found"), [(0.7, True), (0.0, False)])
def test_where_labels_tell_no_settings_apart_their_probabilities_do(signal, is_found) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, 10))
    strengths = signal * x[:, 0] + rng.standard_normal(300)
    y = (strengths > np.quantile(strengths, 0.96)).astype(int)
    candidate = CANDIDATES["HuberizedSVC"].hurried()
    task = FoldTask(candidate, None, None, seed=0)
    found = perform(task, LabelledRows(x, y), [metric_of("balanced_accuracy")])
    assert max(found.curve["mean"]) == 0.5  # some settings name the large class alone
    assert (found.features_used > 0) == is_found
    if is_found:
        scores = found.estimator.decision_function(x)
        assert np.mean(scores[y == 1][:, None] > scores[y == 0]) > 0.8
