"""Seeds reach every part of a model that draws, and leave the user's objects alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin.data.inputs.parameters import seeded_model, seeded_splitter


def states_of(model: Any) -> dict[str, Any]:
    return {
        name: each
        for name, each in model.get_params(deep=True).items()
        if name.rpartition("__")[2] == "random_state"
    }


def test_parts_at_any_depth_have_seeds_of_their_own() -> None:
    inner = make_pipeline(StandardScaler(), SGDClassifier())
    model = VotingClassifier([("a", BaggingClassifier(inner)), ("b", SGDClassifier())])
    found = states_of(seeded_model(model, 3))
    assert len(found) == 3
    assert len(set(found.values())) == 3
    assert None not in found.values()
    assert found == states_of(seeded_model(model, 3))
    assert found != states_of(seeded_model(model, 4))
    assert set(states_of(model).values()) == {None}


def test_given_states_are_kept() -> None:
    generator = np.random.RandomState(0)
    model = VotingClassifier(
        [("a", SGDClassifier(random_state=7)), ("b", LogisticRegression(random_state=generator))]
    )
    found = states_of(seeded_model(model, 3))
    assert found["a__random_state"] == 7
    assert found["b__random_state"].random_sample() == np.random.RandomState(0).random_sample()


def test_splitters_of_a_search_draw_the_same_folds() -> None:
    model = GridSearchCV(SGDClassifier(), {"alpha": [0.1]}, cv=KFold(3, shuffle=True))
    X = np.arange(30)
    one, two = ([test for _, test in seeded_model(model, 1).cv.split(X)] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert model.cv.random_state is None


def test_splitters_that_draw_nothing_or_have_a_seed_are_returned() -> None:
    for cv in (KFold(3), KFold(3, shuffle=True, random_state=0), [([0], [1])], 5, "linear"):
        assert seeded_splitter(cv, 3) is cv
    for cv in (KFold(3, shuffle=True), ShuffleSplit(3), RepeatedKFold()):
        assert seeded_splitter(cv, 3).random_state == 3
        assert cv.random_state is None
