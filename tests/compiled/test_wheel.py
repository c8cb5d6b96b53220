"""A wheel with the library of kernels: what is in it, and where nothing can be written."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from proxmargin.compiled import library
from tests.compiled.test_library import built, told

pytest.importorskip("hatchling")
pytestmark = [pytest.mark.slow, built]

ROOT = Path(__file__).parents[2]
NOBODY = 65534
FIT = """
import os, sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import numpy as np
X = np.random.default_rng(0).standard_normal((50, 8))
y = X[:, 0] > 0.1
"""
MODELS = """
import proxmargin as pm
path = pm.margin_path(pm.HuberizedSVC(), X, y)
model = pm.SVC(kernel="rbf").fit(X, y)
print(pm.__file__)
print(*path.coefs.ravel().tolist(), *model.decision_function(X).tolist())
print(*(each for each in sys.modules if not each.startswith("proxmargin")))
"""
# the standard library may lie where nobody else can read it: it is imported before
AS_NOBODY = """
from contextlib import suppress
from importlib import import_module
for name in sys.argv[1:]:
    with suppress(ImportError):
        import_module(name)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
try:
    open(sys.path[0] + "/proxmargin/compiled/written", "w")
except PermissionError:
    print("read-only")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w"]
    settings = {**os.environ, "PROXMARGIN_KERNELS": "none"}
    subprocess.run([sys.executable, *words, folder, ROOT], env=settings, check=True)
    (found,) = folder.glob("*.whl")
    return Path(found)


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Iterator[str]:
    """A folder that everybody can read and nobody can write."""
    with tempfile.TemporaryDirectory() as folder:
        ZipFile(wheel).extractall(folder)
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield folder
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755)


def test_it_holds_the_library_and_is_of_one_system_and_all_versions_of_python(wheel: Path) -> None:
    level = library.loaded().level  # type: ignore[union-attr]
    names = ZipFile(wheel).namelist()
    assert "-cp311-abi3-" in wheel.name
    assert any(f"library/kernels-{level}" in name for name in names)
    assert "proxmargin/compiled/library/kernels.json" in names


def test_any_user_can_fit_where_nothing_can_be_written_and_no_numba_is(installed: str) -> None:
    where, expected, modules = told(FIT + MODELS)
    code = f"import sys; sys.path.insert(0, {installed!r})\n{FIT}NOBODY = {NOBODY}\n{AS_NOBODY}"
    readable, other, found, _ = told(code + MODELS, *modules.split())
    assert readable == "read-only"
    assert other.startswith(installed)
    assert not where.startswith(installed)
    assert found == expected
