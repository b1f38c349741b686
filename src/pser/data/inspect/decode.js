// Out of the page's script elements: base64, inflated, back into columns of numbers.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

async function inflate(name) {
  const text = atob(byId(name).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array };

// Bytes lie plane by plane: all lowest bytes first.
function planes(bytes, at, width, count, Type) {
  const out = new Uint8Array(count * width);
  for (let b = 0; b < width; b++) {
    const from = at + b * count;
    for (let i = 0; i < count; i++) out[i * width + b] = bytes[from + i];
  }
  return new Type(out.buffer);
}

// Level 0 is 0, levels 1 … 65535 lie evenly over the logarithms.
function fromLevels(levels, low, high) {
  const table = new Float64Array(65536);
  for (let k = 1; k < 65536; k++) table[k] = Math.exp(low + ((k - 1) / 65534) * (high - low));
  const out = new Float64Array(levels.length);
  for (let i = 0; i < levels.length; i++) out[i] = table[levels[i]];
  return out;
}

async function columnsOf(moment) {
  const bytes = await inflate(moment.name);
  const drawn = moment.batches[0] * moment.batches[1];
  const columns = {};
  let first = null;
  for (const [name, how] of Object.entries(moment.layout)) {
    const count = name === "drawn" || name === "td" ? drawn : moment.size;
    if (how.type !== "log") { columns[name] = planes(bytes, how.at, how.bytes, count, ARRAYS[how.type]); continue; }
    const levels = planes(bytes, how.at, 2, count, Uint16Array);
    if (how.like) for (let i = 0; i < count; i++) levels[i] ^= first[i];
    first ??= levels;
    if (name === "priority") columns.levels = levels;
    columns[name] = fromLevels(levels, how.low, how.high);
  }
  return columns;
}

// Pictures are stored as what changed since the row before.
async function picturesOf(moment, episode) {
  const { kind, shape } = moment.pictures;
  const bytes = await inflate(episode.block);
  const size = shape.reduce((a, b) => a * b, 1);
  if (kind === "vector") return { size, rows: new Float32Array(bytes.buffer, 0, episode.places.length * size) };
  for (let i = size; i < bytes.length; i++) bytes[i] ^= bytes[i - size];
  return { size, rows: bytes };
}
