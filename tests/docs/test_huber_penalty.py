"""The examples of penalties of one's own run as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin import MarginClassifier
from proxmargin.losses import Logistic
from proxmargin.penalties import CustomPenalty, Ridge, check_penalty
from tests.examples import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "developing" / "loss.md"
SECTION = re.compile(r"## A penalty of your own\n.*?```python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_file_checks_its_penalties_and_certifies_its_fits() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "huber_penalty.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("converged:") == 2
    assert "not converged" not in done.stdout
    assert done.stderr == ""


def test_the_penalty_on_the_page_is_a_ridge() -> None:
    found = SECTION.search(PAGE.read_text(encoding="utf-8"))
    assert found
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    names: dict[str, Any] = {
        "CustomPenalty": CustomPenalty,
        "Logistic": Logistic,
        "MarginClassifier": MarginClassifier,
        "check_penalty": check_penalty,
        "dataclass": dataclass,
        "np": np,
        "X": X,
        "y": y,
        "__name__": __name__,
    }
    exec(found[1], names)
    model, same = names["model"], MarginClassifier(Logistic(), Ridge(0.2)).fit(X, y)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-3)
