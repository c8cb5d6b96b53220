"""``proxmargin cv``: the choice, its table, and what is left after Ctrl-C."""

from __future__ import annotations

import json

import numpy as np
import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import INTERRUPTED, OK, USAGE
from proxmargin.models.selection.base import CrossValidated


class TestCrossValidation:
    def test_it_chooses_prints_and_saves(self, tmp_path, capsys):
        arguments = ["cv", "wine", "--model", "HuberizedSVC", "--multi-class", "ovr", "-q"]
        arguments += ["--n-strengths", "3", "--folds", "3", "--l1-ratios", "1", "0.5"]
        path = tmp_path / "m.pmz"
        assert main([*arguments, "-o", str(path), "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        assert len(told["scores"]) == 6
        best = max(told["scores"], key=lambda row: row["mean_test_score"])
        assert told["chosen"] == best
        assert best["mean_test_score"] == pytest.approx(np.mean(best["folds"]))
        model = load_model(path)
        assert (model.alpha, model.l1_ratio) == (best["alpha"], best["l1_ratio"])
        assert main(arguments) == OK
        assert " *" in capsys.readouterr().out

    def test_relaxed_fits_have_scores_of_their_own(self, capsys):
        arguments = ["cv", "breast_cancer", "-q", "--n-strengths", "3", "--folds", "2", "--relaxed"]
        lasso = [*arguments, "--model", "SparseLogisticRegression", "--eps", "0.5"]
        assert main([*lasso, "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        scores = told["scores"]
        assert told["one_standard_error"] in scores
        assert [row["gamma"] for row in scores] == np.repeat([1, 0.75, 0.5, 0.25, 0], 3).tolist()
        assert main(lasso) == OK
        table = capsys.readouterr().out.partition("\n* chosen, + ")[0].splitlines()
        assert len({row.split()[2] for row in table[1:]}) == len(table[1:]) == 3
        assert sum("*" in row for row in table) == sum("+" in row for row in table) == 1
        assert main([*arguments, "--model", "SVC"]) == USAGE
        assert "no parameter for --relaxed of SVC" in capsys.readouterr().err

    def test_complete_folds_are_printed_after_ctrl_c(self, capsys, monkeypatch):
        fitted = CrossValidated.fit

        models = []

        def interrupted(model, X, y, sample_weight=None):
            fitted(model, X, y)
            model.cv_scores_[:, 1, 2] = np.nan
            del model.best_index_  # an interrupted search has chosen nothing
            models.append(model)
            raise KeyboardInterrupt

        monkeypatch.setattr(CrossValidated, "fit", interrupted)
        arguments = ["cv", "breast_cancer", "--model", "LogisticRegression", "-q", "--json"]
        assert main([*arguments, "--n-strengths", "2", "--folds", "3"]) == INTERRUPTED
        told = json.loads(capsys.readouterr().out)
        assert told["complete_folds"] == 2
        assert [len(row["folds"]) for row in told["scores"]] == [2, 2]
        assert models[0].cv_scores_.shape == (1, 2, 3)

    def test_a_choice_at_the_edge_is_told_of(self, capsys):
        arguments = ["cv", "wine", "--model", "SquaredHingeSVC", "-q", "--eps", "0.9"]
        assert main([*arguments, "--n-strengths", "2", "--folds", "3"]) == OK
        err = capsys.readouterr().err
        assert err.count("warning") == 2  # of the order of the rows, too
        assert "is the weakest penalty of its grid: a weaker one may be better" in err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["HuberizedSVC", "--alpha", "1"], "leave out --alpha"),
            (["HuberizedSVC", "--l1-ratio", "1", "--l1-ratios", "1"], "is one of --l1-ratios"),
            (["SVC", "--l1-ratios", "1"], "no parameter for --l1-ratios of SVC"),
            (["DWD"], "knows no strength of DWD"),
        ],
    )
    def test_a_mistake_is_a_sentence(self, options, words, capsys):
        assert main(["cv", "wine", "-q", "--model", *options]) == USAGE
        assert words in capsys.readouterr().err
