"""A process in which nothing can import Numba: results, array formulas that are told, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.compiled.test_library import built, told

ABSENT = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None"
DATA = """
import warnings
import numpy as np
rng = np.random.default_rng(0)
y = np.where(np.arange(80) % 2 == 0, 1.0, -1.0)
X = rng.standard_normal((80, 12)) + 0.5 * y[:, None] * (np.arange(12) < 3)
"""
OWN_LOSS = """
from proxmargin import MarginClassifier
from proxmargin.losses import Logistic, Rescaled
from proxmargin.penalties import ElasticNet
from tests.examples import example
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for loss in (example("entropy_hinge").EntropyHinge(0.2), Rescaled(Logistic(), 0.2, 5.0, -5.0)):
        for strengths in ((0.02, 0.0), (0.0, 0.1)):
            model = MarginClassifier(loss, ElasticNet(*strengths), tol=1e-9)
            certificate = model.fit(X, y).fit(X, y).certificate_
            print(certificate.converged, certificate.primal)
print(*(str(each.message) for each in caught if "is not compiled" in str(each.message)), sep="; ")
try:
    print(MarginClassifier(loss, ElasticNet(0.02, 0.01), solver="chord-newton").fit(X, y))
except ValueError as refused:
    print(refused)
"""
NOTHING = """
from proxmargin.compiled import library
library.FOLDER = library.FOLDER / "not there"
from proxmargin import HuberizedSVC
try:
    HuberizedSVC().fit(X, y)
except ImportError as missing:
    print(missing)
"""
LACKING = """
from proxmargin.compiled.products.compensated import add
try:
    add("a", 1, None)
except ImportError as missing:
    print(missing)
"""


@built
def test_losses_of_ones_own_take_their_array_formulas_and_that_is_told_once_each() -> None:
    *fits, texts, refusal = told(f"{ABSENT}\n{DATA}\n{OWN_LOSS}")
    converged, primal = zip(*map(str.split, fits), strict=True)
    assert set(converged) == {"True"}
    np.testing.assert_allclose(*np.reshape(primal, (2, 2)).astype(float), rtol=1e-7)
    assert texts.count("pip install 'proxmargin[custom]'") == 2
    assert texts.startswith("EntropyHinge is not compiled")
    assert "needs" in refusal


@pytest.mark.slow
def test_without_a_library_the_first_kernel_says_what_to_install() -> None:
    (line,) = told(f"{ABSENT}\n{DATA}\n{NOTHING}")
    assert "pip install 'proxmargin[custom]'" in line


@built
def test_types_that_the_library_lacks_are_named() -> None:
    (line,) = told(f"{ABSENT}\n{LACKING}")
    assert "pip install 'proxmargin[custom]'" in line
    assert "compensated.add of str, int, NoneType" in line


@built
@pytest.mark.slow
@pytest.mark.parametrize("folder", ["models/paths", "solvers/l1", "solvers/dual", "optimality"])
def test_tests_pass(folder: str) -> None:
    tests = Path(__file__).parents[1] / folder
    chosen = [str(tests), "-n", "0", "-q", "-x", "-m", "not slow"]
    code = f"{ABSENT}; import pytest; print(int(pytest.main({chosen!r})))"
    assert told(code)[-1] == "0"
