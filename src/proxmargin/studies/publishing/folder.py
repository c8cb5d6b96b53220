"""The folder of a finished comparison, and the permutation test that it needs besides."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from proxmargin.data.inputs.aligned import checked_groups
from proxmargin.data.inputs.kinds import Features, Labels, Splits
from proxmargin.data.inputs.parameters import SEEDS, drawn_seeds
from proxmargin.data.inputs.preprocessing import Preprocessed
from proxmargin.files.models.model import save_model
from proxmargin.models.classifiers.elastic_net import HuberizedSVC
from proxmargin.models.permutations import PermutationTest
from proxmargin.models.permutations.labelings import Codes, Labelings
from proxmargin.models.permutations.measures import LabelingStatistics, until_interrupted
from proxmargin.models.permutations.permutation_test import concluded, measured
from proxmargin.runtime.brief import plain
from proxmargin.runtime.files import replaced
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Facts, Frame, Record, Values
from proxmargin.studies.comparing.candidates import (
    CANDIDATES,
    Candidate,
    baselines_for,
    named_candidates,
)
from proxmargin.studies.comparing.comparison import Comparison
from proxmargin.studies.comparing.metrics import Metric, metric_of
from proxmargin.studies.comparing.rows import LARGEST_SEED, LabelledRows, outer_splits
from proxmargin.studies.comparing.run import tasks_of
from proxmargin.studies.comparing.searches import AlphaPath, Given
from proxmargin.studies.comparing.work import perform
from proxmargin.studies.publishing.methods import (
    checklist,
    methods,
    permutation_sentence,
    read_me,
    write_paper,
)
from proxmargin.studies.reports import check_libraries, write_report
from proxmargin.studies.reports.details import partners
from proxmargin.studies.stats.scores import MAJORITY

PERMUTATIONS = 200
README = "README.md"
PAGE = "report.html"
PAPER = "report.pdf"
MODEL = "model.pmz"
TABLES = "tables"
PREDICTIONS = "predictions.csv"
RECORD = "provenance.json"
ABOUT_ITEMS = (
    "Items have the numbers of Table 2 of Collins et al. (2024), BMJ 385, e078378, in other words: "
    "the statement has the authoritative ones."
)
KEPT_TEST = "permutations.json"  # in the folder of the run: a test that is not done again


def digest_of(source: str | os.PathLike[str] | None, X: Any, y: Labels | None) -> dict[str, str]:
    """The SHA-256 of a data file; of data without a file that of their values."""
    if source is not None and Path(source).is_file():
        with open(source, "rb") as stream:
            return {"sha256": file_digest(stream, "sha256").hexdigest(), "of": "the file"}
    parts = [X.data, X.indices, X.indptr] if hasattr(X, "tocsr") else [X]
    whole = sha256()
    for part in parts:
        whole.update(np.ascontiguousarray(part).tobytes())
    whole.update("\n".join(map(str, np.asarray(y).tolist())).encode())
    return {"sha256": whole.hexdigest(), "of": "the values of features and labels"}


@dataclass(frozen=True)
class PipelineTest:
    """A permutation test of the held-out score of the recommended model."""

    model: str
    metric: str  # its label
    score: float
    pvalue: float
    answer: str  # in a sentence
    chooses: bool  # whether parameters are chosen again for each permutation
    inside: int  # models among which each permutation chooses again
    compared: int  # those that the model was chosen among


@dataclass(frozen=True, eq=False)
class BestScore:
    """The best mean score of models on held-out rows, for each labeling: parameters are chosen, and
    models fitted and judged, as in a comparison of these labels."""

    candidates: Sequence[Candidate]
    data: LabelledRows
    metric: Metric
    folds: Splits
    seed: int
    block: ClassVar[int] = 1  # each takes seconds: the first tells how long all will take
    in_processes: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        candidates: Sequence[Candidate],
        data: LabelledRows,
        metric: Metric,
        folds: Splits,
        seed: int,
    ) -> Self:
        """Without calibration of models without a choice, unless probabilities are judged."""
        plain = Given(calibrated=metric.probabilities_from is not None)
        quick = [each if chooses(each) else replace(each, search=plain) for each in candidates]
        return cls(quick, data, metric, folds, seed)

    def __call__(self, codes: Codes) -> LabelingStatistics:
        found = until_interrupted(lambda each: float(self.scores(each).max()), codes)
        return LabelingStatistics(np.array(found), np.full(len(found), np.nan))

    def scores(self, codes: Codes) -> NDArray[np.float64]:
        """Of each model; larger is better."""
        data = replace(self.data, y=np.unique(self.data.y)[codes])
        outer, inner = drawn_seeds(self.seed, 2, below=LARGEST_SEED)
        splits, _ = outer_splits(data, self.folds, 1, outer)
        tasks = tasks_of(self.candidates, splits, inner)
        found: dict[str, list[float]] = {each.name: [] for each in self.candidates}
        for task in (each for each in tasks if each.split is not None):
            outcome = perform(replace(task, keeps=False), data, [self.metric])
            found[outcome.model].append(self.metric.sign * outcome.scores[self.metric.name])
        return np.array([*found.values()]).mean(axis=1)

    def tested(
        self, chosen: str | None, permutations: int, n_jobs: int | None, progress: bool
    ) -> PermutationTest:
        """The score of the chosen model, by default the best, against the best of permutations."""
        codes = np.unique(self.data.y, return_inverse=True)[1]
        groups = checked_groups(self.data.groups, codes.size)[1]
        (seed,) = drawn_seeds(self.seed, 1, below=SEEDS)
        labelings = Labelings(codes, groups, permutations, seed)
        label = f"{self.metric.name}: permuted labels" if progress else None
        with interrupts:
            found = measured(self, labelings, n_jobs, label)
            if chosen is not None:
                place = [each.name for each in self.candidates].index(chosen)
                found.statistics[0] = self.scores(codes)[place]
        sign = "" if self.metric.larger_is_better else "minus "
        return concluded(f"{sign}{self.metric.label}", found, labelings)


def chooses(candidate: Candidate) -> bool:
    """Whether parameters are chosen."""
    search = candidate.search
    return isinstance(search, AlphaPath) or bool(getattr(search, "values", ()))


def pipeline_test(
    comparison: Comparison,
    X: Features,
    y: Labels | None,
    *,
    whole: bool = False,
    permutations: int = PERMUTATIONS,
    groups: Labels | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> PipelineTest:
    """Whether the recommended model predicts better than models of permuted labels.

    Its score is what the models are compared by, on held-out rows, with the sign by which larger is
    better. Permuted labels go through cross-validation, the choice of the parameters by folds
    inside each training part included; and if ``whole`` the choice among all compared models,
    whose best score counts. ValueError: the comparison has weights, or groups that are not given.
    """
    protocol, name = comparison.setup.protocol, str(comparison.recommended_)
    if protocol.weighted:
        raise ValueError(
            "sample_weight: permuted labels are equally likely only among samples of one weight"
        )
    if protocol.grouped and groups is None:
        raise ValueError("groups: the comparison has some, within which labels change places")
    compared = [each for each in comparison.names if each != MAJORITY]
    first = comparison.models_[name]
    before = first.transformer if isinstance(first, Preprocessed) else None
    data = LabelledRows.checked(HuberizedSVC(), X, y, None, groups, before)
    again = [_candidate(comparison, each, data.names) for each in (compared if whole else [name])]
    scoring = metric_of(protocol.scoring.name)
    measure = BestScore.of(again, data, scoring, max(protocol.folds, 2), protocol.random_state)
    test = measure.tested(name, permutations, n_jobs, progress)
    if test.interrupted:
        raise KeyboardInterrupt("the comparison is kept: the same command goes on with its test")
    numbers = test.name, test.statistic, test.pvalue, test.sentence
    return PipelineTest(name, *numbers, all(map(chooses, again)), len(again), len(compared))


def _candidate(comparison: Comparison, name: str, names: Values | None) -> Candidate:
    """A compared model as it was before its parameters were chosen."""
    fitted, protocol = comparison.models_[name], comparison.setup.protocol
    model = fitted.model if isinstance(fitted, Preprocessed) else fitted
    scaled = protocol.standardize
    known = named_candidates(list(CANDIDATES), standardize=scaled, quick=protocol.quick)
    known += baselines_for(comparison.setup.sparse, scaled)
    for each in known:
        if each.name == name and isinstance(model, type(each.make())):
            return each
    found = Candidate(name, partial(clone, model), Given())
    return found if names is None else found.of_features(names)


def publish(
    comparison: Comparison,
    X: Features,
    y: Values | None,
    folder: str | os.PathLike[str],
    *,
    test: PipelineTest | None = None,
    digest: Mapping[str, str] | None = None,
) -> list[str]:
    """Write the folder of a finished comparison of these data; the files, relative to it. Raises
    ValueError: it is not finished, or its recommended model is of another library."""
    check_libraries()
    name = comparison.recommended_
    if comparison.interrupted or name is None or name not in comparison.models_:
        raise ValueError("the comparison is not finished, so that there is nothing to publish yet")
    told = None if test is None else asdict(test)
    facts = {**comparison.to_dict(), "permutation_test": permutation_sentence(told)}
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": comparison.setup.protocol.command,
        "data": {
            "name": comparison.setup.name,
            **(digest_of(None, X, y) if digest is None else digest),
        },
        "seed": comparison.setup.protocol.random_state,
        "versions": dict(comparison.setup.versions),
        "permutation_test": told,
    }
    rows, text = checklist(facts, record), methods(facts, record)
    path = Path(folder)
    (path / TABLES).mkdir(parents=True, exist_ok=True)
    listed = "\n".join(f"| {n} | {item} | {answer} |" for n, item, answer in rows)
    head = "| Item | What is asked | Answer of this run |\n|---|---|---|"
    answers = f"# TRIPOD+AI\n\n{ABOUT_ITEMS}\n\n{head}\n{listed}\n"
    save_model(comparison.models_[name], path / MODEL)
    write_report(facts, path / PAGE)
    write_paper(path / PAPER, facts, text, rows)
    held_out = _counted_from_one(comparison.predictions).rename_axis("id")
    frames = {PREDICTIONS: held_out, **_tables(comparison, facts)}
    for file, frame in frames.items():
        _write(path / file, lambda f=frame: f.to_csv().encode())  # type: ignore[misc]
    _write(path / "methods.md", f"# Methods and results\n\n{text}\n".encode)
    _write(path / "tripod-ai.md", answers.encode)
    _write(path / README, read_me(facts, record).encode)
    _write(path / "results.json", lambda: _json(facts))
    written = [README, PAGE, PAPER, MODEL, *frames, "methods.md", "tripod-ai.md", "results.json"]
    record["files"] = {file: digest_of(path / file, None, ())["sha256"] for file in written}
    _write(path / RECORD, lambda: _json(record))
    return [*written, RECORD]


def _tables(comparison: Comparison, facts: Facts) -> Record:
    """Data frames by the names of their files."""
    frame = optional("pandas", "A folder to publish").DataFrame
    name = str(comparison.recommended_)
    found = {
        "scores": comparison.table,
        "folds": _counted_from_one(comparison.folds).set_index(["model", "repeat", "fold"]),
        "differences": comparison.tests(),
    }
    features = facts["features"].get(name)
    if features:
        rows = [{**row, "partners": partners(row) if row["partners"] else ""} for row in features]
        found["features"] = frame(rows).set_index("feature")
    if hasattr(comparison.models_[name], "coef_"):
        found["coefficients"] = comparison.models_[name].coefficients().set_index("feature")
    clinical = ((facts["clinical"] or {}).get("models") or {}).get(name)
    if clinical is not None:
        found["thresholds"] = _flat(clinical["thresholds"], frame)
        columns = ["id", "true", "predicted", "probability"]
        found["misclassified"] = (
            frame(clinical["misclassified"], columns=columns)
            .set_index("id")
            .rename(columns={"probability": f"probability of {clinical['positive']}"})
        )
    return {f"{TABLES}/{key}.csv": each for key, each in found.items()}


def _counted_from_one(frame: Frame) -> Frame:
    """Repetitions and folds with the numbers that they have in pages and messages."""
    return frame.assign(**{n: frame[n] + 1 for n in ("repeat", "fold") if n in frame})


def _flat(columns: Facts, frame: Callable[..., Any]) -> Frame:
    """Rates along the thresholds, the ends of their intervals in columns of their own."""
    flat: Record = {}
    for name, values in columns.items():
        if isinstance(values[0], list):
            parts = zip(("", "_low", "_high"), zip(*values, strict=True), strict=True)
            flat |= {f"{name}{end}": part for end, part in parts}
        else:
            flat[name] = values
    return frame(flat).set_index("threshold")


def kept_test(
    run_dir: str | os.PathLike[str], made: Callable[[], PipelineTest], asked: Sequence[object]
) -> PipelineTest:
    """The test that the folder of a run keeps, if it is what was ``asked`` for (the number of
    permutations, what is chosen again), or else a new one, which it keeps."""
    path = Path(run_dir) / KEPT_TEST
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept.pop("asked") == [*asked]:
            return PipelineTest(**kept)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = made()
    _write(path, lambda: _json({"asked": asked, **asdict(found)}))
    return found


def _json(value: object) -> bytes:
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False).encode()


def _write(path: Path, content: Callable[[], bytes]) -> None:
    with replaced(path) as stream:
        stream.write(content())
