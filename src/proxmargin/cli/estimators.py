"""Options that describe a model, and the estimators and searches that they make."""

from __future__ import annotations

import argparse
import inspect
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import proxmargin
from proxmargin.cli.options import AUTO, FOLDS, Note, flag_of, folds_of, parameters
from proxmargin.models.fitting.registry import CROSS_VALIDATED, model_names

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Estimator, Record

STRENGTHS = ("alpha", "C")
WIDE = 10.0  # ratio of standard deviations from which it is said that features are not scaled
SCALING: Mapping[str | None, bool] = {"yes": True, "no": False}
# parameters by which a model is shown
SHOWN = ("loss", "penalty", "alpha", "l1_ratio", "delta", "C", "eta", "nu", "kappa", "kernel")


def estimator_of(arguments: argparse.Namespace, *callbacks: object) -> Estimator:
    """The unfitted estimator that the options describe, with these callbacks."""
    names = sorted(model_names())
    if arguments.model not in names:
        raise ValueError(f"there is no model {arguments.model!r}; models are {', '.join(names)}")
    kind, given = getattr(proxmargin, arguments.model), _given(arguments)
    known = inspect.signature(kind).parameters
    unknown = [name for name in given if name not in known]
    if unknown:
        wrong = flag_of(unknown[0]) if unknown[0] in parameters() else f"--set {unknown[0]}"
        raise ValueError(f"{arguments.model} has no parameter for {wrong}")
    return kind(**given, callbacks=callbacks)


def _given(arguments: argparse.Namespace) -> Record:
    """The parameters that the options give; a class has its own defaults for all others."""
    names = (*parameters(), "fit_intercept")
    given = {name: getattr(arguments, name) for name in names}
    given["standardize"] = SCALING.get(arguments.standardize)
    given = {name: value for name, value in given.items() if value is not None}
    given |= dict(arguments.more)
    # a budget takes the place of a weight
    return {"C": None, **given} if "eta" in given else given


def suited(estimator: Estimator, table: Table, arguments: argparse.Namespace) -> Estimator:
    """The estimator with parameters by name in the order of the table (`in_order`), which scales
    dense features where the table is to decide: centred columns of text are dense, which costs much
    and seldom predicts better."""
    in_order(estimator, table)
    if arguments.standardize == AUTO and "standardize" not in dict(arguments.more):
        estimator.set_params(standardize=not hasattr(table.X, "tocsr"))
    return estimator


def tell_scales(table: Table, arguments: argparse.Namespace) -> None:
    """Say how far apart the units of dense features are where nobody was asked to scale them."""
    told = arguments.standardize is not None or "standardize" in dict(arguments.more)
    if told or arguments.quiet or hasattr(table.X, "tocsr"):
        return
    import numpy as np

    from proxmargin.data.designs import as_design, moments

    count = table.X.shape[0]
    spread = moments(as_design(table.X), np.full(count, 1 / count), constant=0.0)[1]
    varying = sorted(np.flatnonzero(spread), key=spread.__getitem__)
    if varying and spread[varying[-1]] > WIDE * spread[varying[0]]:
        names = table.feature_names or range(spread.size)
        low, high = (f"{spread[j]:.3g} ({names[j]})" for j in (varying[0], varying[-1]))
        sentence = (
            f"features are not scaled, and their standard deviations go from {low} to {high}: a "
            "penalty weighs on those of small units; to scale them type --standardize yes, in "
            "Python standardize=True"
        )
        warnings.warn(sentence, Note, stacklevel=2)


def in_order(estimator: Estimator, table: Table) -> Estimator:
    """The estimator, whose parameters by the names of features and labels, which are text in JSON,
    are put in the order of the features of the table, which are an array, and to its labels."""
    import numpy as np

    from proxmargin.data.inputs.aligned import by_feature
    from proxmargin.models.fitting.factors import sides_of

    given = estimator.get_params(deep=False)
    names = [str(each) for each in table.feature_names or range(table.X.shape[1])]

    def ordered(name: str, values: Any, missing: float | None) -> Any:
        if isinstance(values, Mapping):
            values = {str(each): value for each, value in values.items()}
        return by_feature(name, values, len(names), names, missing)

    missing = {"penalty_factor": 1.0, "groups": None}
    settings = {n: ordered(n, given[n], end) for n, end in missing.items() if n in given}
    sides = given.get("bounds")
    sides = sides_of(sides) if isinstance(sides, Mapping) else sides
    if isinstance(sides, list | tuple):
        ends = zip(sides, (-np.inf, np.inf), strict=False)
        settings["bounds"] = tuple(ordered("bounds", side, end) for side, end in ends)
    if isinstance(given.get("class_weight"), Mapping):
        labels = {str(label): label for label in np.unique(np.asarray(table.y)).tolist()}
        weights = given["class_weight"].items()
        settings["class_weight"] = {labels.get(str(each), each): w for each, w in weights}
    return estimator.set_params(**settings)


def free_strength(estimator: Estimator, arguments: argparse.Namespace) -> str:
    """The parameter that a path moves along, which no option sets; ValueError if there is none."""
    from proxmargin.models.paths.grid import strength_of

    try:
        name = strength_of(estimator).name
    except TypeError as error:
        raise ValueError(f"{arguments.model} has no alpha and no C, and so no path") from error
    if getattr(arguments, name) is not None:
        raise ValueError(f"a path chooses {name} itself: leave out --{name}")
    return name


def shown_settings(model: Estimator) -> str:
    """The parameters that matter most to a reader."""
    settings = model.get_params(deep=False)
    shared = settings.get("penalty", "elasticnet")  # others have no share of the l1 norm
    told = {name: settings.get(name) for name in (*SHOWN, "standardize", "solver")}
    if shared != "elasticnet":
        del told["l1_ratio"]
    words = {n: format(v, ".6g") if isinstance(v, float) else v for n, v in told.items()}
    return ", ".join(f"{name}={word}" for name, word in words.items() if word is not None)


def in_python(model: Estimator, imputer: Estimator | None = None, weights: object = None) -> str:
    """The expression that makes the estimator again, with the imputer before it, and its fit where
    the weights are a part of that."""
    from proxmargin.data.inputs.preprocessing import Preprocessed, expression

    if imputer is None:
        whole, step = model, ""
    else:
        whole, step = Preprocessed.of(imputer, model), f"{type(model).__name__.lower()}__"
    fit = "" if weights is None else f".fit(X, y, {step}sample_weight=weights)"
    return f"{expression(whole)}{fit}"


def grouping(estimator: Estimator, groups: object) -> Record:
    """What a fit is told of groups: of a search, whose folds keep them whole."""
    return {} if groups is None or not hasattr(estimator, "strength") else {"groups": groups}


def name_features(model: Estimator, names: list[str] | None) -> None:
    """Give a model that was fitted on a plain array the names of its columns."""
    if names is not None:
        import numpy as np

        model.feature_names_in_ = np.array(names, dtype=object)


def to_choose(arguments: argparse.Namespace) -> list[str]:
    """The strengths that are to be chosen: ``--alpha auto`` or ``--C auto``."""
    return [name for name in STRENGTHS if getattr(arguments, name) == AUTO]


def classifier_of(arguments: argparse.Namespace, *, quiet: bool = True) -> Estimator:
    """The unfitted estimator of the options, or the search for its strength where that is to be
    chosen; both show their progress unless ``quiet``."""
    if to_choose(arguments):
        return search_of(arguments, verbose=not quiet)
    progress = () if quiet else (proxmargin.Progress(label=arguments.model),)
    return estimator_of(arguments, *progress)


def search_of(
    arguments: argparse.Namespace, strengths: int | None = None, **settings: object
) -> Estimator:
    """The unfitted classifier that chooses, for the model of the options and those ``settings`` of
    the search that are given; a share of the l1 norm that the options give is kept."""
    estimator_of(arguments)  # which knows what the model has no parameter for
    name = f"{arguments.model}CV"
    if name not in CROSS_VALIDATED:
        models = ", ".join(CROSS_VALIDATED.values())
        raise ValueError(f"cross-validation knows no strength of {arguments.model}; of {models}")
    kind = getattr(proxmargin, name)
    strength, known = kind.strength.name, kind._get_param_names()
    given = {"random_state": arguments.seed, **_given(arguments)}
    wrong = next((n for n in STRENGTHS if n != strength and given.get(n) == AUTO), None)
    if wrong is not None:
        raise ValueError(f"{arguments.model} has no parameter for --{wrong}: it has --{strength}")
    if given.pop(strength, None) not in (None, AUTO):
        raise ValueError(f"cross-validation chooses {strength} itself: leave out --{strength}")
    if "l1_ratio" in given:
        given["l1_ratios"] = (given.pop("l1_ratio"),)
    settings |= {f"{strength}s": strengths}
    settings = {name: value for name, value in settings.items() if value is not None}
    for lost in (name for name in (*given, *settings) if name not in known):
        raise ValueError(f"a search has no parameter for {flag_of(lost)} of {arguments.model}")
    return kind(**{**given, "cv": folds_of(arguments, FOLDS), **settings})
