"""Passes that paths call by address, against the same formulas over arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from proxmargin.compiled import build
from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import loss_passes
from proxmargin.compiled.paths.state import POINT, PathPoint, record
from proxmargin.losses import HuberizedHinge, Logistic, SquaredHinge

LOSSES = [Logistic(), SquaredHinge(), HuberizedHinge(0.5)]


class Data(NamedTuple):
    """What the passes read of `proxmargin.compiled.paths.state.Data`."""

    loss: Any
    signs: Any
    weights: Any


@njit()
def all_passes(data, point, result):
    sums = loss_passes.at_scores(data, point, 0.3)
    dual_point = point.dual.copy()
    best = loss_passes.best_intercept(data, point, 0.3)
    point.dual[:] = dual_point
    bounds = loss_passes.bounds(data, point)
    shares = loss_passes.gap_of_shares(data, point, 0.9, 0.8)
    dual = loss_passes.gap_of_dual(data, point, 0.9)
    loss_passes.majorised(data, point, 0.5, result)
    along = loss_passes.descent_along(data, point, 0.1)
    return sums, best, bounds, shares, dual, along


@pytest.mark.parametrize("phi", LOSSES, ids=lambda phi: type(phi).__name__)
def test_passes_are_those_of_the_loss(phi):
    rng = np.random.default_rng(0)
    scores, signs = rng.normal(size=40), np.repeat([1.0, -1.0], 20)
    weights = rng.uniform(size=40) / 20
    weights[3] = 0.0
    theta, curvature, result = np.zeros(40), np.zeros(40), np.zeros(40)
    loss, kept = loss_passes.loss_of(phi.scalars)
    point = PathPoint(scores, theta, curvature, scores, record(POINT))
    point.scalars["intercept"] = 0.3
    sums, best, bounds, shares, dual, along = all_passes(Data(loss, signs, weights), point, result)
    s = phi.scalars
    t = signs * (scores + 0.3)
    forces = np.array([s.descent(each) for each in t])
    curved = np.array([s.curvature(each) for each in t])
    assert kept.size == len(s)
    np.testing.assert_allclose(theta, signs * weights * forces, rtol=1e-12)
    np.testing.assert_allclose(curvature, weights * curved, rtol=1e-12)
    value = weights @ [s.value(each) for each in t]
    up = theta[:20].sum()
    np.testing.assert_allclose(sums, [theta.sum(), up, curvature.sum(), value], rtol=1e-10)
    slope = signs * weights @ [s.descent(each) for each in signs * (scores + best)]
    assert abs(slope) <= 1e-12
    each = np.array([s.shrunk_bound(abs(a), c) for a, c in zip(theta, curvature, strict=True)])
    np.testing.assert_allclose(bounds, [each[:20].sum(), each[20:].sum()])
    share = np.where(signs > 0, 0.9, 0.8)
    terms = [s.fenchel_young(a, b) for a, b in zip(t, share * forces, strict=True)]
    assert shares == pytest.approx(weights @ terms, rel=1e-9)
    terms = [s.fenchel_young(a, 0.9 * b) for a, b in zip(t, forces, strict=True)]
    assert dual == pytest.approx(weights @ terms, rel=1e-9)
    flat = [weights[i] * 0.5 * s.majorant(t[i]) for i in range(40)]
    flat = np.where((curvature == 0.0) & (weights > 0.0), flat, curvature)
    np.testing.assert_allclose(result, flat, rtol=1e-12)
    far = [s.descent(each) for each in signs * (2.0 * scores + 0.4)]
    assert along == pytest.approx(weights * signs * (scores + 0.1) @ far, rel=1e-9)


def test_a_path_is_compiled_once_for_all_losses_and_data():
    listed = [each.kernel for each in build.signatures()[0]]
    assert listed.count("compiled.paths.driver.advance") == 1
