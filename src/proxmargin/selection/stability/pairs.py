"""Complementary pairs: two disjoint halves of the samples, each with half of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_classes", "half_of"]

Index = NDArray[np.intp]

FEWEST = 4  # samples of a class: at least two in each half


def half_of(codes: NDArray[np.intp], weights: NDArray[Any], seed: int, number: int) -> Index:
    """The rows of half-sample ``number``, in increasing order; 2k and 2k + 1 are a pair.

    Both have ``floor(m / 2)`` of the m samples of each class with positive weight: of an odd
    number one sample, drawn by chance, is in neither.

    Parameters
    ----------
    codes, weights : (n_samples,)
    seed : int
        Pairs are drawn independently of each other, so that their order does not matter.
    """
    pair, second = divmod(number, 2)
    rng = np.random.default_rng([seed, pair])
    parts = []
    for code in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero((codes == code) & (weights > 0)))
        size = members.size // 2
        parts.append(members[second * size : (second + 1) * size])
    return np.sort(np.concatenate(parts))


def check_classes(
    classes: NDArray[Any], codes: NDArray[np.intp], weights: NDArray[np.float64]
) -> None:
    """Raise ValueError for a class that is too small to be halved, with its name and size."""
    sizes = np.bincount(codes[weights > 0], minlength=classes.size)
    smallest = int(np.argmin(sizes))
    if sizes[smallest] < FEWEST:
        count = int(sizes[smallest])
        raise ValueError(
            f"class {classes[smallest]!s} has {count} sample{'s' * (count != 1)}, and half-samples "
            f"need at least {FEWEST} of each class, two in each half: leave the class out, or join "
            "it with another one"
        )
