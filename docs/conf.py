"""The site: ``python3 run.py docs`` builds it, and says where it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

import proxmargin

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
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

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc has them in the sections
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
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
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse for local files
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}


def say_where(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        print(f"\nOpen {Path(app.outdir, 'index.html').resolve().as_uri()}")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", say_where)
