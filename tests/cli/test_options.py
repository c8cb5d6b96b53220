"""Options that subcommands share: text tables as other programs write them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK
from tests.cli.conftest import COLUMNS, ROWS


class TestTextTables:
    """Files as other programs write them."""

    OPTIONS = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1", "-q")

    @pytest.fixture
    def foreign(self, training, tmp_path) -> Path:
        rows = list(csv.reader(training.read_text().splitlines()))
        lines = [f"größe;{';'.join(rows[0])}"]
        lines += [f"n{j};{';'.join(row).replace('.', ',')}" for j, row in enumerate(rows[1:])]
        path = tmp_path / "foreign.dat"
        path.write_text("\n".join(lines), encoding="latin-1")
        return path

    def test_they_give_the_same_model(self, training, foreign, model, tmp_path):
        path = tmp_path / "m.pmz"
        arguments = ["fit", str(foreign), "--model", "HuberizedSVC", "--ignore", "größe"]
        arguments += ["--standardize", "yes"]
        assert main([*arguments, *self.OPTIONS, "-o", str(path)]) == OK
        np.testing.assert_array_equal(load_model(path).coef_, load_model(model).coef_)

    def test_they_are_predicted_and_described(self, foreign, model, tmp_path, capsys):
        out = tmp_path / "out.csv"
        assert main(["predict", str(model), str(foreign), *self.OPTIONS, "-o", str(out)]) == OK
        assert len(out.read_text().splitlines()) == ROWS + 1
        assert main(["info", str(foreign), "--ignore", "0", *self.OPTIONS, "--json"]) == OK
        assert json.loads(capsys.readouterr().out)["columns"] == COLUMNS

    def test_a_file_without_a_header(self, training, tmp_path, capsys):
        path = tmp_path / "bare.tsv"
        lines = training.read_text().splitlines()[1:]
        path.write_text("\n".join(line.replace(",", "\t") for line in lines))
        assert main(["info", str(path), "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert "(--no-header)" in facts["problem"]
        assert facts["read_with"] == f"proxmargin compare {path} --no-header"
        assert main(["info", str(path), "--no-header", "--sep", "tab", "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert (facts["rows"], facts["target"]) == (ROWS, str(COLUMNS))


def test_codes_of_missing_cells_may_be_negative(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,y\n1,p\n-9,q\n-99,p\n2,q\n")
    command = ["info", str(tmp_path / "d.csv"), "--impute", "mean", "--json", "--missing"]
    assert main([*command, "-9,-99"]) == OK
    assert json.loads(capsys.readouterr().out)["missing_cells"] == {"a": 2}
