"""Figures 3 and 4 of Chierchia et al. (2015): seconds of their algorithms and of rivals."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.multiclass_data import Split, load_split
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.curves import MODELS, SIDE, of_scattering, scattering_groups
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.peers.cutting_planes import cutting_planes
from benchmarks.peers.linear_constraints import linear_constraints
from benchmarks.peers.proximal_gradient import LOGIT, SQUARE, proximal_gradient
from benchmarks.report import seconds, table
from proxmargin import MulticlassSVC, critical_C
from proxmargin.penalties import GroupLinf, Groups

__all__ = ["TABLES"]

CLASSES = 10
CHANGE = 1e-5  # relative, of two iterates: the criterion of Figure 3
LOOSE = 1e-3  # that of Figure 4
SHARES = (3.0, 30.0)  # of the least C with coefficients
SCALES = (1.0, 10.0, 100.0)  # C of a quadratic penalty, over one over the mean squared norm
PANELS = {Size.SMALL: (3,), Size.FULL: (3, 5, 10)}
DRAWS = {Size.SMALL: 1, Size.FULL: 10}
MOST = {Size.SMALL: 3000, Size.FULL: 50_000}  # iterations
QUADRATIC_PANELS = {Size.SMALL: (3, 10, 50), Size.FULL: (3, 5, 10, 50, 100)}
COMPARABLE = 3.0  # a ratio of seconds up to which two methods are


class Timed(NamedTuple):
    """A run: its seconds and iterations; whether the criterion was met before the most of them."""

    seconds: float
    iterations: int
    met: bool


Method = Callable[[], tuple[int, bool]]


def _timed(method: Method) -> Timed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that ends early is marked
        start = time.process_time()
        iterations, met = method()
        return Timed(time.process_time() - start, iterations, met)


def _shown(one: Timed) -> str:
    return f"{'' if one.met else '> '}{seconds(one.seconds)} ({one.iterations})"


def _split(each: int, draw: int) -> Split:
    split = load_split(f"mnist:{each * CLASSES}", draw)
    none = slice(0, 1)  # nothing is tested
    return of_scattering(Split(split.name, split.X, split.y, split.X_test[none], split.y_test))


def _own(model: MulticlassSVC, split: Split, most: int, change: float) -> Method:
    """FBPD as printed, stopped by the change of its iterates."""
    model.set_params(solver="fbpd", stopping="iterate-change", tol=change, max_iter=most)

    def run() -> tuple[int, bool]:
        told = model.fit(split.X, split.y).certificate_
        return told.n_iter, told.n_iter < most

    return run


def _losses(model: MulticlassSVC, split: Split) -> float:
    """The sum of the hinges of a fitted model."""
    scores = model.decision_function(split.X)
    rows, codes = np.arange(split.y.size), np.searchsorted(model.classes_, split.y)
    margins = 1.0 + scores - scores[rows, codes][:, None]
    margins[rows, codes] = 0.0
    return float(margins.max(axis=1).sum())


# ---- Figure 3 -----------------------------------------------------------------------------------


def _sparse(split: Split, share: float, most: int) -> dict[str, Timed]:
    """Of each method, at so many times the least C with coefficients of its loss."""
    groups = scattering_groups()
    common: dict[str, Any] = {"penalty": "group_linf", "groups": groups}
    strengths = {
        name: share * float(critical_C(MulticlassSVC(loss=loss, **common), split.X, split.y))
        for name, loss in MODELS.items()
    }
    C = strengths["hinge"]
    eta = _losses(MulticlassSVC(C=C, tol=1e-4, **common).fit(split.X, split.y), split)
    codes = np.unique(split.y, return_inverse=True)[1]
    norm = float(np.linalg.norm(np.column_stack([split.X, np.ones(codes.size)]), 2))
    penalty = GroupLinf(Groups.within_classes(groups))

    def linear() -> tuple[int, bool]:
        widened = np.sqrt(CLASSES) * norm
        n = linear_constraints(split.X, codes, penalty, eta, CHANGE, most, widened).iterations
        return n, n < most

    def smooth(name: str) -> Method:
        loss = SQUARE if name == "square" else LOGIT

        def run() -> tuple[int, bool]:
            args = (split.X, codes, loss, penalty, strengths[name], CHANGE, most, norm)
            n = proximal_gradient(*args, accelerated=name == "square").iterations
            return n, n < most

        return run

    methods = {
        "Algorithm 1": _own(MulticlassSVC(C=C, **common), split, most, CHANGE),
        "Algorithm 2": _own(MulticlassSVC(C=None, eta=eta, **common), split, most, CHANGE),
        "FBPD, linear constraints": linear,
        "square, FISTA": smooth("square"),
        "logit, forward-backward": smooth("logit"),
    }
    return {name: _timed(method) for name, method in methods.items()}


def _figure_3(size: Size) -> Outcome:
    rows, totals = [], {}
    for each in PANELS[size]:
        for share in SHARES:
            draws = [_sparse(_split(each, d), share, MOST[size]) for d in range(DRAWS[size])]
            rows.append([str(each), f"{share:g}", *_means(draws)])
            _add(totals, draws)
            print(f"L/K {each}, {share:g}: {rows[-1]}", flush=True)
    ours = [totals["Algorithm 1"], totals["Algorithm 2"]]
    slower = [totals["FBPD, linear constraints"], totals["logit, forward-backward"]]
    square = totals["square, FISTA"]
    ratio = min(ours) / square
    claims = [
        Claim(
            "both algorithms are faster than linear constraints and logistic regression",
            max(ours) < min(slower),
            f"{_list(ours)} against {_list(slower)} s",
        ),
        Claim(
            f"they take about as long as the square (within a factor of {COMPARABLE:g})",
            1.0 / COMPARABLE <= ratio <= COMPARABLE,
            f"{ratio:.2g} times",
        ),
        Claim("Algorithm 2 is faster than Algorithm 1", ours[1] < ours[0], f"{_list(ours)} s"),
    ]
    head = ["L/K", "C over the least", *totals]
    said = f"CPU seconds (iterations), means of {DRAWS[size]} draws\n\n{table(head, rows)}"
    return judged(said, claims)


# ---- Figure 4 -----------------------------------------------------------------------------------


def _quadratic(split: Split, scale: float, most: int) -> dict[str, Timed]:
    C = scale / float(np.square(split.X).sum(axis=1).mean())
    common: dict[str, Any] = {"penalty": "l2"}
    exact = MulticlassSVC(C=C, tol=LOOSE, **common)
    eta = _losses(MulticlassSVC(C=C, tol=1e-4, **common).fit(split.X, split.y), split)
    codes = np.unique(split.y, return_inverse=True)[1]
    wide = np.column_stack([split.X, np.ones(codes.size)])

    def struct() -> tuple[int, bool]:
        cuts = cutting_planes(wide, codes, C * codes.size, LOOSE, most).cuts
        return cuts, cuts < most

    def auto() -> tuple[int, bool]:
        told = exact.fit(split.X, split.y).certificate_
        return told.n_iter, told.converged

    methods = {
        "Algorithm 1": _own(MulticlassSVC(C=C, **common), split, most, LOOSE),
        "Algorithm 2": _own(MulticlassSVC(C=None, eta=eta, **common), split, most, LOOSE),
        "SVM-struct": struct,
        "auto, gap 1e-3": auto,
    }
    return {name: _timed(method) for name, method in methods.items()}


def _figure_4(size: Size) -> Outcome:
    rows, panels = [], {}
    for each in QUADRATIC_PANELS[size]:
        panels[each] = totals = {}
        for scale in SCALES:
            draws = [_quadratic(_split(each, d), scale, MOST[size]) for d in range(DRAWS[size])]
            rows.append([str(each), f"{scale:g}", *_means(draws)])
            _add(totals, draws)
            print(f"L/K {each}, {scale:g}: {rows[-1]}", flush=True)
    few, many = min(panels), max(panels)
    ours = {each: min(panels[each]["Algorithm 1"], panels[each]["Algorithm 2"]) for each in panels}
    struct = {each: panels[each]["SVM-struct"] for each in panels}
    claims = [
        Claim(
            "with few samples the algorithms are competitive with SVM-struct"
            f" (within a factor of {COMPARABLE:g})",
            ours[few] <= COMPARABLE * struct[few],
            f"L/K = {few}: {seconds(ours[few])} against {seconds(struct[few])} s",
        ),
        Claim(
            "SVM-struct gains with the number of samples",
            ours[many] / struct[many] > ours[few] / struct[few],
            f"seconds over those of SVM-struct: {ours[few] / struct[few]:.2g} at L/K = {few},"
            f" {ours[many] / struct[many]:.2g} at {many}",
        ),
    ]
    head = ["L/K", "C |x|^2", *panels[few]]
    said = f"CPU seconds (iterations), means of {DRAWS[size]} draws\n\n{table(head, rows)}"
    return judged(said, claims)


def _means(draws: Sequence[dict[str, Timed]]) -> list[str]:
    cells = []
    for name in draws[0]:
        runs = [draw[name] for draw in draws]
        mean, count = (float(np.mean([run[part] for run in runs])) for part in (0, 1))
        cells.append(_shown(Timed(mean, round(count), all(run.met for run in runs))))
    return cells


def _add(totals: dict[str, float], draws: Sequence[dict[str, Timed]]) -> None:
    for draw in draws:
        for name, run in draw.items():
            totals[name] = totals.get(name, 0.0) + run.seconds


def _list(values: Sequence[float]) -> str:
    return ", ".join(seconds(value) for value in values)


FEATURES = 81 * (SIDE // 2) ** 2
DATA = f"MNIST, {FEATURES} scattering coefficients in groups of 81, drawn as many of each class"
TABLES = {
    "CF3": PaperTable(
        "Figure 3 of Chierchia et al.: seconds of the algorithms",
        f"""{DATA}; l_1,inf norm; stopped at a relative change of the iterate of {CHANGE:g}, as
printed ({DRAWS[Size.FULL]} draws there), or after {MOST[Size.SMALL]} (full size:
{MOST[Size.FULL]}) iterations, marked by ">". Inferred: two strengths, multiples of the least C with
coefficients of each loss; eta of Algorithm 2 is the sum of the hinges at the optimum of Algorithm
1, so that both have the same one; constant steps of the rivals.""",
        (2.0, 300.0),
        _figure_3,
    ),
    "CF4": PaperTable(
        "Figure 4 of Chierchia et al.: a quadratic penalty, and SVM-struct",
        f"""{DATA}; stopped at {LOOSE:g}, as printed: the relative change of the iterate, or
SVM-struct's epsilon. SVM-struct is the 1-slack cutting-plane method of Joachims et al. (2009) in
NumPy, with a column of ones for the offsets. Inferred: C of a sum over one over the mean squared
norm of the samples. L/K of 500 is left out at either size.""",
        (3.0, 120.0),
        _figure_4,
    ),
}
