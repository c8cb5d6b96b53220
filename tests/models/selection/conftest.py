"""Data sets of two and of three classes."""

from __future__ import annotations

import pytest

from tests.models.selection.cases import made


@pytest.fixture(
    scope="module", params=["binary", pytest.param("multiclass", marks=pytest.mark.slow)]
)
def sets(request):
    return made(2 if request.param == "binary" else 3)


@pytest.fixture(scope="module")
def data():
    return made(2)
