"""Every loss, penalty, design, solver and estimator, listed once; the laws run over these lists.

`tests/laws/test_cases.py` fails when a part of the package is not listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import proxmargin
from proxmargin.designs import DenseDesign, Design, SparseDesign, StandardizedDesign, moments
from proxmargin.designs.kernel import kernel_matrix
from proxmargin.designs.kernel_design import KernelDesign
from proxmargin.estimators.registry import MODELS, model_names
from proxmargin.kernels import Rbf
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
    SquaredHinge,
    TailMean,
    wrong_classes,
)
from proxmargin.losses.tail_mean import largest_nu
from proxmargin.penalties import (
    Ball,
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    Pinned,
    Ridge,
    SumToZero,
    SumToZeroGroups,
)
from proxmargin.problem import Problem
from proxmargin.solvers.first_order.coordinate_descent import CoordinateDescent
from proxmargin.solvers.first_order.proximal_gradient import ProximalGradient
from proxmargin.solvers.names import SOLVERS as NAMED
from proxmargin.solvers.smooth.newton import ProximalNewton
from proxmargin.solvers.wrappers.working_set import WorkingSet

# -- losses of one margin ---------------------------------------------------------------------


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


# -- sums over samples ------------------------------------------------------------------------


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
# losses within a budget, tested in tests/losses/test_level_set.py
LEVEL_SETS: dict[str, Callable[..., Loss]] = {
    "level set": lambda rng, n=12: LevelSet(Multinomial(*_three_classes(rng, n)), 0.7, 3.0),
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

# -- penalties --------------------------------------------------------------------------------

WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0])
# those of groups are of four features
PENALTIES: dict[str, Penalty] = {
    "nothing": Ridge(0.0),
    "ridge": Ridge(0.7),
    "elastic net": ElasticNet(0.3, 0.5),
    "l1": ElasticNet(0.3, 0.0),
    "elastic net without l1": ElasticNet(0.0, 0.5),
    "pinned": Pinned(),
    "ball": Ball(2.0, 1.5),
    "ball, p small": Ball(1.5, 1.5),
    "ball, p large": Ball(4.0, 2.0),
    "group l2": GroupL2(Groups.within_classes([1, 0, 1, 1]), 0.8),
    "group l2, weighted": GroupL2(Groups.of_members([[3], [0, 2], [1]], 4), 0.8, WEIGHTS[:3]),
    "group l2 of features": GroupL2(Groups.features(4), 0.8, WEIGHTS),
    "group linf": GroupLinf(Groups.within_classes([1, 0, 1, 1]), 0.8),
    "group linf, weighted": GroupLinf(Groups.of_members([[3], [0, 2], [1]], 4), 0.8, WEIGHTS[:3]),
    "group linf of features": GroupLinf(Groups.features(4), 0.8, WEIGHTS),
    "sum-to-zero elastic net": SumToZero(ElasticNet(0.3, 0.5)),
    "sum-to-zero l1": SumToZero(ElasticNet(0.3, 0.0)),
    "sum-to-zero ridge": SumToZero(ElasticNet(0.0, 0.5)),
    "sum-to-zero": SumToZero(ElasticNet(0.0, 0.0)),
    "sum-to-zero group l2": SumToZeroGroups(GroupL2(Groups.features(4), 0.8, WEIGHTS)),
    "sum-to-zero group linf": SumToZeroGroups(GroupLinf(Groups.features(4), 0.8, WEIGHTS)),
    "sum-to-zero group l2 in classes": SumToZeroGroups(
        GroupL2(Groups.of_members([[3], [0, 2, 1]], 4), 0.8, WEIGHTS[:2])
    ),
    "sum-to-zero group linf in classes": SumToZeroGroups(
        GroupLinf(Groups.of_members([[3], [0, 2, 1]], 4), 0.8, WEIGHTS[:2])
    ),
}
INTERCEPTS = {
    "binary": {"free": Ridge(0.0), "ridge": Ridge(0.3), "none": Pinned()},
    "multiclass": {
        "free": SumToZero(ElasticNet(0.0, 0.0)),
        "ridge": SumToZero(ElasticNet(0.0, 0.3)),
        "none": Pinned(),
    },
}


def into_domain(penalty: Penalty, coef: np.ndarray) -> np.ndarray:
    """The nearest coefficients at which the penalty is finite."""
    if isinstance(penalty, Pinned):
        return np.zeros_like(coef)
    if isinstance(penalty, Ball):
        return penalty.prox(coef, 1.0)
    if penalty.sums_to_zero:
        return coef - coef.mean(axis=1, keepdims=True)
    return coef


# -- designs ----------------------------------------------------------------------------------


def _strided(matrix: np.ndarray) -> np.ndarray:
    return np.repeat(np.repeat(matrix, 2, axis=0), 3, axis=1)[::2, ::3]


def _read_only(matrix: np.ndarray) -> np.ndarray:
    frozen = matrix.copy()
    frozen.setflags(write=False)
    return frozen


def _long_indices(matrix: Any) -> Any:
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def _standardized(base: Design) -> StandardizedDesign:
    weights = np.full(base.n_samples, 1.0 / base.n_samples)
    return StandardizedDesign(base, *moments(base, weights))


# data as users hold them, from a small matrix of integers (so that every type holds it exactly)
DENSE_DATA: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": lambda m: np.ascontiguousarray(m, dtype=float),
    "F order": lambda m: np.asfortranarray(m, dtype=float),
    "strided": lambda m: _strided(m.astype(float)),
    "rows backwards": lambda m: m.astype(float)[::-1].copy()[::-1],
    "float32, C order": lambda m: np.ascontiguousarray(m, dtype=np.float32),
    "float32, F order": lambda m: np.asfortranarray(m, dtype=np.float32),
    "int64": lambda m: m.astype(np.int64),
    "int8, F order": lambda m: np.asfortranarray(m, dtype=np.int8),
    "read-only": lambda m: _read_only(m.astype(float)),
}
SPARSE_DATA: dict[str, Callable[[np.ndarray], Any]] = {
    "CSR": lambda m: sp.csr_matrix(m.astype(float)),
    "CSC": lambda m: sp.csc_matrix(m.astype(float)),
    "CSR array": lambda m: sp.csr_array(m.astype(float)),
    "CSR, float32": lambda m: sp.csr_matrix(m.astype(np.float32)),
    "CSC, float32": lambda m: sp.csc_matrix(m.astype(np.float32)),
    "CSR, int64 indices": lambda m: _long_indices(sp.csr_matrix(m.astype(float))),
    "CSC, int64 indices": lambda m: _long_indices(sp.csc_matrix(m.astype(float))),
}
DESIGNS: dict[str, Callable[[np.ndarray], Design]] = {
    **{k: (lambda m, f=f: DenseDesign(f(m))) for k, f in DENSE_DATA.items()},
    **{k: (lambda m, f=f: SparseDesign(f(m))) for k, f in SPARSE_DATA.items()},
    "standardized, C order": lambda m: _standardized(DenseDesign(m.astype(float))),
    "standardized, F order": lambda m: _standardized(
        DenseDesign(np.asfortranarray(m, dtype=float))
    ),
    "standardized, float32": lambda m: _standardized(DenseDesign(m.astype(np.float32))),
    "standardized CSR": lambda m: _standardized(SparseDesign(sp.csr_matrix(m.astype(float)))),
    "standardized CSC": lambda m: _standardized(SparseDesign(sp.csc_matrix(m.astype(float)))),
}


def small_matrix(rng: np.random.Generator, n: int = 14, p: int = 6) -> np.ndarray:
    """Small integers, half of them zero, with a constant and an all-zero column."""
    matrix = rng.integers(-5, 6, (n, p)) * (rng.random((n, p)) < 0.5)
    matrix[:, 1] = 3
    matrix[:, 2] = 0
    return matrix


def as_seen(name: str, matrix: np.ndarray) -> np.ndarray:
    """The dense float64 matrix that the design called ``name`` stands for."""
    matrix = matrix.astype(float)
    if not name.startswith("standardized"):
        return matrix
    scale = matrix.std(axis=0)
    return (matrix - matrix.mean(axis=0)) / np.where(scale == 0, 1.0, scale)


# -- solvers and estimators -------------------------------------------------------------------

# of any smooth loss and any elastic net
BINARY_SOLVERS: dict[str, Callable[[], Any]] = {
    "b-pgh": NAMED["b-pgh"],
    "b-pgh-2": NAMED["b-pgh-2"],
    "gcd": NAMED["gcd"],
    "gcd on all features": CoordinateDescent,
    "apg": NAMED["apg"],
    "fapg-guaranteed": NAMED["fapg-guaranteed"],
    "fapg": NAMED["fapg"],
    "fapg-star": NAMED["fapg-star"],
    "fapg-ws": NAMED["fapg-ws"],
    "newton": NAMED["newton"],
    "newton on all features": ProximalNewton,
    "working set of b-pgh": lambda: WorkingSet(ProximalGradient(), smallest=4),
}
MULTICLASS_SOLVERS: dict[str, Callable[[], Any]] = {
    "m-pgh": NAMED["m-pgh"],
    "m-pgh-2": NAMED["m-pgh-2"],
    "apg": NAMED["apg"],
    "fapg-guaranteed": NAMED["fapg-guaranteed"],
    "fapg": NAMED["fapg"],
    "fapg-star": NAMED["fapg-star"],
    "fapg-ws": NAMED["fapg-ws"],
}
_MODELS = {name: getattr(proxmargin, name) for name in MODELS}
# of all classes together
MULTICLASS: dict[str, Callable[..., Any]] = {"MulticlassSVC": proxmargin.MulticlassSVC}
# of the models that need samples only through inner products
KERNEL_MACHINES: dict[str, Callable[..., Any]] = {
    name: _MODELS[name] for name in model_names(kernels=True)
}
PENALISED: dict[str, Callable[..., Any]] = {
    name: _MODELS[name] for name in model_names(kernels=False) if name not in MULTICLASS
}
ESTIMATORS: dict[str, Callable[..., Any]] = {**PENALISED, **KERNEL_MACHINES, **MULTICLASS}
# of other classifiers, whatever they are
META_ESTIMATORS: dict[str, Callable[..., Any]] = {
    name: make for name, make in _MODELS.items() if name not in ESTIMATORS
}

# -- whole problems ---------------------------------------------------------------------------


def binary_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    *,
    n: int = 40,
    p: int = 6,
    weights: np.ndarray | None = None,
) -> Problem:
    """Two overlapping Gaussian classes."""
    signs = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p)) + 0.5 * signs[:, None] * (np.arange(p) < 3) + 0.3
    weights = np.ones(n) if weights is None else weights
    loss = MarginSum(
        phi or HuberizedHinge(),
        signs[:, None],
        (weights / weights.sum())[:, None],
        float(weights.sum()),
    )
    return Problem(loss, penalty or ElasticNet(0.02, 0.01), DenseDesign(X), intercept or Ridge())


def multiclass_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: ElasticNet | None = None,
    intercept: Penalty | None = None,
    *,
    n: int = 45,
    p: int = 5,
    weights: np.ndarray | None = None,
) -> Problem:
    """Three overlapping Gaussian classes, all together."""
    codes = np.arange(n) % 3
    X = rng.standard_normal((n, p)) + (np.arange(p) == codes[:, None])
    weights = np.ones(n) if weights is None else weights
    loss = wrong_classes(
        phi or HuberizedHinge(), codes, weights / weights.sum(), 3, float(weights.sum())
    )
    return Problem(
        loss,
        SumToZero(penalty or ElasticNet(0.02, 0.01)),
        DenseDesign(X),
        intercept or SumToZero(ElasticNet(0.0, 0.0)),
    )


def ridge_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`binary_problem` with a ridge: of the penalty nothing but its ridge part is taken."""
    l2 = 0.02 if penalty is None else penalty.l2
    return binary_problem(rng, phi, Ridge(l2), intercept, **shape)


def ball_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`binary_problem` in a Euclidean ball, whatever the penalty: `DistanceWeighted` by default."""
    return binary_problem(rng, phi or DistanceWeighted(0.5), Ball(2.0, 0.8), intercept, **shape)


def hinge_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`ridge_problem` with the hinge."""
    return ridge_problem(rng, Hinge(), penalty, intercept, **shape)


def hinge_net_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`binary_problem` with the hinge."""
    return binary_problem(rng, Hinge(), penalty, intercept, **shape)


def tall_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`binary_problem` of many samples of few features."""
    return binary_problem(rng, phi, penalty, intercept, **{"n": 400, **shape})


def tail_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`ridge_problem` with the mean of the smallest margins: the nu-SVM of separable classes."""
    return _coupled_problem(rng, lambda *of: TailMean(*of[:2], 0.3, of[2]), penalty, intercept)


def smooth_ball_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`ball_problem` in a ball that is not Euclidean."""
    return binary_problem(rng, phi or DistanceWeighted(0.5), Ball(1.5, 0.8), intercept, **shape)


def hinge_ball_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`binary_problem` with the hinge in a ball that is not Euclidean, whatever the penalty."""
    return binary_problem(rng, phi or Hinge(), Ball(1.5, 0.8), intercept, **shape)


def tail_ball_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`tail_problem` in a ball."""
    return replace(tail_problem(rng, phi, penalty, intercept), penalty=Ball(3.0, 2.0))


def fisher_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """MM-FDA of separable classes."""
    return _coupled_problem(rng, lambda *of: MinimaxFisher(*of[:2], 0.5, of[2]), penalty, intercept)


def probability_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """MM-MPM of separable classes."""
    return _coupled_problem(
        rng, lambda *of: MinimaxProbability(*of[:2], 0.5, of[2]), penalty, intercept
    )


def _coupled_problem(
    rng: np.random.Generator,
    loss_of: Callable[[np.ndarray, np.ndarray, float], Loss],
    penalty: Penalty | None,
    intercept: Penalty | None,
) -> Problem:
    signs = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((40, 6)) + 1.5 * signs[:, None] * (np.arange(6) < 3) + 0.3
    l2 = 0.5 if penalty is None else penalty.l2
    loss = loss_of(signs, np.full(40, 1 / 40), 40.0)
    return Problem(loss, Ridge(l2), DenseDesign(X), intercept or Ridge())


def class_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    *,
    n: int = 45,
    p: int = 5,
    weights: np.ndarray | None = None,
) -> Problem:
    """`multiclass_problem` with the hinge of the worst class, whatever ``phi``."""
    codes = np.arange(n) % 3
    X = rng.standard_normal((n, p)) + (np.arange(p) == codes[:, None])
    weights = np.ones(n) if weights is None else weights
    return Problem(
        CrammerSinger(codes, weights / weights.sum(), 3, float(weights.sum())),
        penalty or ElasticNet(0.02, 0.01),
        DenseDesign(X),
        intercept or SumToZero(ElasticNet(0.0, 0.0)),
    )


def class_l1_problem(rng: np.random.Generator) -> Problem:
    """`class_problem` with an l1 norm."""
    return replace(class_problem(rng), penalty=ElasticNet(0.02))


def level_set_problem(rng: np.random.Generator) -> Problem:
    """`ridge_problem` with the huberized hinge within a budget."""
    inner = ridge_problem(rng)
    scores = np.tile(inner.null_point().intercept, (inner.design.n_samples, 1))
    return replace(inner, loss=LevelSet(inner.loss, 0.6 * inner.loss.value(scores), 1.0))


# solvers of losses and penalties of their own: what makes them, and what makes a problem they take
SPECIAL_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "fbpd": (NAMED["fbpd"], hinge_problem),
    "fbpd with restarts": (lambda: NAMED["fbpd"](restarts=True, relaxation=1.8), ridge_problem),
    "ridge-newton": (NAMED["ridge-newton"], ridge_problem),
    "tall-newton": (NAMED["tall-newton"], tall_problem),
    "ball-newton": (NAMED["ball-newton"], ball_problem),
    "ball-newton, another norm": (NAMED["ball-newton"], smooth_ball_problem),
    "b-pgh-fapg-star": (NAMED["b-pgh-fapg-star"], ball_problem),
    "hinge-newton": (NAMED["hinge-newton"], hinge_net_problem),
    "hinge-newton, ridge": (NAMED["hinge-newton"], hinge_problem),
    "isvm1": (NAMED["isvm1"], hinge_net_problem),
    "isvm2": (NAMED["isvm2"], hinge_net_problem),
    "isvm3": (NAMED["isvm3"], hinge_net_problem),
    "admm": (NAMED["admm"], hinge_net_problem),
    "interior-point": (NAMED["interior-point"], hinge_problem),
    "interior-point, tail mean": (NAMED["interior-point"], tail_problem),
    "net-interior-point": (NAMED["net-interior-point"], hinge_net_problem),
    "net-interior-point, ridge": (NAMED["net-interior-point"], hinge_problem),
    "ball-interior-point": (NAMED["ball-interior-point"], hinge_ball_problem),
    "ball-interior-point, tail mean": (NAMED["ball-interior-point"], tail_ball_problem),
    "fisher-secular": (NAMED["fisher-secular"], fisher_problem),
    "probability-newton": (NAMED["probability-newton"], probability_problem),
    # the accelerated methods on the dual side
    "apg on the dual": (NAMED["apg"], hinge_problem),
    "fapg-guaranteed on the dual": (NAMED["fapg-guaranteed"], ridge_problem),
    "fapg on the dual": (NAMED["fapg"], hinge_problem),
    "fapg-star on the dual": (NAMED["fapg-star"], ball_problem),
    "fapg-star on the dual, tail mean": (NAMED["fapg-star"], tail_problem),
}


# solvers of losses that couple the classes of a sample
CLASS_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "multiplier-newton": (NAMED["multiplier-newton"], class_problem),
    "linear-program": (NAMED["linear-program"], class_l1_problem),
    "ssnal": (NAMED["ssnal"], class_problem),
    "ssnal-ws": (NAMED["ssnal-ws"], class_problem),
    "fbpd-ssnal": (NAMED["fbpd-ssnal"], class_problem),
    "fapg-ssnal": (NAMED["fapg-ssnal"], multiclass_problem),
    "fapg-ssnal-ws": (NAMED["fapg-ssnal-ws"], multiclass_problem),
}


def kernel_problem(rng: np.random.Generator) -> Problem:
    """A hinge over the matrix of a kernel: `certify_represented` is its certificate."""
    problem = hinge_problem(rng)
    matrix = kernel_matrix(Rbf(0.2), rng.standard_normal((problem.design.n_samples, 3)))
    return replace(problem, design=KernelDesign(matrix))


# solvers of kernel matrices, tested in tests/solvers/box/test_decomposition.py
KERNEL_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "decomposition": (NAMED["decomposition"], kernel_problem),
}
# solvers of losses within a budget, tested in tests/solvers/wrappers/test_cutting_planes.py
BUDGET_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "cutting-planes": (NAMED["cutting-planes"], level_set_problem),
}
