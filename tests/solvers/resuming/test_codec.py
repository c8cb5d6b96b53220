"""The tags of model files and of checkpoints, as they have been written since the first version."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import as_design
from proxmargin.data.kernels import Rbf
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.archive import CODEC
from proxmargin.losses import Hinge, MarginSum, SquaredHinge
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import ElasticNet, Ridge
from proxmargin.solvers.dual.dual_coordinate_descent import DualCoordinateDescent
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.programs.linear_program import LinearProgram
from proxmargin.solvers.resuming.codec import EncodingError, StateCodec
from proxmargin.solvers.ridge.newton import RidgeNewton

SETTINGS = [
    ((1, (2.5, None)), '{"tuple": [1, {"tuple": [2.5, null]}]}'),
    ({0: [True], "a": "b"}, '{"entries": [[0, [true]], ["a", "b"]]}'),
    (-math.inf, '{"float": "-inf"}'),
    (math.nan, '{"float": "nan"}'),
    (np.array([1, 2]), '{"array": [1, 2], "type": "<i8"}'),
    (np.array([0.5, math.nan]), '{"array": [0.5, {"float": "nan"}], "type": "<f8"}'),
    (np.array(["a", "bc"]), '{"array": ["a", "bc"], "type": "<U2"}'),
    (Rbf(0.5), '{"part": "Rbf", "settings": {"gamma": 0.5}}'),
]
ARRAYS = {"a0": np.arange(3.0), "a1": np.array([0, 2], np.int32), "a2": np.array([0, 1, 2])}
POINT = {"coef": {"array": "a0"}, "intercept": {"array": "a1"}, "dual": None}


@pytest.mark.parametrize(("value", "text"), SETTINGS, ids=[text for _, text in SETTINGS])
def test_settings_are_written_as_ever(value: Any, text: str) -> None:
    assert json.dumps(CODEC.encode(value, "it"), allow_nan=False) == text
    assert repr(CODEC.decode(json.loads(text), "it")) == repr(value)


def test_numbers_of_numpy_are_numbers_in_settings() -> None:
    assert CODEC.encode([np.float32(0.5), np.int8(3), np.True_], "it") == [0.5, 3, True]
    for value in (1j, np.complex128(1j), np.longdouble(1.0), np.ones((1, 1)), len):
        with pytest.raises(ModelFileError, match=r"The parameter 'it\[0\]' cannot be stored"):
            CODEC.encode([value], "it")


def state_of(plain: Any, stop: Stop | None = None) -> Any:
    return StateCodec(dict(ARRAYS), stop or Stop()).decode(json.loads(json.dumps(plain)))


def test_states_of_earlier_checkpoints_are_read() -> None:
    assert state_of({"tuple": [1, "a", None, True]}) == (1, "a", None, True)
    assert state_of({"entries": [[0, {"tuple": []}]]}) == {0: ()}
    assert math.isnan(state_of(math.nan))  # numbers that are not finite had no tag
    number = state_of({"number": ["<f4", 0.5]})
    assert (number, number.dtype) == (0.5, np.float32)
    assert state_of(
        {"member": ["proxmargin.solvers.loop.report:Status", Status.INTERRUPTED.name]}
    ) is (Status.INTERRUPTED)
    point = state_of({"record": "proxmargin.optimality.problem:Point", "fields": POINT})
    assert isinstance(point, Point)
    np.testing.assert_array_equal(point.coef, ARRAYS["a0"])
    parts = {"data": {"array": "a1"}, "indices": {"array": "a1"}, "indptr": {"array": "a2"}}
    matrix = state_of({"sparse": "csr_array", "shape": [2, 3], "parts": parts})
    np.testing.assert_array_equal(matrix.toarray(), [[0, 0, 0], [0, 0, 2]])


def test_a_record_whose_file_has_moved_is_found_by_its_name() -> None:
    moved = state_of({"record": "proxmargin.before.problem:Point", "fields": POINT})
    assert isinstance(moved, Point)


@pytest.mark.parametrize(
    "plain",
    [
        {"record": "proxmargin.optimality.problem:Point", "fields": {"coef": 1}},
        {"record": "proxmargin.optimality.problem:Problem", "fields": {}},
        {"record": "json.decoder:JSONDecoder", "fields": {}},
        {"record": "collections:OrderedDict", "fields": {}},
        {"record": "proxmargin.optimality.problem:np", "fields": {}},
        {"member": ["proxmargin.optimality.problem:Point", "coef"]},
        {"number": ["O", 1]},
        {"array": "a7"},
        {"unknown": 1},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused(plain: Any) -> None:
    with pytest.raises((EncodingError, TypeError, KeyError)):
        state_of(plain)


def test_states_come_back_bit_for_bit() -> None:
    arrays: dict[str, np.ndarray] = {}
    twice = np.array([0.1, -math.inf])
    value = {
        "numbers": [np.float32(0.1), math.inf, (1, Status.INTERRUPTED)],
        "twice": (twice, Point(twice, twice)),
        "matrix": sp.csc_matrix(np.eye(2)),
        "stop": Stop(tol=1e-3, max_iter=7),
    }
    plain = json.loads(json.dumps(StateCodec(arrays).encode(value), allow_nan=False))
    # a limit that was one below that of its run is one below that of the run that goes on
    found = StateCodec(arrays, Stop(max_iter=20, deadline=5.0), 8).decode(plain)
    assert repr(found["numbers"]) == repr(value["numbers"])
    assert found["twice"][0] is found["twice"][1].coef is twice
    assert (found["stop"].tol, found["stop"].max_iter, found["stop"].deadline) == (1e-3, 19, 5.0)
    assert isinstance(found["matrix"], sp.csc_matrix)
    for unfit in (object(), np.array([{}]), 1j, len):
        with pytest.raises(EncodingError):
            StateCodec({}).encode(unfit)


@pytest.mark.parametrize("solver", [LinearProgram, RidgeNewton, DualCoordinateDescent])
def test_a_run_that_goes_on_has_limits_of_its_own(solver: Any) -> None:
    X, signs = np.array([[1.0, 0.5], [-1.0, 0.3], [0.5, -1.0]]), np.array([[1.0], [-1.0], [1.0]])
    phi = Hinge() if solver is LinearProgram else SquaredHinge()
    penalty = ElasticNet(0.1) if solver is LinearProgram else Ridge(0.1)
    loss = MarginSum(phi, signs, np.full((3, 1), 1 / 3), 3.0)
    problem = Problem(loss, penalty, as_design(X), Ridge())
    state = solver().init(problem, problem.origin(), Stop(max_iter=1, deadline=clock() - 1.0))
    arrays: dict[str, np.ndarray] = {}
    plain = StateCodec(arrays).encode(state)
    resumed = StateCodec(arrays, Stop(max_iter=40), 1).decode(plain)
    assert resumed.stop.deadline == math.inf
    assert resumed.stop.max_iter == 40
    assert not {"deadline", "time_limit"} & set(vars(resumed))
