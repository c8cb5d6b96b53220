"""Every public estimator, the samples, and what is asked of two models that ought to be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import make_moons

import proxmargin
from proxmargin.models.fitting.registry import CROSS_VALIDATED
from proxmargin.optimality.certificates.certificate import CertificateList
from tests.cases import ESTIMATORS, KERNEL_MACHINES, META_ESTIMATORS, PENALISED

# of the largest score, where no strong convexity bounds the difference of two certified models
CLOSE = 1e-3
# of the largest score: rounding of the scores themselves
ROUNDING = 1e-9

FOLDS = 3
# of searches: few strengths, so that a case is quick
GRID = {"alphas": 4, "Cs": 3}


def _search(name: str, **given: Any) -> Any:
    make = getattr(proxmargin, name)
    few = {key: count for key, count in GRID.items() if key in make().get_params()}
    return make(**{"cv": FOLDS, "eps": 0.03, **few, **given})


def _stability(**given: Any) -> Any:
    few = {"n_pairs": 4, "alphas": 4, "random_state": 0}
    return proxmargin.StabilitySelection(
        proxmargin.SquaredHingeSVC(), **{"pfer": 1.0, "q": 2, **few, **given}
    )


PLAIN: dict[str, Callable[..., Any]] = {**ESTIMATORS, **META_ESTIMATORS}
RBF: dict[str, Callable[..., Any]] = {
    f"{name}, rbf": partial(make, kernel="rbf") for name, make in KERNEL_MACHINES.items()
}
SEARCHES: dict[str, Callable[..., Any]] = {name: partial(_search, name) for name in CROSS_VALIDATED}
CALIBRATED = "CalibratedMargin"
STABILITY = "StabilitySelection"
# with default parameters, but for the grids and folds
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    **PLAIN,
    **RBF,
    **SEARCHES,
    CALIBRATED: partial(proxmargin.CalibratedMargin, proxmargin.SVC(), cv=FOLDS),
}
EVERY: dict[str, Callable[..., Any]] = {**CLASSIFIERS, STABILITY: _stability}
LINEAR = (*ESTIMATORS, *SEARCHES)
# whose l1 norm makes coefficients zero
SPARSE = (*(name for name in PENALISED if name != "MarginClassifier"), "MulticlassSVC")
SPARSE = (*SPARSE, *(f"{name}CV" for name in SPARSE))
# of the searches one is among the quick tests
LONG = tuple(name for name in SEARCHES if name != "SquaredHingeSVCCV")

# (law, estimator): why it does not hold, in a sentence
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("row order", STABILITY): "halves of the rows are drawn by their numbers",
    ("repetition", STABILITY): "two copies of a row may come to different halves",
    ("removal", STABILITY): "halves of the rows are drawn by their numbers",
    ("class order", STABILITY): "halves of the classes are drawn one after another",
    ("boosting", "MulticlassSVC"): "weights that sum to one leave it without features at C = 1",
    ("class order", "DDAGClassifier"): "its graph eliminates classes in their order",
}


def every(law: str, among: Iterable[str] = tuple(EVERY), **factors: Any) -> pytest.MarkDecorator:
    """Parametrise by the names of the estimators of which the law is asked, and by other factors.

    Of all combinations there are enough for each pair of two values to occur.
    """
    asked = [name for name in among if (law, name) not in EXCEPTIONS]
    rows = pairwise([asked, *map(list, factors.values())])
    long = dict.fromkeys(LONG, pytest.mark.slow)
    cases = [pytest.param(*row, marks=long.get(row[0], ())) for row in rows]
    return pytest.mark.parametrize(("name", *factors), cases)


def pairwise(factors: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows with a value of each factor, such that each pair of values of two factors is in one."""
    rows = list(product(*factors))
    np.random.default_rng(0).shuffle(rows)
    if len(factors) < 3:
        return sorted(rows, key=str)
    found, met = [], set()
    for least in range(len(factors) * (len(factors) - 1) // 2, 0, -1):  # what is new in a row
        for row in rows:
            pairs = set(combinations(enumerate(row), 2))
            if len(pairs - met) >= least:
                found.append(tuple(row))
                met |= pairs
    return sorted(found, key=str)


class Data(NamedTuple):
    """What a user hands to `fit`, and how it is made of a first sample.

    Attributes
    ----------
    X, y, weights
        The arguments of `fit`.
    rows : (n_samples,)
        The rows of the first sample that these are.
    probe : (n_probed, n_features)
        All rows of the first sample, as this model is to see them.
    columns : (n_features,)
        The columns of the first sample that these are.
    labels : sequence
        The label of each of its classes.
    """

    X: Any
    y: Any
    weights: Any
    rows: np.ndarray
    probe: Any
    columns: np.ndarray
    labels: Sequence[Any]


KINDS = ("continuous", "discrete", "moons", "raw")


def sample(classes: int, kind: str = "continuous") -> Data:
    """Two or three overlapping classes.

    'discrete' has small integers and equal rows, 'raw' features in units of their own, and 'moons'
    points that lie so closely that the matrix of a kernel has no full numerical rank.
    """
    rng = np.random.default_rng(classes)
    if kind == "moons":
        X, y = make_moons(80, noise=0.2, random_state=0)
        y = y + (y == 1) * (X[:, 0] > 1.0) * (classes - 2)
    else:
        X = rng.standard_normal((48, 5)) + 0.25
        score = X[:, 0] - 0.5 * X[:, 1] + 0.25 * X[:, 2] + 0.5 * rng.standard_normal(48)
        y = np.digitize(score, [0.3] if classes == 2 else [-0.4, 0.7])
    if kind == "discrete":
        X = np.round(1.5 * X)
        X[:6] = X[6:12]
    if kind == "raw":
        X = X * np.array([0.01, 1.0, 30.0, 5.0, 0.3]) + np.array([0.1, 5.0, 60.0, 0.0, -3.0])
    n, p = X.shape
    return Data(X, y, None, np.arange(n), X, np.arange(p), range(classes))


def folds_of(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds that keep each row of the first sample where it was."""
    fold = np.asarray(rows) % FOLDS
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]


def fitted(name: str, data: Data, **given: Any) -> Any:
    model = EVERY[name](**given)
    if "cv" in model.get_params(deep=False):
        model.set_params(cv=folds_of(data.rows))
    weights = {} if data.weights is None else {"sample_weight": data.weights}
    return model.fit(data.X, data.y, **weights)


def answers(model: Any, data: Data) -> np.ndarray:
    """What a model says: a score or probability for each row and class of the first sample, (n, k);
    a selector the frequency of each of its columns, (1, p)."""
    if not hasattr(model, "predict"):
        frequencies = np.empty(model.max_frequencies_.size)
        frequencies[data.columns] = model.max_frequencies_
        return frequencies[None]
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    found = np.asarray(ask(data.probe))
    found = np.column_stack([-found, found]) if found.ndim == 1 else found
    classes = model.classes_.tolist()
    return found[:, [classes.index(label) for label in data.labels]]


def predicted(model: Any, data: Data) -> np.ndarray:
    """The classes of the first sample that a model predicts, by number."""
    labels = list(data.labels)
    return np.array([labels.index(label) for label in model.predict(data.probe).tolist()])


def radius(model: Any) -> float:
    """How far certified coefficients can be from the optimum, where strong convexity says it: an
    objective of modulus m and a gap of g leave sqrt(2 g / m)."""
    if isinstance(model, (proxmargin.SVC, proxmargin.L2SVC, proxmargin.LogisticRegression)):
        modulus = 1.0
    elif hasattr(model, "alpha") and hasattr(model, "l1_ratio"):
        modulus = model.alpha * (1.0 - model.l1_ratio)
    else:
        return np.inf
    found = model.certificate_
    each = found if isinstance(found, CertificateList) else [found]
    return max(float(np.sqrt(2.0 * max(one.gap, 0.0) / modulus)) for one in each)


def assert_same(one: Any, of_one: Data, other: Any, of_other: Data, close: float = CLOSE) -> None:
    """Two fitted models say the same of the rows of the first sample."""
    first, second = answers(one, of_one), answers(other, of_other)
    size = np.abs(first).max()
    np.testing.assert_allclose(second, first, rtol=0, atol=close * size)
    assert_certified_same(one, other, first - second, of_one.X, ROUNDING * size)
    if hasattr(one, "predict"):
        ranked = np.sort(first, axis=1)
        sure = ranked[:, -1] - ranked[:, -2] > 4 * close * size
        np.testing.assert_array_equal(
            predicted(one, of_one)[sure], predicted(other, of_other)[sure]
        )


def assert_certified_same(
    one: Any, other: Any, differences: np.ndarray, X: np.ndarray, rounding: float
) -> None:
    """Scores less those of another sample, which are free of the intercept, differ by no more than
    the coefficients can."""
    by_rbf = getattr(one, "kernel", "linear") == "rbf"  # whose features have norm one
    lengths = np.ones(1) if by_rbf else np.linalg.norm(X, axis=1)
    allowed = 2.0 * lengths.max() * (radius(one) + radius(other))
    assert np.ptp(differences, axis=0).max() <= allowed + rounding
