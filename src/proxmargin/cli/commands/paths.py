"""``proxmargin path``, ``stability`` and ``permute``: models along a path, and chance."""

from __future__ import annotations

import argparse
import warnings
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import proxmargin
from proxmargin.cli import estimators, failures, options, output, tables
from proxmargin.cli.commands.compare import names_of
from proxmargin.cli.commands.saved import in_classes, table_for
from proxmargin.runtime.brief import Listing, number

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.models.paths import Path
    from proxmargin.models.permutations import PermutationTest
    from proxmargin.runtime.types import Estimator, Record

PERMUTATIONS = 1000
OF_HALVES = "rows of one sample in both halves make selections look stable"
OF_LABELS = (
    "labels of rows of one sample do not change places at random, so that p is too small: keep one "
    "row a sample"
)
USUAL = "DWD"  # as in DiProPerm
CHOOSING = 200  # each with a choice of the strength in every fold
NEXT = 5  # most frequent features below the threshold that are listed, too
# parameters that do not change what is fitted
OF_RUNS = frozenset({"callbacks", "verbose", "warm_start", "random_state", "n_jobs"})


def run_path(arguments: argparse.Namespace) -> int:
    from proxmargin.models.paths.descent import Ending

    estimator = estimators.estimator_of(arguments)
    name = estimators.free_strength(estimator, arguments)
    table, _ = tables.filled_table_of(arguments)
    assert table.y is not None
    estimators.tell_scales(table, arguments)
    path = proxmargin.margin_path(
        estimators.suited(estimator, table, arguments).set_params(verbose=not arguments.quiet),
        table.X,
        table.y,
        sample_weight=table.weights,
        n_alphas=arguments.n_alphas,
        eps=arguments.eps,
        stop_at=arguments.stop_at,
    )
    estimators.name_features(path.template, table.feature_names)
    rows = _path_rows(path)
    output.draw(arguments.plot, lambda ax: proxmargin.PathDisplay(path).plot(ax))
    if arguments.json:
        told = {"data": table.describe(), "model": arguments.model}
        output.print_json({**told, "ended": path.ended, "path": rows})
    else:
        print(f"{arguments.model} on {table.source}: {table.X.shape[1]} features\n")
        headings = (name, "features", "objective", "certified gap", "seconds")
        cells = [
            (
                number(row[name], ".5g"),
                str(row["features"]),
                number(row["objective"], ".8g"),
                number(row["relative_gap"], ".1e") + ("" if row["converged"] else " !"),
                number(row["seconds"], ".2g"),
            )
            for row in rows
        ]
        print(Listing(headings, cells).plain())
    if path.ended == Ending.INTERRUPTED:
        return failures.interrupted()
    return failures.OK if all(row["converged"] for row in rows) else failures.FAILED


def _path_rows(path: Path) -> list[Record]:
    from proxmargin.files.models.model import leading_features

    return [
        {
            path.strength.name: float(strength),
            "features": int(used),
            "top_features": [row["feature"] for row in leading_features(path.model(place)) or []],
            "objective": float(certificate.primal),
            "relative_gap": float(certificate.relative_gap),
            "converged": bool(certificate.converged),
            "seconds": float(certificate.seconds),
        }
        for place, (strength, used, certificate) in enumerate(
            zip(path.strengths, path.n_nonzero, path.certificates, strict=True)
        )
    ]


def run_stability(arguments: argparse.Namespace) -> int:
    estimator = estimators.estimator_of(arguments)
    estimators.free_strength(estimator, arguments)
    table, _ = tables.filled_table_of(arguments)
    output.warn_of_parted(table, OF_HALVES)
    estimators.tell_scales(table, arguments)
    model = proxmargin.StabilitySelection(
        estimators.suited(estimator, table, arguments),
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
    try:
        model.fit(table.X, table.y, sample_weight=table.weights, groups=table.groups)
    except TypeError as error:  # the model selects no features
        raise ValueError(str(error)) from error
    estimators.name_features(model, table.feature_names)
    frame = model.to_frame()
    with output.text_saved(arguments.csv, frame.to_csv(index=False)) as saved:
        _print(arguments, model, table, saved, frame.to_dict("records"))
    kind = "bars" if arguments.bars else "paths"
    output.draw(arguments.plot, lambda ax: proxmargin.StabilityDisplay(model).plot(ax, kind=kind))
    return failures.OK


def _print(
    arguments: argparse.Namespace,
    model: Estimator,
    table: Table,
    saved: str | None,
    rows: list[dict[object, object]],
) -> None:
    from proxmargin.models.paths.grid import strength_of

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
        output.print_json({**told, **facts, "stable": stable, "saved": saved})
        return
    # but for the strength, which the selection does not use
    used = copy(model.estimator)
    setattr(used, strength_of(used).name, None)
    settings = estimators.shown_settings(used)
    others = [row for row in rows if not row["stable"]][:NEXT]
    clusters = arguments.cluster is not None
    headings = ("feature", "frequency", *(("cluster",) if clusters else ()))
    cells = [
        (
            str(row["feature"]),
            number(row["frequency"], ".3f") + (" *" if row["stable"] else "  "),
            *((str(row["cluster"]),) if clusters else ()),
        )
        for row in [*stable, *others]
    ]
    print(f"{_answer(arguments, model, len(stable))}\n")
    print(Listing(headings, cells).plain())
    print()
    output.print_facts(
        {
            "model": f"{arguments.model}({settings})",
            "data": f"{table.source}, {table.X.shape[0]} samples, {table.X.shape[1]} features",
            "stable": "marked *",
            "half-samples": f"select {number(model.q_)} features"
            + (" at most" if arguments.threshold is None or model.q_ % 1 == 0 else " on average"),
            "bound": f"{arguments.assumption}; estimated share of mistakes "
            f"{number(model.fdr_, '.2g')}",
            "saved to": output.saved_to(saved, arguments.csv, "--csv"),
        }
    )


def _answer(arguments: argparse.Namespace, model: Estimator, stable: int) -> str:
    """How many features are stable, and how many of them one has to expect to be mistakes."""
    if not model.threshold_ < float("inf"):
        return f"No threshold has an estimated share of mistakes of {arguments.fdr:g} or less."
    verb, share = "is" if stable == 1 else "are", number(100 * model.threshold_, ".3g")
    found = (
        f"{stable} of {model.n_features_in_} features {verb} stable: on {share} % of "
        f"{2 * model.n_pairs} half-samples or more among the first {number(model.q_, '.3g')} to "
        "enter."
    )
    if not model.pfer_ < float("inf"):
        return f"{found} There is no bound on mistakes: the threshold is too low for so many."
    expected = f"{number(model.pfer_, '.2g')} of them expected to be there by mistake"
    alone = arguments.q is None and arguments.pfer is None and arguments.threshold is not None
    if arguments.fdr is not None or alone:
        why = "the threshold depends on the data" if not alone else "q is their mean"
        return f"{found} About {expected.replace('expected', 'are expected')}: no bound, as {why}."
    return (
        f"{found} At most {expected.replace('expected', 'are expected')}, if noise is selected no "
        "more often than by chance."
    )


def run_permute(arguments: argparse.Namespace) -> int:
    from proxmargin.models.permutations.labelings import OF_PROJECTIONS

    models = bool(arguments.models)
    estimator, table = _permuted(arguments)
    chooses = estimators.to_choose(arguments)
    usual = "balanced_accuracy" if chooses or models else "mean-difference"
    if arguments.statistic is None:
        arguments.statistic = usual
    output.warn_of_parted(table, OF_LABELS)
    count = arguments.permutations
    if count is None:
        count = CHOOSING if chooses or models else PERMUTATIONS
    if arguments.statistic not in OF_PROJECTIONS:
        options.check_folds(arguments, table, "--folds", arguments.folds)
    elif arguments.splits == options.TIME:
        raise ValueError(
            f"--splits time is of held-out samples, and {arguments.statistic} is of all: give "
            "--statistic balanced_accuracy"
        )
    if models:
        test = _choice_tested(arguments, table, count)
    else:
        test = proxmargin.permutation_test(
            estimator,
            table.X,
            table.y,
            statistic=arguments.statistic,
            n_permutations=count,
            groups=table.groups,
            cv=options.folds_of(arguments, arguments.folds),
            n_jobs=arguments.jobs,
            random_state=arguments.seed,
            verbose=not arguments.quiet,
        )
    output.draw(arguments.plot, lambda ax: proxmargin.PermutationDisplay(test).plot(ax))
    if arguments.json:
        parameters = {} if estimator is None else estimator.get_params(deep=False)
        names = ("pvalue", "zscore", "asked", "interrupted", "exact", "largest_gap")
        output.print_json(
            {
                "data": table.describe(),
                # what has to be stated with a p-value, so that others get the same from the data
                "model": arguments.model,
                "models": arguments.models,
                "parameters": {name: v for name, v in parameters.items() if name not in OF_RUNS},
                "answer": test.sentence,
                "groups": arguments.groups,
                "folds": None if test.name in OF_PROJECTIONS else arguments.folds,
                "splits": None if test.name in OF_PROJECTIONS else arguments.splits,
                "seed": arguments.seed,
                "statistic": test.name,
                "value": test.statistic,
                "permutations": test.n_permutations,
                **{name: getattr(test, name) for name in names},
                "null": test.null,
            }
        )
    else:
        print(f"{test.sentence[0].upper()}{test.sentence[1:]}.\n")
        if estimator is None:
            listed = ", ".join(arguments.models)
            print(f"{table.source}: the best of {listed}, chosen again each time\n")
        else:
            chosen = f", {chooses[0]} chosen by cross-validation each time" if chooses else ""
            settings = estimators.shown_settings(estimator)
            print(f"{arguments.model} on {table.source}: {settings}{chosen}\n")
        output.print_facts(_facts(test, table))
    return failures.interrupted() if test.interrupted else failures.OK


def _permuted(arguments: argparse.Namespace) -> tuple[Any, Table]:
    """The unfitted classifier, of the options or of a model file, and its data; none for a choice
    among models."""
    *models, arguments.data = arguments.data
    if arguments.models:
        if models or arguments.model is not None:
            raise ValueError(
                "--models is for the choice among models: leave --model, or the file, out"
            )
        return None, tables.filled_table_of(arguments)[0]
    if len(models) > 1:
        raise ValueError(f"permute takes one model file and one data file, got {len(models)} more")
    if models:
        return _of_file(models[0], arguments)
    if arguments.model is None:
        arguments.model = USUAL
        told = f"the model is {USUAL} (another: --model NAME, or permute model.pmz DATA)"
        warnings.warn(told, options.Note, stacklevel=2)
    estimator = estimators.classifier_of(arguments)
    table, _ = tables.filled_table_of(arguments)
    estimators.tell_scales(table, arguments)
    return estimators.suited(estimator, table, arguments), table


def _choice_tested(arguments: argparse.Namespace, table: Table, count: int) -> PermutationTest:
    from proxmargin.models.classifiers.elastic_net import HuberizedSVC
    from proxmargin.studies.comparing.candidates import named_candidates
    from proxmargin.studies.comparing.metrics import metric_of
    from proxmargin.studies.comparing.rows import LabelledRows
    from proxmargin.studies.publishing.folder import BestScore

    scaled = estimators.SCALING.get(arguments.standardize, options.AUTO)
    data = LabelledRows.checked(HuberizedSVC(), table.X, table.y, None, table.groups)
    scaled = not data.is_sparse if scaled == options.AUTO else bool(scaled)
    candidates = named_candidates(names_of(arguments.models, []), standardize=scaled)
    arguments.models = [each.name for each in candidates]
    metric = metric_of(arguments.statistic, "--statistic")
    measure = BestScore.of(
        candidates, data, metric, options.folds_of(arguments, arguments.folds), arguments.seed
    )
    return measure.tested(None, count, arguments.jobs, not arguments.quiet)


def _of_file(name: str, arguments: argparse.Namespace) -> tuple[Any, Table]:
    """The classifier of a model file, and its features in the data."""
    import numpy as np
    from sklearn.base import clone

    from proxmargin.data.inputs.preprocessing import Preprocessed

    typed = {word.partition("=")[0] for word in arguments.typed if word.startswith("--")}
    for given in sorted(typed & {"--model", *options.table()["sections"]["parameters"]}):
        raise ValueError(
            f"{given} is not for the model of a file: leave it out, or leave out {name}"
        )
    model = proxmargin.load_model(name)
    groups = True if arguments.groups is None else arguments.groups
    more = {"labels": arguments.labels, "unlabelled": "drop", "groups": groups}
    table = table_for(arguments, model, **more)
    labels = in_classes(table, model)
    if labels is None:
        raise ValueError(
            f"{arguments.data} has no labels to permute: name their column (--target), or a second "
            "table with them (--labels)"
        )
    classes = {str(label): label for label in model.classes_.tolist()}
    known = np.isin(labels, [*classes])
    y = np.array([classes[label] for label in labels[known].tolist()])
    ids = None if table.ids is None else table.ids[known]
    groups = None if table.groups is None else table.groups[known]
    table = replace(table, X=table.X[known], y=y, ids=ids, groups=groups)
    if isinstance(model, Preprocessed):
        with warnings.catch_warnings():  # the columns were found by their names already
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            table, model = replace(table, X=model.transformer.transform(table.X)), model.model
    arguments.model = type(model).__name__
    return estimators.in_order(clone(model), table), table


def _facts(test: PermutationTest, table: Table) -> dict[str, str]:
    kind = "all different ones" if test.exact else "drawn by chance"
    of_all = f" of {test.asked} (interrupted)" if test.interrupted else ""
    if table.groups is not None and table.y is not None:
        count = len(set(table.groups.tolist()))
        pairs = {*zip(table.groups.tolist(), table.y.tolist(), strict=True)}
        kind += f", of {count} whole groups" if len(pairs) == count else f", within {count} groups"
    return {
        test.name: number(test.statistic, ".6g"),
        "p-value": number(test.pvalue, ".4g"),
        "z-score": number(test.zscore, ".3g"),
        "permutations": f"{test.n_permutations}{of_all}, {kind}",
        "largest gap": number(test.largest_gap, ".1e"),
    }
