"""Certificates of several fits that make up a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from proxmargin import CertificateList, SquaredHingeSVC, load_model, save_model


def test_the_worst_problem_and_the_reasons_are_told_by_class(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SquaredHingeSVC(standardize=True).fit(X, names)
    found = model.certificate_
    label = model.classes_[int(np.argmax([one.relative_gap for one in found]))]
    assert str(found).startswith(f"worst of 3 class problems (class {label}): ")
    save_model(model, tmp_path / "model.pmz")
    assert str(load_model(tmp_path / "model.pmz").certificate_) == str(found)


def test_reasons_that_differ_name_their_classes() -> None:
    X, y = load_iris(return_X_y=True)
    one, two, three = SquaredHingeSVC().fit(X, y).certificate_
    one, two, three = (replace(each, because="tall") for each in (one, two, three))
    assert CertificateList([one, two, three], [0, 1, 2]).because == "tall"
    mixed = CertificateList([one, replace(two, because="wide"), three], ["a", "b", "c"])
    assert mixed.because == "class a, class c: tall; class b: wide"
    unnamed = CertificateList([one, replace(two, because="wide")])
    assert unnamed.because == "problem 0: tall; problem 1: wide"
