"""What package indexes and type checkers read of the project."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata, util
from inspect import signature
from pathlib import Path
from typing import get_args

import pytest

import proxmargin
from proxmargin.models.classifiers.multiclass import GROUP_NORMS, LOSSES, NETS, JointLoss, Norm
from proxmargin.models.fitting.parameters import RuleName, SolverName
from proxmargin.models.fitting.registry import CROSS_VALIDATED
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.loop.solver import RULES

ROOT = Path(__file__).parents[2]
STUB = Path(proxmargin.__file__).with_suffix(".pyi")
# of this environment, whether or not it is activated
PLACES = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
PYRIGHT = shutil.which("pyright", path=PLACES) or shutil.which("basedpyright", path=PLACES)

USER = """
import numpy as np
import proxmargin as pm
from proxmargin import HuberizedSVC, HuberizedSVCCV

X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
reveal_type(HuberizedSVC(alpha=0.1).fit(X, y))
reveal_type(HuberizedSVCCV().fit(X, y))
reveal_type(pm.compare(X, y))
reveal_type(pm.margin_path(HuberizedSVC(), X, y))
model = pm.SVC(C=0.5, kernel="rbf", gamma=2.0, class_weight={0: 1.0, 1: 2.0}).fit(X, y)
pm.SVCCV(Cs=[0.1, 1.0], cv=3, kernel="rbf").fit(X, y, sample_weight=[1, 1, 2, 2]).C_
pm.CalibratedMargin(pm.SVC()).fit(X, y, sample_weight=[1, 1, 2, 2], groups=[0, 0, 1, 1])
pm.open_dataset("X.npy", target="y.npy", weight=[1.0, 2.0], filters=[("age", ">", 17)])
pm.reports.data_card(X, y)["findings"]
pm.StabilitySelection(HuberizedSVC(), n_pairs=5).fit(X, y)
pm.feature_report(HuberizedSVC(), X, y)
pm.save_model(model, "model.pmz")
pm.load_model("model.pmz").predict(X)
pm.to_onnx(model)
reveal_type(model.certificate_.relative_gap)
reveal_type(pm.HuberizedSVCCV(alphas=5).fit(X, y).alpha_)
pm.HuberizedSVM
HuberizedSVC(alhpa=1)
HuberizedSVC(solver="neuton")
pm.SVC(kernel="rbff")
pm.SVC(class_weight="balance")
pm.MulticlassSVC(penalty="l3")
pm.MulticlassSVC(loss="hinges")
pm.ElasticNetSVC(multi_class="joint")
pm.DDAGClassifier(jobs=2)
pm.SVCCV(Czs=3)
pm.HuberizedSVCCV(selection="2se")
pm.compare(X, y, scorer="accuracy")
pm.margin_path(HuberizedSVC(), X, y, n_alpha=3)
pm.CalibratedMargin(pm.SVC()).fit(object(), y)
pm.CalibratedMargin(pm.SVC()).fit(X, y, groups=object())
pm.open_dataset(object(), target="y")
pm.open_dataset("X.npy", target=object())
pm.reports.data_card(object(), y)
pm.reports.write_report(17, "page.html")
model.koef_
"""
REVEALED = ("HuberizedSVC", "HuberizedSVCCV", "Comparison", "Path")
FIRST_ERROR = 1 + USER.splitlines().index("pm.HuberizedSVM")
WRONG = {*range(FIRST_ERROR, 1 + len(USER.splitlines()))}


def homes() -> dict[str, str]:
    """The public names of the stub, each with its module; public modules with none."""
    imports = [n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ImportFrom)]
    assert all(each.level == 1 for each in imports)
    assert all(name.asname == name.name for each in imports for name in each.names)
    return {name.name: each.module or "" for each in imports for name in each.names}


def test_type_checkers_see_the_names_that_the_package_has() -> None:
    assert homes() == {**proxmargin._HOMES, **dict.fromkeys(proxmargin._MODULES, "")}


def told(said: str) -> tuple[tuple[str, ...], set[int]]:
    """The classes that a type checker revealed, and the lines with errors."""
    kinds = re.findall(r'is "(?:proxmargin\.[\w.]*\.)?([A-Z]\w+)"', said)
    return tuple(kinds), {int(line) for line in re.findall(r"user\.py:(\d+):.* error:", said)}


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("CITATION.cff", "version: {}\n"),
        ("CHANGELOG.md", "\n## [{}] - "),
        ("packaging/conda-recipe.yaml", 'version: "{}"'),
    ],
)
def test_the_version_is_that_of_the_package_wherever_it_is_repeated(file: str, line: str) -> None:
    assert line.format(proxmargin.__version__) in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_type_checker_knows_classes_and_refuses_a_wrong_name(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    options = ["--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file", ""]
    command = [sys.executable, "-m", "mypy", *options, "user.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert told(said) == (REVEALED, WRONG), said
    assert said.count('is "float"') == 2, said


@pytest.mark.slow
@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed: requirements/clients.txt")
def test_pyright_knows_the_same(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    options = {"typeCheckingMode": "strict", "extraPaths": [str(STUB.parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    command = [str(PYRIGHT), "--pythonpath", sys.executable, "user.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    said = said.replace(" - ", ": ")
    assert told(said) == (REVEALED, WRONG), said
    assert said.count('is "float"') == 2, said


def test_the_names_that_type_checkers_know_are_those_of_the_tables() -> None:
    assert get_args(SolverName) == ("auto", *SOLVERS)
    assert get_args(RuleName) == ("gap", *RULES)
    assert get_args(Norm) == (*NETS, *GROUP_NORMS)
    assert get_args(JointLoss) == tuple(LOSSES)


@pytest.mark.parametrize("name", CROSS_VALIDATED)
def test_a_search_has_the_parameters_of_its_plain_classifier(name: str) -> None:
    searching = signature(getattr(proxmargin, name)).parameters
    kind = getattr(proxmargin, name).plain
    plain = signature(kind).parameters
    replaced = {"alpha", "C", "l1_ratio", "eta", "n_jobs", "random_state"}
    assert plain.keys() - replaced <= searching.keys()
    for each in plain.keys() - replaced:
        assert (searching[each].default, searching[each].annotation) == (
            plain[each].default,
            plain[each].annotation,
        )


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
