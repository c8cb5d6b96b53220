"""The audit tells what it found from what it could not look up, and knows licences."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "requirements" / "audit.py"
SOUND = {"name": "numpy", "version": "2.0", "vulns": []}
VULNERABLE = {"name": "scipy", "version": "1.0", "vulns": [{"id": "PYSEC-2023-102"}]}
SKIPPED = {"name": "numba", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("answers", "status", "sentence"),
    [
        ([SOUND, SOUND], 0, "2 of 2 locked packages could be looked up"),
        ([SOUND, SKIPPED], 2, "1 of 2 locked packages could be looked up"),
        ([SKIPPED, VULNERABLE], 1, "scipy 1.0: PYSEC-2023-102"),
    ],
)
def test_what_could_not_be_looked_up_is_not_taken_for_sound(
    answers: list[dict[str, Any]], status: int, sentence: str, audit, capsys
) -> None:
    assert audit.told(answers) == status
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize(
    ("licences", "names"),
    [
        ([{"license": {"id": "MIT"}}], {"MIT"}),
        ([{"license": {"name": "Some Licence"}}], {"Some Licence"}),
        ([{"expression": "MIT AND (Zlib OR GPL-3.0-only)"}], {"MIT", "Zlib", "GPL-3.0-only"}),
        (
            [{"expression": "BSD-2-Clause AND Apache-2.0 WITH LLVM-exception"}],
            {"BSD-2-Clause", "Apache-2.0 WITH LLVM-exception"},
        ),
        ([], set()),
    ],
)
def test_every_licence_of_a_component_is_named(licences, names, audit) -> None:
    assert audit.named({"name": "part", "licenses": licences}) == names
