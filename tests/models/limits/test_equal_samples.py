"""Limits with a strictly positive definite kernel: those of indicators of the distinct samples."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from proxmargin import kappa_max, nu_range
from proxmargin.data.kernels import Polynomial, Rbf
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.models.limits.kappa import clear_kappa, largest_kappa
from proxmargin.models.limits.nu import smallest_nu

Array = NDArray[np.float64]


def repeated(seed: int) -> tuple[Array, Array, Array, Array]:
    """Few distinct samples, each repeated; indicators of them; signs and weights."""
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(8, 60)), int(rng.integers(2, 8))
    which = rng.integers(0, count, n)
    which[:2] = 0  # in both classes
    signs = np.where(rng.random(n) < rng.random(count)[which], 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    shares = rng.random(n)
    return rng.normal(size=(count, 2))[which], np.eye(count)[which], signs, shares / shares.sum()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("seed", range(12))
def test_they_are_those_of_features_that_tell_the_distinct_samples_apart(seed, form) -> None:
    X, indicators, signs, shares = repeated(seed)
    design = KernelDesign(kernel_matrix(Rbf(0.5), form(X)))
    for model in ("fda", "mpm"):
        found = largest_kappa(design, signs, shares, model, infinite=1e9)
        assert found.is_known
        assert found.value == pytest.approx(kappa_max(indicators, signs, model, shares), rel=1e-6)
    least = nu_range(indicators, signs, shares)[0]
    assert smallest_nu(design, signs, shares) == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_longer_half_may_be_longer_at_every_balance(sign: float) -> None:
    X, shares = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0.9, 0.1, 0.5, 0.5]) / 2
    signs = sign * np.array([1.0, 1.0, -1.0, -1.0])
    design = KernelDesign(kernel_matrix(Rbf(0.5), X))
    # scores a, 0 and -b: (0.9 a + 0.5 b) / (0.3 a + 0.5 b) is largest where b is zero
    found = largest_kappa(design, signs, shares, "mpm", infinite=1e9)
    assert found.value == pytest.approx(3.0, rel=1e-12)


def test_distinct_samples_have_no_largest_kappa_and_no_least_nu() -> None:
    rng = np.random.default_rng(0)
    X, signs = rng.normal(size=(200, 1)), np.where(rng.random(200) < 0.5, 1.0, -1.0)
    design = KernelDesign(kernel_matrix(Rbf(0.01), X))  # of a numerical rank of ten or so
    shares = np.full(200, 1 / 200)
    assert largest_kappa(design, signs, shares, "fda").value == np.inf
    assert smallest_nu(design, signs, shares) == 0.0


@pytest.mark.parametrize("kernel", [Rbf(0.5), Polynomial(2, 0.5, 1.0)])
def test_a_clear_kappa_leaves_a_hundredth_of_the_distance_of_the_means(kernel) -> None:
    rng = np.random.default_rng(3)
    X, up = rng.normal(size=(150, 2)), np.arange(150) < 60
    signs, shares = np.where(up, 1.0, -1.0), np.full(150, 1 / 150)
    kappa = clear_kappa(KernelDesign(kernel_matrix(kernel, X)), signs, shares, "fda").value
    K = kernel(X, X)
    values, axes = np.linalg.eigh(K)
    features = axes * np.sqrt(np.maximum(values, 0.0))
    apart = features[up].mean(axis=0) - features[~up].mean(axis=0)
    spread = np.cov(features[up].T, bias=True) + np.cov(features[~up].T, bias=True)

    def margin(ridge: float) -> float:
        w = np.linalg.solve(spread + ridge * np.eye(150), apart)
        return float((w @ apart - kappa * np.sqrt(w @ spread @ w)) / np.linalg.norm(w))

    best = max(margin(ridge) for ridge in np.logspace(-9, 1, 400))
    assert best == pytest.approx(0.01 * np.linalg.norm(apart), rel=1e-2)
