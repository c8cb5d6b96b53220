"""`python -m benchmarks paper`: tables and figures of the papers, one by one, into PAPERS.md."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks.papers import chierchia, liu, xu
from benchmarks.papers.ito import tables as ito
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table, write_section

PAPERS = Path(__file__).resolve().parent / "PAPERS.md"
PICTURES = "pictures"  # a folder beside it
TABLES: dict[str, PaperTable] = {
    **xu.TABLES,
    **ito.TABLES,
    **chierchia.TABLES,
    **liu.TABLES,
}
HEAD = """# Tables and figures of the four papers

[X] Xu et al. (2015), [I] Ito et al. (2017), [C] Chierchia et al. (2015), [L] Liu et al. (2013).
Each section is written by the command named in it. "Reproduced" is to the printed digits or within
the printed deviations, "in shape" the same order and conclusions.
"""
SECTION = re.compile(r"^## (\w+): (.+)$\n(?:.*\n)*?- \*\*(.+)\*\*: (.+)\.$", re.MULTILINE)
OVERVIEW = re.compile(r"<!-- begin overview -->\n.*?<!-- end overview -->\n+", re.DOTALL)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", nargs="+", choices=[*TABLES, "all"], metavar="TABLE")
    parser.add_argument("--size", choices=[size.value for size in Size], default="small")
    parser.add_argument("--results", type=Path, default=PAPERS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    _check_file(arguments.results)
    for name in TABLES if "all" in arguments.tables else arguments.tables:
        outcome = TABLES[name].run(Size(arguments.size))
        title = f"{name}: {TABLES[name].title}"
        picture = _saved(name, outcome, arguments.results)
        body = _body(TABLES[name], outcome) + picture
        write_section(name, title, body, arguments.results, head=HEAD)
        _put_overview(arguments.results)
        print(f"{name}: {outcome.verdict.value}; {outcome.why}", flush=True)
    return 0


def _check_file(path: Path) -> None:
    """Refuse a file of something else, before a run of minutes.

    Raises
    ------
    SystemExit
        The file does not begin with `HEAD`.
    """
    if path.exists() and not path.read_text().startswith(HEAD):
        raise SystemExit(f"--results {path} is another file: its head is not that of {PAPERS.name}")


def _body(found: PaperTable, outcome: Outcome) -> str:
    small, full = found.minutes
    return f"""- **{outcome.verdict.value}**: {outcome.why}.
- Protocol: {found.protocol}
- Minutes on one core, about: {small:g} at `--size small`, {full:g} at `--size full`.

{outcome.body}"""


def _saved(name: str, outcome: Outcome, path: Path) -> str:
    """Write the picture beside the file; the line that shows it, or nothing."""
    if outcome.picture is None:
        return ""
    import matplotlib

    folder = path.parent / PICTURES
    folder.mkdir(exist_ok=True)
    # the same numbers give the same file
    with matplotlib.rc_context({"svg.hashsalt": name}):
        outcome.picture.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return f"\n\n![{name}]({PICTURES}/{name}.svg)"


def _put_overview(path: Path) -> None:
    """A line for each section of the file, after its head."""
    text = OVERVIEW.sub("", path.read_text())
    here = [[match[1], match[3], match[4]] for match in SECTION.finditer(text)]
    lines = table(["table", "", "why"], here)
    rest = text.removeprefix(HEAD).lstrip("\n")
    begin, end = "<!-- begin overview -->", "<!-- end overview -->"
    path.write_text(f"{HEAD}\n{begin}\n## Overview\n\n{lines}\n{end}\n\n{rest}")
