"""What Liu et al. (2013, sections 3.1 and 3.2) say of their parameters without a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.datasets import data_root
from benchmarks.papers.claims import Claim, alike, decided, judged, order, told
from benchmarks.papers.liu import expressions, simulated
from benchmarks.papers.liu.printed import RIDGES, SELECTED
from benchmarks.papers.liu.runs import Run, Split, Stopped, ended, isvm2, isvm3, strength
from benchmarks.papers.pictures import panels
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table

__all__ = ["TABLES", "Series", "Varied", "judged_parameters"]

DRAWS = {Size.SMALL: 10, Size.FULL: 100}
SIMULATED = (2000, 0.5)  # p and r of the simulated data
GROUPED = 10.0  # lambda2 of the simulated data where it is not varied, as in Table 1
SHARES = (1.0, 3.0, 10.0, 30.0)  # lambda1 over the largest coefficient of the SVM; printed: 10
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 50.0)  # lambda2; printed: from 1 to 50
RHOS = (10.0, 25.0, 50.0, 100.0, 200.0)  # printed: 50
GROWTHS = (1.05, 1.1, 1.2, 1.3, 1.4)  # alpha; printed: 1.2
INSENSITIVE = 0.1  # share of the features
ACCURACY = 0.05  # "insensitive" of accuracies
SELECTION = 0.5  # true features, of ten, that are no effect


class Varied(NamedTuple):
    """A parameter of a solver with its values, the others as printed."""

    solver: str
    parameter: str
    values: tuple[float, ...]


VARIED = (
    Varied("isvm2", "lambda1", SHARES),
    Varied("isvm3", "lambda1", SHARES),
    Varied("isvm2", "lambda2", STRENGTHS),
    Varied("isvm3", "lambda2", STRENGTHS),
    Varied("isvm2", "rho", RHOS),
    Varied("isvm3", "alpha", GROWTHS),
)


class Series(NamedTuple):
    """Of each value of a parameter and draw: (values, draws)."""

    iterations: np.ndarray
    zeros: np.ndarray
    accuracies: np.ndarray
    gaps: np.ndarray
    features: int

    @classmethod
    def of(cls, runs: Sequence[Sequence[Run]]) -> Series:
        """From the runs at each value."""

        def each(number: Callable[[Run], float]) -> np.ndarray:
            return np.array([[number(run) for run in some] for some in runs], float)

        return cls(
            each(lambda run: run.iterations),
            each(lambda run: run.zeros),
            each(lambda run: run.accuracy),
            each(lambda run: run.gap),
            runs[0][0].coef.size,
        )


Found = Mapping[str, Mapping[Varied, Series]]
"""By data set."""
Selected = Mapping[simulated.Case, np.ndarray]
"""True features that ISVM3 selects at each of `RIDGES` and draw, by p and r."""


def _run(size: Size) -> Outcome:
    found = {}
    for name, (splits, l2) in _data(size).items():
        largest = [strength(split.train) / 10.0 for split in splits]
        found[name] = {
            each: Series.of([_runs(each, value, splits, largest, l2) for value in each.values])
            for each in VARIED
        }
        print(f"{name}: done", flush=True)
    return judged_parameters(found, _selected(size))


def _data(size: Size) -> dict[str, tuple[list[Split], float]]:
    """Partitions of each data set, and the lambda2 that the paper has for it."""
    width, correlation = SIMULATED
    drawn = [simulated.split_of(SIMULATED, seed) for seed in range(DRAWS[size])]
    data = {f"simulated, p {width}, r {correlation:g}": (drawn, GROUPED)}
    for name in ("colon", "leukemia"):
        if (data_root() / "data" / f"{name}.npz").exists():
            count = 1 if name in expressions.OWN_SPLIT else DRAWS[size]
            splits = [expressions.split_of(name, seed) for seed in range(count)]
            data[name] = splits, expressions.RIDGE
    return data


def _runs(
    each: Varied, value: float, splits: Sequence[Split], largest: Sequence[float], l2: float
) -> list[Run]:
    share = value if each.parameter == "lambda1" else 10.0
    strength2 = value if each.parameter == "lambda2" else l2
    pairs = zip(splits, largest, strict=True)
    return [ended(_solver(each, value), split, share * one, strength2) for split, one in pairs]


def _solver(each: Varied, value: float) -> Stopped:
    if each.parameter == "rho":
        return isvm2(value)
    if each.parameter == "alpha":
        return isvm3(value)
    return isvm2() if each.solver == "isvm2" else isvm3()


def _selected(size: Size) -> dict[simulated.Case, np.ndarray]:
    found = {}
    for case in SELECTED:
        splits = [simulated.split_of(case, seed) for seed in range(DRAWS[size])]
        l1 = [strength(split.train) for split in splits]
        found[case] = np.array(
            [
                [_true(split, one, ridge) for split, one in zip(splits, l1, strict=True)]
                for ridge in RIDGES
            ],
            float,
        )
        print(f"{case}: {found[case].mean(axis=1)}", flush=True)
    return found


def _true(split: Split, l1: float, ridge: float) -> int:
    coef = ended(isvm3(), split, l1, float(ridge)).coef
    return int(np.count_nonzero(coef[: simulated.RELEVANT]))


# ---- the verdict --------------------------------------------------------------------------------


def judged_parameters(found: Found, selected: Selected) -> Outcome:
    """By what the text says of iterations, zeros, accuracies and true features."""
    columns = ["ISVM3", *(f"lambda2 {ridge}" for ridge in RIDGES)]
    true = [
        [f"p {p}, r {r:g}", *(f"{one:.1f}" for one in row.mean(axis=1))]
        for (p, r), row in selected.items()
    ]
    said = f"""{REMARK}

True features, of {simulated.RELEVANT}

{table(columns, true)}"""
    claims = [*_orders(found), *_constants(found), _selection(selected)]
    return judged(said, claims, picture=_drawn(found))


def _drawn(found: Found) -> Figure:
    """A row a data set, a column a parameter: iterations (left axis) and zeros (right axis)."""
    kinds = ("lambda1", "lambda2", "rho", "alpha")
    figure, axes = panels(len(kinds) * len(found), len(found), legend=True)
    for k, (name, series) in enumerate(found.items()):
        for axis, kind in zip(axes[k * len(kinds) :], kinds, strict=False):
            other = axis.twinx()
            for each, one in series.items():
                if each.parameter != kind:
                    continue
                color = {"isvm2": "C0", "isvm3": "C1"}[each.solver]
                xs = each.values
                axis.plot(xs, one.iterations.mean(axis=1), "o-", color=color, label=each.solver)
                zeros = one.zeros.mean(axis=1) / one.features
                other.plot(xs, zeros, "s--", color=color, alpha=0.5, label=f"{each.solver}, zeros")
            axis.set(xlabel=kind, ylabel="iterations", title=name)
            other.set_ylabel("share of zeros")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center")
    return figure


REMARK = """With a larger alpha a run is less sparse because it ends further from the optimum: rho
grows until |u - w| is small, wherever the run then is (the gap is what the certificate proves,
relative to the objective). With a small lambda2 that ends ISVM3 early too, with more features
than ISVM2 has, true ones among them: so lambda2 matters less for the true features of ISVM3
(below) than for those of ISVM2 (Table 2). Where p is 500 it matters all the same here; the paper
gives no numbers of it, nor the p that it tried."""


def _orders(found: Found) -> list[Claim]:
    return [
        _order("a larger lambda1 takes more iterations", found, "lambda1", _steps, 1),
        _order("a larger lambda2 takes fewer", found, "lambda2", _steps, -1),
        _order("a larger alpha takes fewer", found, "alpha", _steps, -1),
        _order("a larger lambda1 gives more zeros", found, "lambda1", _share, 1),
        _order("a larger lambda2 gives fewer", found, "lambda2", _share, -1),
        _order("a larger alpha gives fewer", found, "alpha", _share, -1),
    ]


def _steps(one: Series) -> np.ndarray:
    return one.iterations


def _share(one: Series) -> np.ndarray:
    return one.zeros


def _order(
    sentence: str,
    found: Found,
    parameter: str,
    counted: Callable[[Series], np.ndarray],
    sign: int,
) -> Claim:
    """From the least value of the parameter to the largest, on the same draws; a split of the
    source has one draw, whose difference is what it is."""
    listed, verdicts = [], []
    for name, series in found.items():
        for each, one in series.items():
            if each.parameter != parameter:
                continue
            first, *_, last = counted(one)
            moved = sign * (last - first)
            verdicts.append(bool(moved[0] > 0.0) if moved.size == 1 else decided(moved))
            means = " ".join(f"{number:.0f}" for number in counted(one).mean(axis=1))
            word = {True: "", False: ", not so", None: ", undecided"}[verdicts[-1]]
            listed.append(f"{name}, {each.solver}: {means}{word}")
    return Claim(sentence, order(verdicts), "; ".join(listed))


def _constants(found: Found) -> list[Claim]:
    ranges = {
        name: np.ptp(one.zeros, axis=0) / one.features
        for name, series in found.items()
        for each, one in series.items()
        if each.parameter == "rho"
    }
    right = {
        name: np.ptp(np.concatenate([one.accuracies for one in series.values()]), axis=0)
        for name, series in found.items()
    }
    return [
        _within(
            "the zeros of ISVM2 are insensitive to rho (within"
            f" {INSENSITIVE:.0%} of the features, from {RHOS[0]:g} to {RHOS[-1]:g})",
            ranges,
            INSENSITIVE,
        ),
        _within(
            f"the accuracy is insensitive to all parameters (within {ACCURACY:g})", right, ACCURACY
        ),
    ]


def _within(sentence: str, ranges: Mapping[str, np.ndarray], bound: float) -> Claim:
    """Mean ranges over the values of parameters; of one draw the range itself."""
    verdicts = [
        bool(each[0] < bound) if each.size == 1 else alike(each, bound) for each in ranges.values()
    ]
    listed = "; ".join(
        f"{name}: {told(each) if each.size > 1 else f'{each[0]:.2g}'}"
        for name, each in ranges.items()
    )
    holds = False if False in verdicts else None if None in verdicts else True
    return Claim(sentence, holds, listed)


def _selection(selected: Selected) -> Claim:
    """By the numbers from the least to the largest lambda2 on the same draws."""
    moved = {f"p {p}, r {r:g}": row[-1] - row[0] for (p, r), row in selected.items()}
    verdicts = {case: alike(each, SELECTION) for case, each in moved.items()}
    beyond = [f"{case}: by {told(moved[case])}" for case, one in verdicts.items() if one is False]
    within = list(verdicts.values()).count(True)
    listed = f"{within} of {len(moved)} cases within, {len(beyond)} beyond"
    return Claim(
        "lambda2 from 1 to 50 does not affect the true features selected by ISVM3"
        f" (within {SELECTION:g} of ten)",
        False if beyond else None if None in verdicts.values() else True,
        f"{listed}: {'; '.join(beyond)}" if beyond else listed,
    )


TABLES = {
    "LP": PaperTable(
        "Sections 3.1 and 3.2 of Liu et al.: the parameters",
        f"""The paper tells these findings in words, of its microarrays and simulated data. Here:
colon (by chance, {DRAWS[Size.SMALL]} times; full size: {DRAWS[Size.FULL]}), leukemia as in its
source, prepared as for Table 4, and as many draws of the simulated data of Table 1 with p
{SIMULATED[0]} and r {SIMULATED[1]:g}; means over the draws. One parameter is varied, the others
are as printed: lambda1 of 10 times the largest coefficient of the linear SVM (varied: the
multiple), lambda2 of {expressions.RIDGE:g} on microarrays and {GROUPED:g} on simulated data, rho of
50, alpha of 1.2; stopped at |u - w| of 1e-4. Inferred: the values tried. An order is judged from
the least value to the largest. Sparsity is the number of zeros, as the text has it.""",
        (2.0, 15.0),
        _run,
        (f"{DRAWS[Size.SMALL]}, leukemia 1", f"{DRAWS[Size.FULL]}, leukemia 1"),
    ),
}
