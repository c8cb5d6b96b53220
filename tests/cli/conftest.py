"""A table and a model of it, as most commands meet them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin.cli import main
from proxmargin.cli.failures import OK

ROWS = 200
COLUMNS = 6


@pytest.fixture(scope="session")
def training(tmp_path_factory) -> Path:
    """A CSV file with named columns and words as labels."""
    data = load_breast_cancer()
    path = tmp_path_factory.mktemp("data") / "train.csv"
    names = [f"f{j}" for j in range(COLUMNS)]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "class"])
        for row, code in zip(data.data[:ROWS, :COLUMNS], data.target[:ROWS], strict=True):
            writer.writerow([*row, data.target_names[code]])
    return path


@pytest.fixture(scope="session")
def model(training) -> Path:
    path = training.with_name("model.pmz")
    words = ["--model", "HuberizedSVC", "--standardize", "yes", "-q", "-o", str(path)]
    assert main(["fit", str(training), *words]) == OK
    return path
