"""Table 1 of Chierchia et al. (2015): errors and non-zero coefficients on the leukemia data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import standardized
from benchmarks.multiclass_data import Split, genes
from benchmarks.papers.chierchia import printed
from benchmarks.papers.chierchia.models import NAMES, Fit, Penalised
from benchmarks.papers.chierchia.printed import LEUKEMIA
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table

__all__ = ["TABLES", "judged_variants", "per_sample"]

BLOCK = 5  # genes in a group, printed
BLOCKS = printed.GENES // BLOCK
FLOOR, CEILING = 100.0, 16_000.0  # intensities, bounds usual for these data (Dudoit et al. 2002)
SHARES = {
    Size.SMALL: (1.5, 2, 3, 4, 6, 10, 15, 30, 100),
    Size.FULL: tuple(np.geomspace(1.2, 300, 40).round(2).tolist()),
}
TOL = 1e-4  # relative gap
LIMIT = 20.0  # seconds a fit
NEAR = 2  # errors of 34: the standard deviation of a binomial count at 6% is 1.4
FACTOR = 2.0  # of two totals of non-zeros that agree

Fits = Mapping[str, Mapping[str, Fit]]
"""By penalty and model."""


class Variant(NamedTuple):
    """What is not printed: how the data are prepared, which genes form a group."""

    title: str
    prepared: Callable[[np.ndarray], np.ndarray]
    groups: np.ndarray


def per_sample(X: np.ndarray) -> np.ndarray:
    """Each sample with mean 0 and standard deviation 1 over its genes."""
    found: np.ndarray = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    return found


def _of_logarithms(X: np.ndarray) -> np.ndarray:
    return per_sample(np.log10(np.clip(X, FLOOR, CEILING)))


_ORDER = np.arange(printed.GENES)
SCALED_SAMPLES = (
    Variant("intensities, groups of neighbours", per_sample, _ORDER // BLOCK),
    Variant(f"intensities, groups of every {BLOCKS}th gene", per_sample, _ORDER % BLOCKS),
    Variant("logarithms, groups of neighbours", _of_logarithms, _ORDER // BLOCK),
)
SCALED_GENES = Variant("genes standardised, groups of neighbours", standardized, _ORDER // BLOCK)
VARIANTS = {Size.SMALL: SCALED_SAMPLES, Size.FULL: (*SCALED_SAMPLES, SCALED_GENES)}


def _run(size: Size) -> Outcome:
    return judged_variants({one.title: _fits(one, size) for one in VARIANTS[size]})


def _fits(variant: Variant, size: Size) -> Fits:
    """Of each model the fit at its best strength."""
    X, y, train = genes("leukemia3")
    X = variant.prepared(X)
    split = Split("leukemia3", X[train], y[train], X[~train], y[~train])
    found: dict[str, dict[str, Fit]] = {}
    for penalty in LEUKEMIA:
        groups = variant.groups if penalty.startswith("group") else None
        for name in NAMES:
            model = Penalised(name, penalty, groups, TOL, LIMIT)
            least = model.least(split)
            fits = [model.fitted(split, share * least) for share in SHARES[size]]
            best = min(fits, key=lambda fit: (fit.errors, sum(fit.nonzeros)))
            found.setdefault(penalty, {})[name] = best
            print(f"{variant.title}, {penalty}, {name}: {_cell(best)}", flush=True)
    return found


def _cell(fit: Fit | printed.Cell) -> str:
    return f"{fit.errors}; {' + '.join(str(count) for count in fit.nonzeros)}"


def judged_variants(found: Mapping[str, Fits]) -> Outcome:
    """By the variant with the most cells near the printed ones."""
    title = max(found, key=lambda one: sum(_is_near(found[one]).values()))
    parts = [f"Printed: errors of {printed.TESTED}; non-zeros of each class\n\n{_table(LEUKEMIA)}"]
    parts += [f"Ours, {name}\n\n{_table(fits)}" for name, fits in found.items()]
    body = f"Judged by: {title}.\n\n" + "\n\n".join(parts)
    return judged(body, _claims(found[title]), _numbers(found[title]))


def _table(cells: Mapping[str, Mapping[str, Fit | printed.Cell]]) -> str:
    rows = [[penalty, *(_cell(row[name]) for name in NAMES)] for penalty, row in cells.items()]
    return table(["penalty", *NAMES], rows)


def _is_near(fits: Fits) -> dict[str, bool]:
    return {
        f"{name} with {penalty}": abs(fits[penalty][name].errors - cell.errors) <= NEAR
        for penalty, row in LEUKEMIA.items()
        for name, cell in row.items()
    }


def _claims(fits: Fits) -> list[Claim]:
    near = _is_near(fits)
    far = [cell for cell, is_near in near.items() if not is_near]
    hinge, square = ([fits[p][name].errors for p in LEUKEMIA] for name in ("hinge", "square"))
    quadratic, *sparse = hinge
    kept = max(sum(fits[p][name].nonzeros) for p in list(LEUKEMIA)[1:] for name in NAMES)
    return [
        Claim(
            f"errors within {NEAR} of the printed ones, with every penalty and model",
            not far,
            f"{len(near) - len(far)} of {len(near)}" + (f"; not {', '.join(far)}" if far else ""),
        ),
        Claim(
            "hinge is often more accurate than square, here: never less",
            all(one <= other for one, other in zip(hinge, square, strict=True)),
            f"{hinge} against {square}",
        ),
        Claim(
            "a sparse norm with hinge has no more errors than the quadratic one",
            min(sparse) <= quadratic,
            f"{sparse} against {quadratic}",
        ),
        Claim(
            "a small set of features: at most 5% of the coefficients",
            kept <= 0.05 * 3 * printed.GENES,
            f"at most {kept} of {3 * printed.GENES}",
        ),
    ]


def _numbers(fits: Fits) -> list[Claim]:
    equal = sum(
        fits[penalty][name].errors == cell.errors
        for penalty, row in LEUKEMIA.items()
        for name, cell in row.items()
    )
    ratios = [
        sum(fits[penalty][name].nonzeros) / sum(cell.nonzeros)
        for penalty, row in LEUKEMIA.items()
        for name, cell in row.items()
    ]
    near = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios)
    return [
        Claim("the printed errors", equal == len(ratios), f"{equal} of {len(ratios)} are equal"),
        Claim(
            f"totals of non-zeros within a factor of {FACTOR:g} of the printed ones",
            near == len(ratios),
            f"{near} of {len(ratios)}",
        ),
    ]


TABLES = {
    "C1": PaperTable(
        "Table 1 of Chierchia et al.: leukemia, three classes",
        f"""38 samples to train, 34 to test, blocks of {BLOCK} genes, for each model the strength
with the fewest test errors, as printed; of equal errors here the fewest non-zeros, of
{len(SHARES[Size.SMALL])} strengths (full size: {len(SHARES[Size.FULL])}), multiples of the least C
that leaves a coefficient (l2: of one over the mean squared norm). Not printed is how the data are
prepared. Here each sample is scaled to mean 0 and standard deviation 1, intensities or logarithms
of those between {FLOOR:g} and {CEILING:g}; at the full size also each gene instead. Nor is it
printed which genes form a block. Fits to a certified relative gap of {TOL:g}.""",
        (2.0, 8.0),
        _run,
    )
}
