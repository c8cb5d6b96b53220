"""``proxmargin compare``: all models on one data set, or on several."""

from __future__ import annotations

import argparse
import shlex
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from proxmargin.cli import failures
from proxmargin.cli.guards import warn_of_leaks
from proxmargin.cli.models import STANDARDIZE, add_scaling
from proxmargin.cli.options import (
    Commands,
    add_columns,
    add_common,
    add_impute,
    add_weights,
    subcommand,
    table_of,
)
from proxmargin.cli.output import check_output, print_json, print_listing
from proxmargin.cli.pictures import add_plot, check_plot, picture
from proxmargin.cli.saving import saved_first

if TYPE_CHECKING:
    from proxmargin.comparing.comparison import Comparison
    from proxmargin.files.tables.contents import Table

__all__ = ["register"]

RECOMMENDED = "recommended"
SAVED = (RECOMMENDED, "best")  # choices of --save


class _Misplaced(argparse.Action):
    """``--model`` of the other commands, which would be taken for a file or a beginning of
    ``--models``."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        parser.error(
            "compare has no --model: which models are compared is --models NAME ..., the file for "
            "the recommended one is --output FILE"
        )


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "compare", run, "compare the models by nested cross-validation, without leakage"
    )
    parser.add_argument(
        "data", metavar="DATA", nargs="+", help="a data file or the name of an embedded set"
    )
    add_columns(parser)
    add_impute(parser)
    add_weights(parser)
    parser.add_argument(
        "--models", nargs="+", metavar="NAME", help="which models (default: all there are)"
    )
    parser.add_argument("--model", nargs="?", action=_Misplaced, help=argparse.SUPPRESS)
    parser.add_argument(
        "--baselines", action="store_true", help="and the majority and scikit-learn's models"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a first answer in seconds: fewer models, 3 folds"
    )
    _add_protocol(parser)
    _add_work(parser)
    _add_files(parser)
    add_common(parser)


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cross-validation")
    group.add_argument("--folds", type=int, default=None, help="outer folds (default: 5)")
    group.add_argument(
        "--repeats",
        type=int,
        default=1,
        metavar="N",
        help="with new random folds each (default: 1)",
    )
    group.add_argument(
        "--groups", metavar="COL", help="a column: samples of one group are held out together"
    )
    group.add_argument(
        "--scoring",
        default="balanced_accuracy",
        help="what models are chosen by: a metric, or a score of scikit-learn "
        "(default: balanced_accuracy)",
    )
    group.add_argument(
        "--metrics", nargs="+", metavar="NAME", help="what is computed besides (default: six)"
    )
    add_scaling(group)
    group.add_argument("--seed", type=int, default=0, help="of the shuffled folds (default: 0)")


def _add_work(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("work")
    group.add_argument("--jobs", type=int, metavar="N", help="processes (default: 1; -1: all)")
    group.add_argument(
        "--time-limit", type=float, metavar="S", help="seconds after which nothing more is begun"
    )
    group.add_argument(
        "--run",
        dest="run_dir",
        metavar="DIR",
        help="keep finished work there, and continue from it",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files")
    group.add_argument(
        "--output", "-o", metavar="FILE", help="save the recommended model, fitted on all samples"
    )
    group.add_argument(
        "--save",
        choices=SAVED,
        default=RECOMMENDED,
        help="which model --output saves: the recommended one, the simplest of those not "
        "distinguishable from the best (default), or the one with the best mean",
    )
    group.add_argument("--report", metavar="FILE", help="write a report: one page of HTML")
    add_plot(group, "the intervals of the scores, or of several data sets the average ranks,")


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.data) > 1:
        from proxmargin.cli.commands.several import run_several

        return run_several(arguments, _compared)
    (arguments.data,) = arguments.data
    return _run_one(arguments)


def _run_one(arguments: argparse.Namespace) -> int:
    from proxmargin.files.models.model import save_model

    check_output(arguments.output)
    check_plot(arguments.plot)
    _check_report(arguments.report)
    table = table_of(arguments)
    warn_of_leaks(table)
    comparison = _compared(arguments, table)
    name = _to_save(comparison, arguments.save)
    fitted = comparison.models_.get(name or "")
    wanted = arguments.output if fitted is not None else None
    with (
        saved_first(wanted, lambda name: save_model(fitted, name)) as saved,
        saved_first(arguments.report, comparison.to_html) as reported,
        saved_first(arguments.plot, lambda name: _draw(comparison, name)) as drawn,
    ):
        if arguments.json:
            kept = name if saved else None
            files = {"saved": saved, "saved_model": kept, "report": reported, "plot": drawn}
            print_json({"file": table.describe(), **comparison.to_dict(), **files})
        else:
            _print(comparison, table.source, reported)
            if saved:
                which = _described(comparison, name)
                print(f"\nSaved to {saved}: {which}; use it with: proxmargin predict {saved} DATA")
            if drawn:
                print(f"\nIntervals drawn in {drawn}")
    return _status(comparison, fitted)


def _to_save(comparison: Comparison, which: str) -> str | None:
    """The model that is asked for; after an interruption the best of those that were fitted."""
    asked = comparison.recommended_ if which == RECOMMENDED else comparison.best_name_
    return asked if asked in comparison.models_ else comparison.best_fitted_name_


def _described(comparison: Comparison, name: str | None) -> str:
    if name == comparison.recommended_:
        return f"{name}, the recommended model"
    return f"{name}, the best {'mean' if name == comparison.best_name_ else 'that was finished'}"


def _draw(comparison: Comparison, name: str) -> None:
    from proxmargin.displays.comparison import ComparisonDisplay, height_of

    with picture(name, height=height_of(len(comparison.names))) as ax:
        ComparisonDisplay.from_comparison(comparison, ax=ax)


def _compared(arguments: argparse.Namespace, table: Table) -> Comparison:
    """The comparison that the arguments ask for."""
    from sklearn.exceptions import ConvergenceWarning

    from proxmargin.comparing.metrics import DEFAULT_METRICS
    from proxmargin.comparing.run import FOLDS, compare
    from proxmargin.inputs.preprocessing import imputer

    # the notes under the table say so
    warnings.simplefilter("ignore", ConvergenceWarning)
    return compare(
        table.X,
        table.y,
        models=_names(arguments.models, ["all"]),
        cv=FOLDS if arguments.folds is None else arguments.folds,
        repeats=arguments.repeats,
        scoring=arguments.scoring,
        metrics=_names(arguments.metrics, list(DEFAULT_METRICS)),
        baselines=arguments.baselines,
        standardize=STANDARDIZE[arguments.standardize],
        groups=table.groups,
        sample_weight=table.weights,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        run_dir=arguments.run_dir,
        time_limit=arguments.time_limit,
        quick=arguments.quick,
        progress=not arguments.quiet,
        preprocess=None if arguments.impute is None else imputer(arguments.impute),
        feature_names=table.feature_names,
        name=table.source,
        command=shlex.join(["proxmargin", *arguments.typed]),
    )


def _check_report(name: str | None) -> None:
    """Raise before hours of work where the report could not be made."""
    check_output(name)
    if name is not None:
        from proxmargin.reports import check_libraries

        check_libraries()


def _names(given: list[str] | None, default: list[str]) -> Any:
    """The names, which may be separated by spaces or commas; 'all' if that is the only one."""
    names = [name for word in given or default for name in word.split(",") if name]
    return "all" if names == ["all"] else names


def _print(comparison: Comparison, source: str, reported: str | None) -> None:
    from proxmargin.comparing import present

    facts = comparison.facts
    print(f"{present.answer(facts)}\n\n{source}: {present.summary(facts)}\n")
    print_listing(present.listing(facts))
    for remark in present.remarks(facts):
        print(f"\n{remark}")
    if reported:
        print(f"\nReport: {reported}")


def _status(comparison: Comparison, fitted: Any) -> int:
    if comparison.interrupted:
        by_signal = comparison.ending.name == "INTERRUPTED"
        return failures.interrupted() if by_signal else failures.FAILED
    certificate = getattr(fitted, "certificate_", None)
    return failures.OK if certificate is None or certificate.converged else failures.FAILED
