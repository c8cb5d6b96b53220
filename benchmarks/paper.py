"""`python -m benchmarks paper`: tables and figures of the papers, a file each, and PAPERS.md."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.papers import chierchia, liu, xu
from benchmarks.papers.ito import tables as ito
from benchmarks.papers.table import Outcome, PaperTable, Size, Verdict
from benchmarks.report import circumstances, table

PAPERS = Path(__file__).resolve().parent / "PAPERS.md"
RESULTS = Path("papers", "results")  # beside it: a file a section, with its picture
BY_PAPER: dict[str, dict[str, PaperTable]] = {
    "[X] Xu, Akrotirianakis, Chakraborty (2015)": xu.TABLES,
    "[I] Ito, Takeda, Toh (2017)": ito.TABLES,
    "[C] Chierchia, Pustelnik, Pesquet, Pesquet-Popescu (2015)": chierchia.TABLES,
    "[L] Liu, Qian, Dai, Zhang (2013)": liu.TABLES,
}
TABLES: dict[str, PaperTable] = {
    name: one for tables in BY_PAPER.values() for name, one in tables.items()
}
TITLE = "# Tables and figures of the four papers"
WORDS = """Claims are conclusions of the paper, in words or as an order of its numbers, and the
printed numbers. A section has its protocol (what is printed, what is inferred), its claims with our
numbers, and the command that wrote it.

- reproduced: every claim holds, and the printed numbers are met;
- in shape: no conclusion fails; numbers differ or are not printed, or some claims are undecided;
- not: a conclusion fails here;
- undecided: the size or the draws of the run do not decide what the paper concludes;
- illustration: nothing of the paper could fail, it tests our implementation;
- out of reach: the data are not public here; what is said is about others.

One tolerance of means over draws: two standard errors, of the differences on the same draws where
both sides have them, of both means together where one is printed. A difference within them decides
nothing. An order on several data sets holds if it is so beyond them on some set and the contrary on
none. Printed means are met if nine of ten are within them. Where methods race, one is faster from a
factor of 1.2 on. Other factors of seconds or of iterations, which are not means over draws of the
same thing, are told where they are used; those that the paper does not print are ours.

K_1 of Algorithm 4 of [I] is not printed: it is 100 in I4, I5, I8 and I10, whose printed iterations
it fits, and 2 in IF11 and IF12, where 100 does not always converge.

What the papers print otherwise than it is: [errata](../docs/errata.md)."""
VERDICT = re.compile(r"^\*\*(.+?)\*\*, (.+?)\. (.+)\.$", re.MULTILINE)
RUN = re.compile(r"^Size: (\w+); draws: (.+?); about", re.MULTILINE)
WITH = re.compile(r"^- Machine: (.+); load average.*\n- Versions: (.+)\.$", re.MULTILINE)
ANSWER = re.compile(r"^\|.*\| (yes|no|undecided) \|[^|]*\|$", re.MULTILINE)
OVERVIEW = "overview"
NO_CLAIMS = "no claims"


def options(parser: argparse.ArgumentParser) -> None:
    choices = [*TABLES, "all", OVERVIEW]
    names = "\n".join(f"  {name:<5} {one.title}" for name, one in TABLES.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"tables and figures:\n{names}\n  all, or {OVERVIEW}: {PAPERS.name} alone"
    parser.add_argument("tables", nargs="+", choices=choices, metavar="TABLE", help="see below")
    parser.add_argument("--size", choices=[size.value for size in Size], default="small")
    parser.add_argument("--results", type=Path, default=PAPERS, help="the overview to write")


def main(arguments: argparse.Namespace) -> int:
    path = arguments.results
    _check_file(path)
    folder = path.parent / RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    named = [name for name in arguments.tables if name in TABLES]
    for name in TABLES if "all" in arguments.tables else named:
        size = Size(arguments.size)
        outcome = TABLES[name].run(size)
        picture = _saved(name, outcome, folder)
        (folder / f"{name}.md").write_text(_section(name, outcome, size, picture))
        path.write_text(_overview(folder))
        print(f"{name}: {outcome.verdict.value}; {outcome.why}", flush=True)
    path.write_text(_overview(folder))
    return 0


def _check_file(path: Path) -> None:
    """Refuse a file of something else, before a run of minutes.

    Raises
    ------
    SystemExit
        The file does not begin with `TITLE`.
    """
    if path.exists() and not path.read_text().startswith(f"{TITLE}\n"):
        raise SystemExit(f"--results {path} is another file: its head is not that of {PAPERS.name}")


def _section(name: str, outcome: Outcome, size: Size, picture: str) -> str:
    answers = Counter(ANSWER.findall(_claims(outcome.body)))
    run = f"python -m benchmarks paper {name}" + (" --size full" if size is Size.FULL else "")
    return f"""# {name}: {TABLES[name].title}

**{outcome.verdict.value}**, {_counted(answers)}. {outcome.why}.

{protocol(name, size)}

{outcome.body.strip()}{picture}

{circumstances(run=run)}
"""


def protocol(name: str, size: Size) -> str:
    """What a run of a section is."""
    found, full = TABLES[name], size is Size.FULL
    minutes = f"about {found.minutes[full]:g} minutes on one core"
    return f"""Size: {size.value}; draws: {found.draws[full]}; {minutes}
(small {found.minutes[0]:g}, full {found.minutes[1]:g}).

Protocol: {found.protocol.strip()}"""


def _claims(body: str) -> str:
    """The first table of a body, if it is that of the claims."""
    first = body.split("\n\n", 1)[0]
    return first if first.startswith("| claim |") else ""


def _counted(answers: Mapping[str, int]) -> str:
    """In words that the overview takes over."""
    count = sum(answers.values())
    if not count:
        return NO_CLAIMS
    left = f", {answers['undecided']} undecided" if answers.get("undecided") else ""
    return f"{answers.get('yes', 0)} of {count} claims{left}"


def _saved(name: str, outcome: Outcome, folder: Path) -> str:
    """Write the picture beside the section; the line that shows it, or nothing."""
    if outcome.picture is None:
        return ""
    import matplotlib

    # the same numbers give the same file
    with matplotlib.rc_context({"svg.hashsalt": name}):
        outcome.picture.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return f"\n\n![{name}]({name}.svg)"


class Told(NamedTuple):
    """What a section says of itself."""

    verdict: str
    claims: str
    why: str
    size: str
    draws: str
    machine: str


def _told(path: Path) -> Told:
    text = path.read_text()
    verdict, run, machine = VERDICT.search(text), RUN.search(text), WITH.search(text)
    if verdict is None or run is None or machine is None:
        raise ValueError(f"{path} is not a section of the papers: run it again")
    claims = "-" if verdict[2] == NO_CLAIMS else verdict[2].replace(" claims", "")
    return Told(verdict[1], claims, verdict[3], run[1], run[2], f"{machine[1]}; {machine[2]}")


def _overview(folder: Path) -> str:
    """Verdicts of all sections that there are, then the words, then machines and versions."""
    found = {
        name: _told(folder / f"{name}.md") for name in TABLES if (folder / f"{name}.md").exists()
    }
    return (
        "\n\n".join(
            [
                TITLE,
                _counts(found),
                *_by_paper(found),
                f"## How to read it\n\n{WORDS}",
                _machines(found),
            ]
        )
        + "\n"
    )


def _counts(found: Mapping[str, Told]) -> str:
    rows = []
    kinds = [one.value for one in Verdict]
    for paper, tables in BY_PAPER.items():
        counts = Counter(found[name].verdict for name in tables if name in found)
        rows.append([paper, *(str(counts[kind]) for kind in kinds)])
    every = Counter(one.verdict for one in found.values())
    rows.append(["together", *(str(every[kind]) for kind in kinds)])
    return table(["paper", *kinds], rows)


def _by_paper(found: Mapping[str, Told]) -> list[str]:
    head = ["section", "verdict", "claims that hold", "size", "draws", "why"]
    parts = []
    for paper, tables in BY_PAPER.items():
        rows = [
            [f"[{name}]({RESULTS.as_posix()}/{name}.md)", *_row(found[name])]
            for name in tables
            if name in found
        ]
        if rows:
            parts.append(f"## {paper}\n\n{table(head, rows)}")
    return parts


def _row(one: Told) -> list[str]:
    return [one.verdict, one.claims, one.size, one.draws, one.why]


def _machines(found: Mapping[str, Told]) -> str:
    """Each machine with its versions once."""
    sections: dict[str, list[str]] = {}
    for name, one in found.items():
        sections.setdefault(one.machine, []).append(name)
    lines = [f"- {', '.join(names)}: {machine}." for machine, names in sections.items()]
    return "\n".join(["## Appendix: machines and versions", "", *lines])
