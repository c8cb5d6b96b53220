"""Sentences of the library in terms of options."""

from __future__ import annotations

import pytest

from proxmargin.cli.failures import as_options


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("use multi_class='ovr'", "use --multi-class ovr"),
        ("it is above (nu=0.25).", "it is above (--nu 0.25)."),
        ("encode them (encode=True) or not", "encode them (--encode) or not"),
        ("name it (encoding=).", "name it (--encoding)."),
        ("give n_pairs >= 5 or q <= 3.", "give --pairs of at least 5 or --q of at most 3."),
        ("name it (ids=NAME)", "name it (--id NAME)"),
        (
            "their marks: decimal=',' with thousands='.'.",
            "their marks: --decimal ',' with --thousands '.'.",
        ),
        ("(tol=1e-05)", "(--tol 1e-05)"),
        ("SVC(shrinking=True), x_nu=1", "SVC(shrinking=True), x_nu=1"),
    ],
)
def test_sentences_name_options(sentence, words):
    assert as_options(sentence) == words
