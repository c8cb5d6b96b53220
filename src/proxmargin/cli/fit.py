"""``proxmargin fit``: one model on one data set."""

from __future__ import annotations

import argparse

from proxmargin.cli import failures
from proxmargin.cli.models import (
    add_model_options,
    estimator_of,
    name_features,
    shown_settings,
)
from proxmargin.cli.options import Commands, add_common, add_data, subcommand, table_of
from proxmargin.cli.output import check_output, print_facts, print_json

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(commands, "fit", run, "fit one model, certify it and save it")
    add_data(parser)
    add_model_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="save the model, for example .pmz")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.callbacks import Progress
    from proxmargin.files.model import describe_model, save_model

    check_output(arguments.output)
    progress = () if arguments.quiet else (Progress(label=arguments.model),)
    estimator = estimator_of(arguments, *progress)
    table = table_of(arguments)
    model = estimator.fit(table.X, table.y)
    accuracy = model.score(table.X, table.y)
    name_features(model, table.feature_names)
    if arguments.output:
        save_model(model, arguments.output)
    facts = describe_model(model)
    if arguments.json:
        print_json({"data": table.describe(), "model": facts, "saved": arguments.output})
    else:
        print_facts(
            {
                "model": f"{facts['estimator']}({shown_settings(model)})",
                "data": f"{table.source}, {table.X.shape[0]} samples, "
                f"{len(facts['classes'])} classes",
                "features": f"{facts['features_used']} of {facts['features']} used",
                "accuracy": f"{accuracy:.4f} on these samples",
                "certificate": model.certificate_,
                "saved to": arguments.output or "nothing (no --output)",
            }
        )
    return failures.OK if model.certificate_.converged else failures.FAILED
