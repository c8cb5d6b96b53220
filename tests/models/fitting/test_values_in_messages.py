"""An unusable value of any parameter of any class is told in one short line with its name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier

import proxmargin
from proxmargin import HuberizedSVC

LONGEST = 500  # characters
UNUSABLE: tuple[Any, ...] = (
    np.array([[0.5, 1.5], [2.5, -3.5]]),
    np.arange(5000.0),
    np.array([]),
    pd.DataFrame({"a": [1.5, 2.5]}),
    object(),
    "x" * 5000,
)
FEW = ("alphas", "Cs", "cv")
OUTER = ("CalibratedMargin", "DDAGClassifier", "StabilitySelection")


def estimators() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in proxmargin.__all__:
        cls = getattr(proxmargin, name)
        if isinstance(cls, type) and issubclass(cls, BaseEstimator):
            found[name] = cls(HuberizedSVC(0.1)) if name in OUTER else cls()
            few = {each: 2 for each in FEW if each in found[name].get_params(deep=False)}
            found[name].set_params(**few)
    return {k: v for k, v in found.items() if k in OUTER or is_classifier(v)}


ESTIMATORS = estimators()


def is_short(value: Any) -> bool:
    return np.size(value) < 5000 and len(repr(value)) < 5000


def complaint(model: Any, X: Any, y: Any) -> Exception | None:
    """The error of a fit, if there is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except (TypeError, ValueError) as error:
            return error
    return None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_unusable_value_is_named_with_its_parameter(name, rng):
    X = rng.standard_normal((24, 3))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(24) > 0, 1, 0)
    plain = ESTIMATORS[name]
    refused = 0
    for parameter in plain.get_params(deep=False):
        for value in UNUSABLE:
            if parameter in ("alphas", "l1_ratios", "checkpoint") and not is_short(value):
                continue  # a grid, or a path
            model = type(plain)(**{**plain.get_params(deep=False), parameter: value})
            error = complaint(model, X, y)
            if error is None:
                continue
            refused += 1
            told = str(error)
            assert parameter in told, f"{parameter}: {told}"
            assert len(told) <= LONGEST, f"{parameter}: {told}"
            assert "\n" not in told, f"{parameter}: {told}"
    assert refused >= 10
