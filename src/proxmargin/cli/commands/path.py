"""``proxmargin path``: how the model grows as the penalty weakens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.models import (
    add_model_options,
    estimator_of,
    free_strength,
    name_features,
    suited,
)
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_data,
    add_impute,
    add_weights,
    filled_table_of,
    subcommand,
)
from proxmargin.cli.output import print_json, print_listing
from proxmargin.cli.pictures import add_plot, check_plot, picture
from proxmargin.comparing.layout import Listing, number

if TYPE_CHECKING:
    from proxmargin.paths import Path

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "path", run, "fit a model for many strengths of its penalty, from the largest"
    )
    add_data(parser)
    add_impute(parser)
    add_weights(parser)
    add_model_options(parser)
    parser.add_argument("--n-alphas", type=int, default=20, help="how many (default: 20)")
    parser.add_argument(
        "--eps", type=float, default=1e-3, help="the last alpha by the first (default: 0.001)"
    )
    parser.add_argument(
        "--stop-at",
        type=float,
        metavar="SHARE",
        help="end where this share of the null model's loss is explained, such as 0.999",
    )
    add_plot(parser, "the coefficients")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.paths import margin_path
    from proxmargin.paths.saturation import Ending

    check_plot(arguments.plot)
    estimator = estimator_of(arguments)
    name = free_strength(estimator, arguments)
    table, _ = filled_table_of(arguments)
    path = margin_path(
        suited(estimator, table.X, arguments).set_params(verbose=not arguments.quiet),
        table.X,
        table.y,
        sample_weight=table.weights,
        n_alphas=arguments.n_alphas,
        eps=arguments.eps,
        stop_at=arguments.stop_at,
    )
    name_features(path.template, table.feature_names)
    rows = _rows(path)
    if arguments.plot is not None:
        _draw(path, arguments.plot)
    if arguments.json:
        told = {"data": table.describe(), "model": arguments.model}
        print_json({**told, "ended": path.ended, "path": rows})
    else:
        print(f"{arguments.model} on {table.source}: {table.X.shape[1]} features\n")
        print_listing(_listing(name, rows))
    if path.ended == Ending.INTERRUPTED:
        return failures.interrupted()
    return failures.OK if all(row["converged"] for row in rows) else failures.FAILED


def _draw(path: Path, name: str) -> None:
    from proxmargin.displays.strengths import PathDisplay

    with picture(name) as axes:
        PathDisplay(path).plot(axes)


def _rows(path: Path) -> list[dict[str, Any]]:
    from proxmargin.files.models.model import leading_features

    return [
        {
            path.strength.name: float(strength),
            "features": int(used),
            "top_features": [row["feature"] for row in leading_features(path.model(place)) or []],
            "objective": float(certificate.primal),
            "relative_gap": float(certificate.relative_gap),
            "converged": bool(certificate.converged),
            "seconds": float(certificate.seconds),
        }
        for place, (strength, used, certificate) in enumerate(
            zip(path.strengths, path.n_nonzero, path.certificates, strict=True)
        )
    ]


def _listing(name: str, rows: list[dict[str, Any]]) -> Listing:
    headings = (name, "features", "objective", "certified gap", "seconds")
    cells = [
        (
            number(row[name], ".5g"),
            str(row["features"]),
            number(row["objective"], ".8g"),
            number(row["relative_gap"], ".1e") + ("" if row["converged"] else " !"),
            number(row["seconds"], ".2g"),
        )
        for row in rows
    ]
    return Listing(headings, cells)
