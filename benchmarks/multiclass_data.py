"""Multiclass data of Chierchia et al. (2015) and Xu et al. (2015), with splits drawn by chance.

leukemia3, srbct       microarrays, standardised; the split of the source
mnist:30[,seed]        so many training images, as many of each class; pixels in [0, 1]
news20:100[,seed]      so many training documents, as many of each class
dna, glass, letter, poker, usps, wine[,seed]
                       the sizes of Xu et al., Table 11; features in [-1, 1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Floats, _stored, standardized

SEED = 2015
LARGEST_TEST = 5000
DRAWN = {"dna": 500, "glass": 164, "wine": 50}  # training samples; the rest is the test part
# training samples of each class (all, where there are fewer), and test samples at most
EACH = {"letter": (50, 500), "poker": (50, 100_000), "usps": (5, 500)}


@dataclass(frozen=True)
class Split:
    """Training and test data, with a name that says what was drawn."""

    name: str
    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]

    @property
    def in_words(self) -> str:
        classes = np.unique(self.y).size
        rows, columns = self.X.shape
        return f"{self.name} ({rows} x {columns}, {classes} classes, {self.y_test.size} to test)"


def load_split(name: str, seed: int = 0) -> Split:
    """The data called so; see the module."""
    bare, _, size = name.partition(":")
    rng = np.random.default_rng([SEED, seed])
    if bare in ("leukemia3", "srbct"):
        return _microarray(bare)
    if bare in ("mnist", "news20"):
        return _drawn(name, bare, int(size), rng)
    if bare in DRAWN or bare in EACH:
        return _benchmark(bare, rng)
    raise ValueError(f"no multiclass data are called {name!r}")


def seen(split: Split) -> Split:
    """Without the words that no training document has; images stay as they are."""
    if isinstance(split.X, np.ndarray):
        return split
    used = np.flatnonzero(np.diff(split.X.tocsc().indptr))
    return Split(split.name, split.X[:, used], split.y, split.X_test[:, used], split.y_test)


def four_classes(n: int, rho: float, rng: np.random.Generator, p: int = 500, s: int = 30) -> Split:
    """The example of Xu et al. 3.2.1: n samples to train and to test, as many of each class.

    Classes 1 and 2 differ in the first s features, 3 and 4 in those from s/2 on; the s features
    that matter to a class are equicorrelated with correlation rho.
    """
    labels = np.arange(n) % 4
    design = rng.standard_normal((n, p))
    for pair, first in ((0, 0), (2, s // 2)):
        rows = np.flatnonzero((labels == pair) | (labels == pair + 1))
        block = np.ix_(rows, np.arange(first, first + s))
        common = rng.standard_normal((rows.size, 1))
        sign = np.where(labels[rows] == pair, 1.0, -1.0)[:, None]
        design[block] = np.sqrt(1 - rho) * design[block] + np.sqrt(rho) * common + sign
    return Split(f"four classes, rho {rho:g}", design, labels, design, labels)


def genes(name: str) -> tuple[Floats, NDArray[Any], NDArray[np.bool_]]:
    """Expressions as stored, their classes, and which samples are to train, of the source."""
    design, labels, train = _stored("leukemia" if name == "leukemia3" else name)
    return design, _three_classes() if name == "leukemia3" else labels, train


def _microarray(name: str) -> Split:
    """Training and test part standardised on their own, as in the papers."""
    design, labels, train = genes(name)
    return Split(
        name, standardized(design[train]), labels[train], standardized(design[~train]),
        labels[~train],
    )  # fmt: skip


def _three_classes() -> NDArray[Any]:
    from benchmarks.datasets import data_root

    with np.load(data_root() / "data" / "leukemia.npz", allow_pickle=False) as file:
        found: NDArray[Any] = file["y3"]
    return found


def _drawn(name: str, bare: str, size: int, rng: np.random.Generator) -> Split:
    design, labels, train = _stored(bare)
    index = _as_many_of_each(labels, np.flatnonzero(train), size, rng)
    test = rng.permutation(np.flatnonzero(~train))[:LARGEST_TEST]
    scale = 255.0 if bare == "mnist" else 1.0
    return Split(name, design[index] / scale, labels[index], design[test] / scale, labels[test])


def _benchmark(name: str, rng: np.random.Generator) -> Split:
    if name == "wine":
        from sklearn.datasets import load_wine

        design, labels = load_wine(return_X_y=True)
        train = np.ones(labels.size, bool)
    else:
        design, labels, train = _stored(name)
    low, high = design.min(axis=0), design.max(axis=0)
    scaled: Floats = 2.0 * (design - low) / np.where(high > low, high - low, 1.0) - 1.0
    pool = np.flatnonzero(train)
    if name in DRAWN:
        index = rng.permutation(pool)[: DRAWN[name]]
        test = rng.permutation(np.setdiff1d(pool, index))
    else:
        each, count = EACH[name]
        index = _as_many_of_each(labels, pool, each * np.unique(labels).size, rng)
        rest = np.setdiff1d(pool, index) if train.all() else np.flatnonzero(~train)
        test = rng.permutation(rest)[:count]
    return Split(name, scaled[index], labels[index], scaled[test], labels[test])


def _as_many_of_each(
    labels: NDArray[Any], pool: NDArray[np.intp], size: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    classes = np.unique(labels)
    each = size // classes.size
    parts = [rng.permutation(pool[labels[pool] == k])[:each] for k in classes]
    return np.sort(np.concatenate(parts))
