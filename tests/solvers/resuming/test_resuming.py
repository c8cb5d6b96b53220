"""A fit that was cut short goes on from its checkpoint, or says why it cannot."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    Checkpoint,
    ElasticNetSVC,
    HuberizedSVC,
    MulticlassSVC,
    NuSVC,
    SquaredHingeSVC,
)
from proxmargin.optimality.certificates.certificate import Certificate
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import RunCheckpoint
from proxmargin.solvers.resuming.codec import EncodingError, StateCodec
from tests.cases import ESTIMATORS, KERNEL_MACHINES

X, Y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


class Interrupt:
    """Raises what Ctrl-C raises, at one of the certificates; counts them."""

    def __init__(self, at: int) -> None:
        self.at, self.told, self.outer = at, 0, 0

    def __call__(self, report) -> None:
        self.told += 1
        self.outer += not report.inner and (self.at == 0 or self.told <= self.at)
        if self.told == self.at:
            raise KeyboardInterrupt


def fitted(model: Any, *callbacks: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).set_params(callbacks=callbacks).fit(X, Y, **options)


def interrupted(model: Any, path: Path, at: int) -> int:
    """How many certificates of whole problems there were until then."""
    seen = Interrupt(at)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, Checkpoint(path, every=0.0), seen)
    return seen.outer


def facts(certificate: Any) -> list[tuple[Any, ...]]:
    parts = [certificate] if isinstance(certificate, Certificate) else list(certificate)
    return [(c.primal, c.gap, c.n_iter, c.stop_reason, c.converged) for c in parts]


def assert_same(one: Any, other: Any) -> None:
    for name in ("coef_", "intercept_", "dual_coef_", "support_"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert facts(one.certificate_) == facts(other.certificate_)


def assert_alike(one: Any, other: Any) -> None:
    """But for rounding: products with a kernel sum up kept rows in the order they came in."""
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=1e-9)
    assert [f[2:] for f in facts(one.certificate_)] == [f[2:] for f in facts(other.certificate_)]


def assert_resumes(model: Any, path: Path, same: Any = assert_same) -> None:
    """After the first certificate, in the middle, and after the last one."""
    count = Interrupt(0)
    whole = fitted(model, count)
    for at in sorted({1, 1 + count.told // 2, count.told}):
        done, seen = interrupted(model, path, at), Interrupt(0)
        same(fitted(model, seen, resume_from=path), whole)
        assert seen.outer <= count.outer - done + 1  # what was finished is not done again


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_goes_on_bit_for_bit(name, tmp_path) -> None:
    assert_resumes(ESTIMATORS[name](), tmp_path / "fit.npz")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", KERNEL_MACHINES)
def test_every_kernel_machine_goes_on(name, tmp_path) -> None:
    assert_resumes(KERNEL_MACHINES[name](kernel="rbf"), tmp_path / "fit.npz", same=assert_alike)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "model",
    [
        HuberizedSVC(multi_class="ovr", standardize=True, solver="fapg"),
        HuberizedSVC(solver="m-pgh", tol=1e-9),
        MulticlassSVC(C=None, eta=20.0),
        MulticlassSVC(C=None, eta=20.0, loss="squared_hinge", penalty="l2"),
        NuSVC(nu=0.1, class_weight="balanced"),
        SquaredHingeSVC(max_iter=3, solver="gcd"),
    ],
    ids=repr,
)
def test_other_fits_go_on_bit_for_bit(model, tmp_path) -> None:
    assert_resumes(model, tmp_path / "fit.npz")


def test_a_finished_fit_is_published_from_its_checkpoint(tmp_path) -> None:
    path = tmp_path / "fit.npz"
    model = SquaredHingeSVC()
    whole, seen = fitted(model, Checkpoint(path)), Interrupt(0)
    assert_same(fitted(model, seen, resume_from=path), whole)
    assert seen.told == 0


def test_a_fit_goes_on_from_the_file_that_it_writes(tmp_path) -> None:
    path = tmp_path / "fit.npz"
    model, count = SquaredHingeSVC(solver="fapg"), Interrupt(0)
    whole = fitted(model, count)
    interrupted(model, path, 2)
    for _ in range(20):  # each time a few certificates further
        try:
            found = fitted(model, Checkpoint(path, 0.0), Interrupt(3), resume_from=path)
        except KeyboardInterrupt:
            continue
        break
    assert_same(found, whole)


def test_more_iterations_go_on_where_the_limit_was(tmp_path) -> None:
    path, model = tmp_path / "fit.npz", SquaredHingeSVC(solver="fapg", tol=1e-10)
    limited = clone(model).set_params(max_iter=20)
    fitted(limited, Checkpoint(path))
    more = fitted(model, resume_from=path)
    whole = fitted(model)
    assert more.certificate_.converged
    # the last class has its state, the others start at their points
    assert facts(more.certificate_)[-1] == facts(whole.certificate_)[-1]


@pytest.mark.parametrize("limits", [{}, {"max_iter": 500, "time_limit": 100.0}], ids=repr)
@pytest.mark.parametrize(
    "model",
    [
        ElasticNetSVC(alpha=0.01, l1_ratio=0.9, solver="multiplier-newton"),
        HuberizedSVC(alpha=0.01, solver="ssnal"),
        HuberizedSVC(alpha=0.01, solver="fapg-ssnal"),
        MulticlassSVC(C=0.05, solver="multiplier-newton"),
        SquaredHingeSVC(alpha=0.01, solver="fapg-ws"),
    ],
    ids=repr,
)
def test_a_state_with_limits_of_its_own_has_those_of_the_fit_that_goes_on(
    model, limits, tmp_path
) -> None:
    path = tmp_path / "fit.npz"
    limited = clone(model).set_params(max_iter=3, time_limit=60.0)
    assert not fitted(limited, Checkpoint(path, 0.0)).certificate_.converged
    assert fitted(model.set_params(**limits), resume_from=path).certificate_.converged


def test_a_fit_that_ran_out_of_time_goes_on(tmp_path) -> None:
    path, model = tmp_path / "fit.npz", SquaredHingeSVC(solver="fapg", tol=1e-9)
    hurried = clone(model).set_params(time_limit=1e-3)
    assert not fitted(hurried, Checkpoint(path)).certificate_.converged
    assert_same(fitted(model, resume_from=path), fitted(model))


def test_a_state_that_no_file_can_hold_leaves_its_point(tmp_path, monkeypatch) -> None:
    def refuse(codec: StateCodec, value: Any, where: str = "") -> Any:
        if isinstance(value, RunCheckpoint):
            raise EncodingError("a secret")
        return encode(codec, value, where)

    encode = StateCodec.encode
    monkeypatch.setattr(StateCodec, "encode", refuse)
    path, model = tmp_path / "fit.npz", HuberizedSVC(solver="m-pgh", tol=1e-8)
    count = Interrupt(0)
    whole = fitted(model, count)
    interrupted(model, path, count.told // 2)
    resumed = fitted(model, resume_from=path)
    assert resumed.certificate_.converged
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-8)
    assert resumed.certificate_.n_iter < whole.certificate_.n_iter


def test_a_state_of_another_version_leaves_its_point(tmp_path) -> None:
    path, model = tmp_path / "fit.npz", SquaredHingeSVC(solver="fapg", tol=1e-9)
    whole = fitted(model, count := Interrupt(0))
    interrupted(model, path, count.told // 2)
    with np.load(path) as file:
        held = dict(file)
    fit = str(held["fit"]).replace('"lipschitz"', '"steepness"')
    np.savez(path, **{**held, "fit": np.array(fit)})
    with pytest.warns(UserWarning, match=r"cannot read .*steepness.*starts at the last point"):
        resumed = model.fit(X, Y, resume_from=path)
    assert resumed.certificate_.converged
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-8)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "fit.npz"
    fitted(SquaredHingeSVC(alpha=0.1), Checkpoint(path))
    return path


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (HuberizedSVC(), "it is of a SquaredHingeSVC, and this is a HuberizedSVC"),
        (SquaredHingeSVC(alpha=0.2), "it was written with alpha=0.1, and this fit has 0.2"),
        (SquaredHingeSVC(alpha=0.1, solver="gcd"), "solver='auto', and this fit has 'gcd'"),
        (SquaredHingeSVC(alpha=0.1, class_weight={0: 2.0}), "class_weight=None, and this fit"),
    ],
    ids=repr,
)
def test_a_checkpoint_of_another_fit_is_refused(model, words, written) -> None:
    with pytest.raises(ValueError, match=rf"cannot resume from .*fit\.npz: .*{words}"):
        model.fit(X, Y, resume_from=written)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X[:, :5], Y), r"shape \(178, 13\), and these have \(178, 5\)"),
        ((X[1:], Y[1:]), r"shape \(178, 13\), and these have \(177, 13\)"),
        ((X + 1.0, Y), "other entries"),
        ((sp.csr_array(X), Y), "stored in another way"),
        ((X, np.roll(Y, 1)), "other labels or weights"),
        ((X, np.array(["a", "b", "c"])[Y]), "other labels or weights"),
        ((X, Y, np.arange(1.0, len(Y) + 1)), "other labels or weights"),
    ],
)
def test_a_checkpoint_of_other_data_is_refused(data, words, written) -> None:
    with pytest.raises(ValueError, match=words):
        SquaredHingeSVC(alpha=0.1).fit(*data, resume_from=written)


class Trap:
    """Leaves a trace when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_what_is_no_checkpoint_is_refused_and_nothing_is_executed(tmp_path, written) -> None:
    path, trap = tmp_path / "fit.npz", tmp_path / "sprung"
    model = SquaredHingeSVC(alpha=0.1)
    with pytest.raises(FileNotFoundError):
        model.fit(X, Y, resume_from=path)
    whole = written.read_bytes()
    forged = np.array([Trap(trap)], dtype=object)
    for content in (b"", b"text", whole[: len(whole) // 2], pickle.dumps(Trap(trap))):
        path.write_bytes(content)
        with pytest.raises((ValueError, OSError)):
            model.fit(X, Y, resume_from=path)
    np.savez(path, coef=forged, intercept=forged, facts=forged, fit=forged)
    with pytest.raises(ValueError, match="is no checkpoint"):
        model.fit(X, Y, resume_from=path)
    assert not trap.exists()


def test_a_record_of_another_class_is_refused(written, tmp_path) -> None:
    path = tmp_path / "forged.npz"
    with np.load(written) as file:
        held = dict(file)
    for name in (
        "os:system",
        "proxmargin.files.models.model:load_model",
        "proxmargin.optimality.problem:Problem",
    ):
        fit = str(held["fit"]).replace("proxmargin.solvers.resuming.journal:Identity", name)
        np.savez(path, **{**held, "fit": np.array(fit)})
        with pytest.raises(ValueError, match="this version cannot read"):
            SquaredHingeSVC(alpha=0.1).fit(X, Y, resume_from=path)


def test_a_checkpoint_of_a_single_minimisation_is_refused(tmp_path) -> None:
    path = tmp_path / "run.npz"
    problem = SquaredHingeSVC()._assemble(X, Y, None).problems[0]
    from proxmargin.solvers.papers.proximal_gradient import CoordinateDescent

    found = minimize(problem, CoordinateDescent(), callbacks=[Checkpoint(path)])
    point, facts = Checkpoint.load(path)
    np.testing.assert_array_equal(point.coef, found.point.coef)
    assert facts["solver"] == "gcd"
    with pytest.raises(ValueError, match="it was not written by a fit"):
        SquaredHingeSVC().fit(X, Y, resume_from=path)


def test_a_full_disk_is_one_warning_and_the_fit_goes_on(tmp_path, monkeypatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "fit.npz"
    interrupted(SquaredHingeSVC(), path, 2)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    model = SquaredHingeSVC(callbacks=[Checkpoint(path, every=0.0)])
    with pytest.warns(UserWarning, match="cannot be written") as caught:
        model.fit(X, Y)
    assert [str(w.message) for w in caught] == [
        f"the checkpoint {path} cannot be written: No space left on device; the fit goes on"
    ]
    assert model.certificate_.converged
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_a_missing_folder_is_a_warning(tmp_path) -> None:
    model = SquaredHingeSVC(callbacks=[Checkpoint(tmp_path / "nowhere" / "fit.npz")])
    with pytest.warns(UserWarning, match="cannot be written: No such file or directory"):
        assert model.fit(X, Y).certificate_.converged


@pytest.mark.slow
def test_whenever_a_process_is_killed_its_checkpoint_is_whole(tmp_path) -> None:
    path, model = tmp_path / "fit.npz", SquaredHingeSVC(solver="fapg", tol=1e-9)
    whole, rng = fitted(model), np.random.default_rng(0)
    for _ in range(30):
        process = os.fork()
        if process == 0:  # no test any more: it does nothing but fit
            while True:
                fitted(model, Checkpoint(path, 0.0), resume_from=path if path.exists() else None)
                path.unlink()
        time.sleep(rng.uniform(0.0, 0.1))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        source = path if path.exists() else None
        assert_same(fitted(model, Checkpoint(path), resume_from=source), whole)
        assert os.listdir(tmp_path) == ["fit.npz"]


@pytest.mark.parametrize("source", [3, ["fit.npz"], b"fit.npz"])
def test_what_is_no_path_is_named(source: Any) -> None:
    with pytest.raises(ValueError, match="resume_from must be the path of a checkpoint"):
        HuberizedSVC().fit(X, Y, resume_from=source)
