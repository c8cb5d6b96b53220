"""Figure 4 of Chierchia et al. (2015): a quadratic penalty, and SVM-struct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.multiclass_data import Split, load_split
from benchmarks.papers.chierchia.curves import scattering
from benchmarks.papers.chierchia.pictures import bars
from benchmarks.papers.chierchia.times import COMPARABLE
from benchmarks.papers.chierchia.timing import End, Method, Timed, losses, mean_cells, own, timed
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.peers.cutting_planes import cutting_planes
from benchmarks.report import seconds, table
from proxmargin import MulticlassSVC

__all__ = ["TABLES", "Quadratic", "judged_quadratic", "methods", "stated"]

CLASSES = 10
LOOSE = 1e-3  # the printed criterion of all methods
SCALES = (1.0, 10.0, 100.0)  # C over one over the mean squared norm
PANELS = {Size.SMALL: (3, 10, 30), Size.FULL: (3, 5, 10, 50, 100)}
DRAWS = {Size.SMALL: 1, Size.FULL: 10}
MOST = {Size.SMALL: 3000, Size.FULL: 50_000}  # iterations
STRUCT = "SVM-struct"
EXACT = 1e-4  # relative gap of the optimum that ends are held against
COMMON: dict[str, Any] = {"penalty": "l2", "fit_intercept": False}

Case = tuple[int, float]
"""L/K, and C over one over the mean squared norm."""


@dataclass(frozen=True)
class Quadratic:
    """``|W|^2 / 2 + C`` times the sum of the hinges, without offsets, which SVM-struct lacks.

    Attributes
    ----------
    best : MulticlassSVC
        Its certified optimum.
    """

    split: Split
    C: float
    best: MulticlassSVC

    def value(self, coef: np.ndarray) -> float:
        scores = self.split.X @ coef.T
        return 0.5 * float(np.square(coef).sum()) + self.C * losses(scores, self.split.y)

    def excess(self, end: End) -> float:
        """Of the value at an end over the least, relative."""
        least = self.value(self.best.coef_)
        return self.value(end.coef) / least - 1.0


def stated(split: Split, scale: float) -> Quadratic:
    C = scale / float(np.square(split.X).sum(axis=1).mean())
    return Quadratic(split, C, MulticlassSVC(C=C, tol=EXACT, **COMMON).fit(split.X, split.y))


def methods(problem: Quadratic, change: float = LOOSE) -> dict[str, Method]:
    """Stopped at this change of the iterates; the others at `LOOSE`."""
    split, C = problem.split, problem.C
    eta = losses(problem.best.decision_function(split.X), split.y)
    codes = np.unique(split.y, return_inverse=True)[1]

    def struct(most: int) -> End:
        found = cutting_planes(split.X, codes, C * codes.size, LOOSE, most)
        return End(found.coef, found.cuts, found.cuts < most)

    def auto(most: int) -> End:
        model = MulticlassSVC(C=C, tol=LOOSE, max_iter=most, **COMMON).fit(split.X, split.y)
        told = model.certificate_
        return End(model.coef_, told.n_iter, told.converged)

    return {
        "Algorithm 1": own(MulticlassSVC(C=C, **COMMON), split, change),
        "Algorithm 2": own(MulticlassSVC(C=None, eta=eta, **COMMON), split, change),
        STRUCT: struct,
        "auto, gap 1e-3": auto,
    }


def _run(size: Size) -> Outcome:
    found: dict[Case, list[dict[str, Timed]]] = {}
    excess: dict[Case, list[dict[str, float]]] = {}
    for each in PANELS[size]:
        for draw in range(DRAWS[size]):
            split = load_split(f"mnist:{each * CLASSES}", draw)
            X = scattering(split.X, size)
            split = Split(split.name, X, split.y, X, split.y)  # nothing is tested
            for scale in SCALES:
                problem = stated(split, scale)
                runs = {n: timed(method, MOST[size]) for n, method in methods(problem).items()}
                found.setdefault((each, scale), []).append(runs)
                excess.setdefault((each, scale), []).append(
                    {name: problem.excess(run.end) for name, run in runs.items()}
                )
                print(f"L/K {each}, {scale:g}: {mean_cells([runs])}", flush=True)
    return judged_quadratic(found, excess)


def judged_quadratic(
    found: Mapping[Case, Sequence[Mapping[str, Timed]]],
    excess: Mapping[Case, Sequence[Mapping[str, float]]],
) -> Outcome:
    """By the seconds at all strengths together."""
    rows, far, panels = [], [], {}
    for (each, scale), draws in sorted(found.items()):
        rows.append([str(each), f"{scale:g}", *mean_cells(draws)])
        over = excess[each, scale]
        means = (np.mean([draw[name] for draw in over]) for name in over[0])
        far.append([str(each), f"{scale:g}", *(f"{mean:.1e}" for mean in means)])
        groups = panels.setdefault(each, {})
        groups[f"{scale:g}"] = {
            name: float(np.mean([draw[name].seconds for draw in draws])) for name in draws[0]
        }
    ratios = {each: _ratio(groups) for each, groups in panels.items()}
    few, many = min(panels), max(panels)
    claims = [
        Claim(
            "with few samples the algorithms are competitive with SVM-struct"
            f" (within a factor of {COMPARABLE:g})",
            ratios[few][0] <= COMPARABLE,
            f"L/K = {few}: {ratios[few][1]} s",
        ),
        Claim(
            "SVM-struct gains with the number of samples",
            ratios[many][0] > ratios[few][0],
            f"seconds over those of SVM-struct: {ratios[few][0]:.2g} at L/K = {few},"
            f" {ratios[many][0]:.2g} at {many}",
        ),
    ]
    head = ["L/K", "C ‖x‖²", *next(iter(found.values()))[0]]
    draws = len(next(iter(found.values())))
    said = f"""CPU seconds (iterations), means of {draws} draws

{table(head, rows)}

Objective over the certified least one, minus one, at the ends

{table(head, far)}"""
    titled = {f"L/K = {each}": groups for each, groups in panels.items()}
    picture = bars(titled, "C |x|^2", "CPU seconds")
    return judged(said, claims, picture=picture)


def _ratio(groups: Mapping[str, Mapping[str, float]]) -> tuple[float, str]:
    """Seconds of the faster algorithm over those of SVM-struct, and both."""
    one, two, struct = (
        sum(group[name] for group in groups.values())
        for name in ("Algorithm 1", "Algorithm 2", STRUCT)
    )
    ours = min(one, two)
    return ours / struct, f"{seconds(ours)} against {seconds(struct)}"


TABLES = {
    "CF4": PaperTable(
        "Figure 4 of Chierchia et al.: a quadratic penalty, and SVM-struct",
        f"""MNIST, 15,876 scattering coefficients (small size: 3,969); stopped at {LOOSE:g}, as
printed: the relative change of the iterate, or SVM-struct's epsilon; L/K of 3, 5, 10, 50 and 100
(small size: 3, 10 and 30), of 500 left out. {DRAWS[Size.FULL]} draws (small size:
{DRAWS[Size.SMALL]}). SVM-struct is the 1-slack cutting-plane method of Joachims et al. (2009) in
NumPy. Inferred: no offsets, which SVM-struct does not have; C of a sum over one over the mean
squared norm of the samples.""",
        (2.0, 300.0),
        _run,
    ),
}
