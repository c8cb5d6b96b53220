"""Every solver of general problems and every estimator, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import proxmargin
from proxmargin.models.fitting.registry import MODELS, model_names
from proxmargin.solvers.choice.names import SOLVERS as NAMED
from proxmargin.solvers.l1.newton import ProximalNewton
from proxmargin.solvers.papers.proximal_gradient import CoordinateDescent, ProximalGradient
from proxmargin.solvers.shared.working_set import WorkingSet

# of any smooth loss and any elastic net
BINARY_SOLVERS: dict[str, Callable[[], Any]] = {
    "b-pgh": NAMED["b-pgh"],
    "b-pgh-2": NAMED["b-pgh-2"],
    "gcd": NAMED["gcd"],
    "gcd on all features": CoordinateDescent,
    "apg": NAMED["apg"],
    "fapg-guaranteed": NAMED["fapg-guaranteed"],
    "fapg": NAMED["fapg"],
    "fapg-star": NAMED["fapg-star"],
    "fapg-ws": NAMED["fapg-ws"],
    "newton": NAMED["newton"],
    "newton on all features": ProximalNewton,
    "working set of b-pgh": lambda: WorkingSet(ProximalGradient(), smallest=4),
}
MULTICLASS_SOLVERS: dict[str, Callable[[], Any]] = {
    "m-pgh": NAMED["m-pgh"],
    "m-pgh-2": NAMED["m-pgh-2"],
    "apg": NAMED["apg"],
    "fapg-guaranteed": NAMED["fapg-guaranteed"],
    "fapg": NAMED["fapg"],
    "fapg-star": NAMED["fapg-star"],
    "fapg-ws": NAMED["fapg-ws"],
}
_MODELS = {name: getattr(proxmargin, name) for name in MODELS}
# of all classes together
MULTICLASS: dict[str, Callable[..., Any]] = {"MulticlassSVC": proxmargin.MulticlassSVC}
# of the models that need samples only through inner products
KERNEL_MACHINES: dict[str, Callable[..., Any]] = {
    name: _MODELS[name] for name in model_names(kernels=True)
}
PENALISED: dict[str, Callable[..., Any]] = {
    name: _MODELS[name] for name in model_names(kernels=False) if name not in MULTICLASS
}
ESTIMATORS: dict[str, Callable[..., Any]] = {**PENALISED, **KERNEL_MACHINES, **MULTICLASS}
# of other classifiers, whatever they are
META_ESTIMATORS: dict[str, Callable[..., Any]] = {
    name: make for name, make in _MODELS.items() if name not in ESTIMATORS
}
