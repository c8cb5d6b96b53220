"""``proxmargin report``: the report of a comparison from its run directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from proxmargin.cli import failures
from proxmargin.cli.options import Commands, add_common, subcommand
from proxmargin.cli.output import check_output, print_json

__all__ = ["register"]

DEFAULT = "report.html"


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "report", run, "write the report of a comparison that compare --run has kept"
    )
    parser.add_argument("run_dir", metavar="DIR", help="the run directory, finished or not")
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help=f"one page of HTML (default: {DEFAULT} in the run directory)",
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.comparing.comparison import Comparison
    from proxmargin.reports import check_libraries

    check_libraries()
    comparison = Comparison.from_run(arguments.run_dir)
    output = arguments.output or str(Path(arguments.run_dir) / DEFAULT)
    check_output(output)
    comparison.to_html(output)
    if arguments.json:
        print_json({"report": output, "interrupted": comparison.interrupted})
    else:
        print(f"Report: {output}")
    return failures.OK
