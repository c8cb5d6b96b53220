"""``proxmargin info``: models, data and damaged files."""

from __future__ import annotations

import gzip
import json
import pickle
import shlex

import numpy as np
import pandas as pd
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

    def test_a_damaged_model_is_a_sentence(self, model, tmp_path, capsys):
        path, whole = tmp_path / "damaged.pmz", model.read_bytes()
        # names of two members in the directory at the end no longer fit those before the members
        path.write_bytes(whole[:-150] + bytes(100) + whole[-50:])
        assert main(["info", str(path)]) == USAGE
        err = capsys.readouterr().err
        assert err.startswith(f"proxmargin: error: {path}: ")
        assert "--debug" not in err

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "empty"),
            (b"\x89PNG\r\n\x1a\n\0\0", "picture"),
            (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
            (pickle.dumps([1, 2] * 99, protocol=2), "pickle"),
            (pickle.dumps([1, 2] * 99, protocol=5), "pickle"),
            (b"PK\x03\x04" + bytes(50), "cannot be read"),
            (gzip.compress(b"a,b,y\n1,2,p\n" * 99, mtime=0)[:-9], "cannot be read"),
            (b"a,b,y\n1,2,p\n1,2,3,q\n" + b"3,4,q\n" * 20, "line 3 has 4"),
            (b"a,b,y\n1,2,p\n1,2\0,q\n3,4,q\n", "NUL"),
        ],
    )
    @pytest.mark.parametrize("name", ["d.csv", "d", "d.txt"])
    def test_what_no_command_can_read_is_described(self, tmp_path, capsys, name, content, words):
        path = tmp_path / name
        path.write_bytes(content)
        assert main(["info", str(path), "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert words in facts["problem"]
        assert facts.get("bytes", 0) == len(content)
        if words == "line 3 has 4":
            assert facts["header"] == ["a", "b", "y"]
        assert main(["fit", str(path), "--model", "SVC"]) == USAGE

    def test_doubtful_classes_are_said_once(self, tmp_path, capsys):
        (tmp_path / "d.csv").write_text("x,y\n1,a\n2,?\n3,a\n4,?\n")
        assert main(["info", str(tmp_path / "d.csv"), "--json"]) == OK
        err = capsys.readouterr().err
        assert err.startswith("proxmargin: warning: ")
        assert err.count("'?' looks like a missing value") == 1

    def test_a_misspelt_column_of_codes_is_told_with_the_nearest_one(self, training, capsys):
        name = training.read_text().partition(",")[0]
        given = ["--missing", f"{name}e=-9,-1", "--missing", "unknown"]
        assert main(["info", str(training), *given]) == OK
        out = capsys.readouterr().out
        words = out.split("read with:")[1].split()[3:]
        assert words == ["--missing", f"{name}=-9,-1,unknown"]
        assert main(["fit", str(training), "--model", "SVC", *given]) == USAGE
        assert f"--missing {name}=-9" in capsys.readouterr().err

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


class TestWhatCannotBeRead:
    """A file is described all the same, with a command that reads it."""

    @pytest.fixture
    def told(self, tmp_path, capsys):
        def run(content: str, *given: str):
            path = tmp_path / "d.csv"
            path.write_text(content)
            assert main(["info", str(path), "--json", *given]) == OK
            return json.loads(capsys.readouterr().out), str(path)

        return run

    @pytest.mark.parametrize(
        ("content", "typed"),
        [
            ("a,y\n1,p\n,q\n3,p\n4,q\n", "--impute median"),
            ("a,b,y\n1,u,p\n2,v,q\n3,u,p\n", "--encode"),
            ("a,a,y\n1,2,p\n2,2,q\n3,1,p\n", "--duplicates suffix"),
            ("a,y\n1,p\n2,q\n3,\n4,q\n", "--unlabelled drop"),
            ("b,x\nu,1.5\nv,2.5\nu,3.25\nv,4.5\n", "--target b"),
            ("a;y\n1,5;p\n2,5;q\n3,5;p\n4,5;q\n", "--decimal ,"),
            ("a;y\n1.001,5;p\n2.002,5;q\n3.003,5;p\n4.004,5;q\n", "--decimal , --thousands ."),
            ("a,y\n1,p\n2,q\n3,p\n4,q\nTotal,\n", "--unlabelled drop"),
            ("a,a,b,y\n1,,u,p\n2,2,v,q\n3,1,u,\n", None),
        ],
    )
    def test_the_command_reads_it(self, told, content, typed):
        facts, path = told(content)
        words = facts["read_with"].split()
        assert words[:3] == ["proxmargin", "compare", path]
        assert typed is None or " ".join(words[3:]) == typed
        again, _ = told(content, *words[3:])
        assert "problem" in facts
        assert "problem" not in again
        assert again["rows"] == facts["rows"]

    def test_no_sample_is_a_header_where_its_name_was_typed(self, told):
        lines = [f",PT_{k},{k * 37 % 11}.5,{k * 53 % 7}.25,{k % 2}" for k in range(1, 21)]
        content = "\n".join(lines) + "\n"
        facts, _ = told(content, "--ignore", "PT_1")
        assert facts["rows"] == len(lines)
        assert "--no-header" in facts["problem"]
        assert facts["read_with"].endswith(" --no-header --ignore 1 --impute median")
        assert "PT_1" not in facts["read_with"]
        facts, _ = told(content, "--id=PT_1")
        assert facts["read_with"].endswith("d.csv --no-header --id 1 --impute median")
        again, _ = told(content, "--no-header", "--ignore", "0", "--ignore", "1")
        assert again["rows"] == len(lines)
        assert "problem" not in again

    def test_genes_in_rows_are_recognised(self, told):
        rows = "".join(f"g{k},{k}.5,{k * k}.25,3.5\n" for k in range(20))
        facts, _ = told("gene,s1,s2,s3\n" + rows)
        assert (facts["rows"], facts["columns"]) == (20, 4)
        assert "--transpose" in facts["doubt"]
        assert facts["read_with"].endswith("--transpose --labels FILE")
        facts, path = told("gene,s1,s2,s3\n" + rows, "--transpose")
        assert facts["read_with"] == f"proxmargin compare {path} --transpose --labels FILE"

    def test_a_table_without_labels_asks_for_them(self, told, tmp_path):
        rows = "".join(f"s{k},{k * 7 % 12}.5,{k * k % 11}.25\n" for k in range(12))
        facts, path = told("sample,a,b\n" + rows)
        assert facts["read_with"].endswith("--labels FILE")
        clinic = tmp_path / "clinic.csv"
        lines = "".join(f"s{k},{'uv'[k % 2]},{k * 5 % 12}.5\n" for k in range(12))
        clinic.write_text("id,kind,weight\n" + lines)
        facts, path = told("sample,a,b\n" + rows, "--labels", str(clinic))
        assert facts["read_with"] == f"proxmargin compare {path} --labels {clinic}"
        assert facts["target"] == "kind"

    def test_columns_of_lists_are_left_out(self, tmp_path, capsys):
        path = tmp_path / "d.parquet"
        frame = {"a": range(4), "many": [[1], [2], [3], [4]], "y": ["u", "v"] * 2}
        pd.DataFrame(frame).to_parquet(path)
        assert main(["info", str(path), "--json"]) == OK
        assert json.loads(capsys.readouterr().out)["read_with"].endswith(" --ignore many")

    @pytest.mark.parametrize("labels", ["", "s0,p\ns1,q\ns2,p\n"])
    def test_rows_without_a_label_are_told_once(self, tmp_path, capsys, labels):
        path, given = tmp_path / "d.csv", []
        path.write_text(
            "sample,a,y\n" + "".join(f"s{k},{k}.5,{'pq'[k % 2] if k else ''}\n" for k in range(20))
        )
        if labels:
            (tmp_path / "l.csv").write_text("sample,y\n" + labels)
            given = ["--labels", str(tmp_path / "l.csv"), "--ignore", "y"]
        assert main(["info", str(path), *given]) == OK
        captured = capsys.readouterr()
        assert "--unlabelled drop" in captured.out
        assert "label" not in captured.err.replace(str(tmp_path), "")

    def test_samples_of_different_names_may_be_alike(self, tmp_path, capsys):
        path = tmp_path / "d.csv"
        path.write_text(
            "sample,a,y\n" + "".join(f"s{k},{k % 5}.5,{'pq'[k % 2]}\n" for k in range(20))
        )
        assert main(["info", str(path)]) == OK
        assert "repeat earlier ones" not in capsys.readouterr().err
        assert main(["info", str(path), "--ignore", "sample"]) == OK
        assert "repeat earlier ones" in capsys.readouterr().err

    def test_gaps_ids_and_candidates_are_listed(self, told):
        rows = "".join(f"s{k},{k % 3 or ''},{'uv'[k % 2]},{k}.5\n" for k in range(12))
        facts, _ = told("sample,a,b,c\n" + rows)
        assert facts["names_of_samples"] == ["sample"]
        assert facts["target_candidates"] == ["b", "a"]
        assert facts["missing_cells"] == {"a": 4}
        assert facts["text_columns"] == ["b"]


class TestAdvice:
    """What warnings advise is in the command, which reads the file without them."""

    ROWS = 30

    @pytest.fixture
    def told(self, tmp_path, capsys):
        def run(columns: dict, *given: str, end: str = ""):
            rng = np.random.default_rng(4)
            path = tmp_path / "d.csv"
            labels = [("case", "control")[k] for k in rng.integers(0, 2, self.ROWS)]
            noise = rng.normal(size=self.ROWS).round(2)
            frame = pd.DataFrame({"grp": labels, "noise": noise, **columns})
            path.write_text(frame[[*frame.columns[1:], "grp"]].to_csv(index=False) + end)
            assert main(["info", str(path), "--json", *given]) == OK
            out, err = capsys.readouterr()
            return json.loads(out), err

        return run

    @pytest.mark.parametrize(
        ("columns", "typed"),
        [
            ({"sex": ["F", "f", "m"] * 10}, ["--encode", "--normalize-levels"]),
            ({"sex": ["f", "m", "f", "m", "?"] * 6}, ["--encode", "--missing 'sex=?'"]),
            ({"age": [30, 40, 50, 60, -9] * 6}, ["--missing age=-9", "--impute median"]),
            ({"a": [3, 4, 5, 6, -9] * 6, "b": [3, 4, 5, 6, 999] * 6}, ["a=-9", "--missing b=999"]),
            ({"grp": ["u", "u ", "v"] * 10}, ["--normalize-levels"]),
            ({"grp": ["rare", *["u", "v"] * 14, "v"]}, ["--drop-classes rare"]),
            ({"grp": ["r 1", "r2", *["u", "v"] * 14]}, ["--drop-classes 'r 1' --drop-classes r2"]),
        ],
    )
    def test_the_command_has_it_and_nothing_is_advised_then(self, told, columns, typed):
        facts, err = told(columns)
        command = facts["read_with"]
        assert all(each in command for each in typed)
        again, err = told(columns, *shlex.split(command)[3:])
        assert "problem" not in again
        assert not any(flag in err for flag in ("hardly meant", "codes of", "differ only", "folds"))
        assert again["read_with"] == command

    def test_numbers_of_samples_and_a_row_of_totals(self, told):
        numbers = [1000 + 37 * (7 * k % self.ROWS) for k in range(self.ROWS)]
        facts, _ = told({"id": numbers}, end="1.5,TOTAL,case\n")
        assert "--id id" in facts["problem"]
        assert facts["read_with"].endswith(" --id id --unlabelled drop")
        assert facts["ids"] == "id"

    @pytest.mark.parametrize("typed", [["--sheet", "3"], ["--sheet=3", "--encode"]])
    def test_options_of_other_files_are_left_out_of_it(self, told, typed):
        facts, _ = told({}, *typed)
        assert facts["problem"].endswith("leave out --sheet 3.")
        assert "--sheet" not in facts["read_with"]
        assert facts["rows"] == self.ROWS


def test_a_column_of_patients_is_told_as_groups_and_not_as_levels(tmp_path, capsys) -> None:
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.3f},{b:.3f},P-{i // 3:03d},{'fm'[i % 2]},{'yn'[i // 3 % 2]}"
        for i, (a, b) in enumerate(rng.normal(size=(60, 2)))
    ]
    file = tmp_path / "visits.csv"
    file.write_text("\n".join(["crp,wbc,patient,sex,sepsis", *rows]) + "\n")
    assert main(["info", str(file), "--json"]) == OK
    facts = json.loads(capsys.readouterr().out)
    assert "if 'patient' names patients, batches or centres" in facts["problem"]
    words = shlex.split(facts["read_with"])
    assert words[words.index("--groups") + 1] == "patient"
    assert "--encode" in words  # of the sex
    assert main(["fit", *words[2:], "--model", "DWD", "-q", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["data"]["columns"] == 4
