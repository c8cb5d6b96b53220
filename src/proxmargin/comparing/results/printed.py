"""A comparison in words: the answer, the table, what is said under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmargin.comparing.evaluating.candidates import MAJORITY
from proxmargin.comparing.evidence import LIKELY
from proxmargin.comparing.results.layout import Listing, number
from proxmargin.comparing.results.standings import deviation
from proxmargin.stats.scores import CONFIDENCE, INTERVAL, ROPE, percent

if TYPE_CHECKING:
    from proxmargin.comparing.comparison import Comparison
    from proxmargin.comparing.evaluating.work import Outcome
    from proxmargin.comparing.results.standings import ModelResult
    from proxmargin.comparing.running.setup import Setup

__all__ = ["TOP_FEATURES", "answer", "fold_row", "listing", "remarks", "table_rows"]

TOP_FEATURES = 10
RECOMMENDED = "**"  # mark of the recommended model
EQUIVALENT = "*"  # of those not distinguishable from the best
BEHIND = ""  # of the others


def answer(comparison: Comparison) -> str:
    """The recommended model, its score, and the models not distinguishable from it."""
    evidence, name = comparison.evidence(), comparison.recommended_
    if name is None:
        return "No model can be recommended: no fold is complete."
    row, label = evidence.row(name), comparison.setup.scoring
    used = _standing(comparison, name).features_used
    sentence = (
        f"Recommended: {name}: its {label} is {row['mean']:.3f} {_interval(row)}, with "
        f"{number(used, '.3g')} of {comparison.setup.n_features} features"
    )
    others = [each for each in comparison.equivalent_ if each != name]
    told = "" if name == comparison.best_name_ else _why(comparison, name)
    if not others:
        alone = "all other models are worse" if len(comparison.names) > 1 else ""
        return f"{sentence}; {alone}." if alone else f"{sentence}."
    return f"{sentence}{told}; not distinguishable from the best: {', '.join(others)}."


def _why(comparison: Comparison, name: str) -> str:
    best = comparison.best_name_
    mean = comparison.evidence().row(best)["mean"]
    used = {each.model: each.features_used for each in comparison.standings}
    fewer = f"; {name} uses fewer features" if used[name] < used[best] else ""
    return f" (the best mean is that of {best}, {mean:.3f}{fewer})"


def listing(comparison: Comparison) -> Listing:
    """The table as it is printed, with always predicting the majority as its last row."""
    setup, standings = comparison.setup, comparison.standings
    names = list(dict.fromkeys(name for s in standings for name in s.settings))
    headings = [
        "model",
        "",
        setup.scoring,
        INTERVAL,
        "features used",
        "stability",
        "seconds",
        "certified gap",
    ]
    rows = [
        [*_cells(comparison, each), *(_shown(each.settings.get(name)) for name in names)]
        for each in standings
    ]
    if any(each.model == MAJORITY for each in standings):
        return Listing([*headings, *names], rows)
    values = setup.majority[setup.protocol.scoring.name]
    spread = _plus_minus(comparison.majority, deviation(values))
    last = [MAJORITY, "", spread, *[""] * (len(headings) - 3 + len(names))]
    return Listing([*headings, *names], [*rows, last])


def _cells(comparison: Comparison, standing: ModelResult) -> list[str]:
    row = comparison.row(standing.model)
    return [
        standing.model,
        _mark(comparison, standing.model),
        _plus_minus(standing.score_mean, standing.score_sd),
        _interval(row),
        number(standing.features_used, ".1f"),
        number(standing.stability, ".2f"),
        number(standing.seconds_per_fit, ".2g"),
        number(standing.relative_gap, ".1e"),
    ]


def _mark(comparison: Comparison, name: str) -> str:
    if name == comparison.recommended_:
        return RECOMMENDED
    return EQUIVALENT if name in comparison.equivalent_ else BEHIND


def _interval(row: dict[str, Any]) -> str:
    if np.isnan(row["low"]):
        return "-"
    return f"[{row['low']:.3f}, {row['high']:.3f}]"


def _plus_minus(mean: float, spread: float) -> str:
    return f"{number(mean, '.3f')} ± {number(spread, '.3f')}"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return format(value, ".3g") if isinstance(value, float) else str(value)


def remarks(comparison: Comparison) -> Iterator[str]:
    """What is said under the table, without the notes."""
    yield (
        f"{EQUIVALENT} not distinguishable from the best (differences over the folds, "
        f"{percent(1 - CONFIDENCE)} in all pairs together); {RECOMMENDED} recommended: the "
        f"simplest of these that is not worse by more than {ROPE} with a probability above "
        f"{percent(LIKELY)}. Scores are of rows that no choice has seen; "
        "that of the best is a little optimistic, because it is the best of "
        f"{len(comparison.names)}."
        if len(comparison.names) > 1
        else ""
    )
    recommended, best = comparison.recommended_, comparison.best_name_
    if recommended is not None:
        same = " and best" if recommended == best else ""
        yield from _model_remarks(comparison, recommended, f"Recommended{same}")
    if recommended != best:
        yield _model_remark(comparison, best, "Best")


def _model_remarks(comparison: Comparison, name: str, heading: str) -> Iterator[str]:
    """The model that is fitted on all samples: settings, largest weights, certificate."""
    yield _model_remark(comparison, name, heading)
    yield _features_remark(comparison, name)
    certificate = getattr(comparison.models_.get(name), "certificate_", None)
    if certificate is not None:
        yield f"Certificate: {certificate}."


def _model_remark(comparison: Comparison, name: str, heading: str) -> str:
    final = comparison.final(name)
    if final is None:
        return ""
    settings = ", ".join(f"{k}={_shown(v)}" for k, v in final.settings.items())
    return (
        f"{heading}: {name}({settings}), fitted on all samples; it uses "
        f"{final.features_used} of {comparison.setup.n_features} features."
    )


def _features_remark(comparison: Comparison, name: str) -> str:
    top, classes = comparison.top_features(model=name), comparison.setup.classes
    if not top:
        return ""
    if len(classes) == 2:
        headings = ["feature", "weight"]
        rows = [[name, f"{weight:+.3g}"] for name, weight, _ in top]
        positive = f"; positive speaks for {classes[1]}"
    else:
        headings = ["feature", "weight", "class"]
        rows = [[name, f"{weight:+.3g}", label] for name, weight, label in top]
        positive = ", for the class where it is largest"
    title = f"Largest weights (coefficient per standard deviation of the feature{positive}):"
    return f"{title}\n{Listing(headings, rows).plain()}"


def table_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The rows of `Comparison.table`."""
    _, *others = comparison.setup.protocol.metrics
    for each in comparison.standings:
        row = comparison.row(each.model)
        yield {
            "model": each.model,
            "score_mean": each.score_mean,
            "score_sd": each.score_sd,
            "score_low": row["low"],
            "score_high": row["high"],
            "p_holm": row["p_holm"],
            "p_equal": row["p_equal"],
            "equivalent": row["equivalent"],
            **{m.name: comparison.row(each.model, m.name)["mean"] for m in others},
            "features_used": each.features_used,
            "stability": each.stability,
            "seconds_per_fit": each.seconds_per_fit,
            "relative_gap": each.relative_gap,
            "folds": each.folds,
            "kind": each.kind,
            **each.settings,
        }


def fold_row(outcome: Outcome, setup: Setup) -> dict[str, Any]:
    """A row of `Comparison.folds`."""
    assert outcome.fold is not None
    return {
        "model": outcome.model,
        "repeat": outcome.fold // setup.n_folds,
        "fold": outcome.fold % setup.n_folds,
        "score": outcome.scores[setup.protocol.scoring.name],
        **outcome.scores,
        "features_used": outcome.features_used,
        "seconds": outcome.seconds,
        "relative_gap": outcome.relative_gap,
        "fits_unmet": outcome.tally.unmet,
        **outcome.settings,
    }


def _standing(comparison: Comparison, name: str) -> ModelResult:
    found: Sequence[ModelResult] = comparison.standings
    return next(each for each in found if each.model == name)
