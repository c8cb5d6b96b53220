"""Claims can fail: a method that is broken changes the verdict of its section."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.datasets import data_root
from benchmarks.multiclass_data import Split
from benchmarks.papers.chierchia import times
from benchmarks.papers.ito import floors, illustrations, logistic, projections
from benchmarks.papers.liu import simulated
from benchmarks.papers.liu import theory as liu_theory
from benchmarks.papers.table import Outcome, Size, Verdict
from benchmarks.papers.xu import four_classes, settings, statistics, theory, xu2015
from benchmarks.peers.iterates import Iterate
from sklearn.datasets import load_iris

from benchmarks import paper
from proxmargin.solvers.papers.iterated_svm import Isvm2, Isvm3

Patch = pytest.MonkeyPatch
Case = tuple[Callable[[Patch], None], Callable[[], Outcome], Callable[[Patch], None]]
has_data = pytest.mark.skipif(
    not (data_root() / "data" / "heart.npz").exists(), reason="the data sets are not there"
)


def section(name: str) -> Callable[[], Outcome]:
    return lambda: paper.TABLES[name].run(Size.SMALL)


def nothing(patch: Patch) -> None:
    pass


# ---- smaller data, and what breaks a method -----------------------------------------------------


def small_settings(patch: Patch) -> None:
    row = xu2015.SETTINGS[0]._replace(size=(300, 40, 8))
    patch.setattr(xu2015, "SETTINGS", (row, row))
    patch.setattr(settings, "DRAWS", {Size.SMALL: (1, 1)})
    patch.setattr(settings, "OTHERS", ())


def no_restart_of_the_extrapolation(patch: Patch) -> None:
    ours, other, last = settings.SETTINGS
    broken = {ours: settings.SETTINGS[last], other: settings.SETTINGS[other]}
    patch.setattr(settings, "SETTINGS", {**broken, last: settings.SETTINGS[ours]})


def ranks_of_the_signs(patch: Patch) -> None:
    patch.setattr(statistics, "friedman", lambda scores, **_: _friedman(-scores))


def _friedman(scores: np.ndarray) -> Any:
    from proxmargin.stats import friedman

    return friedman(np.sort(scores, axis=1))


def another_slope(patch: Patch) -> None:
    right = theory._slope
    patch.setattr(theory, "_slope", lambda x, u: -right(x, u))


def another_multiplier(patch: Patch) -> None:
    right = illustrations.box_hyperplane_multiplier

    def wrong(*given: Any) -> Any:
        point, theta, *rest = right(*given)
        return (point, theta + 0.1, *rest)

    patch.setattr(illustrations, "box_hyperplane_multiplier", wrong)


def few_points(patch: Patch) -> None:
    cell = (20_000, 10.0)
    printed = next(iter(projections.PROJECTIONS.values()))
    patch.setattr(projections, "PROJECTIONS", {cell: printed})
    patch.setattr(projections, "TRIALS", {Size.SMALL: 4})
    patch.setattr(projections, "_run", _timed(0.5))


def slow_bisection(patch: Patch) -> None:
    patch.setattr(projections, "_run", _timed(3.0))


def _timed(bisection: float) -> Callable[..., projections.Run]:
    """Runs of one millisecond, those of the bisection of so many."""

    def run(point: np.ndarray, method: str, guesses: Sequence[Any]) -> projections.Run:
        rounds = round(projections.PROJECTIONS[20_000, 10.0][1][1])
        noise = 1e-3 * float(point[0]) * (1.0 + (method == projections.BREAKPOINTS))
        taken = bisection if method == projections.BISECTION else 1.0
        return projections.Run(taken + noise, rounds)

    return run


def small_floors(patch: Patch) -> None:
    sources = dict.fromkeys(floors.FLOORS, "svmguide1")
    patch.setattr(floors, "SOURCES", {Size.SMALL: sources})
    patch.setattr(floors, "MOST", {Size.SMALL: 200})


def no_bias(patch: Patch) -> None:
    patch.setattr(floors, "training_error", lambda *_: 0.0)


def one_set(patch: Patch) -> None:
    patch.setattr(logistic, "reached", lambda size: ["heart", "splice"])
    patch.setattr(logistic, "MOST", {Size.SMALL: 3000})
    patch.setattr(logistic, "REPEATS", 3)


def never_met(patch: Patch) -> None:
    patch.setattr(logistic, "MOST", {Size.SMALL: 3})


def few_simulations(patch: Patch) -> None:
    case = (2000, 0.5)
    patch.setattr(simulated, "SIMULATED", {case: simulated.SIMULATED[case]})
    patch.setattr(simulated, "DRAWS", {Size.SMALL: 2})
    patch.setattr(simulated, "TEST", 60)
    patch.setattr(simulated, "MISPRINTS", {})


def one_step(patch: Patch) -> None:
    right = simulated.fitted

    def wrong(name: str, *given: Any) -> Any:
        run = right(name, *given)
        return replace(run, accuracy=0.5) if name == "isvm3" else run

    patch.setattr(simulated, "fitted", wrong)


def few_theorems(patch: Patch) -> None:
    patch.setattr(liu_theory, "CASES", {Size.SMALL: ((60, 0.5),)})
    patch.setattr(liu_theory, "MOST", 150)


def no_multipliers(patch: Patch) -> None:
    def wrong(self: Isvm2, moved: Any, before: Any, rho: float) -> Any:
        return moved

    patch.setattr(Isvm2, "_updated", wrong)
    patch.setattr(Isvm3, "_updated", wrong)


def few_classes(patch: Patch) -> None:
    patch.setattr(four_classes, "PILOTS", {Size.SMALL: 1})
    patch.setattr(four_classes, "DRAWS", {Size.SMALL: 4})
    patch.setattr(four_classes, "TESTED", 400)
    patch.setattr(four_classes, "PAIRS", [(0.1, 1.0), (0.08, 1.0)])
    patch.setattr(xu2015, "FOUR_CLASSES", {0.0: xu2015.FOUR_CLASSES[0.0]})


def no_iterations(patch: Patch) -> None:
    right = four_classes.joint
    patch.setattr(four_classes, "joint", lambda *pair: right(*pair, max_iter=1, delta=1e3))


def few_digits(patch: Patch) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = (X[::5] - X.mean(axis=0)) / X.std(axis=0), y[::5]
    split = Split("iris", X, y, X, y)
    patch.setattr(times, "CLASSES", 3)
    patch.setattr(times, "DRAWS", {Size.SMALL: 3})
    patch.setattr(times, "MOST", {Size.SMALL: 1000})
    patch.setattr(times, "CHANGE", 1e-4)
    patch.setattr(times, "load_split", lambda *_: split)
    patch.setattr(times, "scattering", lambda X, size: X)
    patch.setattr(times, "scattering_groups", lambda size: np.array([0, 0, 1, 1]))


def slow_steps(patch: Patch) -> None:
    for name in ("penalised", "budget"):
        right = getattr(times, name)

        def slow(*given: Any, right: Any = right) -> Iterator[Iterate]:
            for one in right(*given):
                end = time.process_time() + 3e-4
                while time.process_time() < end:
                    pass
                yield one

        patch.setattr(times, name, slow)


CASES: dict[str, Case] = {
    "X1": (small_settings, section("X1"), no_restart_of_the_extrapolation),
    "X7": (nothing, section("X7"), ranks_of_the_signs),
    "X10": (few_classes, section("X10"), no_iterations),
    "XF1": (nothing, section("XF1"), another_slope),
    "I2": (few_points, section("I2"), slow_bisection),
    "I6": (small_floors, section("I6"), no_bias),
    "I8": (one_set, section("I8"), never_met),
    "IF2": (nothing, section("IF2"), another_multiplier),
    "CF3": (few_digits, section("CF3"), slow_steps),
    "L1": (few_simulations, section("L1"), one_step),
    "LT2": (few_theorems, section("LT2"), no_multipliers),
}
SLOW = {"X10", "CF3"}
NEEDS = {"I6", "I8"}  # data sets; slow, too
MARKS = {
    **dict.fromkeys(SLOW, pytest.mark.slow),
    **dict.fromkeys(NEEDS, (has_data, pytest.mark.slow)),
}


@pytest.mark.parametrize("name", [pytest.param(one, marks=MARKS.get(one, ())) for one in CASES])
def test_a_broken_method_changes_the_verdict(name: str, monkeypatch: Patch) -> None:
    smaller, run, broken = CASES[name]
    smaller(monkeypatch)
    intact = run()
    broken(monkeypatch)
    changed = run()
    assert intact.verdict != changed.verdict or intact.why != changed.why
    assert changed.verdict in (Verdict.NOT, Verdict.UNDECIDED)
