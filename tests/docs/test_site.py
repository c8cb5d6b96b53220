"""The site of the documentation: it is built without a warning, and no link within it is dead."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import util
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from proxmargin.models.fitting.registry import MODELS, model_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GALLERY = sorted((DOCS / "gallery").glob("*/*.py"))
PAGES = sorted({*DOCS.rglob("*.md")} - {*(DOCS / "generated").rglob("*")})


class Links(HTMLParser):
    """The targets of a page, and the addresses that it asks for."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: set[str] = set()
        self.unnamed_pictures: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.names |= {found[key] or "" for key in ("id", "name") if key in found}
        self.addresses |= {found[key] or "" for key in ("href", "src") if key in found}
        if tag == "img" and "alt" not in found:
            self.unnamed_pictures.append(found.get("src") or "")


def dead_links(site: Path) -> Iterator[tuple[str, str]]:
    pages = {page: Links(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    assert len(pages) > 50
    for page, links in pages.items():
        for address in links.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchors = pages[target].names if target in pages else {parts.fragment}
            if not target.exists() or (parts.fragment and parts.fragment not in anchors):
                yield str(page.relative_to(site)), address


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("sphinx_gallery") is None, reason="the extra docs is not there")
def test_the_site_is_built_without_a_warning_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    site = (tmp_path / "site").resolve()
    strict = ["-W", "--keep-going", "-q", "-j", "2"]
    command = [sys.executable, "-m", "sphinx", *strict, str(DOCS), str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"Open {(site / 'index.html').as_uri()}" in done.stdout
    assert list(dead_links(site)) == []
    assert (site / "searchindex.js").exists()
    assert [page for page in site.rglob("*.html") if Links(page).unnamed_pictures] == []


def test_the_gallery_has_scripts_with_a_title_and_a_picture() -> None:
    assert len(GALLERY) >= 15
    for script in GALLERY:
        text = script.read_text(encoding="utf-8")
        assert text.startswith('"""\n'), script
        assert "plt.show()" in text, script
        assert "random_state=None" not in text, script


def test_every_model_is_in_the_table_of_models() -> None:
    text = (DOCS / "guide/which-model.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(model_names())
    assert len(rows) == 13
    assert set(rows) < set(MODELS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_begins_with_its_title_and_says_something_at_once(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[1] == ""
    assert lines[2]
    assert not lines[2].startswith("#")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_row_of_a_table_has_as_many_cells_as_its_head(page: Path) -> None:
    width = 0
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert cells == width or not cells or not width, line
        width = cells


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
