"""RESULTS.md is a page over the tables that the commands wrote, with the cells that are lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.report import RESULTS, write_section

from benchmarks import summary

PATHS = """
| path | solver | s to 1e-06 |
|:--|--:|--:|
| logistic; colon | margin_path | **0.0021 (0.14)** |
|  | glmnet | 0.0150 (1) |
| logistic; a9a | margin_path | 1.20 (1.5) |
|  | glmnet | 0.8 (1) |
| logistic; text | margin_path | late |
| logistic; alone | margin_path | 0.5 |
"""


def test_ratios_in_brackets_are_read_with_what_is_lost_and_what_is_not_certified() -> None:
    rows = [
        {"path": "logistic; colon", "solver": "margin_path", "s to 1e-06": "**0.0021 (0.14)**"},
        {"path": "", "solver": "glmnet", "s to 1e-06": "0.0150 (1)"},
        {"path": "logistic; text", "solver": "margin_path", "s to 1e-06": "late"},
        {"path": "logistic; alone", "solver": "margin_path", "s to 1e-06": "0.5"},
    ]
    cells = list(summary.bracketed("s to 1e-06")(rows))
    assert cells == [("logistic; colon", 0.14), None, ("logistic; alone", None)]


def test_the_fastest_of_the_others_that_finish_counts() -> None:
    cells = summary.fastest(("data",), "auto", ("LIBSVM", "Clarabel"))
    rows = [
        {"data": "a", "auto": "**0.5 (1.0)**", "LIBSVM": "late", "Clarabel": "2.0"},
        {"data": "b", "auto": "0.5", "LIBSVM": "0.25", "Clarabel": "2.0"},
        {"data": "c", "auto": "stalls", "LIBSVM": "0.25"},
        {"data": "d", "auto": "0.5", "LIBSVM": "late"},
    ]
    assert list(cells(rows)) == [("a", 0.25), ("b", 2.0), None, ("d", None)]


def test_the_page_counts_names_and_links(tmp_path: Path) -> None:
    write_section("paths-genes", "Paths of genes", PATHS, tmp_path)
    page = summary.page(tmp_path)
    lines = page.splitlines()
    (line,) = [line for line in lines if line.startswith("| paths, genes | glmnet")]
    cells = summary._split(line)
    assert cells[2:6] == ["0.46", "0.14 to 1.5", "1 of 2", "3 of 4"]
    assert "| paths, genes | logistic; a9a | 1.50 |" in page
    assert "- [Paths of genes](results/paths-genes.md): `python -m benchmarks" in page


def test_the_page_in_the_repository_is_that_of_its_tables() -> None:
    assert summary.OVERVIEW.read_text() == summary.page(RESULTS), (
        "type: python -m benchmarks summary"
    )


@pytest.mark.parametrize("job", summary.JOBS, ids=lambda job: job.title)
def test_every_job_finds_cells_in_its_tables(job: summary.Job) -> None:
    tables = [summary.rows(RESULTS / f"{name}.md") for name in job.sections]
    found = [cell for rows in tables for cell in job.cells(rows) if cell is not None]
    assert any(ratio is not None for _, ratio in found)
