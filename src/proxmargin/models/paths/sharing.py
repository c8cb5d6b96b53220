"""Fits of one model with several settings to the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from sklearn.base import clone

from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.registry import MODELS
from proxmargin.runtime.interrupts import interrupts

# parameters of the loss, the penalty and the tolerance: models that differ in these share data
OF_THE_PROBLEM = {"tol", *(name for model in MODELS.values() for name in model.parameters)}


def fitted_grid(
    estimator: Any,
    settings: Sequence[Mapping[str, Any]],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    offset: Any = None,
) -> Iterator[Any]:
    """A fitted copy of the estimator for each of the settings, in their order.

    For a linear model whose settings are those of the loss and the penalty the data are checked
    and standardised once, and what solvers compute from the data alone (inner products of the
    samples, their factors) serves all fits; each fit starts from the previous solution. Other
    models are fitted independently.

    Parameters
    ----------
    estimator : estimator
        Is not changed.
    settings : sequence of parameters by name
    X, y, sample_weight, offset
        As for ``estimator.fit``, which is given no offset that is None.
    """
    assembly, before = None, estimator
    shift = {} if offset is None else {"offset": offset}
    for each in settings:
        model = clone(estimator).set_params(**each)
        if not _shares_data(model, each):
            yield model.fit(X, y, sample_weight=sample_weight, **shift)
            continue
        with interrupts:
            if assembly is None:
                assembly = model._assemble(X, y, sample_weight, offset)
                model._fit_assembled(assembly)
            else:
                model = copy(before).set_params(**model.get_params(deep=False))
                assembly = refitted(model, assembly)
        before = model
        yield copy(model)


def refitted(model: MarginEstimator, assembly: Assembly) -> Assembly:
    """Fit a fitted model again with its present parameters, from its own solution.

    Returns the data and problems of that fit: ``assembly`` for the present parameters.
    """
    assembly = model._reassembled(assembly)
    starts = copy(model).set_params(warm_start=True)._starts(assembly)
    model._fit_assembled(assembly, starts)
    return assembly


def _shares_data(model: Any, setting: Mapping[str, Any]) -> bool:
    """Whether a fit with this setting can use the data as they were assembled for another one."""
    linear = isinstance(model, MarginEstimator) and getattr(model, "_is_linear", True)
    # the number for nu='auto' comes from fits of its own
    return linear and OF_THE_PROBLEM.issuperset(setting) and getattr(model, "nu", 0) != "auto"
