"""Sentences stand in files beside the code: each has its row, and each row its use."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable

import numpy as np

from proxmargin.reports import data_card
from proxmargin.studies.reports import card, text


def test_each_sentence_has_its_row_and_each_row_its_use() -> None:
    whole = list(ast.walk(ast.parse(inspect.getsource(text))))
    calls = [each for each in whole if isinstance(each, ast.Call)]
    asked = [each.args[0] for each in calls if getattr(each.func, "id", "") == "say"]
    assert (
        _words(whole)
        >= set(text._sentences())
        >= _words(each for one in asked for each in ast.walk(one))
    )


def _words(nodes: Iterable[ast.AST]) -> set[str]:
    constants = (each.value for each in nodes if isinstance(each, ast.Constant))
    return {each for each in constants if isinstance(each, str)}


def test_a_card_tells_one_and_several_of_each_finding() -> None:
    told = json.loads(card.FINDINGS.read_text("utf-8"))
    assert all(len(each) == 3 for each in told.values())
    X = np.arange(60.0).reshape(20, 3) % 7
    X[:, 2], X[1], X[0, 0] = 1.0, X[0], np.nan
    y = np.repeat([0, 1], 10)
    what = " ".join(each["what"] for each in data_card(X, y)["findings"])
    assert "1 entry is missing, in 1 feature." in what
    assert "1 feature has one value in all rows." in what
    assert "The rows are sorted by class." in what
    X[2, :2] = np.nan
    what = " ".join(each["what"] for each in data_card(X, y)["findings"])
    assert "3 entries are missing, in 2 features." in what
