"""``proxmargin fit`` and ``cv``: one model on one data set; the strength of its penalty."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import proxmargin
from proxmargin.cli import estimators, failures, options, output, tables
from proxmargin.runtime.brief import Listing, number

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Estimator, Record

# columns that do not tell strengths apart
OF_FITS = frozenset({"gamma", "mean_test_score", "standard_error", "folds"})


def run_fit(arguments: argparse.Namespace) -> int:
    chooses = estimators.to_choose(arguments)
    fitted = estimators.classifier_of(arguments, quiet=arguments.quiet)
    raw = tables.table_of(arguments)
    table, imputer = tables.filled(raw, arguments)
    output.warn_of_leaks(table)
    if chooses or arguments.calibrate or arguments.cv is not None:
        output.warn_of_parted(table)
    held_out = None
    if arguments.cv is not None:  # first, as a fit that is interrupted is to be saved at once

        def make() -> Estimator:
            return estimators.suited(estimators.classifier_of(arguments), raw, arguments)

        held_out = held_out_accuracy(make, raw, arguments, imputer)
    if arguments.calibrate and hasattr(estimators.estimator_of(arguments), "predict_proba"):
        raise ValueError(
            f"--calibrate: {arguments.model} has probabilities of its own: leave it out"
        )
    own = estimators.suited(fitted, table, arguments)
    estimators.tell_scales(table, arguments)
    stopped = _fitted_or_stopped(own, table, estimators.grouping(own, table.groups))
    model = fitted.best_estimator_ if chooses else fitted
    if arguments.calibrate and not stopped:
        stopped = _calibrated_or_stopped(model, raw, imputer, arguments)
    estimators.name_features(model, table.feature_names)
    with output.model_saved(arguments, model, table, imputer) as saved:
        made = estimators.in_python(model, imputer, table.weights)
        _print(arguments, model, table, saved, held_out, made)
    if stopped:
        return failures.interrupted()
    return failures.OK if model.certificate_.converged else failures.FAILED


def _fitted_or_stopped(estimator: Estimator, table: Table, grouping: Record) -> bool:
    """Whether the fit was interrupted; what it had found is a model too."""
    try:
        estimator.fit(table.X, table.y, sample_weight=table.weights, **grouping)
    except KeyboardInterrupt:
        if not hasattr(estimator, "certificate_"):
            raise
        return True
    return False


def _calibrated_or_stopped(
    model: Estimator, table: Table, imputer: Estimator, arguments: argparse.Namespace
) -> bool:
    """Give the model a map from scores to probabilities; whether that was interrupted."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    from proxmargin.data.inputs.preprocessing import Preprocessed

    folds = clone(model).set_params(callbacks=())
    whole = folds if imputer is None else Preprocessed.of(clone(imputer), folds)
    # only the fits to the folds, as that to all samples is there
    cv = options.folds_of(arguments, options.FOLDS)
    held_out = proxmargin.CalibratedMargin(whole, cv=cv, ensemble=True, random_state=arguments.seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told of by the fit to all samples
            assert table.y is not None
            found = held_out.fit(table.X, table.y, sample_weight=table.weights, groups=table.groups)
    except KeyboardInterrupt:
        return True
    model.calibrator_ = found.calibrator_
    return False


def _print(
    arguments: argparse.Namespace,
    model: Estimator,
    table: Table,
    saved: str | None,
    held_out: FoldMeans | None,
    made: str,
) -> None:
    from proxmargin.files.models.model import describe_model

    facts, training = describe_model(model), _accuracy(model, table)
    if arguments.json:
        told = {} if held_out is None else {"held_out": asdict(held_out)}
        accuracy = {"training_accuracy": training, **told}
        of = {"data": table.describe(), "model": facts, "python": made}
        output.print_json({**of, **accuracy, "saved": saved})
        return
    advice = "" if held_out else " (on the samples it was fitted to: --cv 5 holds some out)"
    named = output.top_features(model)
    how = f"chosen by {options.FOLDS}-fold cross-validation (all scores: proxmargin cv)"
    output.print_facts(
        {
            "model": f"{facts['estimator']}({estimators.shown_settings(model)})",
            "in Python": made,
            **{n: f"{getattr(model, n):.6g}, {how}" for n in estimators.to_choose(arguments)},
            **_sizes(table, facts),
            **({"largest": named} if named else {}),
            "training accuracy": f"{training:.4f}{advice}",
            **({} if held_out is None else {"accuracy": held_out}),
            **({"probabilities": facts["probabilities"]} if arguments.calibrate else {}),
            "certificate": model.certificate_,
            "saved to": output.saved_to(saved, arguments.output, "--output"),
        }
    )


def _sizes(table: Table, facts: Record) -> dict[str, str]:
    return {
        "data": f"{table.source}, {table.X.shape[0]} samples, {len(facts['classes'])} classes",
        "features": f"{facts['features_used']} of {facts['features']} used",
    }


def _accuracy(model: Estimator, table: Table) -> float:
    with warnings.catch_warnings():
        # the model has got the names of the columns, which the matrix has not
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return float(model.score(table.X, table.y, sample_weight=table.weights))


@dataclass(frozen=True)
class FoldMeans:
    """Means over the folds, and a 95 % interval of the accuracy, as in comparisons."""

    folds: int
    accuracy: float
    low: float
    high: float
    balanced_accuracy: float

    def __str__(self) -> str:
        mean, low, high = (number(v, ".3f") for v in (self.accuracy, self.low, self.high))
        return (
            f"{mean} [{low}, {high}] on held-out samples ({self.folds}-fold cross-validation), "
            f"balanced {number(self.balanced_accuracy, '.3f')}"
        )


def held_out_accuracy(
    make: Callable[[], Any], table: Table, arguments: argparse.Namespace, imputer: Any = None
) -> FoldMeans:
    """Scores of predictions for each fold, of whole groups if there are any, by a fit to the
    others: ``make`` returns an unfitted estimator, which makes all choices in its ``fit``; a copy
    of the imputer is fitted to the same."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    from proxmargin.models.selection.scoring import splitter_of, warn_of_ordered_rows
    from proxmargin.runtime.progress import ProgressBar
    from proxmargin.studies.comparing.evidence import Evidence
    from proxmargin.studies.comparing.metrics import basis_of, independent_samples

    X: Any = table.X
    y: Any = table.y
    folds, groups = arguments.cv, table.groups
    options.check_folds(arguments, table, "--cv", folds)
    codes = np.unique(y, return_inverse=True)[1]
    weights = {} if table.weights is None else {"sample_weight": table.weights}
    cv = options.folds_of(arguments, folds)
    splits = splitter_of(cv, y, groups, arguments.seed).split(X, y, groups)
    if not estimators.to_choose(arguments):  # else the search of the choice says so
        warn_of_ordered_rows(cv, groups, X, codes, table.feature_names)
    scores = []
    with ProgressBar("cross-validation: folds", folds, shown=not arguments.quiet) as progress:
        for place, (train, test) in enumerate(splits, 1):
            progress.starts(f"fold {place}")
            model, known, unseen = make(), X[train], X[test]
            if imputer is not None:
                fill = clone(imputer).fit(known).transform
                known, unseen = fill(known), fill(unseen)
            given, judging = ({k: v[r] for k, v in weights.items()} for r in (train, test))
            given |= estimators.grouping(model, None if groups is None else groups[train])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # told of by the fit to all samples
                found = model.fit(known, y[train], **given).predict(unseen)
                judges = (accuracy_score, balanced_accuracy_score)
                scores.append([score(y[test], found, **judging) for score in judges])
            progress.advance()
    # as a comparison has it: over folds, and no shorter than the independent samples allow
    tested = independent_samples(codes, table.weights, groups)
    found = Evidence.of(
        np.array(scores)[:, :1],
        ["model"],
        test_ratio=1 / (folds - 1),
        basis=basis_of("accuracy", tested),
    )
    low, high = float(found.low[0]), float(found.high[0])
    accuracy, balanced = np.mean(scores, axis=0).tolist()
    return FoldMeans(folds, accuracy, low, high, balanced)


def run_cv(arguments: argparse.Namespace) -> int:
    model = _search(arguments)
    table, imputer = tables.filled_table_of(arguments)
    output.warn_of_parted(table)
    options.check_folds(arguments, table, "--folds", arguments.folds)
    estimators.tell_scales(table, arguments)
    try:
        estimators.suited(model, table, arguments).fit(
            table.X,
            table.y,
            sample_weight=table.weights,
            **estimators.grouping(model, table.groups),
        )
    except KeyboardInterrupt:
        if not _print_complete(arguments, model, table):
            raise
        return failures.interrupted()
    chosen = model.best_estimator_
    estimators.name_features(chosen, table.feature_names)
    with output.model_saved(arguments, chosen, table, imputer) as saved:
        made = estimators.in_python(chosen, imputer, table.weights)
        _print_search(arguments, model, table, saved, made)
    output.draw(arguments.plot, lambda ax: proxmargin.CVDisplay(model).plot(ax))
    # a mixture with an unpenalised fit is not meant to be a minimiser
    is_mixed = getattr(model, "gamma_", 1.0) < 1.0
    return failures.OK if is_mixed or chosen.certificate_.converged else failures.FAILED


def _search(arguments: argparse.Namespace) -> Estimator:
    """The classifier that chooses, with the parameters that the options describe."""
    ratios = arguments.l1_ratios
    if ratios and arguments.l1_ratio is not None:
        raise ValueError("--l1-ratio is one of --l1-ratios: give the latter alone")
    return estimators.search_of(
        arguments,
        arguments.n_strengths,
        l1_ratios=None if ratios is None else tuple(ratios),
        relaxed=arguments.relaxed or None,
        eps=arguments.eps,
        cv=options.folds_of(arguments, arguments.folds),
        scoring=arguments.scoring,
        selection=arguments.selection,
        n_jobs=arguments.jobs,
        verbose=not arguments.quiet,
    )


def _print_search(
    arguments: argparse.Namespace, model: Estimator, table: Table, saved: str | None, made: str
) -> None:
    from proxmargin.files.models.model import describe_model

    rows, facts = _rows(model), describe_model(model)
    if arguments.json:
        output.print_json(
            {
                "data": table.describe(),
                "chosen": rows[model.best_index_],
                "one_standard_error": rows[_simplest(model)],
                "scores": rows,
                "model": facts,
                "python": made,
                "saved": saved,
            }
        )
        return
    chosen, simplest = model.best_index_, _simplest(model)
    print(_listing(rows, chosen, simplest).plain())
    print("* chosen, + the strongest penalty within one standard error of the best\n")
    output.print_facts(
        {
            "model": f"{facts['estimator']}({estimators.shown_settings(model.best_estimator_)})",
            "in Python": made,
            **({"gamma": f"{model.gamma_:g} of the penalised fit"} if arguments.relaxed else {}),
            **_sizes(table, facts),
            "certificate": model.certificate_,
            "saved to": output.saved_to(saved, arguments.output, "--output"),
        }
    )


def _print_complete(arguments: argparse.Namespace, model: Estimator, table: Table) -> bool:
    """The scores on the folds that were complete when the search was interrupted, if any."""
    if not hasattr(model, "cv_scores_"):
        return False
    shown = model._of_complete_folds()
    complete, count = shown.cv_scores_.shape[2], model.cv_scores_.shape[2]
    if not complete:
        return False
    rows = _rows(shown)
    if arguments.json:
        output.print_json({"data": table.describe(), "complete_folds": complete, "scores": rows})
    else:
        print(_listing(rows).plain())
        print(f"\ninterrupted: {complete} of {count} folds are complete")
    return True


def _rows(model: Estimator) -> list[Record]:
    """The results of each strength, in the order of ``cv_results_``."""
    frame = model.cv_results_
    names = ["l1_ratio", "gamma", model.strength.name, "mean_test_score", "standard_error"]
    shown = frame[[name for name in names if name in frame]]
    folds = model.cv_scores_.reshape(len(frame), -1).tolist()
    records = shown.to_dict("records")
    return [{**row, "folds": scores} for row, scores in zip(records, folds, strict=True)]


def _simplest(model: Estimator) -> int:
    """The place among the rows of what ``selection='1se'`` chooses."""
    from proxmargin.models.selection.results import within_one_error

    row, column = within_one_error(model.cv_scores_)
    return int(row * model.cv_scores_.shape[1] + column)


def _listing(rows: list[Record], chosen: int | None = None, simplest: int | None = None) -> Listing:
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


def _shown(rows: list[Record], first: list[int]) -> list[int]:
    """The places of one row for each strength: those of ``first``, else of the highest mean."""
    strengths = [tuple(row[name] for name in row if name not in OF_FITS) for row in rows]
    means = [row["mean_test_score"] for row in rows]
    order = sorted(range(len(rows)), key=lambda place: (math.isnan(means[place]), -means[place]))
    best: dict[tuple[float, ...], int] = {}
    for place in [*first, *order]:
        best.setdefault(strengths[place], place)
    return [best[strength] for strength in dict.fromkeys(strengths)]
