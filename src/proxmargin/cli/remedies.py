"""The options that messages about a file name, typed one after the other until it can be read."""

from __future__ import annotations

import argparse
import re
import shlex
import warnings
from copy import copy

from proxmargin.cli import options
from proxmargin.cli.failures import as_options

AT_MOST = 8  # options
OPTION = re.compile(r"(--[a-z-]+)(?: ('[^']*'|[^\s;,.)(]+))?")
PLACEHOLDERS = frozenset({"NAME", "FILE", "COL", "POSITION"})


def remedied(
    arguments: argparse.Namespace, sentence: str, candidates: list[str]
) -> tuple[argparse.Namespace, list[str]]:
    """The arguments with the options, which follow, that ``sentence`` and the messages after it
    name, until there is none. ``candidates``: columns that may be the target."""
    reader = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    options.add_columns(reader)
    typed: list[str] = []
    used = arguments
    for _ in range(AT_MOST):
        more = _next(sentence, typed, candidates, reader)
        if more is None:
            break
        typed += more
        used = reader.parse_args(more, copy(used))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                options.table_of(used)
            break
        except ValueError as error:
            sentence = as_options(str(error))
    return used, typed


def _next(
    sentence: str, typed: list[str], candidates: list[str], reader: argparse.ArgumentParser
) -> list[str] | None:
    """The first option of a sentence that can be typed and has not been."""
    known = {flag: action for action in reader._actions for flag in action.option_strings}
    for flag, value in OPTION.findall(sentence):
        doubtful = flag == "--header" and "--no-header" in sentence  # it might eat a sample
        if flag in typed or flag not in known or doubtful:
            continue
        if known[flag].nargs == 0:
            return [flag]
        if flag == "--target" and value in PLACEHOLDERS and candidates:
            return [flag, candidates[0]]
        if value and value not in PLACEHOLDERS:
            return [flag, shlex.split(value)[0]]
    return None
