"""`python -m benchmarks summary`: RESULTS.md, one page over the files in results/.

Every ratio is our seconds over those of the fastest other package at the same certified gap, read
from the tables that the other commands wrote: nothing is measured here.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import RESULTS, table

OVERVIEW = RESULTS.parent / "RESULTS.md"
OURS = ("proxmargin auto", "margin_path")
LOST = 1.05  # a ratio above which a cell counts as lost
MOST_LOST = 12  # cells that are named
HEAD = """# Results of the benchmarks

Written by `python -m benchmarks summary` from the tables in [results](results), each of which names
the command, the machine and the versions that made it. A ratio is our seconds over those of the
fastest other package that reaches the same relative gap, certified from its coefficients by
formulas of the benchmarks alone; below 1 we are faster. Means are geometric.
"""

Row = Mapping[str, str]
Cell = tuple[str, float | None]  # what was fitted; the ratio, None where no other package finished


@dataclass(frozen=True)
class Job:
    """A line of the summary: sections, and how the cells of a row of their tables are read."""

    title: str
    sections: Sequence[str]
    rivals: str
    cells: Callable[[Sequence[Row]], Iterator[Cell | None]]  # None: ours did not certify


def bracketed(column: str) -> Callable[[Sequence[Row]], Iterator[Cell | None]]:
    """Cells such as `0.0211 (0.43)` in rows of ours, named by the first column as last filled."""

    def cells(rows: Sequence[Row]) -> Iterator[Cell | None]:
        name = ""
        for row in rows:
            name = next(iter(row.values())) or name
            if row.get("solver") in OURS and column in row:
                yield _bracketed(name, row[column].strip("*"))

    return cells


def _bracketed(name: str, text: str) -> Cell | None:
    ratio = re.search(r"\(([\d.e+-]+)\)", text)
    if ratio:
        return name, float(ratio[1])
    return (name, None) if _number(text) is not None else None


def ratio(name: Sequence[str], column: str, ours: str) -> Callable[..., Iterator[Cell | None]]:
    """Cells of a column of ratios; ``ours`` is the column of our seconds."""

    def cells(rows: Sequence[Row]) -> Iterator[Cell | None]:
        for row in rows:
            if column in row and ours in row:
                label = ", ".join(row[part] for part in name if row.get(part))
                finished = _number(row[ours]) is not None
                yield (label, _number(row[column])) if finished else None

    return cells


def fastest(
    name: Sequence[str], ours: str, others: Sequence[str]
) -> Callable[[Sequence[Row]], Iterator[Cell | None]]:
    """Our column of seconds against the fastest of others."""

    def cells(rows: Sequence[Row]) -> Iterator[Cell | None]:
        for row in rows:
            if ours in row:
                label, time = ", ".join(row[part] for part in name), _number(row[ours])
                found = [seconds for other in others if (seconds := _number(row.get(other, "")))]
                yield None if time is None else (label, time / min(found) if found else None)

    return cells


def _number(text: str) -> float | None:
    found = re.match(r"\**([\d.]+(?:e[+-]?\d+)?)", text.strip())
    return float(found[1]) if found else None


UNIFIED = (
    *("LIBSVM", "LIBSVM official", "LIBLINEAR", "LIBLINEAR official", "Clarabel"),
    *("newton-cholesky", "lbfgs", "newton-cg", "sag"),
)
JOBS = (
    Job(
        "sparse fits, gap 1e-6",
        ("peers", "peers-hinge", "peers-row"),
        "skglm, LIBLINEAR, celer, Snap ML",
        bracketed("s to 1e-06"),
    ),
    Job("paths, genes", ("paths-genes",), "glmnet, adelie, skglm", bracketed("s to 1e-06")),
    Job("paths, many samples", ("paths-tall",), "glmnet, adelie, skglm", bracketed("s to 1e-06")),
    Job("paths, text", ("paths-text",), "glmnet, adelie", bracketed("s to 0.0001")),
    Job(
        "10 folds of paths, genes",
        ("cv-genes",),
        "cv.glmnet, adelie, glum",
        bracketed("s to 1e-06"),
    ),
    Job("10 folds of paths, many samples", ("cv-tall",), "the same", bracketed("s to 0.0001")),
    Job(
        "the family of Ito et al.",
        ("unified", "unified-large"),
        "LIBSVM, LIBLINEAR, scikit-learn, Clarabel",
        fastest(("data", "parameter"), "auto", UNIFIED),
    ),
    Job(
        "everyday single fits",
        ("cells",),
        "LIBLINEAR, LIBSVM, ReHLine, Snap ML",
        ratio(("data", "model", "gap"), "ratio", "proxmargin"),
    ),
    Job(
        "the same, intercept penalised",
        ("cells",),
        "the same",
        ratio(("data", "model", "gap"), "ratio †", "proxmargin augmented †"),
    ),
    Job(
        "kernel SVMs, gap 1e-6",
        ("kernel-grid",),
        "LIBSVM, scikit-learn-intelex",
        fastest(("data, kernel, C",), "proxmargin, 1e-06", ("LIBSVM, 1e-06", "sklearnex, 1e-06")),
    ),
    Job(
        "multiclass hinges, gap 1e-6",
        ("hinge", "hinge-huberized"),
        "Clarabel, HiGHS",
        fastest(("problem",), "auto, 1e-06", ("Clarabel", "HiGHS, whole LP")),
    ),
    Job(
        "nested comparisons, seconds a setting",
        ("compare",),
        "GridSearchCV of scikit-learn",
        ratio(("data", "ours"), "ratio", "s"),
    ),
    Job(
        "calibrated probabilities",
        ("calibration",),
        "CalibratedClassifierCV",
        ratio(("data", "model", "map"), "ratio", "s"),
    ),
)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, default=OVERVIEW, help="the page to write")


def main(arguments: argparse.Namespace) -> int:
    arguments.output.write_text(page(RESULTS))
    print(f"{arguments.output} is written")
    return 0


def page(folder: Path) -> str:
    """The whole page, over the files in the folder."""
    lines, lost = [], []
    for job in JOBS:
        cells = [cell for name in job.sections for cell in job.cells(rows(folder / f"{name}.md"))]
        done = [cell for cell in cells if cell is not None]
        ratios = [found for _, found in done if found is not None]
        lost += [(found, job.title, name) for name, found in done if (found or 0.0) > LOST]
        links = ", ".join(f"[{name}](results/{name}.md)" for name in job.sections)
        mean = f"{np.exp(np.mean(np.log(ratios))):.2f}" if ratios else "-"
        spread = f"{min(ratios):.3g} to {max(ratios):.3g}" if ratios else "-"
        count = f"{sum(found > LOST for found in ratios)} of {len(ratios)}"
        certified = f"{len(done)} of {len(cells)}"
        lines.append((job.title, job.rivals, mean, spread, count, certified, links))
    head = ("job", "rivals", "mean ratio", "from, to", "lost", "ours certified", "table")
    named = [(title, name, f"{found:.2f}") for found, title, name in sorted(lost, reverse=True)][
        :MOST_LOST
    ]
    files = sorted(folder.glob("*.md"))
    return "\n".join(
        [
            HEAD,
            table(head, lines),
            "",
            "Cells that no other package finishes within its limits have no ratio, and count as "
            f"certified. Lost: a ratio above {LOST:g}.",
            "",
            f"## Where we lose: the worst {len(named)} of {len(lost)} cells",
            "",
            table(("job", "cell", "ratio"), named),
            "",
            "## All tables",
            "",
            *(f"- [{_title(file)}](results/{file.name}): `{_command(file)}`" for file in files),
            "",
        ]
    )


def _title(file: Path) -> str:
    return file.read_text().splitlines()[0].removeprefix("# ")


def _command(file: Path) -> str:
    found = re.search(r"^- Command: `(.*)`$", file.read_text(), flags=re.MULTILINE)
    words = found[1] if found else "no command"
    return words if len(words) <= 100 else words[:100].rsplit(" ", 1)[0] + " ..."


def rows(file: Path) -> list[Row]:
    """The rows of all tables of a file, by the names of their columns.

    Of columns with the same name the last counts.
    """
    found: list[Row] = []
    names: list[str] = []
    for line in file.read_text().splitlines() if file.exists() else ():
        if not line.startswith("|"):
            names = []
        elif not names:
            names = _split(line)
        elif not set(line) <= set("|:- "):
            found.append(dict(zip(names, _split(line), strict=False)))
    return found


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
