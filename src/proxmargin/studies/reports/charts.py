"""The charts, as Vega-Lite specifications.

Their fields have fixed names. Names of models, features and classes are values in the data, where
nothing reads them as a path (``a.b[0]``) or an expression. Colours are variables of the style sheet
of the page, which follow the theme and the printer without a chart being drawn again.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

# colours, which the page defines for light and dark screens
TOP = "var(--accent)"  # models not distinguishable from the best
BEHIND = "var(--behind)"  # the others
INK = "var(--ink)"  # what is read first
FAINT = "var(--ink-2)"  # axes and their words
CURVES = [f"var(--c{place})" for place in range(8)]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
DOT = 80  # area of a dot in square pixels
WIDE = 2.5  # width of the line of an interval in pixels

CONFIG: Spec = {
    "background": None,
    "font": "system-ui, sans-serif",
    # a chart is one picture to a screen reader: its caption says what it shows, its table holds it
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT,
        "titleColor": FAINT,
        "gridColor": "var(--grid)",
        "domain": False,
        "ticks": False,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelPadding": 6,
        "titlePadding": 10,
        "labelLimit": 210,
        "labelSeparation": 10,
    },
    # as many ticks as a phone has room for
    "axisQuantitative": {"tickCount": 6},
    "text": {"color": FAINT, "fontSize": 12},
}
ROLES = ("recommended", "other")
GROUPS = {"domain": ["top", "behind"], "range": [TOP, BEHIND]}


def _spec(height: int, **parts: object) -> Spec:
    return {
        "config": CONFIG,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "height": height,
        **parts,
    }


def _field(name: str, kind: str, **options: object) -> Spec:
    return {"field": name, "type": kind, **options}


def _models() -> Spec:
    """One line a model, in the order of the data."""
    return _field(
        "model", "nominal", sort=None, title=None, axis={"grid": False, "labelColor": INK}
    )


def _scores(name: str, **options: object) -> Spec:
    return _field(name, "quantitative", scale={"zero": False, "nice": True}, **options)


GROUP = _field("group", "nominal", scale=GROUPS, legend=None)
TIP = _field("tip", "nominal")
INTERVALS: Spec = {
    "mark": {"type": "rule", "strokeWidth": WIDE},
    "encoding": {"x": _scores("low"), "x2": {"field": "high"}, "color": GROUP},
}


def _dots(encoding: Spec, **mark: object) -> Spec:
    return {"mark": {"type": "point", "filled": True, **mark, "opacity": 1}, "encoding": encoding}


def _at_zero(x: Spec) -> Spec:
    return {
        "data": {"values": [{"value": 0}]},
        "mark": {"type": "rule", "color": FAINT},
        "encoding": {"x": x, "y": None},
    }


def _of_roles(kind: str, values: list[object], **options: object) -> Spec:
    scale = {"domain": [*ROLES], "range": values}
    return _field("role", kind, **options, scale=scale, legend=None)


RANKING = _spec(
    height=28,
    data={"name": "means"},
    encoding={"y": _models()},
    layer=[
        {
            "data": {"name": "folds"},
            "mark": {"type": "tick", "color": BEHIND, "opacity": 0.55, "height": 10},
            "encoding": {"x": _scores("value")},
        },
        INTERVALS,
        _dots(
            {
                "x": _scores("mean"),
                "color": GROUP,
                "shape": _of_roles("nominal", ["diamond", "circle"]),
                "size": _of_roles("ordinal", [2.4 * DOT, DOT], sort=[*ROLES]),
                "tooltip": TIP,
            }
        ),
    ],
)

DIFFERENCES = _spec(
    height=28,
    data={"name": "differences"},
    encoding={"y": _models()},
    layer=[
        {
            "data": {"name": "rope"},
            "mark": {"type": "rect", "color": TOP, "opacity": 0.13},
            "encoding": {"x": _scores("low"), "x2": {"field": "high"}, "y": None},
        },
        _at_zero(_scores("value")),
        INTERVALS,
        _dots({"x": _scores("difference"), "color": GROUP, "tooltip": TIP}, size=DOT),
    ],
)

UNIT_TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1]
UNIT = {"domain": [0, 1], "nice": False}
# a style number of each model picks colour and dashes
STYLES = range(len(CURVES) * len(DASHES))


def _of_styles(values: list[object]) -> Spec:
    return _field("style", "nominal", scale={"domain": [*STYLES], "range": values}, legend=None)


STYLE: Spec = {
    "color": _of_styles([CURVES[s % len(CURVES)] for s in STYLES]),
    "strokeDash": _of_styles([DASHES[s // len(CURVES)] for s in STYLES]),
    "detail": _field("m", "nominal"),
}


def _square(x: str, y: str, marks: list[Spec], diagonal: bool) -> Spec:
    """Curves over the unit square."""
    axis = {"format": ".1f", "values": UNIT_TICKS}
    axes = {
        name: _field(name, "quantitative", scale=UNIT, title=title, axis=axis)
        for name, title in (("x", x), ("y", y))
    }
    ends = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]
    chance = {
        "data": {"values": ends} if diagonal else {"name": "chance"},
        "mark": {"type": "line", "color": FAINT, "strokeDash": [3, 3], "strokeWidth": 1},
        "encoding": axes,
    }
    curves = [{"mark": mark, "encoding": {**axes, **STYLE, "tooltip": TIP}} for mark in marks]
    return _spec(height=320, data={"name": "curves"}, layer=[chance, *curves])


# corners in the order of the data: both axes of a curve may stand still
LINE = {"type": "line", "strokeWidth": 2, "clip": True}
ROC = _square("false positive rate", "true positive rate", [LINE], True)
PRECISION_RECALL = _square("recall", "precision", [LINE], False)
CALIBRATION = _square(
    "predicted probability",
    "observed share",
    [LINE, {"type": "point", "filled": True, "size": 45, "opacity": 1}],
    True,
)
for _spec_of_curves in (ROC, PRECISION_RECALL, CALIBRATION):
    for _layer in _spec_of_curves["layer"]:
        if _layer["mark"]["type"] == "line":
            _layer["encoding"]["order"] = _field("i", "quantitative")

SIGN = _field(
    "sign",
    "nominal",
    scale={"domain": ["for", "against"], "range": [TOP, "var(--contrast)"]},
    legend=None,
)
# a line stays visible where no fold uses the feature
PALE = {"domain": [0, 1], "range": [0.2, 1]}
FEATURES = _spec(
    height=24,
    data={"name": "features"},
    encoding={"y": _field("feature", "nominal", sort=None, title=None, axis={"labelColor": INK})},
    layer=[
        _at_zero(_field("value", "quantitative")),
        {
            "mark": {"type": "bar", "height": 3},
            "encoding": {
                "x": _field("weight", "quantitative", title="weight per standard deviation"),
                "color": SIGN,
                "opacity": _field("frequency", "quantitative", legend=None, scale=PALE),
            },
        },
        _dots({"x": _field("weight", "quantitative"), "color": SIGN, "tooltip": TIP}, size=DOT),
    ],
)

# both charts of a path leave the same room for their labels
BESIDE = {"minExtent": 44, "tickCount": 5}
STRENGTH = _field("strength", "quantitative", scale={"type": "log", "nice": False})
CHOSEN: Spec = {
    "data": {"name": "chosen"},
    "mark": {"type": "rule", "color": FAINT, "strokeDash": [3, 3]},
    "encoding": {"x": STRENGTH},
}
PATH = _spec(
    height=240,
    data={"name": "path"},
    layer=[
        CHOSEN,
        {
            "mark": {"type": "rule", "color": TOP, "opacity": 0.6},
            "encoding": {
                "x": STRENGTH,
                "y": _scores("low", title="cross-validated score", axis=BESIDE),
                "y2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "line", "color": TOP, "strokeWidth": 1.5},
            "encoding": {"x": STRENGTH, "y": _scores("mean")},
        },
        _dots({"x": STRENGTH, "y": _scores("mean"), "tooltip": TIP}, color=TOP, size=36),
    ],
)
COUNTS = _spec(
    height=110,
    data={"name": "path"},
    layer=[
        CHOSEN,
        {
            "mark": {"type": "line", "color": BEHIND, "strokeWidth": 2, "interpolate": "step"},
            "encoding": {
                "x": STRENGTH,
                "y": _field("n", "quantitative", title="features", axis=BESIDE),
            },
        },
    ],
)

# what a decision at a threshold gains over calling no one positive
THRESHOLD = _field("threshold", "quantitative", title="threshold probability", scale=UNIT)
WHO = _field(
    "who",
    "nominal",
    scale={"domain": ["model", "all"], "range": [TOP, "var(--contrast)"]},
    legend=None,
)
GAIN = _field("benefit", "quantitative", title="net benefit")
BENEFIT = _spec(
    height=260,
    data={"name": "benefit"},
    layer=[
        _at_zero(_field("value", "quantitative")) | {"encoding": {"y": {"datum": 0}}},
        {"mark": LINE, "encoding": {"x": THRESHOLD, "y": GAIN, "color": WHO, "tooltip": TIP}},
        {
            "data": {"name": "at"},
            "mark": {"type": "rule", "color": FAINT, "strokeDash": [3, 3]},
            "encoding": {"x": THRESHOLD},
        },
    ],
)

SPECS: dict[str, Spec] = {
    "benefit": BENEFIT,
    "ranking": RANKING,
    "differences": DIFFERENCES,
    "roc": ROC,
    "precision_recall": PRECISION_RECALL,
    "calibration": CALIBRATION,
    "features": FEATURES,
    "path": PATH,
    "counts": COUNTS,
}
