"""The estimator that command-line options describe."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import proxmargin
from proxmargin.estimators.registry import model_names

__all__ = [
    "AUTO",
    "STANDARDIZE",
    "add_model_options",
    "add_scaling",
    "estimator_of",
    "free_strength",
    "name_features",
    "shown_settings",
    "suited",
]


AUTO = "auto"  # a strength that cross-validation chooses
STANDARDIZE: Mapping[str, str | bool] = {"auto": "auto", "yes": True, "no": False}


@dataclass(frozen=True)
class Option:
    """An option that sets a parameter of the estimator."""

    flag: str
    parameter: str
    kind: Any
    help: str


def _number_or_auto(text: str) -> float | str:
    return AUTO if text == AUTO else float(text)


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


OPTIONS = (
    Option("--alpha", "alpha", _number_or_auto, "strength of the penalty; of fit also 'auto'"),
    Option("--l1-ratio", "l1_ratio", float, "share of the l1 norm in the penalty, in [0, 1]"),
    Option("--delta", "delta", float, "width of the quadratic zone of the huberized hinge"),
    Option("--intercept-ridge", "intercept_ridge", float, "ridge penalty of the intercept"),
    Option("--C", "C", _number_or_auto, "weight of the losses; of fit also 'auto'"),
    Option("--eta", "eta", float, "of MulticlassSVC: the most its losses may sum to, without C"),
    Option("--penalty", "penalty", str, "of MulticlassSVC: 'l1', 'l2', 'elasticnet' or a group"),
    Option("--loss", "loss", str, "of MulticlassSVC: 'hinge', 'squared_hinge', 'logistic', 'lee'"),
    Option("--nu", "nu", _number_or_word, "of NuSVC and DWD: a number, 'auto' or '0.3max'"),
    Option("--kappa", "kappa", _number_or_word, "of MarginFDA and MarginMPM, or '0.5max'"),
    Option("--kernel", "kernel", str, "'linear', 'rbf', 'poly' or 'sigmoid'"),
    Option("--gamma", "gamma", _number_or_word, "of the kernel: a number, 'scale' or 'auto'"),
    Option("--multi-class", "multi_class", str, "'joint' or 'ovr'"),
    Option("--class-weight", "class_weight", str, "'balanced' weighs the classes equally"),
    Option("--solver", "solver", str, "'auto' or the name of an algorithm"),
    Option("--stopping", "stopping", str, "'gap', or a rule of a paper such as 'relative-change'"),
    Option("--tol", "tol", float, "relative duality gap to reach"),
    Option("--max-iter", "max_iter", int, "most iterations"),
    Option("--time-limit", "time_limit", float, "most seconds of a fit"),
)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """``--model`` and an option for every common parameter."""
    parser.add_argument(
        "--model",
        "--model-name",
        dest="model",
        metavar="NAME",
        required=True,
        help=f"one of {', '.join(sorted(model_names()))}",
    )
    group = parser.add_argument_group("parameters of the model (defaults: those of the class)")
    for option in OPTIONS:
        group.add_argument(
            option.flag, dest=option.parameter, type=option.kind, help=option.help, metavar="VALUE"
        )
    add_scaling(group)
    group.add_argument(
        "--no-intercept", dest="fit_intercept", action="store_false", help="fit no intercept"
    )
    group.add_argument(
        "--set",
        dest="more",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_assignment,
        help="any other parameter; the value as JSON, or else a word",
    )


def add_scaling(group: argparse._ArgumentGroup) -> None:
    """``--standardize``, which is one for all commands."""
    group.add_argument(
        "--standardize",
        choices=STANDARDIZE,
        default="auto",
        help="scale the features to unit variance (default: auto: dense ones)",
    )
    group.add_argument(
        "--no-standardize",
        dest="standardize",
        action="store_const",
        const="no",
        help="the same as --standardize no",
    )


def estimator_of(arguments: argparse.Namespace, *callbacks: Any) -> Any:
    """The unfitted estimator that the options describe, with these callbacks.

    Raises
    ------
    ValueError
        There is no such model, or it has no such parameter.
    """
    names = sorted(model_names())
    if arguments.model not in names:
        raise ValueError(f"there is no model {arguments.model!r}; models are {', '.join(names)}")
    kind = getattr(proxmargin, arguments.model)
    known = set(inspect.signature(kind).parameters)
    given = _given(arguments)
    unknown = [name for name in given if name not in known]
    if unknown:
        flags = {option.parameter: option.flag for option in OPTIONS}
        wrong = flags.get(unknown[0]) or f"--set {unknown[0]}"
        raise ValueError(f"{arguments.model} has no parameter for {wrong}")
    common = {
        "standardize": arguments.standardize != "no",
        "fit_intercept": arguments.fit_intercept,
        "callbacks": callbacks,
    }
    settings = {name: value for name, value in common.items() if name in known}
    return kind(**{**settings, **given})


def suited(estimator: Any, X: Any, arguments: argparse.Namespace) -> Any:
    """The estimator; it takes sparse features in their own units, unless told to scale them.

    Centred columns of text are dense, which costs much and seldom predicts better.
    """
    told = arguments.standardize != "auto" or "standardize" in dict(arguments.more)
    if not told and hasattr(X, "tocsr") and "standardize" in estimator.get_params(deep=False):
        estimator.set_params(standardize=False)
    return estimator


def free_strength(estimator: Any, arguments: argparse.Namespace) -> str:
    """The parameter that a path moves along, which no option sets; ValueError if there is none."""
    from proxmargin.paths.strength import strength_of

    try:
        name = strength_of(estimator).name
    except TypeError as error:
        raise ValueError(f"{arguments.model} has no alpha and no C, and so no path") from error
    if getattr(arguments, name) is not None:
        raise ValueError(f"a path chooses {name} itself: leave out --{name}")
    return name


def shown_settings(model: Any) -> str:
    """The parameters that matter most to a reader."""
    settings = model.get_params(deep=False)
    shared = settings.get("penalty", "elasticnet")  # others have no share of the l1 norm
    names = [
        name
        for name in (
            *("loss", "penalty", "alpha", "l1_ratio", "delta", "C", "eta", "nu", "kappa", "kernel"),
            *("standardize", "solver"),
        )
        if settings.get(name) is not None and (name != "l1_ratio" or shared == "elasticnet")
    ]
    return ", ".join(f"{name}={_word(settings[name])}" for name in names)


def name_features(model: Any, names: list[str] | None) -> None:
    """Give a model that was fitted on a plain array the names of its columns."""
    if names is not None:
        import numpy as np

        model.feature_names_in_ = np.array(names, dtype=object)


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    options = {option.parameter: getattr(arguments, option.parameter) for option in OPTIONS}
    named_ones = {name: value for name, value in options.items() if value is not None}
    given = {**named_ones, **dict(arguments.more)}
    # a budget takes the place of a weight
    return {"C": None, **given} if "eta" in given else given


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _word(value: Any) -> str:
    return format(value, ".6g") if isinstance(value, float) else str(value)
