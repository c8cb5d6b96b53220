"""``proxmargin compare``, of one data set or several, ``report`` and ``publish``."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import proxmargin
from proxmargin.cli import estimators, failures, options, output, tables
from proxmargin.runtime.brief import plain
from proxmargin.studies import reports

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Record
    from proxmargin.studies.comparing.comparison import Comparison
    from proxmargin.studies.comparing.several import SeveralComparisons


RECOMMENDED = "recommended"
REPORT = "report.html"
RUN = "run"  # in the folder of publish: finished work
PERMUTATIONS = 200
UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a folder


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.data) > 1:
        return run_several(arguments)
    (arguments.data,) = arguments.data
    if arguments.report is not None:  # before hours of work
        reports.check_libraries()
    table = tables.table_of(arguments)
    output.warn_of_leaks(table)
    comparison = compared(arguments, table)
    noted = _with_doubts(comparison, table)
    # after an interruption the best of those that were fitted
    asked = comparison.recommended_ if arguments.save == RECOMMENDED else comparison.best_name_
    name = asked if asked in comparison.models_ else comparison.best_fitted_name_
    fitted = comparison.models_.get(name or "")
    wanted = arguments.output if fitted is not None else None
    if fitted is not None:
        tables.keep_table_options(fitted, arguments, table)
    with (
        output.saved_first(wanted, lambda name: proxmargin.save_model(fitted, name)) as saved,
        output.saved_first(arguments.report, noted.to_html) as reported,
        output.saved_first(arguments.plot, lambda name: _draw(comparison, name)) as drawn,
    ):
        if arguments.json:
            kept = name if saved else None
            files = {"saved": saved, "saved_model": kept, "report": reported, "plot": drawn}
            output.print_json({"file": table.describe(), **noted.to_dict(), **files})
        else:
            _print(comparison, table.source, reported)
            if saved:
                which = "best mean" if name == comparison.best_name_ else "best that was finished"
                which = "recommended model" if name == comparison.recommended_ else which
                use = f"use it with: proxmargin predict {saved} DATA"
                print(f"\nSaved to {saved}: {name}, the {which}; {use}")
            if drawn:
                print(f"\nIntervals drawn in {drawn}")
    if comparison.interrupted:
        by_signal = comparison.ending.name == "INTERRUPTED"
        return failures.interrupted() if by_signal else failures.FAILED
    certificate = getattr(fitted, "certificate_", None)
    return failures.OK if certificate is None or certificate.converged else failures.FAILED


def _with_doubts(comparison: Comparison, table: Table) -> Comparison:
    """With what was said of the file, which the terminal has had, for the page and the record."""
    rows = (each for each in table.notes if "row" in each or "sample" in each)
    told = (each.removeprefix(f"{table.source}: ") for each in (*rows, *table.doubts))
    notes = (*comparison.further_notes, *map(failures.as_options, told))
    return replace(comparison, further_notes=notes)


def _draw(comparison: Comparison, name: str) -> None:
    from proxmargin.studies.displays.comparison import ComparisonDisplay, height_of

    height = height_of(len(comparison.names))
    output.draw(name, lambda ax: ComparisonDisplay.from_comparison(comparison, ax=ax), height)


def compared(arguments: argparse.Namespace, table: Table) -> Comparison:
    """The comparison that the arguments ask for."""
    from sklearn.exceptions import ConvergenceWarning

    from proxmargin.data.inputs.preprocessing import imputer
    from proxmargin.data.inputs.row_order import RowOrderWarning
    from proxmargin.studies.comparing.metrics import DEFAULT_METRICS
    from proxmargin.studies.comparing.run import compare

    # the notes under the table say so
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RowOrderWarning)
    assert table.y is not None
    if arguments.splits == options.TIME:  # other folds are fewer where samples are
        options.check_folds(arguments, table, "--folds", arguments.folds or options.FOLDS)
    return compare(
        table.X,
        table.y,
        models=names_of(arguments.models, ["all"]),
        cv=options.folds_of(arguments, arguments.folds),
        repeats=arguments.repeats,
        scoring=arguments.scoring,
        metrics=names_of(arguments.metrics, list(DEFAULT_METRICS)),
        baselines=arguments.baselines,
        standardize=estimators.SCALING.get(arguments.standardize, options.AUTO),
        groups=table.groups,
        ids=table.ids,
        sample_weight=table.weights,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        run_dir=arguments.run_dir,
        time_limit=arguments.time_limit,
        quick=arguments.quick,
        progress=not arguments.quiet,
        preprocess=None if arguments.impute is None else imputer(arguments.impute),
        feature_names=table.feature_names,
        positive=arguments.positive,
        name=table.source,
        command=shlex.join(["proxmargin", *arguments.typed]),
    )


def names_of(given: list[str] | None, default: list[str]) -> str | list[str]:
    """The names, which may be separated by spaces or commas; 'all' if that is the only one."""
    names = [name for word in given or default for name in word.split(",") if name]
    return "all" if names == ["all"] else names


def _print(comparison: Comparison, source: str, reported: str | None) -> None:
    from proxmargin.studies.reports import text

    facts = comparison.facts
    print(f"{text.answer(facts)}\n\n{source}: {text.summary(facts)}\n")
    print(text.listing(facts).plain())
    for remark in text.remarks(facts):
        print(f"\n{remark}")
    if reported:
        print(f"\nReport: {reported}")


def run_several(arguments: argparse.Namespace) -> int:
    """Compare on every data set, then over all of them."""
    for option in ("output", "report"):
        if getattr(arguments, option) is not None:
            raise ValueError(
                f"--{option} is for one data set, and there are {len(arguments.data)}: keep the "
                "runs with --run DIR, which has the models of each and what a report needs"
            )
    names = _named_sources(arguments.data)
    asked = dict(zip(names, (_asked(arguments, *pair) for pair in names.items()), strict=True))
    for each in asked.values():  # unusable data are told before hours of work
        tables.table_of(each)
    facts, missing, stopped = _collected(asked, arguments.time_limit, arguments.quiet)
    if not facts:
        raise ValueError("; ".join(dict.fromkeys(missing.values())))
    several = proxmargin.compare_several(facts)
    notes = (f"{name} is not compared: {why}" for name, why in missing.items())
    _show(replace(several, notes=(*notes, *several.notes)), facts, arguments)
    unfinished = missing or any(each["interrupted"] for each in facts.values())
    return failures.interrupted() if stopped else failures.FAILED if unfinished else failures.OK


def _collected(
    asked: dict[str, argparse.Namespace], limit: float | None, quiet: bool
) -> tuple[Record, dict[str, str], bool]:
    """The facts of the comparisons of all data sets until an interruption, why others are missing,
    and whether there was one; ``limit`` is for all of them."""
    facts: Record = {}
    missing: dict[str, str] = {}
    stopped, started = False, time.monotonic()
    for name, each in asked.items():
        left = None if limit is None else limit - (time.monotonic() - started)
        if stopped or (left is not None and left <= 0):
            missing[name] = "interrupted" if stopped else "the time limit was reached"
            continue
        each.time_limit = left
        if not quiet:
            print(f"{name}:", file=sys.stderr)
        # the comparisons of other data sets are kept where one cannot be made
        try:
            comparison = compared(each, tables.table_of(each))
            facts[name] = plain(comparison.facts)
            stopped = comparison.ending.name == "INTERRUPTED"
        except KeyboardInterrupt:
            missing[name], stopped = "interrupted", True
        except (ValueError, OSError, MemoryError) as error:
            missing[name] = str(error)
    return facts, missing, stopped


def _show(several: SeveralComparisons, facts: Record, arguments: argparse.Namespace) -> None:
    drawn = arguments.plot if several.nemenyi is not None else None
    output.draw(drawn, several.plot)
    if arguments.json:
        output.print_json({**several.to_dict(), "comparisons": facts, "plot": drawn})
        return
    better = "larger" if several.larger_is_better else "smaller"
    print(f"{several.metric.replace('_', ' ')} ({better} is better)\n")
    print(several.listing().plain())
    for remark in several.remarks():
        print(f"\n{remark}")
    if arguments.run_dir:
        print(f"\nRuns: {arguments.run_dir}; a report of each: proxmargin report RUN_DIR")
    if drawn:
        print(f"\nAverage ranks drawn in {drawn}")


def _named_sources(sources: Sequence[str]) -> dict[str, str]:
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


def run_report(arguments: argparse.Namespace) -> int:
    reports.check_libraries()
    comparison = proxmargin.Comparison.from_run(arguments.run_dir)
    page = arguments.output
    if page is None:
        page = str(Path(arguments.run_dir) / REPORT)
    output.check_output(page)
    comparison.to_html(page)
    if arguments.json:
        output.print_json({"report": page, "interrupted": comparison.interrupted})
    else:
        print(f"Report: {page}")
    return failures.OK


def run_publish(arguments: argparse.Namespace) -> int:
    reports.check_libraries()
    from proxmargin.studies.publishing import folder

    where = Path(arguments.folder)
    if not arguments.folder or where.is_file():
        raise ValueError(f"--output {arguments.folder!r} is no folder: name one")
    arguments.run_dir = str(where / RUN)
    table = tables.table_of(arguments)
    output.warn_of_leaks(table)
    found = _with_doubts(compared(arguments, table), table)
    if found.interrupted:
        print(f"{found.ending.value}: the same command continues in {where}")
        by_signal = found.ending.name == "INTERRUPTED"
        return failures.interrupted() if by_signal else failures.FAILED
    test = None
    try:
        if arguments.permutations:
            test = folder.kept_test(
                arguments.run_dir,
                lambda: folder.pipeline_test(
                    found,
                    table.X,
                    table.y,
                    whole=arguments.permute == "all",
                    permutations=arguments.permutations,
                    groups=table.groups,
                    n_jobs=arguments.jobs,
                    progress=not arguments.quiet,
                ),
                (arguments.permutations, arguments.permute),
            )
    except ValueError as error:  # such as weights: the rest is for publication
        warnings.warn(f"no permutation test: {error}", UserWarning, stacklevel=2)
    digest = folder.digest_of(table.source, table.X, table.y)
    for model in found.models_.values():
        tables.keep_table_options(model, arguments, table)
    files = folder.publish(found, table.X, table.y, where, test=test, digest=digest)
    if arguments.json:
        output.print_json({"folder": str(where), "files": files, "recommended": found.recommended_})
    else:
        from proxmargin.studies.publishing.methods import permutation_sentence
        from proxmargin.studies.reports import text

        print(text.answer(found.facts))
        if test is not None:
            print(permutation_sentence(vars(test)))
        classes = [each["label"] for each in found.facts["data"]["classes"]]
        if len(classes) == 2 and arguments.positive is None:
            print(f"Positive is the class {classes[1]} (the other one: --positive {classes[0]!r}).")
        print(f"\n{where}: {', '.join(files)}")
    return failures.OK
