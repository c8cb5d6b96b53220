"""Options that subcommands share, and the data, models and searches that they describe."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import proxmargin
from proxmargin.models.fitting.registry import CROSS_VALIDATED, model_names

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Dialect, Table


Commands = Any  # what add_subparsers returns has no public name

AUTO = "auto"  # a strength that cross-validation chooses
STANDARDIZE: Mapping[str, str | bool] = {"auto": "auto", "yes": True, "no": False}
STRENGTHS = ("alpha", "C")
FOLDS = 5  # of the choice that fit makes
N_STRENGTHS = 20  # that it chooses among, as those of cv
# parameters by which a model is shown
SHOWN = ("loss", "penalty", "alpha", "l1_ratio", "delta", "C", "eta", "nu", "kappa", "kernel")


def subcommand(commands: Commands, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    """A parser for one subcommand, with its summary as help and description."""
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    made.set_defaults(run=run)
    return made


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every subcommand."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_data(parser: argparse.ArgumentParser) -> None:
    """The data and how to read them."""
    parser.add_argument("data", metavar="DATA", help="a data file or the name of an embedded set")
    add_columns(parser)


def add_fitting(parser: argparse.ArgumentParser) -> None:
    """The data, and the model that is fitted to them."""
    add_data(parser)
    add_impute(parser)
    add_weights(parser)
    add_model_options(parser)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Which columns are labels and features, and how a text table is written."""
    add_target(parser)
    add_ignore(parser)
    parser.add_argument(
        "--encode",
        action="store_true",
        help="turn columns of text into one feature per level; otherwise they are refused",
    )
    add_text(parser)


def add_impute(parser: argparse.ArgumentParser) -> None:
    """What becomes of missing cells."""
    parser.add_argument(
        "--impute",
        choices=("median", "mean", "constant"),
        help="fill in missing cells by the median or the mean of the column, or by zero; "
        "otherwise they are refused. Cells of text become zeros in all levels",
    )


def add_text(parser: argparse.ArgumentParser) -> None:
    """How a text table is written."""
    add = parser.add_argument_group(
        "text tables (defaults: as written by most programs)"
    ).add_argument
    add(
        "--sep",
        metavar="CHAR",
        help="between the cells; 'tab' for a tab (default: a comma, and a tab in .tsv files)",
    )
    add("--decimal", metavar="CHAR", default=".", help="before the fraction of a number")
    add("--encoding", metavar="NAME", default="utf-8", help="such as latin-1 (default: utf-8)")
    add(
        "--no-header",
        dest="header",
        action="store_false",
        help="the first line is data; columns are called 0, 1, ...",
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        metavar="COL",
        help="the column with the labels, by name or position (default: the one called target, "
        "label, class or y, else the last)",
    )


def add_ignore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ignore",
        metavar="COL",
        action="append",
        default=[],
        help="a column that is no feature, by name or position; may be given again",
    )


def add_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights",
        metavar="COL",
        help="a column with the weights of the samples, by name or position; it is no feature",
    )


def table_of(arguments: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from proxmargin.files.tables.table import read_data

    return read_data(
        arguments.data,
        target=arguments.target,
        encode=arguments.encode,
        ignore=arguments.ignore,
        groups=getattr(arguments, "groups", None),
        blanks=getattr(arguments, "impute", None) is not None,
        weights=getattr(arguments, "weights", None),
        dialect=dialect_of(arguments),
    )


def filled_table_of(arguments: argparse.Namespace) -> tuple[Table, Any]:
    """The data with missing cells filled in, and the imputer that does so; None without one."""
    return filled(table_of(arguments), arguments)


def filled(table: Table, arguments: argparse.Namespace) -> tuple[Table, Any]:
    """The same for data that have been read."""
    if arguments.impute is None:
        return table, None
    from proxmargin.data.inputs.preprocessing import imputer

    transformer = imputer(arguments.impute).fit(table.X)
    return replace(table, X=transformer.transform(table.X)), transformer


def dialect_of(arguments: argparse.Namespace) -> Dialect:
    """How the text tables are written that the arguments name."""
    from proxmargin.files.tables.contents import Dialect

    separator = {"tab": "\t", "\\t": "\t"}.get(arguments.sep, arguments.sep)
    header = None if arguments.header else False
    return Dialect(separator, arguments.decimal, arguments.encoding, header)


def _number_or_auto(text: str) -> float | str:
    return AUTO if text == AUTO else float(text)


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


# parameters of estimators with an option: its type and help
OPTIONS: Mapping[str, tuple[Any, str]] = {
    "alpha": (_number_or_auto, "strength of the penalty; of fit also 'auto'"),
    "l1_ratio": (float, "share of the l1 norm in the penalty, in [0, 1]"),
    "delta": (float, "width of the quadratic zone of the huberized hinge"),
    "intercept_ridge": (float, "ridge penalty of the intercept"),
    "C": (_number_or_auto, "weight of the losses; of fit also 'auto'"),
    "eta": (float, "of MulticlassSVC: the most its losses may sum to, without C"),
    "penalty": (str, "of MulticlassSVC: 'l1', 'l2', 'elasticnet' or a group"),
    "loss": (str, "of MulticlassSVC: 'hinge', 'squared_hinge', 'logistic', 'lee'"),
    "nu": (_number_or_word, "of NuSVC and DWD: a number, 'auto' or '0.3max'"),
    "kappa": (_number_or_word, "of MarginFDA and MarginMPM, or '0.5max'"),
    "kernel": (str, "'linear', 'rbf', 'poly' or 'sigmoid'"),
    "gamma": (_number_or_word, "of the kernel: a number, 'scale' or 'auto'"),
    "multi_class": (str, "'joint' or 'ovr'"),
    "class_weight": (str, "'balanced' weighs the classes equally"),
    "solver": (str, "'auto' or the name of an algorithm"),
    "stopping": (str, "'gap', or a rule of a paper such as 'relative-change'"),
    "tol": (float, "relative duality gap to reach"),
    "max_iter": (int, "most iterations"),
    "time_limit": (float, "most seconds of a fit"),
}


def flag_of(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


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
    for name, (kind, told) in OPTIONS.items():
        group.add_argument(flag_of(name), dest=name, type=kind, help=told, metavar="VALUE")
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
    """The unfitted estimator that the options describe, with these callbacks."""
    names = sorted(model_names())
    if arguments.model not in names:
        raise ValueError(f"there is no model {arguments.model!r}; models are {', '.join(names)}")
    kind = getattr(proxmargin, arguments.model)
    known = set(inspect.signature(kind).parameters)
    given = _given(arguments)
    unknown = [name for name in given if name not in known]
    if unknown:
        wrong = flag_of(unknown[0]) if unknown[0] in OPTIONS else f"--set {unknown[0]}"
        raise ValueError(f"{arguments.model} has no parameter for {wrong}")
    common = {
        "standardize": arguments.standardize != "no",
        "fit_intercept": arguments.fit_intercept,
        "callbacks": callbacks,
    }
    settings = {name: value for name, value in common.items() if name in known}
    return kind(**{**settings, **given})


def suited(estimator: Any, X: Any, arguments: argparse.Namespace) -> Any:
    """The estimator; unless told otherwise it leaves sparse features unscaled: centred columns of
    text are dense, which costs much and seldom predicts better."""
    told = arguments.standardize != "auto" or "standardize" in dict(arguments.more)
    if not told and hasattr(X, "tocsr") and "standardize" in estimator.get_params(deep=False):
        estimator.set_params(standardize=False)
    return estimator


def free_strength(estimator: Any, arguments: argparse.Namespace) -> str:
    """The parameter that a path moves along, which no option sets; ValueError if there is none."""
    from proxmargin.models.paths.grid import strength_of

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
    told = {name: settings.get(name) for name in (*SHOWN, "standardize", "solver")}
    if shared != "elasticnet":
        del told["l1_ratio"]
    words = {n: format(v, ".6g") if isinstance(v, float) else v for n, v in told.items()}
    return ", ".join(f"{name}={word}" for name, word in words.items() if word is not None)


def name_features(model: Any, names: list[str] | None) -> None:
    """Give a model that was fitted on a plain array the names of its columns."""
    if names is not None:
        import numpy as np

        model.feature_names_in_ = np.array(names, dtype=object)


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    options = {name: getattr(arguments, name) for name in OPTIONS}
    given = {name: value for name, value in options.items() if value is not None}
    given |= dict(arguments.more)
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


def to_choose(arguments: argparse.Namespace) -> list[str]:
    """The strengths that are to be chosen: ``--alpha auto`` or ``--C auto``."""
    return [name for name in STRENGTHS if getattr(arguments, name) == AUTO]


def strength_and_kind(arguments: argparse.Namespace) -> tuple[str, Any]:
    """The parameter that cross-validation chooses, and the class that does."""
    name = f"{arguments.model}CV"
    if name not in CROSS_VALIDATED:
        models = ", ".join(CROSS_VALIDATED.values())
        raise ValueError(f"cross-validation knows no strength of {arguments.model}; of {models}")
    kind = getattr(proxmargin, name)
    return kind.strength.name, kind


def search_of(arguments: argparse.Namespace, **settings: Any) -> Any:
    """The unfitted classifier that chooses, for the model of the options and ``settings`` of the
    search; a share of the l1 norm that the options give is kept."""
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
