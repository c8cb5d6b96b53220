"""Every loss, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from proxmargin.functions.losses.tail_mean import largest_nu
from proxmargin.losses import (
    CrammerSinger,
    DistanceWeighted,
    Hinge,
    HuberizedHinge,
    LevelSet,
    Logistic,
    Loss,
    MarginLoss,
    MarginSum,
    MinimaxFisher,
    MinimaxProbability,
    Multinomial,
    PairwiseSquaredHinge,
    Rescaled,
    Shifted,
    SquaredHinge,
    TailMean,
    wrong_classes,
)


class ByFormulas(Logistic):
    """The logistic loss without scalar functions: kernels are not compiled for it."""

    scalars = None  # type: ignore[assignment]


MARGIN_LOSSES: dict[str, MarginLoss] = {
    "hinge": Hinge(),
    "huberized hinge": HuberizedHinge(1.0),
    "huberized hinge, narrow": HuberizedHinge(0.01),
    "huberized hinge, wide": HuberizedHinge(3.0),
    "squared hinge": SquaredHinge(),
    "logistic": Logistic(),
    "distance-weighted": DistanceWeighted(0.5),
    "distance-weighted, far": DistanceWeighted(2.0),
    "rescaled, by array formulas": Rescaled(ByFormulas(), height=2.0, slope=0.5, shift=-0.5),
}
SMOOTH_LOSSES = {k: phi for k, phi in MARGIN_LOSSES.items() if np.isfinite(phi.smoothness)}
COMPILED_LOSSES = {k: phi for k, phi in SMOOTH_LOSSES.items() if phi.scalars is not None}


def binary_sum(phi: MarginLoss, rng: np.random.Generator, n: int = 12) -> MarginSum:
    """Random signs of both kinds, random weights; every fifth sample has weight zero."""
    signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None]
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3)
    return MarginSum(phi, signs, (weights / weights.sum())[:, None], float(weights.sum()))


def multiclass_sum(phi: MarginLoss, rng: np.random.Generator, n: int = 12) -> MarginSum:
    """Three classes, random weights; every fifth sample has weight zero."""
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3)
    return wrong_classes(phi, np.arange(n) % 3, weights / weights.sum(), 3, float(weights.sum()))


SUMS: dict[str, Callable[..., MarginSum]] = {"binary": binary_sum, "multiclass": multiclass_sum}


def two_classes(rng: np.random.Generator, n: int = 12) -> tuple[np.ndarray, np.ndarray, float]:
    """Signs, shares and total weight; the positive class has two samples in five, every fifth
    sample has weight zero."""
    signs = np.where(np.arange(n) % 5 < 2, 1.0, -1.0)
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3)
    return signs, weights / weights.sum(), float(weights.sum())


def _tail_mean(rng: np.random.Generator, nu: float, n: int = 12) -> TailMean:
    signs, shares, total = two_classes(rng, n)
    return TailMean(signs, shares, nu * largest_nu(signs, shares), total)


def _minimax(kind: Any, rng: np.random.Generator, kappa: float, n: int = 12) -> Any:
    signs, shares, total = two_classes(rng, n)
    return kind(signs, shares, kappa, total)


# losses that couple the samples, by what makes them for n samples
COUPLED: dict[str, Callable[..., Loss]] = {
    "tail mean": lambda rng, n=12: _tail_mean(rng, 0.6, n),
    "tail mean, short": lambda rng, n=12: _tail_mean(rng, 0.01, n),
    "tail mean, longest": lambda rng, n=12: _tail_mean(rng, 1.0, n),
    "minimax fisher": lambda rng, n=12: _minimax(MinimaxFisher, rng, 0.7, n),
    "minimax fisher, no spread": lambda rng, n=12: _minimax(MinimaxFisher, rng, 0.0, n),
    "minimax probability": lambda rng, n=12: _minimax(MinimaxProbability, rng, 0.7, n),
}


def _three_classes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Codes, shares, number of classes, total; every fifth sample has weight zero."""
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3)
    return np.arange(n) % 3, weights / weights.sum(), 3, float(weights.sum())


# losses that compare the score of the class with those of the others
COMPARISONS: dict[str, Callable[..., Loss]] = {
    "multinomial": lambda rng, n=12: Multinomial(*_three_classes(rng, n)),
    "multinomial with a margin": lambda rng, n=12: Multinomial(*_three_classes(rng, n), margin=1.0),
    "pairwise squared hinge": lambda rng, n=12: PairwiseSquaredHinge(*_three_classes(rng, n)),
}
# losses within a budget, tested in tests/functions/losses/test_level_set.py
LEVEL_SETS: dict[str, Callable[..., Loss]] = {
    "level set": lambda rng, n=12: LevelSet(Multinomial(*_three_classes(rng, n)), 0.7, 3.0),
}


def shifted_sum(phi: MarginLoss, rng: np.random.Generator, n: int = 12) -> Shifted:
    """The binary sum at scores with an offset."""
    return Shifted(binary_sum(phi, rng, n), 2.0 * rng.standard_normal((n, 1)))


# losses of scores with an offset, tested in tests/functions/losses/test_shifted.py
SHIFTED: dict[str, Callable[..., Shifted]] = {
    f"shifted {name}": (lambda rng, n=12, phi=phi: shifted_sum(phi, rng, n))
    for name, phi in MARGIN_LOSSES.items()
}


def crammer_singer(
    rng: np.random.Generator, classes: int = 3, n: int = 12, weighted: bool = True
) -> CrammerSinger:
    """Classes of very different sizes; where weighted, every fifth sample has weight zero."""
    codes = np.minimum(rng.geometric(0.4, n) - 1, classes - 1)
    codes[:classes] = np.arange(classes)
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3) if weighted else np.ones(n)
    return CrammerSinger(codes, weights / weights.sum(), classes, float(weights.sum()))


# losses that couple the classes of a sample
JOINT: dict[str, Callable[..., CrammerSinger]] = {
    "crammer-singer": crammer_singer,
    "crammer-singer, two classes": lambda rng: crammer_singer(rng, 2),
    "crammer-singer, many classes": lambda rng: crammer_singer(rng, 9, 40, weighted=False),
    "crammer-singer, one sample a class": lambda rng: crammer_singer(rng, 5, 5, weighted=False),
}
