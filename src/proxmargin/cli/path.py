"""``proxmargin path``: how the model grows as the penalty weakens."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.models import add_model_options, estimator_of
from proxmargin.cli.options import Commands, add_common, add_data, subcommand, table_of
from proxmargin.cli.output import print_json, print_listing
from proxmargin.comparing.layout import Listing, number
from proxmargin.comparing.progress import Progress

if TYPE_CHECKING:
    from proxmargin.loop.report import Report
    from proxmargin.paths import Path

__all__ = ["register"]


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "path", run, "fit a model for many strengths of its penalty, from the largest"
    )
    add_data(parser)
    add_model_options(parser)
    parser.add_argument("--n-alphas", type=int, default=20, help="how many (default: 20)")
    parser.add_argument(
        "--eps", type=float, default=1e-3, help="the last alpha by the first (default: 0.001)"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.paths import margin_path

    if arguments.alpha is not None:
        raise ValueError("a path chooses alpha itself: leave out --alpha")
    progress = Progress("path: fits", None, shown=not arguments.quiet)
    estimator = estimator_of(arguments, _counter(progress))
    if not hasattr(estimator, "alpha"):
        raise ValueError(f"{arguments.model} has no alpha, and so no path")
    table = table_of(arguments)
    with progress:
        path = margin_path(
            estimator, table.X, table.y, n_alphas=arguments.n_alphas, eps=arguments.eps
        )
    rows = _rows(path)
    if arguments.json:
        print_json({"data": table.describe(), "model": arguments.model, "path": rows})
    else:
        print(f"{arguments.model} on {table.source}: {table.X.shape[1]} features\n")
        print_listing(_listing(rows))
    return failures.OK if all(row["converged"] for row in rows) else failures.FAILED


def _counter(progress: Progress) -> Callable[[Report], None]:
    """A callback that advances when a fit begins: at every alpha, and for every class there."""

    def count(report: Report) -> None:
        if report.n_iter == 0:
            progress.advance()

    return count


def _rows(path: Path) -> list[dict[str, Any]]:
    return [
        {
            "alpha": float(alpha),
            "features": int(used),
            "objective": float(certificate.primal),
            "relative_gap": float(certificate.relative_gap),
            "converged": bool(certificate.converged),
            "seconds": float(certificate.seconds),
        }
        for alpha, used, certificate in zip(
            path.alphas, path.n_nonzero, path.certificates, strict=True
        )
    ]


def _listing(rows: list[dict[str, Any]]) -> Listing:
    headings = ("alpha", "features", "objective", "certified gap", "seconds")
    cells = [
        (
            number(row["alpha"], ".5g"),
            str(row["features"]),
            number(row["objective"], ".8g"),
            number(row["relative_gap"], ".1e") + ("" if row["converged"] else " !"),
            number(row["seconds"], ".2g"),
        )
        for row in rows
    ]
    return Listing(headings, cells)
