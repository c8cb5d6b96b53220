"""The benchmark of coverage knows the truth, and counts what it says."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.coverage import Case, Drawn, Rule, centroids

from benchmarks import coverage
from proxmargin.studies.comparing.evidence import Evidence

SMALL = Case("small", centroids, (2.0, 2.0, 0.5), samples=40, repeats=(1, 2))


@pytest.mark.parametrize("positive", [0.5, 0.2])
def test_the_expected_scores_of_a_rule_are_those_of_many_rows(positive: float) -> None:
    rule = Rule(np.array([1.0, -0.7, 0.2]), 0.3)
    case = Case("many", centroids, (2.0,), samples=200_000, positive=positive)
    X = case.data(np.random.default_rng(0))[0]
    measured = coverage._measured(rule, X, case.labels)
    np.testing.assert_allclose(coverage._expected(rule, 2.0, positive), measured, atol=5e-3)


def test_a_rule_without_weights_guesses() -> None:
    expected = coverage._expected(Rule(np.zeros(3), 1.0), 2.0, 0.3)
    assert expected == (pytest.approx(0.3), 0.5, 0.5)


def test_equal_models_share_their_truth_and_the_better_scores_more() -> None:
    drawn = Drawn.of(SMALL, 4)
    assert drawn.scores.shape == drawn.truths.shape == (3, 4, 10, 3)
    truth = coverage._pooled(drawn.truths[0], SMALL)
    assert truth[0] == truth[1] > truth[2]
    rows = list(drawn.judged())
    assert [(row.repeats, row.metric) for row in rows] == [
        (repeats, metric) for repeats in (1, 2) for metric in ("accuracy", "roc_auc")
    ]


def test_only_claims_against_models_that_are_as_good_are_false() -> None:
    scores = np.array([[0.9, 0.70, 0.5], [0.91, 0.72, 0.51], [0.92, 0.71, 0.53]])
    found = [Evidence.of(scores, ("0", "1", "2"), test_ratio=0.5)]
    assert (found[0].p_holm[1:] < 0.05).all()

    def claims(*distances: float) -> float:
        case = replace(SMALL, distances=distances)
        return coverage._false(case, found, lambda each: each.p_holm)

    assert claims(3.0, 2.0, 1.0) == 0.0
    assert claims(3.0, 3.0, 1.0) == 1.0
    assert claims(1.0, 1.0, 3.0) == 1.0
    assert coverage._found(replace(SMALL, distances=(3.0, 2.0, 1.0)), found) == 1.0
    assert np.isnan(coverage._found(replace(SMALL, distances=(1.0, 1.0, 1.0)), found))


def test_the_section_is_written(monkeypatch) -> None:
    written = []
    monkeypatch.setattr(coverage, "CASES", (SMALL,))
    monkeypatch.setattr(coverage, "write_section", lambda *parts: written.append(parts))
    parser = argparse.ArgumentParser()
    coverage.options(parser)
    coverage.main(parser.parse_args(["--datasets", "3"]))
    ((name, _, body),) = written
    assert name == "coverage"
    assert body.count("| small |") == 8
