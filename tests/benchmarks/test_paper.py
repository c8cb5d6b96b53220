"""The command of the papers' tables: sections, verdicts, an overview."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
from benchmarks.papers import recovery

from benchmarks import paper


def run(path: Path, *words: str) -> str:
    parser = ArgumentParser()
    paper.options(parser)
    assert paper.main(parser.parse_args([*words, "--results", str(path)])) == 0
    return path.read_text()


def test_sections_are_replaced_and_listed_once(tmp_path: Path) -> None:
    path = tmp_path / "PAPERS.md"
    run(path, "X6", "X7")
    text = run(path, "X6", "X16")
    assert text.startswith(paper.HEAD)
    overview = text.split("<!-- end overview -->")[0]
    for name in ("X6", "X7", "X16"):
        assert overview.count(f"| {name} | reproduced |") == 1
        assert text.count(f"<!-- begin {name} -->") == 1
    assert "B-PGH-2, ADMM takes tied 0.1" in overview
    assert "`python -m benchmarks table2`" in overview


def test_planted_data_have_the_printed_moments() -> None:
    X, y = recovery.draw(np.random.default_rng(0), 20_000, 0.8)
    X = X * y[:, None]  # both classes have the mean of the first
    assert np.abs(X[:, : recovery.RELEVANT].mean(axis=0) - 1).max() < 0.05
    assert np.abs(X[:, recovery.RELEVANT :].mean(axis=0)).max() < 0.05
    correlation = np.corrcoef(X[:, :3].T)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(correlation, 0.8, atol=0.02)
