"""The command of the papers' tables: sections, verdicts, an overview."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers import claims
from benchmarks.papers.claims import Agreement, Claim, illustrated, judged
from benchmarks.papers.table import Outcome, PaperTable, Size, Verdict
from benchmarks.papers.xu import statistics, xu2015
from matplotlib.figure import Figure

from benchmarks import paper


def run(path: Path, *words: str) -> str:
    parser = ArgumentParser()
    paper.options(parser)
    assert paper.main(parser.parse_args([*words, "--results", str(path)])) == 0
    return path.read_text()


def section(path: Path, name: str) -> str:
    return (path.parent / paper.RESULTS / f"{name}.md").read_text()


def test_a_section_is_a_file_and_a_row_of_the_overview(tmp_path: Path) -> None:
    path = tmp_path / "PAPERS.md"
    run(path, "X6", "X7")
    text = run(path, "X6", "X16", "--size", "full")
    for name, size in (("X6", "full"), ("X7", "small"), ("X16", "full")):
        link = f"| [{name}](papers/results/{name}.md) | reproduced | 3 of 3 | {size} | - |"
        assert text.count(link) == 1
    assert "but for B-PGH-2, ADMM, a misprint" in text
    assert "| together | 3 | 0 | 0 | 0 | 0 | 0 |" in text
    own = section(path, "X16")
    assert own.startswith(f"# X16: {paper.TABLES['X16'].title}\n\n**reproduced**, 3 of 3 claims. ")
    assert "- Command: `python -m benchmarks paper X16 --size full`\n- Machine: " in own


def test_the_overview_is_first_and_machines_are_last(tmp_path: Path) -> None:
    path = tmp_path / "PAPERS.md"
    text = run(path, "X16", "L3", "X6")
    places = [text.index(one) for one in ("| paper |", "[X6]", "[X16]", "[L3]", "How to", "Append")]
    assert places == sorted(places)
    assert text.index("X6, X16") > text.index("## Appendix")
    assert run(path, "overview") == text


def test_the_names_are_in_the_help() -> None:
    parser = ArgumentParser()
    paper.options(parser)
    told = parser.format_help()
    assert all(f"\n  {name:<5} {one.title}\n" in told for name, one in paper.TABLES.items())


def test_papers_and_their_sections_stand_in_order() -> None:
    names = [*paper.TABLES]
    ito = [name for name in names if name.startswith("I")]
    assert ito[:11] == [f"I{k}" for k in range(1, 12)]
    assert ito[11:23] == [f"IF{k}" for k in range(1, 13)]
    assert [name[0] for name in names] == sorted((n[0] for n in names), key="XICL".index)


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    path.write_text("# Something else\n")
    with pytest.raises(SystemExit, match="another file"):
        run(path, "X6")
    assert path.read_text() == "# Something else\n"


def test_a_section_that_does_not_say_what_it_is_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "PAPERS.md"
    run(path, "X6")
    (tmp_path / paper.RESULTS / "X7.md").write_text("# X7\n")
    with pytest.raises(ValueError, match="run it again"):
        run(path, "overview")


@pytest.mark.parametrize("name", paper.TABLES)
def test_a_section_of_the_repository_has_the_protocol_of_its_command(name: str) -> None:
    text = section(paper.PAPERS, name)
    size = Size.FULL if text.count("\nSize: full; ") else Size.SMALL
    assert text.startswith(f"# {name}: {paper.TABLES[name].title}\n")
    assert f"\n\n{paper.protocol(name, size)}\n\n" in text


def test_the_sections_of_the_repository_make_its_overview(tmp_path: Path) -> None:
    assert paper._overview(paper.PAPERS.parent / paper.RESULTS) == paper.PAPERS.read_text()


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
    some = [Claim("a holds", True, "1"), Claim("b holds", False, "2")]
    outcome = judged("numbers", some)
    assert (outcome.verdict, outcome.why) == (Verdict.NOT, "not so here: b holds")
    assert "| b holds | no | 2 |" in outcome.body
    assert judged("numbers", some[:1]).verdict is Verdict.IN_SHAPE


def test_a_claim_that_numpy_denies_fails() -> None:
    assert judged("", [Claim("a", np.bool_(False), "")]).why == "not so here: a"


def test_printed_numbers_that_agree_reproduce_what_is_in_shape() -> None:
    holds, fails = Claim("a", True, ""), Claim("b", False, "")
    assert judged("", [holds], [holds]).verdict is Verdict.REPRODUCED
    assert judged("", [fails], [holds]).verdict is Verdict.NOT
    partly = judged("", [holds], [holds, fails])
    assert partly.verdict is Verdict.IN_SHAPE
    assert partly.why.endswith("; not: b")


def test_open_claims_are_named_and_reproduce_nothing() -> None:
    holds, fails, unknown = Claim("a", True, ""), Claim("b", False, ""), Claim("c", None, "")
    outcome = judged("", [holds, unknown], [holds])
    assert outcome.verdict is Verdict.IN_SHAPE
    assert outcome.why.endswith("holds here; undecided: c")
    assert "| c | undecided |" in outcome.body
    assert judged("", [holds], [unknown]).verdict is Verdict.IN_SHAPE
    assert judged("", [fails, unknown]).verdict is Verdict.NOT
    nothing = judged("", [unknown], [fails])
    assert (nothing.verdict, nothing.why) == (Verdict.UNDECIDED, "c; not: b")
    assert judged("", [holds, unknown, unknown]).verdict is Verdict.UNDECIDED  # most of them
    assert judged("", [holds, holds, unknown._replace(main=True)]).verdict is Verdict.UNDECIDED


def test_an_illustration_can_only_fail_by_a_fault_of_ours() -> None:
    holds, fails = Claim("a", True, ""), Claim("b", False, "")
    assert illustrated("", [holds]).verdict is Verdict.ILLUSTRATION
    wrong = illustrated("", [holds, fails])
    assert (wrong.verdict, wrong.why) == (Verdict.NOT, "our implementation fails: b")


@pytest.mark.parametrize(
    ("differences", "holds"),
    [([1.0, 3.0], None), ([1.0, 2.0, 1.5, 1.4], True), ([-1.0, -2.0, -1.5], False), ([5.0], None)],
)
def test_a_difference_counts_beyond_two_standard_errors(
    differences: list[float], holds: bool | None
) -> None:
    assert claims.decided(differences) is holds
    assert claims.decided(np.array(differences) + 9.0, 9.0) is holds
    assert claims.ordered("", {"a": np.array(differences)}).holds is holds


def test_an_order_holds_if_it_is_so_somewhere_and_the_contrary_nowhere() -> None:
    assert claims.order([True, None]) is True
    assert claims.order([None, None]) is None
    assert claims.order([True, False, None]) is False


@pytest.mark.parametrize(
    ("differences", "holds"),
    [([0.1, -0.1, 0.0], True), ([1.0, 1.0, 1.1], False), ([0.2, 0.8, 0.4], None)],
)
def test_alike_is_within_a_bound_beyond_the_errors(
    differences: list[float], holds: bool | None
) -> None:
    assert claims.alike(differences, 0.5) is holds


def test_a_race_is_decided_from_a_factor_on() -> None:
    assert claims.faster([1.0, 1.0, 1.0], [1.5, 1.6, 1.5]) is True
    assert claims.faster([1.0, 1.0, 1.0], [1.1, 1.1, 1.1]) is None
    assert claims.faster([1.5, 1.5, 1.6], [1.0, 1.0, 1.0]) is False
    assert claims.faster([1.0, 1.0], [0.5, 9.0]) is None


@pytest.mark.parametrize(
    ("values", "printed", "deviation", "holds"),
    [
        ([0.82353], 0.824, None, True),  # to the digit
        ([0.82353], 0.825, None, False),
        ([0.80, 0.84], 0.85, None, True),
        ([0.80, 0.84], 0.90, None, False),
        ([0.82, 0.82], 0.85, 0.05, True),
    ],
)
def test_a_mean_is_met_within_two_standard_errors_of_both(
    values: list[float], printed: float, deviation: float | None, holds: bool
) -> None:
    assert Agreement(values, printed, 1e-3, 10, deviation).holds is holds


def test_nine_of_ten_printed_numbers_are_to_be_met() -> None:
    assert claims.numbers({str(k): k > 0 for k in range(10)})[0].holds
    (claim,) = claims.numbers({str(k): k > 1 for k in range(10)})
    assert not claim.holds
    assert claim.sentence.endswith("(not 0, 1)")
    (many,) = claims.numbers(dict.fromkeys("abcdef", False))
    assert "not a, b, c, d and 2 more" in many.sentence
    assert claims.numbers({}) == []


def test_pictures_lie_beside_the_file_and_do_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(size: Size) -> Outcome:
        figure = Figure()
        figure.subplots().plot([1, 2])
        return Outcome("", Verdict.IN_SHAPE, "for a test", figure)

    monkeypatch.setitem(paper.TABLES, "X6", PaperTable("Of a test", "None.", (0, 0), drawn))
    path = tmp_path / "PAPERS.md"
    run(path, "X6")
    assert "\n\n![X6](X6.svg)\n\n- Command" in section(path, "X6")
    first = (tmp_path / paper.RESULTS / "X6.svg").read_bytes()
    run(path, "X6")
    assert (tmp_path / paper.RESULTS / "X6.svg").read_bytes() == first
