"""`python -m benchmarks paper`: tables and figures of the papers, one by one, into PAPERS.md."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks.papers import curves, recovery, statistics, times
from benchmarks.papers.ito import tables as ito
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table, write_section

PAPERS = Path(__file__).resolve().parent / "PAPERS.md"
TABLES: dict[str, PaperTable] = {
    **recovery.TABLES,
    **statistics.TABLES,
    **curves.TABLES,
    **times.TABLES,
    **ito.TABLES,
}
PICTURES = "pictures"  # the folder of the figures
DOTS = 80  # an inch of a picture
HEAD = """# Tables and figures of the four papers

[X] Xu et al. (2015), [I] Ito et al. (2017), [C] Chierchia et al. (2015), [L] Liu et al. (2013).
Each section is written by the command named in it. "Reproduced" is to the printed digits or within
the printed deviations, "in shape" the same order and conclusions.
"""
# tables that have a command of their own, with a section in RESULTS.md
ELSEWHERE = {
    "X1": "table1",
    "X2": "table2",
    "X10, X12, X14; C1": "multiclass",
    "L1, L2, L4": "drsvm",
}
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
        body = _body(TABLES[name], outcome) + _picture(name, outcome, arguments.results)
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


def _picture(name: str, outcome: Outcome, path: Path) -> str:
    """A link to the figure, drawn into the folder `PICTURES` beside the file."""
    if outcome.picture is None:
        return ""
    folder = path.resolve().parent / PICTURES
    folder.mkdir(exist_ok=True)
    outcome.picture().savefig(folder / f"{name}.png", dpi=DOTS)
    return f"\n\n![{TABLES[name].title}]({PICTURES}/{name}.png)"


def _put_overview(path: Path) -> None:
    """A line for each section of the file, and for tables elsewhere, after its head."""
    text = OVERVIEW.sub("", path.read_text())
    here = [[match[1], match[3], match[4]] for match in SECTION.finditer(text)]
    there = [
        [name, "see RESULTS.md", f"`python -m benchmarks {command}`"]
        for name, command in ELSEWHERE.items()
    ]
    lines = table(["table", "", "why"], [*here, *there])
    rest = text.removeprefix(HEAD).lstrip("\n")
    begin, end = "<!-- begin overview -->", "<!-- end overview -->"
    path.write_text(f"{HEAD}\n{begin}\n## Overview\n\n{lines}\n{end}\n\n{rest}")
