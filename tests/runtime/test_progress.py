"""Progress: what runs now, how fast, and how much longer."""

from __future__ import annotations

import sys
import threading

import pytest

from proxmargin.runtime import progress as module
from proxmargin.runtime.progress import ProgressBar, duration


@pytest.fixture
def at_once(monkeypatch) -> None:
    """Shows from the beginning, where the work of a test takes no time."""
    monkeypatch.setattr(module, "SHOW_AFTER", 0.01)


def paused() -> None:
    threading.Event().wait(0.1)


class TestProgress:
    def test_it_is_silent_for_short_work_and_when_switched_off(self, capfd, monkeypatch):
        with ProgressBar("work", 2) as progress:
            progress.advance()
        monkeypatch.setattr("proxmargin.runtime.progress.SHOW_AFTER", 0.0)
        with ProgressBar("work", 2, shown=False) as progress:
            progress.advance()
        assert capfd.readouterr() == ("", "")

    def test_it_goes_to_standard_error_with_the_last_result(self, capfd, monkeypatch):
        monkeypatch.setattr("proxmargin.runtime.progress.SHOW_AFTER", 0.01)
        with ProgressBar("work", 2) as progress:
            progress.advance(latest="first")
            threading.Event().wait(0.1)
        out, err = capfd.readouterr()
        assert out == ""
        assert "work: 1 of 2 done" in err
        assert "last first" in err


def test_a_line_says_what_runs_now(capfd, at_once):
    with ProgressBar("compare", 3) as progress:
        progress.starts("SVC, fold 1 of 3")
        paused()
        progress.advance(3)
        paused()
    first, *_, last = capfd.readouterr().err.splitlines()
    assert first == "compare: 0 of 3 done, 0 s, now SVC, fold 1 of 3"
    assert last.startswith("compare: 3 of 3 done, 0 s, ")
    assert "now" not in last  # nothing runs any more


def test_rate_and_time_left_are_those_of_this_run(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    progress = ProgressBar("work", 100)
    progress.skip(40)  # done by an earlier run
    clock[0] = 10.0
    assert progress.words == ""
    progress.advance(20)
    assert progress.per_second == 2.0
    assert progress.left == 20.0
    assert progress.words == "2/s, about 20 s left"
    clock[0] = 100.0
    assert progress.words == "5 s each, about 3 min left"
    progress.advance(40)
    assert "left" not in progress.words


def test_the_rate_of_an_unknown_total_is_told_without_an_end(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    progress = ProgressBar("work", None)
    clock[0] = 2.0
    progress.advance(8)
    assert progress.words == "4/s"


def test_a_terminal_has_the_same_words_in_a_bar(at_once, monkeypatch):
    pytest.importorskip("rich")
    shown = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        module._Bar, "show", lambda self, progress: shown.append((progress.done, progress.words))
    )
    with ProgressBar("work", 2) as progress:
        progress.starts("fold 1")
        paused()
    assert (0, "now fold 1") in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (119, "119 s"), (150, "2 min"), (7199, "120 min"), (7500, "2 h 5 min")],
)
def test_times_are_said_as_people_do(seconds, words):
    assert duration(seconds) == words


def test_lines_of_long_work_are_rarer(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    progress = ProgressBar("work", 2)
    assert module._Lines().pause(progress) == 5.0
    clock[0] = 600.0
    assert module._Lines().pause(progress) == 60.0
    progress.advance()
    assert progress.words.startswith("10 min each")
