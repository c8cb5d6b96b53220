"""Each message of the table is said somewhere, and each that is said is in the table."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

import proxmargin
from proxmargin.files.errors import messages, refused, said

ROOM = Path(proxmargin.__file__).parent / "files"
WORDS = {name: row for name, row in messages().items() if name != "begins"}


def test_messages_and_what_says_them():
    code = "".join(path.read_text() for path in ROOM.rglob("*.py"))
    used = set(re.findall(r'"([a-z_]+)"', code)) | set(messages()["begins"])
    assert set(WORDS) <= used
    called = set(re.findall(r'(?:refused|said)\(\s*"([a-z_]+)"', code))
    assert called <= set(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_a_row_is_a_sentence_and_what_to_type(name):
    assert 1 <= len(WORDS[name]) <= 2
    assert not any(part.endswith((".", ";")) or part != part.strip() for part in WORDS[name])


def test_what_says_a_message_fills_its_places():
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "")
            if called in ("said", "refused", "warned") and isinstance(node.args[0], ast.Constant):
                row = "; ".join(WORDS[node.args[0].value])
                places = {place for _, place, _, _ in Formatter().parse(row) if place}
                assert places == {each.arg for each in node.keywords}, (path, node.lineno)


def test_places_are_lists_counts_and_numbers_of_things():
    assert said("several_columns", "d.csv", name="g", at=[0, 2], option="target") == (
        "d.csv: 'g' is the name of 2 columns; give a position: 0, 2 (target=POSITION)"
    )
    assert "d.csv: left out before the table: 1 line" in said("preamble", "d.csv", count=1)
    assert str(refused("no_encoding", encoding="x")).startswith("There is no encoding 'x'.")
