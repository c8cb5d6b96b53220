"""Table 1 of Ito et al. (2017): the data sets of the paper, and which of them are within reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import DataSet
from benchmarks.family_data import load_scaled
from benchmarks.papers.claims import judged, met
from benchmarks.papers.ito.printed import SETS, Shape
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table

__all__ = ["OUT_OF_REACH", "REACH", "TABLES", "Reach", "loaded", "reached", "stored_entries"]

DENSITY_DIGITS = 3
ROUNDING = 1e-9  # entries in [-1, 1] that scaling leaves in place of zeros


@dataclass(frozen=True)
class Reach:
    """Where a set of the paper comes from here.

    Attributes
    ----------
    source : str
        Its name in `benchmarks.family_data`.
    differs : str
        In what it differs from the paper's, if it does: no number is then held against it.
    small : bool
        Taken at the small size too.
    """

    source: str
    differs: str = ""
    small: bool = True


REACH = {
    "a8a": Reach("a9a@22696", "other data: as many samples of a9a by chance", small=False),
    "a9a": Reach("a9a", small=False),
    "australian": Reach("australian"),
    "colon-cancer": Reach("colon", "scaled from raw intensities, as far as LIBSVM tells how"),
    "covtype": Reach("covtype", "92,962 of its 581,012 samples", small=False),
    "diabetes": Reach("diabetes"),
    "fourclass": Reach("fourclass"),
    "german.numer": Reach("german"),
    "heart": Reach("heart"),
    "ionosphere": Reach("ionosphere"),
    "leu": Reach("leukemia"),
    "liver-disorders": Reach("liver", "other data: 5 of its 6 features, classes of 155 and 190"),
    "mushrooms": Reach("mushrooms", "126 columns for 112, other codes", small=False),
    "skin-nonskin": Reach("skin", small=False),
    "sonar": Reach("sonar"),
    "splice": Reach("splice"),
    "svmguide1": Reach("svmguide1"),
}
OUT_OF_REACH = tuple(name for name in SETS if name not in REACH)


def reached(size: Size) -> list[str]:
    """The sets within reach that a size takes, by their names in the paper."""
    return [name for name, one in REACH.items() if one.small or size is Size.FULL]


def loaded(name: str) -> DataSet:
    """A set by its name in the paper, scaled as there."""
    return load_scaled(REACH[name].source)


def stored_entries(data: DataSet) -> int:
    """The entries of a design that are not zero up to rounding."""
    design = data.design
    values = design.data if sp.issparse(design) else design
    return int(np.count_nonzero(np.abs(values) > ROUNDING))


def _shape(data: DataSet) -> Shape:
    m, n = data.design.shape
    positive = int((data.labels > 0).sum())
    return Shape(positive, m - positive, n, round(stored_entries(data) / (m * n), DENSITY_DIGITS))


def _same(printed: Shape, ours: Shape) -> bool:
    """Up to which of the classes is the positive one."""
    classes = {printed.positive, printed.negative} == {ours.positive, ours.negative}
    return classes and (printed.n, printed.density) == (ours.n, ours.density)


def _in_words(shape: Shape) -> str:
    m = shape.positive + shape.negative
    return f"{m:,} ({shape.positive:,}, {shape.negative:,}) x {shape.n:,}, {shape.density:.3g}"


def _table_1(size: Size) -> Outcome:
    ours = {name: _shape(loaded(name)) for name in reached(size)}
    return _judged_1(ours)


def _judged_1(ours: dict[str, Shape]) -> Outcome:
    rows = []
    for name, printed in SETS.items():
        if name in ours:
            why = REACH[name].differs or ("yes" if _same(printed, ours[name]) else "no")
            rows.append([name, _in_words(printed), _in_words(ours[name]), why])
        elif name in REACH:
            rows.append([name, _in_words(printed), "-", "at the full size only"])
        else:
            rows.append([name, _in_words(printed), "-", "out of reach"])
    off = [
        name
        for name, shape in ours.items()
        if not REACH[name].differs and not _same(SETS[name], shape)
    ]
    same = [name for name in ours if not REACH[name].differs]
    body = table(["data", "printed: m (m+, m-) x n, density", "here", "the same"], rows)
    what = "the printed samples, classes, features and densities"
    outcome = judged(body, [], met(what, off, len(same)))
    other = [f"{name} ({REACH[name].differs})" for name in ours if REACH[name].differs]
    unseen = [name for name in REACH if name not in ours]
    parts = [
        f"for {len(same)} of {len(SETS)} sets: {outcome.why}",
        f"not the paper's data: {_list(other)}" if other else "",
        f"{_list(unseen)} are not taken at this size" if unseen else "",
        f"{_list(OUT_OF_REACH)} are out of reach",
    ]
    return replace(outcome, why="; ".join(part for part in parts if part))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


TABLES = {
    "I1": PaperTable(
        "Table 1 of Ito et al.: the data sets",
        """Printed in full. Sets that LIBSVM publishes scaled are scaled here by the same steps: in
[-1, 1], or microarrays with every sample of mean 0 and variance 1 (colon-cancer: of logarithms)
and then, as all others, in [0, 1]. Which of two labels is positive is left aside.""",
        (0.1, 0.2),
        _table_1,
    )
}
