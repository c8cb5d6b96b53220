"""scikit-learn's tests, read from the installed package, with other classifiers in them."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import sklearn.linear_model
import sklearn.svm

__all__ = ["shimmed"]

# without a shim: its tests are left out
OTHERS = {"LogisticRegressionCV"}
HOMES: Mapping[str, ModuleType] = {"svm": sklearn.svm, "linear_model": sklearn.linear_model}


def shimmed(name: str, shims: Mapping[str, type]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The tests of a module that mention one of the classes, with the shims in their place.

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
    mentioned = re.compile(rf"\b({'|'.join(shims)})\b[(,\])]")
    for label, test in list(vars(module).items()):
        if label.startswith("test_") and callable(test):
            source = inspect.getsource(test)
            if mentioned.search(source) and OTHERS.isdisjoint(re.findall(r"\w+", source)):
                yield label, test
