"""``proxmargin fit``: one model on one data set."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.guards import warn_of_leaks
from proxmargin.cli.models import (
    add_model_options,
    estimator_of,
    name_features,
    shown_settings,
)
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_data,
    add_impute,
    filled_table_of,
    subcommand,
)
from proxmargin.cli.output import check_output, print_facts, print_json
from proxmargin.cli.saving import saved_first, with_imputer

if TYPE_CHECKING:
    from proxmargin.files.tables.table import Table

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(commands, "fit", run, "fit one model, certify it and save it")
    add_data(parser)
    add_impute(parser)
    add_model_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="save the model, for example .pmz")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.callbacks import Progress
    from proxmargin.files.models.model import save_model

    check_output(arguments.output)
    progress = () if arguments.quiet else (Progress(label=arguments.model),)
    estimator = estimator_of(arguments, *progress)
    table, imputer = filled_table_of(arguments)
    warn_of_leaks(table)
    stopped = _fitted_or_stopped(estimator, table)
    name_features(estimator, table.feature_names)
    whole = with_imputer(estimator, imputer)
    with saved_first(arguments.output, lambda name: save_model(whole, name)) as saved:
        _print(arguments, estimator, table, saved)
    if stopped:
        return failures.interrupted()
    return failures.OK if estimator.certificate_.converged else failures.FAILED


def _fitted_or_stopped(estimator: Any, table: Table) -> bool:
    """Whether the fit was interrupted; what it had found is a model too."""
    try:
        estimator.fit(table.X, table.y)
    except KeyboardInterrupt:
        if not hasattr(estimator, "certificate_"):
            raise
        return True
    return False


def _print(arguments: argparse.Namespace, model: Any, table: Table, saved: str | None) -> None:
    from proxmargin.files.models.model import describe_model

    facts = describe_model(model)
    if arguments.json:
        print_json({"data": table.describe(), "model": facts, "saved": saved})
        return
    print_facts(
        {
            "model": f"{facts['estimator']}({shown_settings(model)})",
            "data": f"{table.source}, {table.X.shape[0]} samples, {len(facts['classes'])} classes",
            "features": f"{facts['features_used']} of {facts['features']} used",
            "accuracy": f"{_accuracy(model, table):.4f} on these samples",
            "certificate": model.certificate_,
            "saved to": saved or ("nothing" if arguments.output else "nothing (no --output)"),
        }
    )


def _accuracy(model: Any, table: Table) -> float:
    with warnings.catch_warnings():
        # the model has got the names of the columns, which the matrix has not
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return float(model.score(table.X, table.y))
