"""``proxmargin fit``: what is fitted, printed and saved."""

from __future__ import annotations

import json
import warnings

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import FAILED, OK
from tests.cli.conftest import COLUMNS


class TestFit:
    def test_it_saves_a_standardised_model_with_the_names_of_the_columns(self, model):
        fitted = load_model(model)
        assert fitted.standardize
        assert fitted.certificate_.converged
        assert list(fitted.feature_names_in_) == [f"f{j}" for j in range(COLUMNS)]

    def test_it_prints_the_certificate(self, training, capsys):
        assert main(["fit", str(training), "--model", "SquaredHingeSVC", "--alpha", "0.1"]) == OK
        out, err = capsys.readouterr()
        assert "SquaredHingeSVC(alpha=0.1, " in out
        assert "converged: objective" in out
        assert err == ""

    def test_options_reach_the_estimator(self, training, tmp_path):
        path = tmp_path / "m.pmz"
        status = main(
            f"fit {training} --model-name HuberizedSVC --alpha 0.3 --l1-ratio 0.25 --delta 2 "
            f"--solver fapg --tol 0.5 --max-iter 500 --time-limit 60 --no-standardize "
            f"--no-intercept --class-weight balanced --set intercept_ridge=0.5 -q -o {path}".split()
        )
        assert status == OK
        fitted = load_model(path)
        assert (fitted.alpha, fitted.l1_ratio, fitted.delta) == (0.3, 0.25, 2.0)
        assert (fitted.solver, fitted.tol, fitted.max_iter) == ("fapg", 0.5, 500)
        assert (fitted.time_limit, fitted.standardize, fitted.fit_intercept) == (60, False, False)
        assert (fitted.class_weight, fitted.intercept_ridge) == ("balanced", 0.5)

    def test_a_fit_that_did_not_converge_is_saved_and_exits_with_1(
        self, training, tmp_path, capsys
    ):
        path = tmp_path / "m.pmz"
        arguments = ["fit", str(training), "--model", "HuberizedSVC", "--max-iter", "2"]
        assert main([*arguments, "-o", str(path), "--json"]) == FAILED
        out, err = capsys.readouterr()
        assert json.loads(out)["model"]["certificate"]["converged"] is False
        assert err.startswith("proxmargin: warning: HuberizedSVC stopped before its tolerance")
        assert len(err.splitlines()) == 1
        assert not load_model(path).certificate_.converged

    def test_a_warning_is_told_whatever_python_is_to_do_with_warnings(self, training, capsys):
        arguments = ["fit", str(training), "--model", "HuberizedSVC", "--max-iter", "2"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as python -W ignore
            assert main(arguments) == FAILED
        assert capsys.readouterr().err.startswith("proxmargin: warning: HuberizedSVC stopped")
