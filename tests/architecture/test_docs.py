"""What the documentation says about the layout of the repository is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import proxmargin

PACKAGE = Path(proxmargin.__file__).parent
CHECKOUT = Path(__file__).parents[2]
QUOTED = re.compile(r"`([\w./-]+(?:/|\.py|\.md))`")


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_path_that_a_document_names_exists(document: str) -> None:
    named = set(QUOTED.findall((CHECKOUT / document).read_text(encoding="utf-8")))
    assert named
    bases = (PACKAGE, CHECKOUT, CHECKOUT / "benchmarks")
    assert {path for path in named if not any((base / path).exists() for base in bases)} == set()


def test_the_map_of_the_package_names_all_of_its_folders_and_files() -> None:
    text = (CHECKOUT / "docs/architecture.md").read_text(encoding="utf-8")
    there = {f"{path.name}/" for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__/"}
    there |= {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert {name for name in there if f"`{name}`" not in text} == set()
