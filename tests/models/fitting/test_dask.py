"""Fits to Dask collections on a cluster of two workers; joblib's Dask backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest

import proxmargin as pm
from proxmargin.data.designs.base import as_design
from proxmargin.data.designs.blocks.dask_blocks import DaskDesign, on_workers
from proxmargin.data.designs.blocks.placement import Node, merged
from tests.shared_data import clouds

cloudpickle = pytest.importorskip("cloudpickle", reason="dask is not installed (extra dask)")
da = pytest.importorskip("dask.array", reason="dask is not installed (extra dask)")
distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra dask)")

ROWS = 3000
FEATURES = 20


# within the process, as tests run without a network
IN_PROCESS = {"processes": False, "protocol": "inproc://", "dashboard_address": None}


@pytest.fixture(scope="module", autouse=True)
def _without_web_pages() -> Iterator[None]:
    """Scheduler and workers neither serve pages about themselves nor ask for an address: within a
    process they need no socket."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distributed.node.ServerNode.start_http_server", lambda *_, **__: None)
        patch.setattr("distributed.comm.inproc.get_ip", lambda: "127.0.0.1")
        yield


@pytest.fixture(scope="module")
def client(_without_web_pages: None) -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **IN_PROCESS) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def data() -> tuple[np.ndarray, np.ndarray]:
    return clouds(ROWS, FEATURES, apart=0.2)


def collections(rows: int = 500) -> tuple[Any, Any]:
    X, y = data()
    return da.from_array(X, chunks=(rows, 7)), da.from_array(y, chunks=rows)


@pytest.mark.parametrize(
    "model",
    [
        pm.HuberizedSVC(alpha=0.02, tol=1e-9),
        pm.LogisticRegression(C=0.01, tol=1e-9),
        pm.MarginFDA(),
        pm.MarginMPM(standardize=True),
    ],
    ids=["huberized", "logistic", "MM-FDA", "MM-MPM"],
)
def test_the_model_is_that_of_the_data_in_memory(model: Any, client) -> None:
    X, y = collections()
    found = model.fit(X, y)
    streamed, ours = found.coef_, found.certificate_
    expected = model.fit(*data())
    assert ours.converged
    assert ours.primal == pytest.approx(expected.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(streamed, expected.coef_, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("standardize", [False, True])
def test_a_pass_serves_all_classes_with_the_bits_of_one_at_a_time(
    standardize: bool, client, monkeypatch
) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 200 * FEATURES * 8)
    X, _ = data()
    y = np.digitize(X[:, 0] + X[:, 1], [-1.0, 0.0, 1.0])
    lazy, labels = da.from_array(X, chunks=(500, 7)), da.from_array(y, chunks=500)
    passes: list[Any] = []
    run = DaskDesign.run

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        passes.append(given)
        return run(self, *given, **named)

    monkeypatch.setattr(DaskDesign, "run", counted)
    model = pm.SparseLogisticRegression(alpha=0.003, multi_class="ovr", standardize=standardize)
    weights = np.random.default_rng(0).integers(0, 3, ROWS).astype(float)
    for given in (None, weights):
        passes.clear()
        together = model.set_params(callbacks=()).fit(lazy, labels, given)
        coef, certificates = together.coef_, list(together.certificate_)
        count = len(passes)
        alone = model.set_params(callbacks=[lambda report: None]).fit(lazy, labels, given)
        np.testing.assert_array_equal(coef, alone.coef_)
        assert [one.gap for one in certificates] == [one.gap for one in alone.certificate_]
        assert count <= max(one.n_passes for one in alone.certificate_) + 4
        assert count < 0.5 * (len(passes) - count)


def test_predictions_are_lazy_and_scores_a_number(client) -> None:
    X, y = collections()
    model = pm.HuberizedSVC(alpha=0.02).fit(X, y)
    lazy = model.predict(X)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), model.predict(data()[0]))
    scores = model.decision_function(X).compute()
    np.testing.assert_allclose(scores, model.decision_function(data()[0]), rtol=1e-12)
    assert model.score(X, y) == pytest.approx(model.score(*data()))


@pytest.mark.parametrize("as_frame", [False, True])
def test_probabilities_are_lazy_with_a_column_a_class(as_frame: bool, client) -> None:
    X, _ = data()
    y = np.digitize(X[:, 0], [-1.0, 1.0])
    lazy = da.from_array(X, chunks=(500, 7))
    if as_frame:
        dd = pytest.importorskip("dask.dataframe")
        lazy = dd.from_pandas(pytest.importorskip("pandas").DataFrame(X), npartitions=4)
    for labels in (y, y > 0):
        model = pm.SparseLogisticRegression(alpha=0.01, multi_class="ovr").fit(X, labels)
        for method in ("predict_proba", "predict_log_proba", "decision_function"):
            found, expected = getattr(model, method)(lazy), getattr(model, method)(X)
            assert isinstance(found, da.Array)
            assert found.shape[1:] == expected.shape[1:]
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("as_frame", [False, True])
def test_blocks_may_be_empty(as_frame: bool, client) -> None:
    X, y = data()
    lazy, labels = collections()
    kept = (lazy[:, 0] > 0) & (da.arange(ROWS, chunks=500) >= 500)
    if as_frame:
        dd = pytest.importorskip("dask.dataframe")
        pd = pytest.importorskip("pandas")
        names = [f"x{k}" for k in range(FEATURES)]
        frame = dd.from_pandas(pd.DataFrame(X, columns=names).assign(y=y), npartitions=6)
        frame = frame[(frame["x0"] > 0) & (frame.index >= 500)]
        lazy, labels = frame[names], frame["y"]
    else:
        lazy, labels = lazy[kept].compute_chunk_sizes(), labels[kept].compute_chunk_sizes()
    index = (X[:, 0] > 0) & (np.arange(ROWS) >= 500)
    model = pm.SparseLogisticRegression(alpha=0.02).fit(lazy, labels)
    memory = pm.SparseLogisticRegression(alpha=0.02).fit(X[index], y[index])
    np.testing.assert_allclose(model.coef_, memory.coef_, atol=1e-3)
    for method in ("predict", "decision_function", "predict_proba"):
        found = getattr(model, method)(lazy).compute()
        here = frame_of(X[index]) if as_frame else X[index]
        np.testing.assert_allclose(found, getattr(model, method)(here), rtol=1e-9)
    weights = np.ones(int(index.sum()))
    assert model.score(lazy, labels, weights) == pytest.approx(memory.score(X[index], y[index]))
    with pytest.raises(ValueError, match="sample_weight must have a positive sum"):
        model.score(lazy, labels, 0.0 * weights)


def frame_of(X: np.ndarray) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])


@pytest.mark.parametrize("missing", [None, float("nan"), "NA"])
def test_missing_labels_are_refused(missing: Any, client) -> None:
    X, y = collections()
    if missing == "NA":
        missing = pytest.importorskip("pandas").NA
    labels = np.where(data()[1], "yes", "no").astype(object)
    labels[1234] = missing
    with pytest.raises(ValueError, match="y has no label in row 1234"):
        pm.HuberizedSVC().fit(X, da.from_array(labels, chunks=500))
    model = pm.HuberizedSVC(alpha=0.02).fit(X, y)
    with pytest.raises(ValueError, match="y has no label in row 1234"):
        model.score(X, da.from_array(labels, chunks=500))
    numbers = data()[1].astype(float)
    numbers[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pm.HuberizedSVC().fit(X, da.from_array(numbers, chunks=500))


def test_labels_that_are_objects_keep_their_kind(client) -> None:
    X, _ = collections()
    numbers = np.where(data()[1], 7, 3).astype(object)
    model = pm.HuberizedSVC(alpha=0.02).fit(X, da.from_array(numbers, chunks=500))
    assert model.classes_.dtype.kind == "i"
    assert list(model.classes_) == [3, 7]
    assert model.score(X, da.from_array(numbers, chunks=500)) > 0.5
    numbers[0] = "seven"
    with pytest.raises(ValueError, match="y holds text and numbers"):
        model.fit(X, da.from_array(numbers, chunks=500))


def test_no_block_comes_to_the_client(client, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 50 * FEATURES * 8)
    seen: list[Any] = []
    gather = type(client).gather

    def watched(self: Any, futures: Any, **options: Any) -> Any:
        found = gather(self, futures, **options)
        seen.append(found)
        return found

    X, y = collections()
    monkeypatch.setattr(type(client), "gather", watched)
    pm.HuberizedSVC(alpha=0.02).fit(X, y)
    largest = max(array.size for found in seen for array in arrays_in(found))
    assert seen
    assert largest < 500 * FEATURES / 2  # blocks have 500 rows


def arrays_in(found: Any) -> Iterator[np.ndarray]:
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, list | tuple):
        for each in found:
            yield from arrays_in(each)


def test_a_pass_is_a_task_for_each_thread_however_many_blocks(client, monkeypatch) -> None:
    X, _ = data()
    few, many = (on_workers(da.from_array(X, chunks=(rows, -1)), np.inf) for rows in (1500, 50))
    submitted: list[int] = []
    scheduled = type(client).map

    def counted(self: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        found = scheduled(self, function, *arguments, **options)
        submitted.append(len(found))
        return found

    monkeypatch.setattr(type(client), "map", counted)
    coef = np.ones((FEATURES, 1))
    np.testing.assert_allclose(few.scores(coef), many.scores(coef), rtol=1e-12)
    assert (few.n_blocks, many.n_blocks) == (2, 60)
    assert max(submitted) <= 2
    held = [number for group in many.placement.groups for number in group.numbers]
    assert sorted(held) == list(range(60))


@pytest.mark.slow
@pytest.mark.parametrize("fan_in", [1 << 10, 2])
@pytest.mark.parametrize("inline", [0, 1 << 30])
def test_vectors_travel_by_themselves_or_with_the_tasks(
    inline: int, fan_in: int, client, monkeypatch
) -> None:
    """Straight to the workers and back, and through the scheduler; sums in one step, or more."""
    monkeypatch.setattr("proxmargin.data.designs.blocks.placement.INLINE", inline)
    monkeypatch.setattr("proxmargin.data.designs.blocks.placement.FAN_IN", fan_in)
    X, _ = data()
    rng = np.random.default_rng(0)
    dual, weights = rng.normal(size=(ROWS, 2)), rng.uniform(size=ROWS)
    there, here = on_workers(da.from_array(X, chunks=(100, -1)), np.inf), as_design(X)
    monkeypatch.setattr(there.placement._client, "nthreads", lambda: many_threads(client))
    assert len(there.placement.groups) > 2
    np.testing.assert_allclose(there.adjoint(dual), here.adjoint(dual), rtol=1e-10, atol=1e-10)
    centre = X.mean(axis=0)
    np.testing.assert_allclose(there.gram(weights, centre), here.gram(weights, centre), rtol=1e-9)
    np.testing.assert_allclose(there.scores(centre[:, None]), here.scores(centre[:, None]))
    index = rng.permutation(ROWS)[:30]
    np.testing.assert_array_equal(there.rows(index).matrix, X[index])


@pytest.mark.parametrize("count", [1, 2, 7, 8, 13])
def test_what_is_added_to_what_does_not_depend_on_where_blocks_are(count: int) -> None:
    rng = np.random.default_rng(0)
    blocks = [Node(k, 1, (f"{k}",)) for k in range(count)]

    def noted(first: Any, second: Any) -> Any:
        return (f"({first[0]} {second[0]})",)

    expected = merged(noted, blocks)
    for _ in range(20):
        homes = rng.integers(0, 3, count)
        parts = [
            merged(noted, [b for b, h in zip(blocks, homes, strict=True) if h == home])
            for home in range(3)
        ]
        assert merged(noted, [node for part in parts for node in part]) == expected
    assert sum(node.size for node in expected) == count
    assert len(expected) == bin(count).count("1")


def many_threads(client: Any) -> dict[str, int]:
    """As if each worker had four."""
    return dict.fromkeys(client.scheduler_info()["workers"], 4)


def test_a_lost_worker_is_replaced_and_the_fit_goes_on() -> None:
    X, y = data()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **IN_PROCESS) as cluster,
        distributed.Client(cluster) as client,
    ):
        chunks = da.from_array(X, chunks=(500, -1))
        design = on_workers(chunks, np.inf)
        before = design.scores(np.ones((FEATURES, 1)))
        lost = next(iter(cluster.workers.values()))
        client.sync(lost.close, executor_wait=False, nanny=False)
        after = design.scores(np.ones((FEATURES, 1)))
        np.testing.assert_array_equal(before, after)
        assert pm.HuberizedSVC(alpha=0.02).fit(chunks, y).certificate_.converged


def test_data_frames_of_dask_keep_their_names(client) -> None:
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X, y = data()
    names = [f"x{k}" for k in range(FEATURES)]
    frame = dd.from_pandas(pd.DataFrame(X, columns=names).assign(y=y), npartitions=4)
    model = pm.HuberizedSVC(alpha=0.02).fit(frame[names], frame["y"])
    assert list(model.feature_names_in_) == names
    expected = pm.HuberizedSVC(alpha=0.02).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)


def test_bad_entries_and_lengths_are_named(client) -> None:
    X, y = data()
    X[1234, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in block 2, row 1234, column 3"):
        pm.HuberizedSVC().fit(da.from_array(X, chunks=(500, -1)), y)
    X, lazy = collections()
    with pytest.raises(ValueError, match="y must hold one entry a row"):
        pm.HuberizedSVC().fit(X, lazy[:-1])
    with pytest.raises(ValueError, match="blocks of rows"):
        pm.SVC(kernel="rbf").fit(X, lazy)


def many_fits(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """What is found by all that makes many fits to the same data."""
    plain = pm.HuberizedSVC(alpha=0.05)
    search = pm.HuberizedSVCCV(alphas=5, cv=3, n_jobs=2).fit(X, y)
    kernels = pm.SVCCV(kernel="rbf", Cs=[0.1, 1.0], cv=3, n_jobs=2).fit(X, y)
    selector = pm.StabilitySelection(
        plain, n_pairs=3, pfer=1.0, q=2, alphas=5, n_jobs=2, random_state=0
    )
    table = pm.compare(
        X, y, models=["HuberizedSVC"], cv=3, n_jobs=2, random_state=0, progress=False
    ).table
    tests = [
        pm.permutation_test(plain, X, y, n_permutations=count, n_jobs=2, random_state=0, **how)
        for count, how in ((120, {}), (20, {"statistic": "accuracy"}))
    ]
    return {
        "search": (search.cv_scores_, search.alpha_, search.coef_),
        "kernels": kernels.cv_scores_,
        "selector": selector.fit(X, y).max_frequencies_,
        "comparison": table.iloc[:, 0].to_numpy(),
        "permutations": [test.pvalue for test in tests],
    }


@pytest.mark.slow
def test_many_fits_on_the_cluster_find_the_same_and_data_are_sent_once(client, monkeypatch) -> None:
    X, y = clouds(80, 50)
    alone = many_fits(X, y)
    sent: list[int] = []
    scatter, submit = type(client).scatter, type(client).submit

    def scattered(self: Any, data: Any, **options: Any) -> Any:
        sent.append(len(cloudpickle.dumps(data)))
        return scatter(self, data, **options)

    def submitted(self: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        given = [len(cloudpickle.dumps(each)) for each in parts_of((arguments, options))]
        assert max(given, default=0) < X.nbytes / 2  # nothing travels with a task
        tasks.append(function)
        return submit(self, function, *arguments, **options)

    tasks: list[Any] = []
    monkeypatch.setattr(type(client), "scatter", scattered)
    monkeypatch.setattr(type(client), "submit", submitted)
    with joblib.parallel_config("dask"):
        together = many_fits(X, y)
    for name, found in alone.items():
        for one, other in zip(found, together[name], strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
    # two searches, a selection, a comparison and two tests
    assert sum(size >= X.nbytes for size in sent) == 6
    assert len(tasks) >= 3 + 3 + 6 + 3 + 2 + 2


def parts_of(values: Any) -> Iterator[Any]:
    """What is in tuples, lists and dictionaries, without the futures."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, tuple | list):
        for each in values:
            yield from parts_of(each)
    elif not isinstance(values, distributed.Future) and not callable(values):
        yield values
