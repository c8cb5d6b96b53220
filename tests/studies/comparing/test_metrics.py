"""Metrics are those of scikit-learn, and scorers see predictions as if they were a model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import metrics as theirs

from proxmargin.studies.comparing.metrics import (
    DEFAULT_METRICS,
    HeldOutPredictions,
    independent_samples,
    metric_of,
    metrics_of,
)


def held_out(n_classes: int, weighted: bool, seed: int = 0) -> HeldOutPredictions:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, 90)
    scores = rng.normal(size=(90, n_classes)) + 2 * np.eye(n_classes)[codes]
    probabilities = softmax(scores, axis=1)
    weights = rng.uniform(0.2, 3.0, 90) if weighted else None
    own = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores
    names = np.array(["a", "b", "c", "d"])[:n_classes]
    return HeldOutPredictions(
        codes, probabilities.argmax(axis=1), names, own, probabilities, weights
    )


def by_scikit_learn(name: str, held: HeldOutPredictions) -> float:
    y, said, shares = held.codes, held.labels, held.probabilities
    weights = {"sample_weight": held.weights}
    assert shares is not None
    two = held.classes.size == 2
    return {
        "balanced_accuracy": lambda: theirs.balanced_accuracy_score(y, said, **weights),
        "accuracy": lambda: theirs.accuracy_score(y, said, **weights),
        "roc_auc": lambda: theirs.roc_auc_score(
            y, held.scores if two else shares, multi_class="ovr", **weights
        ),
        "matthews_corrcoef": lambda: theirs.matthews_corrcoef(y, said, **weights),
        "log_loss": lambda: theirs.log_loss(y, shares, **weights),
        "brier": lambda: (
            theirs.brier_score_loss(y, shares[:, 1], **weights)
            if two
            else np.average(
                ((shares - np.eye(held.classes.size)[y]) ** 2).sum(1), weights=held.weights
            )
        ),
    }[name]()


@pytest.mark.parametrize("name", DEFAULT_METRICS)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_those_of_scikit_learn(name, n_classes, weighted):
    held = held_out(n_classes, weighted)
    assert metric_of(name)(held) == pytest.approx(by_scikit_learn(name, held), rel=1e-12)


@pytest.mark.parametrize("name", ["f1_macro", "neg_log_loss", "roc_auc_ovo", "average_precision"])
def test_scorers_of_scikit_learn_judge_predictions(name):
    held = held_out(2, weighted=True)
    expected = {
        "f1_macro": theirs.f1_score(
            held.codes, held.labels, average="macro", sample_weight=held.weights
        ),
        "neg_log_loss": -by_scikit_learn("log_loss", held),
        "roc_auc_ovo": by_scikit_learn("roc_auc", held),
        "average_precision": theirs.average_precision_score(
            held.codes, held.scores, sample_weight=held.weights, pos_label=1
        ),
    }[name]
    if name == "average_precision":
        held = HeldOutPredictions(
            held.codes, held.labels, np.arange(2), held.scores, None, held.weights
        )
    assert metric_of(name)(held) == pytest.approx(expected, rel=1e-12)


def test_a_callable_is_given_the_predictions_and_the_rows():
    held = held_out(3, weighted=False)
    rows = HeldOutPredictions(held.codes, held.labels, held.classes, X=np.ones((90, 5)))
    seen = {}

    def share(model, X, y):
        seen.update(X=X, y=y)
        return float(np.mean(model.predict(X) == y))

    metric = metric_of(share)
    assert (metric.name, metric.needs_rows) == ("share", True)
    assert metric(rows) == pytest.approx(np.mean(held.codes == held.labels))
    assert seen["X"].shape == (90, 5)
    assert set(seen["y"]) == {"a", "b", "c"}


def test_what_predictions_do_not_tell_is_an_error_that_says_so():
    def features(model, X, y):
        return model.coef_.sum()

    with pytest.raises(ValueError, match="scoring='features' cannot be computed from predictions"):
        metric_of(features)(held_out(2, weighted=False))


def test_a_missing_class_has_no_area_under_a_curve():
    held = held_out(3, weighted=False)
    one = held.rows(np.flatnonzero(held.codes == 0))
    assert np.isnan(metric_of("roc_auc")(one))
    assert metric_of("balanced_accuracy")(one) == pytest.approx(np.mean(one.labels == 0))


def test_the_scoring_comes_first_and_nothing_twice():
    names = [
        each.name for each in metrics_of("accuracy", ["balanced_accuracy", "accuracy", "brier"])
    ]
    assert names == ["accuracy", "balanced_accuracy", "brier"]
    assert not metric_of("log_loss").larger_is_better
    assert metric_of("neg_log_loss").larger_is_better


def test_samples_count_as_often_as_they_are_independent() -> None:
    codes = np.array([0, 0, 0, 1, 1, 1])
    assert independent_samples(codes, None, None).tolist() == [3, 3]
    assert independent_samples(codes, None, np.array(["a", "a", "b", "c", "c", "c"])).tolist() == [
        2,
        1,
    ]
    # as many equal weights have a mean of the same variance
    weighted = independent_samples(codes, np.array([1.0, 1, 1, 10, 1e-9, 1e-9]), None)
    np.testing.assert_allclose(weighted, [3, 1])


def test_decision_values_that_are_no_numbers_have_no_curve() -> None:
    codes, scores = np.array([0, 1, 0, 1]), np.array([0.1, np.nan, 0.2, 0.3])
    held = HeldOutPredictions(codes, codes, np.array(["a", "b"]), scores)
    with pytest.raises(ValueError, match="roc_auc: decision values must be finite"):
        metric_of("roc_auc")(held)
