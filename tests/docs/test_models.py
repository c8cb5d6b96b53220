"""The tables of docs/mathematics.md have the solvers and the settings that there are."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from proxmargin import losses
from proxmargin.data.designs.base import TALL_RATIO
from proxmargin.models.fitting.registry import model_names
from proxmargin.solvers.choice import rules
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


OF_PROBLEMS = {  # the rules behind the rows of the table, in its order
    "one column of scores, squared or huberized hinge, ridge, few entries": rules.ONE_OUTPUT[
        "smooth", "small ridge"
    ],
    "one column, plain hinge or nu-SVM, ridge, few entries": rules.ONE_OUTPUT[
        "kinked", "small ridge"
    ],
    "one column of scores, smooth loss, ridge": rules.ONE_OUTPUT["smooth", "ridge"],
    "one column, loss with kinks, ridge, more features than samples": rules.ONE_OUTPUT[
        "kinked", "wide ridge"
    ],
    "one column, loss with kinks, ridge": rules.ONE_OUTPUT["kinked", "ridge"],
    "one column, smooth loss, l1 norm or elastic net": rules.ONE_OUTPUT["smooth", "l1"],
    "one column, smooth loss by array formulas, l1 norm": rules.ONE_OUTPUT["formula", "l1"],
    "one column, loss with kinks, l1 norm or elastic net": rules.ONE_OUTPUT["kinked", "l1"],
    "one column, loss with kinks, a ball": rules.ONE_OUTPUT["kinked", "ball"],
    "factors without l1, no penalty, smooth loss": rules.ONE_OUTPUT["smooth", "other"],
    "a penalty of one's own, smooth loss": rules.ONE_OUTPUT["smooth", "own"],
    "all classes, smooth loss": rules.SMOOTH_CLASSES,
    "all classes, Crammer and Singer's hinge, ridge or elastic net": rules.WORST_CLASS,
    "all classes, hinges, a polyhedral norm": rules.POLYHEDRAL_CLASSES,
    "all classes, hinges, other norms of groups": rules.KINKED_CLASSES,
    "a budget for the loss": rules.BUDGET,
    "MM-FDA, MM-MPM": rules.MINIMAX,
    "a kernel matrix": rules.KERNEL_RULES,
    "data read in passes, smooth loss": rules.PASSES,
}


def test_the_table_of_choices_is_that_of_the_rules():
    table = {problem: quoted(solvers) for problem, solvers in rows("problem")}
    assert table == {name: [rule.use for rule in cell] for name, cell in OF_PROBLEMS.items()}


def test_the_conditions_of_choices_are_those_of_the_rules():
    told = dict(rows("solver is taken"))
    assert f"{TALL_RATIO} samples a feature" in told["`multiplier-newton`, ridge"]
    assert f"{rules.SIMPLEX_PIECES} samples" in told["`linear-program`, one column"]
    assert f"{rules.SIMPLEX_PIECES} pairs" in told["`linear-program`, all classes"]
    assert f"({rules.SIMPLEX_SPARSE_PIECES:,} of sparse" in told["`linear-program`, all classes"]
    assert f"{rules.FEW_BEYOND_MARGINS:.0%}".replace("%", " %") in told["`fapg-star`, ball"]
    assert f"{rules.SMALL_MATRIX_BYTES // 10**6} MB" in told["`interior-point`"]
    engine = SOLVERS["chord-newton"]()
    assert f"{engine.samples_per_feature} samples" in told["`chord-newton`"]
    assert f"{engine.max_features:,} features" in told["`chord-newton`"]
    assert f"{SOLVERS['active-set']().max_samples:,} samples" in told["`active-set`"]


LOSSES = [losses.Hinge(), losses.HuberizedHinge(0.5), losses.SquaredHinge(), losses.Logistic()]


@pytest.mark.parametrize("phi", [*LOSSES, losses.DistanceWeighted(1.0)], ids=repr)
def test_the_conjugates_of_the_page_are_suprema(phi):
    t = np.linspace(-60, 400, 460_001)
    row = next(row for row in rows("phi") if type(phi).__name__ in row[0])
    formula = quoted(row[2])[0]
    for a in (0.05, 0.3, 0.8):
        known = {"a": a, "delta": 0.5, "log": np.log, "sqrt": np.sqrt}
        python = formula.replace("^", "**").replace("a log a", "a * log(a)")
        python = python.replace("delta a", "delta * a").replace(") log(", ") * log(")
        python = python.replace("2 sqrt", "2 * sqrt")
        stated = eval(python, known)
        assert stated == pytest.approx(np.max(-a * t - phi.value(t)), abs=1e-3)
        assert stated == pytest.approx(float(phi.conjugate(np.array([a]))[0]), abs=1e-12)
