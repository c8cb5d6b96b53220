"""Maps of scores against scikit-learn's own, and against what they minimise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from proxmargin.models.selection.calibrators import CALIBRATORS, fit_calibrator

RNG = np.random.default_rng(0)
SCORES = 40.0 * RNG.standard_normal(300)
CODES = (RNG.random(300) < expit(SCORES / 20.0 + 0.5)).astype(int)
WEIGHTS = RNG.uniform(0.5, 2.0, 300)
MANY = 3.0 * RNG.standard_normal((300, 3))
MANY_CODES = np.array([RNG.choice(3, p=np.exp(z) / np.exp(z).sum()) for z in MANY / 2.0])


def test_the_sigmoid_minimises_platts_loss() -> None:
    up, down = WEIGHTS[CODES == 1].sum(), WEIGHTS[CODES == 0].sum()
    target = np.where(CODES == 1, (up + 1) / (up + 2), 1 / (down + 2))

    def loss(parameters):
        z = parameters[0] * SCORES / 40.0 + parameters[1]
        return -(WEIGHTS * (target * log_expit(z) + (1 - target) * log_expit(-z))).sum()

    best = minimize(loss, [1.0, 0.0], tol=1e-12).x
    found = fit_calibrator("sigmoid", SCORES, CODES, WEIGHTS).probabilities(SCORES)
    expected = expit(best[0] * SCORES / 40.0 + best[1])
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-4)


def test_a_temperature_minimises_the_log_loss_of_smoothed_targets() -> None:
    sizes = np.bincount(MANY_CODES)[MANY_CODES]
    own = np.eye(3)[MANY_CODES]
    targets = (1.0 + own * sizes[:, None]) / (sizes[:, None] + 3.0)

    def loss(factor):
        return -np.average((targets * log_softmax(factor * MANY, axis=1)).sum(axis=1))

    best = minimize(lambda x: loss(x[0]), [1.0], tol=1e-12).x[0]
    calibrator = fit_calibrator("temperature", MANY, MANY_CODES, np.ones(300))
    np.testing.assert_allclose(
        np.log(calibrator.probabilities(MANY)), log_softmax(best * MANY, axis=1), atol=1e-3
    )


def test_isotonic_steps_are_those_of_scikit_learn_within_platts_targets() -> None:
    found = fit_calibrator("isotonic", SCORES, CODES, WEIGHTS).probabilities(SCORES)[:, 1]
    up, down = WEIGHTS[CODES == 1].sum(), WEIGHTS[CODES == 0].sum()
    steps = IsotonicRegression().fit_transform(SCORES, CODES, sample_weight=WEIGHTS)
    np.testing.assert_allclose(found, np.clip(steps, 1 / (down + 2), (up + 1) / (up + 2)))


def test_beta_is_no_worse_than_the_sigmoid_it_contains() -> None:
    skewed = np.exp(SCORES / 20.0)
    losses = {}
    for method in ("sigmoid", "beta"):
        found = fit_calibrator(method, skewed, CODES, WEIGHTS).probabilities(skewed)
        losses[method] = log_loss(CODES, found, sample_weight=WEIGHTS)
    assert losses["beta"] < losses["sigmoid"]


@pytest.mark.parametrize("method", ["isotonic", "beta"])
def test_maps_of_each_class_know_the_scores_of_the_others(method) -> None:
    """A common shift of the scores of a sample tells nothing of its class."""
    generator = np.random.default_rng(1)
    scores = generator.standard_normal((1500, 3))
    truth = np.exp(log_softmax(2.0 * scores, axis=1))
    codes = np.array([generator.choice(3, p=p) for p in truth])
    shifted = scores + 3.0 * generator.standard_normal((1500, 1))
    found = fit_calibrator(method, shifted, codes, np.ones(1500)).probabilities(shifted)
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.05


def test_several_classes_are_mapped_by_multinomial_regression() -> None:
    found = fit_calibrator("sigmoid", MANY, MANY_CODES, np.ones(300)).probabilities(MANY)
    expected = LogisticRegression(C=1e6).fit(MANY, MANY_CODES).predict_proba(MANY)
    np.testing.assert_allclose(found, expected, atol=0.04)  # its ridge, and smoothed targets


@pytest.mark.parametrize("method", CALIBRATORS)
@pytest.mark.parametrize("many", [False, True])
def test_probabilities_sum_to_one_and_do_not_depend_on_units(method, many) -> None:
    scores, codes = (MANY, MANY_CODES) if many else (SCORES, CODES)
    found = fit_calibrator(method, scores, codes, WEIGHTS).probabilities(scores)
    assert found.shape == (300, 3 if many else 2)
    assert ((found > 0) & (found < 1)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    other = fit_calibrator(method, 1e6 * scores, codes, WEIGHTS).probabilities(1e6 * scores)
    np.testing.assert_allclose(other, found, atol=1e-6)
    fewer = fit_calibrator(method, scores[:-1], codes[:-1], WEIGHTS[:-1])
    weightless = np.append(WEIGHTS[:-1], 0.0)
    if method != "isotonic":  # whose steps a weightless sample may move between others
        same = fit_calibrator(method, scores, codes, weightless).probabilities(scores)
        np.testing.assert_allclose(same, fewer.probabilities(scores), atol=2e-3)


@pytest.mark.parametrize("method", CALIBRATORS)
def test_scores_that_separate_the_classes_or_say_nothing_have_probabilities(method) -> None:
    codes = np.repeat([0, 1], 20)
    for scores in (np.where(codes == 1, 5.0, -5.0), np.zeros(40), -np.where(codes == 1, 1.0, -1.0)):
        found = fit_calibrator(method, scores, codes, np.ones(40)).probabilities(scores)
        assert ((found >= 0) & (found <= 1)).all()
        assert np.isfinite(np.log(found[np.arange(40), codes])).all()


@pytest.mark.parametrize("method", CALIBRATORS)
@pytest.mark.parametrize("many", [False, True])
def test_separated_classes_of_few_samples_are_not_certain(method, many) -> None:
    count = 3 if many else 2
    codes = np.repeat(np.arange(count), 10)
    scores = np.eye(3)[codes] if many else np.where(codes == 1, 1.0, -1.0)
    found = fit_calibrator(method, scores, codes, np.ones(codes.size)).probabilities(scores)
    assert found[np.arange(codes.size), codes].max() < 0.99


@pytest.mark.parametrize("method", CALIBRATORS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_probabilities_of_extreme_scores_sum_to_one(method, classes, size) -> None:
    scores = size * (SCORES if classes == 2 else MANY) / 100.0
    codes = CODES if classes == 2 else MANY_CODES
    calibrator = fit_calibrator(method, scores, codes, WEIGHTS)
    seen = calibrator.probabilities(scores)
    unit = fit_calibrator(method, scores / size, codes, WEIGHTS).probabilities(scores / size)
    np.testing.assert_allclose(seen, unit, atol=1e-6)
    largest = np.finfo(np.float64).max
    ends = np.array([largest, -largest, 1e300, -1e300, 0.0])
    far = (
        ends if classes == 2 else np.array([ends[:3], ends[2:], -np.abs(ends[:3]), ends[[3, 3, 3]]])
    )
    found = calibrator.probabilities(far)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    if classes == 2:
        assert found[0, 1] > 0.5 > found[1, 1]
    else:
        assert found.argmax(axis=1)[:2].tolist() == [0, 0]


@pytest.mark.parametrize("method", CALIBRATORS)
def test_a_map_survives_a_pickle(method) -> None:
    calibrator = fit_calibrator(method, SCORES, CODES, WEIGHTS)
    again = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(again.probabilities(SCORES), calibrator.probabilities(SCORES))


def test_scores_far_from_zero_are_mapped_as_those_near_it() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    codes = (scores + rng.normal(size=200) > 0).astype(np.intp)
    near, far = (
        fit_calibrator("sigmoid", each, codes, np.ones(200)).probabilities(each)
        for each in (scores, scores + 1e7)
    )
    np.testing.assert_allclose(far, near, atol=1e-4)
