"""The page of `pser inspect`: one HTML file that needs nothing but itself."""

import json
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import pser
from pser.analysis.colours import DARK_PALETTE, PALETTE
from pser.analysis.inspect.encode import Block, text_of
from pser.analysis.inspect.sources import Source
from pser.analysis.packaged import packaged
from pser.records.inspection import Inspection

MOST_PICTURE_BYTES = 3_500_000
"""Of pictures, compressed, over all moments."""

SCRIPTS = ("decode.js", "memory.js", "map.js", "episodes.js", "steps.js", "page.js")


def render_page(source: Source, title: str) -> str:
    """The whole page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(packaged("inspect/page.html.j2")).render(_context(source, title))


def _context(source: Source, title: str) -> dict[str, Any]:
    blocks: dict[str, str] = {}
    notes = list(source.notes)
    moments, left, thinned = [], MOST_PICTURE_BYTES, 0
    for number, moment in reversed(list(enumerate(source.moments))):
        described, kept = _moment(f"m{number}", moment, left, blocks)
        moments.append(described)
        left -= kept
        thinned += len(moment.pictures.episodes) - len(described["pictures"]["episodes"])
    if thinned:
        notes.append(f"the observations of {thinned} episodes are left out: the page would grow too large")
    data = {
        "moments": moments[::-1],
        "run": _run(source.manifest),
        "colours": {"light": PALETTE, "dark": DARK_PALETTE},
    }
    return {
        "title": title,
        "subtitle": _subtitle(source),
        "notes": notes,
        "data": Markup(json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")),
        "blocks": {name: Markup(text) for name, text in blocks.items()},
        "version": pser.__version__,
        "css": Markup(packaged("report/page.css") + packaged("inspect/page.css")),
        "js": Markup("\n".join(packaged(f"inspect/{name}") for name in SCRIPTS)),
    }


def _moment(
    name: str, moment: Inspection, picture_bytes: int, blocks: dict[str, str]
) -> tuple[dict[str, Any], int]:
    """One moment as the page reads it, and the bytes its pictures take."""
    block, columns = Block(), moment.columns
    rule = moment.memory["prioritization"]
    priority = columns["priority"].astype(np.float64)
    alpha = rule.get("alpha", 0.0)
    if (
        "raised" in columns and alpha > 0.0
    ):  # with α = 0 all masses are equal, and decay leaves no trace in them
        own = np.where(columns["raised"], columns["own_mass"].astype(np.float64) ** (1.0 / alpha), priority)
        levels = block.add_logs("priority", priority, also=own)
        block.add_logs("own", own, also=priority, like=levels)
        block.add("raised", columns["raised"])
    else:
        block.add_logs("priority", priority)
    if "mass" in columns:
        block.add_logs("mass", columns["mass"].astype(np.float64))
    for column in ("source", "replays", "back", "reward", "terminated", "action"):
        if column in columns:
            block.add(column, columns[column])
    drawn = (moment.drawn_ids - moment.oldest_id).astype(np.int32)
    block.add("drawn", drawn.reshape(-1))
    block.add("td", moment.drawn_td.reshape(-1))
    blocks[name] = block.text()
    pictures: dict[str, Any] = {
        "kind": moment.pictures.kind,
        "shape": moment.pictures.shape,
        "field": moment.pictures.field,
    }
    episodes, used = [], 0
    for number, episode in enumerate(moment.pictures.episodes):
        if used + len(episode.data) > picture_bytes:
            continue
        used += len(episode.data)
        places = (episode.ids - moment.oldest_id).tolist()
        episodes.append({"block": f"{name}p{number}", "places": places})
        blocks[f"{name}p{number}"] = text_of(episode.data.tobytes())
    described = {
        "name": name,
        "frames": moment.frames,
        "size": len(moment),
        "oldest": moment.oldest_id,
        "memory": moment.memory,
        "layout": block.layout,
        "batches": list(moment.drawn_ids.shape),
        "pictures": {**pictures, "episodes": episodes},
    }
    return described, used


def _run(manifest: dict[str, Any] | None) -> dict[str, Any]:
    """What the page must know of the run to read its numbers."""
    if manifest is None:
        return {"known": False, "initial": None, "signal": None}
    replay = manifest["settings"].get("replay", {})
    return {
        "known": True,
        "initial": replay.get("initial", "max"),
        "signal": replay.get("priority_signal", "td"),
    }


def _subtitle(source: Source) -> str:
    if source.manifest is None:
        return str(source.path)
    run = source.manifest
    return f"{run['env']}, {run['label']}, seed {run['seed']} ({source.path})"
