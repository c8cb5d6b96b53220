"""Figures 1 and 2 of Chierchia et al. (2015): errors and zeros against the strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.multiclass_data import Split, load_split, seen
from benchmarks.papers.chierchia.models import NAMES, ONE_VS_ALL, Penalised
from benchmarks.papers.chierchia.pictures import drawn
from benchmarks.papers.claims import ERRORS, WORDS, Claim, judged, standard_error
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table
from benchmarks.scattering import scattered

__all__ = ["TABLES", "Panel", "scattering", "scattering_groups"]

# of the least C with coefficients, of each model its own
SHARES = {
    Size.SMALL: (1.5, 3, 6, 15, 40, 100, 300),
    Size.FULL: (1.5, 2, 3, 5, 10, 20, 40, 100, 300, 1000),
}
TESTED = 5000  # samples
TOL = 1e-3  # relative gap
LIMIT = 600.0  # seconds a fit, of which a busy machine gives few
SLACK = 0.5  # points: "as sparse as"
SIDE = 28  # pixels of an image
STEP = {Size.SMALL: 4, Size.FULL: 2}  # pixels from a scattering coefficient to the next

Panel = Mapping[str, np.ndarray]
"""By model: % of errors and % of zero coefficients, (draws, strengths, 2); NaN without a fit."""


@dataclass(frozen=True)
class Figure:
    """What is drawn: a panel for each number of training samples of a class."""

    data: str
    classes: int
    penalty: str
    panels: dict[Size, Sequence[int]]
    draws: dict[Size, int]
    features: Callable[[Any, Size], Any]
    groups: Callable[[Size], Any]
    claims: Callable[[Mapping[int, Panel]], list[Claim]]
    remark: str
    coarse: bool = False  # whether the small size has other features


def scattering(images: np.ndarray, size: Size) -> np.ndarray:
    """Images (n, 28 * 28) as their scattering coefficients, map after map: (n, 81 * 14 * 14)."""
    maps = scattered(images.reshape(-1, SIDE, SIDE), STEP[size])
    found: np.ndarray = maps.reshape(len(images), -1).astype(float)
    return found


def scattering_groups(size: Size) -> np.ndarray:
    """A group for each place of the maps, of 81 coefficients."""
    places = (SIDE // STEP[size]) ** 2
    return np.tile(np.arange(places), 81)


def _words(counts: Any, size: Size) -> Any:
    return counts


def _across_classes(size: Size) -> str:
    return "features"


def _run(figure: Figure, size: Size) -> Outcome:
    tested = _tested(figure, size)
    panels = {each: _panel(figure, each, size, tested) for each in figure.panels[size]}
    shares = SHARES[size]
    head = ["model", *(f"{share:g}" for share in shares)]
    body = [
        f"L/K = {each}, {figure.draws[size]} draws; columns: C over the least with coefficients\n\n"
        + table(head, [[name, *_cells(found)] for name, found in panel.items()])
        for each, panel in panels.items()
    ]
    told = "% of errors (standard deviation over the draws) / % of zeros"
    left = sum(
        int(np.isnan(one[..., 0]).sum()) for panel in panels.values() for one in panel.values()
    )
    if left:
        told += f"; nan where a draw has no certificate, {left} fits in all, which are left out"
    claims = [*_decided(figure, size, figure.claims(panels)), *_untested(figure, size)]
    if figure.remark:
        body.append(figure.remark)
    said = "\n\n".join([told, *body])
    outcome = judged(said, claims, picture=drawn(panels, shares))
    return replace(outcome, why=f"{outcome.why}; {_rests_on(figure, size)}")


def _decided(figure: Figure, size: Size, claims: Sequence[Claim]) -> list[Claim]:
    """On smaller maps differences that the paper calls slight say nothing of its own."""
    if not figure.coarse or size is Size.FULL:
        return list(claims)
    words = "other features than the paper's decide nothing"
    return [one._replace(holds=None, numbers=f"{words}; {one.numbers}") for one in claims]


def _untested(figure: Figure, size: Size) -> list[Claim]:
    """What the paper says of the other panels."""
    left = [each for each in figure.panels[Size.FULL] if each not in figure.panels[size]]
    sentence = f"the same for L/K = {_list(left)}"
    return [Claim(sentence, None, f"at `--size {Size.FULL.value}`")] if left else []


def _rests_on(figure: Figure, size: Size) -> str:
    some, every = figure.panels[size], figure.panels[Size.FULL]
    here = f"for L/K = {_list(some)}, {len(some)} of {len(every)} printed ones"
    return f"{here}, {figure.draws[size]} draws"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)


def _cells(found: np.ndarray) -> list[str]:
    pairs = zip(found.mean(axis=0), found[..., 0].std(axis=0), strict=True)
    return [f"{errors:.1f} ({spread:.1f}) / {zeros:.1f}" for (errors, zeros), spread in pairs]


def _tested(figure: Figure, size: Size) -> tuple[Any, np.ndarray]:
    """The same samples to test for all draws, as in the paper, and their classes."""
    split = load_split(f"{figure.data}:{figure.classes}")
    some = slice(TESTED)
    return figure.features(split.X_test[some], size), split.y_test[some]


def _panel(figure: Figure, each: int, size: Size, tested: tuple[Any, np.ndarray]) -> Panel:
    panel: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
    for draw in range(figure.draws[size]):
        split = load_split(f"{figure.data}:{each * figure.classes}", draw)
        split = seen(Split(split.name, figure.features(split.X, size), split.y, *tested))
        for name, found in panel.items():
            model = Penalised(name, figure.penalty, figure.groups(size), TOL, LIMIT)
            found.append(_swept(model, split, SHARES[size]))
            print(f"{split.name}, draw {draw}, {name}: {found[-1].round(1).tolist()}", flush=True)
    return {name: np.array(found) for name, found in panel.items()}


def _swept(model: Penalised, split: Split, shares: Sequence[float]) -> np.ndarray:
    """% of errors and of zeros at each strength, (strengths, 2)."""
    least, found = model.least(split), []
    for share in shares:
        fit = model.fitted(split, share * least)
        errors, zeros = fit.errors / split.y_test.size, np.mean(fit.coef == 0)
        found.append((errors, zeros) if fit.certified else (np.nan, np.nan))
    return 100.0 * np.array(found)


# ---- the text beside the figures ----------------------------------------------------------------


def _best(found: np.ndarray) -> np.ndarray:
    """Errors and zeros of each draw at the strength with the fewest errors, (draws, 2).

    A strength counts if all draws have a certificate there; NaN if none has.
    """
    means = found[..., 0].mean(axis=0)
    if np.isnan(means).all():
        return np.full((found.shape[0], 2), np.nan)
    best: np.ndarray = found[:, np.nanargmin(means)]
    return best


def _compared(
    sentence: str,
    panels: Mapping[int, Panel],
    part: int,
    others: Sequence[str],
    agrees: Callable[[float], bool],
) -> Claim:
    """Hinge's errors (part 0) or zeros (1) at its best strength less those of the others.

    ``agrees`` tells of a difference whether the sentence holds: undecided where it depends on what
    is within two standard errors, of paired differences, of the mean.
    """
    verdicts, numbers = [], []
    for each, panel in panels.items():
        ours, told = _best(panel["hinge"])[:, part], []
        for name in others:
            differences = ours - _best(panel[name])[:, part]
            mean, error = float(differences.mean()), standard_error(differences)
            held = {agrees(mean + shift * error) for shift in (-ERRORS, 0.0, ERRORS)}
            known = not np.isnan(mean + error) and len(held) == 1
            verdicts.append(held.pop() if known else None)
            told.append(f"{mean:+.1f} ± {error:.1f} ({name}: {WORDS[verdicts[-1]]})")
        numbers.append(f"L/K = {each}: {ours.mean():.1f}, {', '.join(told)}")
    return Claim(sentence, _all(verdicts), "; ".join(numbers), main=True)


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    """Whether all hold; None if those do that are known, but some are not."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _less(difference: float) -> bool:
    return difference < 0.0


def _more(difference: float) -> bool:
    return difference > 0.0


def _as_much(difference: float) -> bool:
    return abs(difference) <= SLACK


def _claims_digits(panels: Mapping[int, Panel]) -> list[Claim]:
    others = [name for name in NAMES if name != "hinge"]
    return [
        _compared("hinge is slightly more accurate than the others", panels, 0, others, _less),
        _compared("hinge is slightly more sparse than the others", panels, 1, others, _more),
    ]


def _spreads(panel: Panel) -> tuple[float, float]:
    """Mean errors of hinge and square over those of the best, at strengths where both have all
    certificates."""
    pair = [panel[name][..., 0].mean(axis=0) for name in ("hinge", "square")]
    both = ~np.isnan(pair).any(axis=0)
    if not both.any():
        return np.nan, np.nan
    one, two = (float(found[both].mean() - found[both].min()) for found in pair)
    return one, two


def _claims_text(panels: Mapping[int, Panel]) -> list[Claim]:
    spreads = {each: _spreads(panel) for each, panel in panels.items()}
    told = "; ".join(
        f"L/K = {each}: {one:.1f} against {two:.1f}" for each, (one, two) in spreads.items()
    )
    robust = _all([None if np.isnan(one - two) else one < two for one, two in spreads.values()])
    return [
        _compared("hinge is slightly more accurate than square", panels, 0, ["square"], _less),
        Claim(
            "hinge depends less on the strength (mean errors over those of the best)", robust, told
        ),
        _compared("hinge is as sparse as square", panels, 1, ["square"], _as_much),
    ]


DIGITS_REMARK = """So few samples are separable: from a few times the least C on, hinge has the
solution of the largest margin, and its columns no longer change. Square and logit tend to the same
solution as C grows, logit the slowest. So the fewest errors of square, on a grid that goes far
enough, cannot be far above those of hinge, whereas on one that ends earlier hinge is the more
accurate and the less sparse: both can be read from the columns, and the paper's strengths, as its
numbers, are not printed. One-vs-all solves other problems, with less sparse and here somewhat more
accurate classifiers. The paper calls its differences slight; it has them from 25 draws, all test
samples, and maps with four times the coefficients of those of the small size: which decides nothing
of the paper's, therefore."""
DIGITS = Figure(
    "mnist",
    10,
    "group_linf",
    {Size.SMALL: (3, 5), Size.FULL: (3, 5, 10)},
    {Size.SMALL: 6, Size.FULL: 25},
    scattering,
    scattering_groups,
    _claims_digits,
    DIGITS_REMARK,
    coarse=True,
)
TEXT = Figure(
    "news20",
    20,
    "group_l2",
    {Size.SMALL: (5,), Size.FULL: (5, 10, 50)},
    {Size.SMALL: 3, Size.FULL: 10},
    _words,
    _across_classes,
    _claims_text,
    "",
)
COMMON = f"""Fits to a certified relative gap of {TOL:g}. The figures have no numbers: the paper's
sentences are held against ours: "slightly more" is any difference of the right sign, "as sparse
as" within {SLACK:g} points, of means at the strength with the fewest errors of each model; paired
differences with their standard errors, undecided where the answer changes within two of them.
Inferred: the strengths, here multiples of the least C that leaves a coefficient, of each model its
own ({ONE_VS_ALL}: the least of its problems); {TESTED} samples to test, the same for all draws,
instead of all."""
TABLES = {
    "CF1": PaperTable(
        "Figure 1 of Chierchia et al.: MNIST, l_1,inf norm",
        f"""Two layers of scattering coefficients, 81 maps of 14 x 14 (small size: every other row
and column), a group for each place and class, L/K of 3, 5 and 10 (small size: 3 and 5), as printed;
25 draws there. {COMMON}""",
        (6.0, 180.0),
        partial(_run, DIGITS),
        tuple(str(DIGITS.draws[size]) for size in Size),
    ),
    "CF2": PaperTable(
        "Figure 2 of Chierchia et al.: News20, l_1,2 norm",
        f"""Words by tf-idf, a group for each word across the classes (as its reference [38] has
them), L/K of 5, 10 and 50 (small size: 5), as printed; 10 draws there. 130,107 words here
and 26,214 there, of which those count that the training documents have. {COMMON}""",
        (2.0, 600.0),
        partial(_run, TEXT),
        tuple(str(TEXT.draws[size]) for size in Size),
    ),
}
