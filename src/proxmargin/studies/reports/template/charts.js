"use strict";
// The charts, as Vega-Lite specifications. Their fields have fixed names. Names of models, features and
// classes are values in the data, where nothing reads them as a path (`a.b[0]`) or an expression.
// Colours are variables of the style sheet, which follow the theme and the printer without a chart being
// drawn again.
const charts = (() => {
  const top = "var(--accent)";  // models not distinguishable from the best
  const behind = "var(--behind)";  // the others
  const ink = "var(--ink)";  // what is read first
  const faint = "var(--ink-2)";  // axes and their words
  const dot = 80;  // area of a dot in square pixels
  const config = {
    background: null,
    font: "system-ui, sans-serif",
    // a chart is one picture to a screen reader: its caption says what it shows, its table holds it
    aria: false,
    view: { stroke: null },
    axis: {
      labelColor: faint, titleColor: faint, gridColor: "var(--grid)", domain: false, ticks: false,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelPadding: 6, titlePadding: 10,
      labelLimit: 210, labelSeparation: 10,
    },
    axisQuantitative: { tickCount: 6 },  // as many as a phone has room for
    text: { color: faint, fontSize: 12 },
  };
  const chart = (height, parts) => ({
    config, width: "container", autosize: { type: "fit-x", contains: "padding" }, height, ...parts,
  });
  const field = (name, type, options = {}) => ({ field: name, type, ...options });
  const number = (name, options = {}) => field(name, "quantitative", options);
  const score = (name, options = {}) => number(name, { scale: { zero: false, nice: true }, ...options });
  const coloured = (name, domain, range) => field(name, "nominal", { scale: { domain, range }, legend: null });
  const dots = (encoding, mark) => ({ mark: { type: "point", filled: true, ...mark, opacity: 1 }, encoding });
  const zero = (encoding) => ({ data: { values: [{ value: 0 }] }, mark: { type: "rule", color: faint }, encoding });
  const dashed = (name, x) => (
    { data: { name }, mark: { type: "rule", color: faint, strokeDash: [3, 3] }, encoding: { x } });
  const tooltip = field("tip", "nominal");

  // one line a model, in the order of the data
  const models = field("model", "nominal", { sort: null, title: null, axis: { grid: false, labelColor: ink } });
  const roles = ["recommended", "other"];
  const ofRoles = (type, range, options = {}) => (
    field("role", type, { ...options, scale: { domain: roles, range }, legend: null }));
  const group = coloured("group", ["top", "behind"], [top, behind]);
  const intervals = {
    mark: { type: "rule", strokeWidth: 2.5 },
    encoding: { x: score("low"), x2: { field: "high" }, color: group },
  };
  const ranking = chart(28, { data: { name: "means" }, encoding: { y: models }, layer: [
    { data: { name: "folds" }, mark: { type: "tick", color: behind, opacity: 0.55, height: 10 },
      encoding: { x: score("value") } },
    intervals,
    dots({ x: score("mean"), color: group, shape: ofRoles("nominal", ["diamond", "circle"]),
      size: ofRoles("ordinal", [2.4 * dot, dot], { sort: roles }), tooltip }),
  ] });
  const differences = chart(28, { data: { name: "differences" }, encoding: { y: models }, layer: [
    { data: { name: "rope" }, mark: { type: "rect", color: top, opacity: 0.13 },
      encoding: { x: score("low"), x2: { field: "high" }, y: null } },
    zero({ x: score("value"), y: null }),
    intervals,
    dots({ x: score("difference"), color: group, tooltip }, { size: dot }),
  ] });

  // curves over the unit square; a style number of each model picks colour and dashes
  const colours = Array.from({ length: 8 }, (_, place) => `var(--c${place})`);
  const dashes = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]];
  const styles = Array.from({ length: colours.length * dashes.length }, (_, place) => place);
  const style = {
    color: coloured("style", styles, styles.map((each) => colours[each % colours.length])),
    strokeDash: coloured("style", styles, styles.map((each) => dashes[Math.floor(each / colours.length)])),
    detail: field("m", "nominal"),
  };
  const unit = { domain: [0, 1], nice: false };
  const line = { type: "line", strokeWidth: 2, clip: true };
  function square(x, y, marks, diagonal) {
    const axis = { format: ".1f", values: [0, 0.2, 0.4, 0.6, 0.8, 1] };
    const axes = { x: number("x", { scale: unit, title: x, axis }), y: number("y", { scale: unit, title: y, axis }) };
    // corners in the order of the data: both axes of a curve may stand still
    const order = (mark) => (mark.type === "line" ? { order: number("i") } : {});
    const chance = { type: "line", color: faint, strokeDash: [3, 3], strokeWidth: 1 };
    return chart(320, { data: { name: "curves" }, layer: [
      { data: diagonal ? { values: [{ x: 0, y: 0 }, { x: 1, y: 1 }] } : { name: "chance" }, mark: chance,
        encoding: { ...axes, ...order(chance) } },
      ...marks.map((mark) => ({ mark, encoding: { ...axes, ...style, tooltip, ...order(mark) } })),
    ] });
  }

  const sign = coloured("sign", ["for", "against"], [top, "var(--contrast)"]);
  const features = chart(24, {
    data: { name: "features" },
    encoding: { y: field("feature", "nominal", { sort: null, title: null, axis: { labelColor: ink } }) },
    layer: [
      zero({ x: number("value"), y: null }),
      { mark: { type: "bar", height: 3 }, encoding: {
        x: number("weight", { title: "weight per standard deviation" }),
        color: sign,
        // a line stays visible where no fold uses the feature
        opacity: number("frequency", { legend: null, scale: { domain: [0, 1], range: [0.2, 1] } }),
      } },
      dots({ x: number("weight"), color: sign, tooltip }, { size: dot }),
    ],
  });

  // both charts of a path leave the same room for their labels
  const beside = { minExtent: 44, tickCount: 5 };
  const strength = number("strength", { scale: { type: "log", nice: false } });
  const chosen = dashed("chosen", strength);
  const path = chart(240, { data: { name: "path" }, layer: [
    chosen,
    { mark: { type: "rule", color: top, opacity: 0.6 }, encoding: {
      x: strength, y: score("low", { title: "cross-validated score", axis: beside }), y2: { field: "high" } } },
    { mark: { type: "line", color: top, strokeWidth: 1.5 }, encoding: { x: strength, y: score("mean") } },
    dots({ x: strength, y: score("mean"), tooltip }, { color: top, size: 36 }),
  ] });
  const counts = chart(110, { data: { name: "path" }, layer: [
    chosen,
    { mark: { type: "line", color: behind, strokeWidth: 2, interpolate: "step" },
      encoding: { x: strength, y: number("n", { title: "features", axis: beside }) } },
  ] });

  // what a decision at a threshold gains over calling no one positive
  const threshold = number("threshold", { title: "threshold probability", scale: unit });
  const benefit = chart(260, { data: { name: "benefit" }, layer: [
    zero({ y: { datum: 0 } }),
    { mark: line, encoding: {
      x: threshold, y: number("benefit", { title: "net benefit" }),
      color: coloured("who", ["model", "all"], [top, "var(--contrast)"]), tooltip } },
    dashed("at", threshold),
  ] });

  return {
    benefit, ranking, differences, features, path, counts,
    roc: square("false positive rate", "true positive rate", [line], true),
    precision_recall: square("recall", "precision", [line], false),
    calibration: square("predicted probability", "observed share",
      [line, { type: "point", filled: true, size: 45, opacity: 1 }], true),
  };
})();
