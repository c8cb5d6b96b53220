"""Smooth losses of all classes in kernels: against the losses, and against differences."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.class_forms import best_shift, curvatures, evaluated
from proxmargin.functions.losses.classes.comparison import SmoothComparison
from proxmargin.losses import Multinomial, PairwiseSquaredHinge

CLASSES = 4
SAMPLES = 30
LOSSES = {
    "softmax": lambda *of: Multinomial(*of),
    "softmax with a margin": lambda *of: Multinomial(*of, margin=1.0),
    "pairwise squares": lambda *of: PairwiseSquaredHinge(*of),
}
every_loss = pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES.keys())


@njit()
def evaluate(form, scores, codes, shares, rates, dual):
    return evaluated(form, scores, codes, shares, rates, dual)


@njit()
def curvature(form, rates, dual, codes, shares, k, other, out):
    curvatures(form, rates, dual, codes, shares, k, other, out)


def drawn(make, rng) -> tuple[SmoothComparison, np.ndarray]:
    """A loss with a sample of weight zero, and scores, (n_samples, n_classes)."""
    weights = rng.integers(0, 4, SAMPLES).astype(float)
    weights[:2] = 0.0, 1.0
    codes = np.arange(SAMPLES) % CLASSES
    loss = make(codes, weights / weights.sum(), CLASSES, weights.sum())
    return loss, 2.0 * rng.standard_normal((SAMPLES, CLASSES))


def told(loss: SmoothComparison, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, rates and gradient, class by class."""
    rows = np.ascontiguousarray(scores.T)
    rates, dual = np.empty(rows.shape), np.empty(rows.shape)
    value = evaluate(loss.form, rows, loss.codes, loss.shares, rates, dual)
    return value, rates, dual


@every_loss
def test_value_and_gradient_are_those_of_the_loss(make, rng) -> None:
    loss, scores = drawn(make, rng)
    for size in (1.0, 30.0, 1e4):
        value, _, dual = told(loss, size * scores)
        expected, gradient = loss.value_and_gradient(size * scores)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(dual.T, gradient, rtol=1e-12, atol=1e-16)


@every_loss
def test_curvatures_are_differences_of_the_gradient(make, rng) -> None:
    loss, scores = drawn(make, rng)
    _, rates, dual = told(loss, scores)
    h, out = 1e-6, np.empty(SAMPLES)
    for other in range(CLASSES):
        moved = h * (np.arange(CLASSES) == other)
        ahead, behind = (told(loss, scores + sign * moved)[2] for sign in (1.0, -1.0))
        for k in range(CLASSES):
            curvature(loss.form, rates, dual, loss.codes, loss.shares, k, other, out)
            np.testing.assert_allclose(out, (ahead[k] - behind[k]) / (2.0 * h), atol=1e-9)


@every_loss
@pytest.mark.parametrize("size", [1.0, 20.0, 1e3])
def test_the_best_shift_leaves_no_slope(make, size: float, rng) -> None:
    loss, scores = drawn(make, rng)
    rows, shift = np.ascontiguousarray(size * scores.T), np.zeros(CLASSES)
    rates, dual = np.empty(rows.shape), np.empty(rows.shape)
    value, slope = best_shift(loss.form, rows, loss.codes, loss.shares, shift, rates, dual)
    np.testing.assert_allclose(rows.T, size * scores + shift, rtol=1e-12)
    assert value == pytest.approx(loss.value(size * scores + shift), rel=1e-12)
    _, gradient = loss.value_and_gradient(size * scores + shift)
    assert slope <= 1e-12 * max(1.0, np.abs(gradient).max())
    assert np.abs(gradient.sum(axis=0)).max() <= slope + 1e-12 * max(1.0, np.abs(gradient).max())


def test_a_class_without_weight_gets_no_share(rng) -> None:
    codes, shares = np.arange(20) % 3, np.where(np.arange(20) % 3 == 2, 0.0, 1.0)
    loss = Multinomial(codes, shares / shares.sum(), 3, shares.sum())
    rows, shift = rng.standard_normal((3, 20)), np.zeros(3)
    rates, dual = np.empty(rows.shape), np.empty(rows.shape)
    _, slope = best_shift(loss.form, rows, loss.codes, loss.shares, shift, rates, dual)
    assert slope <= 1e-12
    assert np.all(np.isfinite(shift))
