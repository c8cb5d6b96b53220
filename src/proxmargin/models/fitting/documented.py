"""Parts of docstrings that several estimators share: the sections of `docstrings.txt`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)  # of estimator, which keeps its type

_TEXT = Path(__file__).with_name("docstrings.txt").read_text(encoding="utf-8")
_PIECES = re.split(r"^\[(\w+)\]$", _TEXT, flags=re.MULTILINE)
# by name, with the lines after the first indented as in a class; a section comes before those of
# which it has marks, ``<name>``
PARTS = {
    name: re.sub(r"\n(?=.)", "\n    ", part.strip())
    for name, part in zip(_PIECES[1::2], _PIECES[2::2], strict=True)
}


def documented(
    solvers: str,
    kind: str = "sparse",
    *,
    parameters: str = "",
    unpenalised: str = "",
    warm: str = "",
) -> Callable[[Kind], Kind]:
    """Fill the marks in a class docstring, and say where models without probabilities get them.

    ``kind``: the parameters and attributes, 'sparse' or 'kernel'; ``parameters``: others than
    those of the kind; ``unpenalised``: what is proved without a penalty, besides the optimum of
    separable data.
    """
    own = {"shared": PARTS[parameters or kind], "attributes": PARTS[f"{kind}_attributes"]}
    given = {"solvers": solvers, "unpenalised": PARTS.get(unpenalised, ""), "warm": warm}

    def fill(cls: Kind) -> Kind:
        text = cls.__doc__ or ""
        for name, part in (own | PARTS | given).items():
            text = text.replace(f"<{name}>", part)
        if not hasattr(cls, "predict_log_proba"):  # before the examples
            head, mark, examples = text.partition("\n    Examples\n")
            end = mark + examples if mark else "    "
            text = f"{head.rstrip()}\n\n    {PARTS['advice']}\n{end}"
        cls.__doc__ = text
        return cls

    return fill


def documented_kernels(solvers: str) -> Callable[[Kind], Kind]:
    """`documented` for models that take a kernel."""
    return documented(solvers, "kernel", warm="; linear kernels only")
