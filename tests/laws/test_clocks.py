"""Fits without a time limit are the same bits whatever the clocks say: on a busy machine, after a
pause of the process, or with a clock that stands still."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proxmargin import SVC, DDAGClassifier, HuberizedSVC, margin_path
from tests.cases import ESTIMATORS

CLOCKS = ("perf_counter", "process_time", "monotonic")
MODELS: dict[str, Callable[..., Any]] = {
    **ESTIMATORS,
    "DDAGClassifier": lambda: DDAGClassifier(SVC()),
}


def leaping(seed: int) -> Callable[[], float]:
    """A clock that goes on by up to ten hours with each reading."""
    rng, now = np.random.default_rng(seed), [0.0]

    def read() -> float:
        now[0] += 3.6e4 * float(rng.random())
        return now[0]

    return read


def set_clocks(monkeypatch: pytest.MonkeyPatch, read: Callable[[], float]) -> None:
    """Have the library read this clock in place of all others."""
    ours = [module for name, module in sys.modules.items() if name.startswith("proxmargin")]
    found = [(module, name) for module in ours for name in CLOCKS if hasattr(module, name)]
    assert len(found) > 5
    for module, name in found:
        monkeypatch.setattr(module, name, read)


def samples(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Ordinary ones, or pairs of both classes in units that differ by twelve orders."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((36, 5)), np.arange(36) % 3
    X[:, 0] += y
    if kind == "hard":
        X[1::2] = X[::2]
        X *= 10.0 ** rng.uniform(-6, 6, (36, 1))
    return X, y


def told_of(make: Callable[[], Any], kind: str) -> tuple[Any, ...]:
    """Scores, iterations and reasons of a fit, and its warnings."""
    X, y = samples(kind)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = make().fit(X, y)
        except ValueError as error:
            return (str(error),)
    certificate = getattr(model, "certificate_", None)
    end = (certificate.n_iter, certificate.stop_reason) if certificate is not None else ()
    words = [str(each.message) for each in told if "compiling" not in str(each.message)]
    return model.decision_function(X).tobytes(), end, words


@pytest.mark.parametrize("kind", ["ordinary", "hard"])
@pytest.mark.parametrize("name", MODELS)
def test_no_clock_changes_a_fit(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxmargin.models.fitting.fitting.TINY_WORK", 1e7)
    expected = told_of(MODELS[name], kind)
    for read in (leaping(0), leaping(1), lambda: 0.0):
        set_clocks(monkeypatch, read)
        assert told_of(MODELS[name], kind) == expected


def test_no_clock_changes_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = samples("ordinary")
    expected = margin_path(HuberizedSVC(), X, y, n_alphas=20)
    set_clocks(monkeypatch, leaping(2))
    found = margin_path(HuberizedSVC(), X, y, n_alphas=20)
    np.testing.assert_array_equal(found.coefs, expected.coefs)


def test_a_time_limit_still_ends_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = samples("hard")
    set_clocks(monkeypatch, leaping(3))
    with pytest.warns(UserWarning, match="the time limit"):
        HuberizedSVC(time_limit=1e3).fit(X, y)
