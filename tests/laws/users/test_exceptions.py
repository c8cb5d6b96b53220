"""The table of exceptions says nothing of laws and estimators that are not there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.laws.users.cases import EVERY, EXCEPTIONS


def test_every_exception_is_of_a_law_and_an_estimator() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    laws = {law for text in texts for law in re.findall(r'@every\("([^"]+)"', text)}
    assert {law for law, _ in EXCEPTIONS} <= laws
    assert {name for _, name in EXCEPTIONS} <= EVERY.keys()
    assert all(reason.strip() for reason in EXCEPTIONS.values())
