"""Estimators in notebooks show their certificate, and no text of theirs is markup."""

from __future__ import annotations

import warnings
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin import (
    L2SVC,
    SVC,
    DDAGClassifier,
    HuberizedSVC,
    HuberizedSVCCV,
    StabilitySelection,
    margin_path,
    permutation_test,
)
from proxmargin.models.fitting.notebook import certificate_line


class Line(HTMLParser):
    """The text of the line of the certificate, and the tags in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.inside = "", [], False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if self.inside:
            self.tags.append(tag)
        self.inside |= ("class", "proxmargin-line") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any]:
    return load_iris(return_X_y=True)


def shown(model: Any) -> str:
    html = model._repr_mimebundle_()["text/html"]
    for representation in (html, model._repr_html_()):
        # scikit-learn numbers its diagrams
        assert "sk-top-container" in representation
        assert Line(representation).text == Line(html).text
    assert not Line(html).tags
    return Line(html).text


def test_a_fit_shows_its_objective_gap_solver_and_seconds(iris) -> None:
    X, y = iris
    model = L2SVC().fit(X[:100], y[:100])
    text, found = shown(model), model.certificate_
    assert text.startswith("certificate met: objective ")
    parts = (f"{found.primal:.6g}", f"{found.gap:.2g} of the optimum", f"solver {found.solver}")
    assert all(part in text for part in parts)
    assert f"relative gap {found.relative_gap:.2g}" in text
    assert text.endswith(f"{found.n_iter} iterations, {found.seconds:.3g} s")


def test_a_fit_that_is_not_fitted_says_what_will_be_proved() -> None:
    assert "not fitted" in shown(HuberizedSVC(tol=1e-4))
    assert "tol=0.0001" in shown(HuberizedSVC(tol=1e-4))


def test_a_tolerance_that_was_not_met_is_said_with_the_reason(iris) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(max_iter=1, solver="fapg").fit(iris[0][:100], iris[1][:100])
    assert shown(model).startswith(f"certificate not met ({model.certificate_.stop_reason})")


def test_several_problems_are_added_up(iris) -> None:
    model = L2SVC(multi_class="ovr").fit(*iris)
    text = shown(model)
    assert f"objective {model.certificate_.primal:.6g}, sum of 3 problems" in text
    assert "largest relative gap" in text


def test_a_choice_by_cross_validation_shows_the_certificate_of_its_model(iris) -> None:
    model = HuberizedSVCCV(alphas=[0.1, 0.01], cv=2)
    assert "not fitted" in shown(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the best is at the end of this short grid
        model.fit(iris[0][:100], iris[1][:100])
    assert "certificate met" in shown(model)


def test_a_combination_of_other_estimators_has_no_line(iris) -> None:
    model = DDAGClassifier(LogisticRegression())
    assert "not fitted" in shown(model)
    assert certificate_line(model.fit(*iris)) == ""


def test_text_is_escaped() -> None:
    class Forged:
        tol = "<script>alert(1)</script>"

    html = certificate_line(Forged())
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert not Line(html).tags


def test_where_text_is_asked_for_there_is_no_html() -> None:
    with sklearn.config_context(display="text"):
        assert list(L2SVC()._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(L2SVC(), "_repr_html_")


def test_a_pipeline_shows_the_estimator_in_it() -> None:
    html = make_pipeline(StandardScaler(), L2SVC())._repr_html_()
    assert "L2SVC" in html


def test_a_certificate_alone_shows_what_its_model_shows(iris) -> None:
    for model in (L2SVC().fit(iris[0][:100], iris[1][:100]), L2SVC().fit(*iris)):
        assert model.certificate_._repr_html_() == certificate_line(model)
        assert len(repr(model.certificate_)) < 500


def test_a_path_shows_some_strengths_with_features_and_gaps(iris) -> None:
    path = margin_path(HuberizedSVC(standardize=True), iris[0][:100], iris[1][:100], n_alphas=25)
    html = path._repr_html_()
    assert "25 alphas from" in Line(html).text
    assert html.count("<tr>") == 11
    assert f"<td>{path.certificates[-1].relative_gap:.1e}</td>" in html
    assert path._picked(np.array([], int))._repr_html_().count("<tr>") == 1


def test_a_permutation_test_shows_its_answer_and_not_its_null(iris) -> None:
    test = permutation_test(L2SVC(), iris[0][:100], iris[1][:100], n_permutations=20)
    assert str(test) in repr(test)
    assert repr(test).count("\n") == 0
    assert f"p = {test.pvalue:.4g}" in Line(test._repr_html_()).text


def test_a_selection_shows_the_most_frequent_features(iris) -> None:
    model = HuberizedSVC(l1_ratio=1.0, standardize=True)
    stable = StabilitySelection(model, n_pairs=3, threshold=0.8, q=2, random_state=0)
    assert "not fitted" in shown(stable)
    stable.fit(iris[0][:100], iris[1][:100])
    assert f"{stable.stable_.sum()} of 4 features are stable" in shown(stable)
    assert f"{stable.to_frame().frequency[0]:.2f}</td>" in stable._repr_html_()
