"""Figures 6, 8 and 10 of Ito et al. (2017): what each strategy does to the course of a fit."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.datasets import DataSet, Floats
from benchmarks.family_data import load_scaled
from benchmarks.papers.claims import WORDS, Claim, judged
from benchmarks.papers.ito import fapg
from benchmarks.papers.ito.agreement import at_full
from benchmarks.papers.ito.logistic import C
from benchmarks.papers.ito.minimax import largest_constant
from benchmarks.papers.ito.roots import with_square_roots
from benchmarks.papers.pictures import panels
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table
from benchmarks.watch import Course, watched
from proxmargin import ConvergenceDisplay, History, LogisticRegression, MarginMPM, NuSVC, kappa_max

__all__ = ["TABLES", "Run", "chosen_kappa", "course"]

NU = 0.5  # of the paper
KAPPA = 1.0  # of the paper
KAPPA_SHARE = 0.5  # of the largest kappa, where that is not more than KAPPA
NEVER = 1e-14  # a residual that ends no run but one at rounding level
SWITCHES: Mapping[str, Mapping[str, bool]] = {
    "bt+re": {"dec": False, "st": False, "mt": False},
    "bt+re+dec": {"st": False, "mt": False},
    "bt+re+dec+st": {"mt": False},
    "bt+re+dec+st+mt": {},
}
ALL = "bt+re+dec+st+mt"
EARLY = 0.05  # share of the iterations that is early
ROUNDED = 1e-7  # violation at which the paper's tolerance is met by far
FLAT = 1e-12  # relative, of F over the least: rounding of the sums that F consists of
RISEN = 2.0  # times the least violation before that are unsteady
STEADY = 0.5  # of the unsteady iterations of another course that make one stable
MUCH = 10.0  # L_f over a mean L_k that is "much smaller"
ACCURATE = 3e-6  # relative, of the objective at iteration 1000
READY = 1000 / 1361  # of the iterations to a violation of 1e-6, by the calls of Table 3
MOST_SHARE = 0.5  # "most" iterations
EVERY = 1  # iterations between rows


@dataclass(frozen=True)
class Run:
    """The course of a fit in the units of the paper, a number an iteration.

    Attributes
    ----------
    violation : L |T_L(u) - u|
    objective : F(u), up to a factor
    constants : L_k
    restarts : so far
    history : what the display draws
    """

    violation: Floats
    objective: Floats
    constants: Floats
    restarts: Floats
    history: History

    def least(self) -> float:
        return float(np.nanmin(self.violation))

    @property
    def course(self) -> slice:
        """The iterations before the violation is at rounding level, where tests of L fail."""
        there = np.flatnonzero(self.violation < ROUNDED)
        return slice(0, int(there[0]) + 1 if there.size else self.violation.size)

    def _rises(self) -> Floats:
        """The violation over the least one before, in the second half of the course."""
        violation = self.violation[self.course]
        return (violation / np.fmin.accumulate(violation))[violation.size // 2 :]

    def spike(self) -> float:
        return float(np.nanmax(self._rises()))

    def unsteady(self) -> float:
        """The share of iterations with a violation of `RISEN` times the least one before."""
        return float(np.mean(self._rises() > RISEN))


Runs = dict[str, Run]


@dataclass(frozen=True)
class Figure:
    """A figure: model and data at each size, with its claims."""

    kind: str
    data: dict[Size, str]
    claims: Callable[[Runs, float, Size], list[Claim]]
    most: dict[Size, int] = field(default_factory=lambda: dict(MOST))


def course(model: Any, data: DataSet, most: int, residual: float, constant: float) -> Run:
    """A fit of so many iterations; factors turn its residuals and L_k into those of the paper."""
    with watched(time.process_time) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it never meets its rule
        history = Course(every=EVERY, watch=watch)
        model.set_params(stopping="fixed-point", tol=NEVER, max_iter=most, callbacks=[history])
        model.fit(data.design, data.labels)
    frame = {
        name: np.array(history.column(name)[1:], dtype=float)
        for name in ("violation", "objective", "step_constant", "restarts")
    }
    return Run(
        residual * frame["violation"],
        frame["objective"],
        constant * frame["step_constant"],
        frame["restarts"],
        history,
    )


def chosen_kappa(data: DataSet) -> float:
    """The paper's 1, or half of the largest kappa where that is not more than 1."""
    most = kappa_max(data.design, data.labels, "mpm")
    return KAPPA if most > KAPPA else KAPPA_SHARE * most


def _runs(kind: str, data: DataSet, most: int) -> tuple[Runs, float]:
    """The course with each of the switches, and L_f (NaN for logistic regression)."""
    kappa = chosen_kappa(data) if kind == "MM-MPM" else 1.0
    lipschitz = _lipschitz(kind, data)
    data = with_square_roots(data) if kind == "MM-MPM" else data
    runs = {}
    for name, switches in SWITCHES.items():
        if kind == "nu-SVM":
            model, residual, constant = NuSVC(nu=NU, solver=fapg.Recorded(**switches)), 1.0, 1.0
        elif kind == "logistic":
            start = {"first_lipschitz": 1.0, "first_point": fapg.FLOOR}
            solver = fapg.Recorded(**start, **switches)
            # of (13) over C, whose iterations are those of Table 8
            model, residual = (
                LogisticRegression(C=C, solver=solver),
                math.sqrt(data.labels.size) / C,
            )
            constant = 1.0
        else:
            model = MarginMPM(kappa=kappa, solver=fapg.Recorded(**switches))
            residual, constant = 1.0 / kappa, kappa**-2
        runs[name] = one = course(model, data, most, residual, constant)
        told = f"least violation {one.least():.1e}, spike {one.spike():.1e}"
        print(f"{kind}, {data.name}, {name}: {told}, {one.restarts[-1]:.0f} restarts", flush=True)
    return runs, lipschitz


def _lipschitz(kind: str, data: DataSet) -> float:
    if kind == "nu-SVM":
        return fapg.squared_norm(data.design)
    return largest_constant(data) if kind == "MM-MPM" else math.nan


MOST = {Size.SMALL: 1500, Size.FULL: 10_000}  # iterations; 10,000 in the paper


def _figure(figure: Figure, size: Size) -> Outcome:
    data = load_scaled(figure.data[size])
    runs, lipschitz = _runs(figure.kind, data, figure.most[size])
    best = min(float(run.objective.min()) for run in runs.values())
    rows = [_line(name, run, best) for name, run in runs.items()]
    head = [
        "strategies",
        "least violation",
        "largest spike",
        "first below 1e-6",
        "relative gap of F",
    ]
    body = table([*head, "mean L", "largest L", "restarts"], rows)
    known = "" if math.isnan(lipschitz) else f"; L_f = {lipschitz:.3g}"
    told = f"{figure.kind}, {data.name}, {figure.most[size]:,} iterations{known}\n\n{body}"
    told = f"{told}{_rounding(runs, best)}"
    return judged(told, figure.claims(runs, lipschitz, size), picture=_drawn(runs, best, lipschitz))


def _rounding(runs: Runs, best: float) -> str:
    """Of courses that go on at rounding level, and of what L does there."""
    flat = [name for name, run in runs.items() if _distance(run, best)[-1] <= FLAT]
    if len(flat) < 2:
        return ""
    before = max(float(run.constants[run.course].max()) for run in runs.values())
    grown = max(float(run.constants.max()) for run in runs.values())
    told = f"{grown:.3g}"
    told += f", {before:.3g} before a violation of {ROUNDED:g}" if before < grown else ""
    said = f"""F of {", ".join(flat)} ends within {FLAT:g} of the least, relative: values of F no
longer tell there whether L is large enough, and it grows by rounding. The largest L is"""
    return f"\n\n{said} {told}."


def _line(name: str, run: Run, best: float) -> list[str]:
    return [
        name,
        f"{run.least():.1e}",
        f"{run.spike():.1e}",
        _first(run, fapg.EPSILON),
        f"{_distance(run, best)[-1]:.1e}",
        f"{run.constants[run.course].mean():.3g}",
        f"{run.constants[run.course].max():.3g}",
        f"{run.restarts[-1]:.0f}",
    ]


def _first(run: Run, goal: float) -> str:
    met = np.flatnonzero(run.violation < goal)
    return str(met[0] + 1) if met.size else "-"


def _distance(run: Run, best: float) -> Floats:
    return (run.objective - best) / max(abs(best), np.finfo(float).tiny)


def _drawn(runs: Runs, best: float, lipschitz: float) -> Any:
    """The three panels of the paper, and the certified gap."""
    figure, axes = panels(4)
    for name, run in runs.items():
        steps = np.arange(1, run.violation.size + 1)
        axes[0].plot(steps, run.violation, label=name, linewidth=0.8)
        distance = _distance(run, best)
        axes[1].plot(steps, np.where(distance > 0, distance, np.nan), linewidth=0.8)
        axes[2].plot(steps, run.constants, linewidth=0.8)
    if np.isfinite(lipschitz):
        axes[2].axhline(lipschitz, color="black", linestyle="--", label="L_f")
        axes[2].legend(fontsize="small")
    titles = ("L |T_L(u) - u|", "F(u) - F, over |F|", "L_k")
    for axis, title in zip(axes[:3], titles, strict=True):
        axis.set(yscale="log", xlabel="iterations", title=title)
    axes[0].legend(fontsize="small")
    ConvergenceDisplay({name: run.history for name, run in runs.items()}).plot(axes[3])
    axes[3].set_title("certified relative gap")
    return figure


# ---- the text beside the figures ----------------------------------------------------------------


def _early(runs: Runs) -> Claim:
    k = int(EARLY * runs[ALL].violation.size)
    without, with_it = (float(np.median(runs[n].violation[:k])) for n in ("bt+re", "bt+re+dec"))
    told = f"median of the first {k}: {with_it:.1e} against {without:.1e}"
    return Claim("'dec' reduces the violation in early iterations", with_it < without, told)


def _unstable(runs: Runs) -> Claim:
    """A little steadier with 'st' decides nothing."""
    dec, st = runs["bt+re+dec"], runs["bt+re+dec+st"]
    without, with_it = dec.unsteady(), st.unsteady()
    steadier = True if with_it <= STEADY * without else None
    return Claim(
        "'bt+re+dec' is unstable near the optimum, with 'st' it is not"
        f" (at most {STEADY:g} of the iterations above {RISEN:g} times the least violation)",
        steadier if with_it < without else False,
        f"{without:.1%} of the iterations without, {with_it:.1%} with 'st'; rises to"
        f" {dec.spike():.2g} and {st.spike():.2g} times",
        main=True,
    )


def _at_end(
    sentence: str, runs: Runs, size: Size, holds: bool, told: str, printed: bool | None = None
) -> Claim:
    """Judged after the paper's iterations: before, the cut decides; and open where F is the least
    up to rounding with all strategies and with others.

    That rule, and the division of a residual by C, came after a first "not": ``printed`` is the
    answer as the figure has it, if another, and where both readings disagree nothing is decided.
    """
    best = min(float(run.objective.min()) for run in runs.values())
    *others, ours = (float(_distance(runs[name], best)[-1]) for name in SWITCHES)
    later = None if abs(ours - min(others)) <= FLAT else at_full(size, holds)
    first = at_full(size, holds if printed is None else printed)
    if first == later:
        return Claim(sentence, later, told, main=True)
    both = f"{told}; as printed: {WORDS[first]}, by the later rule: {WORDS[later]}"
    return Claim(sentence, None, both, main=True)


def _best(runs: Runs, size: Size) -> Claim:
    least = {name: run.least() for name, run in runs.items()}
    told = ", ".join(f"{name} {value:.1e}" for name, value in least.items())
    holds = min(least, key=least.__getitem__) == ALL
    return _at_end("with all of them the violation becomes the least", runs, size, holds, told)


def _claims_6(runs: Runs, lipschitz: float, size: Size) -> list[Claim]:
    run = runs[ALL]
    constants = run.constants[run.course]
    mean, most = float(constants.mean()), float(constants.max())
    best = min(float(one.objective.min()) for one in runs.values())
    met = np.flatnonzero(run.violation < fapg.EPSILON)
    ready = int(READY * (met[0] if met.size else run.violation.size - 1))
    after = float(_distance(run, best)[ready])
    return [
        _early(runs),
        _unstable(runs),
        _best(runs, size),
        Claim(
            f"L_k is much smaller than L_f: the mean {MUCH:g} times, and the largest smaller",
            mean <= lipschitz / MUCH and most < lipschitz,
            f"mean {mean:.3g}, largest {most:.3g}, L_f {lipschitz:.3g};"
            " printed 368, 1950 and 36,100 for (10000, 1000)",
        ),
        Claim(
            f"F is within {ACCURATE:g} of the optimum before the violation is 1e-6",
            after <= ACCURATE,
            f"{after:.1e} at iteration {ready + 1}, as 1000 is of 1361",
        ),
    ]


def _claims_8(runs: Runs, lipschitz: float, size: Size) -> list[Claim]:
    best = min(float(one.objective.min()) for one in runs.values())
    ends = {name: float(_distance(run, best)[-1]) for name, run in runs.items()}
    first = {name: _first(run, fapg.EPSILON) for name, run in runs.items()}
    told = ", ".join(f"{name} {value}" for name, value in first.items())
    return [
        _unstable(runs),
        _best(runs, size),
        _at_end(
            "only with all of them it falls below 1e-6",
            *(runs, size, _only(runs, fapg.EPSILON), f"first iterations {told}"),
            printed=_only(runs, fapg.EPSILON / C),
        ),
        _at_end(
            "with all of them F becomes the least",
            *(runs, size, ends[ALL] == min(ends.values())),
            ", ".join(f"{name} {value:.1e}" for name, value in ends.items()),
        ),
    ]


def _only(runs: Runs, goal: float) -> bool:
    """Whether the violation falls below it with all strategies, and else never."""
    return {name for name, run in runs.items() if run.least() < goal} == {ALL}


def _claims_10(runs: Runs, lipschitz: float, size: Size) -> list[Claim]:
    first = {name: _first(run, fapg.EPSILON) for name, run in runs.items()}
    reached = {name: math.inf if k == "-" else int(k) for name, k in first.items()}
    below = float(np.mean(runs[ALL].constants[runs[ALL].course] < lipschitz))
    return [
        _unstable(runs),
        Claim(
            "with 'st' and 'mt' the violation falls slightly faster than with 'bt+re'",
            max(reached["bt+re+dec+st"], reached[ALL]) <= min(reached["bt+re"], MOST[Size.FULL]),
            f"below 1e-6 at {', '.join(f'{name} {k}' for name, k in first.items())}",
        ),
        Claim("L_k is smaller than L_f in most iterations", below > MOST_SHARE, f"in {below:.0%}"),
    ]


FIGURES: dict[str, Figure] = {
    "IF6": Figure(
        "nu-SVM",
        {Size.SMALL: "artificial:1000,300", Size.FULL: "artificial:10000,1000"},
        _claims_6,
    ),
    "IF8": Figure("logistic", {Size.SMALL: "a9a@1000", Size.FULL: "a9a@22696"}, _claims_8),
    "IF10": Figure(
        "MM-MPM",
        dict.fromkeys(Size, "artificial:10000,1000"),
        _claims_10,
        {Size.SMALL: 600, Size.FULL: 10_000},
    ),
}
TITLES: Sequence[tuple[str, str, str]] = (
    ("IF6", "Figure 6 of Ito et al.: strategies, nu-SVM", f"nu = {NU:g}"),
    ("IF8", "Figure 8 of Ito et al.: strategies, logistic regression", f"C = {C:g}"),
    (
        "IF10",
        "Figure 10 of Ito et al.: strategies, MM-MPM",
        f"kappa = {KAPPA:g}, or half of the most, on n x n square roots of the covariances",
    ),
)
JUDGED = f""" What is said of the end of the {MOST[Size.FULL]:,} iterations is judged
at the full size, unless F with all strategies and with others end within {FLAT:g} of each other,
where rounding decides."""
OVER_C = """ The violation is that of (13) over C, whose iterations are those of Table 8.
This division and the rule of rounding came after a first run had said "not" with neither. Both
readings are told where they disagree, and nothing is decided there."""
AT_END = {"IF6": JUDGED, "IF8": f"{JUDGED}{OVER_C}"}
INSTEAD = {"IF8": " (for a8a as many samples of a9a)"}
MINUTES = {"IF6": 8.0, "IF8": 4.0, "IF10": 3.5}
DRAWS = {"IF6": "1", "IF8": "-", "IF10": "1"}  # of artificial data
TABLES = {
    name: PaperTable(
        title,
        f"""{parameter}; {FIGURES[name].most[Size.FULL]:,} iterations, as printed,
{FIGURES[name].most[Size.SMALL]:,} at the small size. Data:
{FIGURES[name].data[Size.FULL]}{INSTEAD.get(name, "")}, at the small size
{FIGURES[name].data[Size.SMALL]}.
Algorithm 4, run as in Table 4, with strategies switched off;
a row an iteration by `History(every=1)`. Inferred: "early" is the first {EARLY:.0%} of the
iterations, "near the optimum" the second half of those before a violation of {ROUNDED:g}, to
which the L_k belong too; F is the least of all runs.{AT_END.get(name, "")}""",
        (0.4, MINUTES[name]),
        partial(_figure, FIGURES[name]),
        (DRAWS[name],) * 2,
    )
    for name, title, parameter in TITLES
}
