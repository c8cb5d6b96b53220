"""The tables of docs/mathematics.md have the solvers and the settings that there are."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

import pytest

from proxmargin.models.fitting.registry import model_names
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.loop.solver import RULES

PAGE = Path(__file__).parents[2] / "docs" / "mathematics.md"
QUOTED = re.compile(r"`([^`]+)`")


def rows(heading: str) -> list[list[str]]:
    """The cells of the only table of the page with this heading in its first column."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    (start,) = (k for k, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def quoted(cell: str) -> list[str]:
    return QUOTED.findall(cell)


def options_of(names: list[str]) -> set[str]:
    return {option for name in names for option in signature(SOLVERS[name]).parameters}


def test_every_solver_has_one_row_and_no_row_is_of_another():
    named = [name for first, *_ in rows("name") for name in quoted(first)]
    assert sorted(named) == sorted(SOLVERS)


def test_every_solver_with_settings_has_one_row_of_options():
    named = [name for first, *_ in rows("solver") for name in quoted(first)]
    assert sorted(named) == sorted(name for name in SOLVERS if options_of([name]))


@pytest.mark.parametrize("row", rows("solver"), ids=lambda row: row[0].replace("`", ""))
def test_the_options_of_a_row_are_those_of_its_solvers(row):
    names, told = quoted(row[0]), quoted(row[1])
    assert {word for word in told if word not in SOLVERS} == options_of(names)


def test_every_stopping_rule_has_a_row_of_solvers_that_there_are():
    table = rows("rule")
    assert [quoted(rule)[0] for rule, *_ in table] == list(RULES)
    short_names = {"3"}  # "`isvm1` to `3`"
    named = {name for *_, solvers in table for name in quoted(solvers)}
    assert named - short_names <= set(SOLVERS)


def test_every_model_minimises_something():
    named = {quoted(first)[0] for first, *_ in rows("estimator")}
    assert named == set(model_names())
