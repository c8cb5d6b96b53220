"""Theorem 1, Lemma 1 and Figure 1 of Xu et al. (2015), held against iterates."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from benchmarks.datasets import DataSet, Floats, synthetic
from benchmarks.multiclass_data import four_classes
from benchmarks.papers.claims import Claim, illustrated
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.papers.xu.pictures import Course, courses, majorant
from benchmarks.papers.xu.settings import huberized
from benchmarks.report import table

__all__ = ["TABLES", "proved_rate"]

L1 = 0.08  # lambda1, that of Table 1
EXACT = 1e-13  # relative gap of u*
NEAREST = 1e-7  # relative distance to u* down to which rates are measured
ROUNDING = 1e-12  # relative to F, of the inequalities
LINEAR = 0.9  # squared correlation of log distance and k
DRAWN = 3  # panels of the picture, the last data


class Step(NamedTuple):
    """An iterate (p + 1, outputs), the intercept last, with L_k and F."""

    u: Floats
    lipschitz: float
    objective: float


class Recorder:
    """A callback that keeps every iterate."""

    every = 1

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, report: Any) -> None:
        state = report.state
        self.steps.append(Step(state.u.copy(), state.lipschitz, state.objective))


def _iterates(data: Any, l1: float, l2: float, most: int, **options: Any) -> list[Step]:
    recorder = Recorder()
    many = np.unique(data.labels).size > 2
    given = {"solver": "m-pgh" if many else "b-pgh", "solver_options": options}
    stop = {"tol": EXACT, "max_iter": most}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that ends by the number of iterations
        huberized(l1, l2, callbacks=(recorder,), **given, **stop).fit(data.design, data.labels)
    return recorder.steps


def _optimum(data: Any, l1: float, l2: float) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a gap at rounding level
        model = huberized(l1, l2, tol=EXACT).fit(data.design, data.labels)
    return np.vstack([model.coef_.T, model.intercept_])


# ---- Theorem 1 ----------------------------------------------------------------------------------


def proved_rate(lipschitz: float, mu: float) -> float:
    """1 - tau of the proof, at the best value of its free constant; log1p keeps its digits."""
    reach = mu / (np.sqrt(lipschitz + mu) + np.sqrt(lipschitz))

    def c3(share: float) -> float:
        free = 0.5 * share * reach
        left = reach - 2.0 * free
        c1 = 2.0 * lipschitz / (free * np.sqrt(mu) * left)
        c2 = (np.sqrt(lipschitz) + 2.0 * free) / left
        return float(c1 * 2.0 * lipschitz / np.sqrt(mu) + c2)

    best = minimize_scalar(c3, bounds=(1e-6, 1.0 - 1e-6), method="bounded")
    return float(-np.expm1(-0.5 * np.log1p(1.0 / best.fun)))


class Rates(NamedTuple):
    """What a run says of Theorem 1."""

    iterations: int
    measured: float  # 1 - tau of a line through log distances
    straightness: float  # squared correlation
    proved: float  # 1 - tau
    lipschitz: float
    below: bool  # (19) with the constants of the proof
    decreasing: bool  # F
    descends: bool  # (27)
    distances: Floats  # over the first


def _rates(data: Any, l2: float, most: int) -> Rates:
    best = _optimum(data, L1, l2)
    steps = _iterates(data, L1, l2, most)
    start = Step(np.zeros_like(best), steps[0].lipschitz, np.inf)
    points = [start, *steps]
    distance = np.array([np.linalg.norm(step.u - best) for step in points])
    counted = np.flatnonzero(distance > NEAREST * distance[0])
    kept = distance[: counted[-1] + 1]
    index = np.arange(kept.size)
    slope = np.polyfit(index, np.log(kept), 1)[0]
    straightness = float(np.corrcoef(index, np.log(kept))[0, 1] ** 2)
    lipschitz = max(step.lipschitz for step in steps)
    proved = proved_rate(lipschitz, l2) if l2 > 0.0 else np.nan
    moved = np.array([np.linalg.norm(b.u - a.u) for a, b in pairwise(points)])
    total = float(moved.sum())  # S_0
    bound = total * (1.0 - proved) ** (np.arange(distance.size) - 1.0)  # C = S_0 / tau, see WHY
    drops = -np.diff([step.objective for step in steps])
    slack = ROUNDING * steps[0].objective
    return Rates(
        iterations=kept.size - 1,
        measured=float(-np.expm1(slope)),
        straightness=straightness,
        proved=proved,
        lipschitz=lipschitz,
        below=bool(np.all(distance <= bound + NEAREST * distance[0])),
        decreasing=bool(np.all(drops >= -slack)),
        descends=bool(np.all(_slack_of_descent(steps, moved, drops, l2) >= -slack)),
        distances=kept / distance[0],
    )


def _slack_of_descent(steps: list[Step], moved: Floats, drops: Floats, mu: float) -> Floats:
    """Left less right side of (27), from the second iterate on."""
    constants = np.array([step.lipschitz for step in steps])
    now, before = np.square(moved[1:]), np.square(moved[:-1])
    right = 0.5 * (constants[1:] + mu) * now - 0.5 * constants[:-1] * before
    return np.asarray(drops - right)


class _Labelled(NamedTuple):
    """Samples with classes."""

    name: str
    design: Floats
    labels: Any


def _cases(size: Size) -> list[Any]:
    rng = np.random.default_rng(0)
    few, many = ((200, 10, 3), (500, 50, 5)), ((2000, 100, 10), (200, 2000, 100))
    sizes = few if size is Size.SMALL else (*few, *many)
    binary: list[Any] = [synthetic(*each, rho, rng) for each in sizes for rho in (0.0, 0.8)]
    split = four_classes(100, 0.0, rng, 60, 20)
    return [*binary, _Labelled("four classes (100, 60)", split.X, split.y)]


def _theorem(size: Size) -> Outcome:
    rows, found = [], []
    panels: dict[str, dict[str, Course]] = {}
    for data in _cases(size):
        for l2 in (1.0, 0.1, 0.01):
            rates = _rates(data, l2, MOST[size])
            found.append(rates)
            course = Course(rates.distances, rates.proved)
            panels.setdefault(data.name, {})[f"lambda2 = {l2:g}"] = course
            print(f"{data.name}, {l2:g}: {rates.measured:.3g}", flush=True)
            condition = rates.lipschitz / l2
            rows.append(
                [
                    *(data.name, f"{l2:g}", f"{condition:.3g}", str(rates.iterations)),
                    *(f"{rates.measured:.3g}", f"{1 / np.sqrt(condition):.3g}"),
                    *(f"{1 / (1 + condition):.3g}", f"{rates.proved:.2g}"),
                    f"{rates.straightness:.3f}",
                ]
            )
    slowest = min(found, key=lambda one: one.measured / one.proved)
    claims = [
        Claim("F decreases", all(one.decreasing for one in found), f"{len(found)} runs"),
        Claim("(27) holds at every step", all(one.descends for one in found), "up to rounding"),
        Claim(
            f"the log distance to u* falls along a line (squared correlation above {LINEAR:g})",
            all(one.straightness > LINEAR for one in found),
            f"at least {min(one.straightness for one in found):.3f}",
        ),
    ]
    drawn = {name: panels[name] for name in list(panels)[-DRAWN:]}
    below = sum(one.below and one.measured >= one.proved for one in found)
    loose = f"""(19) holds with these constants in {below} of {len(found)} runs, which says little:
the measured 1 - tau is at least {slowest.measured / slowest.proved:.2g} times the proved one."""
    body = f"{table(HEAD_RATES, rows)}\n\n{WHY_RATES} {loose}"
    return illustrated(body, claims, picture=courses(drawn))


MOST = {Size.SMALL: 1500, Size.FULL: 20_000}  # iterations
HEAD_RATES = (
    *("data", "lambda2 = lambda3", "L/mu", f"iterations to {NEAREST:g}", "1 - tau, measured"),
    *("sqrt(mu/L)", "mu/(L + mu)", "1 - tau, proved", "squared correlation"),
)
WHY_RATES = """L is the largest L_k used, mu = lambda2. The proof's 1 - tau is of the order
(mu/L)^3 / 256: it shows that the rate is linear, not what it is. For comparison sqrt(mu/L), the
rate of accelerated methods that know mu, and mu/(L + mu), that of plain steps. The proof gives
S_m <= C_3/(1 + C_3) S_{m-2}, hence C = S_0 for even m; for odd m it needs C = S_0/tau, which is
used here."""


# ---- Lemma 1 ------------------------------------------------------------------------------------


class Support(NamedTuple):
    """What a run says of Lemma 1."""

    inside: int  # features in E
    outside: int  # in I
    margin: float  # least (lambda1 - |dQ_i|) / lambda1 over I
    failing: int  # iterations in which some sign or zero is not that of the solution
    settled: int  # from this iteration on none fails
    bound: float
    contained: bool  # supp(w*) in E
    size: int  # of supp(w*)
    stage: int  # iterations of stage one of B-PGH-2
    kept: int  # size of its support
    found: bool  # whether that is supp(w*)
    contains: bool  # whether it contains supp(w*)
    iterations: int


def _support(data: DataSet, l2: float, most: int) -> Support:
    best = _optimum(data, L1, l2)
    steps = _iterates(data, L1, l2, most, backtracking=False, extrapolate=False)
    lipschitz = steps[-1].lipschitz
    nu = L1 / (lipschitz + l2)
    at_best = best[:-1, 0] - _forward(data, best, lipschitz, l2)  # dQ / (L_f + lambda2)
    zero = best[:-1, 0] == 0.0
    slack = nu - np.abs(at_best)
    idle = slack > ACTIVE * nu  # I
    reference = _forward(data, best, lipschitz, l2)
    fails = []
    for step in [Step(np.zeros_like(best), lipschitz, np.inf), *steps]:
        here = _forward(data, step.u, lipschitz, l2)
        wrong_zero = np.any(np.abs(here[idle]) > nu)
        wrong_sign = np.any(np.sign(here[~idle]) != np.sign(reference[~idle]))
        fails.append(bool(wrong_zero or wrong_sign))
    last = int(np.flatnonzero(fails)[-1]) + 1 if any(fails) else 0
    omega = min(nu, float(slack[idle].min(initial=nu)))
    stage, kept = _stage_one(data, l2)
    return Support(
        inside=int(np.count_nonzero(~idle)),
        outside=int(np.count_nonzero(idle)),
        margin=omega / nu,
        failing=int(np.sum(fails)),
        settled=last,
        bound=float(np.vdot(best, best)) / omega**2,
        contained=bool(np.all(zero[idle])),
        size=int(np.count_nonzero(~zero)),
        stage=stage,
        kept=int(np.count_nonzero(kept)),
        found=bool(np.array_equal(kept, ~zero)),
        contains=bool(np.all(kept[~zero])),
        iterations=len(steps),
    )


def _forward(data: DataSet, u: Floats, lipschitz: float, l2: float) -> Floats:
    """h(w) of the lemma, (p,): delta is 1."""
    w, b = u[:-1, 0], u[-1, 0]
    margins = data.labels * (data.design @ w + b)
    slope = data.labels * np.clip(margins - 1.0, -1.0, 0.0) / len(data.labels)
    return np.asarray(w - (data.design.T @ slope + l2 * w) / (lipschitz + l2))


def _stage_one(data: DataSet, l2: float) -> tuple[int, NDArray[np.bool_]]:
    """Iterations until rule (20) holds at 1e-3, and which features have coefficients then."""
    recorder = Recorder()
    rule = {"stopping": "relative-change", "tol": FIRST_TOL}
    plain = {"backtracking": False, "extrapolate": False}
    huberized(L1, l2, solver="b-pgh", solver_options=plain, callbacks=(recorder,), **rule).fit(
        data.design, data.labels
    )
    return len(recorder.steps), recorder.steps[-1].u[:-1, 0] != 0


FIRST_TOL = 1e-3  # of stage one, as printed
FEW = 100  # iterations, "several"
ACTIVE = 1e-6  # relative slack below which |dQ_i| counts as lambda1
SUPPORT_SIZES = {
    Size.SMALL: ((500, 50, 5), (50, 300, 30)),
    Size.FULL: ((500, 50, 5), (50, 300, 30), (2000, 100, 10), (200, 2000, 100)),
}


def _lemma(size: Size) -> Outcome:
    rows, found = [], []
    for each in SUPPORT_SIZES[size]:
        for rho in (0.0, 0.8):
            data = synthetic(*each, rho, np.random.default_rng(0))
            for l2 in (1.0, 0.1):
                one = _support(data, l2, PLAIN_MOST)
                found.append(one)
                print(f"{data.name}, {l2:g}: {one}", flush=True)
                rows.append(
                    [
                        *(data.name, f"{l2:g}", f"{one.inside}, {one.outside}"),
                        *(f"{one.margin:.2g}", str(one.failing), f"{one.bound:.2g}"),
                        *(str(one.settled), str(one.stage), f"{one.size}, {one.kept}"),
                        *("yes" if one.contains else "no", str(one.iterations)),
                    ]
                )
    claims = [
        Claim("supp(w*) is in E", all(one.contained for one in found), f"{len(found)} problems"),
        Claim(
            "zeros in I and signs in E are final after finitely many iterations",
            all(one.settled < one.iterations for one in found),
            f"after {max(one.settled for one in found)} at most",
        ),
        Claim(
            "supp(w*) is detected in several iterations: the set of stage one contains it,"
            f" and stage one takes at most {FEW} (ours)",
            all(one.contains and one.stage <= FEW for one in found),
            f"contained in {sum(one.contains for one in found)} of {len(found)}, equal to it in"
            f" {sum(one.found for one in found)}; after at most"
            f" {max(one.stage for one in found)} iterations; sizes of both "
            + "; ".join(f"{one.size}, {one.kept}" for one in found),
        ),
    ]
    share = max(one.failing / one.bound for one in found)
    loose = f"At most {share:.2g} of the iterations that the bound allows fail: it is loose."
    return illustrated(f"{table(HEAD_SUPPORT, rows)}\n\n{WHY_SUPPORT} {loose}", claims)


PLAIN_MOST = 20_000  # iterations
HEAD_SUPPORT = (
    *("data", "lambda2 = lambda3", "sizes of E, I", "omega/nu", "iterations that fail", "bound"),
    *("final from", "stage one ends at", "sizes of supp(w*), then"),
    *("contains supp(w*)", "iterations in all"),
)
WHY_SUPPORT = """The lemma claims that zeros in I and signs in E are final but for finitely many
iterations, without a number of them. That supp(w*) "could be detected in several iterations,
namely, T_1 is usually small" is an observation; it asks for a set that contains supp(w*), since the
second stage sets all else to zero. With fewer samples than features that set still has features of
I. h with step 1/(L_f + lambda2) does not expand distances, and an iteration that
fails shortens |u^k - u*|^2 by omega^2, omega = min(lambda1, min over I of lambda1 - |dQ_i|) /
(L_f + lambda2): at most |u^0 - u*|^2 / omega^2 iterations fail. Where stage one, at the printed
tolerance of 1e-3, ends before the support is final, B-PGH-2 as printed may end at another point;
our two-stage method checks all features afterwards."""


# ---- Figure 1 -----------------------------------------------------------------------------------


def _figure(size: Size) -> Outcome:
    """xi and Q on a line: f(u) = mean huberized hinge of u x_i, g(u) = 0.1 |u| + u^2 / 20."""
    x = np.random.default_rng(0).standard_normal(50) + 1.0
    grid = np.linspace(-2.0, 4.0, 601)
    lipschitz = float(np.mean(x**2))
    before, now, omega = -1.0, -0.4, 0.8
    z = now + omega * (now - before)
    quadratic = 0.5 * lipschitz * (grid - z) ** 2
    majorant_of_z = _loss(x, z) + _slope(x, z) * (grid - z) + quadratic + _net(grid)
    gaps = majorant_of_z - (_loss(x, grid) + _net(grid))
    forward = z - _slope(x, z) / lipschitz
    new = np.sign(forward) * max(abs(forward) - 0.1 / lipschitz, 0.0) / (1.0 + 0.1 / lipschitz)
    values = [float(_loss(x, np.array(point)) + _net(np.array(point))) for point in (now, new)]
    nearest = grid[int(np.argmin(majorant_of_z))]
    claims = [
        Claim(
            "Q lies above xi", bool(gaps.min() >= -ROUNDING), f"least difference {gaps.min():.1e}"
        ),
        Claim(
            "and meets it at z",
            bool(np.interp(z, grid, gaps) < 1e-3),
            f"{np.interp(z, grid, gaps):.1e} at z = {z:g}",
        ),
        Claim(
            "the new iterate is the minimiser of Q, and lowers xi",
            bool(abs(nearest - new) <= grid[1] - grid[0] and values[1] < values[0]),
            f"u* = {new:.3f}, xi {values[0]:.3f} to {values[1]:.3f}",
        ),
    ]
    curves = {"xi": _loss(x, grid) + _net(grid), "Q": majorant_of_z}
    marks = {
        "z": (z, float(_loss(x, np.array(z)) + _net(z))),
        "u*": (new, float(np.interp(new, grid, majorant_of_z))),
    }
    picture = majorant(grid, curves, marks)
    return illustrated("The figure is a sketch without numbers.", claims, picture=picture)


def _loss(x: Floats, u: Any) -> Any:
    t = np.multiply.outer(np.asarray(u), x)
    short = np.clip(1.0 - t, 0.0, None)
    return np.where(short <= 1.0, 0.5 * short**2, short - 0.5).mean(axis=-1)


def _slope(x: Floats, u: float) -> float:
    return float(np.mean(x * np.clip(u * x - 1.0, -1.0, 0.0)))


def _net(u: Any) -> Any:
    return 0.1 * np.abs(u) + 0.05 * u**2


TABLES = {
    "XF1": PaperTable(
        "Figure 1 of Xu et al.: the majorant of a step",
        "A sketch there; here one dimension, 50 samples, L the mean square.",
        (0.1, 0.1),
        _figure,
    ),
    "XT1": PaperTable(
        "Theorem 1 of Xu et al.: linear convergence",
        f"""B-PGH and M-PGH as printed on data of 3.1.1 and 3.2.1, lambda1 = {L1:g}, lambda3 =
lambda2; u* to a certified relative gap of {EXACT:g}; the rate is the slope of log |u^k - u*| down
to {NEAREST:g} of the first distance, at most {MOST[Size.SMALL]} iterations ({MOST[Size.FULL]} at
full size).""",
        (0.2, 3.0),
        _theorem,
    ),
    "XL1": PaperTable(
        "Lemma 1 of Xu et al.: finite identification of the support",
        f"""Plain steps with L_k = L_f and omega_k = 0 from zero on data of 3.1.1, lambda1 = {L1:g},
lambda3 = lambda2, delta = 1. Stage one of B-PGH-2 ends by rule (20) at {FIRST_TOL:g}, as printed.
For information the bound of the proof that the paper refers to ([17], Lemma 5.2), worked out for
(2).""",
        (0.4, 5.0),
        _lemma,
    ),
}
