"""Mistakes are one sentence and an exit status."""

from __future__ import annotations

import shlex

import pytest

from proxmargin.cli import failures, main
from proxmargin.cli.failures import FAILED, INTERRUPTED, OK, USAGE, guarded


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("fit nowhere.csv --model HuberizedSVC", "There is no file 'nowhere.csv'"),
            ("fit iris --model Nope", "there is no model 'Nope'; models are DWD, "),
            ("fit iris --model SquaredHingeSVC --delta 2", "has no parameter for --delta"),
            ("fit iris --model SVC --set width=2", "has no parameter for --set width"),
            ("fit iris --model HuberizedSVC --alpha -1", "alpha must be"),
            ("fit iris --model HuberizedSVC --solver nope", "unknown solver 'nope'"),
            ("fit iris --model HuberizedSVC --target nope", "nope"),
            ("fit iris --model HuberizedSVC -o no/where/m.pmz", "cannot write to no/where/m.pmz"),
            ("compare iris --models Nope", "no model 'Nope' to compare"),
            ("compare iris --scoring nope", "unknown scoring 'nope'"),
            ("compare iris --folds 1", "--folds 1: cross-validation needs at least 2 folds"),
            ("permute iris --model DWD --folds 1", "--folds 1: "),
            ("cv iris --model HuberizedSVC --folds 60", "--folds 60 needs at least 60 samples"),
            (
                "cv iris --model HuberizedSVC --folds 150 --splits time",
                "--folds 150 in time needs 151",
            ),
            ("fit iris --model DWD --cv 150 --splits time", "--cv 150 in time needs 151 rows"),
            ("compare iris --folds 150 --splits time", "--folds 150 in time needs 151 rows"),
            ("compare iris --jobs 0", "--jobs 0: "),
            ("permute iris --model DWD --jobs 0", "--jobs 0: "),
            ("stability iris --model HuberizedSVC --jobs 0", "--jobs 0: "),
            ("permute iris --model DWD --permutations 0", "--permutations 0: it must be"),
            ("publish iris -o x --permutations -1", "--permutations -1: it must be"),
            ("permute iris --model DWD --statistic=", "statistic must be one of"),
            ("compare iris --output .", "it is a folder"),
            ("compare iris --report no/where.html", "cannot write to no/where.html"),
            ("compare iris --time-limit 0", "--time-limit must be a finite number > 0"),
            ("compare iris --metrics nope", "unknown metrics 'nope'"),
            ("compare iris --groups site", "this is a matrix"),
            ("path iris --model MarginClassifier", "has no alpha"),
            ("path iris --model HuberizedSVC --n-alphas 0", "--n-alphas 0: it must be at least 1"),
            ("predict nowhere.pmz iris", "nowhere.pmz"),
            ("info nowhere.pmz", "nowhere.pmz"),
            ("info iris --sep ;", "leave out --sep ';'"),
            ("info iris --encoding klingon", "no encoding 'klingon'"),
            ("fit iris --model HuberizedSVC --ignore 0", "this is a matrix"),
        ],
    )
    def test_a_mistake_is_one_sentence_and_status_2(self, arguments, words, capsys):
        assert main([*arguments.split(), "--quiet"]) == USAGE
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert err.startswith("proxmargin: error: ")
        assert len(err.splitlines()) == 1

    def test_the_wrong_data_for_a_model_are_refused(self, model, capsys):
        assert main(["predict", str(model), "iris"]) == USAGE
        assert "Traceback" not in capsys.readouterr().err

    def test_debug_shows_the_traceback(self, capsys):
        assert main(["fit", "nowhere.csv", "--model", "HuberizedSVC", "--debug"]) == USAGE
        assert "Traceback" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments",
        [[], ["nope"], ["fit", "iris"], ["fit"], ["compare", "iris", "--folds", "x"],
         ["fit", "iris", "--model", "HuberizedSVC", "--set", "nonsense"]],
    )  # fmt: skip
    def test_wrong_usage_exits_with_2(self, arguments, capsys):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == USAGE
        assert "usage: proxmargin" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("option", "words"),
        [("--alpha", "--alpha: 'auto' or a number such as 0.1"), ("--tol", "--tol: a number such")],
    )
    def test_a_decimal_comma_is_answered_in_words(self, option, words, capsys):
        with pytest.raises(SystemExit):
            main(["fit", "iris", "--model", "HuberizedSVC", option, "0,1"])
        err = capsys.readouterr().err
        assert words in err
        assert "decimal point, and not '0,1'" in err
        assert "_number" not in err

    @pytest.mark.parametrize(
        ("error", "status", "words"),
        [
            (ValueError("bad"), USAGE, "error: bad"),
            (PermissionError(13, "denied"), FAILED, "denied"),
            (MemoryError(), FAILED, "not enough memory"),
            (RuntimeError("two\nlines"), FAILED, "RuntimeError: two lines (--debug shows where)"),
            (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
        ],
    )
    def test_every_exception_has_a_status(self, error, status, words, capsys):
        def work() -> int:
            raise error

        assert guarded(work, debug=False) == status
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("word", ["Crohn's", "\\N", "a b", "<0.1"])
def test_words_with_marks_are_options_that_a_shell_takes_as_they_are(word):
    for advice in (f"missing={word!r}", f"missing={[word, word]!r}"):
        found = shlex.split(failures.as_options(f"read it so ({advice}).").partition("(")[2][:-2])
        assert found == ["--missing", word] * (1 + ("[" in advice))


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("compare iris --repeats 0", "--repeats 0: it must be at least 1"),
        ("stability iris --model HuberizedSVC --pairs 0", "--pairs 0: it must be at least 1"),
        ("stability iris --model HuberizedSVC --n-strengths 0", "--n-strengths 0: it must"),
        ("stability iris --model HuberizedSVC --q 0", "--q 0: it must be at least 1"),
        ("stability iris --model HuberizedSVC --eps 2", "--eps must be"),
        ("stability iris --model HuberizedSVC --cluster 2", "--cluster must be"),
        ("path iris --model HuberizedSVC --n-alphas -1", "--n-alphas -1: it must be at least 1"),
        ("path iris --model HuberizedSVC --stop-at 2", "--stop-at must be"),
        ("cv iris --model HuberizedSVC --n-strengths 0", "--n-strengths 0: it must be"),
        ("cv iris --model HuberizedSVC --l1-ratios 2", "--l1-ratios must be"),
        ("fit iris --model HuberizedSVC --l1-ratio 2", "--l1-ratio must be"),
        ("fit iris --model HuberizedSVC --time-limit -1", "--time-limit must be"),
        ("fit iris --model SVC --kernel foo", "--kernel is one of"),
        ("publish iris -o=", "--output '' is no folder"),
    ],
)
def test_the_option_that_was_typed_is_named(words, option, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words.split(), "-q"]) == USAGE
    assert capsys.readouterr().err.startswith(f"proxmargin: error: {option}")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("fit iris --model SVC --standardise yes", "'--standardise': did you mean --standardize?"),
        ("compare iris --normalise-levels", "did you mean --normalize-levels?"),
        ("predict m.pmz iris --probability", "'--probability': did you mean --proba?"),
        ("fit iris", "which model? --model NAME, one of DWD, "),
        ("cv iris", "which one suits the data tells: proxmargin compare DATA"),
    ],
)
def test_a_word_that_is_no_option_is_answered_with_the_nearest(words, sentence, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == USAGE
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--fdr 0.1",
            "--fdr needs --q, the features of a half-sample, and neither --threshold",
        ),
        ("--fdr 0.1 --q 2 --pfer 1", "nor --pfer: the threshold follows from the frequencies"),
        ("--threshold 0.8 --q 2 --pfer 1", "--threshold, --pfer and --q are given: give two"),
    ],
)
def test_options_are_named_wherever_a_sentence_has_parameters(words, sentence, capsys) -> None:
    command = ["stability", "breast_cancer", "--model", "HuberizedSVC", "-q"]
    assert main([*command, *words.split()]) == USAGE
    assert sentence in capsys.readouterr().err


def test_permutations_of_no_named_model_are_those_of_the_usual_one(capsys) -> None:
    command = ["permute", "breast_cancer", "--permutations", "3", "-q", "--json"]
    assert main(command) == OK
    assert '"model": "DWD"' in capsys.readouterr().out
