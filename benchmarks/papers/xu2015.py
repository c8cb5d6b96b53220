"""Tables of Xu, Akrotirianakis, Chakraborty (2015), as printed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class RankTest(NamedTuple):
    """Friedman's test and the comparisons with the first method, in the printed digits."""

    ranks: tuple[str, ...]
    statistic: str
    pvalue: str
    against_first: tuple[str, ...]  # p-values, not adjusted


BINARY_METHODS = ("B-PGH", "B-PGH-2", "GCD", "ADMM", "LIBLINEAR")
MULTICLASS_METHODS = ("M-PGH", "OVA", "DDAG")
# Table 5: accuracy in per cent on ten data sets
BINARY = np.array(
    [
        [87.4, 87.4, 86.7, 86.9, 85.7],
        [84.4, 84.4, 84.4, 84.4, 81.3],
        [90.0, 90.0, 90.0, 90.0, 80.0],
        [92.9, 92.7, 92.6, 92.8, 91.7],
        [91.2, 91.2, 82.4, 82.4, 91.2],
        [84.8, 84.8, 83.3, 82.3, 80.1],
        [92.9, 92.9, 91.9, 92.8, 90.9],
        [90.0, 90.0, 70.0, 70.0, 70.0],
        [100.0, 100.0, 90.0, 100.0, 70.0],
        [100.0, 100.0, 80.0, 90.0, 50.0],
    ]
)
# Table 6: z above the diagonal, p below
SIGNED_RANKS = np.array(
    [
        [np.nan, -0.5096, -2.6502, -2.4973, -2.7521],
        [0.6102, np.nan, -2.6502, -2.0896, -2.7521],
        [0.0080, 0.0080, np.nan, -1.4780, -2.0386],
        [0.0126, 0.0366, 0.1394, np.nan, -2.0386],
        [0.0060, 0.0060, 0.0414, 0.0414, np.nan],
    ]
)
# Table 7: the ranks of these accuracies. In the fourth row, gisette, those of B-PGH-2 (92.7) and
# ADMM (92.8) are interchanged: they are 3 and 2.
BINARY_RANKS = np.array(
    [
        [1.5, 1.5, 4.0, 3.0, 5.0],
        [2.5, 2.5, 2.5, 2.5, 5.0],
        [2.5, 2.5, 2.5, 2.5, 5.0],
        [1.0, 2.0, 4.0, 3.0, 5.0],
        [2.0, 2.0, 4.5, 4.5, 2.0],
        [1.5, 1.5, 3.0, 4.0, 5.0],
        [1.5, 1.5, 4.0, 3.0, 5.0],
        [1.5, 1.5, 4.0, 4.0, 4.0],
        [2.0, 2.0, 4.0, 2.0, 5.0],
        [1.5, 1.5, 4.0, 3.0, 5.0],
    ]
)
GISETTE = 3  # the row
BINARY_FRIEDMAN = RankTest(
    ("1.75", "1.85", "3.65", "3.15", "4.6"),
    "23.56",
    "9.78e-5",
    ("0.8875", "0.0072", "0.0477", "5.57e-5"),
)
# Tables 12 and 14: accuracy in per cent on eight benchmark and two microarray data sets
MULTICLASS = np.array(
    [
        [53.28, 51.20, 53.07],
        [92.82, 89.04, 33.71],
        [53.00, 51.40, 62.80],
        [43.24, 65.90, 80.96],
        [35.13, 14.29, 24.05],
        [60.22, 56.84, 53.20],
        [74.44, 73.46, 76.28],
        [96.64, 96.25, 94.00],
        [98.6, 96.2, 72.0],
        [91.9, 81.5, 47.1],
    ]
)
# Table 15: z above the diagonal, p below
MULTICLASS_SIGNED_RANKS = np.array(
    [
        [np.nan, -1.7838, -1.2741],
        [0.0745, np.nan, -0.5606],
        [0.2026, 0.5751, np.nan],
    ]
)
# Table 16
MULTICLASS_FRIEDMAN = RankTest(("1.4", "2.4", "2.2"), "5.6", "0.0608", ("0.0253", "0.0736"))
# Table 3: relevant and irrelevant features chosen, accuracy in per cent; by correlation and method
RECOVERY = {
    0.0: {
        "B-PGH": (20.0, 0.1, 100.0),
        "B-PGH-2": (20.0, 0.1, 100.0),
        "GCD": (20.0, 0.1, 100.0),
        "ADMM": (19.0, 2.9, 100.0),
    },
    0.8: {
        "B-PGH": (19.9, 7.3, 86.6),
        "B-PGH-2": (19.9, 7.5, 86.6),
        "GCD": (19.9, 7.4, 86.4),
        "ADMM": (17.2, 23.1, 85.7),
    },
}
