// The playground: two memories of the same episode, the same clicks for both.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
try { theme = localStorage.getItem("pser-theme") || "auto"; } catch { /* storage may be closed to files */ }
const isDark = () => theme === "dark" || (theme === "auto" && darkSystem.matches);
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const palette = () => (isDark() ? data.colours.dark : data.colours.light);
const coloursOf = (bar) => () => ({ bar: palette()[bar], light: `${palette()[bar]}80`, ink: variable("--ink"), dim: variable("--dim"), line: variable("--line") });

const controls = { rho: 0.65, eta: 0.7, window: 10, derived: true, alpha: 0.5, add: false, initial: "td", steps: 24, surprise: 1, quiet: 0.02, click: "surprise", show: "chance" };
const memories = {};
let views, last = null, told = "", random = 1, script = 0;

const rulesOf = (kind) => ({ kind, alpha: controls.alpha, rho: controls.rho, eta: controls.eta, window: controls.window, add: controls.add });
const format = (v) => (v === 0 ? "0" : Math.abs(v) < 1e-3 ? v.toExponential(1) : `${+v.toPrecision(3)}`);

// --- what can be done -----------------------------------------------------------------------------

function begin() { // the episode is added anew
  for (const kind of ["PER", "PSER"]) {
    const memory = (memories[kind] = new Episode(rulesOf(kind)));
    for (let k = 0; k < controls.steps; k++) memory.append(controls.initial === "max" ? null : controls.quiet);
  }
  last = null;
  const how = controls.initial === "max" ? "MaxPrio: each step came with the largest priority so far, 1" : `CurrentTD: each step came with its own |δ| = ${format(controls.quiet)}`;
  say(`An episode of ${controls.steps} steps was added. ${how}.`);
  draw();
}

function replay(step, error, kinds = ["PER", "PSER"]) {
  const before = [...memories.PSER.priority];
  for (const kind of kinds) memories[kind].update([step], [error]);
  last = { step, error };
  const raised = memories.PSER.priority.filter((p, k) => k !== step && p > before[k]).length;
  const own = memories.PSER.priority[step], kept = own > Math.abs(error) + EPS ? ` (η kept ${format(own)} of ${format(before[step])})` : "";
  say(`Step ${step} was replayed and found |δ| = ${format(error)}. PER: p = ${format(memories.PER.priority[step])}. ` +
    `PSER: p = ${format(own)}${kept}, and ${raised} step${raised === 1 ? "" : "s"} before it ${raised === 1 ? "was" : "were"} raised.`);
  draw(step);
}

function clicked(step) { replay(step, controls.click === "surprise" ? controls.surprise : controls.quiet); }

function uniform() { // mulberry32: the same draws after every reset
  random = (random + 0x6d2b79f5) | 0;
  let t = Math.imul(random ^ (random >>> 15), 1 | random);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

function drawBatch(size) { // each memory draws by its own chances; the replays find nothing new
  const drawn = {};
  for (const kind of ["PER", "PSER"]) {
    const chances = memories[kind].probabilities();
    drawn[kind] = Array.from({ length: size }, () => {
      let left = uniform(), k = 0;
      while (k < chances.length - 1 && (left -= chances[k]) >= 0) k++;
      return k;
    });
    memories[kind].update(drawn[kind], drawn[kind].map(() => controls.quiet));
  }
  last = null;
  say(`Each memory drew ${size} by its own chances, and each replay found |δ| = ${format(controls.quiet)}. PER: ${drawn.PER.join(", ")}. PSER: ${drawn.PSER.join(", ")}.`);
  draw();
  return drawn;
}

const PRESETS = {
  surprise: {
    set: { rho: 0.65, derived: true, eta: 0.7, alpha: 0.5, add: false, initial: "td", steps: 24 },
    acts: [[18, 1]],
    text: "A surprise at step 18. PER will come back to it alone; PSER also to the steps that led there.",
  },
  figure4: {
    set: { rho: 0.65, derived: true, eta: 0.7, alpha: 0.5, add: false, initial: "td", steps: 16 },
    acts: [[7, 1], [13, 1]],
    ghost: 13, show: "priority",
    text: "Figure 4 of the paper: the decay from T₇ was there first, then one comes from T₁₃. MAX keeps p₇ at its own value; plain overwriting (dashed) would have left it ρ·p₈.",
  },
  collapse: {
    set: { rho: 0.65, derived: true, eta: 0, alpha: 0.5, add: false, initial: "td", steps: 24 },
    acts: [[18, 1], ...[17, 16, 15, 14, 13].map((step) => [step, 0.02])],
    text: "Priority collapse, η = 0: one quiet replay of a step takes away all that decay gave it. Try η = 0.7 on the same clicks.",
  },
  kept: {
    set: { rho: 0.65, derived: true, eta: 0.7, alpha: 0.5, add: false, initial: "td", steps: 24 },
    acts: [[18, 1], ...[17, 16, 15, 14, 13].map((step) => [step, 0.02])],
    text: "The same with η = 0.7: a replayed step keeps 0.7 of its priority, so it stays raised for some replays.",
  },
  add: {
    set: { rho: 0.65, derived: true, eta: 0.7, alpha: 0.5, add: true, initial: "td", steps: 24 },
    acts: [[18, 1], [15, 0.5], [18, 1]],
    text: "ADD: what decays is added to what is there, up to the largest priority ever recorded.",
  },
};

function preset(name) {
  const wanted = PRESETS[name], mine = ++script;
  Object.assign(controls, wanted.set, { show: wanted.show ?? controls.show });
  if (controls.derived) controls.window = derivedWindow(controls.rho);
  showControls();
  begin();
  const acts = [...wanted.acts], play = () => {
    if (mine !== script) return; // the reader has gone on
    const [step, error] = acts.shift();
    replay(step, error);
    if (step === wanted.ghost) {
      views.PSER.ghost = memories.PSER.priority.map((_, k) => (k < step && step - k <= controls.window ? Math.pow(controls.rho, step - k) * (error + EPS) : null));
      draw();
    }
    if (acts.length) setTimeout(play, still.matches ? 0 : 700);
    else say(wanted.text);
  };
  setTimeout(play, still.matches ? 0 : 500);
}

// --- what is seen ---------------------------------------------------------------------------------

function say(text) { told = text; byId("told").textContent = text; }

function draw(source = null) {
  const shown = {}, chance = controls.show === "chance";
  let top = 1e-9;
  for (const kind of ["PER", "PSER"]) {
    const memory = memories[kind], chances = memory.probabilities();
    shown[kind] = memory.priority.map((p, k) => {
      const value = chance ? chances[k] : p, share = Math.min(1, chance ? power(memory.own[k] / p, memory.rules.alpha) : memory.own[k] / p);
      return { value, own: value * (p > 0 ? share : 1), replays: memory.replays[k] };
    });
    top = Math.max(top, ...shown[kind].map((bar) => bar.value));
  }
  for (const kind of ["PER", "PSER"]) {
    views[kind].unit = chance ? "%" : "";
    views[kind].mark = last?.step ?? null;
    const delays = shown[kind].map((_, k) => (source != null && kind === "PSER" && k < source ? (source - k) * 70 : 0)); // it flows back
    views[kind].show(shown[kind], top * 1.08, delays);
  }
  showHover();
}

function showHover() {
  const k = views.PSER.hover;
  byId("hover").textContent = k == null || k >= memories.PSER.length ? "" : ["PER", "PSER"].map((kind) => {
    const m = memories[kind];
    return `${kind}, step ${k}: p = ${format(m.priority[k])}, chance ${(100 * m.probabilities()[k]).toFixed(2)}%, replayed ${m.replays[k]}×`;
  }).join(" · ");
}

function showControls() {
  for (const name of ["rho", "eta", "window", "alpha", "steps", "surprise", "quiet"]) {
    byId(name).value = controls[name];
    byId(`${name}-value`).textContent = format(controls[name]);
  }
  byId("derived").checked = controls.derived;
  byId("window").disabled = controls.derived;
  for (const [name, value] of [["decay", controls.add ? "add" : "max"], ["initial", controls.initial], ["click", controls.click], ["show", controls.show]])
    for (const radio of document.getElementsByName(name)) radio.checked = radio.value === value;
}

function apply(fresh) { // ρ, W, η and MAX/ADD act from the next replay on; what an episode comes with needs a new one
  if (controls.derived) controls.window = derivedWindow(controls.rho);
  views.PSER.ghost = null;
  script++;
  showControls();
  if (fresh) begin();
  else {
    for (const kind of ["PER", "PSER"]) memories[kind] = memories[kind].copy(rulesOf(kind));
    draw();
  }
}

function listen() {
  for (const name of ["rho", "eta", "window", "alpha", "steps", "surprise", "quiet"])
    byId(name).addEventListener("input", (event) => { controls[name] = +event.target.value; apply(name === "steps"); });
  byId("derived").addEventListener("change", (event) => { controls.derived = event.target.checked; apply(); });
  const radios = { decay: (v) => { controls.add = v === "add"; apply(); }, initial: (v) => { controls.initial = v; apply(true); },
    click: (v) => { controls.click = v; }, show: (v) => { controls.show = v; draw(); } };
  for (const [name, set] of Object.entries(radios))
    for (const radio of document.getElementsByName(name)) radio.addEventListener("change", () => set(radio.value));
  byId("reset").addEventListener("click", () => { random = 1; apply(true); });
  byId("draw").addEventListener("click", () => { views.PSER.ghost = null; script++; drawBatch(4); });
  for (const button of document.querySelectorAll("[data-preset]"))
    button.addEventListener("click", () => { views.PSER.ghost = null; preset(button.dataset.preset); });
  for (const kind of ["PER", "PSER"]) {
    const { canvas } = views[kind];
    const hover = (k) => { for (const view of Object.values(views)) { view.hover = k; view.animate(); } showHover(); };
    canvas.addEventListener("pointermove", (event) => hover(views[kind].stepAt(event.offsetX)));
    canvas.addEventListener("pointerleave", () => hover(null));
    canvas.addEventListener("click", (event) => {
      const step = views[kind].stepAt(event.offsetX);
      if (step == null) return;
      views.PSER.ghost = null;
      script++;
      clicked(step);
    });
    canvas.addEventListener("keydown", (event) => {
      const k = views[kind].hover ?? memories.PSER.length - 1, move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) { event.preventDefault(); hover(Math.min(memories.PSER.length - 1, Math.max(0, k + move))); }
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); script++; clicked(k); }
    });
  }
  byId("theme").addEventListener("click", () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme] ?? "auto";
    try { localStorage.setItem("pser-theme", theme); } catch { /* not remembered, that is all */ }
    applyTheme();
  });
  darkSystem.addEventListener("change", applyTheme);
  new ResizeObserver(() => Object.values(views).forEach((view) => view.animate())).observe(document.body);
}

function applyTheme() {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").querySelector("span").textContent = theme;
  Object.values(views).forEach((view) => view.animate());
}

if (window.self !== window.top) { // within the documentation, which tells its colours and gives as much room as is needed
  document.documentElement.classList.add("embedded");
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || !["light", "dark"].includes(event.data?.pserTheme)) return;
    theme = event.data.pserTheme;
    applyTheme();
  });
  new ResizeObserver(() => window.parent.postMessage({ pserHeight: document.body.scrollHeight }, "*")).observe(document.body);
}
views = { PER: new Bars(byId("per"), coloursOf(1)), PSER: new Bars(byId("pser"), coloursOf(0)) };
listen();
apply(true);
applyTheme();
window.pserPlayground = {
  controls, set: (values) => { Object.assign(controls, values); apply("initial" in values || "steps" in values || "quiet" in values); },
  begin, replay, clicked, drawBatch, preset, told: () => told, idle: () => !Object.values(views).some((view) => view.moving),
  read: () => Object.fromEntries(Object.entries(memories).map(([kind, m]) => [kind, { priority: m.priority, chance: m.probabilities(), replays: m.replays, largest: m.largest }])),
};
const asked = /^#show=(\w+)$/.exec(location.hash)?.[1];
if (PRESETS[asked]) preset(asked);
