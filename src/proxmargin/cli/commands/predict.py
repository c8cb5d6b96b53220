"""``proxmargin predict``: labels, scores and probabilities from a saved model."""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from proxmargin.cli import failures
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_ignore,
    add_target,
    add_text,
    dialect_of,
    subcommand,
)
from proxmargin.cli.output import check_output, print_json
from proxmargin.cli.saving import saved_first, text_replaced

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(commands, "predict", run, "predict labels with a saved model")
    parser.add_argument("model", metavar="MODEL", help="a file written by fit, cv or compare")
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a data file or the name of an embedded set; columns that the model was fitted to are "
        "found by name, and others left out",
    )
    add_target(parser)
    add_ignore(parser)
    parser.add_argument(
        "--id", metavar="COL", help="a column, such as the names of the samples, to print first"
    )
    parser.add_argument("--scores", action="store_true", help="add the scores of the classes")
    parser.add_argument(
        "--proba",
        action="store_true",
        help="add the probabilities of the classes, of logistic models",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write CSV there (default: standard output)"
    )
    add_text(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.files.models.model import load_model
    from proxmargin.files.tables.table import read_for_model

    check_output(arguments.output)
    model = load_model(arguments.model)
    if arguments.proba:
        _refuse_without_probabilities(model, arguments.model)
    table = read_for_model(
        arguments.data,
        model,
        target=arguments.target,
        ignore=arguments.ignore,
        ids=arguments.id,
        dialect=dialect_of(arguments),
    )
    columns = _predicted(model, table, arguments)
    quality = _quality(table.y, columns["prediction"])
    with saved_first(arguments.output, lambda name: _save(columns, name)) as saved:
        if arguments.json:
            print_json({"classes": model.classes_, **columns, **quality, "saved": saved})
        elif not arguments.output:
            _write(columns, sys.stdout)
    if not (arguments.json or arguments.quiet):
        where = f" to {arguments.output}" if arguments.output else ""
        found = "".join(f"; {name.replace('_', ' ')} {each:.4f}" for name, each in quality.items())
        count = len(columns["prediction"])
        print(f"proxmargin: {count} predictions{where}{found}", file=sys.stderr)
    return failures.OK


def _refuse_without_probabilities(model: Any, name: str) -> None:
    if not hasattr(model, "predict_proba"):
        kind = type(getattr(model, "model", model)).__name__
        raise ValueError(
            f"--proba: the scores of {kind} are no probabilities. Fit SparseLogisticRegression or "
            f"LogisticRegression, which have them; or calibrate a {kind} in Python: "
            f"CalibratedMargin(load_model({name!r})).fit(X, y).predict_proba(X_new)"
        )


def _predicted(model: Any, table: Table, arguments: argparse.Namespace) -> dict[str, Any]:
    """The columns of the output by name: the ids, the predictions, what else is asked for."""
    with warnings.catch_warnings():
        # the columns were found by their names already
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        columns = {"prediction": model.predict(table.X)}
        if arguments.scores:
            columns.update(_scores(model, model.decision_function(table.X)))
        if arguments.proba:
            shares = model.predict_proba(table.X)
            columns.update({f"proba_{c}": shares[:, k] for k, c in enumerate(model.classes_)})
    if table.ids is None:
        return columns
    if table.ids.name in columns:
        raise ValueError(f"--id {table.ids.name}: a column of the output has that name already")
    return {table.ids.name: table.ids.written(), **columns}


def _save(columns: dict[str, Any], name: str) -> None:
    with text_replaced(name) as file:
        _write(columns, file)


def _scores(model: Any, scores: Any) -> dict[str, Any]:
    """Scores as named columns: one for two classes (positive: the second one), else one a class."""
    if scores.ndim == 1:
        return {"score": scores}
    return {f"score_{label}": scores[:, k] for k, label in enumerate(model.classes_)}


def _write(columns: dict[str, Any], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(_rows(columns))


def _rows(columns: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    yield from zip(*(values.tolist() for values in columns.values()), strict=True)


def _quality(truth: Any, labels: Any) -> dict[str, float]:
    """Scores of the predicted labels, if the file has the true ones; compared as text."""
    if truth is None:
        return {}
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    true, found = truth.astype(str), labels.astype(str)
    with warnings.catch_warnings():
        # predicted classes that the file does not contain are no mistake of the caller
        warnings.simplefilter("ignore", UserWarning)
        balanced = float(balanced_accuracy_score(true, found))
    return {"accuracy": float(accuracy_score(true, found)), "balanced_accuracy": balanced}
