"""``proxmargin info``: models, data and damaged files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE
from tests.cli.conftest import COLUMNS, ROWS


class TestInfo:
    def test_a_model_is_described(self, model, capsys):
        assert main(["info", str(model)]) == OK
        out = capsys.readouterr().out
        assert "HuberizedSVC" in out
        assert "converged: objective" in out
        assert main(["info", str(model), "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert facts["features"] == COLUMNS
        assert facts["classes"] == ["benign", "malignant"]

    def test_a_model_with_another_suffix_is_recognised(self, model, tmp_path, capsys):
        path = tmp_path / "model.zip"
        path.write_bytes(model.read_bytes())
        assert main(["info", str(path)]) == OK
        assert "estimator:" in capsys.readouterr().out

    @pytest.mark.parametrize("name", ["data.npz", "model.pmz"])
    def test_a_damaged_archive_is_a_sentence(self, model, tmp_path, name, capsys):
        path = tmp_path / name
        np.savez(tmp_path / "whole.npz", X=np.eye(2), y=[0, 1])
        whole = (tmp_path / "whole.npz" if name == "data.npz" else model).read_bytes()
        # names of two members in the directory at the end no longer fit those before the members
        path.write_bytes(whole[:-150] + bytes(100) + whole[-50:])
        assert main(["info", str(path)]) == USAGE
        err = capsys.readouterr().err
        assert err.startswith(f"proxmargin: error: {path}: ")
        assert "--debug" not in err

    def test_doubtful_classes_are_said_once(self, tmp_path, capsys):
        (tmp_path / "d.csv").write_text("x,y\n1,a\n2,?\n3,a\n4,?\n")
        assert main(["info", str(tmp_path / "d.csv"), "--json"]) == OK
        err = capsys.readouterr().err
        assert err.startswith("proxmargin: warning: ")
        assert err.count("'?' looks like a missing value") == 1

    def test_data_are_described(self, training, capsys):
        assert main(["info", str(training), "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert (facts["rows"], facts["columns"], facts["target"]) == (ROWS, COLUMNS, "class")
        assert sum(facts["classes"].values()) == ROWS


def test_the_largest_coefficients_of_a_model_are_named(model, capsys):
    assert main(["info", str(model)]) == OK
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("top features:"))
    assert " per sd)" in line
    assert main(["info", str(model), "--json"]) == OK
    leading = json.loads(capsys.readouterr().out)["top_features"]
    own = load_model(model).coefficients()
    assert [each["feature"] for each in leading] == own["feature"].tolist()[:10]
    assert leading[0]["coefficient_per_sd"] == own["coefficient_per_sd"][0]
