"""New data in the columns of a fitted model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect
from proxmargin.files.tables.table import read_for_model
from tests.files.model_files import read_columns

NAMES = ["size", "colour=blue", "colour=red"]


@pytest.fixture
def new_csv(tmp_path):
    def write(content):
        (tmp_path / "new.csv").write_text(content)
        return tmp_path / "new.csv"

    return write


def test_columns_are_found_by_name_in_any_order(new_csv):
    table = read_columns(new_csv("colour,extra,size\nred,x,1\nblue,,2\n"), NAMES, 3)
    np.testing.assert_array_equal(table.X, [[1, 0, 1], [2, 1, 0]])
    assert table.feature_names == NAMES
    assert table.y is None


def test_the_training_file_gives_the_training_matrix(new_csv):
    path = new_csv("size,colour,y\n1,red,0\n2,blue,1\n3,red,1\n")
    trained = read_data(path, encode=True)
    again = read_columns(path, trained.feature_names, trained.X.shape[1])
    np.testing.assert_array_equal(again.X, trained.X)
    np.testing.assert_array_equal(again.y, trained.y)


@pytest.mark.parametrize("transpose", [False, True])
def test_a_table_that_is_turned_the_wrong_way_is_told(new_csv, transpose):
    genes, samples = "gene,s1,s2\nsize,1,2\nweight,3,4\n", "n,size,weight\ns1,1,3\ns2,2,4\n"
    path = new_csv(samples if transpose else genes)
    model = SimpleNamespace(feature_names_in_=["size", "weight"], n_features_in_=2)
    with pytest.raises(DataError, match=r"not in the file: 'size', 'weight';.*transpose=True"):
        read_for_model(path, model, dialect=Dialect(transpose=transpose))
    right = read_for_model(path, model, dialect=Dialect(transpose=not transpose))
    np.testing.assert_array_equal(right.X, [[1, 3], [2, 4]])


class TestUnseenLevels:
    CONTENT = "size,colour\n1,green\n2,Red \n3,red\n"

    def test_they_are_refused_by_column_level_and_row(self, new_csv):
        with pytest.raises(DataError) as caught:
            read_columns(new_csv(self.CONTENT), NAMES, 3)
        said = str(caught.value)
        assert "in 'colour' 'green' (row 1), 'Red ' (row 2, 'red' but for the spelling" in said
        assert "of 'blue', 'red'" in said
        assert "unseen='zero'" in said

    @pytest.mark.parametrize(
        ("options", "rows"),
        [
            ({"unseen": "zero"}, [[1, 0, 0], [2, 0, 0], [3, 0, 1]]),
            (
                {"unseen": "zero", "normalize_levels": True},
                [[1, 0, 0], [2, 0, 1], [3, 0, 1]],
            ),
        ],
    )
    def test_they_are_zero_or_joined_where_asked_for(self, new_csv, options, rows):
        table = read_columns(new_csv(self.CONTENT), NAMES, 3, **options)
        np.testing.assert_array_equal(table.X, rows)

    def test_as_missing_cells_they_need_a_model_that_fills_them_in(self, new_csv):
        with pytest.raises(DataError, match=r"row 1, column 'colour'.*--impute median"):
            read_columns(new_csv("size,colour\n1,green\n"), NAMES, 3, unseen="missing")

    def test_numbers_of_a_typed_file_are_told_apart_by_their_format(self, tmp_path):
        pd.DataFrame({"stage": [1.0, 2.0]}).to_parquet(tmp_path / "new.parquet")
        names = ["stage=1", "stage=2", "stage=X"]
        with pytest.raises(DataError, match=r"'1.0' \(row 1, '1' but for the spelling"):
            read_columns(tmp_path / "new.parquet", names, 3)
        table = read_columns(tmp_path / "new.parquet", names, 3, normalize_levels=True)
        np.testing.assert_array_equal(table.X, [[1, 0, 0], [0, 1, 0]])


def test_levels_that_look_like_numbers_or_booleans_match_as_text(new_csv):
    table = read_columns(new_csv("code\n01\n1\n"), ["code=01", "code=1"], 2)
    np.testing.assert_array_equal(table.X, [[1, 0], [0, 1]])
    table = read_columns(new_csv("code\ntrue\nfalse\n"), ["code=true", "code=false"], 2)
    np.testing.assert_array_equal(table.X, [[1, 0], [0, 1]])


def test_a_level_may_hold_the_equals_sign(new_csv):
    table = read_columns(new_csv("rule\na=b\nc\n"), ["rule=a=b", "rule=c"], 2)
    np.testing.assert_array_equal(table.X, np.eye(2))


def test_missing_columns_are_named(new_csv):
    with pytest.raises(
        DataError, match=r"2 columns of the model not in the file: 'size', 'colour'"
    ):
        read_columns(new_csv("other\n1\n"), NAMES, 3)


def test_text_where_the_model_has_numbers_is_refused(new_csv):
    with pytest.raises(DataError, match=r"'size' \(row 1 holds 'big'\).*fitted on numbers"):
        read_columns(new_csv("size,colour\nbig,red\n"), NAMES, 3)


def test_missing_cells_count_only_in_columns_of_the_model(new_csv):
    with pytest.raises(DataError, match="row 1, column 'size'"):
        read_columns(new_csv("size,colour,other\n,red,\n"), NAMES, 3)


def test_labels_come_along_where_the_file_has_them(new_csv):
    path = new_csv("size,colour,y,answer\n1,red,u,0\n2,blue,v,1\n")
    assert read_columns(path, NAMES, 3).y.tolist() == ["u", "v"]
    assert read_columns(path, NAMES, 3, target="answer").y.tolist() == [0, 1]


def test_a_feature_called_y_is_no_target(new_csv):
    assert read_columns(new_csv("y,b\n1,2\n"), ["y", "b"], 2).y is None
    with pytest.raises(DataError, match="feature of the model"):
        read_columns(new_csv("y,b\n1,2\n"), ["y", "b"], 2, target="y")


def test_without_names_the_width_must_agree(new_csv):
    path = new_csv("a,b,y\n1,2,0\n3,4,1\n")
    table = read_columns(path, None, 2)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    with pytest.raises(DataError, match="2 feature columns and the model 5"):
        read_columns(path, None, 5)


def test_parquet_columns_are_found_by_name(tmp_path):
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue"]), "size": [1, 2]})
    frame.to_parquet(tmp_path / "new.parquet")
    table = read_columns(tmp_path / "new.parquet", NAMES, 3)
    np.testing.assert_array_equal(table.X, [[1, 0, 1], [2, 1, 0]])


def test_svmlight_files_may_leave_out_trailing_zeros(tmp_path):
    (tmp_path / "new.svm").write_text("0 1:1 2:2\n")
    table = read_columns(tmp_path / "new.svm", None, 4)
    assert sp.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), [[1, 2, 0, 0]])
    with pytest.raises(DataError, match="2 feature columns and the model 1"):
        read_columns(tmp_path / "new.svm", None, 1)


def test_npz_goes_by_name_where_it_has_names_and_by_width_otherwise(tmp_path):
    X = np.array([[1.0, 2.0, 3.0]])
    np.savez(tmp_path / "named.npz", X=X, feature_names=["c", "a", "b"])
    table = read_columns(tmp_path / "named.npz", ["a", "b"], 2)
    np.testing.assert_array_equal(table.X, [[2, 3]])
    with pytest.raises(DataError, match="'z'"):
        read_columns(tmp_path / "named.npz", ["a", "z"], 2)
    np.savez(tmp_path / "bare.npz", X=X)
    assert read_columns(tmp_path / "bare.npz", ["a", "b", "c"], 3).X.shape == (1, 3)
    with pytest.raises(DataError, match="3 feature columns and the model 4"):
        read_columns(tmp_path / "bare.npz", None, 4)


def test_a_model_knows_what_it_wants():
    model = SimpleNamespace(
        n_features_in_=1, feature_names_in_=np.array(["petal width (cm)"], dtype=object)
    )
    table = read_for_model("iris", model)
    np.testing.assert_array_equal(table.X, read_data("iris").X[:, 3:])
    assert table.y.shape == (150,)


class TestSpelling:
    """Names that differ only in case, blanks and what R writes in the place of other marks."""

    NAMES = ["mean radius", "1007_s_at", "HLA-A", "sex=f", "sex=m"]
    MODEL = SimpleNamespace(feature_names_in_=NAMES, n_features_in_=5)

    @pytest.mark.parametrize("kind", ["csv", "npz"])
    def test_columns_of_the_model_are_found_and_that_is_said(self, tmp_path, new_csv, kind):
        if kind == "csv":
            path = new_csv("Sex,HLA.A,X1007_s_at,Mean.Radius\nf,1,2,3\nm,4,5,6\n")
        else:
            path, X = tmp_path / "new.npz", np.array([[1, 0, 1, 2, 3], [0, 1, 4, 5, 6.0]])
            names = ["sex=f", "sex=m", "HLA_A", "1007.s.at", "mean-radius"]
            np.savez(path, X=X, feature_names=names)
        table = read_for_model(path, self.MODEL)
        np.testing.assert_array_equal(table.X, [[3, 2, 1, 1, 0], [6, 5, 4, 0, 1]])
        assert table.feature_names == self.NAMES
        (said,) = [note for note in table.notes if "written otherwise" in note]
        assert "is 'mean radius'" in said
        assert "is 'HLA-A'" in said

    @pytest.mark.parametrize("header", ["CD4-,CD4_,b", "cd4,CD4 .,b"])
    def test_what_could_be_another_one_is_none(self, new_csv, header):
        model = SimpleNamespace(feature_names_in_=["CD4+", "CD4"], n_features_in_=2)
        row = ",".join("1" for _ in header.split(","))
        with pytest.raises(DataError, match=r"not in the file: 'CD4\+'"):
            read_for_model(new_csv(f"{header}\n{row}\n{row}\n"), model)
        two = SimpleNamespace(feature_names_in_=["a.b", "a_b"], n_features_in_=2)
        with pytest.raises(DataError, match=r"not in the file: 'a_b'"):
            read_for_model(new_csv("a.b,A-B\n1,2\n3,4\n"), two)

    def test_any_mark_may_have_become_a_point(self, new_csv):
        names = ["crp (mg/L)", "CD4+/CD8+", "%fat", "5' UTR", "T\u00b0 [C]", "a&b"]
        here = ["crp..mg.L.", "CD4..CD8.", "X.fat", "X5..UTR", "T...C.", "a.b"]  # by make.names
        model = SimpleNamespace(feature_names_in_=names, n_features_in_=len(names))
        row = ",".join(map(str, range(len(here))))
        table = read_for_model(new_csv(f"{','.join(here)}\n{row}\n{row}\n"), model)
        assert table.feature_names == names
        assert table.X[0].tolist() == [*range(len(names))]

    def test_options_of_the_training_table_reach_them(self, new_csv):
        model = SimpleNamespace(
            feature_names_in_=["my age", "b"],
            n_features_in_=2,
            table_options_={"missing": ("my age=-9",), "signs": ("b=%",)},
            fills_blanks=True,
        )
        table = read_for_model(new_csv("My.Age,B\n-9,1%\n30,2%\n"), model)
        np.testing.assert_array_equal(table.X, [[np.nan, 1], [30, 2]])

    def test_samples_of_labels_are_joined_unless_two_are_alike(self, tmp_path, new_csv):
        data = new_csv("sample,a\nTCGA-02-01,1\nTCGA-02-02,2\nTCGA-02-03,3\n")
        labels = tmp_path / "l.csv"
        labels.write_text("id,y\ntcga.02.03,u\nTCGA.02.01,v\nTCGA.02.02,u\n")
        table = read_data(data, labels=labels)
        assert table.y.tolist() == ["v", "u", "u"]
        assert any(
            "3 names written otherwise: 'TCGA.02.01' is 'TCGA-02-01'" in n for n in table.notes
        )
        labels.write_text("id,y\nTCGA.02.03,u\nTCGA-02-03,u\nTCGA-02-01,v\nTCGA-02-02,u\n")
        assert read_data(data, labels=labels).y.tolist() == ["v", "u", "u"]

    def test_a_role_that_is_typed_otherwise_names_the_column(self, new_csv):
        with pytest.raises(DataError, match=r"no column 'my group'.*target='My\.Group'"):
            read_data(new_csv("a,My.Group,c\n1,u,2\n2,v,3\n"), target="my group")


def test_sparse_matrices_for_levels_must_fit_into_memory(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from proxmargin import SVC

    X = np.arange(12.0).reshape(6, 2) % 3
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), SVC()).fit(X, [0, 1] * 3)
    path = tmp_path / "new.svm"
    path.write_text("0 1:1 2:2\n1 1:2\n")
    assert read_for_model(path, model).X.shape == (2, 2)
    monkeypatch.setattr("proxmargin.files.tables.table.shortage", lambda size: f"{size} bytes")
    with pytest.raises(DataError, match="2 rows of 2 features need 64 bytes"):
        read_for_model(path, model)
