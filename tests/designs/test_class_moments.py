"""Moments of the classes by one pass, rows that have them, and products that one pass answers."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import open_dataset
from proxmargin.designs import RowView, StandardizedDesign, as_design
from proxmargin.designs.base import Design
from proxmargin.designs.blocks import scanned
from proxmargin.designs.blocks.answered import Answered, PassRequest, answered
from proxmargin.designs.blocks.class_moments import class_moments, rows_with
from proxmargin.losses import MinimaxFisher

N = 90
P = 5
CLASSES = 3


def chunked(X: np.ndarray, rows: int) -> Design:
    return scanned(open_dataset(X, target=None, chunk_rows=rows), lambda chunk: chunk).design


def weighted(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((N, P)) @ rng.standard_normal((P, P)) + 100.0
    codes = rng.integers(0, CLASSES, N)
    shares = rng.random(N)
    return X, codes, shares / shares.sum()


@pytest.mark.parametrize("rows", [1, 7, N])
def test_the_moments_of_blocks_are_those_of_each_class(rows: int, rng) -> None:
    X, codes, shares = weighted(rng)
    design = chunked(X, rows)
    before = design.counter.passes
    found = class_moments(design, codes, shares, CLASSES)
    mean, variance = design.mean_and_variance(shares)
    assert found is not None
    assert design.counter.passes - before == 1.0
    np.testing.assert_allclose(mean, shares @ X, rtol=1e-14)
    np.testing.assert_allclose(variance, shares @ (X - mean) ** 2, rtol=1e-12)
    for classes in ([0], [2], [1, 2]):
        inside = np.isin(codes, classes)
        weight, middle, covariance = found.together(classes)
        assert weight == pytest.approx(shares[inside].sum(), rel=1e-14)
        np.testing.assert_allclose(middle, np.average(X[inside], axis=0, weights=shares[inside]))
        expected = np.cov(X[inside].T, aweights=shares[inside], ddof=0)
        np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-12)


def test_moments_of_a_large_mean_keep_their_digits(rng) -> None:
    X, codes, shares = weighted(rng)
    X = X + 1e6
    exact = X.astype(np.longdouble)
    found = class_moments(chunked(X, 4), codes, shares, CLASSES)
    assert found is not None
    one, s = codes == 1, shares[codes == 1].astype(np.longdouble)
    mean = s @ exact[one] / s.sum()
    apart = exact[one] - mean
    covariance = (apart.T * s) @ apart / s.sum()
    np.testing.assert_allclose(found.means[1], mean.astype(float), rtol=2e-16)
    deviations = np.sqrt(np.diag(covariance)).astype(float)
    off = np.abs(found.scatters[1] / found.weights[1] - covariance.astype(float))
    # means of chunks are rounded to an ulp, by which their distances are off
    assert np.all(off <= 1e-13 * np.outer(deviations, deviations) + 2e-10 * deviations)


def test_moments_follow_views_and_units(rng) -> None:
    X, codes, shares = weighted(rng)
    live = np.flatnonzero(np.arange(N) % 4)
    centre, scale = rng.random(P), rng.random(P) + 0.5
    view = StandardizedDesign(RowView(chunked(X, 8), live), centre, scale)
    found = class_moments(view, codes[live], shares[live], CLASSES)
    direct = class_moments(
        chunked((X[live] - centre) / scale, 8), codes[live], shares[live], CLASSES
    )
    assert found is not None
    assert direct is not None
    for ours, theirs in zip(found[:3], direct[:3], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_moments_are_for_blocks_of_few_features_and_classes_with_weight(rng, monkeypatch) -> None:
    X, codes, shares = weighted(rng)
    assert class_moments(as_design(X), codes, shares, CLASSES) is None
    assert class_moments(chunked(X, 8), codes, shares * (codes != 1), CLASSES) is None
    monkeypatch.setattr("proxmargin.designs.blocks.class_moments.MAX_FEATURES", P - 1)
    assert class_moments(chunked(X, 8), codes, shares, CLASSES) is None


@pytest.mark.parametrize("rank", [0, 1, 3, P])
def test_rows_have_the_mean_and_the_covariance_asked_for(rank: int, rng) -> None:
    mean = rng.standard_normal(P)
    root = rng.standard_normal((P, rank)) * 10.0 ** np.arange(-6, 4, 2)[:, None]
    covariance = root @ root.T
    rows = rows_with(mean, covariance)
    assert rows.shape == (rank + 1, P)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=1e-14 * max(1.0, scale.max()))
    apart = rows - rows.mean(axis=0)
    off = np.abs(apart.T @ apart / len(rows) - covariance)
    small = 1e-16 * np.abs(mean) * scale.max(initial=0.0)  # rounding of the rows themselves
    assert np.all(off <= 1e-13 * np.outer(scale, scale) + np.add.outer(small, small))


def one_pass(design: Design, X: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> Answered:
    """What a pass finds for some coefficients, with class 1 against the others."""
    coef = np.linspace(-1.0, 1.0, P) + 0.05
    z = X @ coef - shares @ X @ coef
    levels = [np.average(z[part], weights=shares[part]) for part in (codes == 1, codes != 1)]
    return answered(design, codes, shares, CLASSES, [PassRequest(coef, 1, np.array(levels))])[0]


@pytest.mark.parametrize("kind", ["whole", "view", "standardized"])
def test_one_pass_answers_the_products_of_a_certificate_within_their_bounds(kind, rng) -> None:
    X, codes, shares = weighted(rng)
    X = X + 1e5 * (np.arange(P) == 2)
    design: Design = chunked(X, 11)
    if kind == "view":
        live = np.flatnonzero(np.arange(N) % 5)
        design, X, codes, shares = RowView(design, live), X[live], codes[live], shares[live]
        shares = shares / shares.sum()
    centre, scale = np.zeros(P), np.ones(P)
    if kind == "standardized":
        centre, scale = shares @ X, X.std(axis=0)
        design = StandardizedDesign(design, centre, scale)
    features = (X.astype(np.longdouble) - centre) / scale
    class_moments(design, codes, shares, CLASSES)
    design.column_bounds()
    design.mean_and_variance(shares)
    found = one_pass(design, features.astype(float), codes, shares)
    before = design.counter.passes
    coef = 3.0 * (np.linspace(-1.0, 1.0, P) + 0.05)[:, None]
    loss = MinimaxFisher(np.where(codes == 1, 1.0, -1.0), shares, 0.7)
    _, dual = loss.value_and_gradient(found.steered[:, None])
    intercept = np.array([2.5])
    scores = found.design.precise_scores(coef, intercept)
    pulled = found.design.precise_adjoint(dual)
    plain = found.design.adjoint(-dual)
    rough = found.design.enclosed(coef, intercept, found.design.scores(coef) + intercept)
    bound = found.design.adjoint_error(np.abs(dual).sum(axis=0))
    assert design.counter.passes == before
    z, v = features @ coef + intercept, features.T @ dual.astype(np.longdouble)
    assert np.all(np.abs(scores.values - z) <= scores.error)
    assert np.all(np.abs(rough.values - z) <= rough.error)
    assert np.all(np.abs(pulled.values - v) <= pulled.error)
    assert np.all(np.abs(plain + v) <= bound)
    assert np.all(pulled.error <= 1e-9 * np.abs(dual).sum())


def test_other_products_take_passes_and_are_right(rng) -> None:
    X, codes, shares = weighted(rng)
    design = chunked(X, 11)
    found = one_pass(design, X, codes, shares).design
    coef, dual = rng.standard_normal((P, 1)), rng.standard_normal((N, 1))
    before = design.counter.passes
    np.testing.assert_allclose(found.scores(coef), X @ coef, rtol=1e-12)
    np.testing.assert_allclose(found.adjoint(dual), X.T @ dual, rtol=1e-10)
    np.testing.assert_allclose(found.precise_scores(coef, np.ones(1)).values, X @ coef + 1.0)
    np.testing.assert_allclose(found.precise_adjoint(dual).values, X.T @ dual)
    assert design.counter.passes - before == 4.0
