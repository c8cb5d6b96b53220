"""Tables and figures of Chierchia et al. (2015): protocols on little data, verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.multiclass_data import Split
from benchmarks.papers import chierchia
from benchmarks.papers.chierchia import curves, leukemia, printed, quadratic, times, timing
from benchmarks.papers.chierchia.models import NAMES, ONE_VS_ALL, Fit, Penalised
from benchmarks.papers.chierchia.pictures import drawn
from benchmarks.papers.chierchia.timing import End, Timed, course, losses
from benchmarks.papers.table import Size, Verdict
from sklearn.datasets import load_iris

from benchmarks import paper
from proxmargin import MulticlassSVC

X, y = load_iris(return_X_y=True)
X, y = (X[::6] - X.mean(axis=0)) / X.std(axis=0), y[::6]
IRIS = Split("iris", X, y, X, y)


def test_every_table_and_figure_has_a_command() -> None:
    named = {"C1": "Table 1", **{f"CF{number}": f"Figure {number}" for number in range(1, 5)}}
    assert {name: one.title.split(" of ")[0] for name, one in chierchia.TABLES.items()} == named
    assert named.keys() <= paper.TABLES.keys()


def panel(**errors_and_zeros: tuple[float, float]) -> curves.Panel:
    """A draw with the same numbers at each of three strengths but worse ones at the first."""
    found = {}
    for name, pair in errors_and_zeros.items():
        found[name] = np.array([[(pair[0] + 9.0, pair[1]), pair, (np.nan, np.nan)]])
    return found


def test_curves_are_judged_by_the_best_strength_of_each_model() -> None:
    others = {"logit": (12.0, 94.0), ONE_VS_ALL: (20.0, 94.0)}
    figure = curves.DIGITS.claims
    good = {3: panel(hinge=(11.9, 95.5), square=(12.0, 95.4), **{**others, "logit": (12.1, 94.0)})}
    assert [claim.holds for claim in figure(good)] == [True, True]
    bad = {3: panel(hinge=(12.6, 94.8), square=(12.0, 95.4), **others)}
    assert [claim.holds for claim in figure({**good, 10: bad[3]})] == [False, False]
    assert "12.6, +0.6 ± nan (square)" in figure(bad)[0].numbers


def test_slightly_more_accurate_is_not_slightly_less() -> None:
    others = {"logit": (13.0, 94.0), ONE_VS_ALL: (20.0, 94.0)}
    for errors, holds in ((11.9, True), (12.0, False), (12.3, False)):
        found = {3: panel(hinge=(errors, 95.5), square=(12.0, 95.4), **others)}
        assert curves.DIGITS.claims(found)[0].holds is holds
        assert curves.TEXT.claims(found)[0].holds is holds


def test_as_sparse_as_is_neither_less_nor_more() -> None:
    for zeros, holds in ((95.0, True), (94.8, False), (96.0, False)):
        found = {5: panel(hinge=(11.0, zeros), square=(12.0, 95.4))}
        assert curves.TEXT.claims(found)[2].holds is holds


def test_panels_without_certificates_are_not_tested() -> None:
    good, lost = (panel(hinge=pair, square=(12.0, 95.4)) for pair in ((11.0, 95.4), (np.nan, 95.4)))
    assert [claim.holds for claim in curves.TEXT.claims({5: lost})] == [None, None, None]
    both = curves.TEXT.claims({5: good, 10: lost})
    assert both[0].holds is None
    assert "L/K = 10: nan" in both[0].numbers


def test_an_uncertified_fit_is_left_out_of_a_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Penalised("hinge", "l1", None, 1e-6, 10.0)
    fit = model.fitted(IRIS, 2.0 * model.least(IRIS))
    ends = iter([fit, replace(fit, certified=False)])
    monkeypatch.setattr(Penalised, "fitted", lambda *_: next(ends))
    found = curves._swept(model, IRIS, (1.5, 3.0))
    np.testing.assert_array_equal(np.isnan(found), [[False, False], [True, True]])


def test_panels_of_the_full_size_are_untested_at_the_small_one() -> None:
    (left,) = curves._untested(curves.TEXT, Size.SMALL)
    assert left == ("the same for L/K = 10, 50", None, "at `--size full`")
    assert curves._rests_on(curves.TEXT, Size.SMALL) == "for L/K = 5, 1 of 3 printed ones, 3 draws"
    assert curves._untested(curves.TEXT, Size.FULL) == []


def test_a_curve_has_a_circle_at_its_fewest_errors() -> None:
    found = panel(hinge=(12.0, 95.0), square=(13.0, 94.0))
    left, right = drawn({3: found}, (1.0, 2.0, 3.0)).axes
    circles = [line.get_xydata()[0] for line in left.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(circles, [[2.0, 12.0], [2.0, 13.0]])
    assert left.get_title() == "L/K = 3"
    assert right.get_ylabel() == "% of zeros"


@pytest.mark.parametrize("name", NAMES)
def test_coefficients_begin_at_the_least_strength(name: str) -> None:
    model = Penalised(name, "l1", None, 1e-6, 10.0)
    least = model.least(IRIS)
    assert not any(model.fitted(IRIS, 0.99 * least).nonzeros)
    assert any(model.fitted(IRIS, 1.1 * least).nonzeros)


def test_samples_are_scaled_one_by_one() -> None:
    scaled = leukemia.per_sample(X)
    np.testing.assert_allclose(scaled.mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=1), 1.0)
    np.testing.assert_allclose(leukemia.per_sample(X[:1]), scaled[:1])


def fits(shift: dict[str, int]) -> leukemia.Fits:
    """As printed, with so many more errors of a model."""

    def fit(name: str, cell: printed.Cell) -> Fit:
        coef = np.arange(printed.GENES) < np.array(cell.nonzeros)[:, None]
        return Fit(cell.errors + shift.get(name, 0), coef.astype(float), True)

    return {
        penalty: {name: fit(name, cell) for name, cell in row.items()}
        for penalty, row in printed.LEUKEMIA.items()
    }


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [
        ({}, Verdict.REPRODUCED),
        ({"logit": 2}, Verdict.IN_SHAPE),
        ({"logit": 3}, Verdict.NOT),  # too far from the printed
        ({"hinge": 2}, Verdict.NOT),  # less accurate than square
        ({"square": -1}, Verdict.NOT),  # as accurate as hinge too often
    ],
)
def test_leukemia_is_judged_by_the_nearest_variant(shift: dict[str, int], verdict: Verdict) -> None:
    far = fits(dict.fromkeys(NAMES, 9))
    outcome = leukemia.judged_variants({"far": far, "near": fits(shift)})
    assert outcome.verdict is verdict
    assert "Judged by: near" in outcome.body


def test_claims_on_leukemia_are_strict() -> None:
    found = fits({})
    assert all(claim.holds for claim in leukemia._claims(found))
    exact = {**found["l2"], "hinge": replace(found["l2"]["hinge"], errors=0)}
    claims = leukemia._claims({**found, "l2": exact})
    assert [claim.holds for claim in claims] == [True, True, False, True]
    assert "hinge: 0 against 0" in claims[2].numbers


def test_claims_that_rest_on_an_uncertified_fit_are_not_tested() -> None:
    found = fits({})
    loose = {**found["l2"], "logit": replace(found["l2"]["logit"], certified=False)}
    found = {**found, "l2": loose}
    claims = leukemia._claims(found)
    assert [claim.holds for claim in claims] == [None, True, None, None]
    assert claims[0].numbers.endswith("no certificate: logit with l2")
    assert [claim.holds for claim in leukemia._numbers(found)] == [None, None]
    assert leukemia._table(found).count(leukemia.UNCERTIFIED) == 1


def timed(seconds: float) -> Timed:
    return Timed(seconds, End(np.zeros(1), 5, seconds < 50))


def test_seconds_are_judged_by_their_sums() -> None:
    names = ("Algorithm 1", "Algorithm 2", times.LINEAR, "square, FISTA", times.LOGISTIC)
    draws = [dict(zip(names, map(timed, taken), strict=True)) for taken in
             [(2.0, 1.0, 3.0, 1.0, 60.0), (4.0, 3.0, 9.0, 3.0, 20.0)]]  # fmt: skip
    assert times.judged_seconds({(3, 3.0): draws}).verdict is Verdict.IN_SHAPE
    assert "> 40.0 (5)" in times.judged_seconds({(3, 3.0): draws}).body
    late = [{**draws[0], "Algorithm 1": timed(2.9), "square, FISTA": timed(0.9)}]
    assert "about as long" in times.judged_seconds({(3, 3.0): late}).why  # the slower one
    slow = [{**draws[0], "Algorithm 2": timed(40.0)}]
    outcome = times.judged_seconds({(3, 3.0): slow})
    assert outcome.verdict is Verdict.NOT
    assert "Algorithm 2 is faster than Algorithm 1" in outcome.why


def test_a_quadratic_penalty_is_judged_by_the_gain_of_cutting_planes() -> None:
    names = ("Algorithm 1", "Algorithm 2", quadratic.STRUCT)
    few, many = (dict(zip(names, map(timed, taken), strict=True)) for taken in
                 [(1.0, 2.0, 1.0), (10.0, 20.0, 5.0)])  # fmt: skip
    over = [dict.fromkeys(names, 0.01)]
    excess = {(3, 1.0): over, (50, 1.0): over}
    loose = {(3, 1.0): [many], (50, 1.0): [few]}  # tell, but are not judged
    good = {(3, 1.0): [few], (50, 1.0): [many]}
    outcome = quadratic.judged_quadratic(loose, good, excess)
    assert outcome.verdict is Verdict.IN_SHAPE
    assert outcome.picture is not None
    assert "leaves the algorithms 1.0% to 1% above it" in outcome.why
    assert quadratic.judged_quadratic(good, loose, excess).verdict is Verdict.NOT


def test_the_slower_algorithm_is_held_against_cutting_planes() -> None:
    names = (*quadratic.ALGORITHMS, quadratic.STRUCT)
    draw = dict(zip(names, map(timed, (1.0, 4.0, 1.0)), strict=True))
    competitive, _ = quadratic._claims({(3, 1.0): [draw], (50, 1.0): [draw]})
    assert competitive.holds is False
    assert competitive.numbers == "L/K = 3: 1.00 and 4.00 against 1.00 s"


def test_algorithms_that_stay_far_from_the_optimum_are_not_tested() -> None:
    names = (*quadratic.ALGORITHMS, quadratic.STRUCT)
    near, far = (dict(zip(names, map(timed, taken), strict=True)) for taken in
                 [(1.0, 2.0, 30.0), (1.0, 60.0, 30.0)])  # fmt: skip

    def holds(*draws: dict[str, Timed]) -> list[bool | None]:
        cases = dict(zip([(3, 1.0), (50, 1.0)], ([draw] for draw in draws), strict=True))
        return [claim.holds for claim in quadratic._claims(cases)]

    assert holds(far, near) == [None, None]
    assert holds(near, far) == [True, True]  # more than 2, not 0.07
    slow = {**far, quadratic.STRUCT: timed(10.0)}
    assert holds(slow, near) == [False, None]  # more than 6 times
    lost = {**near, quadratic.STRUCT: timed(60.0)}
    assert holds(lost, near) == [None, None]


def test_criteria_are_tightened_until_objectives_are_equal() -> None:
    problem = quadratic.stated(IRIS, 30.0)
    for name, method in quadratic.methods(problem).items():
        loose = timing.timed(method, 3000)
        run = quadratic.equally_near(problem, name, loose, 3000)
        assert run.end.met, name
        assert problem.excess(run.end) <= quadratic.EQUAL
        assert (run.end.iterations > loose.end.iterations) == (
            problem.excess(loose.end) > quadratic.EQUAL
        )
    cut = quadratic.equally_near(problem, "Algorithm 1", timing.timed(method, 3000), 3)
    assert cut.end.met == (problem.excess(cut.end) <= quadratic.EQUAL)


def test_all_methods_solve_the_problem_without_offsets() -> None:
    problem = quadratic.stated(IRIS, 10.0)
    certificate = problem.best.certificate_
    assert problem.value(problem.best.coef_) == pytest.approx(certificate.primal, rel=1e-9)
    for name, method in quadratic.methods(problem, 1e-6).items():
        excess = problem.excess(timing.timed(method, 3000).end)
        assert -1e-4 <= excess <= 0.02, name


def test_a_course_comes_nearer_to_its_end() -> None:
    def halving(most: int) -> End:
        steps = min(most, 256)
        return End(np.array([1.0 - 2.0**-steps]), steps, most > 256)

    distances = [far for _, far in course(halving, timed(1.0)._replace(end=halving(1000)))]
    assert len(distances) == 7
    assert all(np.diff(distances) <= 0)


def test_losses_are_those_of_the_model() -> None:
    model = MulticlassSVC(penalty="l2", C=0.1, tol=1e-8).fit(X, y)
    value = 0.5 * np.square(model.coef_).sum() + 0.1 * losses(model.decision_function(X), y)
    assert value == pytest.approx(model.certificate_.primal, rel=1e-8)
