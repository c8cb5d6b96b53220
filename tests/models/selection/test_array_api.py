"""Arrays of other libraries under scikit-learn's dispatch: everything fits them, or says why not.

scipy reads `SCIPY_ARRAY_API` when it is imported: these tests run in a process that has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification

import proxmargin
from proxmargin import (
    SVC,
    SVCCV,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    NuSVC,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StabilitySelection,
    alpha_max,
    certify,
    margin_path,
    permutation_test,
)
from proxmargin.models.fitting.registry import MODELS as PLAIN

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
SWITCH = "SCIPY_ARRAY_API"
is_on = os.environ.get(SWITCH) == "1"
dispatched = pytest.mark.skipif(not is_on, reason="runs in a process of its own")
MODELS = [
    SVC(),
    HuberizedSVC(),
    LogisticRegression(),
    SVCCV(Cs=2, cv=3),
    SVCCV(Cs=2, cv=3, kernel="rbf"),
    HuberizedSVCCV(alphas=2, cv=3, eps=0.1),
    LogisticRegressionCV(Cs=2, cv=3, scoring="roc_auc_ovr"),
    SparseLogisticRegressionCV(alphas=2, cv=3, eps=0.1),
    DDAGClassifier(SVC()),
    CalibratedMargin(SVC(), cv=3),
    CalibratedMargin(SVCCV(Cs=2, cv=3), cv=3),
    StabilitySelection(
        SparseLogisticRegression(), n_pairs=9, q=2, threshold=0.9, alphas=5, random_state=0
    ),
]
METHODS = ("predict", "decision_function", "predict_proba", "score", "transform")


def data(classes: int) -> tuple[Any, ...]:
    X, y = make_classification(
        90, 5, n_informative=4, n_redundant=0, n_classes=classes, random_state=0
    )
    return X, y, np.linspace(0.5, 1.5, 90)


def there(values: Any) -> Any:
    return strict.asarray(values)


@pytest.fixture
def dispatch() -> Iterator[None]:
    with config_context(array_api_dispatch=True):
        yield


@pytest.mark.slow
@pytest.mark.skipif(is_on, reason="this is that process")
def test_the_others_pass_in_a_process_with_dispatch() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env={**os.environ, SWITCH: "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]


@dispatched
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_model_is_that_of_the_data_in_memory(model: Any, classes: int, dispatch: None) -> None:
    X, y, weights = data(classes)
    parameters = (X, y) if isinstance(model, StabilitySelection) else (X, y, weights)
    expected = clone(model).fit(*parameters)
    found = clone(model).fit(*map(there, parameters))
    for name in filter(lambda name: hasattr(model, name), METHODS):
        own = (X, y) if name == "score" else (X,)
        seen = np.asarray(getattr(found, name)(*map(there, own)))
        np.testing.assert_allclose(seen, getattr(expected, name)(*own), atol=1e-2)


@dispatched
@pytest.mark.parametrize("model", [SVC(kernel="rbf"), NuSVC(nu=0.9)], ids=str)
def test_models_that_need_memory_say_so(model: Any, dispatch: None) -> None:
    X, y, _ = data(2)
    with pytest.raises(ValueError, match="cannot be fitted to data in blocks of rows"):
        model.fit(there(X), there(y))


@dispatched
def test_functions_take_them_too(dispatch: None) -> None:
    X, y, weights = data(2)
    X, y = there(X), there(y)
    assert len(margin_path(HuberizedSVC(), X, y, n_alphas=3)) == 3
    assert alpha_max(HuberizedSVC(), X, y) > 0
    assert permutation_test(HuberizedSVC(), X, y, n_permutations=9).pvalue <= 1
    assert certify(SVC().fit(X, y, there(weights)), X, y, sample_weight=weights).converged


@dispatched
@pytest.mark.parametrize(
    "model", [*(getattr(proxmargin, n)() for n in PLAIN), *MODELS[3:]], ids=str
)
def test_dispatch_changes_nothing_for_arrays_of_numpy(model: Any) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if not hasattr(checks, "check_array_api_input"):
        pytest.skip("scikit-learn is too old")
    checks.check_array_api_input(
        type(model).__name__, model, array_namespace="numpy", expect_only_array_outputs=False
    )
