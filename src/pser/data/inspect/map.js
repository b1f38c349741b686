// The whole memory at once: age × priority, and below it, on the same axis, mass, replays and episodes.
const LEFT = 56, RIGHT = 10;

// What does not depend on the choice of the reader is drawn once a moment, and then only copied.
const layers = new Map();
function layer(key, width, height, paint) {
  const dpr = window.devicePixelRatio || 1;
  let sheet = layers.get(key);
  if (!sheet) {
    sheet = document.createElement("canvas");
    sheet.width = Math.round(width * dpr);
    sheet.height = Math.round(height * dpr);
    const g = sheet.getContext("2d");
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    g.font = "11px system-ui, sans-serif";
    paint(g);
    layers.set(key, sheet);
  }
  return sheet;
}

function prepare(canvas, height) {
  const width = canvas.parentElement.clientWidth, dpr = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(height * dpr)) {
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(height * dpr);
    canvas.style.height = `${height}px`;
  }
  const g = canvas.getContext("2d");
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "11px system-ui, sans-serif";
  return { g, width, height };
}

const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const mix = (a, b, t) => a.map((v, k) => v + (b[k] - v) * t);
const css = (c) => `rgb(${c.map(Math.round).join(",")})`;

class MemoryMap {
  constructor(moments, colours) {
    this.colours = colours; // () → { source: [hex…], ink, dim, line, low, high }
    this.span = Math.max(1, ...moments.map((m) => m.size));
    let low = Infinity, high = -Infinity;
    for (const m of moments) {
      const how = m.layout.priority;
      if (m.size) { low = Math.min(low, how.low); high = Math.max(high, how.high); }
    }
    if (!(high - low > 0.1)) { low -= 0.5; high += 0.5; }
    this.low = low - 0.03 * (high - low);
    this.high = high + 0.03 * (high - low);
    this.mode = "source";
    this.sheet = document.createElement("canvas");
  }

  x(m, i, width) { return LEFT + (1 - (m.size - 1 - i + 0.5) / this.span) * (width - LEFT - RIGHT); }
  y(p, height) {
    const t = p > 0 ? (Math.log(p) - this.low) / (this.high - this.low) : 0;
    return (1 - t) * (height - 22) + 2;
  }

  // One colour a transition, as a place in a palette of at most 256.
  codes(m) {
    m.codes ??= {};
    if (m.codes[this.mode]) return m.codes[this.mode];
    const codes = new Uint8Array(m.size), { replays } = m.columns;
    const most = Math.log2(1 + replays.reduce((top, r) => Math.max(top, r), 1));
    for (let i = 0; i < m.size; i++) {
      if (this.mode === "source") codes[i] = m.source[i];
      else if (this.mode === "replays") codes[i] = replays[i] ? 1 + Math.min(254, Math.round((Math.log2(1 + replays[i]) / most) * 254)) : 0;
      else codes[i] = m.draws[i] ? 1 : 0;
    }
    return (m.codes[this.mode] = codes);
  }

  palette() {
    const c = this.colours();
    if (this.mode === "source") return c.source.map(rgb);
    if (this.mode === "drawn") return [rgb(c.quiet), rgb(c.source[DECAY])];
    const out = [rgb(c.quiet)];
    for (let k = 1; k < 256; k++) out.push(mix(rgb(c.low), rgb(c.high), (k - 1) / 254));
    return out;
  }

  draw(canvas, m, selected) {
    const { g, width, height } = prepare(canvas, this.height(canvas)), c = this.colours(), { priority } = m.columns;
    g.drawImage(this.mapLayer(m, width, height), 0, 0, width, height);
    if (!selected?.steps) return;
    g.fillStyle = c.ink;
    for (const i of selected.steps) g.fillRect(this.x(m, i, width) - 1.5, this.y(priority[i], height) - 1.5, 3, 3);
    g.strokeStyle = c.ink;
    g.lineWidth = 2;
    g.beginPath(); g.arc(this.x(m, selected.at, width), this.y(priority[selected.at], height), 6, 0, 7); g.stroke();
    g.lineWidth = 1;
  }

  height(canvas) { return Math.round(Math.min(340, Math.max(220, canvas.parentElement.clientWidth * 0.4))); }
  mapLayer(m, width, height) {
    return layer(`${m.name} map by ${this.mode}`, width, height, (g) => this.paintMap(g, width, height, m));
  }

  paintMap(g, width, height, m) {
    const c = this.colours();
    const cell = m.size > 40000 ? 1 : m.size > 8000 ? 2 : 3;
    const inner = width - LEFT - RIGHT, bottom = height - 22;
    const w = Math.ceil(inner / cell), h = Math.ceil(bottom / cell);
    const { levels } = m.columns, codes = this.codes(m), palette = this.palette();
    const count = new Float32Array(w * h), red = new Float32Array(w * h), green = new Float32Array(w * h), blue = new Float32Array(w * h);
    const perAge = w / this.span, how = m.layout.priority;
    // Levels lie evenly over the logarithms, and so do rows.
    const perLevel = (((how.high - how.low) / 65534) * h) / (this.high - this.low), lowest = ((how.low - this.low) * h) / (this.high - this.low);
    const loud = this.mode === "drawn" ? 20 : 1; // the few that were drawn must not drown among the others
    for (let i = 0; i < m.size; i++) {
      const px = Math.min(w - 1, Math.max(0, Math.floor(w - (m.size - 1 - i + 0.5) * perAge)));
      const row = levels[i] ? lowest + (levels[i] - 1) * perLevel : 0;
      const at = px + w * Math.min(h - 1, Math.max(0, h - 1 - Math.floor(row)));
      const colour = palette[codes[i]], much = codes[i] ? loud : 1;
      count[at] += much;
      red[at] += much * colour[0];
      green[at] += much * colour[1];
      blue[at] += much * colour[2];
    }
    let most = 1;
    for (let k = 0; k < count.length; k++) if (count[k] > most) most = count[k];
    if (this.sheet.width !== w || this.sheet.height !== h) { this.sheet.width = w; this.sheet.height = h; }
    const sheet = this.sheet.getContext("2d"), image = sheet.createImageData(w, h), pixels = image.data;
    const full = Math.log2(1 + Math.min(most, 32));
    for (let k = 0; k < count.length; k++) {
      const n = count[k];
      if (!n) continue;
      pixels[4 * k] = red[k] / n;
      pixels[4 * k + 1] = green[k] / n;
      pixels[4 * k + 2] = blue[k] / n;
      pixels[4 * k + 3] = 110 + 145 * Math.min(1, Math.log2(1 + n) / full);
    }
    sheet.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.strokeStyle = c.line;
    g.fillStyle = c.dim;
    g.textAlign = "right";
    for (let d = Math.ceil(this.low / Math.LN10); d <= this.high / Math.LN10; d++) {
      const y = this.y(10 ** d, height);
      g.beginPath(); g.moveTo(LEFT, y); g.lineTo(width - RIGHT, y); g.stroke();
      g.fillText(digits(10 ** d), LEFT - 6, y + 4);
    }
    g.drawImage(this.sheet, LEFT, 0, inner, bottom);
    this.ages(g, width, height);
  }

  ages(g, width, height) {
    g.fillStyle = this.colours().dim;
    const parts = width < 600 ? 1 : 4;
    for (let k = 0; k <= parts; k++) {
      const age = (this.span * (parts - k)) / parts, x = LEFT + (k / parts) * (width - LEFT - RIGHT);
      g.textAlign = k === 0 ? "left" : k === parts ? "right" : "center";
      g.fillText(k === parts ? "newest" : k === 0 ? `${whole(age)} transitions ago` : whole(age), x, height - 6);
    }
  }

  // Mass by age, stacked by where it came from; the share of each column of pixels.
  drawMass(canvas, m) {
    const { g, width, height } = prepare(canvas, 90);
    g.drawImage(layer(`${m.name} mass`, width, height, (g) => this.paintMass(g, width, height, m)), 0, 0, width, height);
  }

  paintMass(g, width, height, m) {
    const c = this.colours();
    const inner = width - LEFT - RIGHT, cell = 2, w = Math.ceil(inner / cell), sums = SOURCES.map(() => new Float64Array(w));
    for (let i = 0; i < m.size; i++) {
      sums[m.source[i]][this.column(m, i, w)] += m.mass[i];
    }
    let most = 0;
    for (let k = 0; k < w; k++) most = Math.max(most, sums[0][k] + sums[1][k] + sums[2][k] + sums[3][k]);
    for (let k = 0; k < w; k++) {
      let y = height - 4;
      for (let s = 0; s < SOURCES.length; s++) {
        const tall = most ? (sums[s][k] / most) * (height - 12) : 0;
        g.fillStyle = c.source[s];
        g.fillRect(LEFT + k * cell, y - tall, cell, tall);
        y -= tall;
      }
    }
    this.label(g, ["mass", most && `up to ${percent(most / m.total)}`]);
  }

  drawReplays(canvas, m) {
    const { g, width, height } = prepare(canvas, 70);
    g.drawImage(layer(`${m.name} replays`, width, height, (g) => this.paintReplays(g, width, height, m)), 0, 0, width, height);
  }

  paintReplays(g, width, height, m) {
    const c = this.colours();
    const inner = width - LEFT - RIGHT, cell = 2, w = Math.ceil(inner / cell);
    const sum = new Float64Array(w), n = new Float64Array(w), { replays } = m.columns;
    for (let i = 0; i < m.size; i++) { const px = this.column(m, i, w); sum[px] += replays[i]; n[px]++; }
    let most = 0;
    for (let k = 0; k < w; k++) if (n[k]) most = Math.max(most, (sum[k] /= n[k]));
    g.fillStyle = c.high;
    for (let k = 0; k < w; k++) if (most) g.fillRect(LEFT + k * cell, height - 4 - (sum[k] / most) * (height - 12), cell, (sum[k] / most) * (height - 12));
    this.label(g, ["replays", `up to ${digits(most)}`]);
  }

  // Each episode a dot: its share of the mass, coloured by how much of that came by decay.
  drawEpisodes(canvas, m, selected) {
    const { g, width, height } = prepare(canvas, 150), c = this.colours();
    g.drawImage(layer(`${m.name} episodes`, width, height, (g) => this.paintEpisodes(g, width, height, m)), 0, 0, width, height);
    if (selected?.episode == null) return;
    const e = m.episodes[selected.episode];
    g.strokeStyle = c.ink;
    g.lineWidth = 2;
    g.beginPath(); g.arc(this.x(m, e.last, width), this.shareY(m, e.share, height), 7, 0, 7); g.stroke();
    g.lineWidth = 1;
  }

  shareEnds(m) {
    let low = Infinity, high = 0;
    for (const e of m.episodes) if (e.share > 0) { low = Math.min(low, e.share); high = Math.max(high, e.share); }
    return (m.shareEnds ??= high ? [Math.log(low / 1.3), Math.log(high * 1.3)] : [-1, 0]);
  }

  shareY(m, share, height) {
    const [low, high] = m.shareEnds ?? this.shareEnds(m);
    return share > 0 ? (1 - (Math.log(share) - low) / (high - low)) * (height - 28) + 4 : height - 24;
  }

  paintEpisodes(g, width, height, m) {
    const c = this.colours(), [low, high] = this.shareEnds(m);
    const size = m.episodes.length > 3000 ? 2 : 4, from = rgb(c.source[OWN]), to = rgb(c.source[DECAY]);
    const most = m.mostDecayed;
    g.strokeStyle = c.line;
    g.fillStyle = c.dim;
    g.textAlign = "right";
    for (let d = Math.ceil(low / Math.LN10); d <= high / Math.LN10; d++) {
      const at = this.shareY(m, 10 ** d, height);
      g.beginPath(); g.moveTo(LEFT, at); g.lineTo(width - RIGHT, at); g.stroke();
      g.fillText(`${+(100 * 10 ** d).toPrecision(1)}%`, LEFT - 6, at + 4);
    }
    const shades = Array.from({ length: 17 }, (_, k) => css(mix(from, to, k / 16)));
    for (const e of m.episodes) {
      g.fillStyle = shades[most > 0 ? Math.round((16 * e.decayed) / e.mass / most) : 0];
      g.fillRect(this.x(m, e.last, width) - size / 2, this.shareY(m, e.share, height) - size / 2, size, size);
    }
    this.ages(g, width, height);
  }

  column(m, i, w) { return Math.min(w - 1, Math.max(0, Math.floor(w - ((m.size - 1 - i + 0.5) * w) / this.span))); }
  label(g, lines) {
    g.fillStyle = this.colours().dim;
    g.textAlign = "right";
    lines.filter(Boolean).forEach((line, k) => wrapped(line, 9).forEach((part, j) => g.fillText(part, LEFT - 6, 14 + 13 * (k + j))));
  }

  // The transition nearest to a point of the map, or −1 if none is near.
  nearest(canvas, m, x, y) {
    const width = canvas.clientWidth, height = canvas.clientHeight, { priority } = m.columns;
    let best = -1, near = 144;
    for (let i = 0; i < m.size; i++) {
      const dx = this.x(m, i, width) - x;
      if (dx * dx > near) continue;
      const dy = this.y(priority[i], height) - y, d = dx * dx + dy * dy;
      if (d < near) { near = d; best = i; }
    }
    return best;
  }

  nearestEpisode(canvas, m, x, y) {
    const width = canvas.clientWidth, height = canvas.clientHeight;
    let best = null, near = 400;
    for (const e of m.episodes) {
      const d = (this.x(m, e.last, width) - x) ** 2 + (this.shareY(m, e.share, height) - y) ** 2;
      if (d < near) { near = d; best = e.number; }
    }
    return best;
  }
}

function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}
