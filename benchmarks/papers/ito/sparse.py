"""Figures 11 and 12 of Ito et al. (2017): models with an l1 norm, against LIBLINEAR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.datasets import DataSet, Floats
from benchmarks.family_data import load_scaled
from benchmarks.objective import Logistic, MarginLoss, SquaredHinge
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.ito.agreement import OUR_CHECK, tested
from benchmarks.papers.ito.fapg import EPSILON, Recorded, ended_well, timed
from benchmarks.papers.ito.rivals import COMPETITIVE, LATE, shown
from benchmarks.papers.ito.scaling import FAPG, Panel, Shapes, lines, sketched
from benchmarks.papers.table import Outcome, PaperTable, Size
from proxmargin import SparseLogisticRegression, SquaredHingeSVC

__all__ = ["TABLES"]

C = 1.0  # where it is not what varies: not printed
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
SHAPES = {
    Size.SMALL: Shapes((10, 100, 300), (300, 1000, 3000), 1000, 50, 50),
    Size.FULL: Shapes((10, 100, 1000), (1000, 10_000, 63_000), 10_000, 1000, 100),
}
MOST = {Size.SMALL: 50_000, Size.FULL: 200_000}  # iterations
PASSES = 2000  # of LIBLINEAR
LIBLINEAR = "LIBLINEAR"
PRINTED = "Algorithm 4 as printed"
EQUAL = 1e-9  # relative difference of objectives that counts as none


@dataclass(frozen=True)
class Model:
    """(27) or (28), its estimator and LIBLINEAR's."""

    loss: MarginLoss
    ours: Any
    rival: Any


class Solved(NamedTuple):
    """Seconds, infinite without an end, and the objective of what was found."""

    seconds: float
    objective: float


def _logistic(C: float) -> Any:
    return LogisticRegression(
        C=C, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=EPSILON, max_iter=PASSES
    )


def _squared(C: float) -> Any:
    return LinearSVC(
        C=C, penalty="l1", dual=False, fit_intercept=False, tol=EPSILON, max_iter=PASSES
    )


MODELS = {
    "IF11": Model(Logistic(), SparseLogisticRegression, _logistic),
    "IF12": Model(SquaredHinge(), SquaredHingeSVC, _squared),
}


def _solved(model: Model, data: DataSet, strength: float, most: int) -> dict[str, Solved]:
    """By each method. The library's objective is the paper's over C m: so is the residual."""
    price = strength * data.labels.size
    found = {}
    for name, as_printed in ((PRINTED, True), (FAPG, False)):
        ours = model.ours(
            alpha=1.0 / price,
            l1_ratio=1.0,
            fit_intercept=False,
            solver=Recorded(scaled=False, as_printed=as_printed),
            stopping="fixed-point",
            tol=EPSILON / price,
            max_iter=most,
        )
        taken = timed(partial(ours.fit, data.design, data.labels))
        value = _objective(model.loss, data, ours.coef_[0], strength)
        found[name] = Solved(taken if ended_well(ours.certificate_) else LATE, value)
    rival = model.rival(strength)
    taken = timed(partial(rival.fit, data.design, data.labels))
    value = _objective(model.loss, data, rival.coef_[0], strength)
    found[LIBLINEAR] = Solved(taken if np.max(rival.n_iter_) < PASSES else LATE, value)
    return found


def _objective(loss: MarginLoss, data: DataSet, coef: Floats, strength: float) -> float:
    losses = loss.value(data.labels * (data.design @ coef))
    return strength * float(losses.sum()) + float(np.abs(coef).sum())


def _figure(model: Model, size: Size) -> Outcome:
    shapes = SHAPES[size]
    plans = {
        "n": [(n, load_scaled(f"artificial:{shapes.m},{n}"), C) for n in shapes.features],
        "m": [(m, load_scaled(f"artificial:{m},{shapes.n}"), C) for m in shapes.samples],
        "C": [
            (strength, load_scaled(f"artificial:{shapes.m},{shapes.narrow}"), strength)
            for strength in STRENGTHS
        ],
    }
    found, everything = [], []
    for label, points in plans.items():
        here = []
        for x, data, strength in points:
            here.append(_solved(model, data, strength, MOST[size]))
            told = ", ".join(f"{name} {shown(one.seconds)}" for name, one in here[-1].items())
            print(f"{data.name}, {label} {x:g}: {told}", flush=True)
        times = {name: [one[name].seconds for one in here] for name in here[0]}
        found.append(Panel(label, [x for x, _, _ in points], times))
        everything += here
    body = "\n\n".join(lines(one) for one in found)
    return judged(body, _claims(found, everything, size), picture=sketched(found))


def _claims(
    found: Sequence[Panel], everything: Sequence[dict[str, Solved]], size: Size
) -> list[Claim]:
    """At the small size a fit that is late decides nothing: its limit is ours."""
    cut = size is Size.SMALL
    ended = [one[PRINTED].seconds != LATE for one in everything]
    best, worst = (_median_ratio(everything, late) for late in ((0.0 if cut else LATE), LATE))
    competes = worst <= COMPETITIVE
    ours, theirs = (_spread(found[-1].seconds[name]) for name in (FAPG, LIBLINEAR))
    steady = None if cut and LATE in found[-1].seconds[FAPG] else ours <= theirs
    return [
        Claim(
            f"Algorithm 4 converges {OUR_CHECK}",
            None if cut and not all(ended) else all(ended),
            f"on {sum(ended)} of {len(ended)}",
        ),
        _objectives(everything, cut),
        Claim(
            f"it is competitive (within {COMPETITIVE:g} times the seconds, in the median)",
            competes if competes == (best <= COMPETITIVE) else None,
            f"{worst:.2g} times, a late fit as infinite",
        ),
        Claim(
            "its time changes less with C than LIBLINEAR's",
            steady,
            f"largest over smallest: {ours:.2g} and {theirs:.2g}",
        ),
    ]


def _objectives(everything: Sequence[dict[str, Solved]], cut: bool) -> Claim:
    """On the data where both ended, if late fits decide nothing."""
    pairs = [(one[FAPG], one[LIBLINEAR]) for one in everything]
    both = [pair for pair in pairs if LATE not in (pair[0].seconds, pair[1].seconds)]
    judged_ones = both if cut else pairs
    better = [
        one.objective <= other.objective + EQUAL * abs(other.objective)
        for one, other in judged_ones
    ]
    complete = not cut or len(both) == len(pairs)
    told = f"on {sum(better)} of {len(better)}"
    return Claim(
        f"{FAPG} finds solutions with no worse objective than LIBLINEAR on all data",
        tested(all(better), better) if complete or not all(better) else None,
        told if complete else f"{told} where both ended, of {len(pairs)}",
    )


def _median_ratio(everything: Sequence[dict[str, Solved]], late: float) -> float:
    """Of the seconds to LIBLINEAR's where it ended, those of a late fit set to ``late``."""
    pairs = [(one[FAPG].seconds, one[LIBLINEAR].seconds) for one in everything]
    ratios = [(late if a == LATE else a) / b for a, b in pairs if b != LATE]
    return float(np.median(ratios)) if ratios else 0.0


def _spread(times: Sequence[float]) -> float:
    return float(max(times) / min(times))


TITLES = {
    "IF11": "Figure 11 of Ito et al.: l1 logistic regression",
    "IF12": "Figure 12 of Ito et al.: l1 squared-hinge SVM",
}
TABLES = {
    name: PaperTable(
        title,
        f"""Algorithm 4 on the primal side in the coordinates of the data, from the origin, with
epsilon = 1e-6, as printed, or {MOST[Size.SMALL]:,} (full size: {MOST[Size.FULL]:,}) iterations;
LIBLINEAR's newGLMNET or coordinate descent to 1e-6; neither has an intercept. `FAPG` decreases
L only where it is tested, as in Table 4. The figure has no
numbers: its sentences are held against ours. Inferred: artificial data of section 5 with the shapes
of Figure 7 (at the small size m = {SHAPES[Size.SMALL].m:,}, n = {SHAPES[Size.SMALL].n}); C = {C:g}
where it does not vary; L_0 is the bound of the samples over m; {COMPETITIVE:g} times the seconds
as competitive. CPU seconds; "late": over a limit of iterations, which at the small size is ours
and decides no claim.""",
        (0.5, 30.0),
        partial(_figure, MODELS[name]),
    )
    for name, title in TITLES.items()
}
