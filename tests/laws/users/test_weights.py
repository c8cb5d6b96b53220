"""Weight 2 is a repeated row and weight 0 a removed one, with default parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.laws.users.cases import KINDS, Data, answers, assert_same, every, fitted, sample


def weighted(data: Data, smallest: int) -> Data:
    weights = np.random.default_rng(5).integers(smallest, 3, len(data.y)).astype(float)
    return data._replace(weights=weights)


@pytest.mark.sampled(4)
@every("repetition", kind=KINDS, classes=(2, 3))
def test_weights_are_repeated_rows(name: str, kind: str, classes: int) -> None:
    data = weighted(sample(classes, kind), 1)
    rows = np.repeat(data.rows, data.weights.astype(int))
    other = data._replace(X=data.X[rows], y=data.y[rows], weights=None, rows=rows)
    assert_same(fitted(name, data), data, fitted(name, other), other)


@pytest.mark.sampled(3)
@every("removal", kind=KINDS, classes=(2, 3))
def test_a_row_without_weight_is_no_row(name: str, kind: str, classes: int) -> None:
    data = weighted(sample(classes, kind), 0)
    rows = np.flatnonzero(data.weights)
    other = data._replace(X=data.X[rows], y=data.y[rows], weights=data.weights[rows], rows=rows)
    assert_same(fitted(name, data), data, fitted(name, other), other)


@pytest.mark.sampled(4)
@every("class without weight", kind=KINDS)
def test_a_class_without_weight_is_no_class(name: str, kind: str) -> None:
    data = sample(3, kind)
    data = data._replace(weights=(data.y < 2).astype(float), labels=range(2))
    rows = np.flatnonzero(data.weights)
    other = data._replace(X=data.X[rows], y=data.y[rows], weights=None, rows=rows)
    model = fitted(name, data)
    assert_same(model, data, fitted(name, other), other)


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": list,
    "int64": lambda w: w.astype(int),
    "float32": lambda w: w.astype(np.float32),
    "uint8": lambda w: w.astype(np.uint8),
    "strided": lambda w: np.repeat(w, 2)[::2],
    "series": pd.Series,
    "series of nullable numbers": lambda w: pd.Series(w, dtype="Float64"),
    "polars": pl.Series,
}


@pytest.mark.sampled(8)
@every("forms of weights", form=FORMS)
def test_weights_of_every_type_are_the_same_weights(name: str, form: str) -> None:
    data = weighted(sample(2), 1)
    other = data._replace(weights=FORMS[form](data.weights))
    np.testing.assert_array_equal(
        answers(fitted(name, other), data), answers(fitted(name, data), data)
    )


@pytest.mark.sampled(2)
@every("units of weights")
def test_weights_of_one_are_no_weights(name: str) -> None:
    data = sample(3)
    other = data._replace(weights=np.ones(len(data.y)))
    assert_same(fitted(name, data), data, fitted(name, other), other)
