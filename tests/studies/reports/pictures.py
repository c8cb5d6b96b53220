"""Pictures of a report's first screens, for the documentation.

python -m tests.studies.reports.pictures report.html docs/pictures
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.studies.reports.browser import CHROMIUM, FLAGS, PATIENCE

# file, width and height in pixels, theme of the system, element (None: the first screen)
PICTURES = (
    ("report.png", 1280, 900, "light", None),
    ("report-dark.png", 1280, 900, "dark", None),
    ("report-phone.png", 360, 740, "light", None),
    ("report-curves.png", 1280, 1800, "light", "#curves"),
    ("report-model.png", 1280, 1800, "light", "#detail"),
    ("report-clinical.png", 1280, 1800, "light", "#clinical"),
)


def main(report: str, folder: str) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        for name, width, height, theme, element in PICTURES:
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
            page.goto(Path(report).resolve().as_uri())
            page.wait_for_selector("html[data-ready]", state="attached", timeout=PATIENCE)
            target = page.locator(element) if element else page
            target.screenshot(path=Path(folder) / name)
            page.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
