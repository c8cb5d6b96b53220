"""Facts of a comparison, in the form of `Comparison.to_dict`, from quick models of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from proxmargin.reports import data_card
from proxmargin.runtime.brief import plain
from proxmargin.studies.stats.clinical import clinical_summary

METRICS = (
    {"name": "balanced_accuracy", "label": "balanced accuracy", "larger_is_better": True},
    {"name": "accuracy", "label": "accuracy", "larger_is_better": True},
    {"name": "log_loss", "label": "log loss", "larger_is_better": False},
)
FOLDS = 5
REPEATS = 2
STRENGTHS = np.geomspace(1.0, 0.001, 25)


def stand_ins() -> dict[str, Any]:
    """Quick models under the names of ours."""

    def lasso(C: float) -> Any:
        return OneVsRestClassifier(LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear"))

    return {
        "HuberizedSVC": lasso(0.1),
        "SparseLogisticRegression": lasso(1.0),
        "LogisticRegression": LogisticRegression(C=0.01),
        "SVC": KNeighborsClassifier(9),
        "DWD": GaussianNB(),
    }


def facts_of(
    X: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    classes: Sequence[str],
    *,
    data: str = "made",
    models: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What a comparison of ``models`` would say; ``y`` are indices of ``classes``."""
    models = stand_ins() if models is None else models
    X = StandardScaler().fit_transform(X)
    card = data_card(X, y, names)
    card["classes"] = [
        {"label": label, "count": int(count)}
        for label, count in zip(classes, np.bincount(y), strict=True)
    ]
    splits = list(
        RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0).split(X, y)
    )
    runs = {name: [_one(model, X, y, split) for split in splits] for name, model in models.items()}
    means = {name: np.mean([r["scores"] for r in run], axis=0) for name, run in runs.items()}
    order = sorted(runs, key=lambda name: -means[name][0])
    table = np.array([[r["scores"] for r in runs[name]] for name in order])
    entries = [_entry(name, i, table, runs[name], X.shape[1]) for i, name in enumerate(order)]
    counts = {each["name"]: each["n_features"] for each in entries}
    equals = [e["name"] for e in entries if e["metrics"]["balanced_accuracy"]["equivalent"]]
    first = runs[order[0]][0]
    return {
        "format": "proxmargin comparison",
        "version": 1,
        "data": {
            "name": data,
            "n_samples": X.shape[0],
            "n_features": X.shape[1],
            "sparse": False,
            "classes": card["classes"],
            "card": card,
        },
        "protocol": {
            "scoring": "balanced_accuracy",
            "metrics": [dict(metric) for metric in METRICS],
            "folds": FOLDS,
            "repeats": REPEATS,
            "groups": None,
            "random_state": 0,
            "inner": "5 folds",
            "standardize": True,
            "quick": False,
            "baselines": False,
            "command": f"proxmargin compare {data} --report report.html",
        },
        "models": entries,
        "best": order[0],
        "equivalent": equals,
        "recommended": min(equals, key=lambda name: counts[name]),
        "choices": [
            {
                "role": role,
                "model": name,
                "mean": each["metrics"]["balanced_accuracy"]["mean"],
                "cost": -each["metrics"]["balanced_accuracy"]["difference"],
            }
            for role, name in (
                ("recommended", min(equals, key=lambda n: counts[n])),
                ("most accurate", order[0]),
            )
            for each in entries
            if each["name"] == name
        ],
        "missed": {
            "rows": y.size,
            "repeats": REPEATS,
            "disagreement": 0.05,
            "difference": 0.021,
            "models": len(order),
            "difference_of_all": 0.034,
            "largest": 1.0,
        },
        "majority": {
            "balanced_accuracy": 1 / len(classes),
            "accuracy": float(np.bincount(y).max() / y.size),
            "log_loss": None,
        },
        "fold_results": [
            {
                "model": name,
                "repeat": j // FOLDS,
                "fold": j % FOLDS,
                **dict(zip([m["name"] for m in METRICS], each["scores"], strict=True)),
                "n_features": each["n_features"],
                "seconds": 0.01,
                "relative_gap": 1e-7,
                "alpha": 0.05,
            }
            for name in order
            for j, each in enumerate(runs[name])
        ],
        "predictions": {
            "true": y.tolist(),
            "rows": list(range(y.size)),
            **{name: _predictions(runs[name], splits, y.size) for name in order},
        },
        "features": {
            name: _features(runs[name], names, classes)
            for name in order
            if runs[name][0]["coef"] is not None
        },
        "paths": {order[0]: _path(float(means[order[0]][0]))} if first else {},
        "clinical": _clinical(y, classes, runs, splits) if len(classes) == 2 else None,
        "disagreements": {
            "scope": "for these fitted models and rows",
            "caution": "",
            "pairs": [
                {"best": order[0], "model": name, "best_alone": 9, "model_alone": 2, "p_holm": 0.07}
                for name in order[1:]
            ],
        },
        "certificates": {"fits": 1234, "unmet": 0, "worst_gap": 9.8e-7},
        "cost": {"seconds": 12.3, "compile_seconds": 45.6},
        "versions": {"proxmargin": "0.1.0", "python": "3.11.7", "numpy": np.__version__},
        "notes": [],
        "interrupted": False,
    }


def _clinical(y: np.ndarray, classes: Sequence[str], runs: Any, splits: Any) -> dict[str, Any]:
    found = {}
    for name, run in runs.items():
        held = _predictions(run, splits, y.size)
        shares = np.array(held["scores"])[:, 1]
        ids = [f"patient {k}" for k in range(y.size)]
        summary = clinical_summary(y, shares, 1, predicted=held["label"], ids=ids)
        found[name] = plain(summary.to_dict())
    return {"positive": classes[1], "models": found}


def _one(model: Any, X: np.ndarray, y: np.ndarray, split: Any) -> dict[str, Any]:
    train, test = split
    fitted = model.fit(X[train], y[train])
    probabilities = np.clip(fitted.predict_proba(X[test]), 1e-6, 1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    label = probabilities.argmax(axis=1)
    coef = _coef(fitted)
    used = X.shape[1] if coef is None else int((coef != 0).any(axis=0).sum())
    scores = (
        float(balanced_accuracy_score(y[test], label)),
        float(accuracy_score(y[test], label)),
        float(log_loss(y[test], probabilities, labels=range(probabilities.shape[1]))),
    )
    return {
        "scores": scores,
        "n_features": used,
        "coef": coef,
        "label": label,
        "probabilities": probabilities,
    }


def _coef(fitted: Any) -> np.ndarray | None:
    if hasattr(fitted, "estimators_"):
        return np.vstack([each.coef_ for each in fitted.estimators_])
    return getattr(fitted, "coef_", None)


def _entry(
    name: str, place: int, table: np.ndarray, run: list[dict[str, Any]], p: int
) -> dict[str, Any]:
    n_features = float(np.mean([each["n_features"] for each in run]))
    return {
        "name": name,
        "kind": "baseline" if name == "DWD" else "model",
        "settings": {"alpha": 0.05, "l1_ratio": 1.0} if n_features < p else {"C": 1.0},
        "n_features": n_features,
        "fold_features": [
            min(each["n_features"] for each in run),
            max(e["n_features"] for e in run),
        ],
        "final": {"n_features": run[0]["n_features"], "certificate": None},
        "stability": 0.7 if n_features < p else None,
        "seconds_per_fit": 0.012 * (place + 1),
        "passes": 41.0,
        "relative_gap": None if name == "DWD" else 9.8e-7,
        "certified": name != "DWD",
        "metrics": {
            metric["name"]: _judged(table[..., m], place, metric["larger_is_better"])
            for m, metric in enumerate(METRICS)
        },
    }


def _judged(scores: np.ndarray, place: int, larger: bool) -> dict[str, Any]:
    """Intervals and differences of Nadeau and Bengio, for one metric."""
    means = scores.mean(axis=1)
    best = int(means.argmax() if larger else means.argmin())
    mean, half = _interval(scores[place])
    difference, width = _interval(scores[place] - scores[best])
    same = place == best
    p = 1.0 if same else float(2 * t.sf(abs(difference) / max(width / 2.26, 1e-12), df=9))
    return {
        "mean": mean,
        "low": mean - half,
        "high": mean + half,
        "sd": float(scores[place].std(ddof=1)),
        "n": scores.shape[1],
        "difference": difference,
        "difference_low": None if same else difference - width,
        "difference_high": None if same else difference + width,
        "p": None if same else p,
        "p_holm": None if same else min(1.0, 4 * p),
        "p_equal": None if same else max(0.0, 1 - abs(difference) * 20),
        "equivalent": bool(same or min(1.0, 4 * p) > 0.05),
    }


def _interval(values: np.ndarray) -> tuple[float, float]:
    half = 2.26 * values.std(ddof=1) * np.sqrt(1 / values.size + 1 / (FOLDS - 1))
    return float(values.mean()), float(half)


def _predictions(run: list[dict[str, Any]], splits: list[Any], n: int) -> dict[str, Any]:
    k = run[0]["probabilities"].shape[1]
    labels, scores = np.zeros(n, dtype=int), np.zeros((n, k))
    for each, (_, test) in zip(run[:FOLDS], splits[:FOLDS], strict=True):
        labels[test], scores[test] = each["label"], each["probabilities"]
    return {"label": labels.tolist(), "scores": scores.tolist()}


def _features(
    run: list[dict[str, Any]], names: Sequence[str], classes: Sequence[str]
) -> list[dict[str, Any]]:
    coef = np.mean([each["coef"] for each in run], axis=0)
    share = np.mean([each["coef"] != 0 for each in run], axis=0)
    if len(classes) == 2:
        coef, share, classes = coef[-1:], share[-1:], classes[1:]
    largest = np.argsort(-np.abs(coef), axis=None)[:50]
    return [
        {
            "feature": names[j],
            "class": classes[k],
            "weight": float(coef[k, j]),
            "sign": int(np.sign(coef[k, j])),
            "frequency": float(share[k, j]),
            "sign_agreement": 1.0,
            "auc": 0.9,
            "partners": [[names[j - 1], -0.91]],
        }
        for k, j in zip(*np.unravel_index(largest, coef.shape), strict=True)
        if coef[k, j] != 0
    ]


def _path(score: float) -> dict[str, Any]:
    place = np.linspace(0, 1, STRENGTHS.size)
    return {
        "parameter": "alpha",
        "strengths": STRENGTHS.tolist(),
        "mean": (score - 0.4 * (place - 0.6) ** 2).tolist(),
        "se": (0.01 + 0.01 * place).tolist(),
        "n_features": (30 * place).round().tolist(),
        "chosen": float(STRENGTHS[14]),
    }


# names that must appear as the text that they are, wherever they come from
EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a.b[0]",
    "</script><!--\u2028{{ 7 * 7 }}",
)


@cache
def evil_facts() -> dict[str, Any]:
    """Facts whose every name is markup, a path or an expression."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 4)) + np.eye(3, 4)[y] * 2
    script, image, path, island = EVIL
    models = dict(zip(EVIL, stand_ins().values(), strict=False))
    facts = facts_of(X, y, EVIL, (script, image, path), data=f"{image}{script}", models=models)
    facts["notes"] = [script, island]
    facts["protocol"] |= {"command": f"proxmargin compare {script}", "groups": image}
    facts["protocol"]["metrics"][0] |= {"label": f"balanced {script}"}
    facts["versions"] |= {script: image}
    facts["models"][0]["settings"] = {image: script}
    facts["data"]["card"]["findings"] = [{"what": script, "advice": image}]
    facts["paths"] = {script: _path(0.9) | {"parameter": image}}
    return facts
