"""Subclasses of the public classes work as those of scikit-learn's do."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

import proxmargin
from proxmargin import (
    SVC,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    StabilitySelection,
    certify,
    margin_path,
)
from proxmargin.models.fitting.registry import CROSS_VALIDATED, MODELS

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)

OF_OTHERS = {
    "DDAGClassifier": {"estimator": SVC()},
    "CalibratedMargin": {"estimator": SVC(), "cv": 3},
    "StabilitySelection": {"estimator": HuberizedSVC(), "n_pairs": 5},
}
EVERY = tuple(dict.fromkeys((*MODELS, *CROSS_VALIDATED, *OF_OTHERS)))
PLAIN = [name for name in MODELS if name not in OF_OTHERS]


def settings_of(name: str) -> dict[str, Any]:
    """Parameters of few fits."""
    if name in CROSS_VALIDATED:
        own = getattr(proxmargin, name)._get_param_names()
        return {"cv": 3, "Cs" if "Cs" in own else "alphas": [0.1, 0.05, 0.02]}
    return OF_OTHERS.get(name, {})


def subclasses(name: str) -> list[type]:
    base = getattr(proxmargin, name)

    class Bare(base):
        pass

    class Fixed(base):
        """With fewer parameters, and one of its own."""

        def __init__(self, extra=1):
            super().__init__(**settings_of(name))
            self.extra = extra

    class HandsOn(base):
        def __init__(self, extra=1, **others):
            super().__init__(**(settings_of(name) | others))
            self.extra = extra

    class OwnFit(base):
        def fit(self, X, y):
            self.seen_ = len(y)
            return super().fit(X, y)

    class Weighted(base):
        def fit(self, X, y, sample_weight=None, colour=None):
            return super().fit(X, y, sample_weight=sample_weight)

    class AnyKeyword(base):
        def fit(self, X, y=None, **given):
            return super().fit(X, y, **given)

    return [Bare, Fixed, HandsOn, OwnFit, Weighted, AnyKeyword]


def made(kind: type, name: str) -> Any:
    return kind() if "extra" in kind._get_param_names() else kind(**settings_of(name))


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:the chosen")
@pytest.mark.parametrize("name", EVERY)
def test_subclasses_are_made_cloned_fitted_and_asked_for_metadata(name: str) -> None:
    expected = getattr(proxmargin, name)(**settings_of(name))
    if name == "StabilitySelection":
        expected.set_params(random_state=0)
    expected.fit(X, Y)
    for kind in subclasses(name):
        model = clone(made(kind, name))
        if name == "StabilitySelection":
            model.random_state = 0
        model.fit(X, Y)
        for learned in ("coef_", "dual_coef_", "max_frequencies_"):
            if hasattr(expected, learned):
                np.testing.assert_array_equal(getattr(model, learned), getattr(expected, learned))
        with config_context(enable_metadata_routing=True):
            model.get_metadata_routing()
            if kind.__name__ == "Weighted":
                model.set_fit_request(sample_weight=True, colour=False)
            if name != "StabilitySelection":
                cross_validate(made(kind, name), X, Y, cv=2, error_score="raise")


@pytest.mark.filterwarnings("ignore:the chosen")
@pytest.mark.parametrize("name", ["SVC", "HuberizedSVC", "HuberizedSVCCV", "CalibratedMargin"])
def test_a_search_varies_the_parameter_of_a_subclass(name: str) -> None:
    fixed = subclasses(name)[1]
    search = GridSearchCV(fixed(), {"extra": [1, 2]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"extra": 1}
    assert not hasattr(fixed(), "alpha") or fixed().alpha == HuberizedSVC().alpha


def test_a_parameter_of_a_subclass_may_be_called_penalty() -> None:
    class Named(HuberizedSVC):
        def __init__(self, alpha=0.1, penalty="own"):
            super().__init__(alpha=alpha, l1_ratio=1.0)
            self.penalty = penalty

    assert clone(Named(penalty="other")).fit(X, Y).penalty == "other"
    assert repr(Named(0.2, "x")) == "Named(alpha=0.2, penalty='x')"


def test_a_weight_asked_for_by_a_subclass_reaches_its_fit() -> None:
    kind = subclasses("HuberizedSVC")[4]
    weights = np.repeat([0.0, 1.0], 30)
    with config_context(enable_metadata_routing=True):
        model = kind().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"alpha": [0.01]}, cv=[(range(60), range(60))])
        found = search.fit(X, Y, sample_weight=weights).best_estimator_
    np.testing.assert_array_equal(found.coef_, HuberizedSVC().fit(X, Y, weights).coef_)


def test_a_checkpoint_is_not_passed_on_by_metadata_routing() -> None:
    with config_context(enable_metadata_routing=True):
        assert SVC().get_metadata_routing().fit.requests["resume_from"] is False
        with pytest.raises(TypeError, match="resume_from"):
            cross_validate(SVC(), X, Y, params={"resume_from": "file"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLAIN)
def test_what_takes_our_models_takes_subclasses_with_fixed_parameters(name: str) -> None:
    base, kinds = getattr(proxmargin, name), subclasses(name)
    for kind in kinds:
        model = made(kind, name).fit(X, Y)
        assert certify(model, X, Y).primal == certify(base().fit(X, Y), X, Y).primal
        if name in ("NuSVC", "DWD", "MarginFDA", "MarginMPM", "MarginClassifier"):
            continue
        values = {"Cs" if hasattr(model, "C") else "alphas": [0.02, 0.05]}
        path = margin_path(made(kind, name), X, Y, **values)
        np.testing.assert_array_equal(path.coefs, margin_path(base(), X, Y, **values).coefs)


@pytest.mark.parametrize("number", range(6))
def test_ensembles_of_pairs_call_the_fit_of_a_subclass(number: int) -> None:
    kind = subclasses("SVC")[number]
    classes = np.arange(60) % 3
    model = DDAGClassifier(made(kind, "SVC")).fit(X, classes)
    assert all(hasattr(one, "seen_") == (kind.__name__ == "OwnFit") for one in model.estimators_)
    calibrated = CalibratedMargin(made(kind, "SVC"), cv=3).fit(X, Y)
    assert isinstance(calibrated.estimators_[0], kind)


def test_the_halves_of_a_stability_selection_take_a_fixed_subclass() -> None:
    kind = subclasses("HuberizedSVC")[1]
    halves = {"n_pairs": 10, "threshold": 0.9, "q": 2, "random_state": 0}
    found = StabilitySelection(kind(), **halves).fit(X, Y)
    expected = StabilitySelection(HuberizedSVC(), **halves).fit(X, Y)
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)


class Wider(HuberizedSVC):
    def __init__(self, alpha: float = 0.01, l1_ratio: float = 0.5, delta: float = 2.0) -> None:
        super().__init__(alpha, l1_ratio, delta)


class WiderCV(HuberizedSVCCV):
    plain = Wider


@pytest.mark.filterwarnings("ignore:the chosen")
def test_a_search_may_name_a_plain_classifier_of_its_own() -> None:
    model = WiderCV(alphas=[0.1, 0.05, 0.02], cv=3).fit(X, Y)
    assert "delta" in model.get_params()
    assert "standardize" not in model.get_params()
    expected = HuberizedSVCCV(alphas=[0.1, 0.05, 0.02], cv=3, delta=2.0).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert type(pickle.loads(pickle.dumps(model)).best_estimator_) is Wider


class InThousands(LogisticRegression):
    """A classifier of its own methods, which take no offset."""

    def decision_function(self, X):
        return super().decision_function(np.asarray(X) / 1000)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class InThousandsCV(LogisticRegressionCV):
    plain = InThousands


def test_methods_of_a_subclass_need_take_no_offset() -> None:
    model = InThousands().fit(X, Y)
    assert model.score(1000 * X, Y) == LogisticRegression().fit(X, Y).score(X, Y)
    assert np.array_equal(model.predict_proba(1000 * X).argmax(axis=1), model.predict(1000 * X))
    search = InThousandsCV(Cs=3, cv=2).fit(X, Y)
    assert search.score(1000 * X, Y) == np.mean(search.predict(1000 * X) == Y)
