"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const hidden = new Set();
  const charts = []; // { figure, build, plot }
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
    charts.forEach(draw);
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

  const colour = (name) => {
    const label = data.labels.find((l) => l.name === name);
    if (!label) return css("--dim");
    return isDark() ? label.dark : label.light;
  };

  // One chart: mean lines with a band from the lowest to the highest seed.
  function options(width, spec) {
    const series = [{ label: spec.x.name, value: (u, v) => short(v) }];
    const bands = [];
    for (const curve of spec.curves) {
      const stroke = curve.dashed ? css("--dim") : colour(curve.label);
      const show = !hidden.has(curve.label);
      series.push({
        label: curve.label, stroke, show, width: curve.dashed ? 1.25 : 2, dash: curve.dotted ? [2, 3] : curve.dashed ? [7, 4] : undefined,
        points: { show: curve.mean.filter((v) => v != null).length < 3 }, spanGaps: true,
        value: (u, v, si, i) => {
          if (i == null || v == null) return "";
          const range = curve.low ? ` (${short(curve.low[i])} to ${short(curve.high[i])})` : "";
          const seeds = curve.count ? `, ${curve.count[i]} seed${curve.count[i] === 1 ? "" : "s"}` : "";
          return short(v) + range + seeds;
        },
      });
      if (curve.low) {
        const at = series.length;
        const edge = { show, stroke: "transparent", width: 0, class: "band-edge", points: { show: false }, spanGaps: true };
        series.push({ ...edge, label: `${curve.label} high` }, { ...edge, label: `${curve.label} low` });
        bands.push({ series: [at, at + 1], fill: `${stroke}2e` });
      }
    }
    const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
    return {
      width, height: Math.max(200, Math.min(300, Math.round(width * 0.62))), series, bands,
      scales: { x: { time: false }, y: { range: spec.range } },
      axes: [
        { ...axis, values: (u, ticks) => ticks.map(short) },
        { ...axis, size: 52, values: (u, ticks) => ticks.map(short) },
      ],
      cursor: { y: false, points: { size: 7 } },
      legend: {
        markers: {
          width: (u, i) => (series[i].dash ? 2 : 0),
          dash: (u, i) => (series[i].dash?.[0] === 2 ? "dotted" : "dashed"),
          stroke: (u, i) => series[i].stroke,
          fill: (u, i) => (series[i].dash ? "transparent" : series[i].stroke),
        },
      },
      hooks: {
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
      if (curve.low) rows.push(curve.high, curve.low);
    }
    return rows;
  }

  function draw(chart) {
    const spec = chart.build();
    chart.plot?.destroy();
    chart.figure.replaceChildren();
    if (spec.title) {
      const caption = document.createElement("figcaption");
      caption.textContent = spec.title;
      chart.figure.append(caption);
    }
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
    chart.plot = new uPlot(options(Math.max(200, width), spec), columns(spec), chart.figure);
    chart.width = chart.figure.clientWidth;
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

  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = charts.find((c) => c.figure === target);
      if (chart?.plot && Math.abs(chart.width - target.clientWidth) > 4) draw(chart);
    }
  });

  function addChart(figure, build) {
    const chart = { figure, build, plot: null };
    charts.push(chart);
    resized.observe(figure);
    return chart;
  }

  function newFigure(parent) {
    const figure = document.createElement("figure");
    figure.className = "chart";
    parent.append(figure);
    return figure;
  }

  function fill(select, choices) {
    for (const [value, text] of choices) select.add(new Option(text, value));
  }

  // Learning curves, on the scale the reader chose.
  const scaleSelect = byId("scale");
  fill(scaleSelect, data.scales);
  const rescale = (env, values) => {
    const ends = env.ends[scaleSelect.value];
    if (!ends || !values) return values;
    const span = Math.abs(ends[1] - ends[0]);
    return values.map((v) => (v == null ? null : span ? (v - ends[0]) / span : 0.5));
  };
  for (const env of data.envs) {
    addChart(newFigure(byId("curve-charts")), () => ({
      title: env.name,
      x: { name: "frames", values: env.frames },
      curves: env.curves.map((c) => ({ ...c, mean: rescale(env, c.mean), low: rescale(env, c.low), high: rescale(env, c.high) })),
    }));
  }
  scaleSelect.addEventListener("change", () => charts.forEach(draw));

  // Performance profile.
  if (data.profile && byId("profile")) {
    addChart(byId("profile"), () => ({
      x: { name: "normalised score", values: data.profile.x }, curves: data.profile.curves, range: [0, 1.02],
    }));
  }

  // Diagnostics of one game at a time.
  const envSelect = byId("diagnostic-env");
  fill(envSelect, data.diagnostics.map((env, i) => [i, env.name]));
  const metricSpec = (metric) => {
    const env = data.diagnostics[envSelect.value];
    // The first and the third are read against 0 and 1; a share of decayed mass may be small and still matter.
    const whole = ["effective_share", "memory.collapse"].includes(metric.key);
    const share = ["memory.decayed_share", "memory.never_replayed_share"].includes(metric.key);
    return {
      title: metric.title,
      x: { name: "frames", values: env ? env.frames : [] },
      curves: env ? env.curves[metric.key] || [] : [],
      range: whole ? [-0.02, 1.02] : share ? (u, low, high) => [0, Math.max(0.01, 1.1 * high)] : undefined,
    };
  };
  const shown = data.metrics.slice(0, data.diagnostics_shown);
  for (const metric of shown) addChart(newFigure(byId("diagnostic-charts")), () => metricSpec(metric));
  const metricSelect = byId("metric");
  const others = data.metrics.slice(data.diagnostics_shown);
  fill(metricSelect, others.map((metric, i) => [i, metric.title]));
  const helpText = () => { byId("metric-help").textContent = others[metricSelect.value].help; };
  addChart(byId("metric-chart"), () => metricSpec(others[metricSelect.value]));
  envSelect.addEventListener("change", () => charts.forEach(draw));
  metricSelect.addEventListener("change", () => { helpText(); charts.forEach(draw); });
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
      const show = hidden.has(label.name);
      if (show) hidden.delete(label.name); else hidden.add(label.name);
      chip.setAttribute("aria-pressed", String(show));
      charts.forEach(draw);
    });
    byId("chips").append(chip);
  });

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
