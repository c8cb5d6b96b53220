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
