"""``proxmargin predict``: labels and scores from a saved model."""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

from proxmargin.cli import failures
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_target,
    add_text,
    dialect_of,
    subcommand,
)
from proxmargin.cli.output import check_output, print_json
from proxmargin.cli.saving import saved_first, text_replaced

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(commands, "predict", run, "predict labels with a saved model")
    parser.add_argument("model", metavar="MODEL", help="a file written by fit or compare")
    parser.add_argument("data", metavar="DATA", help="a data file or the name of an embedded set")
    add_target(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write CSV there (default: standard output)"
    )
    parser.add_argument("--scores", action="store_true", help="add the scores of the classes")
    add_text(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.files.models.model import load_model
    from proxmargin.files.tables.align import read_for_model

    check_output(arguments.output)
    model = load_model(arguments.model)
    table = read_for_model(
        arguments.data, model, target=arguments.target, dialect=dialect_of(arguments)
    )
    with warnings.catch_warnings():
        # the columns were found by their names already
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        scores = model.decision_function(table.X)
        labels = model.predict(table.X)
    columns = {"prediction": labels, **(_columns(model, scores) if arguments.scores else {})}
    quality = _quality(table.y, labels)
    with saved_first(arguments.output, lambda name: _save(columns, name)) as saved:
        if arguments.json:
            print_json({"classes": model.classes_, **columns, **quality, "saved": saved})
        elif not arguments.output:
            _write(columns, sys.stdout)
    if not (arguments.json or arguments.quiet):
        where = f" to {arguments.output}" if arguments.output else ""
        found = "".join(f"; {name.replace('_', ' ')} {each:.4f}" for name, each in quality.items())
        print(f"proxmargin: {len(labels)} predictions{where}{found}", file=sys.stderr)
    return failures.OK


def _save(columns: dict[str, Any], name: str) -> None:
    with text_replaced(name) as file:
        _write(columns, file)


def _columns(model: Any, scores: Any) -> dict[str, Any]:
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
