// One episode: its steps as bars, and one step with its observation.
const TOP = 14, LANE = 170, KEPT = 24;

class StepsView {
  constructor(canvas, colours) { this.canvas = canvas; this.colours = colours; }

  x(k) { return LEFT + (k / this.steps.length) * (this.width - LEFT - RIGHT); }

  draw(m, selected) {
    this.steps = selected.steps;
    const { g, width, height } = prepare(this.canvas, 316), at = this.steps.indexOf(selected.at);
    this.width = width;
    g.fillStyle = this.colours().mark;
    g.fillRect(this.x(at) - 1, TOP - 8, this.wide() + 2, height - TOP);
    const key = `${m.name} steps ${selected.episode}`;
    if (!layers.has(key)) this.forget();
    g.drawImage(layer(key, width, height, (g) => this.paint(g, width, height, m, selected.episode)), 0, 0, width, height);
  }

  wide() { return Math.max(1, (this.width - LEFT - RIGHT) / this.steps.length - (this.steps.length < 200 ? 1 : 0)); }

  // Of the episodes seen before only the last few stay painted.
  forget() {
    const old = [...layers.keys()].filter((key) => key.includes(" steps "));
    for (const key of old.slice(0, -KEPT)) layers.delete(key);
  }

  paint(g, width, height, m, episode) {
    const c = this.colours(), { priority, own, replays, reward } = m.columns, wide = this.wide(), base = TOP + LANE;
    let most = 1e-300, mostReplays = 1, mostReward = 1e-300;
    const errors = this.steps.map((i) => m.tdOf(i)[0]);
    this.steps.forEach((i, k) => {
      most = Math.max(most, priority[i], errors[k] ?? 0);
      mostReplays = Math.max(mostReplays, replays[i]);
      mostReward = Math.max(mostReward, Math.abs(reward[i]));
    });
    g.strokeStyle = c.line;
    g.fillStyle = c.dim;
    g.textAlign = "right";
    for (const t of [0, 0.5, 1]) {
      const y = base - t * (LANE - 6);
      g.beginPath(); g.moveTo(LEFT, y); g.lineTo(width - RIGHT, y); g.stroke();
      g.fillText(digits(t * most), LEFT - 6, y + 4);
    }
    this.steps.forEach((i, k) => {
      const x = this.x(k), tall = (priority[i] / most) * (LANE - 6), mine = own ? (own[i] / most) * (LANE - 6) : tall;
      g.fillStyle = c.source[m.ownSource(i)];
      g.fillRect(x, base - Math.min(mine, tall), wide, Math.min(mine, tall));
      if (m.source[i] === DECAY) { g.fillStyle = c.source[DECAY]; g.fillRect(x, base - tall, wide, tall - Math.min(mine, tall)); }
      g.fillStyle = c.high;
      const r = (replays[i] / mostReplays) * 40;
      g.fillRect(x, base + 58 - r, wide, r);
      g.fillStyle = reward[i] < 0 ? c.bad : c.good;
      const w = (Math.abs(reward[i]) / mostReward) * 16;
      g.fillRect(x, reward[i] < 0 ? base + 90 : base + 90 - w, wide, w);
      g.fillStyle = c.ink;
      if (errors[k] != null) g.fillRect(x + wide / 2 - 1.5, base - (errors[k] / most) * (LANE - 6) - 1.5, 3, 3);
      if (m.draws[i]) { g.beginPath(); g.moveTo(x + wide / 2, TOP - 3); g.lineTo(x + wide / 2 - 4, TOP - 10); g.lineTo(x + wide / 2 + 4, TOP - 10); g.fill(); }
    });
    g.fillStyle = c.dim;
    g.textAlign = "right";
    g.fillText("priority", LEFT - 6, TOP - 2);
    g.fillText("replays", LEFT - 6, base + 34);
    g.fillText(`≤ ${whole(mostReplays)}`, LEFT - 6, base + 47);
    g.fillText("reward", LEFT - 6, base + 94);
    g.textAlign = "left";
    g.fillText(`step 1${m.episodes[episode].whole ? "" : " (earlier ones were overwritten)"}`, LEFT, height - 2);
    g.textAlign = "right";
    g.fillText(`step ${whole(this.steps.length)}`, width - RIGHT, height - 2);
  }

  stepAt(x) {
    const k = Math.floor(((x - LEFT) / (this.width - LEFT - RIGHT)) * this.steps.length);
    return this.steps[Math.min(this.steps.length - 1, Math.max(0, k))];
  }
}

// Evenly spaced hues: a board's planes have numbers, not colours.
function boardColours(planes) {
  const out = [[20, 22, 27]];
  for (let k = 0; k < planes; k++) {
    const hue = (k / planes) * 6;
    out.push([0, 4, 2].map((shift) => 255 * (0.25 + 0.75 * Math.min(1, Math.max(0, Math.abs(((hue + shift) % 6) - 3) - 1)))));
  }
  return out;
}

function drawPicture(canvas, kind, shape, rows, size, row) {
  const [h, w] = shape, image = new ImageData(w, h), from = row * size;
  let planes = 1;
  if (kind === "board") for (let k = 0; k < rows.length; k++) planes = Math.max(planes, rows[k]);
  const colours = kind === "board" ? boardColours(planes) : null;
  for (let k = 0; k < w * h; k++) {
    const v = rows[from + k];
    const c = kind === "rgb" ? rows.subarray(from + 3 * k, from + 3 * k + 3) : kind === "board" ? colours[v] : [v, v, v];
    image.data.set([c[0], c[1], c[2], 255], 4 * k);
  }
  canvas.width = w;
  canvas.height = h;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
