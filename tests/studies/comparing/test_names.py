"""`proxmargin.compare` is the function, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import pytest

LONGEST = "import proxmargin.cli.commands.compare; proxmargin.cli.program.parser()"
ORDERS = (
    "import proxmargin",
    "from proxmargin import compare",
    "import proxmargin.studies.comparing.run, proxmargin.studies.comparing.comparison",
)


@pytest.mark.parametrize(
    "first", [LONGEST, *(pytest.param(order, marks=pytest.mark.slow) for order in ORDERS)]
)
def test_compare_is_callable_after_any_import(first):
    check = "import proxmargin; assert callable(proxmargin.compare)"
    again = "from proxmargin import compare; assert compare is proxmargin.compare"
    _run(f"{first}; {check}; {again}")


def test_importing_the_package_loads_nothing_heavy():
    _run(
        "import proxmargin; import sys; "
        "assert not {'numba', 'sklearn', 'numpy', 'pandas', 'rich'} & set(sys.modules)"
    )


@pytest.mark.slow
def test_a_comparison_runs_and_prints_without_pandas_and_only_its_tables_ask_for_it():
    # scikit-learn imports pandas where it can, so that only its absence shows who needs it
    _run(
        """
import sys
class NoPandas:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pandas":
            raise ImportError("not here")
sys.meta_path.insert(0, NoPandas())
from proxmargin import compare
from proxmargin.runtime.optional import how_to_install
from sklearn.datasets import load_iris
found = compare(*load_iris(return_X_y=True), models="SquaredHingeSVC", cv=2)
assert "SquaredHingeSVC" in str(found)
try:
    found.table
except ImportError as error:
    assert how_to_install() in str(error)
else:
    raise AssertionError("no error")
"""
    )


def test_the_command_line_starts_without_numba_and_scikit_learn():
    _run(
        "import proxmargin.cli as c; c.program.parser().format_help(); import sys; "
        "assert not {'numba', 'sklearn', 'numpy', 'pandas', 'rich'} & set(sys.modules)"
    )


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
