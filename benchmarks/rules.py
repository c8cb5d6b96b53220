"""`python -m benchmarks rules`: what `solver='auto'` chose, against every named solver."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.multiclass_data import load_split, seen
from benchmarks.report import RESULTS, seconds, table, write_section
from proxmargin.optimality.unpenalised import null_point
from proxmargin.solvers.loop.solver import UnsuitableSolverError

TOL = 1e-6
# auto may be slower than the best named solver by so much
ALLOWED = 1.3
PATIENCE = 2.0  # limit of named solvers, over the time that auto took
LEAST = 0.05  # seconds: the least limit
SHORT = 0.5  # seconds: shorter fits are run again, and the fastest counts
REPEATS = 3  # of short fits
BLOCK = 5
FAMILIES = (
    *("smooth", "formula", "hinge", "balls", "sparse", "small"),
    *("ridge", "kernel", "multiclass", "joint"),
)


@dataclass(frozen=True)
class Case:
    """An estimator, its data, and what to call the two."""

    model: str
    data: str
    estimator: Any
    X: Any
    y: Any


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a fit of auto (20)")
    parser.add_argument("--section", default="rules", help="the section of the results")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    rows: list[Sequence[str]] = []
    ratios: list[float] = []
    for family in arguments.families:
        for case in CASES[family]():
            cells, ratio = _measured(case, arguments)
            rows.append(cells)
            ratios.append(ratio)
            print(" | ".join(cells), flush=True)
            _write(rows, ratios, arguments)
    return 0


def _write(rows: Sequence[Any], ratios: Sequence[float], arguments: argparse.Namespace) -> None:
    arrived = [ratio for ratio in ratios if np.isfinite(ratio)]
    above, late = sum(ratio > ALLOWED for ratio in arrived), len(ratios) - len(arrived)
    text = [
        f"- {arguments.clock} seconds of `fit`, from data to certificate, until the relative gap is"
        f" {TOL:g}; fits below {SHORT:g} s are run {REPEATS} times and the fastest counts. Compiled"
        " code is loaded before.\n"
        f"- Every named solver that takes the problem has {PATIENCE:g} times what auto took;"
        " `second`: the best of them that is not auto's own, where one arrived. `ratio`: auto over"
        " the best.\n"
        f"- auto is slower than {ALLOWED:g} times the best named solver in {above} of"
        f" {len(arrived)} cases; the geometric mean of the ratio is {_mean(arrived):.2f}. In {late}"
        f" more (`-`) auto took over {arguments.limit:g} s.",
        table(["model", "data", "auto chose", "auto", "second", "its time", "ratio"], rows),
    ]
    title = "The rules of `solver='auto'`: measured winners"
    write_section(arguments.section, title, "\n\n".join(text), arguments.results)


def _mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else 1.0


# ---- measuring ----------------------------------------------------------------------------------


def _measured(case: Case, arguments: argparse.Namespace) -> tuple[Sequence[str], float]:
    from proxmargin.solvers.choice.names import suitable

    clock = time.process_time if arguments.clock == "cpu" else time.perf_counter
    (own, used) = _time(case, "auto", arguments.limit, clock)
    if own is None:
        return [case.model, case.data, used, "-", "", "", "-"], np.inf
    others: dict[str, float] = {}
    assembled = case.estimator._assemble(case.X, case.y, None)
    for name in suitable(assembled.problems[0]):
        if name == used:
            continue
        found, _ = _time(case, name, max(PATIENCE * own, LEAST), clock)
        if found is not None:
            others[name] = found
    if not others:
        return [case.model, case.data, used, seconds(own), "", "", "1.00"], 1.0
    second = min(others, key=others.__getitem__)
    ratio = own / min(own, others[second])
    mark = f"**{ratio:.2f}**" if ratio > ALLOWED else f"{ratio:.2f}"
    cells = [case.model, case.data, used, seconds(own), second, seconds(others[second]), mark]
    return cells, ratio


def _time(
    case: Case, solver: str, limit: float, clock: Callable[[], float]
) -> tuple[float | None, str]:
    """The least seconds of fits that converged, or None; and the solver that ended them."""
    model = clone(case.estimator).set_params(solver=solver, tol=TOL, time_limit=2.0 * limit)
    taken = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops early does not count
        try:
            _loaded(case, solver)
        except UnsuitableSolverError:  # of a factor of the kernel, which it does not see before
            return None, solver
        for _ in range(REPEATS):
            start = clock()
            model.fit(case.X, case.y)
            taken.append(clock() - start)
            if not model.certificate_.converged:
                return None, model.certificate_.solver
            if taken[-1] > SHORT:
                break
    best = min(taken)
    return (best if best <= limit else None), model.certificate_.solver


def _loaded(case: Case, solver: str) -> None:
    """Compile, or load what is compiled, outside the clock."""
    clone(case.estimator).set_params(solver=solver, tol=0.1, max_iter=5).fit(case.X, case.y)


# ---- cases --------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _binary(name: str) -> tuple[Any, Any]:
    from benchmarks.datasets import load

    data = load(name)
    return data.design, data.labels


@lru_cache(maxsize=2)
def _multiclass(name: str) -> tuple[Any, Any]:
    split = seen(load_split(name))
    return split.X, split.y


def _smooth() -> Iterator[Case]:
    from proxmargin import HuberizedSVC, SparseLogisticRegression, SquaredHingeSVC

    for share, l1_ratio in ((0.1, 1.0), (0.01, 0.5)):
        yield _balanced(share, l1_ratio)
    for data in ("colon", "leukemia", "a9a", "covtype@20000", "news20", "synthetic:500,50,5,0"):
        for make in (HuberizedSVC, SquaredHingeSVC, SparseLogisticRegression):
            for share, l1_ratio in ((0.1, 1.0), (0.01, 0.5)):
                yield _net(make(), make.__name__, data, share, l1_ratio)


def _formula() -> Iterator[Case]:
    """Losses and penalties put together by hand, a loss by array formulas among them."""
    from proxmargin import MarginClassifier
    from proxmargin.losses import DistanceWeighted, Hinge
    from proxmargin.penalties import Ball, ElasticNet

    for data in ("synthetic:100,5000,5,0", "leukemia", "a9a", "covtype@20000"):
        X, y = _binary(data)
        dwd = MarginClassifier(DistanceWeighted(1.0), ElasticNet(1.0, 0.0))
        strength = 0.1 * _least_strength(dwd, X, y)
        for share in (1.0, 0.5):
            net = ElasticNet(strength * share, strength * (1.0 - share))
            label = f"DistanceWeighted, 0.1 critical, l1_ratio {share:g}"
            yield Case(label, data, clone(dwd).set_params(penalty=net), X, y)
        for loss in (DistanceWeighted(1.0), Hinge()):
            ball = MarginClassifier(loss, Ball(1.5, 1.0))
            yield Case(f"{type(loss).__name__}, ball of l_1.5", data, ball, X, y)


def _least_strength(estimator: Any, X: Any, y: Any) -> float:
    """The l1 strength from which all coefficients are zero."""
    problem = estimator._assemble(X, y, None).problems[0]
    null = null_point(problem)
    scores = problem.design.scores(null.coef) + null.intercept
    dual = problem.loss.value_and_gradient(scores)[1]
    return float(np.abs(problem.design.adjoint(dual)).max())


def _hinge() -> Iterator[Case]:
    from proxmargin import ElasticNetSVC

    for data in ("colon", "leukemia", "a9a"):
        for share, l1_ratio in ((0.1, 1.0), (0.01, 0.5)):
            yield _net(ElasticNetSVC(), "ElasticNetSVC", data, share, l1_ratio)


def _balanced(share: float, l1_ratio: float) -> Case:
    """Classes of equal size: no sample has curvature at zero coefficients."""
    from proxmargin import HuberizedSVC

    rng, y = np.random.default_rng(0), np.repeat([-1.0, 1.0], 1000)
    X = rng.standard_normal((2000, 20)) + 0.5 * y[:, None] * (np.arange(20) < 3)
    return _net_of(HuberizedSVC(), "HuberizedSVC", "equal classes", X, y, share, l1_ratio)


def _net(estimator: Any, name: str, data: str, share: float, l1_ratio: float) -> Case:
    return _net_of(estimator, name, data, *_binary(data), share, l1_ratio)


def _net_of(
    estimator: Any, name: str, data: str, X: Any, y: Any, share: float, l1_ratio: float
) -> Case:
    from proxmargin import alpha_max

    estimator.set_params(l1_ratio=l1_ratio)
    alpha = share * float(alpha_max(estimator, X, y))
    label = f"{name}, {share:g} alpha_max, l1_ratio {l1_ratio:g}"
    return Case(label, data, estimator.set_params(alpha=alpha), X, y)


def _balls() -> Iterator[Case]:
    """Losses with and without a kink in balls of l_p norms, tight and loose."""
    from proxmargin import MarginClassifier
    from proxmargin.losses import Hinge, Logistic, SquaredHinge
    from proxmargin.penalties import Ball

    for data in ("synthetic:500,30,5,0", "synthetic:80,600,5,0"):
        X, y = _binary(data)
        for loss in (Hinge(), SquaredHinge(), Logistic()):
            for p, radius in product((1.5, 3.0), (0.5, 5.0)):
                label = f"{type(loss).__name__}, ball of l_{p:g}, radius {radius:g}"
                yield Case(label, data, MarginClassifier(loss, Ball(p, radius)), X, y)


def _sparse() -> Iterator[Case]:
    """Wide sparse data: the same models as of dense ones."""
    from proxmargin import SVC, ElasticNetSVC, HuberizedSVC, SparseLogisticRegression

    data = "sparse:300,20000,0.005"
    for make in (HuberizedSVC, SparseLogisticRegression, ElasticNetSVC):
        for share, l1_ratio in ((0.3, 1.0), (0.1, 0.5)):
            yield _net(make(), make.__name__, data, share, l1_ratio)
    for C in (0.01, 1.0):
        yield Case(f"SVC, C {C:g}", data, SVC(C=C), *_binary(data))


def _small() -> Iterator[Case]:
    """So few samples that the time is that of what surrounds the iterations."""
    import proxmargin

    data = "synthetic:100,10,5,0"
    for name in ("HuberizedSVC", "SquaredHingeSVC", "SparseLogisticRegression", "ElasticNetSVC"):
        yield _net(getattr(proxmargin, name)(), name, data, 0.1, 0.9)
    for name in RIDGE_MODELS:
        yield Case(name, data, getattr(proxmargin, name)(), *_binary(data))
    yield Case("SVC, rbf", data, proxmargin.SVC(kernel="rbf"), *_binary(data))


def _ridge() -> Iterator[Case]:
    import proxmargin

    for data in ("colon", "leukemia", "a9a", "covtype@20000"):
        X, y = _binary(data)
        for name in RIDGE_MODELS:
            yield Case(name, data, getattr(proxmargin, name)(), X, y)
    X, y = _binary("news20")
    for name in ("SVC", "L2SVC"):
        for C in (0.01, 1.0, 10.0):
            yield Case(f"{name}, C {C:g}", "news20", getattr(proxmargin, name)(C=C), X, y)


RIDGE_MODELS = ("SVC", "L2SVC", "LogisticRegression", "NuSVC", "DWD", "MarginFDA", "MarginMPM")


def _kernel() -> Iterator[Case]:
    import proxmargin

    X, y = _binary("covtype@3000")
    for name in ("SVC", "L2SVC", "LogisticRegression", "NuSVC", "DWD"):
        estimator = getattr(proxmargin, name)(kernel="rbf")
        yield Case(f"{name}, rbf", "covtype@3000", estimator, X, y)


def _worst_class() -> Iterator[Case]:
    from proxmargin import MulticlassSVC, critical_C

    for data in ("leukemia3", "srbct", "mnist:100", "news20:100"):
        X, y = _multiclass(data)
        for penalty in ("l1", "elasticnet", "l2", "group_l2", "group_linf"):
            groups = np.arange(X.shape[1]) // BLOCK if penalty.startswith("group") else None
            model = MulticlassSVC(penalty=penalty, groups=groups)
            least = 1.0 / 30.0 if penalty == "l2" else float(critical_C(model, X, y))
            yield Case(
                f"MulticlassSVC, {penalty}, 3 critical_C", data, model.set_params(C=3 * least), X, y
            )


def _joint() -> Iterator[Case]:
    from proxmargin import HuberizedSVC, MulticlassSVC, SparseLogisticRegression, alpha_max

    for data in ("srbct", "dna", "mnist:1000", "news20:100"):
        X, y = _multiclass(data)
        for l1_ratio, delta in ((0.5, 1.0), (0.99, 0.1)):
            model = HuberizedSVC(l1_ratio=l1_ratio, delta=delta)
            alpha = 0.1 * float(alpha_max(model, X, y))
            label = f"HuberizedSVC, l1_ratio {l1_ratio:g}, delta {delta:g}"
            yield Case(label, data, model.set_params(alpha=alpha), X, y)
        logistic = SparseLogisticRegression(l1_ratio=0.9)
        alpha = 0.1 * float(alpha_max(logistic, X, y))
        yield Case(
            "SparseLogisticRegression, l1_ratio 0.9", data, logistic.set_params(alpha=alpha), X, y
        )
        lee = MulticlassSVC(loss="lee", penalty="l2", C=0.1)
        yield Case("MulticlassSVC, lee, l2", data, lee, X, y)


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "smooth": _smooth,
    "formula": _formula,
    "hinge": _hinge,
    "balls": _balls,
    "sparse": _sparse,
    "small": _small,
    "ridge": _ridge,
    "kernel": _kernel,
    "multiclass": _worst_class,
    "joint": _joint,
}
