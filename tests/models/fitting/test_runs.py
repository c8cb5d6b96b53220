"""The classes of one-vs-rest on several threads: the same models, bit for bit, and limits hold."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    ElasticNetSVC,
    HuberizedSVC,
    LogisticRegression,
    MarginFDA,
    NuSVC,
    SparseLogisticRegression,
)
from proxmargin.compiled.clock import compiling
from proxmargin.solvers.l1.newton import ProximalNewton

X, Y = load_digits(return_X_y=True)
X, Y = X[:300] / 16.0, Y[:300]

MODELS = [
    SVC(),
    L2SVC(standardize=True),
    LogisticRegression(),
    NuSVC(nu=0.1),
    DWD(),
    MarginFDA(),
    ElasticNetSVC(multi_class="ovr"),
    HuberizedSVC(multi_class="ovr", standardize=True),
    SparseLogisticRegression(multi_class="ovr"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_any_number_of_threads_gives_the_same_bits(model, store) -> None:
    kind, given = type(model), model.get_params()
    one, many = (kind(**{**given, "n_jobs": n}).fit(store(X), Y) for n in (1, 3))
    np.testing.assert_array_equal(one.coef_, many.coef_)
    np.testing.assert_array_equal(one.intercept_, many.intercept_)
    for ours, theirs in zip(one.certificate_, many.certificate_, strict=True):
        assert (ours.primal, ours.dual) == (theirs.primal, theirs.dual)
    assert many.certificate_.converged
    # threads may compute anew what they share, but do not count each other's passes
    passes = [sum(each.n_passes for each in fitted.certificate_) for fitted in (one, many)]
    assert passes[1] == pytest.approx(passes[0], rel=0.5)


def test_none_follows_the_context_of_joblib(monkeypatch) -> None:
    used = set()
    step = ProximalNewton.step

    def noted(self, problem, state):
        used.add(threading.current_thread())
        return step(self, problem, state)

    monkeypatch.setattr(ProximalNewton, "step", noted)
    model = HuberizedSVC(multi_class="ovr", solver="newton")
    model.fit(X, Y)
    assert used == {threading.main_thread()}
    with parallel_config(backend="threading", n_jobs=2):
        model.fit(X, Y)
    assert threading.main_thread() in used
    assert len(used) > 1


def test_callbacks_have_the_classes_one_after_the_other() -> None:
    seen = []
    model = HuberizedSVC(multi_class="ovr", n_jobs=3, callbacks=[lambda r: seen.append(r.n_iter)])
    model.fit(X, Y)
    assert len(seen) >= 10
    assert np.sum(np.array(seen) == 0) == 10  # each class begins once the last has ended


def test_a_limit_of_time_is_that_of_all_classes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HuberizedSVC(
            1e-6, multi_class="ovr", solver="b-pgh", tol=0.0, time_limit=0.5, n_jobs=2
        ).fit(X, Y)
    assert len(model.certificate_) == 10
    assert all(np.isfinite(each.gap) for each in model.certificate_)
    # two at a time: five turns of a fifth, and a second for the load of the machine
    assert max(each.seconds for each in model.certificate_) < 1.1


def test_an_error_of_one_class_is_raised(monkeypatch) -> None:
    def failing(self, problem, state):
        raise ArithmeticError("in a thread")

    monkeypatch.setattr(ProximalNewton, "step", failing)
    with pytest.raises(ArithmeticError, match="in a thread"):
        HuberizedSVC(multi_class="ovr", solver="newton", n_jobs=2).fit(X, Y)


@pytest.mark.parametrize("wrong", [0, 1.5, "two"])
def test_a_wrong_number_is_named(wrong) -> None:
    with pytest.raises((ValueError, TypeError), match="n_jobs"):
        SVC(n_jobs=wrong).fit(X, Y)


def test_time_in_which_kernels_were_compiled_is_no_part_of_the_limits_of_threads(
    monkeypatch,
) -> None:
    """Each thread has a clock of its own: this one has compiled for a minute, others have not."""
    monkeypatch.setattr(compiling, "seconds", compiling.seconds + 60.0)
    model = HuberizedSVC(multi_class="ovr", n_jobs=2, time_limit=20.0).fit(X, Y)
    assert model.certificate_.converged


def test_work_ends_runs_of_tiny_problems_at_the_same_iterations_on_threads(monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.models.fitting.fitting.TINY_WORK", 2e7)
    few, labels = X[:100], Y[:100]
    coefs = []
    for threads in (None, 2):
        model = ElasticNetSVC(multi_class="ovr", tol=0.0, n_jobs=threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coefs.append(model.fit(few, labels).coef_)
    np.testing.assert_array_equal(*coefs)
