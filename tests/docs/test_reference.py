"""The reference has every public name once."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_doctests import PUBLIC

PAGES = Path(__file__).parents[2] / "docs" / "reference"
NAME = re.compile(r"^   (\w+)$", re.MULTILINE)


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")]
    listed = [name for text in texts for name in NAME.findall(text)]
    assert sorted(listed) == sorted(PUBLIC)


def test_every_page_of_the_reference_is_in_its_index() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8").splitlines()
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert pages <= set(index)
