"""The classifier that chooses the strength of a model by cross-validation, from the options."""

from __future__ import annotations

import argparse
from typing import Any

from proxmargin.cli.models import AUTO, estimator_of
from proxmargin.estimators.registry import CROSS_VALIDATED

__all__ = ["asks_for_choice", "chosen_strength", "search_of", "strength_and_kind"]

STRENGTHS = ("alpha", "C")
FOLDS = 5  # of the choice that fit makes
N_STRENGTHS = 20  # that it chooses among, as those of cv


def asks_for_choice(arguments: argparse.Namespace) -> bool:
    """Whether a strength is to be chosen: ``--alpha auto`` or ``--C auto``."""
    return any(getattr(arguments, name) == AUTO for name in STRENGTHS)


def chosen_strength(arguments: argparse.Namespace, model: Any) -> dict[str, str]:
    """The strength that was chosen, in words; empty where none was asked for."""
    return {
        name: f"{getattr(model, name):.6g}, chosen by {FOLDS}-fold cross-validation (all scores: "
        "proxmargin cv)"
        for name in STRENGTHS
        if getattr(arguments, name) == AUTO
    }


def strength_and_kind(arguments: argparse.Namespace) -> tuple[str, Any]:
    """The parameter that cross-validation chooses, and the class that does.

    Raises
    ------
    ValueError
        The model has no strength that cross-validation knows.
    """
    import proxmargin

    name = f"{arguments.model}CV"
    if name not in CROSS_VALIDATED:
        models = ", ".join(CROSS_VALIDATED.values())
        raise ValueError(f"cross-validation knows no strength of {arguments.model}; of {models}")
    kind = getattr(proxmargin, name)
    return kind.strength.name, kind


def search_of(arguments: argparse.Namespace, **settings: Any) -> Any:
    """The unfitted classifier that chooses, for a model that the options describe.

    ``settings`` are parameters of the search. A share of the l1 norm that the options give is kept.
    """
    plain = estimator_of(arguments)
    strength, kind = strength_and_kind(arguments)
    wrong = next((n for n in STRENGTHS if n != strength and getattr(arguments, n) == AUTO), None)
    if wrong is not None:
        raise ValueError(f"{arguments.model} has no parameter for --{wrong}: it has --{strength}")
    known = set(kind._get_param_names())
    shared = {n: value for n, value in plain.get_params(deep=False).items() if n in known}
    if "l1_ratios" in known and arguments.l1_ratio is not None:
        shared["l1_ratios"] = (arguments.l1_ratio,)
    defaults = {f"{strength}s": N_STRENGTHS, "cv": FOLDS, "verbose": not arguments.quiet}
    return kind(**{**shared, **defaults, **settings})
