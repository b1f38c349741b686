"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const hidden = new Set(); // numbers of labels
  const charts = []; // { figure, build, plot, visible, stale }
  const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");

  // Colours: the system's choice unless the reader overrides it.
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("pser-theme") || "auto"; } catch { /* storage may be closed to files */ }
  const isDark = () => theme === "dark" || (theme === "auto" && darkSystem.matches);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function applyTheme() {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    byId("theme").querySelector("span").textContent = theme;
    byId("theme").setAttribute("aria-label", `Colours: ${theme}`);
    data.labels.forEach((label, i) =>
      document.documentElement.style.setProperty(`--series-${i}`, isDark() ? label.dark : label.light));
    redraw(charts);
  }
  byId("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("pser-theme", theme); } catch { /* not remembered, that is all */ }
    applyTheme();
  });
  darkSystem.addEventListener("change", applyTheme);

  // Numbers.
  const short = (v) => {
    if (v == null) return "–";
    const a = Math.abs(v);
    if (a >= 1e6) return `${+(v / 1e6).toPrecision(3)}M`;
    if (a >= 1e4) return `${+(v / 1e3).toPrecision(3)}k`;
    return `${+v.toPrecision(4)}`;
  };
  const countAt = (curve, i) => (Array.isArray(curve.count) ? curve.count[i] : curve.count);
  const colour = (i) => (isDark() ? data.labels[i].dark : data.labels[i].light);

  // CSV: what is shown, to take away.
  const quoted = (value) => {
    const text = value == null ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  function download(name, rows) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" }));
    link.download = `${name.replace(/[^\w.-]+/g, "_").replace(/^_+|_+$/g, "")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  function chartRows(spec) {
    const heads = [spec.x.name], columns = [spec.x.values];
    for (const curve of spec.curves) {
      const name = data.labels[curve.label].name;
      heads.push(name); columns.push(curve.mean);
      if (curve.low) { heads.push(`${name} lowest`, `${name} highest`); columns.push(curve.low, curve.high); }
      if (curve.count != null) { heads.push(`${name} seeds`); columns.push(curve.mean.map((_, i) => countAt(curve, i))); }
      for (const [run, values] of Object.entries(curve.lines || {})) { heads.push(run); columns.push(values); }
    }
    for (const figures of spec.published || []) {
      heads.push(figures.name, `${figures.name} low`, `${figures.name} high`);
      columns.push(figures.mean, figures.low, figures.high);
    }
    return [heads, ...spec.x.values.map((_, i) => columns.map((column) => column[i]))];
  }
  document.addEventListener("click", (event) => {
    const id = event.target.dataset?.table;
    if (!id) return;
    const cell = (c) => (c.classList.contains("num") && c.dataset.value !== "" && c.dataset.value != null ? c.dataset.value : c.textContent.trim());
    download(id, [...byId(id).rows].map((row) => [...row.cells].map(cell)));
  });

  // One chart: mean lines, with a band from the lowest to the highest seed or a line for each.
  const markers = [
    (c, x, y, r) => c.arc(x, y, r, 0, 7), (c, x, y, r) => c.rect(x - r, y - r, 2 * r, 2 * r),
    (c, x, y, r) => { c.moveTo(x, y - 1.3 * r); c.lineTo(x + 1.3 * r, y); c.lineTo(x, y + 1.3 * r); c.lineTo(x - 1.3 * r, y); c.closePath(); },
  ];
  const glyphs = ["○", "□", "◇"];
  function options(width, spec, small) {
    const series = [{ label: spec.x.name, value: (u, v) => short(v) }];
    const bands = [];
    for (const curve of spec.curves) {
      const label = data.labels[curve.label], stroke = colour(curve.label), show = !hidden.has(curve.label);
      series.push({
        label: label.name, stroke, show, width: small ? 1.5 : 2, dash: label.dash.length ? label.dash.map((d) => d * 1.6) : undefined,
        points: { show: curve.mean.filter((v) => v != null).length < 3 }, spanGaps: true, paths: spec.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (u, v, si, i) => {
          if (i == null || v == null) return "";
          const range = curve.low ? ` (${short(curve.low[i])} to ${short(curve.high[i])})` : "";
          const n = countAt(curve, i);
          return short(v) + range + (n ? `, ${n} seed${n === 1 ? "" : "s"}` : "");
        },
      });
      if (curve.low && spec.spread === "band") {
        const at = series.length;
        const edge = { show, stroke: "transparent", width: 0, class: "band-edge", points: { show: false }, spanGaps: true };
        series.push({ ...edge, label: `${label.name} high` }, { ...edge, label: `${label.name} low` });
        bands.push({ series: [at, at + 1], fill: `${stroke}2e` });
      }
    }
    const firstPublished = series.length;
    for (const [k, figures] of (spec.published || []).entries()) {
      series.push({
        label: `${glyphs[k % glyphs.length]} ${figures.name}`, stroke: css("--dim"), paths: () => null, points: { show: false },
        value: (u, v, si, i) => (v == null ? "" : `${short(v)} (${short(figures.low[i])} to ${short(figures.high[i])})`),
      });
    }
    // Each seed's own line, under the means.
    const seedLines = (u) => {
      if (spec.spread !== "seeds") return;
      const { ctx } = u, ratio = devicePixelRatio;
      ctx.save();
      ctx.beginPath(); ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height); ctx.clip();
      ctx.lineWidth = ratio; ctx.globalAlpha = 0.45;
      spec.curves.forEach((curve) => {
        if (!curve.lines || !u.series.find((s) => s.label === data.labels[curve.label].name)?.show) return;
        ctx.strokeStyle = colour(curve.label);
        for (const values of Object.values(curve.lines)) {
          ctx.beginPath();
          values.forEach((v, i) => { if (v != null) ctx.lineTo(u.valToPos(spec.x.values[i], "x", true), u.valToPos(v, "y", true)); });
          ctx.stroke();
        }
      });
      ctx.restore();
    };
    // Published figures are points with a range, and nothing in between.
    const publishedPoints = (u) => {
      const { ctx } = u, ratio = devicePixelRatio;
      (spec.published || []).forEach((figures, k) => {
        if (!u.series[firstPublished + k].show) return;
        ctx.save();
        ctx.strokeStyle = css("--dim"); ctx.fillStyle = css("--card"); ctx.lineWidth = 1.2 * ratio;
        figures.mean.forEach((v, i) => {
          if (v == null) return;
          const x = u.valToPos(spec.x.values[i], "x", true), y = (value) => u.valToPos(value, "y", true);
          if (x < u.bbox.left - 1 || x > u.bbox.left + u.bbox.width + 1) return;
          ctx.beginPath(); ctx.moveTo(x, y(figures.low[i])); ctx.lineTo(x, y(figures.high[i])); ctx.stroke();
          ctx.beginPath(); markers[k % markers.length](ctx, x, y(v), 3.2 * ratio); ctx.fill(); ctx.stroke();
        });
        ctx.restore();
      });
    };
    const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
    const named = (text) => (small ? {} : { label: text, labelSize: 18, labelGap: 0, labelFont: "12px system-ui, sans-serif" });
    const tight = small ? { font: "10px system-ui, sans-serif", space: 34 } : {};
    return {
      width, height: small ? Math.round(Math.max(110, width * 0.6)) : Math.max(210, Math.min(310, Math.round(width * 0.62))), series, bands,
      scales: { x: { time: false }, y: { range: spec.range } },
      axes: [
        { ...axis, ...tight, ...named(spec.x.name), size: small ? 26 : 34, values: (u, ticks) => ticks.map(short) },
        { ...axis, ...tight, ...named(spec.unit), size: small ? 36 : 50, values: (u, ticks) => ticks.map(short) },
      ],
      cursor: { y: false, points: { size: 7 } },
      legend: {
        show: !small,
        markers: {
          width: (u, i) => (i < firstPublished && series[i].dash ? 2 : 0),
          dash: () => "dashed",
          stroke: (u, i) => series[i].stroke,
          fill: (u, i) => (i >= firstPublished || series[i].dash ? "transparent" : series[i].stroke),
        },
      },
      hooks: {
        drawAxes: [seedLines],
        draw: [publishedPoints],
        setSeries: [(u, i, change) => {
          if (i == null || change.show == null) return;
          for (const edge of [i + 1, i + 2]) {
            if (u.series[edge]?.class === "band-edge") u.setSeries(edge, { show: change.show }, false);
          }
        }],
      },
    };
  }

  function columns(spec) {
    const rows = [spec.x.values];
    for (const curve of spec.curves) {
      rows.push(curve.mean);
      if (curve.low && spec.spread === "band") rows.push(curve.high, curve.low);
    }
    for (const figures of spec.published || []) rows.push(figures.mean);
    return rows;
  }

  // The y axis holds what hooks draw beyond the series: each seed, and published ranges.
  function rangeOf(spec) {
    if (spec.range) return spec.range;
    const extra = (spec.published || []).flatMap((f) => [...f.low, ...f.high]).filter((v) => v != null);
    if (spec.spread === "seeds") spec.curves.forEach((c) => { for (const v of [...(c.low || []), ...(c.high || [])]) if (v != null) extra.push(v); });
    if (!extra.length) return undefined;
    const low = extra.reduce((a, b) => Math.min(a, b)), high = extra.reduce((a, b) => Math.max(a, b));
    return (u, min, max) => uPlot.rangeNum(Math.min(min ?? low, low), Math.max(max ?? high, high), 0.1, true);
  }

  function button(text, kind, title, act) {
    const made = document.createElement("button");
    made.type = "button"; made.className = kind; made.textContent = text; made.title = title;
    made.addEventListener("click", act);
    return made;
  }

  function draw(chart) {
    chart.stale = false;
    const spec = chart.build();
    spec.range = rangeOf(spec);
    const small = chart.figure.parentElement.classList.contains("small") && !chart.figure.classList.contains("wide");
    chart.plot?.destroy();
    chart.figure.replaceChildren();
    const caption = document.createElement("figcaption"), title = document.createElement("span");
    title.textContent = (small && spec.brief) || spec.title || "";
    title.title = spec.title || "";
    caption.append(title);
    if (chart.figure.parentElement.classList.contains("small")) {
      caption.append(button(small ? "⤢" : "⤡", "enlarge", small ? "Larger, with a legend" : "Small again", () => {
        chart.figure.classList.toggle("wide");
        draw(chart);
      }));
    }
    caption.append(button("CSV", "csv", "Download these curves as CSV", () => download(spec.file || spec.title || chart.figure.id, chartRows(chart.build()))));
    chart.figure.append(caption);
    if (!spec.curves.length) {
      const empty = document.createElement("div");
      empty.className = "empty";
      empty.textContent = "nothing recorded";
      chart.figure.append(empty);
      chart.plot = null;
      return;
    }
    const style = getComputedStyle(chart.figure);
    const width = chart.figure.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    chart.plot = new uPlot(options(Math.max(150, width), spec, small), columns(spec), chart.figure);
    chart.width = chart.figure.clientWidth;
    chart.figure.style.minHeight = "";
    chart.figure.querySelectorAll(".u-legend .u-series:not(.band-edge) th").forEach((label, i) => {
      if (i === 0) return; // the first row is the frame counter
      label.tabIndex = 0;
      label.setAttribute("role", "button");
      label.title = "show or hide";
      label.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); label.click(); }
      });
    });
  }

  // Only what is near the screen is drawn; the rest is drawn when it comes near.
  function redraw(some) {
    for (const chart of some) {
      if (chart.visible) draw(chart);
      else chart.stale = true;
    }
  }
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const chart = charts.find((c) => c.figure === target);
      if (!chart) continue;
      chart.visible = isIntersecting;
      if (isIntersecting && chart.stale) draw(chart);
    }
  }, { rootMargin: "400px 0px" });
  window.addEventListener("beforeprint", () => charts.forEach((chart) => { if (chart.stale) draw(chart); }));
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = charts.find((c) => c.figure === target);
      if (chart?.plot && Math.abs(chart.width - target.clientWidth) > 4) draw(chart);
    }
  });

  function addChart(figure, build) {
    const chart = { figure, build, plot: null, visible: false, stale: true };
    charts.push(chart);
    resized.observe(figure);
    near.observe(figure);
    return chart;
  }

  function newFigure(parent, height) {
    const figure = document.createElement("figure");
    figure.className = "chart";
    figure.style.minHeight = `${height}px`; // until it is drawn
    parent.append(figure);
    return figure;
  }

  function fill(select, choices) {
    for (const [value, text] of choices) select.add(new Option(text, value));
  }

  // Learning curves: which returns, on which scale, how the spread is shown, how labels share panels.
  const [returnsSelect, spreadSelect, scaleSelect, panelsSelect] = ["returns", "spread", "scale", "panels"].map(byId);
  const kinds = { evaluation: "evaluation", training: "training" };
  const published = data.envs.some((env) => env.returns.training?.published.length);
  if (published) kinds.training += ", and published figures";
  fill(returnsSelect, Object.entries(kinds).filter(([kind]) => data.envs.some((env) => env.returns[kind])));
  fill(scaleSelect, data.scales);
  const unique = (key) => [...new Set(data.labels.map((label) => label[key]))];
  fill(panelsSelect, [["", "a game"], ["agent", "a game and agent"], ["strategy", "a game and replay"]]);
  byId("panels-label").hidden = unique("agent").length < 2 || unique("strategy").length < 2;

  const units = { return: "return", minmax: "return, min–max scaled", human: "human-normalised return" };
  const unitNow = (kind = returnsSelect.value) => `${kind} ${units[scaleSelect.value]}`;
  const rescale = (env, values) => {
    const ends = env.ends[scaleSelect.value];
    if (!ends || !values) return values;
    const span = Math.abs(ends[1] - ends[0]);
    return values.map((v) => (v == null ? null : span ? (v - ends[0]) / span : 0.5));
  };
  const scaled = (env, curve) => ({
    ...curve, mean: rescale(env, curve.mean), low: rescale(env, curve.low), high: rescale(env, curve.high),
    lines: curve.lines && Object.fromEntries(Object.entries(curve.lines).map(([run, values]) => [run, rescale(env, values)])),
  });
  const family = data.envs[0]?.name.split(":")[0] + ":"; // in small panels a family that all share is left out
  const shortName = (name) => (data.envs.every((env) => env.name.startsWith(family)) ? name.slice(family.length) : name);
  function curveSpec(env, part) {
    // A game that was never evaluated shows its training returns, and says so.
    const kind = env.returns[returnsSelect.value] ? returnsSelect.value : Object.keys(env.returns)[0];
    const found = env.returns[kind];
    const other = kind && kind !== returnsSelect.value ? ` (${kind} returns)` : "";
    const belongs = (curve) => !part || data.labels[curve.label][panelsSelect.value] === part;
    return {
      title: (part ? `${env.name}: ${part}` : env.name) + other,
      brief: (part ? `${shortName(env.name)}: ${part}` : shortName(env.name)) + other,
      file: `${env.name} ${part || ""} ${kind} returns`,
      x: { name: "frames", values: found ? found.frames : [] },
      unit: unitNow(kind),
      spread: spreadSelect.value,
      curves: found ? found.curves.filter(belongs).map((curve) => scaled(env, curve)) : [],
      published: (found?.published || []).map((figures) => scaled(env, figures)),
    };
  }
  let curveCharts = [];
  function layCurves() {
    for (const chart of curveCharts) {
      chart.plot?.destroy();
      near.unobserve(chart.figure); resized.unobserve(chart.figure);
      charts.splice(charts.indexOf(chart), 1);
    }
    const parent = byId("curve-charts");
    parent.replaceChildren();
    const parts = panelsSelect.value ? unique(panelsSelect.value) : [null];
    const panels = data.envs.flatMap((env) => parts.map((part) => [env, part]))
      .filter(([env, part]) => !part || Object.values(env.returns).some((kind) => kind.curves.some((c) => data.labels[c.label][panelsSelect.value] === part)));
    parent.classList.toggle("small", panels.length > 6);
    curveCharts = panels.map(([env, part]) => addChart(newFigure(parent, panels.length > 6 ? 160 : 330), () => curveSpec(env, part)));
    noteAxes();
  }
  function noteAxes() {
    const small = byId("curve-charts").classList.contains("small");
    byId("axes-note").textContent = small ? `In every panel: ${unitNow()} (up) over frames (across).` : "";
  }
  layCurves();
  panelsSelect.addEventListener("change", layCurves);
  for (const select of [returnsSelect, spreadSelect, scaleSelect]) {
    select.addEventListener("change", () => { noteAxes(); redraw(curveCharts); });
  }

  // Performance profile: a step down at each score.
  if (data.profile && byId("profile")) {
    addChart(byId("profile"), () => ({
      title: "", file: "performance profile", x: { name: data.profile.unit, values: data.profile.x },
      unit: "share of runs above τ", curves: data.profile.curves, range: [0, 1.02], steps: true,
    }));
  }

  // Diagnostics of one game at a time.
  const envSelect = byId("diagnostic-env");
  fill(envSelect, data.envs.map((env, i) => [i, env.name]));
  const metricSpec = (metric) => {
    const env = data.envs[envSelect.value];
    // The first and the third are read against 0 and 1; a share of decayed mass may be small and still matter.
    const whole = ["effective_share", "memory.collapse"].includes(metric.key);
    const share = ["memory.decayed_share", "memory.never_replayed_share"].includes(metric.key) || metric.key.includes("mass_from");
    return {
      title: metric.title,
      file: `${env ? env.name : ""} ${metric.title}`,
      x: { name: "frames", values: env ? env.diagnostics.frames : [] },
      unit: metric.unit,
      spread: "band",
      curves: env ? env.diagnostics.curves[metric.key] || [] : [],
      range: whole ? [-0.02, 1.02] : share ? (u, low, high) => [0, Math.max(0.01, 1.1 * high)] : undefined,
    };
  };
  const shown = data.metrics.slice(0, data.diagnostics_shown);
  const diagnosticCharts = shown.map((metric) => addChart(newFigure(byId("diagnostic-charts"), 330), () => metricSpec(metric)));
  const metricSelect = byId("metric");
  const others = data.metrics.slice(data.diagnostics_shown);
  fill(metricSelect, others.map((metric, i) => [i, metric.title]));
  const helpText = () => { byId("metric-help").textContent = others[metricSelect.value].help; };
  const metricChart = addChart(byId("metric-chart"), () => metricSpec(others[metricSelect.value]));
  envSelect.addEventListener("change", () => redraw([...diagnosticCharts, metricChart]));
  metricSelect.addEventListener("change", () => { helpText(); redraw([metricChart]); });
  helpText();

  // One switch a label, for all charts.
  data.labels.forEach((label, i) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.setAttribute("aria-pressed", "true");
    const dot = document.createElement("i");
    dot.className = "dot";
    dot.style.setProperty("--dot", `var(--series-${i})`);
    chip.append(dot, label.name);
    chip.addEventListener("click", () => {
      const show = hidden.has(i);
      if (show) hidden.delete(i); else hidden.add(i);
      chip.setAttribute("aria-pressed", String(show));
      redraw(charts);
    });
    byId("chips").append(chip);
  });

  // A run's details are made when they are asked for.
  const element = (name, text) => { const made = document.createElement(name); made.textContent = text; return made; };
  byId("run-list").addEventListener("toggle", (event) => {
    const details = event.target, run = data.runs[details.dataset.run];
    if (!run || details.childElementCount > 1) return;
    const facts = document.createElement("dl");
    for (const [key, value] of run.facts) facts.append(element("dt", key), element("dd", value));
    details.append(facts, element("p", "Started with"), element("pre", run.command), element("p", "To repeat it"), element("pre", run.repeat));
    if (run.settings) details.append(element("p", "Settings of its own"), element("pre", run.settings));
  }, true);

  // Tables: a click on a heading sorts by it, a second click the other way.
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("th")];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.value;
      const numeric = head.classList.contains("num");
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === ""); // missing values stay last
        const order = numeric ? x - y : x.localeCompare(y, "en", { numeric: true });
        return down ? -order : order;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    }));
  }

  applyTheme();
})();
