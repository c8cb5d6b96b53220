"""What the documentation says about the layout of the repository is so."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

import pytest

import proxmargin
from proxmargin.models.fitting.registry import MODELS
from proxmargin.solvers.choice.names import SOLVERS
from tests.architecture.test_layers import ROOMS

PACKAGE = Path(proxmargin.__file__).parent
CHECKOUT = Path(__file__).parents[2]
QUOTED = re.compile(r"`([\w./-]+(?:/|\.py|\.md|\.html))`")


@pytest.mark.parametrize(
    "document",
    ["docs/developing/architecture.md", "docs/guide/beyond-memory.md", "CONTRIBUTING.md"],
)
def test_every_path_that_a_document_names_exists(document: str) -> None:
    named = set(QUOTED.findall((CHECKOUT / document).read_text(encoding="utf-8")))
    assert named
    bases = (PACKAGE, CHECKOUT, CHECKOUT / "benchmarks")
    assert {path for path in named if not any((base / path).exists() for base in bases)} == set()


def test_the_map_of_the_package_names_all_rooms_and_the_files_beside_them() -> None:
    text = (CHECKOUT / "docs/developing/architecture.md").read_text(encoding="utf-8")
    there = {f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.glob("*/__init__.py")}
    there |= {f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.glob("solvers/*/*.py")}
    there |= {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert {name for name in there if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_holds_and_where_to_begin(room: str) -> None:
    text = (PACKAGE / room / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 9
    assert text.startswith(f"# {room}: ")
    assert "Begin with" in text
    paths = re.findall(r"`([\w/]+(?:/|\.py))`", text)
    assert [path for path in paths if not (PACKAGE / room / path).exists()] == []
    folders = {path.name for path in (PACKAGE / room).iterdir() if (path / "__init__.py").exists()}
    if room not in ("compiled", "solvers"):  # whose folders the architecture lists
        assert {name for name in folders if f"`{name}/`" not in text} == set()


def test_every_solver_and_each_of_its_options_is_in_the_documentation() -> None:
    text = (CHECKOUT / "docs/mathematics.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for name, make in SOLVERS.items():
        own = [row for row in rows if f"`{name}`" in row.split("|")[1]]
        assert own, name
        missing = [each for each in signature(make).parameters if f"`{each}`" not in "".join(own)]
        assert not missing, (name, missing)


def test_models_without_probabilities_say_where_they_come_from() -> None:
    for name in MODELS:
        model = getattr(proxmargin, name)
        assert hasattr(model, "predict_log_proba") != ("CalibratedMargin" in model.__doc__), name
