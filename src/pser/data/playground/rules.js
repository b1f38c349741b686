// The memory's rules for one episode, as the kernel has them (Brittain et al. 2019, Eqs. 4–10; Schaul et al. 2016).
const EPS = 1e-4;

const power = (x, a) => (a === 0.5 ? Math.sqrt(x) : a === 1 ? x : a === 0 ? 1 : Math.pow(x, a));
const derivedWindow = (rho) => (rho > 0 && rho < 1 ? Math.floor(Math.log(0.01) / Math.log(rho)) : 0);

class Episode {
  // rules: { kind: "PER" | "PSER", alpha, rho, eta, window, add }
  constructor(rules) {
    this.rules = rules;
    this.priority = [];
    this.own = []; // what its insertion or its own last replay gave
    this.replays = [];
    this.largest = 1; // the largest priority ever recorded
  }

  get length() { return this.priority.length; }
  get decays() { return this.rules.kind === "PSER" && this.rules.window > 0; }

  // MaxPrio without a TD error; with one CurrentTD, and decay on insertion.
  append(error = null) {
    const p = error === null ? this.largest : Math.abs(error) + EPS;
    this.priority.push(p);
    this.own.push(p);
    this.replays.push(0);
    this.largest = Math.max(this.largest, p);
    if (error !== null && this.decays) this.decay(this.length - 1, p);
  }

  // A batch: first every step takes its own update, from the priorities held before; then all decays are applied.
  update(steps, errors) {
    const fresh = new Map();
    steps.forEach((step, k) => {
      const p = Math.abs(errors[k]) + EPS;
      fresh.set(step, Math.max(p, fresh.get(step) ?? 0)); // drawn twice: the larger error, once
    });
    const eta = this.rules.kind === "PSER" ? this.rules.eta : 0;
    for (const [step, p] of fresh) {
      this.priority[step] = this.own[step] = Math.max(p, eta * this.priority[step]); // Eq. 10
      this.replays[step]++;
      this.largest = Math.max(this.largest, p);
    }
    if (this.decays) for (const step of [...fresh.keys()].sort((a, b) => a - b)) this.decay(step, fresh.get(step));
  }

  decay(step, p) {
    const { rho, window, add } = this.rules;
    for (let l = 1; l <= window && step - l >= 0; l++) {
      const decayed = Math.pow(rho, l) * p, held = this.priority[step - l];
      this.priority[step - l] = add ? Math.min(decayed + held, this.largest) : Math.max(decayed, held); // Eqs. 7, 6
    }
  }

  // P(i) = p^α / Σ p^α (Eq. 1).
  probabilities() {
    const mass = this.priority.map((p) => power(p, this.rules.alpha));
    const total = mass.reduce((a, b) => a + b, 0);
    return mass.map((m) => (total > 0 ? m / total : 1 / mass.length));
  }

  copy(rules) {
    const other = new Episode(rules);
    Object.assign(other, { priority: [...this.priority], own: [...this.own], replays: [...this.replays], largest: this.largest });
    return other;
  }
}
