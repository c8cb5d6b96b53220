"""Messages of the library, which name parameters, rephrased with command-line options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxmargin.cli.models import OPTIONS

__all__ = ["as_options"]

_SWITCHES: Mapping[str, str] = {
    "encode=True": "--encode",
    "header=False": "--no-header",
    "fit_intercept=False": "--no-intercept",
    "standardize=False": "--no-standardize",
}
_FLAGS: Mapping[str, str] = {
    **{option.parameter: option.flag for option in OPTIONS},
    "separator": "--sep",
    "decimal": "--decimal",
    "encoding": "--encoding",
    "n_alphas": "--n-alphas",
    "n_jobs": "--jobs",
    "n_pairs": "--pairs",
    "target": "--target",
    "ignore": "--ignore",
    "groups": "--groups",
    "weights": "--weights",
    "ids": "--id",
    "time_limit": "--time-limit",
    "run_dir": "--run",
    "repeats": "--repeats",
    "metrics": "--metrics",
    **{name: f"--{name}" for name in ("threshold", "pfer", "q", "fdr", "assumption", "cluster")},
}
_ASSIGNMENT = re.compile(rf"(?<![\w.])({'|'.join(_FLAGS)})=(?:'([^']*)'|([-+\w.]*\w))?")
_BOUND = re.compile(rf"(?<![\w.])({'|'.join(_FLAGS)}) (>=|<=) (?=[\d.])")
_BOUNDS: Mapping[str, str] = {">=": "of at least", "<=": "of at most"}


def as_options(sentence: str) -> str:
    """The sentence with options in the place of parameters: ``nu=0.5`` becomes ``--nu 0.5``.

    Bounds are words, as shells take ``>`` for a file: ``q <= 3`` becomes ``--q of at most 3``.
    """
    for switch, option in _SWITCHES.items():
        sentence = sentence.replace(switch, option)
    sentence = _BOUND.sub(lambda found: f"{_FLAGS[found[1]]} {_BOUNDS[found[2]]} ", sentence)
    return _ASSIGNMENT.sub(_option, sentence)


def _option(found: re.Match[str]) -> str:
    name, word, value = found.groups()
    return " ".join(part for part in (_FLAGS[name], word or value) if part)
