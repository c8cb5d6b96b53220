"""Exceptions as a sentence in words of the command line, exit statuses, and remedies that work."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import traceback
import warnings
from ast import literal_eval
from collections.abc import Callable, Mapping
from copy import copy

from proxmargin.cli import options, tables
from proxmargin.runtime.interrupts import interrupts

# exit statuses
OK = 0
FAILED = 1  # an error, or a fit that ended before its tolerance was met
USAGE = 2  # wrong options or unusable data
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
OF_SIGNALS = 128  # what a shell adds to the number of a signal


def interrupted() -> int:
    """The status after Ctrl-C (130) or SIGTERM (143)."""
    return OF_SIGNALS + interrupts.number


def guarded(work: Callable[[], int], *, debug: bool) -> int:
    """The status of ``work``; of an exception, after a sentence about it on standard error."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    with warnings.catch_warnings(), interrupts.terminable():
        warnings.showwarning = _show_warning
        # what the program has to say to its user; python -W is about the code
        warnings.simplefilter("default", UserWarning)
        try:
            status = work()
            sys.stdout.flush()
            return status
        except (KeyboardInterrupt, Exception) as error:
            try:
                sys.stdout.flush()
            except OSError:  # or the interpreter fails again, when it flushes at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):  # nobody reads on
                return PIPE_CLOSED
            if debug:
                traceback.print_exc()
            status, sentence = _explained(error)
            print(f"proxmargin: {sentence}", file=sys.stderr)
            return status


def _explained(error: BaseException) -> tuple[int, str]:
    """Exit status and sentence for an error, by the first kind in `_KINDS` that it is of."""
    if isinstance(error, KeyboardInterrupt):
        return interrupted(), f"interrupted: {_one_line(error) or 'nothing was finished'}"
    for kind, status, start in _KINDS:
        if isinstance(error, kind):
            return status, start + (_one_line(error) or kind.__name__)
    return FAILED, f"{type(error).__name__}: {_one_line(error)} (--debug shows where)"


_KINDS: tuple[tuple[type[BaseException], int, str], ...] = (
    (OSError, FAILED, "error: "),  # a model that a full disk does not take is a ValueError too
    (ValueError, USAGE, "error: "),  # bad data, bad parameters, unsuitable solvers
    (ImportError, FAILED, "error: "),
    (MemoryError, FAILED, "not enough memory: "),
)


def _one_line(message: object) -> str:
    return as_options(" ".join(str(message).split()))


def _show_warning(message: object, category: type[Warning], *_: object, **__: object) -> None:
    kind = "" if issubclass(category, options.Note) else "warning: "
    print(f"proxmargin: {kind}{_one_line(message)}", file=sys.stderr)


_SWITCHES: Mapping[str, str] = {
    "cv=TimeSeriesSplit(5) of sklearn.model_selection (on the command line: --splits time)": (
        "--splits time"
    ),
    "encode=True": "--encode",
    "header=False": "--no-header",
    "header=True": "--header",
    "transpose=True": "--transpose",
    "normalize_levels=True": "--normalize-levels",
    "na_labels=True": "--na-labels",
    "fit_intercept=False": "--no-intercept",
    "standardize=False": "--no-standardize",
}
_SAME = (
    *("decimal", "encoding", "n_alphas", "target", "ignore", "groups", "weights", "repeats"),
    *("thousands", "comment", "missing", "short_rows", "sheet", "labels", "unlabelled"),
    *("duplicates", "drop_classes", "unseen", "impute"),
    *("metrics", "threshold", "pfer", "q", "fdr", "assumption", "cluster", "eps", "stop_at"),
    *("scoring", "statistic", "positive", "l1_ratios"),
)
_FLAGS: Mapping[str, str] = {
    **{name: options.flag_of(name) for name in (*options.parameters(), *_SAME)},
    "separator": "--sep",
    "n_jobs": "--jobs",
    "n_pairs": "--pairs",
    "ids": "--id",
    "run_dir": "--run",
}
_NAME = rf"(?<![\w.])({'|'.join(_FLAGS)})="
_WORD = r"'(?:[^'\\]|\\.)*'|\"[^\"]*\""  # as Python writes it
# lists and dictionaries are no words that can be typed
_ASSIGNMENT = re.compile(rf"{_NAME}(?![\[{{(])(?:({_WORD})|([-+\w.]*\w))?")
_LIST = re.compile(rf"{_NAME}\[((?:(?:{_WORD})(?:, )?)+)\]")
_BOUND = re.compile(rf"(?<![\w.])({'|'.join(_FLAGS)}) (>=|<=) (?=[\d.])")
# at the beginning of a sentence: what a parameter has to be
_SUBJECT = re.compile(rf"^({'|'.join(_FLAGS)}) (?=must |is |needs )")
# names that are no words
_BARE = re.compile(
    rf"(?<![\w./'\"-])({'|'.join(n for n in _FLAGS if '_' in n or n in ('q', 'pfer', 'fdr'))})"
    r"(?![\w='\"(.-])"
)
_BOUNDS: Mapping[str, str] = {">=": "of at least", "<=": "of at most"}


def as_options(sentence: str) -> str:
    """The sentence with options in the place of parameters: ``nu=0.5`` becomes ``--nu 0.5``, and
    bounds are words, as shells take ``>`` for a file: ``q <= 3`` becomes ``--q of at most 3``."""
    for switch, option in _SWITCHES.items():
        sentence = sentence.replace(switch, option)
    sentence = _LIST.sub(_options, sentence)
    sentence = _SUBJECT.sub(lambda found: f"{_FLAGS[found[1]]} ", sentence)
    sentence = _BOUND.sub(lambda found: f"{_FLAGS[found[1]]} {_BOUNDS[found[2]]} ", sentence)
    return _BARE.sub(lambda found: _FLAGS[found[1]], _ASSIGNMENT.sub(_option, sentence))


def _option(found: re.Match[str]) -> str:
    name, quoted, value = found.groups()
    if not (quoted or value):
        return _FLAGS[name]
    word = literal_eval(quoted) if quoted else value
    word = tables.joined([word]) if name == "missing" else word
    # a shell takes a mark as it is, but in a sentence it would look like one of punctuation
    mark = quoted and not word[-1:].isalnum()
    return f"{_FLAGS[name]} {repr(word) if mark else shlex.quote(word)}"


def _options(found: re.Match[str]) -> str:
    """An option for each member of a list."""
    words = map(literal_eval, re.findall(_WORD, found[2]))
    words = map(tables.joined, ([w] for w in words)) if found[1] == "missing" else words
    return " ".join(f"{_FLAGS[found[1]]} {shlex.quote(word)}" for word in words)


AT_MOST = 16  # options
_LEFT_OUT = re.compile("without these options: leave out (.*)")
SWAPPED = "the two tables are the wrong way round"
_NO_COLUMN = re.compile("there is no column '([^']*)'")
OPTION = re.compile(r"(--[a-z-]+)(?: ('[^']*'|[^\s;,)(]*[^\s;,.)(]))?")
_REPEATED = frozenset({"--ignore", "--missing", "--drop-classes"})
PLACEHOLDERS = frozenset({"NAME", "FILE", "COL", "POSITION"})


def remedied(
    arguments: argparse.Namespace, sentence: str, candidates: list[str]
) -> tuple[argparse.Namespace, list[str]]:
    """The arguments with the options, which follow, that ``sentence`` and the messages after it
    name, in the place of wrong ones, until there is none. ``candidates``: columns that may be the
    target."""
    reader = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    options.add_sections(reader, *options.OF_TABLES)
    typed: list[str] = []
    used = arguments
    for _ in range(AT_MOST):
        used = copy(used)
        more = _next(sentence, typed, candidates, reader)
        if left := _LEFT_OUT.search(sentence):
            more = _left_out(used, [flag for flag, _ in OPTION.findall(left[1])], reader)
        if SWAPPED in sentence and not typed:
            more = ["--labels", used.data, *["--transpose"][: "--transpose, with" in sentence]]
            used.data = used.labels
        if more is None:
            break
        wrong = _NO_COLUMN.search(sentence)
        if wrong and more[:1] == ["--ignore"]:
            used.ignore = [each for each in used.ignore if each != wrong[1]]
        if wrong and more[:1] == ["--missing"]:
            words = [word for each in used.missing for word in tables.separated(each)]
            others = [word for word in words if not word.startswith(f"{wrong[1]}=")]
            used.missing, more[1] = [], ",".join([more[1], tables.joined(others)])
        typed += more
        used = reader.parse_args(more, used)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tables.table_of(used)
            break
        except ValueError as error:
            sentence = as_options(str(error))
    return used, typed


def _left_out(
    used: argparse.Namespace, flags: list[str], reader: argparse.ArgumentParser
) -> list[str]:
    """Sets these options as if they had not been typed; there is nothing to type for them."""
    known = {flag: action for action in reader._actions for flag in action.option_strings}
    typed = [*used.typed]
    for flag in flags:
        setattr(used, known[flag].dest, known[flag].default)
        words = 1 if known[flag].nargs == 0 else 2
        for at in reversed(range(len(typed))):
            if typed[at].partition("=")[0] == flag:
                del typed[at : at + (1 if "=" in typed[at] else words)]
    used.typed = typed
    return []


def heeded(
    arguments: argparse.Namespace, sentences: list[str]
) -> tuple[argparse.Namespace, list[str]]:
    """The arguments with all options, which follow, that these sentences name, and those without
    which they could not be read then; none if they cannot be read so."""
    reader = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    options.add_sections(reader, *options.OF_TABLES)
    typed: list[str] = []
    for sentence in sentences:
        while more := _next(sentence, typed, [], reader):
            typed += more
    if not typed:
        return arguments, []
    used = reader.parse_args(typed, copy(arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tables.table_of(used)
        except ValueError as error:
            used, more = remedied(used, as_options(str(error)), [])
            typed += more
        try:
            tables.table_of(used)
        except ValueError:
            return arguments, []
    return used, typed


def _next(
    sentence: str, typed: list[str], candidates: list[str], reader: argparse.ArgumentParser
) -> list[str] | None:
    """The first option of a sentence that can be typed and has not been."""
    known = {flag: action for action in reader._actions for flag in action.option_strings}
    for flag, value in OPTION.findall(sentence):
        doubtful = flag == "--header" and "--no-header" in sentence  # it might eat a sample
        word = shlex.split(value)[0] if value else value
        repeated = flag in typed and (flag not in _REPEATED or word in typed)
        if repeated or flag not in known or doubtful:
            continue
        if known[flag].nargs == 0:
            return [flag]
        if flag == "--target" and value in PLACEHOLDERS and candidates:
            return [flag, candidates[0]]
        if value and value not in PLACEHOLDERS:
            return [flag, word]
    return None
