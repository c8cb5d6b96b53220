"""The messages on the page of errors are those of the library, and come where it says."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import proxmargin as pm

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
SENTENCES = Path(pm.__file__).parent / "files" / "messages.toml"
OF_OTHERS = {"Input X contains NaN"}  # of scikit-learn
X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::6], Y[::6]


def messages() -> list[str]:
    """The first cell of each row."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [found[1] for line in lines if (found := re.match(r"^\| `([^`]+)` \|", line))]


@cache
def told() -> tuple[str, ...]:
    """All texts of the library, with a mark for each value that is put in."""
    sentences = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))
    texts = [re.sub(r"{[^}]*}", "\0", text) for row in sentences.values() for text in row]
    for path in Path(pm.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else "\0"
                    for part in node.values
                ]
                texts.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return tuple(texts)


def test_the_page_has_messages() -> None:
    assert len(messages()) > 60
    assert len(set(messages())) == len(messages())


@pytest.mark.parametrize("message", [each for each in messages() if each not in OF_OTHERS])
def test_a_message_is_one_of_the_library(message: str) -> None:
    parts = [part.strip() for part in message.split("...")]
    assert any(all(part in text for part in parts) for text in told()), message


def huberized(**settings: Any) -> Any:
    return pm.HuberizedSVC(standardize=True, **settings)


PROVOKED = {
    "Input X contains NaN": lambda: huberized().fit(np.where(X > 900, np.nan, X), Y),
    "requires y to be passed, but the target y is None": lambda: huberized().fit(X, None),
    "y holds ... : a classifier needs samples of at least 2 classes": (
        lambda: huberized().fit(X, np.zeros(len(X)))
    ),
    "sample_weight must be >= 0, got": lambda: huberized().fit(X, Y, -np.ones(len(X))),
    "offset must be one number a sample": lambda: huberized().fit(X, Y, offset=np.ones(3)),
    "takes no offset:": lambda: pm.DWD().fit(X, Y, offset=np.ones(len(X))),
    "has no entry for row ... of X: give it the index of X": lambda: huberized().fit(
        pd.DataFrame(X), Y, pd.Series(1.0, index=range(5, 5 + len(X)))
    ),
    "class_weight must be None, 'balanced' or a dict": (
        lambda: huberized(class_weight="equal").fit(X, Y)
    ),
    "must be one of ..., got": lambda: huberized(stopping="never").fit(X, Y),
    "has no parameter": lambda: pm.HuberizedSVC(alpa=1.0),
    "multi_class=... is not for ..., which fits each class against the rest": (
        lambda: pm.SquaredHingeSVC(multi_class="joint").fit(X, Y)
    ),
    "give C (the losses as a penalty) or eta (the losses within a budget, with C=None)": (
        lambda: pm.MulticlassSVC(C=1.0, eta=1.0).fit(X, Y)
    ),
    "takes no groups": lambda: pm.MulticlassSVC("l1", groups="features").fit(X, Y),
    "needs groups": lambda: pm.MulticlassSVC("group_l2").fit(X, Y),
    "penalty_factor must be one number a feature": (
        lambda: huberized(penalty_factor=np.ones(3)).fit(X, Y)
    ),
    "bounds must be a pair (lower, upper)": lambda: huberized(bounds=0).fit(X, Y),
    "bounds: lower must be <= 0, got": lambda: huberized(bounds=(1, 2)).fit(X, Y),
    "is above nu_max=": lambda: pm.NuSVC(nu=0.99).fit(X, Y),
    "standardize must be False for a precomputed kernel": (
        lambda: pm.SVC(kernel="precomputed", standardize=True).fit(X @ X.T, Y)
    ),
    "a precomputed kernel matrix is square": lambda: pm.SVC(kernel="precomputed").fit(X, Y),
    "kernel is one of ... or a function, not": lambda: pm.SVC(kernel="laplacian").fit(X, Y),
    "solver_options need a solver asked for by name": (
        lambda: huberized(solver_options={"re": False}).fit(X, Y)
    ),
    "unknown solver": lambda: huberized(solver="saga").fit(X, Y),
    "cannot take this problem:": lambda: huberized(solver="isvm1").fit(X, Y),
    "does not stop by": lambda: huberized(solver="newton", stopping="step-residual").fit(X, Y),
    "paths need a linear model": lambda: pm.margin_path(pm.SVC(kernel="rbf"), X, Y),
    "the path is one in ...: give": lambda: pm.margin_path(pm.SVC(), X, Y, alphas=[1.0]),
    "is beyond this path": lambda: pm.margin_path(pm.SVC(), X, Y, Cs=[1.0, 2.0]).coef(3.0),
    "has no predict_proba: use CalibratedMargin": (
        lambda: pm.margin_path(pm.SVC(), X, Y, Cs=[1.0]).predict_proba(X)
    ),
    "threshold=, pfer= and q= are given: give two of them": (
        lambda: pm.StabilitySelection(huberized(), threshold=0.7, pfer=1, q=3).fit(X, Y)
    ),
    "estimator must have a decision_function": (
        lambda: pm.CalibratedMargin(pm.CalibratedMargin(pm.SVC())).fit(X, Y)
    ),
}


@pytest.mark.parametrize("message", PROVOKED)
def test_the_message_comes_where_the_page_says(message: str) -> None:
    assert message in messages()
    pattern = ".*".join(re.escape(part.strip()) for part in message.split("..."))
    with pytest.raises((ValueError, TypeError, AttributeError), match=pattern):
        PROVOKED[message]()


def test_an_error_of_a_fit_or_a_file_notes_the_page(tmp_path: Path) -> None:
    provoked = [
        *(PROVOKED[each] for each in ("unknown solver", "Input X contains NaN", "needs groups")),
        lambda: pm.margin_path(pm.SVC(), X, Y, n_alphas=-1),
        lambda: pm.SVCCV(Cs=-1).fit(X, Y),
        lambda: pm.StabilitySelection(pm.HuberizedSVC(), eps=7).fit(X, Y),
        lambda: pm.CalibratedMargin(pm.SVC(), method="none").fit(X, Y),
        lambda: pm.DDAGClassifier(pm.SVC()).fit(X, np.zeros(len(Y))),
        lambda: pm.compare(X, Y, standardize="yes"),
        lambda: pm.load_model(tmp_path / "none.pmz"),
        lambda: pm.read_data(tmp_path / "none.csv"),
    ]
    for call in provoked:
        with pytest.raises(ValueError, match=r"\w") as caught:
            call()
        (note,) = caught.value.__notes__
        assert PAGE.name in note
        assert PAGE.name not in str(caught.value)
    assert "\n## Files\n" in PAGE.read_text(encoding="utf-8")
