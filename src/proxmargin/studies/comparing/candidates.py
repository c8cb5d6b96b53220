"""The models that are compared: a registry with one entry a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import proxmargin
from proxmargin.models.fitting.registry import MODELS, Model
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Estimator, Values
from proxmargin.studies.comparing.searches import (
    SELECTION_TOL,
    AlphaPath,
    CPath,
    Given,
    Grid,
    Make,
    Search,
)
from proxmargin.studies.stats.scores import MAJORITY

# of a quick comparison: strengths of a path, and the mixes of the norms
QUICK_ALPHAS = 12
QUICK_RATIOS = (0.95,)


@dataclass(frozen=True)
class Candidate:
    """A model of the comparison."""

    name: str
    make: Make  # a new estimator, unfitted
    search: Search
    kind: str = "model"  # or 'baseline'
    # whether it needs the training samples to predict, which counts as less simple
    is_kernel: bool = False

    def of_features(self, names: Values) -> Candidate:
        """The same model for arrays with these features, which its parameters may name."""
        return replace(self, make=partial(_in_order, self.make, names))

    def hurried(self) -> Candidate:
        """The same model with a shorter search."""
        if not isinstance(self.search, AlphaPath):
            return self
        search = replace(self.search, n_alphas=QUICK_ALPHAS, l1_ratios=QUICK_RATIOS)
        return replace(self, search=search)


def _in_order(make: Make, names: Values, **parameters: object) -> Estimator:
    """A new estimator whose parameters by feature names are in the order of the features."""
    model = make(**parameters)
    if hasattr(model, "_without_names"):
        model.feature_names_in_, model.n_features_in_ = names, len(names)
        model._without_names()
    return model


def _own(name: str, standardize: bool = True, **parameters: object) -> Estimator:
    return getattr(proxmargin, name)(standardize=standardize, **parameters)


def _search(model: Model) -> Search:
    if model.has_path:
        return AlphaPath(n_alphas=model.strengths)
    if set(model.grid) == {"C"}:
        return CPath(tuple(sorted(model.grid["C"])))
    return Grid(model.grid, SELECTION_TOL)


_RBF = Candidate(
    "SVC-rbf",
    partial(_own, "SVC", kernel="rbf"),
    Grid({"C": (0.1, 1.0, 10.0)}, SELECTION_TOL),
    is_kernel=True,
)
CANDIDATES: Mapping[str, Candidate] = {
    **{
        name: Candidate(name, partial(_own, name), _search(model))
        for name, model in MODELS.items()
        if model.compared
    },
    _RBF.name: _RBF,
}


def named_candidates(
    models: Any, *, standardize: bool = True, quick: bool = False
) -> list[Candidate]:
    """The candidates for 'all', a name, a candidate, a list of these, or a mapping from names to
    estimators. ``quick``: shorter searches, of 'all' the fastest. ValueError for an unknown or
    repeated name, or none."""
    known = {
        name: replace(each, make=partial(each.make, standardize=standardize))
        for name, each in CANDIDATES.items()
    }
    if isinstance(models, str) and models == "all":
        fast = {name for name, model in MODELS.items() if model.quick}
        names = [name for name in known if not quick or name in fast]
        return [known[name].hurried() if quick else known[name] for name in names]
    if isinstance(models, Mapping):
        found = [_given(name, each, known) for name, each in models.items()]
    else:
        several = isinstance(models, Iterable) and not isinstance(models, str)
        found = [_given(None, each, known) for each in (models if several else [models])]
    names = [candidate.name for candidate in found]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"models must name each model once, and at least one, got {names!r}")
    return [each.hurried() for each in found] if quick else found


def _given(name: object, given: Estimator, known: Mapping[str, Candidate]) -> Candidate:
    """The candidate for a name, an estimator or a candidate; ``name``: by which a mapping gives it,
    else None."""
    if name is not None and (not isinstance(name, str) or not name):
        raise ValueError(f"models: names must be text, got {name!r}")
    if isinstance(given, str):
        if given not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(f"there is no model {given!r} to compare; there are 'all', {names}")
        given = known[given]
    if isinstance(given, Candidate):
        return given if name is None else replace(given, name=name)
    if name is None:
        raise ValueError(
            f"models: {type(given).__name__} is no name; give estimators by name: "
            "models={'mine': estimator}"
        )
    estimates = hasattr(given, "fit") and hasattr(given, "predict")
    if isinstance(given, type) or not estimates or not is_classifier(given):
        raise ValueError(
            f"models[{name!r}] must be a classifier with fit and predict, one for scikit-learn's "
            f"is_classifier, got {shown(given)}"
        )
    kernel = getattr(given, "kernel", "linear") != "linear"
    return Candidate(name, partial(clone, given), Given(), is_kernel=kernel)


MAJORITY_MODEL = Candidate(
    MAJORITY, partial(DummyClassifier, strategy="prior"), Given(), "baseline"
)


def baselines_for(sparse: bool, standardize: bool) -> list[Candidate]:
    """What every comparison should beat: the majority, and everyday models of scikit-learn, behind
    a scaler where the models are standardised too."""
    scaler = StandardScaler(with_mean=not sparse) if standardize else "passthrough"
    models = {
        "LinearSVC": partial(LinearSVC, random_state=0),
        "LogisticRegression": partial(LogisticRegression, max_iter=1000),
        "SVC-rbf": SVC,
    }
    search = Grid({"model__C": (0.01, 0.1, 1.0, 10.0)})
    return [
        MAJORITY_MODEL,
        *(
            Candidate(
                f"sklearn {name}", partial(_scaled, scaler, kind), search, "baseline", kind is SVC
            )
            for name, kind in models.items()
        ),
    ]


def _scaled(scaler: Estimator, kind: Make) -> Pipeline:
    return Pipeline([("scale", clone(scaler, safe=False)), ("model", kind())])
