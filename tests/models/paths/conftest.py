"""The data sets of the tests of paths."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer, load_wine

SETS = {"breast_cancer": load_breast_cancer, "wine": load_wine}


@pytest.fixture(params=list(SETS))
def data(request):
    return SETS[request.param](return_X_y=True)
