"""Random fits: every estimator, with the data, layouts, weights and parameters that people have.

A case is drawn by hypothesis and made from a seed, so that it can be printed, repeated and shrunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import proxmargin
from tests.cases import ESTIMATORS, META_ESTIMATORS

__all__ = ["Case", "Data", "cases"]

# seconds a fit may take: long enough for all but the hopeless ones
SECONDS = 1.0


@dataclass(frozen=True)
class Data:
    """A training set as a user holds it, and the numbers in it as a dense matrix."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    dense: np.ndarray


@dataclass(frozen=True)
class Case:
    """What is fitted to what."""

    estimator: str
    parameters: tuple[tuple[str, Any], ...]
    seed: int
    n: int
    p: int
    classes: int
    scaling: str
    layout: str
    weighting: str
    labels: str

    @property
    def is_tame(self) -> bool:
        """An independent solver can be trusted with it."""
        return self.scaling in ("plain", "duplicates", "low rank") and self.weighting != "wide"

    def model(self, **more: Any) -> Any:
        known = {**ESTIMATORS, **META_ESTIMATORS}
        parameters = {**dict(self.parameters), **more}
        if self.estimator == "DDAGClassifier":
            return known[self.estimator](proxmargin.SVC(**parameters))
        return known[self.estimator](**parameters)

    def data(self) -> Data:
        rng = np.random.default_rng(self.seed)
        codes = np.arange(self.n) % self.classes
        rng.shuffle(codes)
        X = rng.standard_normal((self.n, self.p))
        X[:, 0] += rng.choice([0.3, 2.0]) * codes
        X, codes = SCALINGS[self.scaling](X, codes, rng)
        dense = LAYOUTS[self.layout](X)
        seen = dense.toarray() if sp.issparse(dense) else np.asarray(dense)
        names = np.array([f"class {k}" for k in range(self.classes)])
        y = {"numbers": codes, "names": names[codes], "floats": 3.0 * codes - 2.0}[self.labels]
        weights = WEIGHTINGS[self.weighting](codes, rng)
        return Data(dense, y, weights, np.asarray(seen, dtype=np.float64))


Change = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def _opposed(X: np.ndarray, codes: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Every second row is a copy of the one before, whatever its class."""
    X[1::2] = X[: 2 * (len(X) // 2) : 2]
    return X, codes


def _constant(X: np.ndarray, codes: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, 1e9])
    return X, codes


SCALINGS: dict[str, Change] = {
    "plain": lambda X, y, rng: (X, y),
    "duplicates": _opposed,
    "constant": _constant,
    "low rank": lambda X, y, rng: (X[:, :1] @ rng.standard_normal((1, X.shape[1])), y),
    "columns": lambda X, y, rng: (X * 10.0 ** rng.uniform(-12, 12, X.shape[1]), y),
    "all": lambda X, y, rng: (X * 10.0 ** rng.uniform(-12, 12), y),
    "rows": lambda X, y, rng: (X * 10.0 ** rng.uniform(-6, 6, (len(X), 1)), y),
    "offset": lambda X, y, rng: (X + 10.0 ** rng.uniform(0, 9), y),
    "counts": lambda X, y, rng: (np.round(np.exp(2 * X)), y),
    "mostly zero": lambda X, y, rng: (X * (rng.random(X.shape) < 0.3), y),
}


def _doubled(X: np.ndarray) -> Any:
    """CSR with every entry stored in two halves, the indices of a row unsorted."""
    rows, columns = np.nonzero(X)
    order = np.lexsort((-np.tile(columns, 2), np.tile(rows, 2)))
    values = np.tile(X[rows, columns] / 2, 2)[order]
    indptr = np.searchsorted(np.tile(rows, 2)[order], np.arange(len(X) + 1))
    return sp.csr_matrix((values, np.tile(columns, 2)[order], indptr), shape=X.shape)


def _frozen(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.setflags(write=False)
    return X


def _long(X: np.ndarray) -> Any:
    made = sp.csr_matrix(X)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": _frozen,
    "CSR": sp.csr_matrix,
    "CSC": sp.csc_array,
    "CSR, long indices": _long,
    "CSR, entries in halves": _doubled,
}


def _whole(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers, zeros among them; every class keeps one sample."""
    weights = rng.integers(0, 4, codes.size).astype(float)
    weights[[int(np.flatnonzero(codes == k)[0]) for k in np.unique(codes)]] = 1.0
    return weights


WEIGHTINGS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray | None]] = {
    "none": lambda codes, rng: None,
    "whole": _whole,
    "wide": lambda codes, rng: 10.0 ** rng.uniform(-8, 8, codes.size),
}

exponents = st.floats(-9.0, 1.0)
strengths = exponents.map(lambda power: 10.0**power)
cost = st.floats(-4.0, 8.0).map(lambda power: 10.0**power)
ratios = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0))
kernels = st.one_of(
    st.just({"kernel": "linear"}),
    st.fixed_dictionaries(
        {
            "kernel": st.sampled_from(["rbf", "poly"]),
            "gamma": st.one_of(
                st.sampled_from(["scale", "auto"]), st.floats(-4, 2).map(lambda e: 10.0**e)
            ),
            "degree": st.sampled_from([2, 3]),
            "coef0": st.sampled_from([0.0, 1.0]),
        }
    ),
)
nets = st.fixed_dictionaries({"alpha": strengths, "l1_ratio": ratios})
machines = st.fixed_dictionaries({"C": cost})
fractions = st.sampled_from(["0.1max", "0.5max", "0.9max"])


@st.composite
def both(draw: Any, *parts: Any) -> dict[str, Any]:
    """The settings of all parts."""
    return {key: value for part in parts for key, value in draw(part).items()}


penalties = st.one_of(
    st.sampled_from([{"penalty": "l1"}, {"penalty": "l2"}, {"penalty": "elasticnet"}]),
    st.sampled_from(["group_l2", "group_linf"]).map(
        lambda norm: {"penalty": norm, "groups": "features"}
    ),
)
multiclass = both(
    penalties,
    st.fixed_dictionaries(
        {
            "loss": st.sampled_from(["hinge", "squared_hinge", "logistic", "multinomial", "lee"]),
            "C": cost,
        }
    ),
)
PARAMETERS: dict[str, Any] = {
    "HuberizedSVC": both(
        nets,
        st.fixed_dictionaries(
            {
                "delta": st.floats(-4, 1).map(lambda e: 10.0**e),
                "intercept_ridge": st.sampled_from([0.0, 0.0, 0.1]),
                "multi_class": st.sampled_from(["joint", "ovr"]),
            }
        ),
    ),
    "ElasticNetSVC": nets,
    "SquaredHingeSVC": nets,
    "SparseLogisticRegression": both(
        nets, st.fixed_dictionaries({"multi_class": st.sampled_from(["joint", "ovr"])})
    ),
    "MarginClassifier": st.just({}),
    "SVC": both(machines, kernels),
    "L2SVC": both(machines, kernels),
    "LogisticRegression": both(machines, kernels),
    "NuSVC": both(st.fixed_dictionaries({"nu": fractions}), kernels),
    "DWD": both(kernels),
    "MarginFDA": both(st.fixed_dictionaries({"kappa": fractions}), kernels),
    "MarginMPM": both(st.fixed_dictionaries({"kappa": fractions}), kernels),
    "MulticlassSVC": multiclass,
    "DDAGClassifier": machines,
}


@st.composite
def cases(draw: Any, estimator: str | None = None) -> Case:
    """A case of the estimator called so, or of any."""
    name = draw(st.sampled_from(sorted(PARAMETERS))) if estimator is None else estimator
    parameters = dict(draw(PARAMETERS[name]))
    parameters["standardize"] = draw(st.booleans())
    parameters["fit_intercept"] = draw(st.sampled_from([True, True, False]))
    parameters["class_weight"] = draw(st.sampled_from([None, None, "balanced"]))
    parameters["tol"] = draw(st.sampled_from([1e-3, 1e-6, 1e-6, 1e-9]))
    parameters["time_limit"] = SECONDS
    classes = draw(st.sampled_from([2, 2, 2, 3, 4]))
    return Case(
        estimator=name,
        parameters=tuple(sorted(parameters.items())),
        seed=draw(st.integers(0, 2**32 - 1)),
        n=draw(st.integers(2 * classes, 20)),
        p=draw(st.integers(1, 12)),
        classes=classes,
        scaling=draw(st.sampled_from(sorted(SCALINGS))),
        layout=draw(st.sampled_from(sorted(LAYOUTS))),
        weighting=draw(st.sampled_from(sorted(WEIGHTINGS))),
        labels=draw(st.sampled_from(["numbers", "names", "floats"])),
    )
