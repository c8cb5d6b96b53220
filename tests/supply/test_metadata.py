"""What package indexes and type checkers read of the project."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path

import pytest

import proxmargin

ROOT = Path(__file__).parents[2]
STUB = Path(proxmargin.__file__).with_suffix(".pyi")

USER = """
import numpy as np
import proxmargin as pm
from proxmargin import HuberizedSVC, HuberizedSVCCV

X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
reveal_type(HuberizedSVC(alpha=0.1).fit(X, y))
reveal_type(HuberizedSVCCV().fit(X, y))
reveal_type(pm.compare(X, y))
reveal_type(pm.margin_path(HuberizedSVC(), X, y))
pm.HuberizedSVM
"""
REVEALED = ("HuberizedSVC", "HuberizedSVCCV", "Comparison", "Path")


def homes() -> dict[str, str]:
    """The public names of the stub, each with its module; public modules with none."""
    imports = [n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ImportFrom)]
    assert all(each.level == 1 for each in imports)
    assert all(name.asname == name.name for each in imports for name in each.names)
    return {name.name: each.module or "" for each in imports for name in each.names}


def test_type_checkers_see_the_names_that_the_package_has() -> None:
    assert homes() == {**proxmargin._HOMES, **dict.fromkeys(proxmargin._MODULES, "")}


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_type_checker_knows_classes_and_refuses_a_wrong_name(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    options = ["--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file", ""]
    command = [sys.executable, "-m", "mypy", *options, "user.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    kinds = re.findall(r'Revealed type is "proxmargin\.[\w.]*\.(\w+)"', said)
    assert tuple(kinds) == REVEALED, said
    (error,) = (line for line in said.splitlines() if ": error:" in line)
    assert "HuberizedSVM" in error


def test_an_index_finds_the_licence_the_links_and_a_page_without_dead_ones() -> None:
    known = metadata.metadata("proxmargin")
    page = known["Description"]  # its payload may be empty, once a library brings its own reader
    assert known["License-Expression"] == "BSD-3-Clause"
    assert {"Homepage", "Issues", "Changelog"} <= {
        each.partition(",")[0] for each in known.get_all("Project-URL", [])
    }
    assert isinstance(page, str)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 5
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    repository = "https://github.com/proxmargin/proxmargin/blob/main/"
    ours = [link.removeprefix(repository).partition("#")[0] for link in links if repository in link]
    assert [path for path in ours if not (ROOT / path).exists()] == []
