"""Kernels that are functions compare texts, graphs and any other objects."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    SVCCV,
    CalibratedMargin,
    Checkpoint,
    DDAGClassifier,
    HuberizedSVC,
    LogisticRegression,
    MarginFDA,
    MarginMPM,
    NuSVC,
    certify,
    permutation_test,
    save_model,
)
from proxmargin.files.errors import ModelFileError

WORDS = ["spam", "offer", "win", "money", "cheap", "hello", "friend", "meeting", "noon", "now"]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(WORDS[k] for k in sorted(RNG.choice(10, 4, replace=False))) for _ in range(60)]
LABELS = np.array(["spam" if "win" in t or "money" in t else "ham" for t in TEXTS])
COUNTS = np.array([[word in text.split() for word in WORDS] for text in TEXTS], float)


class Graph:
    """An object that looks like a sequence of its nodes."""

    def __init__(self, text: str) -> None:
        self.nodes = text.split()

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, place: int) -> str:
        return self.nodes[place]


def shared_words(A: Any, B: Any) -> np.ndarray:
    return np.array([[len({*a.split()} & {*b.split()}) for b in B] for a in A], float)


def shared_nodes(A: Any, B: Any) -> np.ndarray:
    return np.array([[len({*a.nodes} & {*b.nodes}) for b in B] for a in A], float)


def shared_of_lists(A: Any, B: Any) -> np.ndarray:
    return np.array([[len({*a} & {*b}) for b in B] for a in A], float)


def shared_of_matrices(A: Any, B: Any) -> np.ndarray:
    return np.array([[np.sum(a * b) for b in B] for a in A], float)


def inner(A: Any, B: Any) -> np.ndarray:
    return A @ B.T


OBJECTS: dict[str, tuple[Any, Any]] = {
    "list of texts": (TEXTS, shared_words),
    "tuple of texts": (tuple(TEXTS), shared_words),
    "array of texts": (np.array(TEXTS), shared_words),
    "array of objects": (np.array(TEXTS, dtype=object), shared_words),
    "series": (pd.Series(TEXTS, index=[f"r{i}" for i in range(60)]), shared_words),
    "graphs": ([Graph(text) for text in TEXTS], shared_nodes),
    "lists of words": ([text.split() for text in TEXTS], shared_of_lists),
    "lists of several lengths": (
        [[*text.split(), *"ab"[: i % 3]] for i, text in enumerate(TEXTS)],
        lambda A, B: shared_of_lists(A, B),
    ),
    "matrices": ([np.diag(row) for row in COUNTS], shared_of_matrices),
    "array of matrices": (np.array([np.diag(row) for row in COUNTS]), shared_of_matrices),
    "frame": (pd.DataFrame([text.split() for text in TEXTS]), shared_of_lists),
}
MODELS = [SVC(), L2SVC(), LogisticRegression(), NuSVC(), DWD(), MarginFDA(), MarginMPM()]


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_every_kind_are_fitted_as_by_scikit_learn(kind: str) -> None:
    X, kernel = OBJECTS[kind]
    model = SVC(kernel=kernel, tol=1e-9).fit(X, LABELS)
    peer = svm.SVC(kernel=shared_words, tol=1e-9).fit(TEXTS, LABELS)
    if "several" not in kind:
        scores = peer.decision_function(TEXTS)
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-4)
    assert model.score(X, LABELS) > 0.9
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_every_model_gives_what_its_kernel_matrix_gives(model: Any) -> None:
    own = clone(model).set_params(kernel=shared_words, tol=1e-9).fit(TEXTS, LABELS)
    numbers = clone(model).set_params(kernel=inner, tol=1e-9).fit(COUNTS, LABELS)
    scores = numbers.decision_function(COUNTS)
    np.testing.assert_allclose(own.decision_function(TEXTS), scores, atol=1e-6)
    assert own.certificate_.converged
    again = pickle.loads(pickle.dumps(own))
    assert np.array_equal(again.predict(TEXTS[:7]), own.predict(TEXTS)[:7])
    weighted = clone(own).fit(TEXTS, LABELS, np.arange(60) % 3)
    assert np.isin(weighted.support_ % 3, (1, 2)).all()


def test_several_classes_and_what_is_built_on_models() -> None:
    three = np.where(np.arange(60) % 7 == 0, "other", LABELS)
    model = SVC(kernel=shared_words)
    assert clone(model).fit(TEXTS, three).decision_function(TEXTS).shape == (60, 3)
    for judge in (model, svm.SVC(kernel=shared_words)):
        pairs = DDAGClassifier(judge).fit(TEXTS, three)
        assert pairs.predict(TEXTS).shape == pairs.predict(np.array(TEXTS)).shape == (60,)
    assert cross_val_score(model, TEXTS, LABELS, cv=3, error_score="raise").mean() > 0.8
    assert cross_val_predict(model, TEXTS, LABELS, cv=3).shape == (60,)
    grid = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3, error_score="raise").fit(TEXTS, LABELS)
    search = SVCCV([0.01, 0.1, 1.0], kernel=shared_words, cv=3, scoring="accuracy")
    search.fit(TEXTS, LABELS)
    assert search.score(TEXTS, LABELS) > 0.9
    assert grid.score(TEXTS, LABELS) > 0.9
    calibrated = CalibratedMargin(model, cv=3).fit(TEXTS, LABELS)
    assert calibrated.predict_proba(TEXTS[:5]).shape == (5, 2)
    fitted = clone(model).fit(TEXTS, LABELS)
    assert certify(fitted, TEXTS, LABELS).converged
    with pytest.raises(ValueError, match="the rows differ"):
        certify(fitted, TEXTS[::-1], LABELS[::-1])
    test = permutation_test(model, TEXTS, LABELS, n_permutations=5, random_state=0)
    assert test.statistic > test.null.max()


def test_a_fit_to_texts_continues_from_its_checkpoint(tmp_path: Path) -> None:
    model = SVC(kernel=shared_words, callbacks=[Checkpoint(tmp_path / "at.npz", every=1)])
    model.fit(TEXTS, LABELS)
    again = SVC(kernel=shared_words).fit(TEXTS, LABELS, resume_from=tmp_path / "at.npz")
    np.testing.assert_allclose(again.intercept_, model.intercept_, atol=1e-9)
    with pytest.raises(ValueError, match="other entries"):
        SVC(kernel=shared_words).fit(TEXTS[::-1], LABELS, resume_from=tmp_path / "at.npz")


@pytest.mark.parametrize(
    ("model", "needs"),
    [
        (SVC(kernel=shared_words, standardize=True), "standardize=True needs .* standardize=False"),
        (SVC(), r"kernel='linear' needs rows of numbers.*kernel\(A, B\)"),
        (L2SVC(kernel="rbf"), "kernel='rbf' needs rows of numbers"),
        (HuberizedSVC(), "HuberizedSVC needs rows of numbers"),
        (DDAGClassifier(SVC(kernel=shared_words, standardize=True)), "standardize=True needs"),
        (DDAGClassifier(SVC()), "needs rows of numbers"),
    ],
)
def test_what_needs_numbers_says_so(model: Any, needs: str) -> None:
    with pytest.raises(ValueError, match=needs):
        model.fit(TEXTS, LABELS)


def test_a_model_predicts_samples_of_the_kind_of_its_fit() -> None:
    with pytest.raises(ValueError, match="X holds no objects, and this SVC was fitted to objects"):
        SVC(kernel=shared_words).fit(TEXTS, LABELS).predict(COUNTS)
    with pytest.raises(ValueError, match=r"objects such as .* was fitted to rows of numbers"):
        SVC(kernel=inner).fit(COUNTS, LABELS).predict(TEXTS)
    model = SVC(kernel=shared_words).fit(TEXTS, LABELS)
    assert model.set_params(kernel=inner).fit(COUNTS, LABELS).n_features_in_ == 10
    with pytest.raises(ValueError, match="Expected 2D array"):
        SVC(kernel=inner).fit(np.arange(60.0), LABELS)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=shared_words).fit(TEXTS[:-1], LABELS)


def test_a_model_of_no_samples_compares_with_none():
    def of_some(A, B):
        assert len(A)
        assert len(B)
        return np.ones((len(A), len(B)))

    model = SVC(kernel=of_some).fit(TEXTS, LABELS)
    assert model.support_.size == 0
    assert np.all(model.decision_function(TEXTS[:5]) == model.intercept_)


@pytest.mark.parametrize("model", [SVCCV(Cs=2, cv=2), CalibratedMargin(SVC(), cv=2)], ids=str)
def test_columns_of_objects_have_no_names_to_warn_of(model, recwarn):
    def of_columns(A, B):
        return shared_words(np.ravel(A), np.ravel(B))

    frame = pd.DataFrame({"text": TEXTS})
    inner = "estimator__kernel" if isinstance(model, CalibratedMargin) else "kernel"
    clone(model).set_params(**{inner: of_columns}).fit(frame, LABELS).predict(frame)
    assert not [one for one in recwarn if "feature names" in str(one.message)]


def test_what_keeps_a_model_of_objects_from_a_file_is_its_kernel(tmp_path):
    model = SVC(kernel=shared_words).fit(TEXTS, LABELS)
    with pytest.raises(ModelFileError, match="'kernel' cannot be stored: it is a function"):
        save_model(model, tmp_path / "texts.pmz")
