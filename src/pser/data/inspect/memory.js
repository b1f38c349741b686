// A moment of the memory: what its columns say of transitions and episodes.
const SOURCES = [
  { name: "insertion", help: "never replayed: the priority it came with" },
  { name: "η", help: "what was kept of an earlier priority" },
  { name: "own TD error", help: "found at its last replay" },
  { name: "decay", help: "raised by a surprise that came after it" },
];
const OWN = 2, DECAY = 3;

function massOf(p, rule) {
  const { type, alpha, variant } = rule;
  if (type === "Uniform") return null;
  if (variant === "rank") return null;
  if (alpha === 0.5) return Math.sqrt(p);
  return alpha === 1 ? p : Math.pow(p, alpha);
}

class Moment {
  constructor(described, columns) {
    Object.assign(this, described, { columns });
    this.rule = described.memory.prioritization;
    this.uniform = this.rule.type === "Uniform";
    const n = this.size, { priority, replays } = columns;
    this.mass = new Float64Array(n);
    this.decayed = new Float64Array(n);
    this.source = columns.source;
    this.shares = SOURCES.map(() => 0);
    let total = 0, squares = 0, never = 0, replayed = 0;
    for (let i = 0; i < n; i++) {
      const m = columns.mass ? columns.mass[i] : this.uniform ? 1 : massOf(priority[i], this.rule);
      this.mass[i] = m;
      total += m;
      squares += m * m;
      if (!replays[i]) never++;
      replayed += replays[i];
    }
    if (!(total > 0)) { this.mass.fill(1); total = squares = n; } // zero mass is sampled uniformly
    this.total = total;
    for (let i = 0; i < n; i++) {
      this.shares[this.source[i]] += this.mass[i] / total;
      if (this.source[i] === DECAY) this.decayed[i] = this.mass[i];
    }
    this.facts = {
      size: n, effective: n ? (total * total) / squares : 0, decayed: this.shares[DECAY],
      never: n ? never / n : 0, replays: n ? replayed / n : 0,
    };
    this.findEpisodes();
    this.findDraws();
  }

  findEpisodes() {
    const n = this.size, { back, replays, reward, terminated } = this.columns;
    this.episodeOf = new Int32Array(n);
    const list = (this.episodes = []);
    for (let i = 0; i < n; i++) {
      const before = back[i] > 0 ? i - back[i] : -1;
      let e;
      if (before >= 0) e = this.episodeOf[before];
      else {
        e = list.length;
        list.push({ number: e, first: i, last: i, steps: 0, mass: 0, decayed: 0, replays: 0, reward: 0, peak: 0, drawn: 0, whole: back[i] === 0 });
      }
      this.episodeOf[i] = e;
      const it = list[e];
      it.last = i;
      it.steps++;
      it.mass += this.mass[i];
      it.decayed += this.decayed[i];
      it.replays += replays[i];
      it.reward += reward[i];
      it.peak = Math.max(it.peak, this.columns.priority[i]);
    }
    this.mostDecayed = list.reduce((most, e) => Math.max(most, e.mass > 0 ? e.decayed / e.mass : 0), 0);
    for (const it of list) {
      it.share = it.mass / this.total;
      it.ends = terminated[it.last] === 1;
    }
    this.pictured = new Map();
    for (const kept of this.pictures.episodes) this.pictured.set(this.episodeOf[kept.places[0]], kept);
  }

  // How often the last batches drew each transition, and what TD error they told last.
  findDraws() {
    const [batches, size] = this.batches, { drawn, td } = this.columns;
    this.draws = new Uint16Array(this.size);
    this.lastBatch = new Map(); // place → [batch, TD error]
    for (let b = 0; b < batches; b++) {
      for (let k = b * size; k < (b + 1) * size; k++) {
        if (drawn[k] < 0) continue; // overwritten since
        this.draws[drawn[k]]++;
        this.episodes[this.episodeOf[drawn[k]]].drawn++;
        const held = this.lastBatch.get(drawn[k]);
        // Of one batch the larger error counts, as in the memory.
        if (!held || held[0] < b || Math.abs(td[k]) > Math.abs(held[1])) this.lastBatch.set(drawn[k], [b, td[k]]);
      }
    }
  }

  stepsOf(e) {
    const it = this.episodes[e], steps = [];
    for (let i = it.first; i <= it.last; i++) if (this.episodeOf[i] === e) steps.push(i);
    return steps;
  }

  // What its own part of a priority is to be drawn as: of a raised one only whether it was replayed is known.
  ownSource(i) {
    const { raised, replays, source } = this.columns;
    if (source[i] !== DECAY) return source[i];
    return raised?.[i] ? (replays[i] ? OWN : 0) : DECAY;
  }

  // |δ| of a transition: [value, how it is known]; value null if the memory cannot tell.
  tdOf(i) {
    const { priority, own, raised, replays, source } = this.columns, { eta = 0, eps = 0 } = this.rule;
    const held = this.lastBatch.get(i);
    if (held) {
      const ago = this.batches[0] - 1 - held[0];
      return [Math.abs(held[1]), ago ? `drawn ${ago} batch${ago > 1 ? "es" : ""} before the last` : "drawn by the last batch"];
    }
    if (this.uniform) return [null, "uniform replay keeps none"];
    const kept = Math.max(0, (own ? own[i] : priority[i]) - eps);
    if (!replays[i]) return data.run.initial === "td" ? [kept, "when it was added"] : [null, "never replayed"];
    if (source[i] === OWN) return [kept, "at its last replay"];
    if (source[i] === DECAY && !own) return [null, "with α = 0 decay leaves no trace"];
    if (eta > 0 || (source[i] === DECAY && !raised[i])) return [null, `at most ${digits(kept)}: η may have kept more than its own error`];
    return [kept, "at its last replay"];
  }
}

const digits = (v) => (v == null || Number.isNaN(v) ? "–" : v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2) : `${+v.toPrecision(3)}`);
const whole = (v) => Math.round(v).toLocaleString("en-US");
const percent = (v) => (v >= 0.1 ? `${(100 * v).toFixed(1)}%` : `${v < 1e-5 && v > 0 ? "<0.001" : +(100 * v).toPrecision(2)}%`);
