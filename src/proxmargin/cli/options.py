"""Options that subcommands share, and the data, models and searches that they describe."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import proxmargin
from proxmargin.models.fitting.registry import CROSS_VALIDATED, model_names

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Dialect, Table
    from proxmargin.runtime.types import Estimator, Facts, Record


Commands = Any  # what add_subparsers returns has no public name

AUTO = "auto"  # a strength that cross-validation chooses
STANDARDIZE: Mapping[str, str | bool] = {"auto": "auto", "yes": True, "no": False}
STRENGTHS = ("alpha", "C")
FOLDS = 5  # of the choice that fit makes
TIME = "time"  # of rows that are in its order
N_STRENGTHS = 20  # that it chooses among, as those of cv
# parameters by which a model is shown
SHOWN = ("loss", "penalty", "alpha", "l1_ratio", "delta", "C", "eta", "nu", "kappa", "kernel")


def subcommand(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], summary: str
) -> argparse.ArgumentParser:
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


def add_fitting(parser: argparse.ArgumentParser) -> None:
    """The data, and the model that is fitted to them."""
    parser.add_argument("data", metavar="DATA", help="a data file or the name of an embedded set")
    add_columns(parser)
    add_model_options(parser)


# what a column of the data is: option, and what argparse is told of it
ROLES: Mapping[str, Mapping[str, object]] = {
    "--target": {
        "help": "the column with the labels, by name or position (default: the one called target, "
        "label, class or y, else the last)",
    },
    "--id": {
        "dest": "ids",
        "help": "the column with the names of the samples, which is no feature (default: a first "
        "column without a name, or one of text that is different in each row)",
    },
    "--ignore": {
        "action": "append",
        "default": [],
        "help": "columns that are no features: a name, a position, a range of positions such as "
        "2-5, or a pattern such as 'Unnamed*'; may be given again",
    },
    "--groups": {
        "help": "a column of patients, batches or centres, which is no feature: folds and halves "
        "keep the samples of a group together, and permutations stay within it",
    },
    "--weights": {"help": "a column with the weights of the samples, which is no feature"},
}
# what becomes of cells, rows and classes
CELLS: Mapping[str, Mapping[str, object]] = {
    "--encode": {
        "action": "store_true",
        "help": "turn columns of text into one feature per level; otherwise they are refused",
    },
    "--normalize-levels": {
        "action": "store_true",
        "help": "join levels that differ only in blanks, case or the way a number is written",
    },
    "--impute": {
        "choices": ("median", "mean", "constant"),
        "help": "fill in missing cells by the median or the mean of the column, or by zero; "
        "otherwise they are refused. Cells of text become zeros in all levels",
    },
    "--unlabelled": {
        "choices": ("error", "drop"),
        "default": "error",
        "help": "rows without a label are refused (default) or left out",
    },
    "--na-labels": {
        "action": "store_true",
        "help": "labels such as NA are a class, and not missing; only empty ones are",
    },
    "--drop-classes": {
        "metavar": "CLASS",
        "action": "append",
        "default": [],
        "help": "leave out the samples of a class; may be given again",
    },
    "--duplicates": {
        "choices": ("error", "suffix", "mean", "first"),
        "default": "error",
        "help": "columns of the same name are refused (default), numbered, averaged, or only the "
        "first one is kept",
    },
    "--labels": {
        "metavar": "FILE",
        "help": "a second table with the labels, joined by the names of the samples (--id); "
        "--target, --groups and --weights are its columns",
    },
}


# the arguments of `read_data` among them
OF_TABLES = (
    *("target", "ids", "ignore", "groups", "weights", "encode", "normalize_levels"),
    *("unlabelled", "na_labels", "drop_classes", "duplicates", "labels"),
)


def add_columns(parser: argparse.ArgumentParser, without: str = "") -> None:
    """What the columns are, what becomes of their cells, and how a text table is written;
    ``without`` one role."""
    add_roles(parser, *(option for option in ROLES if option != without))
    add_group(parser, "cells, rows and classes", CELLS)
    add_text(parser)


def add_group(parser: argparse.ArgumentParser, title: str, settings: Facts, *options: str) -> None:
    """A group of these options, by default all that have settings."""
    group = parser.add_argument_group(title)
    for option in options or settings:
        group.add_argument(option, **settings[option])


def add_roles(parser: argparse.ArgumentParser, *options: str) -> None:
    settings = {option: {"metavar": "COL", **ROLES[option]} for option in options}
    add_group(parser, "columns (by name or position; 0 is the first, -1 the last)", settings)


class Note(UserWarning):
    """What was done, which is no reason to worry."""


class Elsewhere(argparse.Action):
    """An option of other commands, which this one answers with what to do: its ``const``."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(str(self.const))


def add_elsewhere(parser: argparse.ArgumentParser, option: str, why: str) -> None:
    parser.add_argument(option, nargs="?", action=Elsewhere, const=why, help=argparse.SUPPRESS)


def _seed(text: str) -> int:
    if not (text.isdecimal() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"a whole number from 0 to 2**32 - 1, and not {text!r}")
    return int(text)


def add_seed(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        default=0,
        help="of what is drawn by chance: folds, halves, permutations (default: 0)",
    )


# how a table is written: option, and what argparse is told of it
WRITTEN: Mapping[str, Mapping[str, object]] = {
    "--sep": {
        "metavar": "CHAR",
        "help": "between the cells; 'tab' for a tab (default: what the lines show)",
    },
    "--decimal": {"metavar": "CHAR", "default": ".", "help": "before the fraction of a number"},
    "--thousands": {"metavar": "CHAR", "help": "between groups of digits, as in 1,234.5"},
    "--encoding": {
        "metavar": "NAME",
        "default": "utf-8",
        "help": "such as latin-1 (default: utf-8, or what a byte order mark tells)",
    },
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "the first line has the names of the columns, or is data, and columns are called "
        "0, 1, ... (default: what all rows tell)",
    },
    "--comment": {"metavar": "CHAR", "help": "begins a line, or the rest of one, that is no data"},
    "--missing": {
        "metavar": "WORDS",
        "action": "append",
        "default": [],
        "help": "cells that are missing, separated by commas, such as '?,.,n/a', or of one column "
        "alone, such as age=-9; besides empty ones and the usual words; may be given again; saved "
        "models keep them",
    },
    "--short-rows": {
        "choices": ("error", "missing"),
        "default": "error",
        "help": "rows with too few cells are refused (default), or end with missing ones",
    },
    "--sheet": {"metavar": "NAME", "help": "of a workbook (default: the only one with cells)"},
    "--transpose": {
        "action": "store_true",
        "help": "the samples are the columns: the first column has the names of the features",
    },
}


def add_text(parser: argparse.ArgumentParser) -> None:
    add_group(parser, "tables (defaults: as written by most programs)", WRITTEN)


def add_splits(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Which rows are held out together."""
    group.add_argument(
        "--splits",
        choices=("shuffled", TIME),
        default="shuffled",
        help="stratified folds of shuffled rows (default), or for rows in the order of time: each "
        "fold tests later rows than it trains on",
    )


def check_counts(arguments: argparse.Namespace) -> None:
    """Raise ValueError that names the option, of any command, whose number cannot be."""
    for name in ("folds", "cv"):
        count = getattr(arguments, name, None)
        if count is not None and count < 2:
            raise ValueError(f"--{name} {count}: cross-validation needs at least 2 folds")
    if getattr(arguments, "jobs", None) == 0:
        raise ValueError("--jobs 0: at least one job does the work; -1: one for each core")
    count, least = getattr(arguments, "permutations", None), getattr(arguments, "fewest", 1)
    if count is not None and count < least:
        raise ValueError(f"--permutations {count}: it must be at least {least}")


def check_folds(arguments: argparse.Namespace, table: Table, option: str, folds: int) -> None:
    """Raise ValueError that names the option where rows or groups are too few for its folds."""
    import numpy as np

    from proxmargin.data.inputs.targets import refuse_small_classes

    y, given = np.asarray(table.y), f"{option} {folds}"
    if getattr(arguments, "splits", None) == TIME:
        if y.size <= folds:
            raise ValueError(f"{given} in time needs {folds + 1} rows, and there are {y.size}")
    elif table.groups is not None:
        count = np.unique(table.groups).size
        if count < folds:
            raise ValueError(f"{given} needs as many groups, and there are {count}")
    else:
        classes, counts = np.unique(y, return_counts=True)
        if counts.max() < folds:  # those of one smaller class are a warning
            refuse_small_classes(
                classes, counts, folds, f"{given} needs", ", or ask for fewer folds"
            )


def folds_of(arguments: argparse.Namespace, folds: int | None) -> Any:
    """A number of shuffled folds (None: the usual one), or a splitter in time."""
    if getattr(arguments, "splits", None) != TIME:
        return folds
    from sklearn.model_selection import TimeSeriesSplit

    return TimeSeriesSplit(FOLDS if folds is None else folds)


def table_of(arguments: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from proxmargin.files.tables.table import read_data

    given = {name: getattr(arguments, name) for name in OF_TABLES}
    blanks = arguments.impute is not None
    table = read_data(arguments.data, **given, blanks=blanks, dialect=dialect_of(arguments))
    tell(table, arguments)
    return table


def tell(table: Table, arguments: argparse.Namespace) -> None:
    """What was done with the columns of a file, on standard error."""
    for note in () if arguments.quiet else table.notes:
        warnings.warn(note, Note, stacklevel=2)


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

    same = ("decimal", "thousands", "encoding", "header", "comment", "short_rows", "sheet")
    return Dialect(
        separator={"tab": "\t", "\\t": "\t"}.get(arguments.sep, arguments.sep),
        missing=tuple(
            word.strip()
            for words in arguments.missing
            for word in words.split(",")
            if word.strip() or not words.strip(", ")
        ),
        transpose=arguments.transpose,
        **{name: getattr(arguments, name) for name in same},
    )


def keep_table_options(model: Estimator, arguments: argparse.Namespace, table: Table) -> None:
    """Keep with a model what cells of its training table stand for, for other tables: not how the
    file was written; and between which numbers they are."""
    from proxmargin.files.tables.features import extremes

    kept = {
        "missing": dialect_of(arguments).missing,
        "signs": table.signs,
        "normalize_levels": arguments.normalize_levels,
        "duplicates": arguments.duplicates != "error" and arguments.duplicates,
    }
    if any(kept.values()):
        model.table_options_ = {name: value for name, value in kept.items() if value}
    if table.feature_names is not None and not hasattr(table.X, "tocsr"):
        ends = extremes(table.X).tolist()
        import numpy as np

        model.table_ranges_ = np.array([[float(f"{end:.6g}") for end in each] for each in ends])


def number(text: str, what: str = "a number") -> float:
    """Type of an option, whose error is a sentence."""
    try:
        return float(text)
    except ValueError:
        told = f"{what} such as 0.1, with a decimal point, and not {text!r}"
        raise argparse.ArgumentTypeError(told) from None


def _number_or_auto(text: str) -> float | str:
    return AUTO if text == AUTO else number(text, f"{AUTO!r} or a number")


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _json_or_word(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


# parameters of estimators with an option: its type and help
OPTIONS: Mapping[str, tuple[Any, str]] = {
    "alpha": (_number_or_auto, "strength of the penalty; of fit also 'auto'"),
    "l1_ratio": (number, "share of the l1 norm in the penalty, in [0, 1]"),
    "delta": (number, "width of the quadratic zone of the huberized hinge"),
    "intercept_ridge": (number, "ridge penalty of the intercept"),
    "C": (_number_or_auto, "weight of the losses; of fit also 'auto'"),
    "eta": (number, "of MulticlassSVC: the most its losses may sum to, without C"),
    "penalty": (str, "of MulticlassSVC: 'l1', 'l2', 'elasticnet' or a group"),
    "loss": (str, "of MulticlassSVC: 'hinge', 'squared_hinge', 'logistic', 'multinomial', 'lee'"),
    "nu": (_number_or_word, "of NuSVC and DWD: a number, 'auto' or '0.3max'"),
    "kappa": (_number_or_word, "of MarginFDA and MarginMPM, or '0.5max'"),
    "kernel": (str, "'linear', 'rbf', 'poly' or 'sigmoid'"),
    "gamma": (_number_or_word, "of the kernel: a number, 'scale' or 'auto'"),
    "multi_class": (str, "'joint' or 'ovr'"),
    "class_weight": (_json_or_word, "'balanced', or the weights of labels: '{\"0\": 2}'"),
    "solver": (str, "'auto' or the name of an algorithm"),
    "stopping": (str, "'gap', or a rule of a paper such as 'relative-change'"),
    "tol": (number, "relative duality gap to reach"),
    "max_iter": (int, "most iterations"),
    "time_limit": (number, "most seconds of a fit"),
}


def flag_of(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def add_model_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """``--model`` and an option for every common parameter."""
    parser.add_argument(
        "--model",
        "--model-name",
        dest="model",
        metavar="NAME",
        required=required,
        help=f"one of {', '.join(sorted(model_names()))}",
    )
    group = parser.add_argument_group(
        "parameters of the model (defaults: those of the class, where none is given)"
    )
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


def estimator_of(arguments: argparse.Namespace, *callbacks: object) -> Estimator:
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


def suited(estimator: Estimator, table: Table, arguments: argparse.Namespace) -> Estimator:
    """The estimator with parameters by name in the order of the table (`in_order`); unless told
    otherwise it leaves sparse features unscaled: centred columns of text are dense, which costs
    much and seldom predicts better."""
    in_order(estimator, table)
    told = arguments.standardize != "auto" or "standardize" in dict(arguments.more)
    if not told and hasattr(table.X, "tocsr") and "standardize" in estimator.get_params(deep=False):
        estimator.set_params(standardize=False)
    return estimator


def in_order(estimator: Estimator, table: Table) -> Estimator:
    """The estimator, whose parameters by the names of features and labels, which are text in JSON,
    are put in the order of the features of the table, which are an array, and to its labels.
    ValueError for a name that is none of a feature."""
    given = estimator.get_params(deep=False)
    settings = {
        name: _of_features(name, given[name], table, missing)
        for name, missing in (("penalty_factor", 1.0), ("groups", None))
        if isinstance(given.get(name), Mapping)
    }
    sides = given.get("bounds")
    if isinstance(sides, Mapping):
        from proxmargin.models.fitting.factors import sides_of

        sides = sides_of(sides)
    if isinstance(sides, list | tuple) and any(isinstance(side, Mapping) for side in sides):
        ends = zip(sides, (float("-inf"), float("inf")), strict=False)
        settings["bounds"] = tuple(_of_features("bounds", side, table, end) for side, end in ends)
    weights = given.get("class_weight")
    if isinstance(weights, Mapping):
        import numpy as np

        labels = {str(label): label for label in np.unique(np.asarray(table.y)).tolist()}
        weights = {labels.get(str(label), label): weight for label, weight in weights.items()}
        settings["class_weight"] = weights
    return estimator.set_params(**settings) if settings else estimator


def _of_features(name: str, values: Any, table: Table, missing: float | None) -> Any:
    """The values of all features, those that a mapping leaves out being ``missing``."""
    from proxmargin.data.inputs.aligned import by_feature

    if not isinstance(values, Mapping):
        return values
    count = table.X.shape[1]
    names = [str(each) for each in table.feature_names or range(count)]
    values = {str(each): value for each, value in values.items()}
    unknown = next((each for each in values if each not in names), None)
    folded = {each.casefold(): each for each in names}
    near = [] if unknown is None else get_close_matches(unknown.casefold(), folded, 1)
    if near:
        raise ValueError(
            f"{name} names {unknown!r}, which is no feature: did you mean {folded[near[0]]!r}?"
        )
    return by_feature(name, values, count, names, missing)


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
    """The expression that makes the estimator again: its parameters that are no defaults, the
    imputer before it, and its fit where the weights are a part of that."""
    settings = model.get_params(deep=False)
    if "callbacks" in settings:  # those of the command show its progress
        settings["callbacks"] = ()
    made, weighted = type(model)(**settings).__repr__(N_CHAR_MAX=10_000), "sample_weight"
    if imputer is not None:
        made = f"make_pipeline({imputer!r}, {made})"
        weighted = f"{type(model).__name__.lower()}__{weighted}"
    fit = "" if weights is None else f".fit(X, y, {weighted}=weights)"
    words = re.sub(r"(?<=[\[( -])inf(?=[\],)])", "float('inf')", " ".join(made.split()))
    return f"{words}{fit}"


def grouping(estimator: Estimator, groups: object) -> Record:
    """What a fit is told of groups: of a search, whose folds keep them whole."""
    return {} if groups is None or not hasattr(estimator, "strength") else {"groups": groups}


def name_features(model: Estimator, names: list[str] | None) -> None:
    """Give a model that was fitted on a plain array the names of its columns."""
    if names is not None:
        import numpy as np

        model.feature_names_in_ = np.array(names, dtype=object)


def _given(arguments: argparse.Namespace) -> Record:
    options = {name: getattr(arguments, name) for name in OPTIONS}
    given = {name: value for name, value in options.items() if value is not None}
    given |= dict(arguments.more)
    # a budget takes the place of a weight
    return {"C": None, **given} if "eta" in given else given


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, _json_or_word(value)


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


def search_of(arguments: argparse.Namespace, **settings: object) -> Estimator:
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
    shared |= {f"{strength}s": N_STRENGTHS, "verbose": not arguments.quiet}
    shared |= {"cv": folds_of(arguments, FOLDS), "random_state": arguments.seed}
    return kind(**{**shared, **settings})
