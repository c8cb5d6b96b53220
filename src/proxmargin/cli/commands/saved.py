"""``proxmargin predict``, ``coefs`` and ``info``: what saved models say, and what files hold."""

from __future__ import annotations

import argparse
import csv
import io
import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import proxmargin
from proxmargin.cli import failures, options, output, tables
from proxmargin.runtime.brief import Listing, number

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table
    from proxmargin.runtime.types import Estimator, Frame, Record


SHOWN = 30  # coefficients that are printed without --all
MODEL_SUFFIX = ".pmz"
NAMED_AT_MOST = 12  # of a list
# columns of `feature_report` that coefs adds, with their formats
REPORTED = {"auc": ".3f", "folds": ".0%", "fold_rank": ".1f", "partners": ""}
REPORTED_AS = {"auc": "AUC alone", "folds": "in folds", "fold_rank": "rank in folds"}
UNREADABLE = "no option that the messages name"
OF_INFO = ("--json", "-q", "--quiet", "--debug")
# options of columns and tables that `info` may correct
_REPLACED = (
    ("--ignore", "ignore"),
    ("--id", "ids"),
    ("--target", "target"),
    ("--labels", "labels"),
    ("--missing", "missing"),
)
OF_PREDICTIONS = ("unseen", "normalize_levels", "duplicates")


def run_predict(arguments: argparse.Namespace) -> int:
    model = proxmargin.load_model(arguments.model)
    if arguments.proba and not hasattr(model, "predict_proba"):
        kind = type(getattr(model, "model", model)).__name__
        raise ValueError(
            f"--proba: this {kind} has scores and no probabilities: fit it again with proxmargin "
            f"fit DATA --model {kind} --calibrate -o {arguments.model}, or choose a model with "
            "proxmargin compare, which calibrates it"
        )
    options = {name: getattr(arguments, name) for name in OF_PREDICTIONS}
    table = table_for(arguments, model, **options)
    columns = _predicted(model, table, arguments)
    truth = in_classes(table, model)
    quality = _quality(truth, columns["prediction"])
    _warn_of_known(table, model)
    _warn_of_less_probable(model, columns)

    text = _csv(columns)
    with output.text_saved(arguments.output, text) as saved:
        if arguments.json:
            output.print_json({"classes": model.classes_, **columns, **quality, "saved": saved})
        elif not arguments.output:
            print(text, end="")
    if not (arguments.json or arguments.quiet):
        where = f" to {arguments.output}" if arguments.output else ""
        found = "".join(f"; {name.replace('_', ' ')} {each:.4f}" for name, each in quality.items())
        count = len(columns["prediction"])
        print(f"proxmargin: {count} predictions{where}{found}", file=sys.stderr)
    return failures.OK


def _predicted(model: Estimator, table: Table, arguments: argparse.Namespace) -> Record:
    """The columns of the output by name: the ids, the predictions, what else is asked for."""
    with warnings.catch_warnings():
        # the columns were found by their names already
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        columns = {"prediction": model.predict(table.X)}
        if arguments.scores:
            # one column for two classes (positive: the second one), else one a class
            scores = model.decision_function(table.X)
            columns |= (
                {"score": scores}
                if scores.ndim == 1
                else {f"score_{c}": scores[:, k] for k, c in enumerate(model.classes_)}
            )
        if arguments.proba:
            shares = model.predict_proba(table.X)
            columns.update({f"proba_{c}": shares[:, k] for k, c in enumerate(model.classes_)})
    if table.ids is None:
        return columns
    if table.ids.name in columns and arguments.ids is None:
        return columns
    if table.ids.name in columns:
        raise ValueError(f"--id {table.ids.name}: a column of the output has that name already")
    ids = table.ids.astype(object).where(table.ids.notna(), "").to_numpy()
    return {table.ids.name: ids, **columns}


def _warn_of_less_probable(model: Estimator, columns: Record) -> None:
    """Say how many predictions, which go by the scores, are not the most probable class."""
    import numpy as np

    from proxmargin.files.models.model import probabilities_of

    names = [f"proba_{label}" for label in model.classes_]
    if names[0] not in columns:
        return
    likely = model.classes_[np.column_stack([columns[name] for name in names]).argmax(axis=1)]
    count = int(np.sum(likely != np.asarray(columns["prediction"])))
    share = probabilities_of(getattr(model, "model", model)).get("boundary_probability")
    if count and share is not None:
        where = f", where the probability of {model.classes_[1]} is {share:.2f}"
        warnings.warn(
            f"{count} of {likely.size} predicted classes are not the most probable one: they "
            f"change at the boundary of the model{where}",
            UserWarning,
            stacklevel=2,
        )


def _csv(columns: Record) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return written.getvalue()


def table_for(arguments: argparse.Namespace, model: Estimator, **more: Any) -> Table:
    """The data that the arguments name, for a model."""
    from proxmargin.files.tables.table import read_for_model

    roles = {name: getattr(arguments, name) for name in ("target", "ids", "ignore")}
    dialect = tables.dialect_of(arguments)
    table = read_for_model(arguments.data, model, **roles, **more, dialect=dialect)
    tables.tell(table, arguments)
    return table


def in_classes(table: Table, model: Estimator) -> Any:
    """The labels as text, written as the model's classes whatever the format of a number; those
    that are none of them are told. None without labels."""
    if table.y is None:
        return None
    import numpy as np

    from proxmargin.files.errors import listed, plural
    from proxmargin.files.tables.cells import normal_form

    classes = model.classes_.astype(str).tolist()
    forms = {normal_form(word): word for word in classes}
    labels, places = np.unique(table.y.astype(str), return_inverse=True)
    if len(forms) == len(classes):
        labels = np.array([forms.get(normal_form(word), word) for word in labels.tolist()])
    strange = np.flatnonzero(~np.isin(labels, classes))
    if strange.size:
        rows = np.arange(len(places)) if table.rows is None else table.rows
        at = (listed(rows[places == code] + 1, quote=False) for code in strange)
        each = [f"'{labels[code]}' (row {rows})" for code, rows in zip(strange, at, strict=True)]
        count = plural(int(np.isin(places, strange).sum()), "sample")
        warnings.warn(
            f"{table.source}: the target {table.target_name!r} has {count} of classes that the "
            f"model has never seen: {listed(each, quote=False)}, counting data rows from 1; its "
            f"classes are {listed(classes)}",
            UserWarning,
            stacklevel=2,
        )
    return labels[places]


def _warn_of_known(table: Table, model: Estimator) -> None:
    """Warn of samples that were in the training data, by their names."""
    import numpy as np

    from proxmargin.files.errors import listed
    from proxmargin.files.tables.features import digests_of

    digests, known = digests_of(table.ids), getattr(model, "table_ids_", None)
    if digests is None or known is None or not (found := np.isin(digests, known)).any():
        return
    names = listed(table.ids.dropna()[found])
    warnings.warn(
        f"{table.source}: {found.sum()} of {len(table.ids)} samples were in the training data, by "
        f"their names in {table.ids.name!r}: {names}; predictions of them tell nothing about new "
        "ones",
        UserWarning,
        stacklevel=2,
    )


def _quality(true: Any, labels: Any) -> dict[str, float]:
    """Scores of the predicted labels, if the file has the true ones."""
    if true is None:
        return {}
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    found = labels.astype(str)
    with warnings.catch_warnings():
        # predicted classes that the file does not contain are no mistake of the caller
        warnings.simplefilter("ignore", UserWarning)
        balanced = float(balanced_accuracy_score(true, found))
    return {"accuracy": float(accuracy_score(true, found)), "balanced_accuracy": balanced}


def run_coefs(arguments: argparse.Namespace) -> int:
    model = proxmargin.load_model(arguments.model)
    X, y = _data(arguments, model)
    try:
        frame = model.coefficients(zeros=arguments.all)
        if X is not None:  # of which ranks, those of the model, do not depend
            of_data = model.coefficients(X, zeros=arguments.all)
            keys = ["feature", "class"]
            scaled = frame[keys].merge(of_data, how="left", on=keys)["coefficient_per_sd"]
            frame["coefficient_per_sd"] = scaled.to_numpy()
    except TypeError as error:  # a kernel has none
        raise ValueError(str(error)) from error
    # refits of a model behind an imputer would need rows without blanks
    if y is not None and hasattr(model, "coef_") and not hasattr(model, "transformer"):
        report = proxmargin.feature_report(model, X, y).rename(columns={"rank": "fold_rank"})
        more = ["feature", "class", *REPORTED]
        frame = frame.merge(report[more], how="left", on=["feature", "class"])
    unknown = bool(len(frame)) and bool(frame["coefficient_per_sd"].isna().all())
    with output.text_saved(arguments.output, frame.to_csv(index=False)) as saved:
        if arguments.json:
            rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
            output.print_json({"model": arguments.model, "coefficients": rows, "saved": saved})
        elif not arguments.output:
            _print(frame, len(frame) if arguments.all else SHOWN)
    if not (arguments.json or arguments.quiet):
        where = f" to {saved}" if saved else ""
        speaks = "" if len(model.classes_) > 2 else f"; positive speaks for {model.classes_[1]}"
        print(f"proxmargin: {len(frame)} coefficients{where}{speaks}", file=sys.stderr)
        if unknown:
            print(
                "proxmargin: the model was fitted without standardising, and has no standard "
                f"deviations: proxmargin coefs {arguments.model} DATA takes them from data",
                file=sys.stderr,
            )
    return failures.OK


def _data(arguments: argparse.Namespace, model: Estimator) -> tuple[Any, Any]:
    """The features of the data, as the model was fitted to them, and the labels, if it knows all
    that there are."""
    if arguments.data is None:
        return None, None
    import numpy as np

    from proxmargin.files.errors import pandas

    # levels that are new are of no account for standard deviations
    table = table_for(arguments, model, unseen="zero", labels=arguments.labels, unlabelled="drop")
    known = {str(label): label for label in model.classes_}
    labels = in_classes(table, model)
    whole = labels is not None and np.isin(labels, [*known]).all()
    y = np.array([known[label] for label in labels.tolist()]) if whole else None
    if table.feature_names is None or not hasattr(model, "feature_names_in_"):
        return table.X, y
    if hasattr(table.X, "tocsr"):
        frame = pandas().DataFrame.sparse.from_spmatrix(table.X, columns=table.feature_names)
        return frame, y
    return pandas().DataFrame(table.X, columns=table.feature_names), y


def _print(frame: Frame, most: int) -> None:
    if not len(frame):
        print("no feature has a coefficient")
        return
    headings = ["feature", "class", "coefficient", "per sd", "rank"]
    cells = [
        [
            str(row["feature"]),
            str(row["class"]),
            number(row["coefficient"], "+.4g"),
            number(row["coefficient_per_sd"], "+.4g"),
            str(row["rank"]),
            *([number(row[name], form) for name, form in REPORTED.items()] if "auc" in row else []),
        ]
        for row in frame.head(most).to_dict("records")
    ]
    more = [REPORTED_AS.get(name, name) for name in REPORTED] if "auc" in frame else []
    print(Listing([*headings, *more], cells).plain())
    if len(frame) > most:
        print(f"\n... {len(frame) - most} more rows: --all prints them, -o FILE writes them")


def run_info(arguments: argparse.Namespace) -> int:
    from proxmargin.files.models.archive import MANIFEST, holds
    from proxmargin.files.models.model import describe_model

    # a file is a model by its suffix, or else by its content
    is_model = Path(arguments.data).suffix.lower() == MODEL_SUFFIX
    if is_model or holds(arguments.data, MANIFEST):
        facts = describe_model(arguments.data)
    else:
        facts = _facts(arguments)
    if arguments.json:
        output.print_json(facts)
    else:
        if "top_features" in facts:
            with_class = len(facts["classes"]) > 2
            facts["top_features"] = output.in_words(facts["top_features"], with_class) or "none"
        output.print_facts({name.replace("_", " "): _shown(value) for name, value in facts.items()})
    return failures.OK


def _facts(arguments: argparse.Namespace) -> Record:
    """What a data file holds and, where it cannot be read as it is, what is wrong, and the command
    that reads it."""
    from proxmargin.files.tables.table import survey
    from proxmargin.studies.reports.card import NAMES_ROWS

    used, typed, problem = arguments, list[str](), ""
    seen: Record = {}
    rest: dict[str, str] = {}  # what is wrong after the options that are named
    dialect = tables.dialect_of(arguments)
    with suppress(ValueError):  # what cannot be opened may be so with an option that is named
        seen = survey(arguments.data, dialect)
    table: Table | None = None
    advice: list[str] = []
    try:
        table, advice = _read(arguments)
    except ValueError as error:
        problem = failures.as_options(str(error))
        beside = seen
        if arguments.labels:
            with suppress(ValueError):
                beside = survey(arguments.labels)
        used, typed = failures.remedied(arguments, problem, beside.get("target_candidates", []))
        if not (typed or seen or Path(used.data).is_file()):
            raise
        try:
            table, advice = _read(argparse.Namespace(**{**vars(used), "quiet": True}))
            tables.tell(replace(table, notes=_untold(table.notes, str(error), typed)), used)
        except ValueError as last:  # which names nothing to be typed
            rest = {"then": failures.as_options(str(last))} if typed else {}
        with suppress(ValueError):  # a column that is left out may be one that cannot be opened
            other = used.data != arguments.data
            seen = (not other and seen) or survey(used.data, tables.dialect_of(used))
    rows, columns = seen.pop("rows", 0), seen.pop("columns", 0)
    if table is not None:
        advice += [each for each in output.warn_of_leaks(table) if NAMES_ROWS in each]
        used, more = failures.heeded(used, advice)
        typed = [*typed, *more]
        seen = {"table": f"{rows} rows, {columns} columns", **seen} if rows else seen
    else:
        size = Path(used.data).stat().st_size if Path(used.data).is_file() else 0
        sizes = {"bytes": size, "rows": rows, "columns": columns}
        seen = {**{name: count for name, count in sizes.items() if count}, **seen}
    for name, each in seen.get("suspected_missing", {}).items():
        seen["suspected_missing"][name] = failures.as_options(each)
    doubt = {"doubt": failures.as_options(seen.pop("doubt"))} if "doubt" in seen else {}
    if table is not None and used.labels:
        doubt = {}  # which they settle
    reason = rest.get("then", problem)
    if table is None and not doubt and "--labels FILE" in reason:
        rest, typed = {}, []  # which turned a table for nothing
    given = _still_given(arguments, used, typed)
    command = shlex.join(["proxmargin", "compare", used.data, *given, *typed])
    if table is None:
        turned = [o for o in ("--transpose", "--labels FILE") if o not in command]
        turned = turned if doubt else ["--labels FILE"] if "--labels FILE" in reason else []
        command = " ".join([command, *turned]) if turned else UNREADABLE
    return {
        **({"problem": problem} if problem else {}),
        **rest,
        **({} if table is None else table.describe()),
        **seen,
        **doubt,
        "read_with": command,
    }


def _read(arguments: argparse.Namespace) -> tuple[Table, list[str]]:
    """The data, and what is advised: by warnings, and of classes that are too small for folds."""
    from proxmargin.files.tables.features import FAR

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = tables.table_of(arguments)
        if table.y is not None:
            import numpy as np

            from proxmargin.data.inputs.targets import refuse_small_classes

            try:
                refuse_small_classes(*np.unique(table.y, return_counts=True), 2, "folds need")
            except ValueError as error:
                if "drop_classes" in str(error):
                    warnings.warn(f"{table.source}: {error}.", UserWarning, stacklevel=2)
    for each in said:
        warnings.warn(each.message, each.category, stacklevel=2)
    told = [str(w.message) for w in said if not issubclass(w.category, options.Note)]
    # cells that may be right are not left out by the command that reads the file
    return table, [failures.as_options(each) for each in told if FAR not in each]


def _still_given(
    arguments: argparse.Namespace, used: argparse.Namespace, typed: list[str]
) -> list[str]:
    """The words that were typed for `info`, without its own and options that ``typed`` corrects."""
    words = [w for w in used.typed[1:] if w not in (arguments.data, *OF_INFO)]
    for flag, name in _REPLACED:
        kept = getattr(used, name)
        kept = kept if isinstance(kept, list) else [kept]
        for at in reversed(range(len(words)) if flag in typed else ()):
            if words[at].startswith(f"{flag}=") and words[at].partition("=")[2] not in kept:
                del words[at]
            elif words[at] == flag and words[at + 1] not in kept:
                del words[at : at + 2]
    return words


def _untold(notes: Sequence[str], problem: str, typed: Sequence[str]) -> tuple[str, ...]:
    """The notes of which neither the problem nor the option against it speaks."""
    counted = "--unlabelled" in typed
    others = (note for note in notes if note not in problem)
    return tuple(note for note in others if not (counted and note.endswith("without a label")))


def _shown(value: object) -> str:
    """A value on one line; long collections are cut."""
    if isinstance(value, dict) and "summary" in value:
        return str(value["summary"])
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    if isinstance(value, list):
        words = [_shown(each) for each in value]
        more = f", ... ({len(words)} in all)" if len(words) > NAMED_AT_MOST else ""
        return ", ".join(words[:NAMED_AT_MOST]) + more
    return format(value, ".6g") if isinstance(value, float) else str(value)
