"""`python -m benchmarks strategies`: FAPG's strategies, Figures 6, 8, 10 of Ito et al. (2017)."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.datasets import DataSet
from benchmarks.family_data import load_scaled
from benchmarks.report import RESULTS, seconds, table, write_section
from benchmarks.watch import PARTS, Clock, Course, Watch, watched

GOALS = (1e-2, 1e-4, 1e-6)
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
MODELS = ("nu-SVM", "logistic", "MM-MPM")
NU = 0.5  # of the paper
C = 10.0  # of the paper
NU_SHARE = 0.75  # of the largest nu, where NU is not admissible
KAPPA = "0.5max"


@dataclass(frozen=True)
class Variant:
    """Strategies that are on, by the name they have in the figures."""

    name: str
    solver: str = "fapg"
    settings: Mapping[str, Any] = field(default_factory=dict)


def _fapg(name: str, **off: bool) -> Variant:
    return Variant(name, settings=off)


VARIANTS = (
    _fapg("bt+re", dec=False, st=False, mt=False),
    _fapg("bt+re+dec", st=False, mt=False),
    _fapg("bt+re+dec+st", mt=False),
    _fapg("bt+re+dec+mt", st=False),
    _fapg("all (Algorithm 4)"),
    Variant("Algorithm 3", "fapg-guaranteed"),
    Variant("fapg-star", "fapg-star"),
)
_TIMED = tuple(one for one in VARIANTS if one.name in ("all (Algorithm 4)", "fapg-star"))


@dataclass(frozen=True)
class Run:
    """A fit: its course, its timers, and how it ended."""

    variant: Variant
    course: Course
    watch: Watch
    ended: str

    def first(self, goal: float) -> dict[str, Any] | None:
        """The first certificate that meets the goal."""
        return next((row for row in self.course.rows if row["relative_gap"] <= goal), None)

    @property
    def smallest_gap(self) -> float:
        return min((float(gap) for gap in self.course.column("relative_gap")), default=float("nan"))


Runs = dict[tuple[str, str], list[Run]]  # by model and data


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", default="10000,100", help="m,n of the artificial data")
    parser.add_argument(
        "--wide", default="10000,1000", help="m,n of those on which only the parts are timed"
    )
    parser.add_argument("--data", nargs="*", default=["a9a"], help="real sets besides (a9a)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--iterations", type=int, default=2000, help="the most a fit (2000)")
    parser.add_argument("--limit", type=float, default=15.0, help="seconds a fit (15)")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="of the parts' times")
    parser.add_argument("--plot", type=Path, help="also draw the gaps into this file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    runs: Runs = {}
    timed: Runs = {}
    plans = [(f"artificial:{arguments.wide}", _TIMED, timed)]
    plans += [(f"artificial:{arguments.size}", VARIANTS, runs)]
    plans += [(name, VARIANTS, runs) for name in arguments.data]
    for name, variants, found in plans:
        data = load_scaled(name)
        for model in arguments.models:
            done = found.setdefault((model, data.name), [])
            _run(model, data, VARIANTS[-1], arguments, iterations=20)  # compiles what there is
            for variant in variants:
                done.append(_run(model, data, variant, arguments, arguments.iterations))
                print(f"{model}; {data.name}; {variant.name}: {_in_words(done[-1])}", flush=True)
    title = "Strategies (Figures 6, 8, 10 of Ito et al.)"
    write_section("strategies", title, _body(runs, timed, arguments), arguments.results)
    if arguments.plot:
        draw(runs, arguments.plot)
    return 0


def _run(
    model: str, data: DataSet, variant: Variant, arguments: argparse.Namespace, iterations: int
) -> Run:
    with watched(CLOCKS[arguments.clock]) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stopped early shows in its gap
        course = Course(watch=watch)
        fit = _estimator(
            model,
            data,
            solver=variant.solver,
            solver_options=dict(variant.settings),
            tol=min(GOALS),
            max_iter=iterations,
            time_limit=arguments.limit,
            callbacks=[course],
        )
        try:
            ended = fit.fit(data.design, data.labels).certificate_.stop_reason
        except ValueError as error:  # a method that diverges is a result
            ended = f"error: {error}"
    return Run(variant, course, watch, ended)


def _estimator(model: str, data: DataSet, **settings: Any) -> Any:
    import proxmargin

    if model == "nu-SVM":
        return proxmargin.NuSVC(nu=chosen_nu(data), **settings)
    if model == "logistic":
        return proxmargin.LogisticRegression(C=C, **settings)
    return proxmargin.MarginMPM(kappa=KAPPA, **settings)


def chosen_nu(data: DataSet) -> float:
    """The paper's 0.5 where both classes can carry half of the mass, else a share of the most."""
    positive = float((data.labels > 0).mean())
    most = 2.0 * min(positive, 1.0 - positive)
    return NU if most > NU else NU_SHARE * most


# ---- Markdown -----------------------------------------------------------------------------------


def _in_words(run: Run) -> str:
    words = [f"{goal:g}: {_reached(run, goal)}" for goal in GOALS]
    return f"{', '.join(words)}; gap {run.smallest_gap:.1e}; {run.ended}"


def _reached(run: Run, goal: float) -> str:
    row = run.first(goal)
    return "-" if row is None else f"{row['n_iter']} ({float(row['own_passes']):.0f})"


def _body(runs: Runs, timed: Runs, arguments: argparse.Namespace) -> str:
    parts = [_method(runs, arguments)]
    for (model, data), done in runs.items():
        head = ["strategies", *(f"to {goal:g}" for goal in GOALS), *_LAST]
        parts.append(f"### {model}, {data}\n\n{table(head, map(_line, done))}")
    head = ["model, data", "method", "iterations", *(f"{p}: share, calls, ms" for p in PARTS)]
    parts.append(
        "### Where the time goes (Tables 3, 7, 9)\n\n"
        + table([*head, "the rest", "seconds"], _shares({**timed, **runs}))
    )
    return "\n\n".join(parts)


_LAST = ("smallest gap", "violation then", "L at the end", "restarts", "ended because")


def _method(runs: Runs, arguments: argparse.Namespace) -> str:
    shapes = {data for _, data in runs}
    return f"""- nu {NU:g}, or {NU_SHARE:g} of the largest nu where that is not admissible; C {C:g};
  kappa {KAPPA}; data: {", ".join(sorted(shapes))}, scaled as in the paper.
- Cells: iterations (passes over the data) to a relative gap, here by the library's own certificate,
  which is made every ten iterations; the passes of certificates are not counted. A fit has at most
  {arguments.iterations} iterations and {arguments.limit:g} s by the wall clock: a busy machine
  ends it early.
- "violation": L |T_L(u) - u|, what the paper stops by at 1e-6, at the point with that gap.
- Switches of 'fapg', Algorithm 4, which tests L every tenth time; 'fapg-guaranteed' is Algorithm 3,
  'fapg-star' the same with the conjugate of the loss whole and a test that keeps its digits.
- Times are {arguments.clock} times by timers around the side's `image` and `response` (a product
  with the data each, f and its gradient), its `prox`, and the certificate; milliseconds a call.
  Wider data, ({arguments.wide}), are timed only."""


def _line(run: Run) -> list[str]:
    cells = [run.variant.name, *(_reached(run, goal) for goal in GOALS)]
    if not run.course.rows:
        return [*cells, *("-" for _ in _LAST[1:]), run.ended]
    best = min(run.course.rows, key=lambda row: float(row["relative_gap"]))
    last = run.course.rows[-1]
    return [
        *cells,
        f"{float(best['relative_gap']):.1e}",
        f"{float(best['violation']):.1e}",
        f"{float(last['lipschitz']):.3g}",
        str(last["restarts"]),
        run.ended,
    ]


def _shares(runs: Runs) -> Iterator[list[str]]:
    for (model, data), done in runs.items():
        for run in (one for one in done if one.variant in _TIMED and one.course.rows):
            watch = run.watch
            rest = watch.total - sum(watch.seconds.values())
            yield [
                f"{model}, {data}",
                run.variant.name,
                str(run.course.rows[-1]["n_iter"]),
                *(_share(watch, part) for part in PARTS),
                f"{rest / watch.total:.1%}",
                seconds(watch.total),
            ]


def _share(watch: Watch, part: str) -> str:
    taken, calls = watch.seconds[part], watch.calls[part]
    return f"{taken / watch.total:.1%}, {calls}, {1e3 * taken / max(calls, 1):.3f}"


# ---- the figure ---------------------------------------------------------------------------------


def draw(runs: Runs, path: Path) -> None:
    """Gaps against iterations, a panel for each model and data set."""
    try:
        import matplotlib
    except ImportError as error:
        raise SystemExit("--plot needs matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    data = list(dict.fromkeys(name for _, name in runs))
    models = list(dict.fromkeys(model for model, _ in runs))
    size = (5.0 * len(models), 4.0 * len(data))
    figure, axes = pyplot.subplots(
        len(data), len(models), figsize=size, squeeze=False, layout="constrained"
    )
    for (model, name), done in runs.items():
        axis = axes[data.index(name)][models.index(model)]
        axis.set(title=f"{model}, {name}", xlabel="iterations", ylabel="certified relative gap")
        axis.set_yscale("log")
        _curves(axis, done)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    figure.savefig(path)


def _curves(axis: Any, done: Sequence[Run]) -> None:
    for k, run in enumerate(done):  # thinner and thinner: some courses are the same
        x, y = run.course.column("n_iter"), run.course.column("relative_gap")
        axis.plot(x, y, label=run.variant.name, linewidth=4.0 - 0.5 * k)
