// The table of episodes: those that lead by the chosen quantity.
const SHOWN = 50;
const ORDERS = {
  share: ["share of the mass", (e) => e.share],
  decayed: ["mass by decay", (e) => e.decayed],
  replays: ["replays per step", (e) => e.replays / e.steps],
  drawn: ["draws of the last batches", (e) => e.drawn],
  reward: ["reward", (e) => e.reward],
  steps: ["steps", (e) => e.steps],
  newest: ["newest first", (e) => e.last],
};

function episodeRows(m, order) {
  const key = ORDERS[order][1];
  return [...m.episodes].sort((a, b) => key(b) - key(a)).slice(0, SHOWN);
}

function fillEpisodes(table, m, order, selected, choose) {
  const body = table.tBodies[0], largest = Math.max(1e-300, ...m.episodes.slice(0, 1).map((e) => e.share), ...episodeRows(m, "share").map((e) => e.share));
  const rows = episodeRows(m, order).map((e) => {
    const row = document.createElement("tr");
    row.tabIndex = 0;
    row.dataset.episode = e.number;
    if (e.number === selected?.episode) row.setAttribute("aria-selected", "true");
    const cells = [
      [whole(m.oldest + e.first)], [whole(e.steps)], [digits(e.reward)], [percent(e.share), e.share / largest],
      [percent(e.mass > 0 ? e.decayed / e.mass : 0)], [digits(e.replays / e.steps)],
      [m.batches[0] ? whole(e.drawn) : "–"], [m.pictured.has(e.number) ? "yes" : ""],
    ];
    for (const [text, bar] of cells) {
      const cell = row.insertCell();
      cell.className = "num";
      cell.textContent = text;
      if (bar != null) { cell.classList.add("bar"); cell.style.setProperty("--bar", `${100 * bar}%`); }
    }
    row.addEventListener("click", () => choose(e.number));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(e.number); });
    return row;
  });
  body.replaceChildren(...rows);
}
