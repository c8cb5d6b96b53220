"""The page in a browser: Chromium opens it, uses it and prints it, without a network."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from proxmargin.reports import write_report
from tests.studies.reports.browser import CHROMIUM, FLAGS, PATIENCE
from tests.studies.reports.facts import EVIL, evil_facts, facts_of

NEEDS = "browser tests need the extras report and browser: python3 run.py install test browser"
playwright = pytest.importorskip("playwright.sync_api", reason=NEEDS)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=NEEDS)
pytest.importorskip("vl_convert", reason=NEEDS)

pytestmark = pytest.mark.slow  # CI has a stage of its own for them

if CHROMIUM is None:
    pytest.skip("no Chromium here (Debian: apt-get install chromium)", allow_module_level=True)

CHARTS = ("ranking", "differences", "roc", "precision_recall", "calibration", "features")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of reports: two classes, three classes, and names that are markup."""
    folder = tmp_path_factory.mktemp("reports")
    cancer, iris = load_breast_cancer(), load_iris()
    facts = {
        name: facts_of(d.data, d.target, list(d.feature_names), list(d.target_names), data=name)
        for name, d in (("cancer", cancer), ("iris", iris))
    }
    for name, each in (facts | {"evil": evil_facts()}).items():
        write_report(each, folder / f"{name}.html")
    return {path.stem: path for path in folder.iterdir()}


class Opened:
    """A page, and what the browser said about it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))

    def ready(self) -> None:
        """Wait until nothing is being drawn."""
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=PATIENCE)


@contextmanager
def opened(browser: Any, path: Path, width: int = 1280, **options: Any) -> Iterator[Opened]:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, accept_downloads=True, **options
    )
    result = Opened(context.new_page())
    result.page.goto(path.as_uri())
    result.ready()
    yield result
    context.close()


@pytest.mark.parametrize(
    ("name", "width"), [("cancer", 360), ("cancer", 768), ("cancer", 1280), ("evil", 360)]
)
def test_it_opens_at_every_width_in_silence_and_asks_for_nothing(
    browser: Any, reports: dict[str, Path], width: int, name: str
) -> None:
    with opened(browser, reports[name], width) as report:
        page = report.page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for chart in CHARTS:
            box = page.locator(f'[data-chart="{chart}"] svg').bounding_box()
            assert box is not None, chart
            assert box["x"] >= 0, chart
            assert box["x"] + box["width"] <= width, chart
            assert box["height"] > 40, chart
        assert report.said == []
        assert report.asked == [reports[name].as_uri()]


def test_names_that_are_markup_are_drawn_as_they_are(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["evil"]) as report:
        page = report.page
        drawn = page.locator('[data-chart="ranking"] svg text').all_text_contents()
        listed = page.locator("#ranking-0 tbody th").all_text_contents()
        models = json.loads(page.locator("#page-data").text_content())["models"]
        assert set(EVIL) <= set(models)
        for name in EVIL:
            assert any(text.startswith(name[:12]) for text in drawn), name
            assert name in listed
        assert page.locator("img").count() == 0
        assert report.said == []


def test_the_policy_stops_scripts_and_requests_that_are_not_of_the_page(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["cancer"]) as report:
        ran = report.page.evaluate(
            """async () => {
              const script = document.createElement("script");
              script.textContent = "window.ran = true";
              document.body.append(script);
              const asked = await fetch("https://example.org/").then(() => true, () => false);
              // what the test itself evaluates is exempt; what it leaves for later is not
              setTimeout("window.evaluated = true", 0);
              await new Promise((done) => setTimeout(done, 100));
              return [window.ran === true, asked, window.evaluated === true];
            }"""
        )
        assert ran == [False, False, False]


def test_tables_sort_by_click_and_by_key(browser: Any, reports: dict[str, Path]) -> None:
    with opened(browser, reports["cancer"]) as report:
        table = report.page.locator("#ranking-0")
        headings = table.locator("thead th")
        assert headings.nth(1).get_attribute("aria-sort") == "descending"
        features = table.locator("tbody tr td:nth-child(5)")

        headings.nth(4).locator("button").click()
        assert headings.nth(4).get_attribute("aria-sort") == "descending"
        assert headings.nth(1).get_attribute("aria-sort") is None
        told = [text.split()[0] for text in features.all_text_contents()]  # of all samples
        shown = [float(text) for text in told if text != "–"]
        assert shown == sorted(shown, reverse=True)

        headings.nth(4).locator("button").press("Enter")
        assert headings.nth(4).get_attribute("aria-sort") == "ascending"
        texts = features.all_text_contents()
        assert texts[-1] == "–"  # no number comes last either way
        assert [float(text.split()[0]) for text in texts[:-1]] == sorted(shown)


def test_another_metric_brings_its_tables_and_charts(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["cancer"]) as report:
        page = report.page
        page.select_option("#metric", label="log loss")
        page.wait_for_function(
            """() => document.querySelector('[data-chart="ranking"]').textContent
              .includes("log loss (lower is better)")""",
            timeout=PATIENCE,
        )
        assert page.locator("#ranking-2").is_visible()
        assert not page.locator("#ranking-0").is_visible()
        assert page.locator("#evidence-2").is_visible()
        drawn = page.locator('[data-chart="ranking"] svg text').all_text_contents()
        ordered = page.locator("#ranking-2 tbody th").all_text_contents()[:5]
        assert [text for text in drawn if text in ordered] == ordered
        assert report.said == []


def test_models_and_classes_of_curves_are_chosen(browser: Any, reports: dict[str, Path]) -> None:
    with opened(browser, reports["iris"]) as report:
        page = report.page
        lines = '[data-chart="roc"] .mark-line path'
        before = page.locator(lines).count()
        page.locator('input[name="curve"]:not(:checked)').first.check()
        page.wait_for_function(
            "([lines, n]) => document.querySelectorAll(lines).length === n",
            arg=[lines, before + 1],
            timeout=PATIENCE,
        )
        page.select_option("#curve-class", label="virginica against the rest")
        page.select_option("#model", label="SVC")
        assert page.get_by_text("SVC has no weights of single features.").is_visible()
        assert not page.locator('[data-chart="features"]').is_visible()
        assert report.said == []


def test_themes_follow_the_system_until_the_button_is_pressed(
    browser: Any, reports: dict[str, Path]
) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    dot = """getComputedStyle(document.querySelector(
      '[data-chart="ranking"] .mark-symbol path')).fill"""
    with opened(browser, reports["cancer"], color_scheme="dark") as report:
        page = report.page
        dark = [page.evaluate(paper), page.evaluate(dot)]
        page.get_by_role("button", name="Light theme").click()
        light = [page.evaluate(paper), page.evaluate(dot)]
        assert all(a != b for a, b in zip(dark, light, strict=True))
        page.get_by_role("button", name="Dark theme").click()
        assert [page.evaluate(paper), page.evaluate(dot)] == dark
        page.emulate_media(media="print")
        assert page.evaluate(dot) == light[1]  # paper is white


def test_tables_and_facts_can_be_downloaded(
    browser: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    with opened(browser, reports["evil"]) as report:
        page = report.page
        with page.expect_download() as download:
            page.locator('[data-csv="ranking-0"]').click()
        download.value.save_as(tmp_path / "ranking.csv")
        with open(tmp_path / "ranking.csv", encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream))
        assert set(EVIL) <= {row[0] for row in rows}
        assert len({len(row) for row in rows}) == 1
        with page.expect_download() as download:
            page.get_by_role("button", name="Download all as JSON").click()
        download.value.save_as(tmp_path / "all.json")
        facts = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
        expected = json.loads(json.dumps(evil_facts()))
        predictions, given = facts.pop("predictions"), expected.pop("predictions")
        assert facts == expected
        for name in EVIL:
            np.testing.assert_allclose(
                predictions[name]["scores"], given[name]["scores"], rtol=1e-5
            )


@pytest.mark.parametrize(
    ("name", "scheme", "width"), [("iris", "light", 360), ("cancer", "dark", 1280)]
)
def test_axe_finds_no_serious_fault(
    browser: Any, reports: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    with opened(browser, reports[name], width, color_scheme=scheme) as report:
        report.page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
        found = axe.Axe().run(report.page).response["violations"]
        serious = [
            (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_every_control_is_reached_by_the_tab_key_in_order(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["cancer"]) as report:
        page = report.page
        names = []
        for _ in range(14):
            page.keyboard.press("Tab")
            names.append(page.evaluate("document.activeElement.textContent.trim()"))
        assert names[0] == "Skip to the answer"
        assert {"Data", "Ranking", "Dark theme"} <= set(names)
        assert page.evaluate("document.activeElement") is not None


def test_it_prints_with_tables_open_but_for_those_of_folds_points_and_paths(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["cancer"], color_scheme="dark") as report:
        page = report.page
        page.select_option("#model", label="SVC")
        page.emulate_media(media="print", color_scheme="dark")
        pdf = page.pdf(format="A4")
        assert pdf.startswith(b"%PDF")
        assert len(pdf) > 30_000
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open], .unprinted)").count() == 0
        hidden = page.locator("details.unprinted")
        assert hidden.count() == 3
        assert not any(each.is_visible() for each in hidden.all())
        assert page.locator("nav").is_visible() is False
        assert page.locator('[data-chart="ranking"] svg').is_visible()
        # what was chosen in a list is in the heading, and legends keep their colours
        assert page.locator("#h-detail").inner_text() == "One model in detail: SVC"
        assert page.locator("#h-ranking").inner_text() == "Ranking by balanced accuracy"
        styles = page.evaluate(
            """() => [[".key", "printColorAdjust"], ["thead", "breakInside"], [".sort", "display"]]
              .map(([place, name]) => getComputedStyle(document.querySelector(place))[name])"""
        )
        # Chromium repeats heads on the next page only where they hold no boxes such as buttons
        assert styles == ["exact", "avoid", "contents"]
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_nothing_is_clipped_or_runs_together_at_any_width(
    browser: Any, reports: dict[str, Path], width: int
) -> None:
    with opened(browser, reports["iris"], width) as report:
        page = report.page
        classes = "[...document.querySelectorAll('#data .scroll')]"
        assert page.evaluate(f"{classes}.every((each) => each.scrollWidth <= each.clientWidth)")
        for link in page.locator("nav a").all():
            box = link.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        touching = page.evaluate(
            """() => [...document.querySelectorAll(".chart .role-axis-label")].flatMap((axis) => {
              const boxes = [...axis.querySelectorAll("text")].filter((each) => each.textContent
                && getComputedStyle(each).opacity !== "0")
                .map((each) => each.getBoundingClientRect());
              return boxes.filter((a, i) => boxes.slice(i + 1).some((b) => a.left < b.right
                && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom));
            }).length"""
        )
        assert touching == 0


def test_a_reader_moves_the_threshold_of_the_clinical_rates(
    browser: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    with opened(browser, reports["cancer"]) as report:
        page = report.page
        page.select_option("#model", label="SVC")
        page.locator("#threshold").focus()
        for _ in range(25):
            page.keyboard.press("ArrowLeft")
        assert page.locator("output.threshold-shown").inner_text() == "0.25"
        points = json.loads(page.locator("#page-data").text_content())["facts"]["clinical"]
        points = points["models"]["SVC"]["thresholds"]
        rows = page.locator("#clinical [data-model]:not([hidden]) .rates tbody tr")
        shown = {
            row.locator("th").inner_text(): row.locator("td").nth(1).inner_text()
            for row in rows.all()
        }
        rate, low, high = points["ppv"][24]
        assert shown["positive predictive value"] == f"{rate:.3f} {low:.3f}\u00a0to\u00a0{high:.3f}"
        assert shown["false positives"] == str(points["fp"][24])
        assert page.locator('[data-chart="benefit"] svg').is_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download predictions as CSV").click()
        download.value.save_as(tmp_path / "predictions.csv")
        with open(tmp_path / "predictions.csv", encoding="utf-8-sig", newline="") as stream:
            table = list(csv.DictReader(stream))
        assert len(table) == 569
        assert {row["SVC"] for row in table} == {"malignant", "benign"}
        assert report.said == []


def test_the_legend_of_curves_has_their_areas(browser: Any, reports: dict[str, Path]) -> None:
    with opened(browser, reports["iris"]) as report:
        page = report.page
        curves = json.loads(page.locator("#page-data").text_content())["curves"]
        for k in (0, 2):
            page.select_option("#curve-class", value=str(k))
            shown = dict(
                zip(
                    page.locator("[data-auc]").evaluate_all(
                        "(all) => all.map((each) => Number(each.dataset.auc))"
                    ),
                    page.locator("[data-auc]").all_inner_texts(),
                    strict=True,
                )
            )
            expected = {each["m"]: f"AUC {each['auc']:.3f}" for each in curves if each["k"] == k}
            assert shown == expected
