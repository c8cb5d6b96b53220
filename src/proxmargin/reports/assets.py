"""What a page brings along: style, scripts and the charting library, all inside the file."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from proxmargin.runtime.brief import plain
from proxmargin.runtime.optional import optional

__all__ = ["charting_library", "check_libraries", "island", "policy", "template", "text_of"]

FOLDER = Path(__file__).parent / "template"
USE = "A report"
EXTRA = "report"
# what the library is asked for; the rest is left out of the bundle
SNIPPET = "window.vegaEmbed = vegaEmbed;"


def check_libraries() -> None:
    """Raise ImportError, with the command that installs them, where a library is missing."""
    for library in ("jinja2", "vl_convert"):
        optional(library, USE, EXTRA)


@cache
def charting_library() -> str:
    """Vega-Lite with all that it needs, as one script that loads nothing."""
    bundle = optional("vl_convert", USE, EXTRA).javascript_bundle(SNIPPET)
    # within a string or a regular expression, the same; in HTML, no end of the element
    return str(bundle).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def template(name: str) -> Any:
    """A template whose values are escaped, and whose unknown names are errors."""
    jinja2 = optional("jinja2", USE, EXTRA)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def text_of(name: str) -> str:
    """A style sheet or script of the page."""
    return (FOLDER / name).read_text(encoding="utf-8")


def island(value: Any) -> str:
    """JSON for a script element: no character of it can end the element, a line or a string."""
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(styles: list[str], scripts: list[str]) -> str:
    """A content security policy: these styles and scripts by their digests, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_source, scripts))}",
            f"style-src {' '.join(map(_source, styles))}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _source(text: str) -> str:
    # browsers hash the text after its line ends are made \n
    digest = hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
