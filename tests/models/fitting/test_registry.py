"""The table of models agrees with their classes, and every other list with the table."""

from __future__ import annotations

import importlib
import pkgutil
from inspect import isclass

import pytest
from sklearn.base import ClassifierMixin

import proxmargin
from proxmargin.files.models import archive as known
from proxmargin.models import classifiers
from proxmargin.models.fitting.registry import CROSS_VALIDATED, MODELS
from proxmargin.models.paths.fit_by_fit import OF_THE_PROBLEM
from proxmargin.models.selection import cross_validated
from proxmargin.studies.comparing.candidates import CANDIDATES, AlphaPath

every_model = pytest.mark.parametrize("name", MODELS)


def test_every_public_classifier_of_a_module_is_a_model() -> None:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(classifiers.__path__, f"{classifiers.__name__}.")
    ]
    public = {
        kind
        for module in modules
        for name in vars(module)
        if not name.startswith("_")
        and isclass(kind := getattr(module, name))
        and issubclass(kind, ClassifierMixin)
        and kind.__module__ == module.__name__
    }
    bases = {base for kind in public for base in kind.__mro__[1:]}
    assert {kind.__name__ for kind in public - bases} == set(MODELS)


@every_model
def test_what_the_table_says_of_a_model_is_true(name: str) -> None:
    model, kind = MODELS[name], getattr(proxmargin, name)
    assert kind.__module__ == f"proxmargin.models.classifiers.{model.home}"
    taken = set(kind._get_param_names())
    assert {*model.parameters, *model.grid} <= taken
    assert ("kernel" in taken) == model.kernels
    assert ({"alpha", "l1_ratio"} <= taken) == model.has_path


@every_model
def test_other_lists_follow_from_the_table(name: str) -> None:
    model = MODELS[name]
    assert name in proxmargin.__all__
    assert (name in known.ESTIMATORS) == (not model.composed)
    assert (name in CANDIDATES) == model.compared
    assert OF_THE_PROBLEM.issuperset(model.parameters)
    if model.compared:
        assert isinstance(CANDIDATES[name].search, AlphaPath) == model.has_path


@pytest.mark.parametrize("name", CROSS_VALIDATED)
def test_the_table_says_what_a_cross_validated_classifier_chooses(name: str) -> None:
    kind, plain = getattr(proxmargin, name), MODELS[CROSS_VALIDATED[name]]
    assert name in proxmargin.__all__
    assert kind.plain is getattr(proxmargin, CROSS_VALIDATED[name])
    assert kind.strength.name in plain.parameters


def test_every_cross_validated_classifier_is_in_the_table() -> None:
    public = {name for name in vars(cross_validated) if name.endswith("CV") and name[0] != "_"}
    assert public == set(CROSS_VALIDATED)
