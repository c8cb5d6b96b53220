"""``proxmargin compare``: all models on one data set."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.options import Commands, add_common, add_data, subcommand, table_of
from proxmargin.cli.output import check_output, print_json, print_listing
from proxmargin.cli.saving import saved_first

if TYPE_CHECKING:
    from proxmargin.comparing.comparison import Comparison

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "compare", run, "compare the models by nested cross-validation, without leakage"
    )
    add_data(parser)
    parser.add_argument(
        "--models", nargs="+", metavar="NAME", help="which models (default: all there are)"
    )
    parser.add_argument("--folds", type=int, default=5, help="outer folds (default: 5)")
    parser.add_argument(
        "--scoring",
        default="balanced_accuracy",
        help="a score of scikit-learn (default: balanced_accuracy)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: 1; -1: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the shuffled folds (default: 0)")
    parser.add_argument(
        "--model", dest="save", metavar="FILE", help="save the best model, fitted on all samples"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from sklearn.exceptions import ConvergenceWarning

    from proxmargin.comparing.run import compare
    from proxmargin.files.models.model import save_model

    check_output(arguments.save)
    table = table_of(arguments)
    # the notes under the table say so
    warnings.simplefilter("ignore", ConvergenceWarning)
    comparison = compare(
        table.X,
        table.y,
        models=_names(arguments.models),
        cv=arguments.folds,
        scoring=arguments.scoring,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        progress=not arguments.quiet,
        feature_names=table.feature_names,
    )
    fitted = comparison.best_fitted_
    wanted = arguments.save if fitted is not None else None
    with saved_first(wanted, lambda name: save_model(fitted, name)) as saved:
        if arguments.json:
            print_json({"data": table.describe(), **comparison.to_dict(), "saved": saved})
        else:
            _print(comparison, table.source, saved)
    return _status(comparison)


def _names(models: list[str] | None) -> Any:
    """The names, which may be separated by spaces or commas; 'all' if that is the only one."""
    names = [name for word in models or ["all"] for name in word.split(",") if name]
    return "all" if names == ["all"] else names


def _print(comparison: Comparison, source: str, saved: str | None) -> None:
    print(f"{source}: {comparison.setup.summary()}\n")
    print_listing(comparison.listing())
    for remark in comparison.remarks():
        print(f"\n{remark}")
    if saved:
        whole = comparison.best_ is not None
        which = "" if whole else f" {comparison.best_fitted_name_}, the best that was finished,"
        print(f"\nSaved{which} to {saved}; use it with: proxmargin predict {saved} DATA")


def _status(comparison: Comparison) -> int:
    if comparison.interrupted:
        by_signal = comparison.ending.name == "INTERRUPTED"
        return failures.interrupted() if by_signal else failures.FAILED
    certificate = getattr(comparison.best_, "certificate_", None)
    return failures.OK if certificate is None or certificate.converged else failures.FAILED
