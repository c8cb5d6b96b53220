"""``proxmargin coefs``: the coefficients of a saved linear model, as a table."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from proxmargin.cli import failures
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_target,
    add_text,
    dialect_of,
    subcommand,
)
from proxmargin.cli.output import check_output, print_json, print_listing
from proxmargin.cli.saving import saved_first, text_replaced
from proxmargin.comparing.layout import Listing, number

__all__ = ["register"]

SHOWN = 30  # rows that are printed without --all


def register(commands: Commands) -> None:
    parser = subcommand(commands, "coefs", run, "list the coefficients of a saved linear model")
    parser.add_argument("model", metavar="MODEL", help="a file written by fit, cv or compare")
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="data whose standard deviations are taken, for a model fitted with --no-standardize; "
        "others have those of their training data",
    )
    parser.add_argument(
        "--all", action="store_true", help="features without a coefficient and all rows, too"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write CSV there, and all rows (default: a table)"
    )
    add_target(parser)
    add_text(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.files.models.model import load_model

    check_output(arguments.output)
    model = load_model(arguments.model)
    try:
        frame = model.coefficients(_data(arguments, model), zeros=arguments.all)
    except TypeError as error:  # a kernel has none
        raise ValueError(str(error)) from error
    unknown = bool(len(frame)) and bool(frame["coefficient_per_sd"].isna().all())
    with saved_first(arguments.output, lambda name: _save(frame, name)) as saved:
        if arguments.json:
            rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
            print_json({"model": arguments.model, "coefficients": rows, "saved": saved})
        elif not arguments.output:
            _print(frame, len(frame) if arguments.all else SHOWN)
    if not (arguments.json or arguments.quiet):
        print(f"proxmargin: {_summary(model, frame, saved)}", file=sys.stderr)
        if unknown:
            print(
                "proxmargin: the model was fitted without standardising, and has no standard "
                f"deviations: proxmargin coefs {arguments.model} DATA takes them from data",
                file=sys.stderr,
            )
    return failures.OK


def _data(arguments: argparse.Namespace, model: Any) -> Any:
    """The features of the data, as the model was fitted to them."""
    if arguments.data is None:
        return None
    from proxmargin.files.errors import pandas
    from proxmargin.files.tables.table import read_for_model

    table = read_for_model(
        arguments.data, model, target=arguments.target, dialect=dialect_of(arguments)
    )
    if table.feature_names is None or not hasattr(model, "feature_names_in_"):
        return table.X
    if hasattr(table.X, "tocsr"):
        return pandas().DataFrame.sparse.from_spmatrix(table.X, columns=table.feature_names)
    return pandas().DataFrame(table.X, columns=table.feature_names)


def _save(frame: Any, name: str) -> None:
    with text_replaced(name) as stream:
        frame.to_csv(stream, index=False)


def _print(frame: Any, most: int) -> None:
    if not len(frame):
        print("no feature has a coefficient")
        return
    cells = [
        (
            str(row["feature"]),
            str(row["class"]),
            number(row["coefficient"], "+.4g"),
            number(row["coefficient_per_sd"], "+.4g"),
            str(row["rank"]),
        )
        for row in frame.head(most).to_dict("records")
    ]
    print_listing(Listing(("feature", "class", "coefficient", "per sd", "rank"), cells))
    if len(frame) > most:
        print(f"\n... {len(frame) - most} more rows: --all prints them, -o FILE writes them")


def _summary(model: Any, frame: Any, saved: str | None) -> str:
    where = f" to {saved}" if saved else ""
    speaks = "" if len(model.classes_) > 2 else f"; positive speaks for {model.classes_[1]}"
    return f"{len(frame)} coefficients{where}{speaks}"
