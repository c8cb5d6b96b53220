"""Defaults and parameters that the pages name are those of the code."""

from __future__ import annotations

import ast
import re
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest

import proxmargin as pm

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), DOCS.parent / "README.md"]

OF_BOTH = ("SVC", "NuSVC", "LogisticRegression")  # names that scikit-learn has, too

# what a page says, and the default that it means
SAID: tuple[tuple[str, str, Any, str, Any], ...] = (
    ("coming-from/glmnet.md", "and 0.5 here", pm.SparseLogisticRegression, "l1_ratio", 0.5),
    ("coming-from/glmnet.md", "other default: 1e-3", pm.margin_path, "eps", 1e-3),
    (
        "coming-from/glmnet.md",
        "other default: False",
        pm.SparseLogisticRegression,
        *("standardize", False),
    ),
    ("coming-from/glmnet.md", "other default: no early end", pm.margin_path, "stop_at", None),
    (
        "coming-from/glmnet.md",
        "yes, the default",
        pm.SparseLogisticRegression,
        "multi_class",
        "joint",
    ),
    ("coming-from/liblinear.md", "an intercept is the default", pm.SVC, "fit_intercept", True),
    ("coming-from/liblinear.md", 'default here is `gamma="scale"`', pm.SVC, "gamma", "scale"),
    ("coming-from/other-r.md", "`'scale'` here", pm.SVC, "gamma", "scale"),
    (
        "coming-from/scikit-learn.md",
        "`random_state` (default 0",
        pm.HuberizedSVCCV,
        "random_state",
        0,
    ),
)


@pytest.mark.parametrize(("page", "words", "of", "parameter", "default"), SAID)
def test_a_default_is_the_one_that_a_page_names(
    page: str, words: str, of: Any, parameter: str, default: Any
) -> None:
    assert words in (DOCS / page).read_text(encoding="utf-8")
    assert signature(of).parameters[parameter].default == default


def calls(text: str) -> list[ast.Call]:
    """Calls of public names with keywords, in code between backquotes and in blocks."""
    found = []
    for code in re.findall(r"`([^`\n]+)`", text) + re.findall(r"```[^\n]*\n(.*?)```", text, re.S):
        try:
            tree = ast.parse(code)
        except SyntaxError:  # shell, tables, formulas
            continue
        found += [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
    return found


def test_keywords_on_pages_are_parameters() -> None:
    checked = 0
    for page in PAGES:
        for call in calls(page.read_text(encoding="utf-8")):
            name = ast.unparse(call.func).removeprefix("pm.").removeprefix("proxmargin.")
            if page.name == "scikit-learn.md" and name in OF_BOTH:
                continue
            if name not in pm._HOMES:
                continue
            taken = signature(getattr(pm, name)).parameters
            if any(each.kind is Parameter.VAR_KEYWORD for each in taken.values()):
                continue
            given = {each.arg for each in call.keywords if each.arg}
            assert given <= {*taken}, f"{page.name}: {ast.unparse(call)}"
            checked += 1
    assert checked > 100


def here(page: Path) -> list[str]:
    """Codes in the columns "here" of the tables of a page."""
    found, column = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            column = None
        elif "here" in cells:
            column = cells.index("here")
        elif column is not None:
            found += re.findall(r"`([^`]+)`", cells[column])
    return found


def test_names_in_the_tables_of_other_programs_are_there() -> None:
    """Fitted attributes of "here", and keywords that stand alone."""
    public = [getattr(pm, name) for name in pm._HOMES]
    texts = [base.__doc__ or "" for each in public for base in getattr(each, "__mro__", [each])]
    attributes = set(re.findall(r"\b[a-z]\w*_\b", "\n".join(texts)))
    attributes |= {name for each in public for name in dir(each)}
    parameters = {name for each in public if callable(each) for name in signature(each).parameters}
    codes = [code for page in sorted((DOCS / "coming-from").glob("*.md")) for code in here(page)]
    named = {word for code in codes for word in re.findall(r"(?<![\w\[])[a-z]\w*_(?!\w)", code)}
    named -= {"r_"}  # of NumPy
    alone = {found[1] for code in codes if (found := re.match(r"([a-z]\w*)=", code))}
    assert len(codes) > 100
    assert named <= attributes
    assert alone <= parameters
