"""The table of single fits: one certificate for all classes, ratios, and their explanations."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.bandwidth import Pass
from benchmarks.bounds import bound_in_words
from benchmarks.datasets import load
from benchmarks.family import Case, OneVsRest, Regularized, with_penalised_intercept
from benchmarks.family_measure import Referee, Task
from benchmarks.measure import Climb, Limits, Trial
from benchmarks.objective import Hinge, Logistic
from benchmarks.peers import Fitted, absent
from benchmarks.peers.family import OwnFamilyPeer
from benchmarks.shares import CERTIFICATES, CHECKS, KERNEL, STEPS, Shares, shares
from sklearn.svm import SVC

import proxmargin
from benchmarks import cells, paired

MODEL = OneVsRest(Regularized(Hinge(), 0.3))
DATA = "synthetic:60,6,3,0.5"
LINE = cells.RidgeLine(Task(DATA, Regularized(Logistic(), 1.0)))


def three_classes() -> Case:
    """The first sample is not of the first class, which is the order that LIBLINEAR keeps."""
    rng = np.random.default_rng(3)
    labels = (np.arange(45) + 2.0) % 3
    design = rng.standard_normal((45, 4)) + np.eye(3, 4)[labels.astype(int)]
    return Case(design, labels, MODEL)


def by_libsvm(case: Case) -> tuple[Fitted, np.ndarray]:
    rows, duals = [], []
    for one in np.unique(case.labels):
        signs = np.where(case.labels == one, 1.0, -1.0)
        svm = SVC(C=MODEL.each.C, kernel="linear", tol=1e-9).fit(case.design, signs)
        rows.append(np.append(svm.coef_.ravel(), svm.intercept_))
        dual = np.zeros(signs.size)
        dual[svm.support_] = np.abs(svm.dual_coef_.ravel()) / MODEL.each.C
        duals.append(dual)
    return Fitted(np.array(rows), 0.0), np.array(duals)


def primal(case: Case, rows: np.ndarray, k: int) -> float:
    signs = np.where(case.labels == np.unique(case.labels)[k], 1.0, -1.0)
    margins = signs * (case.design @ rows[k, :-1] + rows[k, -1])
    C = MODEL.each.C
    return float(np.maximum(1.0 - margins, 0.0).sum() + rows[k, :-1] @ rows[k, :-1] / (2.0 * C))


def test_the_gap_of_all_classes_is_small_at_libsvms_optimum_and_bounds_the_worst_class() -> None:
    case = three_classes()
    solved, duals = by_libsvm(case)
    assert MODEL.relative_gap(case, solved, [duals]) < 1e-7
    moved = solved.coef.copy()
    moved[1, 0] += 0.3
    exact = primal(case, solved.coef, 1)
    loss = (primal(case, moved, 1) - exact) / primal(case, moved, 1)
    found = MODEL.relative_gap(case, Fitted(moved, 0.0), [duals])
    assert loss > 1e-3
    assert found >= 0.5 * loss  # the certificate may take the best intercept instead


def test_ours_has_the_coefficients_and_dual_points_of_every_class() -> None:
    case = three_classes()
    ours = OwnFamilyPeer("proxmargin", "auto", 10.0).fit(case, 1e-9)
    assert ours.dual is not None
    assert MODEL.relative_gap(case, ours, [ours.dual]) < 1e-6
    np.testing.assert_allclose(ours.coef[:, :-1], by_libsvm(case)[0].coef[:, :-1], atol=1e-4)


@pytest.mark.skipif(bool(absent(cells.DUAL)), reason="liblinear is not installed")
def test_liblinear_has_the_rows_of_the_classes_in_their_order() -> None:
    plain = three_classes()
    (wide,) = with_penalised_intercept(MODEL)
    case = Case(plain.design, plain.labels, wide)
    assert cells.DUAL.solves(case)
    assert not cells.DUAL.solves(plain)
    found = cells.DUAL.fit(Case(cells.DUAL.prepared(plain.design), plain.labels, wide), 1e-9)
    reference = OwnFamilyPeer("reference", "auto", 10.0).fit(case, 1e-10).dual
    assert reference is not None
    assert wide.relative_gap(case, found, [reference]) < 1e-6


def climb(**times: float) -> Climb:
    """Seconds to 1e-3 and 1e-6."""
    fitted = Fitted(np.ones(2), 0.0, passes=17.0, iterations=5, note="newton")
    return Climb(
        {goal: Trial(1e-3, times[key], 1.0, 1e-7, 2, fitted) for key, goal in GOALS.items()}, 1e-7
    )


GOALS = dict(zip(("loose", "tight"), cells.GOALS, strict=True))
ROW = {
    cells.OURS: climb(loose=0.2, tight=0.3),
    "lbfgs": climb(loose=0.4, tight=0.2),
    cells.DUAL.name: climb(loose=0.1, tight=0.6),
}


def test_a_ratio_is_to_the_same_model_and_apart_from_that_with_a_penalised_intercept() -> None:
    wide = {cells.WIDE: climb(loose=0.05, tight=0.9)}
    found = {one.column: (one.other, one.value) for one in cells.ratios(ROW | wide, 1e-3)}
    assert found == {
        "ratio": ("lbfgs", 0.5),
        "ratio †": (cells.DUAL.name, 0.5),
        "free / †": (cells.DUAL.name, 2.0),
    }
    assert [one.column for one in cells.ratios(ROW, 1e-3)] == ["ratio", "free / †"]
    assert cells.ratios({cells.OURS: ROW[cells.OURS]}, 1e-3) == []
    assert cells.ratios({**ROW, cells.OURS: Climb({}, 1.0, "more than 2 s")}, 1e-3) == []


def test_each_slow_row_has_a_sentence_with_what_was_counted() -> None:
    measured = cells.Measured(
        cells.PARTS["ridge"], {LINE: ROW}, {(LINE, 1e-6, cells.OURS): Shares(0.25, 0.125)}
    )
    text = cells.body([measured], Limits(2.0, 6.0, clock="cpu"))
    assert (
        f"{DATA}, logistic, C 1, gap 0.001, proxmargin: 2.00 times {cells.DUAL.name} †; 5 it"
        in text
    )
    assert "gap 1e-06, proxmargin: 1.50 times lbfgs; 5 iterations and 17 passes of newton" in text
    assert "25% of a profiled fit are checks of the input, 12% certificates." in text
    row = {**ROW, cells.OURS: climb(loose=0.01, tight=0.01)}
    fast = cells.Measured(cells.PARTS["ridge"], {LINE: row}, {})
    assert "Where the ratio" not in cells.body([fast], Limits(2.0, 6.0, clock="cpu"))


@pytest.mark.parametrize(
    ("single", "profile", "bound"),
    [
        (0.02, Shares(0.1, 0.1), "Bound: the memory, as it is read too often."),
        (0.001, Shares(0.3, 0.1), "Bound: checks, as the ratio is 0.90 without checks"),
        (0.001, Shares(0.1, 0.3), "Bound: certificates, as the ratio is 0.90"),
        (0.001, Shares(0.1, 0.1), "Bound: the work of the solver, 17.6 times what its passes"),
    ],
)
def test_the_bound_is_the_first_that_explains_the_difference(
    single: float, profile: Shares, bound: str
) -> None:
    ours = climb(loose=0.3, tight=0.3).reached[1e-6]  # 17 passes
    text = bound_in_words(ours, 0.2, Pass(single, 10**6), profile)
    assert bound in text
    assert f"the passes take {17 * single:.3g} s at least, {85 * single:.2f} of the 0.2 s" in text
    rest = 1.0 - profile.checks - profile.certificates
    assert f"what is around it are {rest:.0%} of the profile." in text


def test_without_profile_and_pass_no_bound_is_told() -> None:
    ours = climb(loose=0.3, tight=0.3).reached[1e-6]
    assert bound_in_words(ours, 0.2, None, None) == ""
    assert "Bound" not in bound_in_words(ours, 0.2, Pass(0.001, 10**6), None)
    assert "Bound: the memory" in bound_in_words(ours, 0.2, Pass(0.1, 10**6), None)


def test_each_profiled_line_tells_its_bound() -> None:
    measured = cells.Measured(
        cells.PARTS["ridge"],
        {LINE: ROW},
        {(LINE, 1e-6, cells.OURS): Shares(0.25, 0.125)},
        {DATA: Pass(0.1, 10**6)},
    )
    text = cells.body([measured], Limits(2.0, 6.0, clock="cpu"))
    slow = [line for line in text.splitlines() if line.startswith(f"- {DATA}, logistic")]
    assert slow
    assert all("Bound: the memory" in line for line in slow)


def test_the_folders_that_time_is_shared_among_exist() -> None:
    library = Path(proxmargin.__file__).parent
    named = (*CHECKS, *CERTIFICATES, *KERNEL, *STEPS)
    assert [each for each in named if not (library / each).exists()] == []


def test_shares_of_a_fit_are_parts_of_its_time() -> None:
    case = three_classes()
    found = shares(lambda: OwnFamilyPeer("proxmargin", "auto", 10.0).fit(case, 1e-6))
    assert 0.0 < found.checks < 1.0
    assert 0.0 < found.certificates < 1.0
    assert found.checks + found.certificates < 1.0
    assert shares(lambda: sum(range(10))) == Shares(0.0, 0.0)


def test_sparse_data_are_drawn_with_their_density_and_signs_that_the_features_explain() -> None:
    data = load("sparse:400,30,0.1")
    assert data.design.nnz == pytest.approx(0.1 * 400 * 30, abs=1.0)
    assert set(data.labels) == {-1.0, 1.0}
    scores = data.design.toarray()[:, :3]
    weights = np.linalg.lstsq(scores, data.labels, rcond=None)[0]
    assert np.corrcoef(scores @ weights, data.labels)[0, 1] > 0.2
    with pytest.raises(ValueError, match=r"sparse:n,p,density"):
        load("sparse:400,30")


@pytest.mark.slow
def test_a_part_is_measured_in_processes_and_explained() -> None:
    part = cells.Part("tiny", (LINE,), cells._family(cells.LBFGS))
    limits = Limits(5.0, 15.0, repeating=0.01, clock="cpu")
    measured = cells.Measured(part, {}, {})
    with closing(Referee(10.0, clarabel_size=0)) as referee:
        assert list(measured.measuring(limits, referee, explain=True)) == [LINE]
    reached = {name: set(one.reached) for name, one in measured.rows[LINE].items()}
    assert reached[cells.OURS] == reached["lbfgs"] == set(cells.GOALS)
    slow = {
        goal
        for goal in cells.GOALS
        if any(one.value > cells.SLOWER for one in cells.ratios(measured.rows[LINE], goal))
    }
    assert {goal for _, goal, _ in measured.profiles} == slow
    assert DATA in cells.body([measured], limits)


def test_the_rival_of_a_pair_is_the_fastest_that_certifies_or_else_comes_closest() -> None:
    fast, slow = paired.Result(0.1, 1e-2), paired.Result(0.4, 1e-7)
    row = paired.Paired("SVC", "toy", 1e-6, 1.0, paired.Result(0.2, 1e-7), {})
    both = replace(row, others={"fast": fast, "slow": slow})
    assert (both.rival, both.cells()[-2]) == ("slow", "0.50")
    alone = replace(row, others={"fast": fast})
    assert alone.cells()[4:6] == ["fast", "0.100 * 1.0e-02"]
    assert row.cells()[4:] == ["-", "", "", "1 s"]
