// The page: which moment, which episode, which step; and the drawing of what changed.
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
try { theme = localStorage.getItem("pser-theme") || "auto"; } catch { /* storage may be closed to files */ }
const isDark = () => theme === "dark" || (theme === "auto" && darkSystem.matches);
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let held = null;
function colours() {
  if (held) return held;
  const p = isDark() ? data.colours.dark : data.colours.light;
  return (held = {
    source: [p[7], p[3], p[1], p[0]], good: p[2], bad: p[4], low: isDark() ? "#7b86d8" : "#a9c6ea", high: isDark() ? "#f2c4ff" : p[6],
    quiet: isDark() ? "#4a525e" : "#c3c9d1", ink: variable("--ink"), dim: variable("--dim"), line: variable("--line"), mark: variable("--line"),
  });
}

const state = { now: 0, id: null, at: null, episode: null, steps: null, order: "share" };
let moments = [], map, view;
const moment = () => moments[state.now];

// --- choosing -------------------------------------------------------------------------------------

function follow() { // the same transition at another moment
  const m = moment(), place = state.id == null ? -1 : state.id - m.oldest;
  if (place < 0 || place >= m.size) { state.at = state.episode = state.steps = null; return; }
  state.at = place;
  state.episode = m.episodeOf[place];
  state.steps = m.stepsOf(state.episode);
}

function chooseTransition(place) {
  state.id = moment().oldest + place;
  follow();
  changed();
}

function chooseEpisode(number) {
  const m = moment(), steps = m.stepsOf(number);
  let peak = steps[0];
  for (const i of steps) if (m.columns.priority[i] > m.columns.priority[peak]) peak = i;
  chooseTransition(peak);
}

// --- drawing --------------------------------------------------------------------------------------

let asked = 0, later = 0, frames = 0;
function redraw() {
  if (asked) return;
  asked = requestAnimationFrame(() => {
    asked = 0;
    const m = moment();
    map.draw(byId("map"), m, state);
    map.drawMass(byId("mass"), m);
    map.drawReplays(byId("replays"), m);
    map.drawEpisodes(byId("episodes"), m, state);
    byId("steps-panel").hidden = !state.steps;
    byId("nothing").hidden = !!state.steps;
    if (state.steps) view.draw(m, state);
    frames++;
  });
}

let shown = null; // the transition whose facts and observation are on the page
function changed() {
  shown = null;
  showMoment();
  redraw();
  clearTimeout(later);
  later = setTimeout(showText, 80); // tables can wait until the slider rests
}

function showMoment() {
  const m = moment(), f = m.facts;
  const when = m.frames == null ? "" : `${whole(m.frames)} frames`;
  byId("when").textContent = moments.length > 1 ? `${when} (${state.now + 1} of ${moments.length})` : when;
  const facts = [
    [`transitions of ${whole(m.memory.capacity)}`, whole(f.size)], ["episodes", whole(m.episodes.length)],
    ["effective sample size", whole(f.effective)], ["mass by decay", m.rule.type === "PSER" ? percent(f.decayed) : "–"],
    ["never replayed", percent(f.never)], ["replays each", digits(f.replays)],
  ];
  byId("facts").replaceChildren(...facts.map(([name, value]) => {
    const card = document.createElement("div"), b = document.createElement("b");
    b.textContent = value;
    card.append(b, name);
    return card;
  }));
}

const whereNoted = () => moments.some((m) => m.batches[0]) // where to find it instead
  ? "The moments that were noted while training do." : "Train with --inspect-period-frames.";

function showText() {
  const m = moment();
  fillEpisodes(byId("episode-table"), m, state.order, state, chooseEpisode);
  byId("most-decayed").textContent = m.mostDecayed ? ` The most orange one holds ${percent(m.mostDecayed)} by decay.` : "";
  byId("episode-count").textContent = m.episodes.length > SHOWN ? `The first ${SHOWN} of ${whole(m.episodes.length)}.` : "";
  showLegend();
  const batches = m.batches[0];
  byId("batches").textContent = batches
    ? `Drawn: the last ${batches} batches of ${m.batches[1]}; ${whole(m.lastBatch.size)} different transitions of them are still here.`
    : `Which transitions the last batches drew is not known: a saved memory does not keep it. ${whereNoted()}`;
  byId("nothing").textContent = state.id == null
    ? "Click a point of the map, an episode's dot or a row of the table."
    : `Transition ${whole(state.id)} is not in memory at this moment.`;
  byId("map-mode").querySelector("[value=drawn]").disabled = !batches;
  if (state.steps) showStep();
}

async function showStep() {
  const m = moment(), i = state.at, e = m.episodes[state.episode], { priority, own, replays, reward, action, terminated } = m.columns;
  const [error, how] = m.tdOf(i), n = m.memory.n_step, step = state.steps.indexOf(i) + 1;
  byId("steps-title").textContent = `Episode from transition ${whole(m.oldest + e.first)}`;
  byId("steps-summary").textContent =
    `${whole(e.steps)} steps${e.whole ? "" : ", its beginning overwritten"}, ${e.ends ? "terminated" : "cut or still going"}; ` +
    `${n > 1 ? `${n}-step rewards add up to` : "reward"} ${digits(e.reward)}; ${percent(e.share)} of the mass, ${percent(e.mass > 0 ? e.decayed / e.mass : 0)} of that by decay.`;
  const signal = [null, "td"].includes(data.run.signal) ? "|δ|" : `signal (${data.run.signal} of δ)`;
  const facts = [
    ["step", `${whole(step)} of ${whole(e.steps)}`], ["transition", whole(m.oldest + i)], ["age", `${whole(m.size - 1 - i)} transitions`],
    ["priority", m.uniform ? "– (uniform replay)" : digits(priority[i])],
    ["came by", m.columns.raised?.[i] ? `${digits(own[i])}, the rest by decay` : SOURCES[m.source[i]].name],
    ["chance of replay", `${digits((100 * m.mass[i]) / m.total)}% a draw`],
    [signal, error == null ? how : `${digits(error)} (${how})`], ["replays", whole(replays[i])],
    ["last batches", m.batches[0] ? `drawn ${whole(m.draws[i])} times` : "not known"],
    [n > 1 ? `reward (${n} steps)` : "reward", digits(reward[i])], ["action", action ? whole(action[i]) : "–"],
    ["terminated", terminated[i] ? "yes" : "no"],
  ];
  byId("step-facts").replaceChildren(...facts.flatMap(([name, value]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name;
    dd.textContent = value;
    return [dt, dd];
  }));
  await showPicture(m, i);
  if (m === moment() && i === state.at) shown = state.id;
}

async function showPicture(m, i) {
  const kept = m.pictured.get(state.episode), { kind, shape, field } = m.pictures;
  const note = byId("picture-note"), canvas = byId("picture"), vector = byId("vector");
  canvas.hidden = kind === "vector" || !kept;
  vector.hidden = kind !== "vector" || !kept;
  if (!kept) {
    note.textContent = kind === "none" ? "Observations of this kind cannot be shown."
      : `Observations are kept of ${whole(m.pictures.episodes.length)} episodes (see the table); not of this one.`;
    return;
  }
  kept.loaded ??= picturesOf(m, kept);
  const { rows, size } = await kept.loaded;
  if (m !== moment() || i !== state.at) return;
  let row = 0;
  while (row + 1 < kept.places.length && kept.places[row + 1] <= i) row++;
  const exact = kept.places[row] === i;
  note.textContent = (field ? `Field ${field}. ` : "") + (kind === "board" ? "Each plane of the board has a colour. " : "") +
    (exact ? "" : `Of ${Math.round(m.episodes[state.episode].steps / kept.places.length)} steps one is kept: this is the nearest before.`);
  if (kind === "vector") {
    vector.replaceChildren(...Array.from(rows.subarray(row * size, (row + 1) * size), (v, k) => {
      const line = document.createElement("li");
      line.textContent = `${k}: ${digits(v)}`;
      return line;
    }));
  } else drawPicture(canvas, kind, shape, rows, size, row);
}

// --- events ---------------------------------------------------------------------------------------

function listen() {
  const slider = byId("slider");
  slider.max = moments.length - 1;
  slider.value = state.now = moments.length - 1;
  byId("time").hidden = moments.length < 2;
  const go = (k) => { state.now = k; slider.value = k; follow(); changed(); };
  slider.addEventListener("input", () => go(+slider.value));
  let timer = 0;
  byId("play").addEventListener("click", () => {
    clearInterval(timer);
    if (state.now === moments.length - 1) go(0);
    timer = setInterval(() => (state.now < moments.length - 1 ? go(state.now + 1) : clearInterval(timer)), 500);
  });
  byId("map-mode").addEventListener("change", (event) => { map.mode = event.target.value; showLegend(); redraw(); ahead(); });
  byId("order").addEventListener("change", (event) => { state.order = event.target.value; showText(); });
  for (const [key, [name]] of Object.entries(ORDERS)) byId("order").add(new Option(name, key));

  const canvas = byId("map");
  const place = (event) => map.nearest(canvas, moment(), event.offsetX, event.offsetY);
  canvas.addEventListener("click", (event) => { const i = place(event); if (i >= 0) chooseTransition(i); });
  canvas.addEventListener("pointermove", (event) => {
    const i = place(event), m = moment();
    byId("hover").textContent = i < 0 ? "" :
      `Transition ${whole(m.oldest + i)}: priority ${digits(m.columns.priority[i])}, by ${SOURCES[m.source[i]].name}; replayed ${whole(m.columns.replays[i])} times; in an episode of ${whole(m.episodes[m.episodeOf[i]].steps)} steps.`;
  });
  byId("episodes").addEventListener("click", (event) => {
    const e = map.nearestEpisode(event.target, moment(), event.offsetX, event.offsetY);
    if (e != null) chooseEpisode(e);
  });
  const steps = byId("steps");
  const pick = (event) => { if (state.steps) chooseTransition(view.stepAt(event.offsetX)); };
  steps.addEventListener("click", pick);
  steps.addEventListener("pointermove", (event) => { if (event.buttons & 1) pick(event); });
  steps.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || !state.steps) return;
    event.preventDefault();
    const k = state.steps.indexOf(state.at) + move;
    if (k >= 0 && k < state.steps.length) chooseTransition(state.steps[k]);
  });
  byId("theme").addEventListener("click", () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme] ?? "auto";
    try { localStorage.setItem("pser-theme", theme); } catch { /* not remembered, that is all */ }
    applyTheme();
  });
  darkSystem.addEventListener("change", applyTheme);
  let width = 0;
  new ResizeObserver(([{ target }]) => {
    if (target.clientWidth === width) return;
    width = target.clientWidth;
    layers.clear();
    redraw();
    ahead();
  }).observe(byId("map").parentElement);
}

function showLegend() {
  const c = colours(), items = map.mode === "source"
    ? SOURCES.map((s, k) => [c.source[k], `${s.name} (${percent(moment().shares[k])} of the mass): ${s.help}`]).filter((_, k) => moments.some((m) => m.shares[k] > 0))
    : map.mode === "replays" ? [[c.quiet, "never"], [c.low, "once"], [c.high, "most often"]]
    : [[c.source[DECAY], "drawn by the last batches"], [c.quiet, "not drawn"]];
  byId("legend").replaceChildren(...items.map(([colour, text]) => {
    const item = document.createElement("span"), dot = document.createElement("i");
    dot.className = "dot";
    dot.style.setProperty("--dot", colour);
    item.append(dot, text);
    return item;
  }));
}

function applyTheme() {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").querySelector("span").textContent = theme;
  held = null;
  layers.clear();
  showLegend();
  redraw();
  ahead();
}

// Paint the other moments while nobody waits, so that the slider finds them ready.
let waiting = 0;
function ahead() {
  clearTimeout(waiting);
  const paint = (k) => {
    if (k < 0) return;
    const m = moments[k], width = byId("map").parentElement.clientWidth;
    map.mapLayer(m, width, map.height(byId("map")));
    layer(`${m.name} mass`, width, 90, (g) => map.paintMass(g, width, 90, m));
    layer(`${m.name} replays`, width, 70, (g) => map.paintReplays(g, width, 70, m));
    layer(`${m.name} episodes`, width, 150, (g) => map.paintEpisodes(g, width, 150, m));
    waiting = setTimeout(() => paint(k - 1), 4);
  };
  waiting = setTimeout(() => paint(moments.length - 1), 50);
}

(async () => {
  for (const described of data.moments) moments.push(new Moment(described, await columnsOf(described)));
  map = new MemoryMap(moments, colours);
  view = new StepsView(byId("steps"), colours);
  listen();
  applyTheme();
  if (moment().size) {
    const leading = episodeRows(moment(), moment().shares[DECAY] > 0 ? "decayed" : "share");
    chooseEpisode((leading.find((e) => moment().pictured.has(e.number)) ?? leading[0]).number);
  } else changed();
  window.pserInspect = { state, moments, map, frames: () => frames, shown: () => shown, choose: (id) => chooseTransition(id - moment().oldest) };
  document.documentElement.dataset.ready = "yes";
})();
