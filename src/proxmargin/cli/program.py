"""The parser of the command line, and the one place where a subcommand is started."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import proxmargin
from proxmargin.cli import options
from proxmargin.cli.commands import compare, fit, paths, saved
from proxmargin.cli.failures import guarded

# what adds the parser of a subcommand, in the order in which they are listed
SUBCOMMANDS = (
    compare.register,
    compare.register_report,
    compare.register_publish,
    fit.register_fit,
    fit.register_cv,
    saved.register_predict,
    saved.register_coefs,
    paths.register_path,
    paths.register_stability,
    paths.register_permute,
    saved.register_info,
)

EPILOGUE = """\
DATA is a file (svmlight, CSV, TSV, Parquet, Arrow, NPZ) or an embedded set: breast_cancer,
digits, iris, wine. Results go to standard output, progress and warnings to standard error.

exit status: 0 done; 1 it failed, or a fit ended before its tolerance was met (its certificate
says how far it got); 2 wrong usage or unusable data; 130 interrupted (143: by SIGTERM), after
printing and saving what was finished.

example: proxmargin compare breast_cancer --output best.pmz
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Without the program's name; by default those of the process.

    Raises
    ------
    SystemExit
        After ``--help`` and ``--version`` (status 0) and for arguments that make no sense (2).
    """
    for stream in (sys.stdout, sys.stderr):
        # letters that the terminal cannot show are no reason to fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    typed = list(sys.argv[1:] if argv is None else argv)
    words = list(typed)
    for at in reversed(range(len(words) - 1)):  # argparse takes -9,-99 for options
        if words[at] == "--missing" and words[at + 1].startswith("-"):
            words[at : at + 2] = [f"{words[at]}={words[at + 1]}"]
    arguments = parser().parse_args(words)
    arguments.typed = typed

    def work() -> int:
        options.check_counts(arguments)
        options.check_outputs(arguments)
        return int(arguments.run(arguments))

    return guarded(work, debug=arguments.debug)


def parser() -> argparse.ArgumentParser:
    """The parser with all subcommands; each leaves its function in ``run``."""
    whole = argparse.ArgumentParser(
        prog="proxmargin",
        description="Margin classifiers whose every fit bounds its distance from the optimum.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--version", action="version", version=f"proxmargin {proxmargin.__version__}"
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for register in SUBCOMMANDS:
        register(commands)
    return whole
