"""Every public class and function has an example, and what it shows is so."""

from __future__ import annotations

import doctest
import importlib
import inspect
import warnings
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning

MODULES = ("proxmargin", *(f"proxmargin.{each}" for each in ("losses", "paths", "penalties")))
MODULES += ("proxmargin.reports", "proxmargin.stats")
TAKES_SECONDS = {"SeveralComparisons", "compare", "compare_several", "write_report"}


def public() -> dict[str, Any]:
    """All public classes and functions, each once."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                found[name] = value
    return found


PUBLIC = public()


def cases() -> list[Any]:
    marks = dict.fromkeys(TAKES_SECONDS, pytest.mark.slow)
    return [pytest.param(name, marks=marks.get(name, ())) for name in sorted(PUBLIC)]


def test_the_names_are_found() -> None:
    assert len(PUBLIC) > 100


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_has_an_example_that_runs(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert "\nExamples\n--------\n" in text
    assert ">>> " in text
    assert "+SKIP" not in text


@pytest.mark.parametrize("name", cases())
def test_an_example_shows_what_it_says(name: str) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    if name.endswith("to_onnx"):
        pytest.importorskip("skl2onnx", reason="the extra onnx is not installed")
    examples = doctest.DocTestParser().get_doctest(
        inspect.getdoc(PUBLIC[name]) or "", {"__name__": "__main__"}, name, None, None
    )
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # of scikit-learn, which is certified
        result = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    pyplot.close("all")
    assert result.failed == 0, "".join(told)
    assert result.attempted > 0
