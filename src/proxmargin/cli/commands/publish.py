"""``proxmargin publish``: a comparison as one folder for a co-author."""

from __future__ import annotations

import argparse
from pathlib import Path

from proxmargin.cli import failures, options, output
from proxmargin.cli.commands.compare import add_comparison, compared
from proxmargin.studies import reports

RUN = "run"  # in the folder: finished work
PERMUTATIONS = 200


def register(commands: options.Commands) -> None:
    parser = options.subcommand(
        commands,
        "publish",
        run,
        "compare the models, and write one folder: page, PDF, tables, predictions, model, methods",
    )
    parser.add_argument("data", metavar="DATA", help="a data file or the name of an embedded set")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        required=True,
        help="an interrupted command continues there, and the folder is written when it is done",
    )
    parser.add_argument(
        "--permutations",
        type=int,
        default=PERMUTATIONS,
        metavar="N",
        help=f"of the test of the recommended model (default: {PERMUTATIONS}; 0: no test)",
    )
    add_comparison(parser)
    options.add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    reports.check_libraries()
    from proxmargin.studies.publishing import folder

    where = Path(arguments.output)
    if where.is_file():
        raise ValueError(f"--output {where} is a file: name a folder")
    arguments.run_dir = str(where / RUN)
    table = options.table_of(arguments)
    output.warn_of_leaks(table)
    found = compared(arguments, table)
    if found.interrupted:
        print(f"{found.ending.value}: the same command continues in {where}")
        by_signal = found.ending.name == "INTERRUPTED"
        return failures.interrupted() if by_signal else failures.FAILED
    test = None
    if arguments.permutations:
        test = folder.kept_test(
            arguments.run_dir,
            lambda: folder.pipeline_test(
                found,
                table.X,
                table.y,
                permutations=arguments.permutations,
                groups=table.groups,
                n_jobs=arguments.jobs,
                progress=not arguments.quiet,
            ),
            arguments.permutations,
        )
    digest = folder.digest_of(table.source, table.X, table.y)
    files = folder.publish(found, table.X, table.y, where, test=test, digest=digest)
    if arguments.json:
        output.print_json({"folder": str(where), "files": files, "recommended": found.recommended_})
    else:
        from proxmargin.studies.publishing.methods import permutation_sentence
        from proxmargin.studies.reports import text

        print(text.answer(found.facts))
        if test is not None:
            print(permutation_sentence(vars(test)))
        print(f"\n{where}: {', '.join(files)}")
    return failures.OK
