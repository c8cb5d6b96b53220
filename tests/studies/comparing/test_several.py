"""Models over data sets: the examples of Demsar (2006), SciPy, scikit-posthocs, missing scores."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, wilcoxon

from proxmargin.studies.comparing.candidates import MAJORITY
from proxmargin.studies.comparing.several import SeveralComparisons, compare_several
from tests.studies.stats.tables import DEMSAR

MODELS = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def facts(scores: Any, models: tuple[str, ...] = MODELS, **changes: Any) -> dict[str, Any]:
    """What a comparison says of itself, as far as it matters here."""
    metrics = [
        {"name": "roc_auc", "label": "AUC", "larger_is_better": True},
        {"name": "log_loss", "label": "log-loss", "larger_is_better": False},
    ]
    return {
        "protocol": {"scoring": "roc_auc", "metrics": metrics, **changes},
        "models": [
            {"name": name, "metrics": {"roc_auc": {"mean": score}, "log_loss": {"mean": 1 - score}}}
            for name, score in zip(models, scores, strict=True)
        ],
    }


def several(table: Any = DEMSAR, **options: Any) -> SeveralComparisons:
    return compare_several({f"set {j}": facts(row) for j, row in enumerate(table)}, **options)


def test_the_example_of_demsar() -> None:
    found = several(alpha=0.10)
    assert found.models == ("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")
    np.testing.assert_allclose(found.average_ranks, [1.964, 2.0, 2.893, 3.143], atol=5e-4)
    assert found.friedman is not None
    assert found.nemenyi is not None
    assert found.friedman.iman_davenport == pytest.approx(3.69, abs=5e-3)
    assert found.nemenyi.critical_difference == pytest.approx(1.12, abs=5e-3)
    assert found.equivalent == ("C4.5+m+cf", "C4.5+m", "C4.5+cf")  # his Figure 1 (a)
    assert "Not distinguishable from it: C4.5+m, C4.5+cf" in str(found)
    assert len(repr(found).splitlines()) <= 20
    assert "Not distinguishable from it: C4.5+m, C4.5+cf" in repr(found)
    assert "<td>C4.5+m+cf</td>" in found._repr_html_()


def test_losses_are_ranked_from_the_lowest() -> None:
    found = several(metric="log_loss")
    assert found.models == several().models
    np.testing.assert_allclose(found.average_ranks, several().average_ranks)


def test_the_pairs_are_those_of_scipy_and_scikit_posthocs() -> None:
    pandas = pytest.importorskip("pandas")
    table = np.random.default_rng(2).normal([0.0, 0.5, 1.0], 1.0, (9, 3))
    found = compare_several({str(j): facts(row, MODELS[:3]) for j, row in enumerate(table)})
    frame = found.tests().set_index(["first", "second"])
    columns = pandas.DataFrame(table, columns=MODELS[:3])
    for (first, second), row in frame.iterrows():
        exact = wilcoxon(columns[first], columns[second], method="exact")
        assert row["p_wilcoxon"] == pytest.approx(exact.pvalue, rel=1e-9)
    posthocs = pytest.importorskip("scikit_posthocs")
    theirs = posthocs.posthoc_nemenyi_friedman(columns)
    for (first, second), row in frame.iterrows():
        assert row["p_nemenyi"] == pytest.approx(theirs.loc[first, second], abs=1e-6)


def test_friedmans_test_is_that_of_scipy() -> None:
    table = np.random.default_rng(0).random((12, 4))
    found = several(table)
    assert found.friedman is not None
    assert found.friedman.pvalue == pytest.approx(friedmanchisquare(*table.T).pvalue)


def test_models_that_are_not_told_apart_at_all_are_all_equivalent() -> None:
    table = np.random.default_rng(1).random((8, 4))
    found = several(table)
    assert set(found.equivalent) == set(MODELS)
    assert "are not distinguishable" in str(found)


def test_a_model_without_a_score_on_some_data_set_has_no_rank_and_is_named() -> None:
    table = DEMSAR.copy()
    table[3, 0] = np.nan
    found = several(table)
    assert (found.left_out, found.models[-1]) == (("C4.5",), "C4.5")
    assert np.isnan(found.average_ranks[-1])
    assert found.notes[0] == "C4.5 has no score on set 3, and no rank"
    assert found.friedman is not None
    assert found.friedman.names == found.judged
    absent = {"a": facts(DEMSAR[0]), "b": facts(DEMSAR[1, :3], MODELS[:3])}
    assert compare_several(absent).left_out == ("C4.5+m+cf",)


def test_one_data_set_or_one_model_has_a_table_and_no_test() -> None:
    found = several(DEMSAR[:1])
    assert found.friedman is None
    assert found.nemenyi is None
    assert set(found.equivalent) == set(MODELS)
    assert "need more data sets" in found.notes[0]
    for ask in (found.tests, found.plot):
        with pytest.raises(ValueError, match="two data sets"):
            ask()
    alone = compare_several({str(j): facts(row[:1], ("a",)) for j, row in enumerate(DEMSAR)})
    assert (alone.best, alone.average_ranks.tolist(), alone.friedman) == ("a", [1.0], None)


def test_the_majority_is_not_ranked() -> None:
    found = compare_several(
        {str(j): facts([*row[:2], 0.5], ("a", "b", MAJORITY)) for j, row in enumerate(DEMSAR)}
    )
    assert set(found.models) == {"a", "b"}


def test_the_notes_of_each_comparison_are_kept() -> None:
    noted = {**facts(DEMSAR[0]), "notes": ["interrupted; the table holds what was finished"]}
    found = compare_several({"a": noted, "b": facts(DEMSAR[1])})
    assert found.notes[-1] == "a: interrupted; the table holds what was finished"


def test_nothing_complete_is_said_and_not_ranked() -> None:
    found = several([[np.nan, 0.5, 0.5, np.nan], [0.5, np.nan, np.nan, 0.5]])
    assert found.best is None
    assert len(found.notes) == 5


def test_the_table_the_picture_and_the_json() -> None:
    pytest.importorskip("pandas")
    found = several(alpha=0.10)
    assert found.table.loc["C4.5", "set 0"] == 0.763
    assert found.table.columns[-1] == "average_rank"
    told = json.loads(json.dumps(found.to_dict()))
    assert told["nemenyi"]["groups"][0] == ["C4.5+m+cf", "C4.5+m", "C4.5+cf"]
    assert told["best"] == "C4.5+m+cf"
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    display = found.plot()
    assert display.labels_[0].get_text().startswith("C4.5+m+cf")
    matplotlib.pyplot.close(display.figure_)


@pytest.mark.parametrize(
    ("comparisons", "options", "message"),
    [
        ({}, {}, "comparisons is empty"),
        ({"a": facts([0.5] * 4)}, {"metric": "brier"}, "metric='brier' is not one of a: roc_auc"),
        ({"a": facts([0.5] * 4)}, {"alpha": 5}, "alpha=5"),
        (
            {"a": facts([0.5] * 4), "b": facts([0.5] * 4, scoring="log_loss")},
            {},
            "several metrics: log_loss, roc_auc",
        ),
        (
            {
                "a": facts([0.5] * 4),
                "b": facts([0.5] * 4, metrics=[{"name": "roc_auc", "larger_is_better": False}]),
            },
            {},
            "better larger in one",
        ),
    ],
)
def test_bad_input_is_refused_by_name(comparisons: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_several(comparisons, **options)
