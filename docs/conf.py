"""The site: ``python3 run.py docs`` builds it, and says where it is."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

import proxmargin

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent / "benchmarks"
RESULTS = HERE / "generated" / "benchmarks"
sys.path[:0] = [str(HERE / "_ext"), str(HERE / "examples")]
os.environ.setdefault("MPLBACKEND", "agg")

project = "proxmargin"
author = "The proxmargin developers"
copyright = "the proxmargin developers, BSD-3-Clause"
version = release = proxmargin.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "executed",
    "mathml",
]
exclude_patterns = ["_ext", "_templates", "gallery", "generated/gallery/**/*.ipynb"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline", "fieldlist"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autosummary_generate = sorted(str(page) for page in (HERE / "reference").glob("*.md"))
autodoc_typehints = "none"  # numpydoc has them in the sections
numpydoc_show_class_members = False

SECTIONS = ("models", "choosing", "evidence", "solvers", "data", "papers")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [f"gallery/{name}" for name in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("proxmargin",),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|.*Display",
    "remove_config_comments": True,
    "parallel": 2,
}

html_theme = "pydata_sphinx_theme"
html_title = "proxmargin"
html_static_path = ["_static"]
# pages beside the folders have no list of neighbours
html_sidebars = {key: [] for key in ("certificate", "errata", "errors", "glossary", "mathematics")}
html_css_files = ["site.css"]
html_js_files = ["print.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse for local files
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # the widest tables have the room of the contents
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "generated/benchmarks/results/cells": [],
        "generated/benchmarks/results/unified": [],
    },
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}


def copy_results(app: Sphinx) -> None:
    """What benchmarks write becomes pages: copies in the same places."""
    for file in [*BENCHMARKS.glob("*.md"), *BENCHMARKS.rglob("results/*.md")]:
        text = file.read_text(encoding="utf-8").replace("[results](results)", "results")
        text = text.replace("](../docs/", "](../../")
        if "\n## " not in text:  # headings in steps of one
            text = text.replace("\n### ", "\n## ")
        place = file.relative_to(BENCHMARKS)
        if place.parent == Path():
            pages = "results" if file.stem == "RESULTS" else "papers/results"
            text += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{pages}/*\n```\n"
        write(RESULTS / place, text)
    for picture in BENCHMARKS.rglob("results/*.svg"):
        write(RESULTS / picture.relative_to(BENCHMARKS), picture.read_text(encoding="utf-8"))


def write(copy: Path, text: str) -> None:
    """Write a file, unless it is there: pages that did not change are not built anew."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.exists() or copy.read_text(encoding="utf-8") != text:
        copy.write_text(text, encoding="utf-8")


def lead_to_copies(app: Sphinx, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")
    pattern = r"\]\([./]*/(benchmarks/(?:[a-z/]*results/|RESULTS|PAPERS))"
    source[0] = re.sub(pattern, rf"]({up}generated/\1", source[0])


def written_out(app: Sphinx, what: str, name: str, obj: object, *rest: object) -> object:
    """The parameters of a class, where autodoc sees those of ``__new__``."""
    if what != "class":
        return None
    found = inspect.signature(obj)
    bare = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    shown = [each for each in bare if not each.name.startswith("_")]
    return str(found.replace(parameters=shown, return_annotation=found.empty)), ""


# what tools write without a name for screen readers, and with one
NAMED = {
    '<summary><span class="toctree-toggle"': (
        '<summary aria-label="Pages of this section"><span class="toctree-toggle"'
    ),
    "<th></th>": "<td></td>",
    '<th class="head"><p></p></th>': "<td></td>",
    '<th class="head"></th>': "<td></td>",
}


def finish(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            named = functools.reduce(lambda done, pair: done.replace(*pair), NAMED.items(), text)
            if named != text:
                page.write_text(named, encoding="utf-8")
        print(f"\nOpen {Path(app.outdir, 'index.html').resolve().as_uri()}")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", copy_results)
    app.connect("source-read", lead_to_copies)
    app.connect("autodoc-process-signature", written_out)
    app.connect("build-finished", finish)
