"""Output of the commands: tables for people, JSON for machines, files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proxmargin.comparing.layout import Listing
from proxmargin.runtime.brief import plain
from proxmargin.runtime.files import folder_of

__all__ = ["check_output", "print_facts", "print_json", "print_listing"]


def check_output(name: str | None) -> None:
    """Raise ValueError where a file could not be written, before hours of work are lost."""
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


def print_listing(listing: Listing) -> None:
    """A table: with rules and bold headings on a terminal with rich, else aligned text."""
    if not (sys.stdout.isatty() and _print_rich(listing)):
        print(listing.plain())


def print_facts(facts: Mapping[str, Any]) -> None:
    """One fact a line, the values aligned."""
    width = max(len(name) for name in facts) + 1
    for name, value in facts.items():
        print(f"{name + ':':<{width}}  {value}")


def print_json(value: Any) -> None:
    """Strict JSON: numbers that are not finite become null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def _print_rich(listing: Listing) -> bool:
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=0, show_edge=False)
    for place, heading in enumerate(listing.headings):
        # words below each other, so that seven columns fit into eighty letters
        stacked = Text("\n".join(heading.replace("_", " ").split()))
        table.add_column(stacked, justify="right" if place else "left", no_wrap=True)
    for row in listing.rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    # a table that is too wide is better wrapped by the terminal than cut
    console.width = max(console.width, console.measure(table).maximum)
    console.print(table)
    return True
