"""Figure 3 of Chierchia et al. (2015): seconds of their algorithms and of rivals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.multiclass_data import Split, load_split
from benchmarks.papers.chierchia.curves import scattering, scattering_groups
from benchmarks.papers.chierchia.models import MODELS
from benchmarks.papers.chierchia.pictures import courses
from benchmarks.papers.chierchia.timing import (
    Spent,
    Told,
    joined,
    losses,
    paired,
    ratio_told,
)
from benchmarks.papers.claims import ALIKE, Claim, decided, faster, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.peers.iterates import Iterate
from benchmarks.peers.linear_constraints import linear_constraints
from benchmarks.peers.primal_dual import budget, penalised
from benchmarks.peers.proximal_gradient import LOGIT, SQUARE, proximal_gradient
from benchmarks.report import seconds, table
from proxmargin import MulticlassSVC, critical_C
from proxmargin.penalties import GroupLinf, Groups

__all__ = ["COMPARABLE", "TABLES", "Race", "judged_races", "raced"]

CLASSES = 10
CHANGE = 1e-5  # relative, of two iterates: the printed criterion
SHARES = (3.0, 30.0)  # of the least C with coefficients
PANELS = {Size.SMALL: (3,), Size.FULL: (3, 5, 10)}
DRAWS = {Size.SMALL: 3, Size.FULL: 3}
MOST = {Size.SMALL: 12_000, Size.FULL: 100_000}  # iterations
EXACT = 1e-8  # relative gap of the optima that give eta and distances
NEAR = 0.1  # relative distance to the optimum to which the right column is judged
MARKS = 1.1  # a factor of the iterations at which distances are told
COMPARABLE = 3.0  # a ratio of seconds up to which two methods are

Case = tuple[int, float]
"""L/K, and C over the least."""
Start = Callable[[], Iterator[Iterate]]


class Race(NamedTuple):
    """A run until the printed criterion.

    Attributes
    ----------
    seconds : CPU time
    iterations : int
    met : whether the criterion was met
    course : seconds and the relative distance to the optimum, at some of the iterations
    """

    seconds: float
    iterations: int
    met: bool
    course: Sequence[tuple[float, float]]

    @property
    def stop(self) -> Spent:
        return Spent(self.seconds, self.met)

    def until(self, distance: float) -> Spent:
        """Until it is so near to the optimum."""
        near = [taken for taken, far in self.course if far <= distance]
        return Spent(near[0], True) if near else Spent(self.seconds, False)


def raced(start: Start, optimum: np.ndarray, change: float, most: int) -> Race:
    """Iterate until the relative change of the coefficients; copies of some are timed, too."""
    steps, kept, mark = start(), [], 1.0
    begun = time.process_time()
    before, count, met = next(steps).coef, 1, False
    while count < most and not met:
        new, count = next(steps).coef, count + 1
        size = float(np.linalg.norm(before))
        met = bool(size > 0 and np.linalg.norm(new - before) <= change * size)
        before = new
        if count >= mark or met:
            kept.append((time.process_time() - begun, new))
            mark = MARKS * count
    taken, whole = time.process_time() - begun, float(np.linalg.norm(optimum))
    course = [(at, float(np.linalg.norm(coef - optimum)) / whole) for at, coef in kept]
    return Race(taken, count, met, course)


def _methods(split: Split, share: float, size: Size) -> dict[str, tuple[Start, np.ndarray]]:
    """At so many times the least C with coefficients of each loss; with the certified optima."""
    groups = scattering_groups(size)
    common: dict[str, Any] = {"penalty": "group_linf", "groups": groups}
    strengths, best = {}, {}
    for name, loss in MODELS.items():
        model = MulticlassSVC(loss=loss, tol=EXACT, **common)
        strengths[name] = share * float(critical_C(model, split.X, split.y))
        best[name] = model.set_params(C=strengths[name]).fit(split.X, split.y)
    eta = losses(best["hinge"].decision_function(split.X), split.y)
    codes = np.unique(split.y, return_inverse=True)[1]
    bare = float(np.linalg.norm(np.column_stack([split.X, np.ones(codes.size)]), 2))
    norm = np.sqrt(CLASSES) * bare
    penalty = GroupLinf(Groups.within_classes(groups))
    data = split.X, codes

    def smooth(name: str) -> Start:
        loss, fast = (SQUARE, True) if name == "square" else (LOGIT, False)
        C = strengths[name]
        return lambda: proximal_gradient(*data, loss, penalty, C, bare, accelerated=fast)

    starts: dict[str, tuple[Start, str]] = {
        OURS[0]: (lambda: penalised(*data, penalty, strengths["hinge"], norm), "hinge"),
        OURS[1]: (lambda: budget(*data, penalty, eta, norm), "hinge"),
        LINEAR: (lambda: linear_constraints(*data, penalty, eta, norm), "hinge"),
        FISTA: (smooth("square"), "square"),
        LOGISTIC: (smooth("logit"), "logit"),
    }
    return {name: (start, best[loss].coef_.T) for name, (start, loss) in starts.items()}


OURS = ("Algorithm 1", "Algorithm 2")
LINEAR = "FBPD, linear constraints"
FISTA = "square, FISTA"
LOGISTIC = "logit, forward-backward"


def _run(size: Size) -> Outcome:
    found: dict[Case, list[dict[str, Race]]] = {}
    for each in PANELS[size]:
        for draw in range(DRAWS[size]):
            split = load_split(f"mnist:{each * CLASSES}", draw)
            X = scattering(split.X, size)
            split = Split(split.name, X, split.y, X, split.y)  # nothing is tested
            for share in SHARES:
                runs = {
                    name: raced(*method, CHANGE, MOST[size])
                    for name, method in _methods(split, share, size).items()
                }
                found.setdefault((each, share), []).append(runs)
                print(f"L/K {each}, {share:g}: {_cells([runs])}", flush=True)
    return judged_races(found, left_out(size))


def left_out(size: Size) -> list[Claim]:
    """What only the full size tells."""
    if size is Size.FULL:
        return []
    left = " and ".join(str(each) for each in PANELS[Size.FULL] if each not in PANELS[size])
    sentence = f"the same with 15,876 features, and for L/K = {left}"
    return [Claim(sentence, None, f"at `--size {Size.FULL.value}`")]


def judged_races(
    found: Mapping[Case, Sequence[Mapping[str, Race]]], left: Sequence[Claim] = ()
) -> Outcome:
    """By the printed criterion (left column) and by the distance to the optimum (right column)."""
    runs = [draw for draws in found.values() for draw in draws]
    stops = [{name: race.stop for name, race in draw.items()} for draw in runs]
    nears = [{name: race.until(NEAR) for name, race in draw.items()} for draw in runs]
    rows = [
        [str(each), f"{share:g}", *_cells(draws)] for (each, share), draws in sorted(found.items())
    ]
    near = [
        [str(each), f"{share:g}", *_near_cells(draws)]
        for (each, share), draws in sorted(found.items())
    ]
    head = ["L/K", "C over the least", *runs[0]]
    said = f"""CPU seconds (iterations) to the criterion, means of the draws; ">" where it was not
met

{table(head, rows)}

CPU seconds to a relative distance of {NEAR:g} to the certified optimum, means of the draws that
reach it; how many of them do

{table(head, near)}

{_of_a_step(runs)}"""
    claims = [
        *_column(stops, "until the criterion"),
        *_column(nears, f"until a distance of {NEAR:g}"),
        *left,
    ]
    drawn = {
        f"L/K = {each}": {name: race.course for name, race in draws[0].items()}
        for (each, share), draws in found.items()
        if share == max(share for _, share in found)
    }
    return judged(said, claims, picture=courses(drawn))


def _column(runs: Sequence[Mapping[str, Spent]], where: str) -> list[Claim]:
    """The sentences of the text, each method against each on the same problems."""
    rivals = [(ours, rival) for ours in OURS for rival in (LINEAR, LOGISTIC)]
    sentence = "both algorithms are faster than linear constraints and logistic regression"
    verdicts = {f"{rival} over {one}": _faster(runs, one, rival) for one, rival in rivals}
    alike = {f"{one} over {FISTA}": _comparable(runs, one) for one in OURS}
    second = _faster(runs, OURS[1], OURS[0])
    return [
        joined(f"{sentence}, {where}", verdicts, main=True),
        joined(
            f"both take about as long as the square (within a factor of {COMPARABLE:g}), {where}",
            alike,
        ),
        joined(f"Algorithm 2 is faster than Algorithm 1, {where}", {"1 over 2": second}),
    ]


def _faster(runs: Sequence[Mapping[str, Spent]], ours: str, rival: str) -> Told:
    pairs, late = paired(runs, ours, rival)
    if pairs is None:
        return None, late
    return faster(*pairs), ratio_told(np.log(pairs[1] / pairs[0]))


def _comparable(runs: Sequence[Mapping[str, Spent]], ours: str) -> Told:
    pairs, late = paired(runs, FISTA, ours)
    if pairs is None:
        return None, late
    logs = np.log(pairs[1] / pairs[0])
    above = decided(logs, np.log(COMPARABLE))
    below = decided(-logs, np.log(COMPARABLE))
    holds = False if above or below else None if None in (above, below) else True
    return holds, ratio_told(logs)


def _cells(draws: Sequence[Mapping[str, Race]]) -> list[str]:
    cells = []
    for name in draws[0]:
        runs = [draw[name] for draw in draws]
        cut = "" if all(run.met for run in runs) else "> "
        steps = round(float(np.mean([run.iterations for run in runs])))
        cells.append(f"{cut}{seconds(float(np.mean([run.seconds for run in runs])))} ({steps})")
    return cells


def _near_cells(draws: Sequence[Mapping[str, Race]]) -> list[str]:
    cells = []
    for name in draws[0]:
        times = [draw[name].until(NEAR) for draw in draws]
        reached = [one.seconds for one in times if one.there]
        mean = seconds(float(np.mean(reached))) if reached else "-"
        cells.append(f"{mean}, {len(reached)} of {len(times)}")
    return cells


def _of_a_step(runs: Sequence[Mapping[str, Race]]) -> str:
    """What an iteration takes, which tells whether the paper's reason applies."""
    each = {
        name: 1e3 * sum(r[name].seconds for r in runs) / sum(r[name].iterations for r in runs)
        for name in runs[0]
    }
    told = ", ".join(f"{taken:.2f} ({name})" for name, taken in each.items())
    ends = {name: [run[name].course[-1][1] for run in runs] for name in OURS}
    far = "; ".join(f"{name} {min(one):.2g} to {max(one):.2g}" for name, one in ends.items())
    return f"""An iteration takes, in ms: {told}. The paper explains that Algorithm 2 is faster by
"the higher computational cost of the projection onto the standard simplex" in Algorithm 1. Here all
projections are compiled, and an iteration of Algorithm 2 takes {each[OURS[1]] / each[OURS[0]]:.2f}
times that of Algorithm 1, so that the number of iterations decides. Where the runs end the
algorithms stand at these relative distances from the certified optimum: {far}. The paper's
distances are to the last iterate of a run, which need not be the optimum."""


TABLES = {
    "CF3": PaperTable(
        "Figure 3 of Chierchia et al.: seconds of the algorithms",
        f"""MNIST, 15,876 scattering coefficients (small size: every other row and column of the
maps, 3,969) in groups of 81; l_1,inf norm; L/K of 3, 5 and 10 (small size: 3); stopped at a
relative change of the iterate of {CHANGE:g}, as printed, or after {MOST[Size.FULL]:,} (small size:
{MOST[Size.SMALL]:,}) iterations. All five methods are bare loops in NumPy with the same products
and compiled projections. "Faster" is by a factor of {ALIKE:g}, over all draws and strengths.
Inferred: tau = sigma = 1 / |T|, with |T|^2 = {CLASSES} |X, 1|^2 (the ratio tau / sigma is not
printed, and decides how soon iterates stop); constant steps of the rivals; two strengths, multiples
of the least C with coefficients of each loss; eta of Algorithm 2 is the sum of the hinges at the
optimum of Algorithm 1, so that both have the same one. The left column is judged by seconds until
the criterion, the right one by those until a relative distance of {NEAR:g} to the certified
optimum, which the picture has for the larger strength.""",
        (6.0, 600.0),
        _run,
        ("3", "3"),
    ),
}
