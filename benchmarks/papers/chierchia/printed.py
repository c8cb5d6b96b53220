"""Tables of Chierchia et al. (2015), as printed."""

from __future__ import annotations

from typing import NamedTuple


class Cell(NamedTuple):
    """Test errors, and non-zero coefficients of each class."""

    errors: int
    nonzeros: tuple[int, int, int]


GENES = 7129
TESTED = 34
_ALL = (GENES, GENES, GENES)
# Table 1, by penalty and model; "05" is 5
LEUKEMIA = {
    "l2": {
        "hinge": Cell(1, _ALL),
        "square": Cell(2, _ALL),
        "logit": Cell(1, _ALL),
        "one-vs-all": Cell(2, _ALL),
    },
    "l1": {
        "hinge": Cell(2, (13, 3, 10)),
        "square": Cell(3, (8, 3, 8)),
        "logit": Cell(3, (18, 5, 14)),
        "one-vs-all": Cell(3, (19, 8, 15)),
    },
    "group_l2": {
        "hinge": Cell(0, (95, 5, 75)),
        "square": Cell(1, (55, 5, 45)),
        "logit": Cell(0, (50, 5, 35)),
        "one-vs-all": Cell(1, (70, 10, 50)),
    },
    "group_linf": {
        "hinge": Cell(0, (50, 5, 45)),
        "square": Cell(0, (35, 5, 35)),
        "logit": Cell(0, (50, 5, 40)),
        "one-vs-all": Cell(0, (45, 5, 45)),
    },
}
