"""Tables for people, JSON for machines."""

from __future__ import annotations

import json

import numpy as np

from proxmargin.cli import output


class TestOutput:
    def test_numbers_that_json_lacks_become_null(self, capsys):
        output.print_json({"a": [np.nan, np.float64(1.5), np.inf], 2: np.arange(2), "n": None})
        assert json.loads(capsys.readouterr().out) == {
            "a": [None, 1.5, None],
            "2": [0, 1],
            "n": None,
        }
