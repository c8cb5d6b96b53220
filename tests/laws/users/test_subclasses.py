"""Estimators are classes that users derive from, as from scikit-learn's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

from tests.laws.users.cases import EVERY, answers, every, folds_of, sample

# parameters of the base that a derived class sets for good
FIXED = ("cv", "estimator", "kernel", "n_pairs", "pfer", "q", "alphas", "Cs", "eps", "random_state")


def plainly(base: type) -> type:
    """Nothing of its own."""
    return type("Mine", (base,), {"__module__": __name__})


def with_a_fit(base: type) -> type:
    """A `fit` with a signature of its own."""

    class Mine(base):  # type: ignore[misc, valid-type]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            super().fit(X, y, sample_weight=sample_weight)
            self.has_seen_ = len(X)
            return self

    return Mine


def with_an_init(base: type, given: dict[str, Any]) -> type:
    """A constructor with few parameters, one of them new."""

    class Mine(base):  # type: ignore[misc, valid-type]
        def __init__(self, shift: float = 0.0, n_jobs: int | None = None) -> None:
            self.shift = shift
            super().__init__(**given)
            if hasattr(self, "n_jobs"):
                self.n_jobs = n_jobs

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return super().fit(np.asarray(X) + self.shift, y, sample_weight=sample_weight)

    return Mine


def given_to(name: str) -> dict[str, Any]:
    """Parameters with which a case is made."""
    return {k: v for k, v in EVERY[name]().get_params(deep=False).items() if k in FIXED}


DERIVED: dict[str, Callable[[type], type]] = {"plainly": plainly, "with a fit": with_a_fit}


@pytest.mark.sampled(2)
@every("subclasses", how=DERIVED)
def test_a_derived_class_is_the_same_model(name: str, how: str) -> None:
    data = sample(2)
    base, given = type(EVERY[name]()), given_to(name)
    mine = DERIVED[how](base)(**given)
    assert mine.get_params().keys() == base(**given).get_params().keys()
    model = clone(mine).fit(data.X, data.y)
    expected = base(**given).fit(data.X, data.y)
    np.testing.assert_array_equal(answers(model, data), answers(expected, data))
    assert repr(mine).startswith("Mine(")
    with pytest.raises(TypeError, match="typo"):
        type(mine)(**given, typo=1)


@pytest.mark.sampled(2)
@every("subclasses")
def test_a_derived_class_has_parameters_of_its_own(name: str) -> None:
    data = sample(2)
    base, given = type(EVERY[name]()), given_to(name)
    make = with_an_init(base, given)
    mine = make(shift=3.0)
    assert mine.get_params(deep=False) == {"shift": 3.0, "n_jobs": None}
    model = clone(mine).set_params(shift=-1.0).fit(data.X, data.y)
    expected = base(**given).fit(data.X - 1.0, data.y)
    np.testing.assert_array_equal(answers(model, data), answers(expected, data))
    if hasattr(model, "predict"):
        search = GridSearchCV(mine, {"shift": [0.0, 1.0]}, cv=2, error_score="raise")
        assert search.fit(data.X, data.y).best_estimator_.shift in (0.0, 1.0)


@pytest.mark.sampled(4)
@every("subclasses", how=DERIVED)
def test_a_derived_class_is_routed_its_weights(name: str, how: str) -> None:
    data = sample(2)
    data = data._replace(weights=np.arange(len(data.y)) % 3 + 1.0)
    base, given = type(EVERY[name]()), given_to(name)
    with sklearn.config_context(enable_metadata_routing=True):
        mine = DERIVED[how](base)(**given).set_fit_request(sample_weight=True)
        inner = getattr(mine, "estimator", None)
        if inner is not None:
            inner.set_fit_request(sample_weight=True)
        asked = clone(mine).get_metadata_routing()
        assert "sample_weight" in str(asked)
        if hasattr(mine, "predict"):
            folds = folds_of(data.rows)
            found = cross_validate(
                mine.set_score_request(sample_weight=False),
                data.X,
                data.y,
                cv=folds,
                params={"sample_weight": data.weights},
                return_estimator=True,
                error_score="raise",
            )
            for fit, (train, _) in zip(found["estimator"], folds, strict=True):
                by_hand = base(**given).fit(
                    data.X[train], data.y[train], sample_weight=data.weights[train]
                )
                np.testing.assert_array_equal(answers(fit, data), answers(by_hand, data))


@pytest.mark.sampled(2)
@every("pickling")
def test_a_derived_class_of_a_module_is_pickled(name: str, monkeypatch: Any) -> None:
    data = sample(2)
    mine = plainly(type(EVERY[name]()))
    monkeypatch.setitem(globals(), "Mine", mine)
    model = mine(**given_to(name)).fit(data.X, data.y)
    loaded = pickle.loads(pickle.dumps(model))
    assert type(loaded) is mine
    np.testing.assert_array_equal(answers(loaded, data), answers(model, data))
