"""Fits to Dask collections on a cluster of two workers; joblib's Dask backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest

import proxmargin as pm
from proxmargin.designs.blocks.dask_blocks import on_workers
from tests.data import clouds

da = pytest.importorskip("dask.array", reason="dask is not installed (extra dask)")
distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra dask)")

ROWS, FEATURES = 3000, 20


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
    ],
    ids=["huberized", "logistic", "MM-FDA"],
)
def test_the_model_is_that_of_the_data_in_memory(model: Any, client) -> None:
    X, y = collections()
    found = model.fit(X, y)
    streamed, ours = found.coef_, found.certificate_
    expected = model.fit(*data())
    assert ours.converged
    assert ours.primal == pytest.approx(expected.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(streamed, expected.coef_, rtol=1e-3, atol=1e-3)


def test_predictions_are_lazy_and_scores_a_number(client) -> None:
    X, y = collections()
    model = pm.HuberizedSVC(alpha=0.02).fit(X, y)
    lazy = model.predict(X)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), model.predict(data()[0]))
    scores = model.decision_function(X).compute()
    np.testing.assert_allclose(scores, model.decision_function(data()[0]), rtol=1e-12)
    assert model.score(X, y) == pytest.approx(model.score(*data()))


def test_no_block_comes_to_the_client(client, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.designs.base.SAMPLE_BYTES", 50 * FEATURES * 8)
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


def test_searches_stability_and_comparisons_run_on_the_cluster(client) -> None:
    X, y = clouds(60, 5)
    cv = pm.HuberizedSVCCV(alphas=5, cv=3, n_jobs=2)
    selector = pm.StabilitySelection(
        pm.HuberizedSVC(), n_pairs=3, pfer=1.0, q=2, alphas=5, n_jobs=2, random_state=0
    )
    alone = cv.fit(X, y).alpha_, selector.fit(X, y).max_frequencies_
    table = pm.compare(
        X, y, models=["HuberizedSVC"], cv=3, n_jobs=1, random_state=0, progress=False
    )
    with joblib.parallel_config("dask"):
        together = cv.fit(X, y).alpha_, selector.fit(X, y).max_frequencies_
        spread = pm.compare(
            X, y, models=["HuberizedSVC"], cv=3, n_jobs=2, random_state=0, progress=False
        )
    assert together[0] == alone[0]
    np.testing.assert_array_equal(together[1], alone[1])
    assert list(spread.table.iloc[:, 0]) == list(table.table.iloc[:, 0])
