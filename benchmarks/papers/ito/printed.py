"""Tables of Ito, Takeda, Toh (2017), as printed, for the data sets that are within reach.

NaN: not printed, or digits that the text of the paper at hand has lost. It has the iterations with
the RBF kernel of Table 4 in two halves that overlap or meet: (39 and 90) are 390.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy import nan

__all__ = [
    "ACCURACY",
    "BREAKDOWN",
    "CONSTANTS",
    "FLOORS",
    "LOGISTIC",
    "MINIMAX",
    "NU_MACHINES",
    "PROJECTIONS",
    "SETS",
    "Constants",
    "Logistic",
    "Minimax",
    "NuMachine",
    "Shape",
    "Share",
]


class Shape(NamedTuple):
    """A row of Table 1; the samples of the classes, the positive one first."""

    positive: int
    negative: int
    n: int
    density: float


class Constants(NamedTuple):
    """A row of Table 5 for one kernel: mean and largest L_k, and L_f."""

    mean: float
    most: float
    lipschitz: float


class NuMachine(NamedTuple):
    """A row of Table 4: nu; seconds and iterations of the two kernels."""

    nu: float
    sedumi: float
    libsvm: float
    fapg: float
    iterations: float
    liblinear: float
    rbf_libsvm: float
    rbf_fapg: float
    rbf_iterations: float


class Logistic(NamedTuple):
    """A row of Table 8."""

    fapg: float
    iterations: int
    liblinear: float


class Minimax(NamedTuple):
    """A row of Table 10: the largest kappa, seconds, iterations and constants."""

    kappa_max: float
    sedumi: float
    fapg: float
    iterations: int
    constants: Constants


class Share(NamedTuple):
    """A row of Tables 3, 7 and 9: per cent of the time, and evaluations."""

    percent: float
    evaluations: int


# Table 1, all rows
SETS = {
    "a8a": Shape(5506, 17190, 123, 0.113),
    "a9a": Shape(7841, 24720, 123, 0.113),
    "australian": Shape(307, 383, 14, 0.874),
    "breast-cancer": Shape(444, 239, 10, 1.0),
    "cod-rna": Shape(39690, 19845, 8, 0.999),
    "colon-cancer": Shape(40, 22, 2000, 0.984),
    "covtype": Shape(297711, 283301, 54, 0.221),
    "diabetes": Shape(500, 268, 8, 0.999),
    "duke": Shape(21, 23, 7129, 0.977),
    "epsilon": Shape(199823, 200177, 2000, 1.0),
    "fourclass": Shape(307, 555, 2, 0.996),
    "german.numer": Shape(300, 700, 24, 0.958),
    "gisette": Shape(3000, 3000, 5000, 0.991),
    "heart": Shape(120, 150, 13, 0.962),
    "ijcnn1": Shape(3415, 31585, 22, 0.591),
    "ionosphere": Shape(225, 126, 34, 0.884),
    "leu": Shape(11, 27, 7129, 0.974),
    "liver-disorders": Shape(145, 200, 6, 0.991),
    "madelon": Shape(1000, 1000, 500, 0.999),
    "mushrooms": Shape(3916, 4208, 112, 0.188),
    "news20.binary": Shape(9999, 9997, 1355191, 3.36e-4),
    "rcv1-origin": Shape(10491, 9751, 47236, 0.002),
    "real-sim": Shape(22238, 50071, 20958, 0.002),
    "skin-nonskin": Shape(50859, 194198, 3, 0.983),
    "sonar": Shape(97, 111, 60, 1.0),
    "splice": Shape(517, 483, 60, 1.0),
    "svmguide1": Shape(1089, 2000, 4, 0.997),
    "svmguide3": Shape(947, 296, 22, 0.805),
    "url": Shape(1603985, 792145, 3231961, 3.54e-5),
    "w7a": Shape(740, 23952, 300, 0.039),
    "w8a": Shape(1479, 48270, 300, 0.039),
}
# Table 2: means and deviations of milliseconds (rounds): breakpoint search, then bisection
PROJECTIONS = {
    (100_000, 10.0): ((8.3, 25.7, 2.0), (4.9, 31.1, 0.6)),
    (100_000, 1000.0): ((9.0, 27.3, 1.4), (5.5, 27.1, 1.2)),
    (1_000_000, 10.0): ((94.2, 22.6, 16.2), (49.9, 32.0, 3.4)),
    (1_000_000, 1000.0): ((99.1, 26.5, 15.6), (53.4, 30.0, 4.4)),
}
# Tables 3, 7 and 9: gradient, value, projection; total seconds
BREAKDOWN = {
    "I3": ((Share(78.1, 1375), Share(10.8, 369), Share(6.9, 1453)), 19.080),
    "I7": ((Share(85.4, 1452), Share(12.3, 340), Share(0.5, 1473)), 11.720),
    "I9": ((Share(75.9, 339), Share(14.2, 119), Share(3.1, 383)), 1.102),
}
# Table 4
NU_MACHINES = {
    "a8a": NuMachine(0.368, 16.82, 32.31, 1.70, 563, 0.06, 68.24, 72.88, 343),
    "a9a": NuMachine(0.365, 25.42, 66.11, 4.84, 665, 0.07, 138.89, 170.63, 390),
    "australian": NuMachine(0.348, 0.34, 0.12, 0.86, 4056, 0.003, 0.049, 0.076, 243),
    "colon-cancer": NuMachine(0.078, 0.18, 0.01, 0.09, 210, 0.15, 0.013, nan, nan),
    "covtype": NuMachine(0.620, 288.71, 16164.88, 60.75, 701, 1.55, nan, nan, nan),
    "diabetes": NuMachine(0.533, 0.14, 0.02, 0.06, 306, 0.003, 0.060, 0.093, 296),
    "fourclass": NuMachine(0.543, 0.12, 0.01, 0.07, 356, 0.0004, 0.069, 0.068, 150),
    "german.numer": NuMachine(0.525, 0.26, 0.26, 0.29, 1107, 0.04, 0.14, 0.10, 236),
    "heart": NuMachine(0.388, 0.14, 0.005, 0.04, 232, 0.001, 0.008, 0.040, 196),
    "ionosphere": NuMachine(0.202, 0.25, 0.02, 0.22, 1064, 0.34, 0.012, 0.051, nan),
    "leu": NuMachine(0.070, 0.40, 0.03, 0.13, 175, 0.17, 0.034, 0.013, 103),
    "liver-disorders": NuMachine(0.731, 0.11, 0.01, 0.11, 736, 0.007, 0.015, 0.037, nan),
    "mushrooms": NuMachine(0.096, 8.74, 1.34, 0.56, nan, 0.06, 5.74, 19.02, 661),
    "skin-nonskin": NuMachine(0.233, 62.70, 726.20, 8.02, 609, 0.09, 4425.59, nan, nan),
    "sonar": NuMachine(0.117, 0.29, 0.12, 0.33, 1922, 3.81, 0.009, nan, nan),
    "splice": NuMachine(0.432, 0.56, 0.25, 0.11, nan, 0.02, 0.18, nan, nan),
    "svmguide1": NuMachine(0.180, 0.35, 0.08, 0.15, nan, 0.003, 0.42, 1.45, nan),
}
# Table 5: linear, RBF
CONSTANTS = {
    "a8a": (Constants(2.99e3, 1.54e4, 1.43e5), Constants(7.00e1, 2.27e2, 2.00e4)),
    "a9a": (Constants(5.59e3, 3.38e4, 2.05e5), Constants(1.37e2, 4.99e2, 2.88e4)),
    "australian": (Constants(1.97e2, 1.21e3, 2.91e3), Constants(1.92e1, 4.69e1, 3.56e2)),
    "colon-cancer": (Constants(4.02e2, 6.60e2, 3.80e4), Constants(5.91e-1, 9.09e-1, 5.65e1)),
    "covtype": (Constants(3.71e4, 2.37e5, 4.58e6), None),
    "diabetes": (Constants(5.21e1, 1.53e2, 1.76e3), Constants(1.64e1, 4.69e1, 6.34e2)),
    "fourclass": (Constants(5.61e1, 1.87e2, 2.80e2), Constants(5.72e1, 1.03e2, 5.36e2)),
    "german.numer": (Constants(2.16e2, 1.03e3, 8.44e3), Constants(1.95e1, 4.69e1, 4.50e2)),
    "heart": (Constants(1.07e2, 2.53e2, 7.49e2), Constants(1.01e1, 2.13e1, 1.19e2)),
    "ionosphere": (Constants(2.46e2, 9.83e2, 2.14e3), Constants(1.19e1, 2.83e1, 2.24e2)),
    "leu": (Constants(1.70e3, 2.75e3, 6.05e4), Constants(6.07e-1, 9.09e-1, 3.46e1)),
    "liver-disorders": (Constants(1.27e1, 3.85e1, 1.84e3), Constants(5.04, 9.68, 8.23e2)),
    "mushrooms": (Constants(1.84e3, 6.34e3, 2.30e5), Constants(2.31e1, 1.03e2, 1.74e4)),
    "skin-nonskin": (Constants(5.08e3, 2.82e4, 2.19e5), None),
    "sonar": (Constants(2.27e2, 1.12e3, 2.68e3), Constants(4.88, 9.68, 1.51e2)),
    "splice": (Constants(3.59e2, 1.11e3, 1.74e3), Constants(6.63, 1.06e1, 3.57e2)),
    "svmguide1": (Constants(3.07e1, 1.13e2, 2.47e3), Constants(1.52e1, 4.69e1, 2.92e3)),
}
# Table 6: per cent for xi of 1e-2 to 1e-5, then LIBLINEAR
FLOORS = {
    "artificial": (99.8, 100.0, 100.0, 100.0, 85.2),
    "svmguide1": (95.5, 95.5, 95.5, 95.5, 90.7),
    "mushrooms": (99.4, 100.0, 100.0, 100.0, 100.0),
    "a8a": (84.7, 84.8, 84.8, 84.8, 84.7),
}
# Table 8
LOGISTIC = {
    "a8a": Logistic(19.82, 4939, 9.82),
    "a9a": Logistic(35.32, 6155, 57.62),
    "australian": Logistic(0.45, 1738, 0.01),
    "colon-cancer": Logistic(0.11, 269, 0.16),
    "covtype": Logistic(2039.19, 20143, 73.74),
    "diabetes": Logistic(0.20, 794, 0.01),
    "fourclass": Logistic(0.21, 851, 0.001),
    "german.numer": Logistic(0.56, 1741, 0.31),
    "heart": Logistic(0.15, 817, 0.02),
    "ionosphere": Logistic(0.39, 1639, 0.31),
    "leu": Logistic(0.11, 148, 0.19),
    "liver-disorders": Logistic(0.16, 828, 0.01),
    "mushrooms": Logistic(2.26, 1224, 0.09),
    "skin-nonskin": Logistic(247.11, 8373, 3.59),
    "sonar": Logistic(0.22, 1150, 0.10),
    "splice": Logistic(0.66, 1689, 6.02),
    "svmguide1": Logistic(0.91, 1313, 0.16),
}
# Table 10
MINIMAX = {
    "a8a": Minimax(0.952, 0.664, 0.034, 25, Constants(1.12, 1.21, 1.34)),
    "a9a": Minimax(0.960, 0.166, 0.010, 25, Constants(1.12, 1.21, 1.34)),
    "australian": Minimax(1.23, 0.054, 0.006, 25, Constants(1.85, 2.00, 2.06)),
    "colon-cancer": Minimax(1.85, 311.329, 0.178, 157, Constants(25.6, 42.2, 28.1)),
    "covtype": Minimax(0.659, 0.086, 0.016, 107, Constants(0.831, 1.10, 1.07)),
    "diabetes": Minimax(0.688, 0.061, 0.003, 18, Constants(0.370, 0.386, 0.479)),
    "fourclass": Minimax(0.722, 0.069, 0.003, 12, Constants(0.468, 0.547, 0.604)),
    "german.numer": Minimax(0.652, 0.063, 0.005, 33, Constants(2.45, 2.84, 2.89)),
    "heart": Minimax(1.10, 0.049, 0.004, 24, Constants(1.85, 1.98, 2.08)),
    "ionosphere": Minimax(1.30, 0.084, 0.016, 110, Constants(3.49, 4.49, 5.15)),
    "leu": Minimax(2.11, 12971.377, 0.514, 220, Constants(137.0, 268.0, 146.0)),
    "liver-disorders": Minimax(0.409, 0.075, 0.009, 71, Constants(0.305, 0.408, 0.378)),
    "mushrooms": Minimax(15.3, 0.170, 0.166, 840, Constants(2.38, 3.63, 2.92)),
    "skin-nonskin": Minimax(1.63, 0.066, 0.006, 50, Constants(0.165, 0.198, 0.225)),
    "sonar": Minimax(1.29, 0.096, 0.020, 116, Constants(3.47, 4.60, 5.07)),
    "splice": Minimax(1.02, 0.071, 0.009, 39, Constants(2.39, 2.84, 2.92)),
    "svmguide1": Minimax(1.26, 0.070, 0.003, 28, Constants(0.106, 0.115, 0.0861)),
}
# Table 11: per cent (and the parameter) of nu-SVM, logistic regression, MM-MPM and MM-FDA
ACCURACY = {
    "a8a": ((84.4, 0.37), (84.6, 0.5), (80.7, 0.94), (84.4, 1.32)),
    "a9a": ((84.7, 0.36), (84.8, 0.1), (80.7, 0.95), (84.7, 1.33)),
    "australian": ((85.7, 0.83), (87.7, 0.1), (86.1, 0.25), (87.5, 1.39)),
    "colon-cancer": ((88.8, 0.29), (87.1, 6.0), (87.1, 0.18), (87.1, 1.22)),
    "covtype": ((76.3, 0.59), (75.6, 1.0), (75.6, 0.65), (75.5, 0.92)),
    "diabetes": ((77.3, 0.54), (77.3, 3.5), (74.9, 0.61), (76.8, 0.88)),
    "fourclass": ((77.7, 0.68), (78.5, 0.1), (72.7, 0.57), (78.6, 0.10)),
    "german.numer": ((76.7, 0.54), (77.4, 0.1), (71.9, 0.39), (77.3, 0.55)),
    "heart": ((84.1, 0.40), (84.4, 0.1), (84.1, 0.76), (84.1, 0.15)),
    "ionosphere": ((88.3, 0.21), (90.0, 5.0), (86.9, 0.39), (87.8, 0.85)),
    "leu": ((94.2, 0.02), (94.2, 5.0), (94.2, 2.10), (94.2, 0.21)),
    "liver-disorders": ((68.1, 0.76), (67.9, 6.0), (63.8, 0.20), (66.4, 0.52)),
    "mushrooms": ((100.0, 0.01), (100.0, 6.0), (100.0, 9.19), (100.0, 6.21)),
    "skin-nonskin": ((93.7, 0.32), (92.4, 6.0), (93.5, 1.61), (93.8, 2.10)),
    "sonar": ((79.8, 0.40), (78.8, 0.5), (79.8, 0.64), (77.9, 0.91)),
    "splice": ((80.9, 0.50), (80.2, 3.0), (80.6, 0.61), (81.0, 0.20)),
    "svmguide1": ((95.4, 0.13), (95.4, 20.0), (94.4, 1.12), (91.6, 1.56)),
}
