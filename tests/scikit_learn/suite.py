"""scikit-learn's tests, read from the installed package, with other classifiers in them."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import sklearn.linear_model
import sklearn.svm

__all__ = ["mentioning", "shimmed"]

HOMES: Mapping[str, ModuleType] = {"svm": sklearn.svm, "linear_model": sklearn.linear_model}


def shimmed(name: str, shims: Mapping[str, type]) -> ModuleType:
    """A module of tests with the shims in the place of scikit-learn's classes.

    The module is read again, under another name: scikit-learn's own copy of it stays as it is.
    """
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    copied = importlib.util.spec_from_file_location(f"shimmed.{name}", spec.origin)
    assert copied is not None
    assert copied.loader is not None
    module = importlib.util.module_from_spec(copied)
    with ExitStack() as stack:
        for home in HOMES.values():
            own = {n: shim for n, shim in shims.items() if hasattr(home, n)}
            stack.enter_context(patch.multiple(home, **own))
        copied.loader.exec_module(module)
        for label, home in HOMES.items():
            if vars(module).get(label) is home:
                setattr(module, label, SimpleNamespace(**vars(home)))
    return module


def mentioning(
    module: ModuleType, names: Collection[str], others: Collection[str]
) -> dict[str, Callable[..., Any]]:
    """The tests of a module that mention one of the names and none of the others."""
    mentioned = re.compile(rf"\b({'|'.join(names)})\b[(,\])]")
    left_out = re.compile(rf"\b({'|'.join(others)})\b")
    tests = {}
    for label, test in vars(module).items():
        if label.startswith("test_") and callable(test):
            source = inspect.getsource(test)
            if mentioned.search(source) and not left_out.search(source):
                tests[label] = test
    return tests
