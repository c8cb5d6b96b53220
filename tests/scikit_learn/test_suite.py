"""scikit-learn's tests of classifiers and of what takes them hold for those of this library."""

from __future__ import annotations

import pytest

from tests.scikit_learn.differences import DIFFERENCES, LEFT_OUT, MODULES
from tests.scikit_learn.shims import SHIMS
from tests.scikit_learn.suite import mentioning, shimmed

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FIXTURES = ("data", "iris_data", "iris_data_binary")  # those that modules define themselves

for _name in MODULES:
    _module = shimmed(_name, SHIMS)
    _tests = mentioning(_module, SHIMS, LEFT_OUT)
    globals().update({name: vars(_module)[name] for name in FIXTURES if hasattr(_module, name)})
    for _differing, _reason in DIFFERENCES.get(_name, {}).items():
        _label, _, _cases = _differing.removesuffix("]").partition("[")
        if _label in _tests:  # of this version of scikit-learn
            _tests[_label] = pytest.mark.differs(_cases, _reason)(_tests[_label])
    _prefix = f"test_{_name.rpartition('.')[2].removeprefix('test_')}__"
    globals().update({_prefix + label: test for label, test in _tests.items()})
