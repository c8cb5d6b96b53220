"""The data sets of the benchmarks, as float64 designs with labels -1 and +1.

Dense microarrays are standardised (mean 0, population standard deviation 1); everything else is
taken as stored. Synthetic problems are those of Xu et al. (2015), section 3.1.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

SEED = 2017
Floats = NDArray[np.float64]
Design = Any  # (n, p): a float64 ndarray or a SciPy sparse matrix of float64


@dataclass(frozen=True)
class DataSet:
    """A design (n, p) with labels (n,) in {-1, +1}."""

    name: str
    design: Design
    labels: Floats

    @property
    def shape_in_words(self) -> str:
        rows, columns = self.design.shape
        if sp.issparse(self.design):
            return f"{rows} x {columns}, sparse, {self.design.nnz} stored"
        return f"{rows} x {columns}, dense"


def data_root() -> Path:
    """The folder that holds `data/` and `reference/`."""
    beside_the_checkout = Path(__file__).resolve().parents[2] / "shared"
    return Path(os.environ.get("PROXMARGIN_DATA", beside_the_checkout))


def load(name: str) -> DataSet:
    """The data set called `name`, `name@rows` of it, `dense:name`, or one drawn by chance.

    The latter are `synthetic:n,p,s,rho[,seed]` and `sparse:n,p,density[,seed]`.
    """
    if name.startswith("dense:"):
        stored = load(name.removeprefix("dense:"))
        return DataSet(name, stored.design.toarray(), stored.labels)
    bare, _, rows = name.partition("@")
    if rows:
        return subsample(load(bare), int(rows))
    if name.startswith("synthetic:"):
        return _synthetic_from_name(name)
    if name.startswith("sparse:"):
        return _sparse_from_name(name)
    if name not in READERS:
        known = ", ".join([*READERS, "synthetic:n,p,s,rho[,seed]", "sparse:n,p,density[,seed]"])
        raise ValueError(f"no data set is called {name!r}; there are {known}")
    design, labels = READERS[name]()
    return DataSet(name, design, labels)


def subsample(data: DataSet, rows: int) -> DataSet:
    """So many samples without replacement, each class in its proportion; all if there are fewer."""
    if data.labels.size <= rows:
        return data
    rng = np.random.default_rng([SEED, rows])
    parts = []
    for sign in (1.0, -1.0):
        members = np.flatnonzero(data.labels == sign)
        share = max(round(rows * members.size / data.labels.size), 2)
        parts.append(rng.choice(members, min(share, members.size), replace=False))
    chosen = np.sort(np.concatenate(parts))
    return DataSet(f"{data.name}@{rows}", data.design[chosen], data.labels[chosen])


def synthetic(n: int, p: int, s: int, rho: float, rng: np.random.Generator) -> DataSet:
    """Two Gaussian classes of Xu et al. 3.1.1: means +-1 on the first s features, 0 on the others.

    The s relevant features are equicorrelated with correlation rho, the rest are independent;
    n/2 samples a class. With z0 common to the block, sqrt(rho) z0 + sqrt(1 - rho) z has exactly
    that covariance, so no p x p matrix is formed.
    """
    labels = np.where(np.arange(n) < n - n // 2, 1.0, -1.0)
    design = rng.standard_normal((n, p))
    common = rng.standard_normal((n, 1))
    design[:, :s] *= np.sqrt(1.0 - rho)
    design[:, :s] += np.sqrt(rho) * common + labels[:, None]
    return DataSet(f"synthetic ({n}, {p}, {s}), rho {rho:g}", design, labels)


def sparse(n: int, p: int, density: float, rng: np.random.Generator) -> DataSet:
    """Gaussian entries at random places; labels by a logistic model of a tenth of the features."""
    design = sp.random(n, p, density, "csr", random_state=rng, data_rvs=rng.standard_normal)
    weights = np.where(np.arange(p) < max(p // 10, 1), rng.standard_normal(p), 0.0)
    chances = 1.0 / (1.0 + np.exp(-2.0 * (design @ weights)))
    labels = _signs(rng.random(n) < chances)
    return DataSet(f"sparse ({n}, {p}), density {density:g}", design, labels)


def standardized(design: Floats) -> Floats:
    """Columns with mean 0 and population standard deviation 1; constant columns become 0."""
    spread = design.std(axis=0)
    spread[spread == 0] = 1.0
    return (design - design.mean(axis=0)) / spread


def _synthetic_from_name(name: str) -> DataSet:
    numbers = name.removeprefix("synthetic:").split(",")
    if len(numbers) not in (4, 5):
        raise ValueError(f"{name!r} should read synthetic:n,p,s,rho or synthetic:n,p,s,rho,seed")
    n, p, s = (int(number) for number in numbers[:3])
    seed = int(numbers[4]) if len(numbers) == 5 else 0
    return synthetic(n, p, s, float(numbers[3]), np.random.default_rng(seed))


def _sparse_from_name(name: str) -> DataSet:
    numbers = name.removeprefix("sparse:").split(",")
    if len(numbers) not in (3, 4):
        raise ValueError(f"{name!r} should read sparse:n,p,density or sparse:n,p,density,seed")
    seed = int(numbers[3]) if len(numbers) == 4 else 0
    rng = np.random.default_rng(seed)
    return sparse(int(numbers[0]), int(numbers[1]), float(numbers[2]), rng)


def _stored(name: str) -> tuple[Design, NDArray[Any], NDArray[np.bool_]]:
    """The design in float64, the labels as stored, and a mask of the source's training rows."""
    path = data_root() / "data" / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: set PROXMARGIN_DATA to the folder above data/")
    with np.load(path, allow_pickle=False) as file:
        if "X" in file.files:
            design: Design = file["X"].astype(np.float64)
        else:
            parts = (file["data"].astype(np.float64), file["indices"], file["indptr"])
            design = sp.csr_matrix(parts, shape=tuple(file["shape"]))
        labels = file["y"]
        test = file["test"] if "test" in file.files else np.zeros(labels.shape[0], dtype=bool)
    return design, labels, ~test


def _signs(is_positive: NDArray[np.bool_]) -> Floats:
    return np.where(is_positive, 1.0, -1.0)


def _microarray(name: str) -> tuple[Design, Floats]:
    """All samples, both parts of a split, standardised; the larger of the two labels is +1."""
    design, labels, _ = _stored(name)
    return standardized(design), _signs(labels == np.unique(labels)[-1])


def _a9a() -> tuple[Design, Floats]:
    design, labels, train = _stored("a9a")
    return design[train], _signs(labels[train] > 0)


def _news20() -> tuple[Design, Floats]:
    """The first news group (alt.atheism) against the nineteen others, training part."""
    design, labels, train = _stored("news20")
    return design[train], _signs(labels[train] == np.unique(labels)[0])


def _news20_halves() -> tuple[Design, Floats]:
    """The first ten news groups against the other ten, training part."""
    design, labels, train = _stored("news20")
    return design[train], _signs(labels[train] < 10)


def _covtype() -> tuple[Design, Floats]:
    design, labels, _ = _stored("covtype")
    return design, _signs(labels == 2)


READERS: dict[str, Callable[[], tuple[Design, Floats]]] = {
    "colon": partial(_microarray, "colon"),
    "leukemia": partial(_microarray, "leukemia"),
    "a9a": _a9a,
    "news20": _news20,
    "news20-halves": _news20_halves,
    "covtype": _covtype,
}
