"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys

from threadpoolctl import threadpool_limits

import benchmarks
from benchmarks import (
    calibration,
    cells,
    check,
    comparison,
    coverage,
    cv,
    device,
    drsvm,
    hinge,
    kernel_grid,
    kernels,
    limits,
    nested,
    paper,
    paths,
    permutations,
    recommendation,
    ridges,
    rules,
    scale,
    sharing,
    stability,
    startup,
    summary,
    tiny,
    unified,
)
from benchmarks.peers import other_environment

COMMANDS = {
    "peers": comparison,
    "paths": paths,
    "cv": cv,
    "compare": nested,
    "environment": other_environment,
    "unified": unified,
    "cells": cells,
    "kernels": kernels,
    "kernel-grid": kernel_grid,
    "hinge": hinge,
    "drsvm": drsvm,
    "rules": rules,
    "scale": scale,
    "device": device,
    "sharing": sharing,
    "ridges": ridges,
    "limits": limits,
    "startup": startup,
    "tiny": tiny,
    "stability": stability,
    "paper": paper,
    "permutations": permutations,
    "calibration": calibration,
    "coverage": coverage,
    "recommendation": recommendation,
    "summary": summary,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=benchmarks.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        sub = commands.add_parser(name, help=(module.__doc__ or "").split(": ", 1)[1])
        module.options(sub)
        sub.set_defaults(run=module.main)
    commands.add_parser("check", help="the certificate").set_defaults(run=check.main)
    arguments = parser.parse_args()
    with threadpool_limits(1):  # certificates; the solvers' processes have a limit of their own
        return int(arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
