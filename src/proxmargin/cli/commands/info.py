"""``proxmargin info``: what a model file or a data file holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from proxmargin.cli import failures
from proxmargin.cli.features import in_words
from proxmargin.cli.guards import warn_of_leaks
from proxmargin.cli.options import Commands, add_columns, add_common, subcommand
from proxmargin.cli.output import print_facts, print_json

__all__ = ["register"]

MODEL_SUFFIX = ".pmz"
NAMED_AT_MOST = 12


def register(commands: Commands) -> None:
    parser = subcommand(commands, "info", run, "describe a model file or a data file")
    parser.add_argument("data", metavar="MODEL|DATA", help="a model file, or DATA")
    add_columns(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    facts = _model_facts(arguments) if _is_model(arguments.data) else _data_facts(arguments)
    if arguments.json:
        print_json(facts)
    else:
        if "top_features" in facts:
            with_class = len(facts["classes"]) > 2
            facts["top_features"] = in_words(facts["top_features"], with_class) or "none"
        print_facts({name.replace("_", " "): _shown(value) for name, value in facts.items()})
    return failures.OK


def _is_model(name: str) -> bool:
    """Whether a file is a model: by its suffix, or else by its content."""
    from proxmargin.files.models.archive import MANIFEST, holds

    return Path(name).suffix.lower() == MODEL_SUFFIX or holds(name, MANIFEST)


def _model_facts(arguments: argparse.Namespace) -> dict[str, Any]:
    from proxmargin.files.models.model import describe_model

    return describe_model(arguments.data)


def _data_facts(arguments: argparse.Namespace) -> dict[str, Any]:
    from proxmargin.cli.options import table_of

    table = table_of(arguments)
    warn_of_leaks(table)
    return table.describe()


def _shown(value: Any) -> str:
    """A value on one line; long collections are cut."""
    if isinstance(value, dict) and "summary" in value:
        return str(value["summary"])
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    if isinstance(value, list):
        return _cut([_shown(each) for each in value])
    return format(value, ".6g") if isinstance(value, float) else str(value)


def _cut(words: list[str]) -> str:
    more = f", ... ({len(words)} in all)" if len(words) > NAMED_AT_MOST else ""
    return ", ".join(words[:NAMED_AT_MOST]) + more
