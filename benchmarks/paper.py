"""`python -m benchmarks paper`: tables and figures of the papers, one by one, into PAPERS.md."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks.papers import chierchia, liu, xu
from benchmarks.papers.ito import tables as ito
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import replace_section, table

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
Each section is written by the command named in it, at the size named there. Its claims are
conclusions of the paper, in words or as an order of its numbers; its protocol says what of it is
printed, what is inferred or tuned, and within which bounds numbers count as the same.

- reproduced: every claim holds, and every number compared is within its bounds;
- in shape: no claim fails, but numbers differ or are not compared, or a claim is untested;
- not: a claim fails here;
- undecided: no claim can be tested at the size of the run;
- out of reach: the data are not public here; what is said is about others.
"""
SECTION = re.compile(r"<!-- begin (\w+) -->\n.*?<!-- end \1 -->\n", re.DOTALL)
VERDICT = re.compile(r"^- \*\*(.+?)\*\*: (.+)\.$", re.MULTILINE)
OVERVIEW = "overview"


def options(parser: argparse.ArgumentParser) -> None:
    choices = [*TABLES, "all", OVERVIEW]
    parser.add_argument("tables", nargs="+", choices=choices, metavar="TABLE")
    parser.add_argument("--size", choices=[size.value for size in Size], default="small")
    parser.add_argument("--results", type=Path, default=PAPERS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    _check_file(arguments.results)
    named = [name for name in arguments.tables if name in TABLES]
    for name in TABLES if "all" in arguments.tables else named:
        outcome = TABLES[name].run(Size(arguments.size))
        title = f"{name}: {TABLES[name].title}"
        picture = _saved(name, outcome, arguments.results)
        body = _body(TABLES[name], outcome) + picture
        replace_section(name, title, body, arguments.results, HEAD)
        _arrange(arguments.results)
        print(f"{name}: {outcome.verdict.value}; {outcome.why}", flush=True)
    _arrange(arguments.results)
    return 0


def _check_file(path: Path) -> None:
    """Refuse a file of something else, before a run of minutes.

    Raises
    ------
    SystemExit
        The file does not begin with the first line of `HEAD`.
    """
    if path.exists() and not path.read_text().startswith(HEAD.split("\n")[0] + "\n"):
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


def _arrange(path: Path) -> None:
    """The head, a line for each section, and the sections in the order of `TABLES`."""
    text = path.read_text() if path.exists() else ""
    places = {name: place for place, name in enumerate(TABLES)}
    sections = [(match[1], match[0]) for match in SECTION.finditer(text) if match[1] != OVERVIEW]
    sections.sort(key=lambda one: places.get(one[0], len(places)))
    rows = [[name, *_said(section)] for name, section in sections]
    lines = f"<!-- begin {OVERVIEW} -->\n## Overview\n\n{table(['table', '', 'why'], rows)}"
    parts = [HEAD, f"{lines}\n<!-- end {OVERVIEW} -->\n", *(section for _, section in sections)]
    path.write_text("\n".join(parts))


def _said(section: str) -> tuple[str, str]:
    """The verdict and its reason."""
    found = VERDICT.search(section)
    return (found[1], found[2]) if found else ("-", "no verdict")
