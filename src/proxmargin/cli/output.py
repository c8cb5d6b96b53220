"""Output of the commands: tables for people, JSON for machines, files and pictures."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import proxmargin
from proxmargin.cli import tables
from proxmargin.cli.options import flag_of
from proxmargin.runtime.brief import plain
from proxmargin.runtime.files import folder_of, replaced

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Estimator, Record

TOP = 5  # features that a line has room for


READ = ("data", "model", "labels")  # arguments of commands whose files are inputs
WRITTEN = ("output", "report", "csv", "plot", "checkpoint")  # and those whose files are made


def check_outputs(arguments: argparse.Namespace) -> None:
    """Raise ValueError, before hours of work are lost, where a file cannot be written, or where an
    option, which it names, would write over one that is read."""
    for name in WRITTEN:
        written = getattr(arguments, name, None)
        for read in (each for kind in READ for each in _listed(getattr(arguments, kind, None))):
            if written and Path(read).exists() and Path(read).resolve() == Path(written).resolve():
                raise ValueError(f"{flag_of(name)} {written}: that file is read, name another")
        if name == "plot":
            check_plot(written)
        elif name != "checkpoint":  # which may be the file of an earlier run
            check_output(written)


def _listed(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def check_output(name: str | None) -> None:
    if name is None:
        return
    path, folder = Path(name), folder_of(name)
    if path.is_dir():
        raise ValueError(f"cannot write to {name}: it is a folder")
    # the new file replaces the old one: folder and file must be writable
    for place in ([path] if path.exists() else []) + ([] if folder is None else [folder]):
        if not os.access(place, os.W_OK):
            why = "may not be written to" if place.exists() else "does not exist"
            raise ValueError(f"cannot write to {name}: {place} {why}")
    if folder is not None:  # permissions do not tell of file systems such as /proc
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise ValueError(f"cannot write to {name}: {folder} takes no files") from error


def print_facts(facts: Mapping[str, object]) -> None:
    """One fact a line, the values aligned."""
    width = max(len(name) for name in facts) + 1
    for name, value in facts.items():
        print(f"{name + ':':<{width}}  {value}")


def print_json(value: object) -> None:
    """Strict JSON: numbers that are not finite become null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def saved_first(name: str | None, save: Callable[[str], object]) -> Iterator[str | None]:
    """Save to a file before the block prints, and raise after it where that failed. Gives the
    file's name; None where there was none, or it could not be written."""
    failure: Exception | None = None
    try:
        if name:
            save(name)
    except (OSError, ValueError, MemoryError) as error:
        failure = error
    try:
        yield name if name and failure is None else None
    finally:
        if failure is not None:
            raise failure


def model_saved(
    arguments: argparse.Namespace,
    model: Estimator,
    table: Table,
    imputer: Estimator | None = None,
) -> AbstractContextManager[str | None]:
    """`saved_first` of a model of the table, after the imputer that filled it in, if any."""

    def save(name: str) -> None:
        whole = model
        if imputer is not None:
            from proxmargin.data.inputs.preprocessing import Preprocessed

            whole = Preprocessed.of(imputer, model)
        tables.keep_table_options(whole, arguments, table)
        proxmargin.save_model(whole, name)

    return saved_first(arguments.output, save)


def text_saved(name: str | None, text: str) -> AbstractContextManager[str | None]:
    """`saved_first` of a text, which replaces the file in one step."""

    def save(name: str) -> None:
        with replaced(name) as stream:
            stream.write(text.encode())

    return saved_first(name, save)


def saved_to(saved: str | None, asked: str | None, option: str) -> str:
    """Where a result was saved, in words."""
    return saved or ("nothing" if asked else f"nothing (no {option})")


def check_plot(name: str | None) -> None:
    """Raise where no picture could be drawn or written, before any work is lost."""
    check_output(name)
    if name is not None:
        from proxmargin.studies.displays.axes import figure

        known = figure().canvas.get_supported_filetypes()
        if _kind(name) not in known:
            raise ValueError(f"cannot draw {name}: its name must end in .png, .pdf or .svg")


def draw(name: str | None, plot: Callable[[Any], object], height: float = 4.8) -> None:
    """Let ``plot`` draw into axes, and write the file in one step; nothing without a name."""
    if name is None:
        return
    from proxmargin.studies.displays.axes import figure

    whole = figure(height=height)
    plot(whole.subplots())
    with replaced(name) as stream:
        whole.savefig(stream, format=_kind(name), dpi=150)


def _kind(name: str) -> str:
    return Path(name).suffix.removeprefix(".").lower()


def top_features(model: Estimator) -> str:
    """The largest coefficients of a linear model on one line; empty for others, and without any."""
    from proxmargin.files.models.model import leading_features

    several = len(model.classes_) > 2
    words = in_words(leading_features(model, TOP) or [], several)
    return f"{words}; positive speaks for {model.classes_[1]}" if words and not several else words


def in_words(rows: list[Record], with_class: bool) -> str:
    """Features with their coefficients, per standard deviation where known; ``with_class``: and the
    class that each speaks for, with two classes the second."""
    return ", ".join(f"{row['feature']} ({_value(row, with_class)})" for row in rows)


def _value(row: Record, with_class: bool) -> str:
    scaled = row["coefficient_per_sd"]
    number = f"{row['coefficient']:+.3g}" if scaled is None else f"{scaled:+.3g} per sd"
    return f"{row['class']} {number}" if with_class else number


def warn_of_parted(table: Table, *harm: str) -> None:
    """Warn of rows of one sample, which folds part; ``harm``: what comes of it."""
    from proxmargin.models.selection.scoring import warn_of_repeated_ids

    warn_of_repeated_ids(table.ids, table.groups, getattr(table.ids, "name", None), *harm)


def warn_of_leaks(table: Table) -> list[str]:
    """Warn, once, of columns and rows of a file that give the classes away, in these sentences;
    embedded data sets are known, and not searched."""
    if table.y is None or not os.path.exists(table.source):
        return []
    from proxmargin.studies.reports.card import leak_signs

    # samples of different names may be alike
    grouped = table.groups is not None or (table.ids is not None and table.ids.is_unique)
    found = leak_signs(table.X, table.y, table.feature_names, grouped=grouped)
    if found:
        warnings.warn(f"{table.source}: {'; '.join(found)}.", UserWarning, stacklevel=2)
    return found
