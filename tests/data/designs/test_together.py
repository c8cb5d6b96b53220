"""Views of blocks of rows that threads read together: what they answer, charge and wait for."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proxmargin
from proxmargin.compiled.clock import clock, compiling
from proxmargin.data.designs import RowView, StandardizedDesign
from proxmargin.data.designs.base import Design, SweepPoint
from proxmargin.data.designs.blocks import BlockedDesign
from proxmargin.data.designs.blocks.together import blocks_under, each_in_common, over
from tests.cases.designs import _chunked
from tests.data.designs.test_chunked import derivatives

N = 40
P = 6


@pytest.fixture
def blocks(rng) -> BlockedDesign:
    return _chunked(rng.standard_normal((N, P)), 7)


def answers_of(design: Design, seed: int) -> list[Any]:
    """Every kind of answer, for arguments of this seed."""
    rng = np.random.default_rng(seed)
    coef, dual, centre = rng.random((P, 1)), rng.standard_normal((N, 1)), rng.random(P)
    weights = rng.random(N) / N
    signs = rng.choice([-1.0, 1.0], N)
    swept = design.sweep(SweepPoint(coef[:, 0], 0.1, derivatives, (signs,), centre, np.arange(P)))
    return [
        swept,
        design.adjoint(swept.dual[:, None]),
        design.scores(coef),
        design.adjoint(dual),
        design.row_squares(centre, centre),
        design.column_squares(weights, centre),
        design.gram(weights, centre),
        design.dense_columns(np.array([1, 4])),
        design.columns(np.array([0, 5])).scores(coef[:2]),
        design.precise_scores(coef, np.array([0.2])),
        design.precise_adjoint(dual),
        design.mean_and_variance(weights / weights.sum()),
        design.column_bounds(),
        design.column_norms(),
        design.rows(np.array([3, 1, 39])).scores(coef),
        np.array(design.sample_index()),
    ]


def flat(values: Any) -> list[np.ndarray]:
    if isinstance(values, tuple | list):
        return [array for each in values for array in flat(each)]
    return [np.asarray(values)]


def in_common(
    work: Callable[[int, BlockedDesign], Any], blocks: BlockedDesign, count: int
) -> list[Any]:
    return each_in_common(work, blocks, count, count)


WRAPPERS: dict[str, Callable[[Design], Design]] = {
    "plain": lambda design: design,
    "standardized": lambda design: StandardizedDesign(
        design, np.linspace(0, 1, P), np.arange(1.0, P + 1)
    ),
    "all rows of a view": lambda design: RowView(design, np.arange(N)),
    "a standardized view": lambda design: StandardizedDesign(
        RowView(design, np.arange(N)), np.ones(P), np.full(P, 2.0)
    ),
    "columns": lambda design: design.columns(np.arange(P)[::-1].copy()),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_answers_are_those_of_the_blocks_alone_bit_for_bit(name: str, blocks) -> None:
    design = WRAPPERS[name](blocks)
    assert blocks_under(design) is blocks
    found = in_common(lambda k, view: answers_of(over(design, view), k), blocks, 3)
    for seed, answers in enumerate(found):
        for ours, alone in zip(flat(answers), flat(answers_of(design, seed)), strict=True):
            np.testing.assert_array_equal(ours, alone)


def test_threads_that_ask_different_things_share_a_pass_and_its_price(blocks, rng) -> None:
    dual = rng.standard_normal((N, 1))

    def ask(k: int, view: BlockedDesign) -> float:
        if k == 0:
            view.scores(np.ones((P, 1)))
        elif k == 1:
            view.adjoint(dual)
        else:
            view.gram(np.ones(N), np.zeros(P))
            view.largest()  # known
            view.gram(np.arange(float(N)), np.zeros(P))
        return view.counter.passes

    blocks.column_bounds()
    assert in_common(ask, blocks, 3) == [1 / 3, 1 / 3, 1 / 3 + 1.0]


def test_equal_requests_are_answered_once_and_each_thread_may_write_into_its_own(blocks) -> None:
    tasks: list[int] = []

    def counted(block: Design, shared: Any, cut: Any) -> Any:
        tasks.append(block.n_samples)
        return (block.scores(shared[0]),), (block.adjoint(cut[0]),)

    def ask(k: int, view: BlockedDesign) -> np.ndarray:
        (scores,), (pulled,) = view.run(counted, (np.ones((P, 1)),), (np.ones((N, 1)),))
        scores += k
        pulled += k
        return np.append(scores, pulled) - k

    found = in_common(ask, blocks, 4)
    assert sum(tasks) == N
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-12, atol=1e-12)


def test_the_memory_of_the_last_sweep_is_that_of_each_view(blocks, rng) -> None:
    signs = rng.choice([-1.0, 1.0], (3, N))

    def ask(k: int, view: BlockedDesign) -> float:
        at = SweepPoint(np.full(P, 0.1 * k), 0.0, derivatives, (signs[k],), np.zeros(P), None)
        found = view.sweep(at)
        before = view.counter.passes
        np.testing.assert_allclose(
            view.adjoint(0.5 * found.dual[:, None])[:, 0],
            0.5 * (found.pulled[:, 0] + found.pulled[:, 1]),
        )
        return view.counter.passes - before

    assert in_common(ask, blocks, 3) == [0.0, 0.0, 0.0]


def test_fewer_threads_than_works_take_them_in_order(blocks) -> None:
    begun: list[int] = []

    def ask(k: int, view: BlockedDesign) -> int:
        begun.append(k)
        for _ in range(1 + k % 3):
            view.scores(np.full((P, 1), k + 1.0))
        return k

    assert each_in_common(ask, blocks, 11, 4) == list(range(11))
    assert sorted(begun[:4]) == [0, 1, 2, 3]
    assert sorted(begun) == list(range(11))


def test_an_error_reaches_those_who_asked_and_ends_the_others(blocks) -> None:
    ended: list[int] = []

    def failing(block: Design, shared: Any, cut: Any) -> Any:
        raise ArithmeticError("in a block")

    def ask(k: int, view: BlockedDesign) -> None:
        try:
            view.run(failing)
        except ArithmeticError:
            ended.append(k)
        view.scores(np.ones((P, 1)))
        if k == 2:
            raise ValueError("of the third")
        for _ in range(100):
            view.scores(np.ones((P, 1)))
        raise AssertionError("this one is to be ended")

    with pytest.raises(ValueError, match="of the third"):
        in_common(ask, blocks, 4)
    assert sorted(ended) == [0, 1, 2, 3]


def test_what_a_design_cannot_answer_is_the_error_of_the_one_that_asks(blocks, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.blocks.base.FEW_BYTES", 0)

    def ask(k: int, view: BlockedDesign) -> str:
        if k:
            view.scores(np.ones((P, 1)))
            return ""
        with pytest.raises(ValueError, match="are formed for data in blocks") as error:
            view.outer_gram()
        return str(error.value)

    assert in_common(ask, blocks, 3)[1:] == ["", ""]


def test_a_clock_stands_still_while_another_thread_compiles(blocks) -> None:
    def ask(k: int, view: BlockedDesign) -> float:
        begun = clock()
        if k == 0:
            time.sleep(0.4)
            compiling.seconds += 0.4
        view.scores(np.ones((P, 1)))
        if k == 1:
            time.sleep(0.2)
        view.scores(2.0 * np.ones((P, 1)))
        return clock() - begun

    for seconds in in_common(ask, blocks, 3):
        assert 0.15 < seconds < 0.35


def test_no_lock_is_held_while_a_thread_waits() -> None:
    """`functools.cached_property` has one lock for all objects in Python 3.11: a thread that waits
    for a pass within a property of a problem would keep the others from asking for theirs."""
    home = Path(proxmargin.__file__).parent
    files = [
        home / "optimality/problem.py",
        *home.glob("data/designs/**/*.py"),
        *home.glob("solvers/**/*.py"),
    ]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert "cached_property" not in {name.name for name in node.names}, file
