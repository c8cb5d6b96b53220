"""Long commands say what they do now; ``--quiet`` silences them."""

from __future__ import annotations

import pytest

from proxmargin.cli import main
from proxmargin.cli.failures import OK
from proxmargin.runtime.progress import ProgressBar

# the command, what counts its work, and what runs first
COMMANDS = [
    (
        "compare iris --models SquaredHingeSVC --folds 2",
        "compare",
        "SquaredHingeSVC, fold 1 of 2",
    ),
    (
        "cv wine --model SquaredHingeSVC --n-strengths 4 --folds 2",
        "SquaredHingeSVCCV: fits",
        "fold 1 of 2",
    ),
    ("fit wine --model SquaredHingeSVC --cv 2", "cross-validation: folds", "fold 1"),
    (
        "stability wine --model SquaredHingeSVC --n-strengths 3 --pairs 5 --q 1",
        "StabilitySelection: half-samples",
        "half 1 of pair 1",
    ),
    (
        "permute breast_cancer --model DWD --permutations 3",
        "DWD, mean-difference: permuted labels",
        None,
    ),
    ("path wine --model HuberizedSVC --n-alphas 3", "HuberizedSVC path: strengths", None),
]


@pytest.mark.parametrize(("command", "label", "first"), COMMANDS, ids=lambda each: str(each)[:9])
@pytest.mark.parametrize("quiet", [False, True])
def test_it_names_what_runs_unless_it_is_to_be_quiet(command, label, first, quiet, monkeypatch):
    begun, said = [], []
    entered = ProgressBar.__enter__

    def enter(progress: ProgressBar) -> ProgressBar:
        begun.append((progress.label, progress.shown))
        return entered(progress)

    monkeypatch.setattr(ProgressBar, "__enter__", enter)
    monkeypatch.setattr(ProgressBar, "starts", lambda progress, what: said.append(what))
    assert main([*command.split(), *(["-q"] if quiet else [])]) == OK
    assert begun
    assert all(shown != quiet for _, shown in begun)
    assert quiet or label in dict(begun)
    assert first is None or said[0] == first
