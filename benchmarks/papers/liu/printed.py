"""Tables of Liu, Qian, Dai and Zhang (2013), as printed."""

from __future__ import annotations

from typing import NamedTuple

RUNS = 10  # whose averages are printed


class Row(NamedTuple):
    """CAR, CT and NI: the share of right answers, seconds, iterations."""

    accuracy: float
    seconds: float
    iterations: int


class GeneRow(NamedTuple):
    """The same and NNC, "the number of nonzero coefficients"."""

    accuracy: float
    seconds: float
    iterations: int
    nnc: int


SOLVERS = ("isvm2", "isvm3", "admm")
# Table 1, by p and r
SIMULATED = {
    (2000, 0.1): (Row(0.975, 0.19, 29), Row(0.976, 0.20, 28), Row(0.982, 0.36, 79)),
    (2000, 0.5): (Row(0.873, 0.17, 25), Row(0.873, 0.17, 25), Row(0.894, 0.35, 74)),
    (2000, 0.9): (Row(0.821, 0.17, 23), Row(0.822, 0.16, 22), Row(0.834, 0.33, 70)),
    (5000, 0.1): (Row(0.967, 0.26, 43), Row(0.967, 0.28, 24), Row(0.967, 0.75, 97)),
    (5000, 0.5): (Row(0.875, 0.24, 21), Row(0.875, 0.25, 22), Row(0.876, 0.96, 53)),
    (5000, 0.9): (Row(0.819, 0.24, 20), Row(0.819, 0.24, 20), Row(0.818, 0.88, 51)),
    (10_000, 0.1): (Row(0.948, 0.47, 18), Row(0.949, 0.47, 20), Row(0.950, 1.21, 44)),
    (10_000, 0.5): (Row(0.871, 0.40, 18), Row(0.872, 0.42, 19), Row(0.872, 1.10, 43)),
    (10_000, 0.9): (Row(0.799, 0.40, 17), Row(0.800, 0.43, 18), Row(0.800, 1.02, 40)),
}
RIDGES = (1, 2, 3, 4, 5, 10, 20, 30, 40, 50)  # lambda2
# Table 2, by p and r: true features selected, of ten, for each lambda2
SELECTED = {
    (500, 0.1): (8.8, 9.3, 9.5, 9.5, 9.9, 9.9, 10, 10, 10, 10),
    (500, 0.5): (6.5, 7.8, 8.3, 9.4, 9.5, 9.7, 9.9, 10, 10, 10),
    (500, 0.9): (8.0, 9.2, 9.7, 9.7, 10, 10, 10, 10, 10, 10),
    (1000, 0.1): (9.0, 9.5, 9.8, 10, 10, 10, 10, 10, 10, 10),
    (1000, 0.5): (8.2, 9.1, 9.7, 9.9, 9.9, 10, 10, 10, 10, 10),
    (1000, 0.9): (8.9, 9.9, 9.9, 9.9, 10, 10, 10, 10, 10, 10),
    (2000, 0.1): (9.5, 9.9, 10, 10, 10, 10, 10, 10, 10, 10),
    (2000, 0.5): (8.6, 9.5, 9.9, 10, 10, 10, 10, 10, 10, 10),
    (2000, 0.9): (9.9, 10, 10, 10, 10, 10, 10, 10, 10, 10),
}
# Table 3: classes, samples to train, to test, features
SHAPES = {
    "colon": (2, 31, 31, 2000),
    "duke": (2, 22, 22, 7129),
    "leukemia": (2, 38, 34, 7129),
}
# Table 4
GENES = {
    "colon": (
        GeneRow(0.830, 0.65, 79, 1851),
        GeneRow(0.830, 0.31, 28, 1735),
        GeneRow(0.819, 6.16, 308, 1877),
    ),
    "duke": (
        GeneRow(0.825, 0.27, 54, 6773),
        GeneRow(0.813, 0.16, 27, 6500),
        GeneRow(0.802, 10.52, 201, 6861),
    ),
    "leukemia": (
        GeneRow(0.824, 0.84, 53, 6738),
        GeneRow(0.824, 0.46, 27, 6450),
        GeneRow(0.824, 17.5, 238, 6823),
    ),
}
MACHINE = {"colon": 0.810, "duke": 0.845, "leukemia": 0.882}  # CAR of the standard SVM
