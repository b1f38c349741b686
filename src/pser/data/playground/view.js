// Bars that grow and shrink: one canvas a memory.
const LEFT = 44, BOTTOM = 30, TOP = 14;
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

class Bars {
  constructor(canvas, colours) {
    this.canvas = canvas;
    this.colours = colours; // () → { bar, light, ink, dim, line }
    this.from = []; this.to = []; this.begin = []; this.top = 1; this.topFrom = 1;
    this.mark = null; this.ghost = null; this.hover = null;
    this.now = 0;
  }

  // Values to show: [{ value, own }]; each bar starts to move after its delay (ms).
  show(bars, top, delays) {
    const now = performance.now();
    this.from = bars.map((bar, k) => this.at(k, now) ?? { value: 0, own: 0 });
    this.topFrom = this.topAt(now);
    this.to = bars;
    this.top = top;
    this.begin = bars.map((_, k) => now + (still.matches ? -1e9 : delays?.[k] ?? 0));
    this.started = now;
    this.animate();
  }

  at(k, now) {
    if (!this.to[k]) return null;
    const t = Math.min(1, Math.max(0, (now - this.begin[k]) / 260)), eased = 1 - (1 - t) ** 3;
    const move = (a, b) => a + (b - a) * eased;
    return { value: move(this.from[k]?.value ?? 0, this.to[k].value), own: move(this.from[k]?.own ?? 0, this.to[k].own) };
  }

  topAt(now) {
    if (this.started === undefined) return this.top;
    const t = still.matches ? 1 : Math.min(1, (now - this.started) / 260);
    return this.topFrom + (this.top - this.topFrom) * t;
  }

  get moving() { return performance.now() < Math.max(this.started ?? 0, ...this.begin) + 270; }

  animate() {
    if (this.now) return;
    const frame = () => {
      this.now = 0;
      this.draw();
      if (this.moving) this.now = requestAnimationFrame(frame);
    };
    this.now = requestAnimationFrame(frame);
  }

  x(k) { return LEFT + (k / this.to.length) * (this.width - LEFT - 6); }
  stepAt(x) {
    const k = Math.floor(((x - LEFT) / (this.width - LEFT - 6)) * this.to.length);
    return k >= 0 && k < this.to.length ? k : null;
  }

  draw() {
    const { canvas } = this, dpr = window.devicePixelRatio || 1, width = canvas.parentElement.clientWidth, height = 190;
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(height * dpr);
    canvas.style.height = `${height}px`;
    this.width = width;
    const g = canvas.getContext("2d"), c = this.colours(), now = performance.now(), base = height - BOTTOM, tall = base - TOP;
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    g.font = "11px system-ui, sans-serif";
    const top = this.topAt(now), wide = (width - LEFT - 6) / this.to.length - 2;
    g.strokeStyle = c.line;
    g.fillStyle = c.dim;
    g.textAlign = "right";
    for (const t of [0, 0.5, 1]) {
      g.beginPath(); g.moveTo(LEFT, base - t * tall); g.lineTo(width - 6, base - t * tall); g.stroke();
      g.fillText(this.format(t * top), LEFT - 5, base - t * tall + 4);
    }
    const labels = Math.max(1, Math.ceil(24 / ((width - LEFT) / this.to.length)));
    this.to.forEach((_, k) => {
      const bar = this.at(k, now), x = this.x(k) + 1, full = Math.min(1, bar.value / top) * tall, own = Math.min(full, (bar.own / top) * tall);
      if (k === this.hover) { g.fillStyle = c.line; g.fillRect(x - 1, TOP - 6, wide + 2, tall + 6); }
      g.fillStyle = c.bar;
      g.fillRect(x, base - own, wide, own);
      g.fillStyle = c.light;
      g.fillRect(x, base - full, wide, full - own);
      if (k === this.mark) { g.fillStyle = c.ink; g.beginPath(); g.moveTo(x + wide / 2, base - full - 3); g.lineTo(x + wide / 2 - 5, base - full - 11); g.lineTo(x + wide / 2 + 5, base - full - 11); g.fill(); }
      g.fillStyle = k === this.hover ? c.ink : c.dim;
      g.textAlign = "center";
      if (k % labels === 0 || k === this.hover) g.fillText(String(k), x + wide / 2, base + 13);
      for (let r = 0; r < Math.min(this.to[k].replays, 5); r++) g.fillRect(x + 1 + r * 4, base + 19, 2.5, 5);
    });
    if (this.ghost) { // what plain overwriting would have left
      g.strokeStyle = c.ink;
      g.setLineDash([3, 3]);
      this.ghost.forEach((value, k) => {
        if (value == null) return;
        const y = base - Math.min(1, value / top) * tall;
        g.beginPath(); g.moveTo(this.x(k), y); g.lineTo(this.x(k) + wide + 2, y); g.stroke();
      });
      g.setLineDash([]);
    }
  }

  format(v) { return this.unit === "%" ? `${+(100 * v).toPrecision(2)}%` : `${+v.toPrecision(2)}`; }
}
