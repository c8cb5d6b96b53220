"""The page as text: what it says, that names stay names, and that nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin.studies.reports import check_libraries, page, write_report
from proxmargin.studies.reports.page import page_of
from tests.studies.reports.facts import EVIL, evil_facts, facts_of

pytest.importorskip("jinja2", reason="the extra report is not installed")
pytest.importorskip("vl_convert", reason="the extra report is not installed")


@cache
def made() -> dict[str, Any]:
    data = load_breast_cancer()
    names, classes = list(data.feature_names), list(data.target_names)
    return facts_of(data.data, data.target, names, classes, data="breast_cancer")


class Page(HTMLParser):
    """Elements and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.words = ""
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag in ("script", "style"):
            (self.scripts if tag == "script" else self.styles).append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            (self.scripts if self.inside == "script" else self.styles)[-1] += data
        else:
            self.words += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def words_of(facts: Mapping[str, Any]) -> str:
    return re.sub(r"\s+", " ", Page(page_of(facts)).words)


def test_the_answer_comes_first_with_its_interval_and_its_equals() -> None:
    facts = made()
    words = words_of(facts)
    best = next(each for each in facts["models"] if each["name"] == facts["recommended"])
    numbers = best["metrics"]["balanced_accuracy"]
    start = words.index("Recommended model")
    answer = words[start : words.index("The data")]
    assert facts["recommended"] in answer
    assert f"{numbers['mean']:.3f}" in answer
    assert f"{numbers['low']:.3f} to {numbers['high']:.3f}" in answer
    assert all(name in answer for name in facts["equivalent"])
    assert "Of 100 samples that it had not seen" in answer


def test_every_number_of_the_ranking_is_in_a_table() -> None:
    facts = made()
    text = page_of(facts)
    for model in facts["models"]:
        for metric in facts["protocol"]["metrics"]:
            mean = model["metrics"][metric["name"]]["mean"]
            assert f'data-value="{mean}"' in text


def test_clinical_numbers_and_misclassified_samples_are_told_by_name() -> None:
    facts = made()
    words = words_of(facts)
    found = facts["clinical"]["models"][facts["recommended"]]
    assert f"Positive is {facts['clinical']['positive']}." in words
    assert f"Misclassified samples ({len(found['misclassified'])})" in words
    assert found["misclassified"][0]["id"] in words
    assert f"{found['predicted']['sensitivity']['value']:.3f}" in words
    assert "Clinical numbers" not in words_of({**facts, "clinical": None})


def test_curves_are_those_of_the_positive_class() -> None:
    facts = deepcopy(made())
    first, second = (each["label"] for each in facts["data"]["classes"])
    assert f"Class {second}" in words_of(facts)
    before = json.loads(Page(page_of(facts)).scripts[0])["curves"]
    facts["clinical"]["positive"] = first
    assert f"Class {first}" in words_of(facts)
    after = json.loads(Page(page_of(facts)).scripts[0])["curves"]
    assert {each["k"] for each in before} == {1}
    assert {each["k"] for each in after} == {0}
    # of two classes the areas are the same
    areas = [[each["auc"] for each in curves] for curves in (before, after)]
    assert areas[0] == pytest.approx(areas[1])


def test_columns_of_certain_p_values_are_not_shown() -> None:
    facts = deepcopy(made())
    assert "p (Holm)" in words_of(facts)
    for model in facts["models"]:
        for each in model["metrics"].values():
            each["p_holm"] = 1.0
    facts["disagreements"]["pairs"] = []
    assert "(Holm)" not in words_of(facts)


def test_names_are_text_everywhere() -> None:
    page = Page(page_of(evil_facts()))
    assert page.named("img") == []
    # the values, the charting library and the script of the page
    assert [each.get("type") for each in page.named("script")] == ["application/json", None, None]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    for name in EVIL:
        assert name in page.words
    values = json.loads(page.scripts[0])
    assert set(EVIL) <= {*values["models"], *values["facts"]["notes"]}


def test_the_island_of_values_has_no_character_that_could_end_it() -> None:
    text = page.island({"a": ["</script><!--", "\u2028\u2029&", float("nan"), np.float32(2)]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"a": ["</script><!--", "\u2028\u2029&", None, 2.0]}


def test_names_with_half_a_surrogate_pair_do_not_stop_the_report(tmp_path: Path) -> None:
    facts = deepcopy(made())
    facts["data"]["name"] = "caf\udce9.csv"
    write_report(facts, tmp_path / "report.html")
    assert "caf\\udce9.csv" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_charts_have_fields_of_fixed_plain_names_and_no_expressions() -> None:
    text = (page.FOLDER / "charts.js").read_text(encoding="utf-8")
    names = re.findall(r'\b(?:field|number|score|coloured|ofRoles)\("([^"]*)"', text)
    assert len(names) > 30
    assert all(name.isidentifier() for name in names)
    assert not re.search(r"\b(expr|calculate|transform|signal|href|url|labelExpr):", text)


def test_the_policy_admits_the_three_parts_of_the_page_by_digest_and_nothing_else() -> None:
    page = Page(page_of(made()))
    (policy,) = [
        each["content"]
        for each in page.named("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert not {"unsafe-inline", "unsafe-eval", "http", "*"} & set(re.split(r"[' :]", policy))
    for kind, texts in (("script-src", page.scripts[1:]), ("style-src", page.styles)):
        digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts]
        assert rules[kind] == " ".join(f"'sha256-{digest}'" for digest in digests)


def test_nothing_is_loaded_and_nothing_is_inline_beside_the_parts() -> None:
    page = Page(page_of(made()))
    for tag, attributes in page.tags:
        assert "style" not in attributes, tag
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    assert re.findall(r"url\(|@import", page.styles[0]) == []


def test_no_two_elements_share_a_name() -> None:
    names = [each["id"] for _, each in Page(page_of(made())).tags if "id" in each]
    assert len(names) == len(set(names))


def test_the_page_is_small(tmp_path: Path) -> None:
    write_report(made(), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_predictions_that_would_make_the_page_too_large_stay_out_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxmargin.studies.reports.page.KEPT_PREDICTIONS", 100)
    values = json.loads(Page(page_of(made())).scripts[0])
    assert "predictions" not in values["facts"]
    assert values["curves"] != []


def test_what_was_interrupted_is_shown_as_far_as_it_got() -> None:
    facts = deepcopy(made())
    last = facts["models"][-1]
    last["metrics"] = {name: dict.fromkeys(n) for name, n in last["metrics"].items()}
    facts |= {"interrupted": True, "predictions": {}, "features": {}, "paths": {}}
    words = words_of(facts)
    assert "was interrupted" in words
    assert "Curves" not in words
    facts |= {"models": [], "best": None, "recommended": None, "equivalent": [], "fold_results": []}
    assert "no answer" in words_of(facts)


def test_a_score_that_guessing_would_reach_is_told() -> None:
    facts = deepcopy(made())
    facts["majority"]["balanced_accuracy"] = 0.96
    assert "perhaps there is nothing to learn" in words_of(facts)


def test_findings_and_their_advice_are_shown() -> None:
    facts = deepcopy(made())
    facts["data"]["card"]["findings"] = [{"what": "Two rows agree.", "advice": "Look at them."}]
    assert "Two rows agree. Look at them." in words_of(facts)


def test_other_dictionaries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the facts of a comparison"):
        write_report({"format": "something else"}, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r"A report needs vl_convert.*install"):
        check_libraries()
