"""``proxmargin compare A B ...``: the same models on several data sets."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.options import table_of
from proxmargin.cli.output import print_json, print_listing
from proxmargin.cli.pictures import check_plot, picture
from proxmargin.runtime.brief import plain

if TYPE_CHECKING:
    from proxmargin.comparing.comparison import Comparison
    from proxmargin.comparing.several import SeveralComparisons

__all__ = ["run_several"]

UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a folder


@dataclass
class Collected:
    """The facts of the comparisons so far, and why others are missing."""

    facts: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    status: int = failures.OK
    stopped: bool = False

    def add(self, name: str, comparison: Comparison) -> None:
        self.facts[name] = plain(comparison.facts)
        if comparison.interrupted:
            self.status = failures.FAILED
            self.stopped = comparison.ending.name == "INTERRUPTED"

    def miss(self, name: str, why: str) -> None:
        self.missing[name] = why
        self.status = failures.FAILED


def run_several(
    arguments: argparse.Namespace,
    compared: Callable[[argparse.Namespace, Any], Comparison],
) -> int:
    """Compare on every data set, with ``compared(arguments, table)``, then over all of them."""
    _check(arguments)
    names = _names(arguments.data)
    asked = dict(zip(names, (_asked(arguments, *pair) for pair in names.items()), strict=True))
    for each in asked.values():  # unusable data are told before hours of work
        table_of(each)
    found = _collected(asked, compared, arguments.time_limit, arguments.quiet)
    if not found.facts:
        raise ValueError("; ".join(dict.fromkeys(found.missing.values())))
    _show(_several(found), found, arguments)
    return failures.interrupted() if found.stopped else found.status


def _collected(
    asked: dict[str, argparse.Namespace],
    compared: Callable[[argparse.Namespace, Any], Comparison],
    limit: float | None,
    quiet: bool,
) -> Collected:
    """The comparisons of all data sets, until an interruption; ``limit`` is for all of them."""
    found, started = Collected(), time.monotonic()
    for name, each in asked.items():
        left = None if limit is None else limit - (time.monotonic() - started)
        if found.stopped or (left is not None and left <= 0):
            found.miss(name, "interrupted" if found.stopped else "the time limit was reached")
            continue
        each.time_limit = left
        if not quiet:
            print(f"{name}:", file=sys.stderr)
        with _missed(found, name):
            found.add(name, compared(each, table_of(each)))
    return found


@contextmanager
def _missed(found: Collected, name: str) -> Iterator[None]:
    """Keep the comparisons of other data sets where one cannot be made."""
    try:
        yield
    except KeyboardInterrupt:
        found.miss(name, "interrupted")
        found.stopped = True
    except (ValueError, OSError, MemoryError) as error:
        found.miss(name, str(error))


def _several(found: Collected) -> SeveralComparisons:
    from proxmargin.comparing.several import compare_several

    several = compare_several(found.facts)
    missing = tuple(f"{name} is not compared: {why}" for name, why in found.missing.items())
    return replace(several, notes=(*missing, *several.notes))


def _show(several: SeveralComparisons, found: Collected, arguments: argparse.Namespace) -> None:
    drawn = arguments.plot if several.nemenyi is not None else None
    if drawn is not None:
        with picture(drawn) as ax:
            several.plot(ax)
    if arguments.json:
        print_json({**several.to_dict(), "comparisons": found.facts, "plot": drawn})
        return
    better = "larger" if several.larger_is_better else "smaller"
    print(f"{several.metric.replace('_', ' ')} ({better} is better)\n")
    print_listing(several.listing())
    for remark in several.remarks():
        print(f"\n{remark}")
    if arguments.run_dir:
        print(f"\nRuns: {arguments.run_dir}; a report of each: proxmargin report RUN_DIR")
    if drawn:
        print(f"\nAverage ranks drawn in {drawn}")


def _check(arguments: argparse.Namespace) -> None:
    for option in ("output", "report"):
        if getattr(arguments, option) is not None:
            raise ValueError(
                f"--{option} is for one data set, and there are {len(arguments.data)}: keep the "
                "runs with --run DIR, which has the models of each and what a report needs"
            )
    check_plot(arguments.plot)


def _names(sources: Sequence[str]) -> dict[str, str]:
    """The data sets by short names, if these tell them apart."""
    repeated = {source for source in sources if sources.count(source) > 1}
    if repeated:
        raise ValueError(f"data sets are given twice: {', '.join(sorted(repeated))}")
    short = [Path(source).name.split(".")[0] or source for source in sources]
    return dict(zip(short if len(set(short)) == len(short) else sources, sources, strict=True))


def _asked(arguments: argparse.Namespace, name: str, source: str) -> argparse.Namespace:
    """The arguments of the comparison on one data set."""
    own = copy(arguments)
    own.data = source
    if arguments.run_dir is not None:
        own.run_dir = str(Path(arguments.run_dir) / UNSAFE.sub("_", name))
    return own
