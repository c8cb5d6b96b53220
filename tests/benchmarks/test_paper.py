"""The command of the papers' tables: sections, verdicts, an overview."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size, Verdict
from benchmarks.papers.xu import statistics, xu2015
from matplotlib.figure import Figure

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
    assert "but for B-PGH-2, ADMM, a misprint" in overview
    assert "but for the ranks of gisette, a misprint" in overview


def test_sections_stand_in_the_order_of_the_papers_whatever_their_head(tmp_path: Path) -> None:
    path = tmp_path / "PAPERS.md"
    run(path, "X16")
    old = path.read_text().replace("- not: a claim fails here;\n", "")
    silent = "<!-- begin X7 -->\n## X7: without a verdict\n<!-- end X7 -->\n"
    path.write_text(f"{old}\n{silent}")
    text = run(path, "X6")
    assert text.startswith(paper.HEAD)
    begun = [text.index(f"<!-- begin {name} -->") for name in ("overview", "X6", "X7", "X16")]
    assert begun == sorted(begun)
    assert "| X7 | - | no verdict |\n| X16 | reproduced |" in text
    assert run(path, "overview") == text


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    path.write_text("# Something else\n")
    with pytest.raises(SystemExit, match="another file"):
        run(path, "X6")
    assert path.read_text() == "# Something else\n"


@pytest.mark.parametrize("name", ["X6", "X7", "X15", "X16"])
def test_other_accuracies_do_not_reproduce(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for attribute in ("BINARY", "MULTICLASS"):
        shape = getattr(xu2015, attribute).shape
        monkeypatch.setattr(xu2015, attribute, np.round(rng.uniform(50, 100, shape), 1))
    outcome = statistics.TABLES[name].run(Size.SMALL)
    assert outcome.verdict is Verdict.NOT
    assert outcome.why.startswith("differs in ")


@pytest.mark.parametrize(
    ("name", "numbers"), [("X7", "BINARY_FRIEDMAN"), ("X16", "MULTICLASS_FRIEDMAN")]
)
def test_every_printed_number_is_compared(
    name: str, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = getattr(xu2015, numbers)
    others = [
        printed._replace(ranks=("3.9", *printed.ranks[1:])),
        printed._replace(statistic="9.99"),
        printed._replace(pvalue="0.2"),
        printed._replace(against_first=(*printed.against_first[:-1], "0.5")),
    ]
    for other in others:
        monkeypatch.setattr(xu2015, numbers, other)
        assert statistics.TABLES[name].run(Size.SMALL).verdict is Verdict.NOT


def test_ranks_of_gisette_that_differ_otherwise_are_no_known_misprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = xu2015.BINARY.copy()
    scores[xu2015.GISETTE, 0] = 92.0
    monkeypatch.setattr(xu2015, "BINARY", scores)
    outcome = statistics.TABLES["X7"].run(Size.SMALL)
    assert (outcome.verdict, outcome.why) == (Verdict.NOT, "differs in the ranks of row 4")


def test_a_claim_that_fails_decides() -> None:
    claims = [Claim("a holds", True, "1"), Claim("b holds", False, "2")]
    outcome = judged("numbers", claims)
    assert (outcome.verdict, outcome.why) == (Verdict.NOT, "not so here: b holds")
    assert "| b holds | no | 2 |" in outcome.body
    assert judged("numbers", claims[:1]).verdict is Verdict.IN_SHAPE


def test_printed_numbers_that_agree_reproduce_what_is_in_shape() -> None:
    holds, fails = Claim("a", True, ""), Claim("b", False, "")
    assert judged("", [holds], [holds]).verdict is Verdict.REPRODUCED
    assert judged("", [fails], [holds]).verdict is Verdict.NOT
    partly = judged("", [holds], [holds, fails])
    assert partly.verdict is Verdict.IN_SHAPE
    assert partly.why.endswith("but not: b")


def test_untested_claims_are_named_and_reproduce_nothing() -> None:
    holds, fails, untested = Claim("a", True, ""), Claim("b", False, ""), Claim("c", None, "")
    outcome = judged("", [holds, untested], [holds])
    assert outcome.verdict is Verdict.IN_SHAPE
    assert outcome.why.endswith("holds here; untested: c")
    assert "| c | untested |" in outcome.body
    assert judged("", [holds], [untested]).verdict is Verdict.IN_SHAPE
    assert judged("", [fails, untested]).verdict is Verdict.NOT
    nothing = judged("", [untested], [fails])
    assert (nothing.verdict, nothing.why) == (Verdict.UNDECIDED, "untested: c, but not: b")


def test_pictures_lie_beside_the_file_and_do_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(size: Size) -> Outcome:
        figure = Figure()
        figure.subplots().plot([1, 2])
        return Outcome("", Verdict.IN_SHAPE, "for a test", figure)

    monkeypatch.setitem(paper.TABLES, "X6", PaperTable("Of a test", "None.", (0, 0), drawn))
    text = run(tmp_path / "PAPERS.md", "X6")
    assert "![X6](pictures/X6.svg)" in text
    first = (tmp_path / "pictures" / "X6.svg").read_bytes()
    run(tmp_path / "PAPERS.md", "X6")
    assert (tmp_path / "pictures" / "X6.svg").read_bytes() == first
