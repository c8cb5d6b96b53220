"""Functions that kernels call by their addresses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from proxmargin.compiled.cache import ARRAY, NUMBER, address_of, caller, njit


class Line(NamedTuple):
    slope: float
    height: float


class Power(NamedTuple):
    exponent: float


@njit()
def along_line(at, x, shift):
    line = at[0]
    return line.slope * x.sum() + line.height + shift, 1.0


@njit()
def along_power(at, x, shift):
    power = at[0]
    total = shift
    for i in range(x.size):
        total += x[i] ** power.exponent
    return total, 2.0


call = caller(2)


@njit()
def called_twice(address, at, x):
    first, second = call(address, at, (x, 1.0))
    return first + call(address, at, (x[:2], 2.0))[0], second


@pytest.mark.parametrize(
    ("function", "parameters", "expected"),
    [
        (along_line, Line(2.0, 0.5), (2.0 * 6 + 0.5 + 1 + 2.0 * 3 + 0.5 + 2, 1.0)),
        (along_power, Power(2.0), (14 + 1 + 5 + 2, 2.0)),
    ],
)
def test_one_kernel_calls_functions_of_different_parameters(function, parameters, expected):
    address = address_of(function, parameters, (ARRAY, NUMBER))
    stored = np.array(parameters)
    assert called_twice(address, stored.ctypes.data, np.array([1.0, 2.0, 3.0])) == expected


def test_the_caller_is_compiled_once_for_all_of_them():
    x = np.ones(3)
    for function, parameters in ((along_line, Line(1.0, 0.0)), (along_power, Power(3.0))):
        stored = np.array(parameters)
        address = address_of(function, parameters, (ARRAY, NUMBER))
        called_twice(address, stored.ctypes.data, x)
    assert len(called_twice.signatures) == 1
