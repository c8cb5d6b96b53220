"""The parser of the command line, and the one place where a subcommand is started."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import proxmargin
from proxmargin.cli import failures, options, output
from proxmargin.cli.commands import compare, fit, paths, saved
from proxmargin.cli.failures import guarded
from proxmargin.models.fitting.registry import model_names

RUNS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "compare": compare.run,
    "report": compare.run_report,
    "publish": compare.run_publish,
    "fit": fit.run_fit,
    "cv": fit.run_cv,
    "predict": saved.run_predict,
    "coefs": saved.run_coefs,
    "path": paths.run_path,
    "stability": paths.run_stability,
    "permute": paths.run_permute,
    "info": saved.run_info,
}

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
        output.check_outputs(arguments)
        return int(arguments.run(arguments))

    return guarded(work, debug=arguments.debug)


class Parser(argparse.ArgumentParser):
    """Errors are a sentence, with what was probably meant, below one line on the usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, others = super().parse_known_args(args, namespace)
        for word in others:
            self.error(f"there is no argument {word!r}{self._meant(word.partition('=')[0])}")
        return found, others

    def _meant(self, word: str) -> str:
        near = get_close_matches(word, self._option_string_actions, 1)
        return f": did you mean {near[0]}?" if near else ""

    def error(self, message: str) -> NoReturn:
        if message.endswith("--model/--model-name"):
            message = (
                f"which model? --model NAME, one of {', '.join(sorted(model_names()))}; which one "
                "suits the data tells: proxmargin compare DATA"
            )
        self.exit(failures.USAGE, f"usage: {self.prog} --help\n{self.prog}: error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The parser with all subcommands; each leaves its function in ``run``."""
    whole = Parser(
        prog="proxmargin",
        description="Margin classifiers whose every fit bounds its distance from the optimum.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--version", action="version", version=f"proxmargin {proxmargin.__version__}"
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, told in options.table()["commands"].items():
        summary = told["summary"]
        made = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        options.add_sections(made, *told["sections"], "common")
        made.set_defaults(run=RUNS[name])
    return whole
