"""Of processes that need the same kernel at once one compiles it, and none waits for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxmargin.compiled import folders, turns
from proxmargin.compiled.turns import turn
from tests.compiled.test_kept_kernels import UNIX, fresh, place, was_found

__all__ = ["place"]

HOLD = """
import sys
from proxmargin.compiled.turns import turn
with turn({kernel!r}):
    print("has it", flush=True)
    sys.stdin.read()
"""


def holder(place: Path, kernel: str) -> subprocess.Popen[str]:
    """Another process, whose turn it is until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(kernel=kernel)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "has it\n"
    return process


def waited(kernel: str) -> float:
    """Seconds until it is the turn of this process."""
    start = time.monotonic()
    with turn(kernel):
        return time.monotonic() - start


@UNIX
def test_a_process_waits_for_another_that_compiles_the_same(place: Path, monkeypatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    with holder(place, "a.nbc") as other:
        assert waited("a.nbc") >= 0.2  # and no longer: the other may have been stopped
        assert waited("b.nbc") < 0.2
        other.kill()
        other.wait()
        monkeypatch.setattr(turns, "PATIENCE", 60.0)
        assert waited("a.nbc") < 30.0


@UNIX
def test_nobody_waits_for_what_is_on_disk(place: Path, monkeypatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 60.0)
    with holder(place, "a.nbc") as other:
        (place / folders.NAME / "a.nbc").touch()
        assert waited("a.nbc") < 30.0
        other.kill()


def test_a_kernel_that_cannot_be_compiled_ends_its_turn(place: Path) -> None:
    kernel = fresh()
    with pytest.raises(Exception, match="No implementation of function"):
        kernel("a", None, 2.0)
    assert not was_found()
    assert was_found()
