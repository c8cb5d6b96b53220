"""``proxmargin permute``: a permutation test of a model's direction."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

from proxmargin.cli import failures
from proxmargin.cli.models import add_model_options, estimator_of, shown_settings, suited
from proxmargin.cli.options import Commands, add_common, add_data, subcommand, table_of
from proxmargin.cli.output import print_facts, print_json
from proxmargin.cli.pictures import add_plot, check_plot, picture
from proxmargin.comparing.layout import number

if TYPE_CHECKING:
    from proxmargin.permutations import PermutationTest

__all__ = ["register"]

# parameters that do not change what is fitted
OF_RUNS = frozenset({"callbacks", "verbose", "warm_start", "random_state", "n_jobs"})


class _Unweighted(argparse.Action):
    """``--weights`` of the other commands."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        parser.error(
            "a permutation test takes no weights, as permuted labels are equally likely only among "
            "samples that weigh the same: leave the column out with --ignore COL"
        )


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "permute", run, "test whether permuted labels would be separated as well"
    )
    add_data(parser)
    parser.add_argument("--weights", nargs="?", action=_Unweighted, help=argparse.SUPPRESS)
    add_model_options(parser)
    test = parser.add_argument_group("permutation test")
    test.add_argument(
        "--statistic",
        default="mean-difference",
        help="'mean-difference' (default), 't' or 'auc' of the projections, or 'accuracy'",
    )
    test.add_argument(
        "--permutations", type=int, default=1000, metavar="N", help="how many (default: 1000)"
    )
    test.add_argument(
        "--groups",
        metavar="COL",
        help="a column of pairs, batches or centres, within which labels are permuted; no feature",
    )
    test.add_argument("--folds", type=int, default=5, help="for the accuracy (default: 5)")
    test.add_argument("--seed", type=int, default=0, help="of the permutations (default: 0)")
    test.add_argument("--jobs", type=int, metavar="N", help="parallel jobs (-1: all cores)")
    add_plot(parser, "the null distribution")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    from proxmargin.permutations import permutation_test

    check_plot(arguments.plot)
    estimator, table = estimator_of(arguments), table_of(arguments)
    test = permutation_test(
        suited(estimator, table.X, arguments),
        table.X,
        table.y,
        statistic=arguments.statistic,
        n_permutations=arguments.permutations,
        groups=table.groups,
        cv=arguments.folds,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        verbose=not arguments.quiet,
    )
    if arguments.plot is not None:
        from proxmargin.displays.fits import PermutationDisplay

        with picture(arguments.plot) as axes:
            PermutationDisplay(test).plot(axes)
    if arguments.json:
        told = {"data": table.describe(), **_asked(arguments, estimator)}
        print_json({**told, **_numbers(test), "null": test.null})
    else:
        print(f"{arguments.model} on {table.source}: {shown_settings(estimator)}\n")
        print_facts(_facts(test, table.groups))
    return failures.interrupted() if test.interrupted else failures.OK


def _asked(arguments: argparse.Namespace, estimator: Any) -> dict[str, Any]:
    """What has to be stated with a p-value, so that others get the same from the data."""
    parameters = estimator.get_params(deep=False)
    return {
        "model": arguments.model,
        "parameters": {name: each for name, each in parameters.items() if name not in OF_RUNS},
        "groups": arguments.groups,
        "folds": arguments.folds if arguments.statistic.startswith("accuracy") else None,
        "seed": arguments.seed,
    }


def _numbers(test: PermutationTest) -> dict[str, Any]:
    return {
        "statistic": test.name,
        "value": test.statistic,
        "pvalue": test.pvalue,
        "zscore": test.zscore,
        "permutations": test.n_permutations,
        "asked": test.asked,
        "interrupted": test.interrupted,
        "exact": test.exact,
        "largest_gap": test.largest_gap,
    }


def _facts(test: PermutationTest, groups: Any) -> dict[str, str]:
    kind = "all different ones" if test.exact else "drawn by chance"
    of_all = f" of {test.asked} (interrupted)" if test.interrupted else ""
    if groups is not None:
        kind += f", within {len(set(groups.tolist()))} groups"
    return {
        test.name: number(test.statistic, ".6g"),
        "p-value": number(test.pvalue, ".4g"),
        "z-score": number(test.zscore, ".3g"),
        "labelings": f"{test.n_permutations}{of_all}, {kind}",
        "largest gap": number(test.largest_gap, ".1e"),
    }
