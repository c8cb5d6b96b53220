"""What paths found: certificates that are made when they are read."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from proxmargin import HuberizedSVC, Path, SparseLogisticRegression, margin_path
from proxmargin.models.paths.chord_path import ChordPath
from proxmargin.models.paths.found import Certificates


@pytest.fixture(scope="module", params=[2, 3])
def path(request: pytest.FixtureRequest) -> Path:
    """Of one problem, which the engine solves, and of one a class."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 50))
    y = np.arange(30) % request.param
    X[:, 0] += y
    return margin_path(SparseLogisticRegression(l1_ratio=0.9), X, y, n_alphas=5, eps=0.1)


def test_certificates_are_a_sequence(path: Path) -> None:
    every = path.certificates
    assert isinstance(every, Certificates)
    assert len(every) == 5
    assert list(every) == [every[k] for k in range(5)]
    assert every[-1] == every[4]
    assert list(every[1:3]) == [every[1], every[2]]
    with pytest.raises(IndexError):
        every[5]


def test_a_model_makes_no_certificate_but_its_own(path: Path) -> None:
    read: list[int] = []
    parts = [
        [
            replace(each, certify=lambda k, each=each: (read.append(k), each.certify(k))[1])
            for each in part
        ]
        for part in path.certificates.parts
    ]
    watched = replace(path, certificates=Certificates(parts))
    assert watched.model(2).certificate_ == path.certificates[2]
    assert len(read) == len(parts[0])


def test_copies_have_the_certificates(path: Path) -> None:
    for other in (pickle.loads(pickle.dumps(path)), copy.deepcopy(path)):
        assert list(other.certificates) == list(path.certificates)
        back = other._picked(np.arange(len(path))[::-1])
        assert list(back.certificates) == list(path.certificates)[::-1]


def test_strengths_in_another_order_are_the_same_models() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 6))
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1, -1)
    alphas = np.array([0.01, 0.1, 0.03])
    mixed = margin_path(HuberizedSVC(), X, y, alphas=alphas)
    falling = margin_path(HuberizedSVC(), X, y, alphas=np.sort(alphas)[::-1])
    np.testing.assert_array_equal(mixed.strengths, alphas)
    np.testing.assert_array_equal(mixed.coefs, falling.coefs[[2, 0, 1]])
    assert [one.primal for one in mixed.certificates] == [
        falling.certificates[k].primal for k in (2, 0, 1)
    ]


def test_those_that_fell_short_are_told() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 6))
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1, -1)
    with pytest.warns(match="2 of 3 fits"):
        path = margin_path(HuberizedSVC(max_iter=0), X, y, n_alphas=3, eps=0.1)
    assert isinstance(path.certificates, Certificates)
    assert [one.converged for one in path.certificates] == [True, False, False]
    assert path.certificates.unmet == path.certificates[1:]


def test_certificates_compare_and_print_as_what_they_are(path: Path) -> None:
    back = pickle.loads(pickle.dumps(path))
    assert path.certificates == back.certificates
    assert path.certificates != list(path.certificates)[1:]
    assert repr(path.certificates) == "<5 certificates, 0 with a tolerance that was not met>"


def test_parts_of_what_was_found_are_the_same_models() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((30, 50)), np.arange(30) % 3
    X[:, 0] += y
    model = SparseLogisticRegression(multi_class="ovr")
    path = margin_path(model, X, y, n_alphas=5, eps=0.1)
    assert isinstance(path.certificates, Certificates)
    (classes,) = path.certificates.parts
    assert len(classes) == 3
    for found in classes:
        rest = found.part(1, 5)
        assert (found.count, rest.count) == (5, 4)
        for k in range(4):
            np.testing.assert_array_equal(rest.point(k, 50).coef, found.point(k + 1, 50).coef)
            assert rest.certify(k) == found.certify(k + 1)
        np.testing.assert_array_equal(rest.point(-1, 50).coef, found.point(4, 50).coef)


def test_problems_that_are_solved_in_steps_of_different_length_are_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((30, 50)), np.arange(30) % 3
    X[:, 0] += y
    model = SparseLogisticRegression(multi_class="ovr", tol=1e-10)
    expected = margin_path(model, X, y, n_alphas=7, eps=0.1)
    lengths = {}

    def few(self: ChordPath, strengths: int) -> int:
        return min(strengths, lengths.setdefault(self, 1 + len(lengths)))

    monkeypatch.setattr(ChordPath, "chunk", few)
    path = margin_path(model, X, y, n_alphas=7, eps=0.1)
    assert sorted(lengths.values()) == [1, 2, 3]
    assert len(path) == 7
    np.testing.assert_allclose(path.coefs, expected.coefs, atol=1e-4)
    assert [one.n_iter > 0 for one in path.certificates][1:] == [True] * 6
