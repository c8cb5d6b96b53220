"""The same numbers give the same model, in whatever form they come."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from tests.cases import DENSE_DATA, SPARSE_DATA
from tests.laws.users.cases import Data, answers, assert_same, every, fitted, sample

NAMES = [f"x{k}" for k in range(5)]


def frame(matrix: np.ndarray, dtype: str) -> pd.DataFrame:
    return pd.DataFrame(matrix, columns=NAMES).astype(dtype)


# of a matrix of small natural numbers
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    **DENSE_DATA,
    **SPARSE_DATA,
    "list": lambda m: m.tolist(),
    "uint8": lambda m: m.astype(np.uint8),
    "float16": lambda m: m.astype(np.float16),
    "big endian": lambda m: m.astype(">f8"),
    "objects": lambda m: m.astype(object),
    "COO": lambda m: sp.coo_array(m.astype(float)),
    "LIL": lambda m: sp.lil_matrix(m.astype(float)),
    "CSR, int32": lambda m: sp.csr_array(m.astype(np.int32)),
    "pandas": lambda m: frame(m, "float64"),
    "pandas, int8": lambda m: frame(m, "int8"),
    "pandas, Int64": lambda m: frame(m, "Int64"),
    "pandas, Float32": lambda m: frame(m, "Float32"),
    "pandas, mixed": lambda m: frame(m, "float64").astype({"x0": "int16", "x1": "Float64"}),
    "polars": lambda m: pl.DataFrame(m.astype(float), schema=NAMES, orient="row"),
    "polars, UInt8": lambda m: pl.DataFrame(m.astype(np.uint8), schema=NAMES, orient="row"),
}
# of a matrix of zeros and ones
BITS: dict[str, Callable[[np.ndarray], Any]] = {
    "bool": lambda m: m.astype(bool),
    "bool, F order": lambda m: np.asfortranarray(m, dtype=bool),
    "list of bools": lambda m: m.astype(bool).tolist(),
    "CSR, bool": lambda m: sp.csr_array(m.astype(bool)),
    "pandas, bool": lambda m: frame(m, "bool"),
    "pandas, boolean": lambda m: frame(m, "boolean"),
    "polars, Boolean": lambda m: pl.DataFrame(m.astype(bool), schema=NAMES, orient="row"),
}
# numbers are computed with in the precision that they come in
SINGLE = 5e-3


def natural(classes: int, largest: int) -> Data:
    data = sample(classes)
    X = np.clip(np.round(1.5 * data.X + 1.0), 0, largest)
    return data._replace(X=X, probe=X)


def assert_form_is_nothing(
    name: str, data: Data, form: Callable[[np.ndarray], Any], close: float
) -> None:
    other = data._replace(X=form(data.X.astype(int)), probe=form(data.X.astype(int)))
    model = fitted(name, other)
    assert_same(fitted(name, data), data, model, other, close)
    if hasattr(model, "predict"):  # what it was fitted to is not what it must be asked
        size = np.abs(answers(model, data)).max()
        np.testing.assert_allclose(
            answers(model, other), answers(model, data), rtol=0, atol=close * size
        )


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.sampled(20)
@every("forms", form=FORMS, classes=[2, 3])
def test_numbers_of_every_type_give_the_same_model(name: str, form: str, classes: int) -> None:
    close = SINGLE if "32" in form and "int" not in form else 1e-3
    assert_form_is_nothing(name, natural(classes, 9), FORMS[form], close)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.sampled(10)
@every("forms", form=BITS, classes=[2, 3])
def test_bits_of_every_type_give_the_same_model(name: str, form: str, classes: int) -> None:
    assert_form_is_nothing(name, natural(classes, 1), BITS[form], 1e-3)


@pytest.mark.filterwarnings("error:X ")
@pytest.mark.sampled(3)
@every("feature names", form=["pandas", "polars"])
def test_names_of_features_are_kept_and_checked(name: str, form: str) -> None:
    data = natural(2, 9)
    X = FORMS[form](data.X)
    model = fitted(name, data._replace(X=X))
    ask = model.predict if hasattr(model, "predict") else model.transform
    np.testing.assert_array_equal(np.asarray(ask(X)).shape[0], len(data.y))
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 5
    with pytest.raises(ValueError, match="feature names"):
        ask(X[NAMES[::-1]])
    again = fitted(name, data)
    assert not hasattr(again, "feature_names_in_")
    model.set_params(**again.get_params()).fit(data.X, data.y)
    assert not hasattr(model, "feature_names_in_")  # of the fit before


@every("pickling")
def test_a_model_comes_back_from_a_file(name: str) -> None:
    data = sample(3)
    model = fitted(name, data)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(answers(loaded, data), answers(model, data))
