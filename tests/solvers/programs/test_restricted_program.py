"""Linear programs that HiGHS does not take, or cannot solve, have failed; the log says why."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from proxmargin import MulticlassSVC
from proxmargin.solvers.programs import restricted_program
from proxmargin.solvers.programs.restricted_program import Basis, RestrictedProgram, solved


def program(entry: float = 1.0) -> RestrictedProgram:
    """``min x + y  s.t.  entry x + y >= 1,  x - y >= -2,  x, y >= 0``."""
    matrix = sparse.csc_array(np.array([[entry, 1.0], [1.0, -1.0]]))
    zero, free = np.zeros(2), np.full(2, np.inf)
    return RestrictedProgram(np.ones(2), zero, free, matrix, np.array([1.0, -2.0]), free)


def test_an_optimal_vertex_is_a_start_for_the_same_program() -> None:
    first = solved(program(), None)
    again = solved(program(), first.basis)
    assert first.optimal
    assert again.optimal
    assert again.pivots == 0
    assert first.columns.sum() == again.columns.sum() == 1.0


@pytest.mark.parametrize("entry", [1e16, np.inf])
def test_a_program_that_is_not_taken_has_failed_and_the_log_says_so(entry, caplog) -> None:
    with caplog.at_level(logging.WARNING, "proxmargin"):
        vertex = solved(program(entry), None)
    assert not vertex.optimal
    assert not vertex.limited
    assert vertex.columns.shape == vertex.duals.shape == (2,)
    assert vertex.basis.columns.shape == vertex.basis.rows.shape == (2,)
    (said,) = caplog.messages
    assert "does not take a linear program with 2 rows and 2 columns" in said
    assert f"1 to {entry:.2g}" in said


def test_a_basis_that_is_not_taken_costs_its_start_only(caplog) -> None:
    wrong = Basis(np.zeros(5, np.int8), np.zeros(2, np.int8))
    with caplog.at_level(logging.WARNING, "proxmargin"):
        vertex = solved(program(), wrong)
    assert vertex.optimal
    assert "does not take a basis" in caplog.text


def test_a_program_without_a_solution_is_not_optimal() -> None:
    contradictory = replace(program(), upper=np.zeros(2))
    vertex = solved(contradictory, None)
    assert not vertex.optimal
    assert not vertex.limited


@pytest.mark.parametrize("limit", [{"pivots": 0}, {"pivots": 1}, {"deadline": 0.0}])
def test_a_limit_is_no_failure(limit, caplog) -> None:
    rng = np.random.default_rng(0)
    matrix = sparse.csc_array(rng.random((40, 30)))
    free = np.full(40, np.inf)
    large = RestrictedProgram(np.ones(30), np.zeros(30), free[:30], matrix, np.ones(40), free)
    vertex = solved(large, None, **limit)
    assert vertex.limited
    assert not vertex.optimal
    assert vertex.columns.shape == (30,)
    assert not caplog.messages


def test_an_option_that_is_not_known_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(restricted_program, "FEASIBILITY_TOLERANCE", -1.0)
    with pytest.raises(RuntimeError, match=r"HiGHS .* does not take the option primal_feas"):
        solved(program(), None)


@pytest.mark.parametrize("unit", [1e20, 1e60])
def test_a_fit_whose_programs_fail_ends_with_an_honest_gap(unit) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MulticlassSVC(penalty="l1", solver="linear-program").fit(unit * X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.gap >= 0.0
