"""Neither the order of rows, columns and classes nor the names of classes choose the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.laws.users.cases import (
    KINDS,
    Data,
    answers,
    assert_same,
    every,
    fitted,
    predicted,
    sample,
)


def taken(data: Data, rows: np.ndarray) -> Data:
    return data._replace(X=data.X[rows], y=data.y[rows], rows=rows)


ROW_ORDERS: dict[str, Callable[[Data], np.ndarray]] = {
    "shuffled": lambda data: np.random.default_rng(1).permutation(len(data.y)),
    "reversed": lambda data: np.arange(len(data.y))[::-1],
    "by class": lambda data: np.argsort(-data.y, kind="stable"),
}
COLUMN_ORDERS: dict[str, Callable[[Data], np.ndarray]] = {
    "shuffled": lambda data: np.random.default_rng(1).permutation(data.X.shape[1]),
    "reversed": lambda data: data.columns[::-1],
}


@pytest.mark.sampled(5)
@every("row order", order=ROW_ORDERS, kind=KINDS, classes=(2, 3))
def test_the_order_of_the_rows_says_nothing(name: str, order: str, kind: str, classes: int) -> None:
    data = sample(classes, kind)
    other = taken(data, ROW_ORDERS[order](data))
    assert_same(fitted(name, data), data, fitted(name, other), other)


@pytest.mark.sampled(5)
@every("column order", order=COLUMN_ORDERS, kind=KINDS, classes=(2, 3))
def test_the_order_of_the_columns_says_nothing(
    name: str, order: str, kind: str, classes: int
) -> None:
    data = sample(classes, kind)
    columns = COLUMN_ORDERS[order](data)
    other = data._replace(X=data.X[:, columns], probe=data.X[:, columns], columns=columns)
    assert_same(fitted(name, data), data, fitted(name, other), other)


# names of the classes 0, 1 and 2 in an order that they keep, and the type of the array of them
KEPT: dict[str, tuple[list[Any], Callable[[list[Any]], Any]]] = {
    "strings": (["no", "perhaps", "yes"], np.array),
    "strings as objects": (["no", "perhaps", "yes"], lambda y: np.array(y, dtype=object)),
    "list of strings": (["no", "perhaps", "yes"], list),
    "bools": ([False, True], np.array),
    "list of bools": ([False, True], list),
    "negative numbers": ([-7, -1, 5], np.array),
    "large numbers": ([-(2**62), 2**62, 2**62 + 1], np.array),
    "floats": ([1.0, 2.0, 3.0], np.array),
    "float32": ([-1.0, 0.0, 1.0], lambda y: np.array(y, dtype=np.float32)),
    "uint8": ([0, 1, 255], lambda y: np.array(y, dtype=np.uint8)),
    "int8": ([-128, 0, 127], lambda y: np.array(y, dtype=np.int8)),
    "a series of strings": (["a", "b", "c"], pd.Series),
    "a categorical series": (["a", "b", "c"], lambda y: pd.Series(y, dtype="category")),
    "a series of the type string": (["a", "b", "c"], lambda y: pd.Series(y, dtype="string")),
    "a series of nullable numbers": ([1, 2, 3], lambda y: pd.Series(y, dtype="Int64")),
    "a series of nullable bools": ([False, True], lambda y: pd.Series(y, dtype="boolean")),
}
# in an order that they lose when they are sorted
MOVED: dict[str, tuple[list[Any], Callable[[list[Any]], Any]]] = {
    "strings": (["yes", "no", "perhaps"], np.array),
    "bools": ([True, False], np.array),
    "numbers": ([5, -7, -1], np.array),
    "floats": ([2.0, 1.0, -3.0], np.array),
    "a categorical series": (["b", "a", "c"], lambda y: pd.Series(y, dtype="category")),
}


def named(data: Data, labels: list[Any], form: Callable[[list[Any]], Any]) -> Data:
    return data._replace(y=form([labels[code] for code in data.y]), labels=labels)


@pytest.mark.sampled(12)
@every("label names", names=KEPT, classes=(2, 3))
def test_names_in_the_same_order_give_the_same_model(name: str, names: str, classes: int) -> None:
    labels, form = KEPT[names]
    if len(labels) < classes:
        pytest.skip("there are two bools")
    data = sample(classes)
    other = named(data, labels[:classes], form)
    plain, model = fitted(name, data), fitted(name, other)
    np.testing.assert_array_equal(answers(model, other), answers(plain, data))
    if hasattr(model, "predict"):
        assert model.classes_.tolist() == labels[:classes]
        assert model.predict(data.X).dtype == model.classes_.dtype
        np.testing.assert_array_equal(predicted(model, other), predicted(plain, data))
        assert model.score(data.X, other.y) == plain.score(data.X, data.y)


@pytest.mark.sampled(3)
@every("class order", names=MOVED, kind=KINDS, classes=(2, 3))
def test_names_in_another_order_give_the_same_model(
    name: str, names: str, kind: str, classes: int
) -> None:
    labels, form = MOVED[names]
    if len(labels) < classes:
        pytest.skip("there are two bools")
    data = sample(classes, kind)
    other = named(data, labels[:classes], form)
    assert_same(fitted(name, data), data, fitted(name, other), other)
