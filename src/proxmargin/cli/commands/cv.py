"""``proxmargin cv``: the strength of a model's penalty, chosen by cross-validation."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.models import add_model_options, name_features, shown_settings, suited
from proxmargin.cli.options import (
    Commands,
    add_common,
    add_data,
    add_impute,
    add_weights,
    filled_table_of,
    subcommand,
)
from proxmargin.cli.output import check_output, print_facts, print_json, print_listing
from proxmargin.cli.pictures import add_plot, check_plot, picture
from proxmargin.cli.saving import saved_first, with_imputer
from proxmargin.cli.search import search_of, strength_and_kind
from proxmargin.comparing.layout import Listing, number

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table

__all__ = ["register"]

# columns that do not tell strengths apart
OF_FITS = frozenset({"gamma", "mean_test_score", "standard_error", "folds"})


def register(commands: Commands) -> None:
    parser = subcommand(commands, "cv", run, "choose the strength of a model by cross-validation")
    add_data(parser)
    add_impute(parser)
    add_weights(parser)
    add_model_options(parser)
    search = parser.add_argument_group("cross-validation")
    search.add_argument(
        "--n-strengths", type=int, default=20, help="how many alphas, or C (default: 20)"
    )
    search.add_argument(
        "--eps", type=float, default=1e-3, help="how far they go (default: 0.001; as of a path)"
    )
    search.add_argument(
        "--l1-ratios", type=float, nargs="+", metavar="RATIO", help="to try (default: 1)"
    )
    search.add_argument(
        "--relaxed",
        action="store_true",
        help="also mix with fits of the same features without a penalty, by gamma in [0, 1]",
    )
    search.add_argument("--folds", type=int, default=5, help="stratified (default: 5)")
    search.add_argument(
        "--scoring", help="a name of scikit-learn's (default: the mean loss of the model, negated)"
    )
    search.add_argument(
        "--selection",
        choices=("best", "1se"),
        default="best",
        help="the best mean score, or the strongest penalty within one standard error of it",
    )
    search.add_argument("--jobs", type=int, metavar="N", help="threads (-1: all cores)")
    add_plot(parser, "the scores")
    parser.add_argument("-o", "--output", metavar="FILE", help="save the chosen model")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.files.models.model import save_model

    check_output(arguments.output)
    check_plot(arguments.plot)
    model = _search(arguments)
    table, imputer = filled_table_of(arguments)
    try:
        suited(model, table.X, arguments).fit(table.X, table.y, sample_weight=table.weights)
    except KeyboardInterrupt:
        if not _print_complete(arguments, model, table):
            raise
        return failures.interrupted()
    chosen = model.best_estimator_
    name_features(chosen, table.feature_names)
    whole = with_imputer(chosen, imputer)
    with saved_first(arguments.output, lambda name: save_model(whole, name)) as saved:
        _print(arguments, model, table, saved)
    if arguments.plot is not None:
        from proxmargin.displays.strengths import CVDisplay

        with picture(arguments.plot) as axes:
            CVDisplay.from_estimator(model, ax=axes)
    # a mixture with an unpenalised fit is not meant to be a minimiser
    is_mixed = getattr(model, "gamma_", 1.0) < 1.0
    return failures.OK if is_mixed or chosen.certificate_.converged else failures.FAILED


def _search(arguments: argparse.Namespace) -> Any:
    """The classifier that chooses, with the parameters that the options describe."""
    strength, kind = strength_and_kind(arguments)
    known = set(kind._get_param_names())
    for given in (strength, "l1_ratio", "eta"):
        if getattr(arguments, given) is not None:
            instead = "give --l1-ratios" if given == "l1_ratio" else f"leave out --{given}"
            raise ValueError(f"cross-validation chooses {given} itself: {instead}")
    settings: dict[str, Any] = {}
    if arguments.l1_ratios is not None:
        if "l1_ratios" not in known:
            raise ValueError(f"{arguments.model} has no parameter for --l1-ratios")
        settings["l1_ratios"] = tuple(arguments.l1_ratios)
    if arguments.relaxed:
        if "relaxed" not in known:
            raise ValueError(f"{arguments.model} has no parameter for --relaxed")
        settings["relaxed"] = True
    return search_of(
        arguments,
        **settings,
        **{f"{strength}s": arguments.n_strengths},
        eps=arguments.eps,
        cv=arguments.folds,
        scoring=arguments.scoring,
        selection=arguments.selection,
        n_jobs=arguments.jobs,
    )


def _print(arguments: argparse.Namespace, model: Any, table: Table, saved: str | None) -> None:
    from proxmargin.files.models.model import describe_model

    rows, facts = _rows(model), describe_model(model)
    if arguments.json:
        print_json(
            {
                "data": table.describe(),
                "chosen": rows[model.best_index_],
                "one_standard_error": rows[_simplest(model)],
                "scores": rows,
                "model": facts,
                "saved": saved,
            }
        )
        return
    chosen, simplest = model.best_index_, _simplest(model)
    print_listing(_listing(rows, chosen, simplest))
    print("* chosen, + the strongest penalty within one standard error of the best\n")
    print_facts(
        {
            "model": f"{facts['estimator']}({shown_settings(model.best_estimator_)})",
            **({"gamma": f"{model.gamma_:g} of the penalised fit"} if arguments.relaxed else {}),
            "data": f"{table.source}, {table.X.shape[0]} samples, {len(facts['classes'])} classes",
            "features": f"{facts['features_used']} of {facts['features']} used",
            "certificate": model.certificate_,
            "saved to": saved or ("nothing" if arguments.output else "nothing (no --output)"),
        }
    )


def _print_complete(arguments: argparse.Namespace, model: Any, table: Table) -> bool:
    """The scores on the folds that were complete when the search was interrupted, if any."""
    if not hasattr(model, "cv_scores_"):
        return False
    shown = model._of_complete_folds()
    complete, count = shown.cv_scores_.shape[2], model.cv_scores_.shape[2]
    if not complete:
        return False
    rows = _rows(shown)
    if arguments.json:
        print_json({"data": table.describe(), "complete_folds": complete, "scores": rows})
    else:
        print_listing(_listing(rows))
        print(f"\ninterrupted: {complete} of {count} folds are complete")
    return True


def _rows(model: Any) -> list[dict[str, Any]]:
    """The results of each strength, in the order of ``cv_results_``."""
    frame = model.cv_results_
    names = ["l1_ratio", "gamma", model.strength.name, "mean_test_score", "standard_error"]
    shown = frame[[name for name in names if name in frame]]
    return [
        {**row, "folds": [float(score) for score in folds]}
        for row, folds in zip(
            shown.to_dict("records"),
            model.cv_scores_.reshape(len(frame), -1),
            strict=True,
        )
    ]


def _simplest(model: Any) -> int:
    """The place among the rows of what ``selection='1se'`` chooses."""
    from proxmargin.selection.results import within_one_error

    row, column = within_one_error(model.cv_scores_)
    return int(row * model.cv_scores_.shape[1] + column)


def _listing(
    rows: list[dict[str, Any]], chosen: int | None = None, simplest: int | None = None
) -> Listing:
    """One row for each strength, with the gamma of the best score there or of the choice."""
    names = [name for name in rows[0] if name not in ("standard_error", "folds")]
    marks = {simplest: " +"} | {chosen: " *+" if chosen == simplest else " *"}
    cells = [
        (
            *(number(rows[place][name], ".5g") for name in names),
            number(rows[place]["standard_error"], ".2g") + marks.get(place, ""),
        )
        for place in _shown(rows, [place for place in (chosen, simplest) if place is not None])
    ]
    headings = [name.replace("_test_", " ") for name in names]
    return Listing((*headings, "standard error"), cells)


def _shown(rows: list[dict[str, Any]], first: list[int]) -> list[int]:
    """The places of one row for each strength: those of ``first``, else of the highest mean."""
    strengths = [tuple(row[name] for name in row if name not in OF_FITS) for row in rows]
    means = [row["mean_test_score"] for row in rows]
    order = sorted(range(len(rows)), key=lambda place: (math.isnan(means[place]), -means[place]))
    best: dict[tuple[float, ...], int] = {}
    for place in [*first, *order]:
        best.setdefault(strengths[place], place)
    return [best[strength] for strength in dict.fromkeys(strengths)]
