"""Commands and code that the documentation shows are ones that there are."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from proxmargin.cli.program import parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
PAGES = sorted(page for page in PAGES if "generated" not in page.parts)
BLOCK = re.compile(r"^( *)```(\{?\w+\}?)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"^:\w+:.*\n+", re.MULTILINE)


def blocks(page: Path, *kinds: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for _, kind, text in found if kind in kinds]


def commands(page: Path) -> list[list[str]]:
    """The words of each command for proxmargin, without what follows it in a pipeline."""
    found = []
    for text in blocks(page, "sh", "{shell}"):
        for line in OPTION.sub("", text).replace("\\\n", " ").splitlines():
            words = shlex.split(re.split(r"\s(?:\||2>|#|&&)", f"{line} ")[0], comments=True)
            words = words[1:] if words[:2] == ["python3", "run.py"] else words[:]
            if words[:1] in (["proxmargin"], ["run.py"]):
                found.append(words[1:])
    return found


SHOWN = [(page, words) for page in PAGES for words in commands(page)]


@pytest.mark.parametrize(
    ("page", "words"), SHOWN, ids=[f"{page.name}: {' '.join(words)}" for page, words in SHOWN]
)
def test_a_command_that_is_shown_is_understood(page: Path, words: list[str]) -> None:
    if words[0] not in {"test", "docs", "lint", "bench", "lock", "audit", "install", "--help"}:
        parser().parse_args(words)


def test_many_commands_are_shown() -> None:
    assert len(SHOWN) > 25


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_that_is_shown_can_be_read_and_imports_what_there_is(page: Path) -> None:
    for text in blocks(page, "python", "{run}"):
        for node in ast.walk(ast.parse(OPTION.sub("", text))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("proxmargin"):
                module = import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []
