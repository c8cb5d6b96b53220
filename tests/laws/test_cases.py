"""The lists of cases are complete: what is not listed is not tested."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import proxmargin
from proxmargin.data.designs import Design
from proxmargin.functions.penalties.custom import OwnPenalty
from proxmargin.losses import Loss, MarginLoss
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.fitting import CertifyOnly
from proxmargin.penalties import Penalty
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.loop.solver import Solver
from tests import cases
from tests.examples import example


def concrete(base: type) -> set[type]:
    """Every public subclass that the package defines and that can be made."""
    for package in ("functions.losses", "functions.penalties", "data.designs", "solvers", "models"):
        home = importlib.import_module(f"proxmargin.{package}")
        for module in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
            importlib.import_module(module.name)
    found: set[type] = set()
    waiting = [base]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            waiting.append(cls)
            if not is_abstract(cls) and cls.__module__.startswith("proxmargin."):
                found.add(cls)
    return {cls for cls in found if not cls.__name__.startswith("_")}


def is_abstract(cls: type) -> bool:
    """Also where the metaclass is not that of abstract classes, as for estimators."""
    members = (inspect.getattr_static(cls, name, None) for name in dir(cls))
    return any(getattr(member, "__isabstractmethod__", False) for member in members)


OWN_PENALTY = OwnPenalty(example("huber_penalty").HuberPenalty(), (3, 1))


def listed(parts: Any) -> set[type]:
    return {type(part) for part in parts}


@pytest.mark.parametrize(
    ("base", "parts"),
    [
        (MarginLoss, cases.MARGIN_LOSSES.values()),
        (
            Loss,
            [
                make(cases.MARGIN_LOSSES["hinge"], np.random.default_rng(0))
                for make in cases.SUMS.values()
            ]
            + [make(np.random.default_rng(0)) for make in cases.COUPLED.values()]
            + [make(np.random.default_rng(0)) for make in cases.COMPARISONS.values()]
            + [make(np.random.default_rng(0)) for make in cases.LEVEL_SETS.values()]
            + [make(np.random.default_rng(0)) for make in cases.SHIFTED.values()]
            + [make(np.random.default_rng(0)) for make in cases.JOINT.values()],
        ),
        # the laws of penalties of one's own are tested in tests/functions/penalties/test_custom.py
        (
            Penalty,
            [
                *cases.PENALTIES.values(),
                OwnPenalty(example("huber_penalty").HuberPenalty(), (3, 1)),
            ],
        ),
        (
            Design,
            [make(np.eye(3)) for make in cases.DESIGNS.values()]
            + [cases.kernel_problem(np.random.default_rng(0)).design],
        ),
        (
            Solver,
            [
                make()
                for make in [*cases.BINARY_SOLVERS.values(), *cases.MULTICLASS_SOLVERS.values()]
            ]
            + [make() for make, _ in cases.SPECIAL_SOLVERS.values()]
            + [make() for make, _ in cases.CLASS_SOLVERS.values()]
            + [make() for make, _ in cases.KERNEL_SOLVERS.values()]
            + [make() for make, _ in cases.BUDGET_SOLVERS.values()]
            + [CertifyOnly()],
        ),
        (MarginEstimator, [make() for make in cases.ESTIMATORS.values()]),
    ],
    ids=["margin losses", "losses", "penalties", "designs", "solvers", "estimators"],
)
def test_every_part_of_the_package_is_listed(base: type, parts: Any) -> None:
    assert concrete(base) <= listed(parts)


def test_every_solver_name_is_listed() -> None:
    solvers = [
        cases.BINARY_SOLVERS,
        cases.MULTICLASS_SOLVERS,
        cases.SPECIAL_SOLVERS,
        cases.CLASS_SOLVERS,
        cases.KERNEL_SOLVERS,
        cases.BUDGET_SOLVERS,
    ]
    assert set(SOLVERS) <= set().union(*solvers)


def test_every_estimator_at_the_top_is_listed() -> None:
    public = {
        getattr(proxmargin, name)
        for name in proxmargin._HOMES
        if name[0].isupper() and proxmargin._HOMES[name].startswith("models.classifiers")
    }
    assert public <= {*cases.ESTIMATORS.values(), *cases.META_ESTIMATORS.values()}
