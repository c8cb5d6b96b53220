"""Figures 1 to 4 of Ito et al. (2017), which illustrate: drawn from runs, with what they show."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.datasets import Floats
from benchmarks.family_data import load_scaled
from benchmarks.papers.claims import Claim, illustrated
from benchmarks.papers.ito.agreement import OUR_CHECK
from benchmarks.papers.ito.boxes import box_hyperplane_multiplier
from benchmarks.papers.pictures import panels
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table
from proxmargin import History, NuSVC

__all__ = ["TABLES", "momentum", "multiplier_sum", "restarts_of"]

DATA = "artificial:1000,100"
NU = 0.5
K_1 = 2  # iterations before the first restart
MOST = 1500  # iterations
NEVER = 1e-14  # a gap that ends no run early
ENTRIES = 6  # of the vector of Figure 2
BOX = (0.0, 1.0)  # l and u there
TOTAL = 2.0  # r there
ROUNDING = 1e-12  # relative
LIPSCHITZ = (8.0, 2.0)  # L of the two steps of Figure 3: both above the curvature there
CURVATURES = np.array([0.2, 1.5])  # of its quadratic


def _history(solver: str) -> History:
    """A course of the nu-SVM by Algorithm 3 or 4."""
    data = load_scaled(DATA)
    history = History(every=1)
    model = NuSVC(
        nu=NU,
        solver=solver,
        solver_options={"patience": K_1, "max_stalled": float("inf")},
        tol=NEVER,
        max_iter=MOST,
        callbacks=[history],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it never meets its gap
        model.fit(data.design, data.labels)
    return history


def restarts_of(history: History) -> list[int]:
    """The iterations at which it restarted."""
    steps, counts = (np.array(history.column(name)) for name in ("n_iter", "restarts"))
    return [int(k) for k in steps[1:][np.diff(counts) > 0]]


# ---- Figures 1 and 4: restarts ------------------------------------------------------------------


def _figure_1(size: Size) -> Outcome:
    history = _history("fapg")
    restarts = restarts_of(history)
    spans = np.diff([0, *restarts])
    least = [K_1 * 2**i for i in range(spans.size)]
    rows = [
        [str(i + 1), str(k), str(span), str(one)]
        for i, (k, span, one) in enumerate(zip(restarts, spans, least, strict=True))
    ]
    claim = Claim(
        "between two restarts there are more than K_i iterations, K_i doubling",
        bool(np.all(spans > least)),
        f"{len(restarts)} restarts in {MOST} iterations",
    )
    body = table(["restart", "iteration", "since the last", "K_i"], rows)
    return illustrated(body, [claim], picture=_drawn_1(history, restarts))


def _drawn_1(history: History, restarts: Sequence[int]) -> Any:
    figure, (axis,) = panels(1)
    axis.plot(history.column("n_iter"), history.column("objective"), linewidth=0.8)
    for i, k in enumerate([0, *restarts]):
        axis.axvspan(k, k + K_1 * 2**i, alpha=0.2, label="" if i else "no restart allowed")
        axis.axvline(k, color="black", linewidth=0.5)
    axis.set(yscale="log", xscale="symlog", xlabel="iterations", ylabel="F")
    axis.legend(fontsize="small")
    return figure


def _figure_4(size: Size) -> Outcome:
    history = _history("fapg-guaranteed")
    values = np.array(history.column("objective"), dtype=float)
    # the row of a restart is the point that is returned to
    starts = [0, *restarts_of(history)]
    firsts = values[starts]
    ends = [*starts[1:], values.size]
    above = [
        float(values[a:b].max() - values[a]) for a, b in zip(starts, ends, strict=True) if b > a
    ]
    slack = ROUNDING * float(np.abs(values).max())
    rows = [[str(k), f"{value:.10g}"] for k, value in zip(starts, firsts, strict=True)]
    claims = [
        Claim(
            "F at the restarts does not increase",
            bool(np.all(np.diff(firsts) <= slack)),
            f"{len(starts) - 1} restarts",
        ),
        Claim(
            "it bounds F until the next one",
            max(above) <= slack,
            f"largest excess {max(above):.1e}",
        ),
    ]
    body = table(["restart at iteration", "F"], rows)
    return illustrated(body, claims, picture=_drawn_4(values, starts))


def _drawn_4(values: Floats, starts: Sequence[int]) -> Any:
    figure, (axis,) = panels(1)
    distance = values - values.min()
    steps = np.arange(values.size)
    axis.plot(steps, np.where(distance > 0, distance, np.nan), linewidth=0.8, label="F - least F")
    axis.step([*starts, values.size], [*distance[starts], distance[starts[-1]]], where="post")
    axis.set(yscale="log", xlabel="iterations")
    axis.legend(fontsize="small")
    return figure


# ---- Figure 2: the sum of a projection ----------------------------------------------------------


def multiplier_sum(point: Floats, theta: Floats) -> Floats:
    """h: the sum of ``clip(a_i - theta, l, u)`` for each theta."""
    return np.clip(point[None, :] - theta[:, None], *BOX).sum(axis=1)


def _figure_2(size: Size) -> Outcome:
    point = np.random.default_rng(0).uniform(-1.0, 3.0, ENTRIES)
    breaks = np.sort(np.concatenate([point - BOX[1], point - BOX[0]]))
    theta = np.linspace(breaks[0] - 0.5, breaks[-1] + 0.5, 1001)
    sums = multiplier_sum(point, theta)
    corners = multiplier_sum(point, breaks)
    straight = np.interp(theta, breaks, corners)
    root = box_hyperplane_multiplier(point, 1.0, TOTAL, *BOX)[1]
    left = float(abs(multiplier_sum(point, np.array([root]))[0] - TOTAL))
    claims = [
        Claim(
            "h does not increase", bool(np.all(np.diff(sums) <= ROUNDING)), f"{theta.size} points"
        ),
        Claim(
            "it is piecewise linear, with breakpoints a_i - u and a_i - l",
            bool(np.allclose(sums, straight, rtol=0, atol=ROUNDING * ENTRIES)),
            f"{breaks.size} breakpoints",
        ),
        Claim(
            f"its root is the multiplier found here {OUR_CHECK}",
            left <= ROUNDING,
            f"h - r = {left:.1e}",
        ),
    ]
    body = f"{ENTRIES} entries, l = {BOX[0]:g}, u = {BOX[1]:g}, r = {TOTAL:g}: theta = {root:.6g}"
    return illustrated(body, claims, picture=_drawn_2(theta, sums, breaks, corners, root))


def _drawn_2(theta: Floats, sums: Floats, breaks: Floats, corners: Floats, root: float) -> Any:
    figure, (axis,) = panels(1)
    axis.plot(theta, sums, label="h")
    axis.plot(breaks, corners, "o", markersize=3, label="breakpoints")
    axis.axhline(TOTAL, color="black", linewidth=0.5)
    axis.axvline(root, color="black", linestyle="--", linewidth=0.5, label="root of h = r")
    axis.set(xlabel="theta")
    axis.legend(fontsize="small")
    return figure


# ---- Figure 3: L and momentum -------------------------------------------------------------------


def momentum(lipschitz: float) -> tuple[Floats, Floats, Floats]:
    """Two steps on a quadratic: the point before, after, and the extrapolated one."""
    before = np.array([3.0, 1.0])
    after = before - CURVATURES * before / lipschitz
    t = 0.5 * (1.0 + np.sqrt(5.0))
    later = after - CURVATURES * after / lipschitz
    weight = (t - 1.0) / (0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2)))
    return after, later, later + weight * (later - after)


def _figure_3(size: Size) -> Outcome:
    moves = {lipschitz: momentum(lipschitz) for lipschitz in LIPSCHITZ}
    steps = {k: float(np.linalg.norm(b - a)) for k, (a, b, _) in moves.items()}
    pushes = {k: float(np.linalg.norm(c - b)) for k, (_, b, c) in moves.items()}
    large, small = LIPSCHITZ
    claim = Claim(
        "a smaller L gives a larger step, and so more momentum",
        steps[small] > steps[large] and pushes[small] > pushes[large],
        f"momentum {pushes[large]:.2g} with L = {large:g}, {pushes[small]:.2g} with {small:g}",
    )
    rows = [[f"{k:g}", f"{steps[k]:.3g}", f"{pushes[k]:.3g}"] for k in LIPSCHITZ]
    body = table(["L", "step", "momentum"], rows)
    return illustrated(body, [claim], picture=_drawn_3(moves))


def _drawn_3(moves: dict[float, tuple[Floats, Floats, Floats]]) -> Any:
    figure, axes = panels(2)
    first, second = np.meshgrid(np.linspace(-1, 4, 60), np.linspace(-1.2, 1.2, 60))
    heights = 0.5 * (CURVATURES[0] * first**2 + CURVATURES[1] * second**2)
    for axis, (lipschitz, (before, after, pushed)) in zip(axes, moves.items(), strict=True):
        axis.contour(first, second, heights, levels=12, colors="0.8")
        axis.plot(*np.array([before, after]).T, marker="o", color="black", label="step")
        axis.plot(*np.array([after, pushed]).T, "--", color="black", label="momentum")
        axis.set_title(f"L = {lipschitz:g}")
        axis.legend(fontsize="small")
    return figure


RESTARTS = f"""An illustration. Here: the nu-SVM with nu = {NU:g} on {DATA}, K_1 = {K_1},
{MOST} iterations, `History(every=1)`."""
TABLES = {
    "IF1": PaperTable(
        "Figure 1 of Ito et al.: the strategy 'mt'",
        f"{RESTARTS} Algorithm 4. The caption prints the sign of a restart's condition wrong.",
        (0.1, 0.1),
        _figure_1,
    ),
    "IF2": PaperTable(
        "Figure 2 of Ito et al.: h(theta)",
        f"An illustration. Here: {ENTRIES} random entries.",
        (0.02, 0.02),
        _figure_2,
    ),
    "IF3": PaperTable(
        "Figure 3 of Ito et al.: L_k and momentum",
        "An illustration. Here: the second step of the method on a quadratic of two variables.",
        (0.02, 0.02),
        _figure_3,
    ),
    "IF4": PaperTable(
        "Figure 4 of Ito et al.: F between restarts",
        f"{RESTARTS} Algorithm 3, for which Lemma 5 holds.",
        (0.1, 0.1),
        _figure_4,
    ),
}
