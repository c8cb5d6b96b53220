"""``--plot``: a picture in a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proxmargin.cli.output import check_output
from proxmargin.runtime.files import replaced

__all__ = ["add_plot", "check_plot", "picture"]


def add_plot(parser: argparse.ArgumentParser | argparse._ArgumentGroup, what: str) -> None:
    parser.add_argument(
        "--plot", metavar="FILE", help=f"draw {what} into a file: .png, .pdf or .svg"
    )


def check_plot(name: str | None) -> None:
    """Raise where no picture could be drawn or written, before any work is lost."""
    check_output(name)
    if name is not None:
        from proxmargin.displays.axes import figure

        known = figure().canvas.get_supported_filetypes()
        if _kind(name) not in known:
            raise ValueError(f"cannot draw {name}: its name must end in .png, .pdf or .svg")


@contextmanager
def picture(name: str, height: float = 4.8) -> Iterator[Any]:
    """Axes to draw into; the file is written at the end, in one step."""
    from proxmargin.displays.axes import figure

    whole = figure(height=height)
    yield whole.subplots()
    with replaced(name) as stream:
        whole.savefig(stream, format=_kind(name), dpi=150)


def _kind(name: str) -> str:
    return Path(name).suffix.removeprefix(".").lower()
