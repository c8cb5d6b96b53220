"""What the cells of the training table stand for stays with the model that was fitted to it."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from proxmargin import load_model, save_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE
from proxmargin.files.errors import ModelFileError
from tests.files.model_files import forged_file

IMPUTED = ("--model", "SVC", "--impute", "median")


@pytest.fixture
def ages(tmp_path):
    """A training table with -9 and 99 for unknown cells, and rows of which the first has both."""
    rng = np.random.default_rng(0)
    age, dose = rng.integers(20, 80, 40), rng.integers(1, 9, 40)
    rows = [f"{a},{d},{'b' if a > 50 else 'a'}" for a, d in zip(age, dose, strict=True)]
    rows[3], rows[5] = "-9,2,a", "70,99,b"
    (tmp_path / "age.csv").write_text("\n".join(["age,dose,y", *rows]) + "\n")
    (tmp_path / "new.csv").write_text("age,dose\n-9,99\n30,2\n")
    (tmp_path / "blank.csv").write_text("more,age,dose\n1,,\n1,30,2\n")
    return tmp_path


def scores(folder, capsys, data, *options):
    assert main(["predict", str(folder / "m.pmz"), str(folder / data), "--scores", *options]) == OK
    out, err = capsys.readouterr()
    return [float(row["score"]) for row in csv.DictReader(io.StringIO(out))], err


def fitted(folder, capsys, *options, data="age.csv", model=IMPUTED):
    assert main(["fit", str(folder / data), *model, *options, "-o", str(folder / "m.pmz")]) == OK
    return capsys.readouterr().err


class TestMissing:
    @pytest.mark.parametrize(
        "options", [("--missing", "age=-9,dose=99"), ("--missing", "-9", "--missing", "99")]
    )
    def test_codes_of_the_training_table_are_missing_in_others(self, ages, capsys, options):
        fitted(ages, capsys, *options)
        blank, _ = scores(ages, capsys, "blank.csv")
        found, err = scores(ages, capsys, "new.csv")
        assert found == blank
        assert err.count("read as the training data were") == 1
        assert "-9" in err
        assert "--missing" in err

    def test_a_column_that_is_not_there_has_no_codes(self, ages, capsys):
        fitted(ages, capsys, "--missing", "age=-9,dose=99,y=?")
        assert "y=?" not in scores(ages, capsys, "new.csv")[1]

    def test_codes_that_are_typed_are_added(self, ages, capsys):
        fitted(ages, capsys, "--missing", "age=-9")
        blank, _ = scores(ages, capsys, "blank.csv")
        assert scores(ages, capsys, "new.csv")[0][0] != blank[0]
        assert scores(ages, capsys, "new.csv", "--missing", "dose=99")[0] == blank

    def test_codes_stay_with_choices_and_recommended_models(self, ages, capsys):
        saved = str(ages / "m.pmz")
        for command in (
            ["cv", "--model", "SVC", "--n-strengths", "2", "--folds", "2"],
            ["compare", "--models", "SVC", "--quick", "--folds", "2"],
        ):
            options = ["--impute", "median", "--missing", "age=-9,dose=99", "-q", "-o", saved]
            assert main([command[0], str(ages / "age.csv"), *command[1:], *options]) == OK
            capsys.readouterr()
            assert load_model(saved).table_options_ == {"missing": ("age=-9", "dose=99")}

    def test_permutations_and_coefficients_read_them(self, ages, capsys):
        fitted(ages, capsys, "--missing", "age=-9,dose=99")
        file, data = str(ages / "m.pmz"), str(ages / "age.csv")
        for command in (["permute", file, data, "--permutations", "3"], ["coefs", file, data]):
            assert main(command) == OK
            assert capsys.readouterr().err.count("read as the training data were") == 1

    def test_a_matrix_is_taken_as_it_is_and_that_is_said(self, ages, capsys):
        fitted(ages, capsys, "--missing", "age=-9,dose=99")
        np.savez(ages / "new.npz", X=np.array([[-9.0, 99.0]]))
        assert "--missing" in scores(ages, capsys, "new.npz")[1]

    def test_files_without_options_and_with_forged_ones(self, ages, capsys):
        fitted(ages, capsys)
        model = load_model(ages / "m.pmz")
        assert not hasattr(model, "table_options_")
        assert "training data were" not in scores(ages, capsys, "new.csv")[1]
        model.table_options_ = {"missing": ("age=-9",)}
        save_model(model, ages / "again.pmz")
        assert load_model(ages / "again.pmz").table_options_ == {"missing": ("age=-9",)}
        for wrong in (
            [],
            {"missing": "x"},
            {"missing": ["age="]},
            {"duplicates": 1},
            {"signs": ["a=!"]},
            {"sep": ","},
        ):
            forge = forged_file(ages, model, lambda plain, w=wrong: plain.update(table=w))
            with pytest.raises(ModelFileError, match="table"):
                load_model(forge)


class TestOtherMeanings:
    def test_levels_are_joined_as_in_the_training_table(self, tmp_path, capsys):
        rows = "\n".join(f"{'Red' if k % 2 else 'blue'},{k},{k % 2}" for k in range(20))
        (tmp_path / "age.csv").write_text(f"c,x,y\n{rows}\n")
        (tmp_path / "new.csv").write_text("c,x\nred ,3\nblue,4\n")
        fitted(tmp_path, capsys, "--encode", "--normalize-levels", model=("--model", "SVC"))
        found, err = scores(tmp_path, capsys, "new.csv")
        assert found[0] > 0 > found[1]
        assert "--normalize-levels" in err

    def test_columns_of_one_name_are_taken_as_in_the_training_table(self, tmp_path, capsys):
        rows = "\n".join(f"{k},{k + 2},{int(k > 9)}" for k in range(20))
        (tmp_path / "age.csv").write_text(f"x,x,y\n{rows}\n")
        (tmp_path / "new.csv").write_text("x,x\n0,6\n")
        (tmp_path / "mean.csv").write_text("x\n3\n")
        fitted(tmp_path, capsys, "--duplicates", "mean", model=("--model", "SVC"))
        found, err = scores(tmp_path, capsys, "new.csv")
        assert found == scores(tmp_path, capsys, "mean.csv")[0]
        assert "--duplicates mean" in err


class TestCodesThatAreHardlyMeant:
    def test_a_code_of_a_column_that_matches_nothing(self, ages, capsys):
        err = fitted(ages, capsys, "--missing", "age=-8,dose=99", "--missing", "age=-9")
        assert err.count("matched no cell") == 1
        told = err.partition("matched no cell")[2].partition("\n")[0]
        assert "age=-8" in told
        assert "age=-9" not in told
        assert "dose=99" not in told
        assert "matched no cell" not in scores(ages, capsys, "blank.csv")[1]

    @pytest.mark.parametrize("typed", ["age=", "=-9", "", " , ", "age=-9,dose="])
    def test_empty_ones_are_refused(self, ages, capsys, typed):
        assert main(["fit", str(ages / "age.csv"), *IMPUTED, f"--missing={typed}"]) == USAGE
        assert "--missing" in capsys.readouterr().err


class TestThousandsOrDecimals:
    @pytest.mark.parametrize("command", ["fit", "info"])
    def test_three_digits_after_each_point(self, tmp_path, capsys, command):
        path = tmp_path / "sums.csv"
        path.write_text("a;b;y\n" + "".join(f"{k}.23{k};{k}.5;{k % 2}\n" for k in range(1, 9)))
        assert main([command, str(path), *(["--model", "SVC"] if command == "fit" else [])]) == OK
        err = capsys.readouterr().err
        assert err.count("--thousands") == 1
        assert "'a'" in err
        assert "'b'" not in err

    @pytest.mark.parametrize("cells", [("1.234", "0.500"), ("1.234", "1.23"), ("1.234", "2.3456")])
    def test_decimals_that_cannot_be_thousands(self, tmp_path, capsys, cells):
        path = tmp_path / "sums.csv"
        path.write_text("a;y\n" + "".join(f"{cells[k % 2]};{k % 2}\n" for k in range(8)))
        assert main(["info", str(path)]) == OK
        assert "--thousands" not in capsys.readouterr().err

    def test_nothing_is_said_where_the_marks_are_named(self, tmp_path, capsys):
        path = tmp_path / "sums.csv"
        path.write_text("a;y\n" + "".join(f"{k}.23{k};{k % 2}\n" for k in range(1, 9)))
        assert main(["info", str(path), "--thousands", ".", "--decimal", ","]) == OK
        assert "--thousands" not in capsys.readouterr().err


class TestSigns:
    @pytest.fixture
    def shares(self, tmp_path):
        """The same shares of fifty rows with percent signs, with euros, and as fractions."""
        share = np.random.default_rng(0).integers(1, 99, 50)
        for name, form in (("%", "{}%"), ("€", "{}€"), ("plain", "0.{:02d}")):
            rows = [f"{form.format(s)},{s % 7},{'b' if s > 50 else 'a'}" for s in share]
            (tmp_path / f"{name}.csv").write_text("\n".join(["share,z,y", *rows]) + "\n")
        (tmp_path / "blank.csv").write_text("share,z\n,3\n")
        return tmp_path

    def test_the_same_signs_are_read(self, shares, capsys):
        fitted(shares, capsys, data="%.csv")
        assert load_model(shares / "m.pmz").table_options_ == {"signs": ("share=%",)}
        assert "warning" not in scores(shares, capsys, "%.csv")[1]
        scores(shares, capsys, "blank.csv")

    @pytest.mark.parametrize("data", ["plain.csv", "€.csv"])
    @pytest.mark.parametrize("command", ["cv", "compare", "fit"])
    def test_numbers_without_the_sign_of_the_training_data_are_refused(
        self, shares, capsys, data, command
    ):
        how = {"cv": ["--model", "SVC", "--n-strengths", "2", "--folds", "2"]}
        how["fit"] = ["--model", "SVC"]
        quick = ["--models", "SVC", "--quick", "--folds", "2"]
        saved = str(shares / "m.pmz")
        train = [command, str(shares / "%.csv"), *how.get(command, quick), "-q", "-o", saved]
        assert main(train) == OK
        capsys.readouterr()
        assert main(["predict", saved, str(shares / data)]) == USAGE
        err = capsys.readouterr().err
        assert "'share'" in err
        assert "'%'" in err

    def test_signs_that_the_training_data_had_not_are_told(self, shares, capsys):
        fitted(shares, capsys, data="plain.csv")
        err = scores(shares, capsys, "%.csv")[1]
        assert err.count("warning") == 1
        assert "'share' with '%'" in err
        assert "warning" not in scores(shares, capsys, "plain.csv")[1]


class TestCodesInNewDataAlone:
    """Numbers far from those of the training table, which a model would take for measurements."""

    @pytest.mark.parametrize(
        ("rows", "told"),
        [
            ("999,2\n30,2\n", ["'age' holds 999 in 1 row (20 to 78 in training)", "age=999"]),
            ("30,-9\n40,2\n30,-9\n", ["'dose' holds -9 in 2 rows", "dose=-9"]),
            ("5000,2\n5000,2\n", ["'age' holds 5000 in 2 rows", "age=5000"]),
            ("30,99\n-1,2\n", ["'age' holds -1", "'dose' holds 99 in 1 row", "age=-1", "dose=99"]),
        ],
    )
    def test_they_are_told_once_and_read_by_what_is_named(self, ages, capsys, rows, told):
        fitted(ages, capsys, "--missing", "age=-9,dose=99")
        model = load_model(ages / "m.pmz")
        del model.table_options_  # by which some of these would be missing
        save_model(model, ages / "m.pmz")
        (ages / "other.csv").write_text("age,dose\n" + rows)
        _, err = scores(ages, capsys, "other.csv")
        assert err.count("look like codes of missing cells") == 1
        assert all(each in err for each in told)
        typed = [word for each in told if "=" in each for word in ("--missing", each)]
        assert " ".join(typed) in err
        assert "look like codes" not in scores(ages, capsys, "other.csv", *typed)[1]

    def test_numbers_near_those_of_the_training_table_are_none(self, ages, capsys):
        fitted(ages, capsys, "--missing", "age=-9,dose=99")
        (ages / "other.csv").write_text("age,dose\n88,9\n99,9\n85.5,0\n")
        assert "codes" not in scores(ages, capsys, "other.csv")[1]

    def test_codes_are_told_of_models_that_know_no_training_table(self, ages, capsys):
        fitted(ages, capsys, "--missing", "age=-9,dose=99")
        model = load_model(ages / "m.pmz")
        del model.table_ranges_
        save_model(model, ages / "m.pmz")
        rows = "".join(f"{30 + k},2\n" for k in range(8))
        (ages / "other.csv").write_text(f"age,dose\n999,2\n{rows}999,3\n")
        assert "'age' holds 999 in 2 rows" in scores(ages, capsys, "other.csv")[1]

    def test_forged_ranges_are_refused(self, ages, capsys):
        fitted(ages, capsys)
        model = load_model(ages / "m.pmz")
        for wrong in ([], [[1, 2]], [[1, 2], [0, 3]], [["a", 1], [2, 3]], {"x": 1}, 3, [[1], [2]]):
            forge = forged_file(ages, model, lambda plain, w=wrong: plain.update(ranges=w))
            with pytest.raises(ModelFileError, match="ranges"):
                load_model(forge)
