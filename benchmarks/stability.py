"""`python -m benchmarks stability`: features found and mistaken, seconds, frequencies of glmnet."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.datasets import SEED, Floats, _stored, load, standardized
from benchmarks.peers.remote import R, RemoteDesign
from benchmarks.report import seconds, table, write_section
from proxmargin import HuberizedSVC, SparseLogisticRegression, StabilitySelection
from proxmargin.models.selection.stability.bounds import (
    ASSUMPTIONS,
    false_selections,
    least_threshold,
)
from proxmargin.models.selection.stability.half_samples import half_of

PAIRS = 50
STRENGTHS = 30
PLANTED = "100,500,10"  # n, p, s of the data of Xu et al. 3.1.1
CORRELATIONS = (0.0, 0.8)  # rho there
LEVEL = 0.8  # correlation of clusters
CHOSEN = 20  # q: features of a half-sample
MISTAKES = 1.0  # pfer
EXACT = 1e-12  # thresh of glmnet for frequencies that are to agree
EXACT_GAP = 1e-10  # relative gap of ours for these
USUAL = 1e-7  # its default
LASSO = SparseLogisticRegression(l1_ratio=1.0, multi_class="ovr", standardize=True)
HUBERIZED = HuberizedSVC(l1_ratio=1.0, standardize=True)
DATA = ("colon", "leukemia", "srbct")


class Measured(NamedTuple):
    """A fitted selector and its seconds of CPU time."""

    model: StabilitySelection
    seconds: float


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=50, help="draws of the planted features")
    parser.add_argument("--data", nargs="*", default=DATA, choices=DATA)
    parser.add_argument("--peers", nargs="*", default=DATA[:2], choices=DATA[:2])
    parser.add_argument("--name", default="stability", help="the section to write")


def main(arguments: argparse.Namespace) -> int:
    parts = [NOTES.format(q=CHOSEN, pairs=PAIRS, strengths=STRENGTHS, halves=2 * PAIRS)]
    if arguments.seeds:
        title = f"### Planted features: means of {arguments.seeds} draws, and standard errors"
        parts += [PLANTED_NOTES.format(q=CHOSEN, planted=PLANTED, level=LEVEL), title]
        parts += [table(PLANTED_HEAD, _planted(arguments.seeds))]
    if arguments.data:
        parts += [SECONDS_NOTES.format(q=CHOSEN), "### Seconds of CPU time"]
        parts += [table(SECONDS_HEAD, _times(arguments.data))]
    if arguments.peers:
        parts += [PEER_NOTES, "### The same half-samples by glmnet"]
        parts += [table(PEER_HEAD, _peers(arguments.peers))]
    write_section(arguments.name, "Stability selection", "\n\n".join(parts))
    return 0


def fitted(estimator: Any, X: Floats, y: Any, seed: int = 0, **settings: Any) -> Measured:
    """A selector fitted after a first fit with few half-samples, which loads the kernels."""
    made = {"alphas": STRENGTHS, "random_state": seed, **settings}
    StabilitySelection(estimator, **{**made, "n_pairs": 1, "assumption": "none"}).fit(X, y)
    model = StabilitySelection(estimator, n_pairs=PAIRS, **made)
    started = time.process_time()
    model.fit(X, y)
    return Measured(model, time.process_time() - started)


# -- planted features -----------------------------------------------------------------------


def _planted(seeds: int) -> Iterator[list[str]]:
    for rho in CORRELATIONS:
        for estimator in (LASSO, HUBERIZED):
            counts = planted_counts(estimator, rho, seeds)
            for assumption, found in counts.items():
                told = f"{rho:g}", type(estimator).__name__, assumption
                yield _planted_row(*told, *_threshold(assumption), found)
        yield _in_clusters(rho, seeds)


def _in_clusters(rho: float, seeds: int) -> list[str]:
    """The row of clusters of correlated features."""
    relevant, found, terms = int(PLANTED.split(",")[2]), [], []
    for seed in range(seeds):
        data = load(f"synthetic:{PLANTED},{rho:g},{seed}")
        settings = {"q": CHOSEN, "pfer": MISTAKES, "cluster": LEVEL, "random_state": seed}
        selector = StabilitySelection(LASSO, n_pairs=PAIRS, alphas=STRENGTHS, **settings)
        stable = selector.fit(data.design, data.labels).get_support()
        found.append((stable[:relevant].sum(), stable[relevant:].sum()))
        terms.append((selector.threshold_, selector.pfer_))
    threshold, bound = np.mean(terms, axis=0)
    return _planted_row(
        f"{rho:g}",
        f"{type(LASSO).__name__}, clusters",
        "unimodal",
        threshold,
        bound,
        np.array(found, float),
    )


def _planted_row(
    rho: str, estimator: str, assumption: str, threshold: float, bound: float, found: Floats
) -> list[str]:
    means, errors = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
    counts = [f"{means[0]:.1f} ± {errors[0]:.1f}", f"{means[1]:.3f} ± {errors[1]:.3f}"]
    below = "yes" if means[1] <= bound else "no"
    return [rho, estimator, assumption, f"{threshold:.3g}", *counts, f"{bound:.3f}", below]


def planted_counts(estimator: Any, rho: float, seeds: int) -> dict[str, Floats]:
    """Relevant and noise features that are stable, (seeds, 2), for each assumption."""
    relevant = int(PLANTED.split(",")[2])
    counts: dict[str, list[tuple[int, int]]] = {assumption: [] for assumption in ASSUMPTIONS}
    for seed in range(seeds):
        data = load(f"synthetic:{PLANTED},{rho:g},{seed}")
        selector = StabilitySelection(
            estimator, n_pairs=PAIRS, threshold=1.0, q=CHOSEN, alphas=STRENGTHS, random_state=seed
        )
        frequencies = selector.fit(data.design, data.labels).max_frequencies_
        for assumption in ASSUMPTIONS:
            stable = frequencies >= _threshold(assumption)[0] - 1e-9
            counts[assumption].append((stable[:relevant].sum(), stable[relevant:].sum()))
    return {assumption: np.array(found, float) for assumption, found in counts.items()}


def _threshold(assumption: str) -> tuple[float, float]:
    """The threshold for the expected number of mistakes, and its bound."""
    p = int(PLANTED.split(",")[1])
    threshold = least_threshold(CHOSEN, p, MISTAKES, PAIRS, assumption)
    assert threshold is not None
    return threshold, false_selections(threshold, CHOSEN, p, PAIRS, assumption)


# -- seconds --------------------------------------------------------------------------------


def _times(names: Any) -> Iterator[list[str]]:
    for name in names:
        X, y = microarray(name)
        shape = f"{name} ({X.shape[0]} x {X.shape[1]}, {np.unique(y).size} classes)"
        for estimator in (LASSO, HUBERIZED):
            model, spent = fitted(estimator, X, y, q=CHOSEN, pfer=MISTAKES)
            two = StabilitySelection(**{**model.get_params(deep=False), "n_jobs": 2}).fit(X, y)
            same = np.array_equal(two.frequencies_, model.frequencies_)
            stable = model.get_support().sum()
            told = [seconds(spent), f"{model.threshold_:.2f}", str(stable)]
            yield [shape, type(estimator).__name__, *told, "yes" if same else "no"]


def microarray(name: str) -> tuple[Floats, Any]:
    """All samples of a microarray, standardised, with its labels."""
    design, labels, _ = _stored(name)
    return standardized(design), labels


# -- glmnet ---------------------------------------------------------------------------------


def _peers(names: Any) -> Iterator[list[str]]:
    missing = R().missing("glmnet")
    for name in names:
        if missing:
            yield [name, *[missing] + ["-"] * (len(PEER_HEAD) - 2)]
            continue
        X, y = microarray(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, spent = fitted(LASSO, X, y, seed=SEED, threshold=0.6)
        theirs, peer_spent = peer_entries(X, y, ours, USUAL)
        exact, _ = peer_entries(X, y, ours, EXACT)
        closer = clone(ours).set_params(alphas=ours.alphas_, estimator__tol=EXACT_GAP).fit(X, y)
        differences = []
        for entries, model in ((theirs, ours), (exact, closer)):
            apart = np.abs(entered(entries, model.alphas_.size) - model.frequencies_)
            differences += [f"{apart[:, -1].max():.2f}", f"{apart.max():.2f}"]
        ratio = f"{peer_spent / spent:.1f}"
        yield [name, seconds(spent), seconds(peer_spent), ratio, *differences]


def peer_entries(
    X: Floats, y: Any, ours: StabilitySelection, thresh: float
) -> tuple[Floats, float]:
    """The strength at which each feature enters in each half-sample, and glmnet's CPU seconds.

    Returns
    -------
    entries : (n_halves, n_features)
        Counted from 1; 0 where it never does.
    """
    codes = np.unique(y, return_inverse=True)[1]
    seed = int(np.random.RandomState(ours.random_state).randint(2**31 - 1))
    count = 2 * ours.n_pairs
    halves = [half_of(codes, np.ones(codes.size), seed, number) for number in range(count)]
    server = RemoteDesign(R().command("glmnet.R"), X)
    server.write("labels", codes.astype(float))
    server.write("alphas", ours.alphas_)
    server.write("rows", np.concatenate(halves).astype(np.int32))
    _, spent = server.ask(
        "subsets",
        l1_ratio=1.0,
        alphas=ours.alphas_.size,
        tol=thresh,
        newton="Newton",
        count=count,
        size=halves[0].size,
    )
    both = server.read("entries", (count, 2, X.shape[1]))
    return both[:, 0], spent


def entered(entries: Floats, strengths: int) -> Floats:
    """The share of half-samples in which each feature has entered at each strength."""
    each = np.arange(1, strengths + 1)
    return ((entries[:, :, None] > 0) & (entries[:, :, None] <= each)).mean(axis=0)


NOTES = """- {pairs} complementary pairs, {halves} half-samples; {strengths} strengths, from the
  critical one to a hundredth of it; l1 norm; features standardised in each half-sample."""
PLANTED_NOTES = """- Data of Xu et al., section 3.1.1, (n, p, s) = ({planted}); q = {q}; for each
  assumption the least threshold whose bound on the expected number of mistakes is at most 1.
  Clusters: correlations of at least {level} (features counted; mean threshold and bound)."""
SECONDS_NOTES = """- q = {q}, at most 1 mistake (unimodal); SRBCT one class against the rest
  (logistic) and all together (huberized). A fit with two half-samples comes first: kernels are
  loaded."""
PEER_NOTES = """- glmnet: logistic regression on the same half-samples and strengths by one loop in
  R, each standardised there, no path ended early; all features that enter are counted, without q.
  The differences are the largest over the features between two frequencies; the exact ones are
  those of glmnet at 1e-12 and of our paths at 1e-10. Some columns of colon are equal (51 and 52,
  261 and 262): either may enter."""
PLANTED_HEAD = (
    *("rho", "estimator", "assumption", "threshold", "relevant found"),
    *("noise found", "bound", "below"),
)
SECONDS_HEAD = ("data", "estimator", "seconds", "threshold", "stable", "two threads: same bits")
PEER_HEAD = (
    *("data", "seconds", "glmnet", "ratio", "difference, last strength", "any strength"),
    *("exact: last strength", "any strength"),
)
