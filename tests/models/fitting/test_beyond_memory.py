"""Fits to data sets on disk: the model of the data in memory, and what bad data lead to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import proxmargin as pm
from proxmargin import open_dataset
from proxmargin.data.datasets import DataLostError
from proxmargin.data.designs.blocks import ChunkedDesign, scanned
from tests.shared_data import Vanishing, clouds, load_set, needs_data

MODELS: dict[str, Any] = {
    "huberized": lambda: pm.HuberizedSVC(alpha=0.02, l1_ratio=0.9),
    "huberized, standardized": lambda: pm.HuberizedSVC(alpha=0.01, standardize=True),
    "squared hinge": lambda: pm.SquaredHingeSVC(alpha=0.01, l1_ratio=0.5),
    "sparse logistic": lambda: pm.SparseLogisticRegression(alpha=0.005, l1_ratio=1.0),
    "no intercept": lambda: pm.SparseLogisticRegression(alpha=0.005, fit_intercept=False),
    "intercept with a ridge": lambda: pm.HuberizedSVC(alpha=0.02, intercept_ridge=0.1),
    "bounds": lambda: pm.HuberizedSVC(alpha=0.001, bounds=(-0.01, 0.2)),
    "a free feature": lambda: pm.HuberizedSVC(alpha=0.02, penalty_factor=[0, 1, 1, 2, 1, 1]),
    "class weights": lambda: pm.HuberizedSVC(alpha=0.02, class_weight="balanced"),
    "logistic": lambda: pm.LogisticRegression(C=0.1),
    "squared hinge with a ridge": lambda: pm.L2SVC(C=0.1),
    "distance weighted": lambda: pm.DWD(),
    "MM-FDA": lambda: pm.MarginFDA(),
    "hinge with a ridge": lambda: pm.SVC(C=0.05),
    "hinge with an elastic net": lambda: pm.ElasticNetSVC(alpha=0.05, l1_ratio=0.5, tol=1e-4),
}


def sample(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    return clouds(n, 6, apart=0.4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kept", [1 << 26, 2000], ids=["all rows kept", "some rows kept"])
def test_the_model_is_that_of_the_data_in_memory(name: str, kept: int, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", kept)
    X, y = sample()
    model = MODELS[name]()
    model.set_params(tol=max(1e-9, model.tol if model.tol > 1e-6 else 0.0))
    streamed = MODELS[name]().set_params(tol=model.tol)
    streamed.fit(open_dataset(X, target=y, chunk_rows=37))
    model.fit(X, y)
    ours, theirs = streamed.certificate_, model.certificate_
    assert ours.converged
    allowed = 1e-9 + 2 * model.tol
    assert ours.primal == pytest.approx(theirs.primal, rel=allowed)
    assert ours.dual <= theirs.primal + 1e-12 * abs(theirs.primal)
    assert theirs.dual <= ours.primal + 1e-12 * abs(ours.primal)
    np.testing.assert_allclose(streamed.coef_, model.coef_, atol=6.0 * model.tol**0.5)


@pytest.mark.parametrize("rows", [1, 50, 10_000])
def test_chunks_of_any_size_give_the_same_certified_model(rows: int) -> None:
    X, y = sample(150)
    reference = pm.HuberizedSVC(alpha=0.02, tol=1e-10).fit(X, y)
    model = pm.HuberizedSVC(alpha=0.02, tol=1e-10).fit(open_dataset(X, target=y, chunk_rows=rows))
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-6)
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-10)


def test_a_second_fit_has_the_same_bits() -> None:
    X, y = sample()
    found = [
        pm.SparseLogisticRegression(alpha=0.003).fit(open_dataset(X, target=y, chunk_rows=20))
        for _ in range(3)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.coef_, found[0].coef_)
        assert other.certificate_.gap == found[0].certificate_.gap


@pytest.mark.parametrize("name", ["a9a", "covtype", "news20"])
def test_public_data_in_chunks_have_the_model_of_those_in_memory(name: str, monkeypatch) -> None:
    pytest.importorskip("pyarrow")
    needs = needs_data(f"data/{name}.npz")
    if needs.args[0]:
        pytest.skip(needs.kwargs["reason"])
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 2_000_000)
    X, y = load_set(name, rows=6000)
    y = y == y.max()
    model = pm.HuberizedSVC(alpha=0.002, l1_ratio=1.0, tol=1e-9)
    streamed = pm.HuberizedSVC(alpha=0.002, l1_ratio=1.0, tol=1e-9)
    streamed.fit(open_dataset(X, target=y, chunk_rows=1000))
    model.fit(X, y)
    assert streamed.certificate_.converged
    assert streamed.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_predictions_and_scores_come_chunk_by_chunk() -> None:
    X, y = sample()
    dataset = open_dataset(X, target=y, chunk_rows=64)
    model = pm.HuberizedSVC(alpha=0.02).fit(dataset)
    parts = list(model.predict(dataset))
    assert [part.size for part in parts] == [64, 64, 64, 64, 44]
    np.testing.assert_array_equal(np.concatenate(parts), model.predict(X))
    scores = np.concatenate(list(model.decision_function(dataset)))
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12)
    assert model.score(dataset) == pytest.approx(model.score(X, y))
    with pytest.raises(ValueError, match="X has 5 features"):
        model.score(open_dataset(X[:, :5], target=y))


def test_more_classes_are_fitted_each_against_the_rest() -> None:
    X, _ = sample()
    y = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    model = pm.SparseLogisticRegression(alpha=0.01, multi_class="ovr")
    streamed = model.fit(open_dataset(X, target=y, chunk_rows=50)).coef_
    np.testing.assert_allclose(model.fit(X, y).coef_, streamed, atol=1e-3)


def test_weights_count_and_rows_without_weight_do_not() -> None:
    X, y = sample()
    weights = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    X[weights == 0] = 1e3
    model = pm.HuberizedSVC(alpha=0.02, tol=1e-9)
    streamed = model.fit(open_dataset(X, target=y, weight=weights, chunk_rows=50)).coef_
    given = model.fit(open_dataset(X, target=y, chunk_rows=50), sample_weight=weights).coef_
    expected = model.fit(X, y, sample_weight=weights).coef_
    np.testing.assert_allclose(streamed, expected, atol=1e-5)
    np.testing.assert_allclose(given, expected, atol=1e-5)


def counted(dataset: Any, monkeypatch) -> list[int]:
    """The passes that are begun over a data set from now on."""
    begun: list[int] = []
    read = type(dataset).chunks
    monkeypatch.setattr(type(dataset), "chunks", lambda self: (begun.append(1), read(self))[1])
    return begun


@pytest.mark.parametrize("dead_entry", [1.0, 1e6])
@pytest.mark.parametrize("standardize", [False, True])
def test_rows_without_weight_cost_no_passes_and_leave_the_certificate_as_it_is(
    dead_entry: float, standardize: bool, monkeypatch
) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 4000)
    X, y = sample(600)
    live = np.arange(600) % 5 != 2
    X[~live] *= dead_entry
    weights = live.astype(float)
    passes = {}
    fits = {}
    model = pm.SparseLogisticRegression(alpha=0.003, tol=1e-9, standardize=standardize)
    for name, rows in (("live", live), ("all", np.full(600, True))):
        dataset = open_dataset(X[rows], target=y[rows], weight=weights[rows], chunk_rows=100)
        with monkeypatch.context() as patch:
            begun = counted(dataset, patch)
            fits[name] = pm.SparseLogisticRegression(**model.get_params()).fit(dataset)
            passes[name] = len(begun)
    expected = model.fit(X[live], y[live]).certificate_
    found = fits["all"].certificate_
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-9)
    assert found.dual == pytest.approx(expected.dual, rel=2e-9)
    assert found.dual <= expected.primal
    np.testing.assert_allclose(fits["all"].coef_, model.coef_, atol=1e-4 / X[live].std())
    # one an iteration, two where the full step is a poor one; the first of all, means, bounds, a
    # sample of the live rows, the start
    assert passes["all"] <= fits["all"].n_iter_ + 7


def test_rows_without_weight_are_not_read_into_memory_for_many_features(monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 40_000)
    monkeypatch.setattr(
        "proxmargin.data.designs.blocks.base.ChunkedDesign._rows", _few_rows(ChunkedDesign._rows)
    )
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 2100))
    y = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(120) > 0
    weights = np.ones(120)
    weights[7] = 0.0
    model = pm.SparseLogisticRegression(alpha=0.1, l1_ratio=1.0, tol=1e-7)
    primal = model.fit(X, y, sample_weight=weights).certificate_.primal
    model.fit(open_dataset(X, target=y, chunk_rows=30), sample_weight=weights)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-7)


def _few_rows(read: Any) -> Any:
    def rows(self: Any, index: np.ndarray) -> Any:
        assert index.size < 60
        return read(self, index)

    return rows


def test_probabilities_come_chunk_by_chunk() -> None:
    X, _ = sample()
    y = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    dataset = open_dataset(X, target=None, chunk_rows=64)
    for labels in (y, y > 0):
        model = pm.SparseLogisticRegression(alpha=0.01, multi_class="ovr").fit(X, labels)
        parts = list(model.predict_proba(dataset))
        assert [len(part) for part in parts] == [64, 64, 64, 64, 44]
        np.testing.assert_allclose(np.concatenate(parts), model.predict_proba(X), rtol=1e-12)
        logarithms = np.concatenate(list(model.predict_log_proba(dataset)))
        np.testing.assert_allclose(logarithms, model.predict_log_proba(X), rtol=1e-12)


def test_an_accuracy_needs_weight() -> None:
    X, y = sample()
    model = pm.HuberizedSVC(alpha=0.02).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must have a positive sum"):
        model.score(open_dataset(X, target=y, weight=np.zeros(y.size)))


def test_labels_may_be_sorted() -> None:
    X, y = sample()
    order = np.argsort(y, kind="stable")
    dataset = open_dataset(X[order], target=np.where(y, "yes", "no")[order], chunk_rows=50)
    model = pm.LogisticRegression().fit(dataset)
    assert model.certificate_.converged
    assert list(model.classes_) == ["no", "yes"]


def test_names_of_features_are_kept(tmp_path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = sample()
    names = [f"x{k}" for k in range(6)]
    pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), tmp_path / "a.parquet")
    dataset = open_dataset(tmp_path / "a.parquet", target="y", chunk_rows=100)
    model = pm.HuberizedSVC(alpha=0.02).fit(dataset)
    assert list(model.feature_names_in_) == names
    other = open_dataset(tmp_path / "a.parquet", target="y", columns=names[::-1])
    with pytest.raises(ValueError, match="other features"):
        list(model.predict(other))


# -- bad data


def test_an_entry_that_is_no_number_is_named(tmp_path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = sample()
    X[133, 1] = np.nan
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    dataset = open_dataset(tmp_path / "a.parquet", target="y", chunk_rows=10)
    with pytest.raises(
        ValueError, match=r"NaN in .*a\.parquet, row group 1, row 33, column 1 \('b'"
    ):
        pm.HuberizedSVC().fit(dataset)


def test_labels_are_needed_once() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="no labels: open it with target="):
        pm.HuberizedSVC().fit(open_dataset(X, target=None))
    with pytest.raises(ValueError, match="y must be left out"):
        pm.HuberizedSVC().fit(open_dataset(X, target=y), y)
    with pytest.raises(ValueError, match="one class"):
        pm.HuberizedSVC().fit(open_dataset(X, target=np.ones(y.size, int)))
    with pytest.raises(ValueError, match="Unknown label type"):
        pm.HuberizedSVC().fit(open_dataset(X, target=X[:, 0]))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (pm.SVC(kernel="rbf"), "kernel of all pairs"),
        (pm.NuSVC(), "pivoting on single rows"),
    ],
)
def test_models_that_need_memory_say_so(model: Any, reason: str) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=f"{type(model).__name__}.*blocks of rows.*{reason}"):
        model.fit(open_dataset(X, target=y))


def test_what_needs_all_rows_in_memory_refuses_data_sets(tmp_path) -> None:
    X, y = sample()
    dataset = open_dataset(X, target=y)
    for model in (pm.HuberizedSVCCV(), pm.DDAGClassifier(pm.HuberizedSVC())):
        with pytest.raises(ValueError, match="all rows are needed in memory"):
            model.fit(dataset, y)
    model = pm.HuberizedSVC(callbacks=[pm.Checkpoint(tmp_path / "a.npz")])
    with pytest.raises(ValueError, match="checkpoints are for data in memory"):
        model.fit(dataset)


def test_models_are_saved_and_certified_as_those_of_data_in_memory(tmp_path) -> None:
    X, y = sample()
    dataset = open_dataset(X, target=y, chunk_rows=50)
    model = pm.HuberizedSVC().fit(dataset)
    pm.save_model(model, tmp_path / "model.pmz")
    loaded = pm.load_model(tmp_path / "model.pmz")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    found, expected = pm.certify(model, dataset, None), pm.certify(model, X, y)
    assert found.primal == pytest.approx(expected.primal, rel=1e-13)
    assert found.dual == pytest.approx(expected.dual, rel=1e-10)
    assert found.converged


def test_a_file_that_vanishes_leaves_the_last_certified_model(monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 2000)
    X, y = sample()
    X = np.where(np.arange(300)[:, None] % 7 == 0, 5.0 * X, X)  # a sample tells little
    dataset = open_dataset(Vanishing(X, 10 * 3 - 1), target=y, chunk_rows=30)
    model = pm.SparseLogisticRegression(alpha=0.001, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="could not be read any longer"):
        model.fit(dataset)
    best = pm.SparseLogisticRegression(alpha=0.001, tol=1e-10).fit(X, y).certificate_.primal
    found = model.certificate_
    assert found.dual <= best <= found.primal
    assert "read" in found.stop_reason
    with pytest.raises(DataLostError, match=r"X\.npy"):
        pm.HuberizedSVC().fit(open_dataset(Vanishing(X, 5), target=y, chunk_rows=30))


def test_a_matrix_of_chunks_may_be_sparse() -> None:
    X, y = sample()
    X = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
    model = pm.SparseLogisticRegression(alpha=0.005, tol=1e-10)
    streamed = model.fit(open_dataset(X, target=y, chunk_rows=41)).coef_
    np.testing.assert_allclose(model.fit(X, y).coef_, streamed, atol=1e-6)


def test_chunks_that_come_on_top_are_a_loss_of_data() -> None:
    X, y = sample()
    dataset = open_dataset(X, target=y, chunk_rows=30)
    design = scanned(dataset, lambda chunk: chunk).design
    dataset.source.n_rows += 30
    chunks = dataset.source.chunks

    def more(rows: int) -> Any:
        yield from chunks(rows)
        yield next(iter(chunks(30)))

    dataset.source.chunks = more
    with pytest.raises(DataLostError, match="has changed since it was first read"):
        design.scores(np.ones((X.shape[1], 1)))


@pytest.mark.parametrize("model", [pm.DWD(), pm.MarginFDA(), pm.MarginMPM()], ids=str)
def test_fewer_rows_than_features(model: Any, rng) -> None:
    X = rng.standard_normal((20, 60))
    y = X[:, 0] > 0
    found = clone(model).fit(open_dataset(X, target=y, chunk_rows=6))
    expected = clone(model).fit(X, y)
    assert found.certificate_.converged
    assert found.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-6)


def test_many_inner_products_are_not_formed(monkeypatch, rng) -> None:
    monkeypatch.setattr("proxmargin.data.designs.blocks.base.FEW_BYTES", 100)
    X = rng.standard_normal((20, 60))
    with pytest.raises(ValueError, match="inner products of all pairs of samples"):
        pm.DWD().fit(open_dataset(X, target=X[:, 0] > 0))
