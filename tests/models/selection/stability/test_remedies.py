"""What a refusal says to change will do."""

from __future__ import annotations

import re
from fractions import Fraction
from types import SimpleNamespace

import pytest

from proxmargin.models.selection.stability.bounds import SelectionTerms, false_selections


@pytest.mark.sampled(3)
@pytest.mark.parametrize("assumption", ["none", "unimodal", "r-concave"])
@pytest.mark.parametrize(
    ("settings", "p"),
    [
        ({"n_pairs": 3}, 30),
        ({"n_pairs": 3, "threshold": 0.8, "pfer": 0.001}, 30),
        ({"n_pairs": 50}, 1),
        ({"n_pairs": 3, "pfer": 0.1}, 1),
        ({"q": 10, "pfer": 0.01}, 40),
        ({"n_pairs": 5, "threshold": 0.51, "q": 30}, 40),
    ],
)
def test_each_change_that_a_refusal_names_will_do(settings, p, assumption) -> None:
    asked = {"threshold": None, "pfer": None, "q": None, "fdr": None, "n_pairs": 50}
    asked |= {**settings, "assumption": assumption}
    try:
        SelectionTerms.checked(SimpleNamespace(**asked)).completed(p, p)
        return  # possible under this assumption
    except ValueError as refusal:
        said = str(refusal)
    least = float(re.search(r"smallest pfer attainable is (\S+), with threshold=1", said)[1])
    q = asked["q"] or 1
    exact = false_selections(1.0, q, p, asked["n_pairs"], assumption)
    assert exact <= least <= 1.01 * exact
    changes = re.split(", | or ", said.partition("; give ")[2])
    assert changes != [""]
    for change in changes:
        new = dict(asked)
        for part in change.split(" and "):
            name, value = re.fullmatch(r"(\w+) ?[<>]?= ?(\S+)", part).groups()
            new[name] = float(Fraction(value)) if name in ("threshold", "pfer") else int(value)
        SelectionTerms.checked(SimpleNamespace(**new)).completed(p, p)
