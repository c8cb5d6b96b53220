"""Tables for people, JSON for machines."""

from __future__ import annotations

import json
import sys

import numpy as np

from proxmargin.cli import output
from proxmargin.runtime.brief import Listing


class TestOutput:
    def test_numbers_that_json_lacks_become_null(self, capsys):
        output.print_json({"a": [np.nan, np.float64(1.5), np.inf], 2: np.arange(2), "n": None})
        assert json.loads(capsys.readouterr().out) == {
            "a": [None, 1.5, None],
            "2": [0, 1],
            "n": None,
        }

    def test_a_terminal_gets_rules_and_a_file_does_not(self, capsys, monkeypatch):
        listing = Listing(["model", "certified gap"], [["[a]", "1e-7"]])
        output.print_listing(listing)
        assert capsys.readouterr().out == listing.plain() + "\n"
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        output.print_listing(listing)
        shown = capsys.readouterr().out
        assert "[a]" in shown
        assert "─" in shown
