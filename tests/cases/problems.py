"""Small problems, and the solvers made for each kind, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from proxmargin.data.designs import DenseDesign
from proxmargin.data.kernels import Rbf
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign
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
    TailMean,
    wrong_classes,
)
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.penalties import (
    Ball,
    ElasticNet,
    Penalty,
    Ridge,
    SumToZero,
)
from proxmargin.solvers.choice.names import SOLVERS as NAMED


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


def wide_hinge_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`hinge_problem` with more features than samples."""
    return hinge_problem(rng, phi, penalty, intercept, **{"p": 60, **shape})


def wide_logistic_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`ridge_problem` with the logistic loss and more features than samples."""
    return ridge_problem(rng, Logistic(), penalty, intercept, **{"p": 60, **shape})


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


def plain_tall_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`tall_problem` with a free or a pinned intercept, whatever its ridge."""
    plain = intercept if intercept is not None and intercept.is_pinned else None
    return tall_problem(rng, phi, penalty, plain, **shape)


def tail_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`ridge_problem` with the mean of the smallest margins: the nu-SVM of separable classes."""
    of_nu = lambda *of: TailMean(*of[:2], 0.3, of[2])  # noqa: E731
    return _coupled_problem(rng, of_nu, penalty, intercept, p=shape.get("p", 6))


def wide_tail_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`tail_problem` with more features than samples."""
    return tail_problem(rng, phi, penalty, intercept, p=60)


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
    *,
    p: int = 6,
) -> Problem:
    signs = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((40, p)) + 1.5 * signs[:, None] * (np.arange(p) < 3) + 0.3
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


def smooth_class_problem(
    rng: np.random.Generator,
    phi: MarginLoss | None = None,
    penalty: Penalty | None = None,
    intercept: Penalty | None = None,
    **shape: Any,
) -> Problem:
    """`class_problem` with the multinomial loss."""
    problem = class_problem(rng, phi, penalty, intercept, **shape)
    loss = problem.loss
    assert isinstance(loss, CrammerSinger)
    return replace(problem, loss=Multinomial(loss.codes, loss.shares, 3, loss.total))


def class_l1_problem(rng: np.random.Generator) -> Problem:
    """`class_problem` with an l1 norm."""
    return replace(class_problem(rng), penalty=ElasticNet(0.02))


def level_set_problem(rng: np.random.Generator) -> Problem:
    """`ridge_problem` with the huberized hinge within a budget."""
    inner = ridge_problem(rng)
    scores = np.tile(null_point(inner).intercept, (inner.design.n_samples, 1))
    return replace(inner, loss=LevelSet(inner.loss, 0.6 * inner.loss.value(scores), 1.0))


def class_budget_problem(rng: np.random.Generator) -> Problem:
    """`class_problem` with the hinge of the worst class within a budget."""
    inner = class_problem(rng)
    return replace(inner, loss=LevelSet(inner.loss, 0.6, 1.0))


# solvers of losses and penalties of their own: what makes them, and what makes a problem they take
SPECIAL_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "fbpd": (NAMED["fbpd"], hinge_problem),
    "fbpd with restarts": (lambda: NAMED["fbpd"](restarts=True, relaxation=1.8), ridge_problem),
    "ridge-newton": (NAMED["ridge-newton"], ridge_problem),
    "ridge-newton, few samples": (NAMED["ridge-newton"], wide_logistic_problem),
    "pass-newton": (NAMED["pass-newton"], tall_problem),
    "chord-newton": (NAMED["chord-newton"], plain_tall_problem),
    "ball-newton": (NAMED["ball-newton"], ball_problem),
    "ball-newton, another norm": (NAMED["ball-newton"], smooth_ball_problem),
    "multiplier-newton, two classes": (NAMED["multiplier-newton"], hinge_net_problem),
    "multiplier-newton, ridge": (NAMED["multiplier-newton"], hinge_problem),
    "isvm1": (NAMED["isvm1"], hinge_net_problem),
    "isvm2": (NAMED["isvm2"], hinge_net_problem),
    "isvm3": (NAMED["isvm3"], hinge_net_problem),
    "admm": (NAMED["admm"], hinge_net_problem),
    "dual-coordinate-descent": (NAMED["dual-coordinate-descent"], hinge_problem),
    "active-set": (NAMED["active-set"], wide_hinge_problem),
    "active-set, tail mean": (NAMED["active-set"], wide_tail_problem),
    "interior-point": (NAMED["interior-point"], hinge_problem),
    "interior-point, at once": (lambda: NAMED["interior-point"](at_once=True), hinge_problem),
    "interior-point, tail mean": (NAMED["interior-point"], tail_problem),
    "interior-point, elastic net": (NAMED["interior-point"], hinge_net_problem),
    "interior-point, ball": (NAMED["interior-point"], hinge_ball_problem),
    "interior-point, tail mean in a ball": (NAMED["interior-point"], tail_ball_problem),
    "minimax-newton": (NAMED["minimax-newton"], fisher_problem),
    "minimax-newton, MM-MPM": (NAMED["minimax-newton"], probability_problem),
    # the accelerated methods on the dual side
    "apg on the dual": (NAMED["apg"], hinge_problem),
    "fapg-guaranteed on the dual": (NAMED["fapg-guaranteed"], ridge_problem),
    "fapg on the dual": (NAMED["fapg"], hinge_problem),
    "fapg-star on the dual": (NAMED["fapg-star"], ball_problem),
    "fapg-star on the dual, tail mean": (NAMED["fapg-star"], tail_problem),
}


# solvers of losses that couple the classes of a sample
CLASS_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "class-newton": (NAMED["class-newton"], smooth_class_problem),
    "fista": (NAMED["fista"], smooth_class_problem),
    "forward-backward": (NAMED["forward-backward"], smooth_class_problem),
    "multiplier-newton": (NAMED["multiplier-newton"], class_problem),
    "linear-program": (NAMED["linear-program"], class_l1_problem),
    "ssnal": (NAMED["ssnal"], class_problem),
    "ssnal on a working set": (partial(NAMED["ssnal"], working_set=True), class_problem),
    "fapg-ssnal": (NAMED["fapg-ssnal"], multiclass_problem),
    "fapg-ssnal on a working set": (
        partial(NAMED["fapg-ssnal"], working_set=True),
        multiclass_problem,
    ),
    "fapg-ssnal after fbpd": (partial(NAMED["fapg-ssnal"], first="fbpd"), class_problem),
}


def kernel_problem(rng: np.random.Generator) -> Problem:
    """A hinge over the matrix of a kernel: `certify_represented` is its certificate."""
    problem = hinge_problem(rng)
    matrix = kernel_matrix(Rbf(0.2), rng.standard_normal((problem.design.n_samples, 3)))
    return replace(problem, design=KernelDesign(matrix))


# solvers of kernel matrices, tested in tests/solvers/dual/test_decomposition.py
KERNEL_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "decomposition": (NAMED["decomposition"], kernel_problem),
}
# solvers of losses within a budget, tested in tests/solvers: test_cutting_planes.py,
# papers/test_primal_dual.py
BUDGET_SOLVERS: dict[str, tuple[Callable[[], Any], Callable[..., Problem]]] = {
    "cutting-planes": (NAMED["cutting-planes"], level_set_problem),
    "fbpd-linear": (NAMED["fbpd-linear"], class_budget_problem),
}
