(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const chosen = (id) => Number((document.getElementById(id) || { value: 0 }).value);

  // Charts. Values are put into named data sets of the specifications, names only as values.

  const views = new Map();
  // draws one after the other, so that a later choice is never overdrawn by an earlier one
  let queue = Promise.resolve();

  function draw(name, datasets, adjust = () => {}) {
    const place = find(`[data-chart="${name}"]`);
    if (!place) return;
    const spec = JSON.parse(JSON.stringify(charts[name]));  // parts of it share none
    spec.datasets = datasets;
    spec.config.axis.titleLimit = 0.6 * place.clientWidth;
    if (narrow()) spec.config.axisQuantitative.tickCount = 4;
    adjust(spec);
    queue = queue.then(async () => {
      if (views.has(name)) views.get(name).finalize();
      const result = await vegaEmbed(place, spec, {
        actions: false, ast: true, mode: "vega-lite", defaultStyle: false, renderer: "svg", tooltip: showTip,
      });
      views.set(name, result);
      // its caption and its table speak for it: hundreds of marks would not
      find("svg", place).setAttribute("aria-hidden", "true");
    }).catch((error) => { place.textContent = `This chart could not be drawn: ${error.message}`; });
  }

  const tip = document.getElementById("tip");
  function showTip(handler, event, item, value) {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = String(value);
    const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${event.clientY + 16}px`;
  }

  const narrow = () => innerWidth < 560;

  function drawStandings() {
    const standing = page.standings[chosen("metric")] || page.standings[0];
    const order = (spec) => {
      spec.encoding.y.scale = { domain: standing.names };
      spec.height *= standing.names.length;
      if (narrow()) spec.encoding.y.axis.labelLimit = 120;
    };
    draw("ranking", { means: standing.means, folds: standing.folds }, (spec) => {
      order(spec);
      const title = narrow() ? standing.label : `${standing.label} (${standing.direction})`;
      for (const layer of spec.layer) layer.encoding.x.title = title;
    });
    const rope = [{ low: -page.rope, high: page.rope }];
    draw("differences", { differences: standing.differences.slice(1), rope }, (spec) => {
      order(spec);
      spec.encoding.y.scale.domain = standing.names.slice(1);
      spec.height *= 1 - 1 / standing.names.length;
      for (const layer of spec.layer) layer.encoding.x.title = `difference in ${standing.label}`;
    });
  }

  function drawCurves() {
    const boxes = all('input[name="curve"]');
    if (!boxes.length) return;
    const select = document.getElementById("curve-class");
    const style = new Map(boxes.map((box, place) => [Number(box.value), place % 32]));
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => Number(box.value)));
    const curves = page.curves.filter(
      (each) => shown.has(each.m) && (!select || each.k === Number(select.value)));
    const area = new Map(page.curves.filter((each) => !select || each.k === Number(select.value))
      .map((each) => [each.m, each.auc]));
    for (const each of all("[data-auc]")) {
      const auc = area.get(Number(each.dataset.auc));
      each.textContent = auc === undefined ? "" : `AUC ${auc.toFixed(3)}`;
    }
    const rows = (kind, tip) => curves.flatMap((each) => (each[kind] || []).map(([x, y], i) => (
      { x, y, i, m: each.m, style: style.get(each.m), tip: `${page.models[each.m]}: ${tip(each, x, y)}` })));
    draw("roc", { curves: rows("roc", (each) => `area ${each.auc.toFixed(3)}`) });
    const share = curves.length ? curves[0].share : 0;
    draw("precision_recall", {
      curves: rows("precision_recall", (each) => `average precision ${each.average_precision.toFixed(3)}`),
      chance: [{ x: 0, y: share, i: 0 }, { x: 1, y: share, i: 1 }],
    });
    draw("calibration", {
      curves: rows("calibration", (each, x, y) => `predicted ${x.toFixed(2)}, observed ${y.toFixed(2)}`),
    });
  }

  function drawDetail() {
    const m = chosen("model");
    const features = page.features[m], path = page.paths[m];
    find('[data-needs="features"]').hidden = !features;
    find('[data-needs="path"]').hidden = !path;
    if (features) {
      draw("features", { features }, (spec) => {
        spec.height *= features.length;
        if (narrow()) spec.encoding.y.axis.labelLimit = 130;
      });
    }
    if (path) {
      const adjust = (title) => (spec) => {
        for (const layer of spec.layer) {
          layer.encoding.x.scale.reverse = path.falls;
          layer.encoding.x.title = title && path.parameter;
          layer.encoding.x.axis = { labels: title };
        }
      };
      draw("path", { path: path.rows, chosen: path.chosen }, adjust(false));
      draw("counts", { path: path.rows, chosen: path.chosen }, adjust(true));
    }
  }

  // Rates at a threshold that the reader moves

  const RATES = ["sensitivity", "specificity", "ppv", "npv"];
  const slider = document.getElementById("threshold");
  const clinical = () => ((page.facts.clinical || {}).models || {})[page.models[chosen("model")]];
  const fixed = (value) => (value === null ? "–" : value.toFixed(3).replace("-", "−"));

  function showRates() {
    const found = clinical();
    if (!found) return;
    const at = Number(slider.value) / 100, points = found.thresholds;
    const k = points.threshold.findIndex((each) => Math.abs(each - at) < 0.005);
    for (const each of all(".threshold-shown")) each.textContent = at.toFixed(2);
    for (const cell of all(`[data-model="${chosen("model")}"] [data-rate]`)) {
      const name = cell.dataset.rate, value = points[name][k];
      if (!RATES.includes(name)) { cell.textContent = name === "net_benefit" ? fixed(value) : value; continue; }
      const [rate, low, high] = value, strong = document.createElement("b"), span = document.createElement("span");
      strong.textContent = fixed(rate);
      span.textContent = low === null ? "" : `${fixed(low)}\u00a0to\u00a0${fixed(high)}`;
      cell.replaceChildren(strong, " ", span);
    }
  }

  function drawClinical() {
    const section = document.getElementById("clinical"), found = clinical();
    if (!section) return;
    section.hidden = !found;
    if (!found) return;
    showRates();
    const { threshold, net_benefit: gain, net_benefit_all: whole } = found.thresholds;
    // far below zero there is nothing to read
    const row = (who, benefit) => (at, k) => ({ threshold: at, benefit: benefit[k], who,
      tip: `${who === "all" ? "all called positive" : page.models[chosen("model")]}, from ${at.toFixed(2)} on: ${fixed(benefit[k])}` });
    const rows = [...threshold.map(row("model", gain)), ...threshold.map(row("all", whole))];
    draw("benefit", {
      benefit: rows.filter((each) => each.benefit !== null && each.benefit > -0.1),
      at: [{ threshold: Number(slider.value) / 100 }],
    });
  }
  if (slider) {
    slider.addEventListener("input", showRates);
    slider.addEventListener("change", drawClinical);
  }

  // Choices

  function on(id, act) {
    const element = document.getElementById(id);
    if (!element) return;
    element.addEventListener("change", () => {
      // paper has no lists to choose from
      for (const each of all(`[data-chosen="${id}"]`)) each.textContent = element.selectedOptions[0].textContent;
      act();
    });
  }
  on("metric", () => {
    const place = document.getElementById("metric").value;
    for (const each of all("[data-metric]")) each.hidden = each.dataset.metric !== place;
    drawStandings();
  });
  on("model", () => {
    const m = document.getElementById("model").value;
    for (const each of all("[data-model]")) each.hidden = each.dataset.model !== m;
    drawDetail();
    drawClinical();
  });
  on("curve-class", drawCurves);
  for (const box of all('input[name="curve"]')) box.addEventListener("change", drawCurves);

  // Theme: that of the system until the button is pressed

  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const offer = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    offer();
  });
  system.addEventListener("change", offer);
  offer();

  // Tables

  const cellsOf = (row) => [...row.children];
  const valueOf = (cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : null);

  function sort(heading) {
    const table = heading.closest("table"), body = table.tBodies[0];
    const place = cellsOf(heading.parentElement).indexOf(heading);
    const numeric = heading.classList.contains("n");
    // numbers first from the largest, words from A
    const before = heading.getAttribute("aria-sort");
    const order = before ? (before === "ascending" ? "descending" : "ascending")
      : (numeric ? "descending" : "ascending");
    const sign = order === "ascending" ? 1 : -1;
    const words = new Intl.Collator("en", { numeric: true });
    const compare = (a, b) => {
      const [left, right] = [a, b].map((row) => row.children[place]);
      const [x, y] = [valueOf(left), valueOf(right)];
      if (x !== null && y !== null) return sign * (x - y);
      // cells without a number come last either way
      if (numeric) return (x === null) - (y === null);
      return sign * words.compare(left.textContent, right.textContent);
    };
    body.append(...[...body.rows].sort(compare));
    for (const each of cellsOf(heading.parentElement)) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
  }
  for (const button of all("button.sort")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  // Names such as LogisticRegression break between their words where they must

  for (const name of all("tbody th")) {
    const words = name.textContent.split(/(?<=[a-z])(?=[A-Z])/);
    name.replaceChildren(...words.flatMap((word, k) => (k ? [document.createElement("wbr"), word] : [word])));
  }

  // Downloads

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const quoted = (cell) => ("value" in cell.dataset ? cell.dataset.value : written(cell.textContent.trim()));
  function written(text) {
    // a spreadsheet runs what begins like a formula
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }
  for (const button of all("[data-csv]")) {
    button.addEventListener("click", () => {
      const table = document.getElementById(button.dataset.csv);
      const rows = [...table.rows].map((row) => cellsOf(row).map(quoted).join(","));
      save(`${button.dataset.csv}.csv`, "text/csv", `\ufeff${rows.join("\r\n")}\r\n`);
    });
  }
  document.getElementById("download").addEventListener("click", () => {
    save("comparison.json", "application/json", JSON.stringify(page.facts, null, 1));
  });

  const held = page.facts.predictions, predictions = document.getElementById("download-predictions");
  predictions.hidden = !held;
  predictions.addEventListener("click", () => {
    const models = page.models.filter((name) => name in held);
    const shares = (name) => (held[name].probabilities ? page.labels : []);
    const heads = ["sample", "class", ...models.flatMap((name) => [name, ...shares(name).map((label) => `${name}: probability of ${label}`)])];
    const rows = held.true.map((k, i) => [(held.ids || held.rows)[i], page.labels[k], ...models.flatMap((name) => [
      page.labels[held[name].label[i]], ...shares(name).map((_, c) => (held[name].probabilities[i] || [])[c])])]);
    const lines = [heads, ...rows].map((row) => row.map(
      (each) => (typeof each === "number" ? each : written(String(each ?? "")))).join(","));
    save("predictions.csv", "text/csv", `\ufeff${lines.join("\r\n")}\r\n`);
  });

  // Paper shows closed parts too

  addEventListener("beforeprint", () => {
    for (const each of all("details:not([open], .unprinted)")) { each.open = true; each.dataset.closed = ""; }
  });
  addEventListener("afterprint", () => {
    for (const each of all("details[data-closed]")) { each.open = false; delete each.dataset.closed; }
  });

  drawStandings();
  drawCurves();
  drawDetail();
  drawClinical();
  queue.then(() => { document.documentElement.dataset.ready = ""; });
})();
