"""``proxmargin fit``: one model on one data set."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.features import top_features
from proxmargin.cli.guards import warn_of_leaks
from proxmargin.cli.held_out import FoldMeans, held_out_accuracy
from proxmargin.cli.models import (
    add_model_options,
    estimator_of,
    name_features,
    shown_settings,
    suited,
)
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_data,
    add_impute,
    add_weights,
    filled,
    subcommand,
    table_of,
)
from proxmargin.cli.output import check_output, print_facts, print_json
from proxmargin.cli.saving import saved_first, with_imputer
from proxmargin.cli.search import asks_for_choice, chosen_strength, search_of

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(commands, "fit", run, "fit one model, certify it and save it")
    add_data(parser)
    add_impute(parser)
    add_weights(parser)
    add_model_options(parser)
    parser.add_argument(
        "--cv",
        type=int,
        metavar="K",
        help="also the accuracy on held-out samples, by K-fold cross-validation: that on the "
        "training samples says little about new ones",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="save the model, for example .pmz")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.callbacks import Progress
    from proxmargin.files.models.model import save_model

    check_output(arguments.output)
    progress = () if arguments.quiet else (Progress(label=arguments.model),)
    chooses = asks_for_choice(arguments)
    fitted = search_of(arguments) if chooses else estimator_of(arguments, *progress)
    raw = table_of(arguments)
    table, imputer = filled(raw, arguments)
    warn_of_leaks(table)
    held_out = None
    if arguments.cv is not None:  # first, as a fit that is interrupted is to be saved at once
        held_out = held_out_accuracy(
            lambda: suited(_silent(arguments), raw.X, arguments),
            raw,
            arguments.cv,
            arguments.quiet,
            imputer,
        )
    stopped = _fitted_or_stopped(suited(fitted, table.X, arguments), table)
    model = fitted.best_estimator_ if chooses else fitted
    name_features(model, table.feature_names)
    whole = with_imputer(model, imputer)
    with saved_first(arguments.output, lambda name: save_model(whole, name)) as saved:
        _print(arguments, model, table, saved, held_out)
    if stopped:
        return failures.interrupted()
    return failures.OK if model.certificate_.converged else failures.FAILED


def _silent(arguments: argparse.Namespace) -> Any:
    """The estimator for one fold, which makes the choices that the options leave to it."""
    return (
        search_of(arguments, verbose=0) if asks_for_choice(arguments) else estimator_of(arguments)
    )


def _fitted_or_stopped(estimator: Any, table: Table) -> bool:
    """Whether the fit was interrupted; what it had found is a model too."""
    try:
        estimator.fit(table.X, table.y, sample_weight=table.weights)
    except KeyboardInterrupt:
        if not hasattr(estimator, "certificate_"):
            raise
        return True
    return False


def _print(
    arguments: argparse.Namespace,
    model: Any,
    table: Table,
    saved: str | None,
    held_out: FoldMeans | None,
) -> None:
    from proxmargin.files.models.model import describe_model

    facts, training = describe_model(model), _accuracy(model, table)
    if arguments.json:
        told = {} if held_out is None else {"held_out": held_out.to_dict()}
        accuracy = {"training_accuracy": training, **told}
        print_json({"data": table.describe(), "model": facts, **accuracy, "saved": saved})
        return
    advice = "" if held_out else " (on the samples it was fitted to: --cv 5 holds some out)"
    named, chosen = top_features(model), chosen_strength(arguments, model)
    print_facts(
        {
            "model": f"{facts['estimator']}({shown_settings(model)})",
            **chosen,
            "data": f"{table.source}, {table.X.shape[0]} samples, {len(facts['classes'])} classes",
            "features": f"{facts['features_used']} of {facts['features']} used",
            **({"largest": named} if named else {}),
            "training accuracy": f"{training:.4f}{advice}",
            **({} if held_out is None else {"accuracy": held_out}),
            "certificate": model.certificate_,
            "saved to": saved or ("nothing" if arguments.output else "nothing (no --output)"),
        }
    )


def _accuracy(model: Any, table: Table) -> float:
    with warnings.catch_warnings():
        # the model has got the names of the columns, which the matrix has not
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return float(model.score(table.X, table.y, sample_weight=table.weights))
