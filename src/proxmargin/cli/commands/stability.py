"""``proxmargin stability``: features that are selected on most halves of the samples."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from proxmargin.cli import failures
from proxmargin.cli.models import (
    add_model_options,
    estimator_of,
    free_strength,
    name_features,
    shown_settings,
    suited,
)
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
from proxmargin.cli.saving import saved_first, text_replaced
from proxmargin.comparing.layout import Listing, number

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table

__all__ = ["register"]

NEXT = 5  # most frequent features below the threshold that are listed, too


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "stability", run, "find features that are selected on most halves of the samples"
    )
    add_data(parser)
    add_impute(parser)
    add_weights(parser)
    add_model_options(parser)
    group = parser.add_argument_group(
        "selection (two of --threshold, --pfer and --q give the third; default: 0.75 and 1)"
    )
    group.add_argument("--threshold", type=float, help="least share of the half-samples")
    group.add_argument("--pfer", type=float, help="bound on the expected number of mistakes")
    group.add_argument("--q", type=int, help="features that a half-sample selects")
    group.add_argument(
        "--fdr", type=float, help="with --q: estimated share of mistakes that sets the threshold"
    )
    group.add_argument(
        "--assumption",
        choices=("none", "unimodal", "r-concave"),
        default="unimodal",
        help="of the bound (default: unimodal)",
    )
    group.add_argument("--pairs", type=int, default=50, help="pairs of halves (default: 50)")
    group.add_argument(
        "--n-strengths", type=int, default=30, help="how many alphas, or C (default: 30)"
    )
    group.add_argument(
        "--eps", type=float, default=0.01, help="how far they go (default: 0.01; as of a path)"
    )
    group.add_argument(
        "--cluster", type=float, metavar="R", help="report features correlated by R or more as one"
    )
    group.add_argument("--seed", type=int, default=0, help="draws the halves (default: 0)")
    group.add_argument("--jobs", type=int, metavar="N", help="threads (-1: all cores)")
    group.add_argument(
        "--checkpoint", metavar="FILE", help="keep finished half-samples, and continue from them"
    )
    group.add_argument("--csv", metavar="FILE", help="write the frequencies of all features")
    add_plot(parser, "the frequencies")
    parser.add_argument(
        "--bars", action="store_true", help="draw bars of the most frequent features instead"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments.csv)
    check_plot(arguments.plot)
    estimator = estimator_of(arguments)
    free_strength(estimator, arguments)
    table, _ = filled_table_of(arguments)
    model = _selector(arguments, suited(estimator, table.X, arguments))
    try:
        model.fit(table.X, table.y, sample_weight=table.weights)
    except TypeError as error:  # the model selects no features
        raise ValueError(str(error)) from error
    name_features(model, table.feature_names)
    with saved_first(arguments.csv, lambda name: _write(model, name)) as saved:
        _print(arguments, model, table, saved)
    if arguments.plot is not None:
        from proxmargin.displays.strengths import StabilityDisplay

        with picture(arguments.plot) as axes:
            StabilityDisplay(model).plot(axes, kind="bars" if arguments.bars else "paths")
    return failures.OK


def _selector(arguments: argparse.Namespace, estimator: Any) -> Any:
    from proxmargin.selection.stability.selector import StabilitySelection

    return StabilitySelection(
        estimator,
        n_pairs=arguments.pairs,
        threshold=arguments.threshold,
        pfer=arguments.pfer,
        q=arguments.q,
        fdr=arguments.fdr,
        assumption=arguments.assumption,
        alphas=arguments.n_strengths,
        eps=arguments.eps,
        cluster=arguments.cluster,
        checkpoint=arguments.checkpoint,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        verbose=not arguments.quiet,
    )


def _write(model: Any, name: str) -> None:
    with text_replaced(name) as stream:
        model.to_frame().to_csv(stream, index=False)


def _print(arguments: argparse.Namespace, model: Any, table: Table, saved: str | None) -> None:
    rows = _rows(model)
    stable = [row for row in rows if row["stable"]]
    facts = {
        "q": model.q_,
        "threshold": model.threshold_,
        "pfer": model.pfer_,
        "fdr_estimate": model.fdr_,
    }
    if arguments.json:
        told = {
            "data": table.describe(),
            "model": arguments.model,
            "half_samples": 2 * model.n_pairs,
            "n_features": model.n_features_in_,
            "n_pairs": model.n_pairs,
            "assumption": model.assumption,
            "seed": model.random_state,
        }
        print_json({**told, **facts, "stable": stable, "saved": saved})
        return
    others = [row for row in rows if not row["stable"]][:NEXT]
    print_listing(_listing([*stable, *others], arguments.cluster is not None))
    print()
    print_facts(
        {
            "model": f"{arguments.model}({shown_settings(_without_strength(model.estimator))})",
            "data": f"{table.source}, {table.X.shape[0]} samples, {table.X.shape[1]} features",
            "stable": f"{len(stable)} (marked *), on {number(model.threshold_)} of "
            f"{2 * model.n_pairs} half-samples or more",
            "half-samples": f"select {number(model.q_)} features"
            + (" at most" if arguments.threshold is None or model.q_ % 1 == 0 else " on average"),
            "mistakes": _mistakes(arguments, model),
            "saved to": saved or ("nothing" if arguments.csv else "nothing (no --csv)"),
        }
    )


def _mistakes(arguments: argparse.Namespace, model: Any) -> str:
    """The bound on false selections, or what stands in its place."""
    if not model.threshold_ < float("inf"):
        return f"no threshold has an estimated share of {arguments.fdr:g} or less"
    if not model.pfer_ < float("inf"):
        return "no bound: the threshold is too low for so many features of a half-sample"
    expected = f"{number(model.pfer_, '.3g')} expected ({arguments.assumption})"
    share = f"; estimated share {number(model.fdr_, '.2g')}"
    if arguments.fdr is not None:
        return f"estimated: {expected}, no bound as the threshold depends on the data{share}"
    if arguments.q is None and arguments.pfer is None and arguments.threshold is not None:
        return f"estimated: {expected}, for the mean number of features{share}"
    return f"at most {expected}{share}"


def _without_strength(estimator: Any) -> Any:
    """A copy without the value of its strength, which the selection does not use."""
    from copy import copy

    from proxmargin.paths.strength import strength_of

    shown = copy(estimator)
    setattr(shown, strength_of(estimator).name, None)
    return shown


def _rows(model: Any) -> list[dict[str, Any]]:
    """All features, the most frequent first."""
    rows: list[dict[str, Any]] = model.to_frame().to_dict("records")
    return rows


def _listing(rows: list[dict[str, Any]], clusters: bool) -> Listing:
    headings = ("feature", "frequency", *(("cluster",) if clusters else ()))
    cells = [
        (
            str(row["feature"]),
            number(row["frequency"], ".3f") + (" *" if row["stable"] else "  "),
            *((str(row["cluster"]),) if clusters else ()),
        )
        for row in rows
    ]
    return Listing(headings, cells)
