"""Curves are those of scikit-learn, with fewer points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import auc, average_precision_score, confusion_matrix, roc_auc_score, roc_curve

from proxmargin.studies.reports.details import MOST_POINTS, ModelPredictions, curves_of, thinned


def predictions(n: int, k: int, seed: int = 0) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=n)
    scores = np.eye(k)[true] + rng.standard_normal((n, k))
    model = {"label": scores.argmax(axis=1).tolist(), "scores": scores.tolist()}
    return {"true": true.tolist(), "rows": [*range(n)], "model": model}, true, scores


def distance(points: np.ndarray, line: np.ndarray) -> float:
    """Of the farthest point from a polyline."""
    start, end = line[:-1], line[1:]
    along = end - start
    length = np.maximum((along**2).sum(axis=1), 1e-300)
    place = ((points[:, None] - start) * along).sum(axis=2) / length
    nearest = start + np.clip(place, 0, 1)[..., None] * along
    return float(np.linalg.norm(points[:, None] - nearest, axis=2).min(axis=1).max())


def test_thinning_keeps_the_ends_and_stays_close_to_every_corner() -> None:
    x = np.linspace(0, 1, 5000)
    y = np.sqrt(x) + 0.002 * np.sin(400 * x)
    kept = thinned(x, y, 200)
    assert 190 <= kept.size <= 200
    assert kept[[0, -1]].tolist() == [0, 4999]
    line = np.column_stack([x, y])
    assert distance(line, line[kept]) < 0.003


def test_few_corners_all_stay() -> None:
    stairs = np.repeat(np.arange(5.0), 2)
    assert thinned(stairs[1:], stairs[:-1], 9).tolist() == [*range(9)]
    assert thinned(np.zeros(0), np.zeros(0), 9).tolist() == []


def test_curves_of_many_samples_keep_their_shape_and_area() -> None:
    facts, true, scores = predictions(20_000, 2)
    held_out = ModelPredictions.of(facts, "model", 2)
    assert held_out is not None
    (curve,), classes = curves_of({0: held_out}, np.bincount(true).tolist())
    assert classes == [1]
    is_class, score = true == 1, scores[:, 1]
    roc = np.array(curve["roc"])
    assert len(roc) <= MOST_POINTS
    assert auc(*roc.T) == pytest.approx(roc_auc_score(is_class, score), abs=2e-4)
    whole = np.column_stack(roc_curve(is_class, score)[:2])
    assert distance(whole[:: whole.shape[0] // 500], roc) < 2e-3
    recall, precision = np.array(curve["precision_recall"]).T
    area = np.trapezoid(precision, recall)
    assert area == pytest.approx(average_precision_score(is_class, score), abs=2e-3)
    assert curve["calibration"] is None  # these scores are no probabilities


def test_the_area_below_precision_is_the_average_precision_of_few_samples_too() -> None:
    facts, true, scores = predictions(30, 2)
    held_out = ModelPredictions.of(facts, "model", 2)
    assert held_out is not None
    (curve,), _ = curves_of({0: held_out}, np.bincount(true).tolist())
    recall, precision = np.array(curve["precision_recall"]).T
    exact = average_precision_score(true == 1, scores[:, 1])
    assert np.trapezoid(precision, recall) == pytest.approx(exact, abs=1e-5)


def test_each_class_of_several_has_curves_and_a_row_in_the_confusion() -> None:
    facts, true, scores = predictions(300, 4)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    facts["model"]["probabilities"] = shares.tolist()
    held_out = ModelPredictions.of(facts, "model", 4)
    assert held_out is not None
    curves, classes = curves_of({5: held_out}, [75] * 4)
    assert classes == [0, 1, 2, 3]
    assert [(each["m"], each["k"]) for each in curves] == [(5, k) for k in classes]
    assert all(len(each["calibration"]) > 1 for each in curves)
    expected = confusion_matrix(true, scores.argmax(axis=1))
    np.testing.assert_array_equal(held_out.confusion(4), expected)


@pytest.mark.parametrize("shape", ["column", "flat", "two columns"])
def test_scores_of_two_classes_come_in_any_form(shape: str) -> None:
    facts, true, scores = predictions(200, 2)
    margin = scores[:, 1] - scores[:, 0]
    forms = {
        "column": margin[:, None].tolist(),
        "flat": margin.tolist(),
        "two columns": np.column_stack([-margin, margin]).tolist(),
    }
    facts["model"]["scores"] = forms[shape]
    held_out = ModelPredictions.of(facts, "model", 2)
    assert held_out is not None
    (curve,), _ = curves_of({0: held_out}, [100, 100])
    assert curve["auc"] == pytest.approx(roc_auc_score(true, margin))


def test_samples_without_a_prediction_are_left_out() -> None:
    facts, _, _ = predictions(50, 3)
    facts["model"]["label"][7] = None
    facts["model"]["scores"][7] = None
    facts["model"]["scores"][8] = [None] * 3
    held_out = ModelPredictions.of(facts, "model", 3)
    assert held_out is not None
    assert held_out.true.size == 48
    assert ModelPredictions.of(facts, "another", 3) is None


@pytest.mark.slow
def test_curves_of_many_models_share_the_room() -> None:
    facts, true, _ = predictions(3000, 12)
    held_out = ModelPredictions.of(facts, "model", 12)
    assert held_out is not None
    curves, _ = curves_of(dict.fromkeys(range(20), held_out), np.bincount(true).tolist())
    points = sum(len(each[kind]) for each in curves for kind in ("roc", "precision_recall"))
    assert points <= 42_000
