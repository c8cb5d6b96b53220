"""scikit-learn's tests of classifiers and of what takes them hold for those of this library."""

from __future__ import annotations

import pytest

from tests.scikit_learn.differences import DIFFERENCES, MODULES
from tests.scikit_learn.shims import SHIMS
from tests.scikit_learn.suite import shimmed

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def _expected_to_differ(test, reason: str):
    cases = any(mark.name == "parametrize" for mark in getattr(test, "pytestmark", []))
    return pytest.mark.xfail(reason=reason, strict=not cases)(test)


for _module in MODULES:
    for _name, _test in shimmed(_module, SHIMS):
        _reason = DIFFERENCES.get(_module, {}).get(_name)
        if _reason is not None:
            _test = _expected_to_differ(_test, _reason)
        _label = f"test_{_module.rpartition('.')[2].removeprefix('test_')}__{_name}"
        globals()[_label] = _test
