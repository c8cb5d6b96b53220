"""Code blocks that run while the site is built: a page shows what its code prints and draws.

``{run}`` holds Python. The blocks of one page share their names and a folder. What a block prints,
the value of its last line and its figures follow it. A figure needs the option ``alt``; a block
that is meant to fail has the option ``error``, and shows the message. A warning is shown, too.
With the option ``fold`` the code is there, but closed.
``{shell}`` holds commands for bash, in the same folder; ``status`` is the exit status it expects,
and ``keep`` names a file that they write, which becomes a part of the site.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FIGURES = "generated/figures"
LONGEST = 600  # seconds of a command
WIDTH = 96  # characters of a line of output


class Page:
    """What the blocks of a page share."""

    def __init__(self, name: str) -> None:
        self.name = name.replace("/", "-")
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.folder = tempfile.TemporaryDirectory()
        self.n_figures = 0


class Executed(SphinxDirective):
    has_content = True

    @property
    def page(self) -> Page:
        name = self.env.docname
        pages = self.env.temp_data
        if "executed" not in pages:
            pages["executed"] = Page(name)
        return pages["executed"]

    @property
    def code(self) -> str:
        return "\n".join(self.content)

    def output(self, printed: str) -> list[nodes.Node]:
        """What was printed, with sentences wrapped and tables as they are."""
        lines = [
            line if "  " in line.strip() else "\n".join(textwrap.wrap(line, WIDTH) or [""])
            for line in printed.rstrip().splitlines()
        ]
        return [self.shown("\n".join(lines), "text", "executed-output")] if lines else []

    def shown(self, text: str, language: str, kind: str) -> nodes.literal_block:
        block = nodes.literal_block(text, text, language=language, classes=[kind])
        self.set_source_info(block)
        return block


class Run(Executed):
    option_spec = {
        "alt": directives.unchanged,
        "error": directives.flag,
        "fold": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        parts: list[nodes.Node] = [self.shown(self.code, "python", "executed-code")]
        if "fold" in self.options:
            begin, end = '<details class="executed-fold"><summary>Code</summary>', "</details>"
            parts = [nodes.raw("", begin, format="html"), *parts, nodes.raw("", end, format="html")]
        with contextlib.chdir(self.page.folder.name):
            printed, value, told = self.executed()
        if ("error" in self.options) != (told is not None):
            raise self.error(f"the code raised {told}:\n{printed}")
        html = getattr(value, "_repr_html_", None)
        if value is not None and html is None:
            printed += f"{value!r}\n"
        printed += told or ""
        parts += self.output(printed)
        if html is not None:
            table = f'<div class="executed-table" tabindex="0">{html()}</div>'
            parts.append(nodes.raw("", table, format="html"))
        return parts + self.figures()

    def executed(self) -> tuple[str, Any, str | None]:
        """What is printed, the value of the last expression, and the text of an error."""
        lines = ast.parse(self.code).body
        last = lines.pop() if lines and isinstance(lines[-1], ast.Expr) else None
        output, value = io.StringIO(), None
        names = self.page.names
        with contextlib.redirect_stdout(output), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                exec(compile(ast.Module(lines, []), "<page>", "exec"), names)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "<page>", "eval"), names)
            except Exception as error:
                plt.close("all")
                return output.getvalue(), None, f"{type(error).__name__}: {error}"
        told = {f"{each.category.__name__}: {each.message}\n": each.category for each in caught}
        output.writelines(text for text, kind in told.items() if issubclass(kind, UserWarning))
        drawn = type(value).__module__.startswith("matplotlib") or "Display" in type(value).__name__
        return output.getvalue(), None if drawn else value, None

    def figures(self) -> list[nodes.Node]:
        parts: list[nodes.Node] = []
        for number in plt.get_fignums():
            if "alt" not in self.options:
                raise self.error("a figure needs the option alt: what it shows, in a sentence")
            page = self.page
            page.n_figures += 1
            file = f"{FIGURES}/{page.name}-{page.n_figures}.png"
            path = Path(self.env.srcdir, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            plt.figure(number).savefig(path, dpi=150, bbox_inches="tight")
            plt.close(number)
            image = nodes.image(uri=f"/{file}", alt=self.options["alt"])
            self.set_source_info(image)
            parts.append(image)
        return parts


class Shell(Executed):
    option_spec = {"status": int, "keep": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        found = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        plain = {"PATH": found, "COLUMNS": "96", "TERM": "dumb", "NO_COLOR": "1"}
        done = subprocess.run(
            ["bash", "-euc", self.code],
            cwd=self.page.folder.name,
            env=os.environ | plain,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
        )
        if done.returncode != self.options.get("status", 0):
            raise self.error(f"the command ended with status {done.returncode}:\n{done.stdout}")
        parts: list[nodes.Node] = [self.shown(self.code, "sh", "executed-code")]
        return parts + self.output(done.stdout) + self.kept()

    def kept(self) -> list[nodes.Node]:
        if "keep" not in self.options:
            return []
        name = self.options["keep"]
        kept = Path("kept", self.page.name, name)
        Path(self.env.app.outdir, kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(self.page.folder.name, name), Path(self.env.app.outdir, kept))
        up = "../" * self.env.docname.count("/")
        link = (
            f'<p><a href="{up}{kept.as_posix()}">Open {name}</a>, as these commands wrote it.</p>'
        )
        return [nodes.raw("", link, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("run", Run)
    app.add_directive("shell", Shell)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
