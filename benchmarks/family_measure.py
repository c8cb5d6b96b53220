"""`measure`, for the models of `family`: the same processes and clocks, another judge.

A reference, our own solver at a tight tolerance, hands its dual point to the certificates: it
need not be trusted, because any dual point proves a bound, and it judges everybody alike. Where
it does not answer, Clarabel's takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.family import Case, Model, with_penalised_intercept
from benchmarks.family_data import load_scaled
from benchmarks.measure import (
    Bench,
    Climb,
    Clocked,
    Judge,
    Limits,
    Worker,
    climb,
)
from benchmarks.objective import Floats
from benchmarks.peers.base import Fitted
from benchmarks.peers.family import OwnFamilyPeer
from benchmarks.peers.family_clarabel import ClarabelPeer

GRACE = 5.0  # seconds
TIGHT = (1e-9, 1e-10)  # tolerances of the two references


@dataclass(frozen=True)
class Task:
    """What travels to a solver's process: a model and the name of its data."""

    data: str
    model: Model

    def on(self, design: Any, labels: Floats) -> Case:
        return Case(design, labels, self.model)

    @property
    def kind(self) -> tuple[str, ...]:
        return self.data, self.model.name


class FamilyBench(Bench):
    """The solver with the case in hand; what is compiled is compiled by the case itself."""

    def problem(self, spec: Any) -> Any:
        if spec.data != self.data:
            self.design = None
            data = load_scaled(spec.data)
            self.data, self.labels = spec.data, data.labels
            self.design = self.peer.prepared(data.design)
        return spec.on(self.design, self.labels)

    def warm_up(self, spec: Any) -> None:
        if self.peer.compiles:
            self.peer.fit(self.problem(spec), self.peer.ladder[0])


@dataclass
class FamilyWorker(Worker):
    """A solver's process that knows the models and the data of the family.

    A solver with a time limit of its own gets a moment to answer with what it has.
    """

    bench: type[Bench] = FamilyBench

    def _ask(self, limit: float, name: str, *given: Any) -> Any:
        own_limit = getattr(self.peer, "time_limit", None) is not None
        return super()._ask(limit + GRACE if own_limit else limit, name, *given)


@contextmanager
def family_workers(peers: Sequence[Any], limits: Limits) -> Iterator[dict[str, Worker]]:
    """A worker per peer, by name; all closed at the end."""
    crew: dict[str, Worker] = {peer.name: FamilyWorker(peer, limits) for peer in peers}
    try:
        yield crew
    finally:
        for worker in crew.values():
            worker.close()


class Referee:
    """Dual points to judge with: our own at a tight tolerance, or else Clarabel's."""

    def __init__(self, limit: float, clarabel_size: int) -> None:
        limits = Limits(per_fit=2.0 * limit + 5.0)
        peers = (OwnFamilyPeer("reference", "auto", limit), ClarabelPeer(clarabel_size))
        self._workers = [FamilyWorker(peer, limits) for peer in peers]
        self._known: dict[Task, Floats | None] = {}
        self.missing: list[Task] = []

    def dual(self, task: Task) -> Floats | None:
        """The dual point of the reference; None where nobody gives one."""
        if task not in self._known:
            answers = (w.clocked(task, t) for w, t in zip(self._workers, TIGHT, strict=True))
            found = (one.fitted.dual for one in answers if isinstance(one, Clocked))
            self._known[task] = next((dual for dual in found if dual is not None), None)
            if self._known[task] is None:
                self.missing.append(task)
        return self._known[task]

    def judge(self, task: Task, case: Case) -> Judge:
        """The relative gap of what a solver found, by the reference's dual point or its own."""
        reference = self.dual(task)

        def relative_gap(solved: Fitted) -> float:
            if not (np.isfinite(solved.coef).all() and np.isfinite(solved.intercept)):
                return float("inf")
            duals = [one for one in (reference, solved.dual) if one is not None]
            return case.model.relative_gap(case, solved, duals)

        return relative_gap

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


Told = Callable[[str, Climb], object]  # what to do with the result of a solver, by its name


def family_row(
    task: Task, crew: dict[str, Worker], referee: Referee, goals: Sequence[float], told: Told
) -> dict[str, Climb]:
    """Every solver of the model; those with a penalised intercept on the model that they have."""
    data, row = load_scaled(task.data), {}
    for name, worker in crew.items():
        for model in (task.model, *with_penalised_intercept(task.model)):
            case = Case(data.design, data.labels, model)
            if worker.peer.solves(case):
                own = replace(task, model=model)
                row[name] = climb(worker, referee.judge(own, case), own, goals)
                told(name, row[name])
                break
    return row
