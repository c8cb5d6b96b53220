"""Errors that say what to type: that works, or meets another error that says nothing to type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import proxmargin
from proxmargin import (
    CalibratedMargin,
    ElasticNetSVC,
    ElasticNetSVCCV,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    NuSVC,
    SparseLogisticRegression,
    open_dataset,
)
from proxmargin.penalties import Ball
from tests.cases import ESTIMATORS

STANDARDIZE = "set standardize=True"


def clouds(classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % classes
    return rng.standard_normal((60, 4)) + (np.arange(4) == y[:, None]), y


SIZES = (6.7e307, 1e141, 1e139, 1e80, 1e-80, 1e-139, 1e-141, 1e-300)


def refusal(model: Any, *data: Any) -> str:
    """What the fit is refused with, or nothing."""
    try:
        model.fit(*data)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_standardising_is_advised_only_where_it_helps(make: Any, size: float) -> None:
    X, y = clouds()
    X = X / np.abs(X).max() * size
    for data in (X, sparse.csr_array(X)):
        model = make()
        told = refusal(model, data, y)
        if STANDARDIZE in told:
            assert not refusal(model.set_params(standardize=True), data, y)
        elif told and "standardize" in model.get_params():
            other = refusal(model.set_params(standardize=True), data, y)
            assert other
            assert STANDARDIZE not in other


@pytest.mark.parametrize("size", SIZES)
def test_the_same_of_data_on_disk(size: float) -> None:
    X, y = clouds()
    data = open_dataset(X / np.abs(X).max() * size, target=y, chunk_rows=20)
    told = refusal(HuberizedSVC(), data)
    assert told
    assert bool(refusal(HuberizedSVC(standardize=True), data)) == (STANDARDIZE not in told)


def test_one_entry_beyond_what_standardising_takes_decides() -> None:
    X, y = clouds()
    X[3, 1], X[7, 2] = 1e80, 1e200  # the first one that is named would be taken
    assert STANDARDIZE not in refusal(proxmargin.SVC(), X, y)
    X[7, 2] = np.inf
    assert STANDARDIZE not in refusal(proxmargin.SVC(), X, y)


@pytest.mark.parametrize("model", [proxmargin.MulticlassSVC("l1"), proxmargin.L2SVC()], ids=repr)
def test_a_fit_that_fails_for_the_units_of_its_features_says_so(model: Any) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"entries of up to 7.9e\+12, .* standardize=True"):
        model.fit(1e12 * X, y)
    scaled = clone(model).set_params(standardize=True).fit(1e12 * X, y)
    assert scaled.certificate_.converged
    with pytest.warns(ConvergenceWarning) as caught:
        clone(model).set_params(tol=0.0, max_iter=2).fit(X, y)
    assert "entries of up to" not in str(caught[0].message)


FREE = [0.0, 1.0, 1.0, 1.0]
OVR = "multi_class='ovr'"
# a model that is refused, the words of the advice, and the model that follows it
ADVISED: list[tuple[Any, int, str, Any]] = [
    (HuberizedSVC(bounds=(-1.0, 1.0)), 3, OVR, HuberizedSVC(bounds=(-1.0, 1.0), multi_class="ovr")),
    (
        HuberizedSVC(penalty_factor=FREE),
        3,
        OVR,
        HuberizedSVC(penalty_factor=FREE, multi_class="ovr"),
    ),
    (
        SparseLogisticRegression(penalty_factor=FREE),
        3,
        OVR,
        SparseLogisticRegression(penalty_factor=FREE, multi_class="ovr"),
    ),
    (
        ElasticNetSVC(penalty_factor=FREE),
        2,
        "HuberizedSVC with a small delta",
        HuberizedSVC(penalty_factor=FREE, delta=0.01),
    ),
    (
        ElasticNetSVC(bounds=(-0.1, 0.1), l1_ratio=1.0),
        2,
        "l1_ratio < 1",
        ElasticNetSVC(bounds=(-0.1, 0.1), l1_ratio=0.9),
    ),
    (
        ElasticNetSVC(bounds=(-0.1, 0.1), l1_ratio=1.0),
        2,
        "HuberizedSVC with a small delta",
        HuberizedSVC(bounds=(-0.1, 0.1), l1_ratio=1.0, delta=0.01),
    ),
    (
        ElasticNetSVC(penalty_factor=FREE),
        3,
        "HuberizedSVC with a small delta and multi_class='ovr'",
        HuberizedSVC(penalty_factor=FREE, delta=0.01, multi_class="ovr"),
    ),
    (
        ElasticNetSVC(bounds=(-0.1, 0.1), l1_ratio=1.0),
        3,
        "HuberizedSVC with a small delta and multi_class='ovr'",
        HuberizedSVC(bounds=(-0.1, 0.1), l1_ratio=1.0, delta=0.01, multi_class="ovr"),
    ),
    (
        ElasticNetSVCCV(relaxed=True),
        3,
        "HuberizedSVCCV with a small delta and multi_class='ovr'",
        HuberizedSVCCV(relaxed=True, delta=0.01, multi_class="ovr"),
    ),
    (HuberizedSVCCV(relaxed=True), 3, OVR, HuberizedSVCCV(relaxed=True, multi_class="ovr")),
    (HuberizedSVC(penalty_factor=np.zeros(4)), 2, "alpha=0", HuberizedSVC(alpha=0.0)),
    (HuberizedSVC(penalty_factor=np.zeros(4)), 3, "alpha=0", HuberizedSVC(alpha=0.0)),
    (HuberizedSVCCV(penalty_factor=np.zeros(4)), 2, "a single fit", HuberizedSVC(alpha=0.0)),
    (
        HuberizedSVC(penalty_factor=[-1.0, 1.0, 1.0, 1.0]),
        2,
        "give it the bounds (0, 0)",
        HuberizedSVC(bounds=([0.0, -9.0, -9.0, -9.0], [0.0, 9.0, 9.0, 9.0])),
    ),
    (
        CalibratedMargin(proxmargin.SVC(), cv=40),
        2,
        "smaller cv",
        CalibratedMargin(proxmargin.SVC(), cv=5),
    ),
    (NuSVC(nu=1.5), 2, "", NuSVC(nu="0.5max")),
    (
        proxmargin.MarginClassifier(penalty=Ball(1.5, 1.0)),
        3,
        OVR,
        proxmargin.MarginClassifier(penalty=Ball(1.5, 1.0), multi_class="ovr"),
    ),
    (LogisticRegression(C=1e-200), 2, "", LogisticRegression(C=1e-100)),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("model", "classes", "advice", "follows"), ADVISED, ids=str)
def test_what_an_error_says_to_type_is_taken(
    model: Any, classes: int, advice: str, follows: Any
) -> None:
    X, y = clouds(classes)
    told = refusal(model, X, y)
    assert told
    assert advice in told
    assert not refusal(follows, X, y)
