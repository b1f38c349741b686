"""Inspections: what a replay memory held at one moment, compact enough to take many of them during a run.

An inspection has the numbers of every transition, the observations of a few episodes, and the batches drawn last.
It is one file (`pser.files.container`); `pser inspect` shows them.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pser
from pser.errors import PserError
from pser.files.container import read_container, write_container
from pser.memory.saving import to_json
from pser.records.pictures import MOST_PER_EPISODE, Pictures, take_pictures

FORMAT = 1
PREFIX = "frames-"
PICTURE_STEPS = 4_000
"""Of about so many transitions the observation is kept."""

Drawn = tuple[NDArray[np.int64], NDArray[np.floating[Any]]]
"""A batch: the ids drawn, and the TD errors they were found to have (as they were given to the memory)."""


@dataclass(frozen=True)
class Inspection:
    """A replay memory at one moment."""

    frames: int | None
    """Of training when it was taken; None for a memory of its own."""
    memory: dict[str, Any]
    """The memory's settings: prioritization, capacity, environments, n-step, γ, max_priority."""
    oldest_id: int
    columns: dict[str, NDArray[Any]]
    """One value per transition, oldest first: priority, source (of pser.memory.index.SOURCES), replays, back, reward,
    terminated, action (if it is one small number); PSER: own_mass and whether decay has raised it above that; PER by
    rank: mass."""
    drawn_ids: NDArray[np.int64]
    """The last batches, newest last, one per row."""
    drawn_td: NDArray[np.float32]
    """What each of them told the memory."""
    pictures: Pictures

    def __len__(self) -> int:
        return len(self.columns["priority"])


def inspect_memory(
    memory: "pser.ReplayMemory",
    *,
    frames: int | None = None,
    drawn: Sequence[Drawn] = (),
    picture_steps: int = PICTURE_STEPS,
) -> Inspection:
    """Take an inspection of a memory as it is now; the memory is not changed."""
    columns = memory.columns()
    ids, mass = columns.pop("ids"), columns.pop("mass")
    kept = {
        "priority": columns["priority"].astype(np.float32),
        "source": columns["source"],
        "replays": _smallest(columns["replays"]),
        "back": _smallest(columns["back"]),
        "reward": columns["reward"].astype(np.float32),
        "terminated": columns["terminated"],
    }
    rule = memory.prioritization
    if isinstance(rule, pser.PSER):
        kept["own_mass"] = columns["own_mass"]
        kept["raised"] = mass.astype(np.float32) > columns["own_mass"]
    if isinstance(rule, pser.PER) and rule.variant == "rank":
        kept["mass"] = mass.astype(np.float32)
    action = columns["action"]
    if (
        action.ndim == 1
        and action.dtype.kind in "biu"
        and len(action)
        and 0 <= action.min() <= action.max() < 256
    ):
        kept["action"] = action.astype(np.uint8)
    chosen = choose_episodes(ids, columns["back"], mass, columns["replays"], picture_steps)
    sizes = {len(part) for batch in drawn for part in batch}
    if len(sizes) > 1:
        raise PserError(f"the batches drawn must be of one size, got {sorted(sizes)}: leave out the others")
    shape = (len(drawn), sizes.pop() if sizes else 0)
    return Inspection(
        frames=frames,
        memory={
            "prioritization": to_json(rule),
            "capacity": memory.capacity,
            "num_envs": memory.num_envs,
            "n_step": memory.n_step,
            "gamma": memory.gamma,
            "max_priority": memory.max_priority,
        },
        oldest_id=memory.index.oldest_id,
        columns=kept,
        drawn_ids=np.array([ids for ids, _ in drawn], np.int64).reshape(shape),
        drawn_td=np.array([td for _, td in drawn], np.float32).reshape(shape),
        pictures=take_pictures(memory, chosen),
    )


def first_steps(back: NDArray[Any]) -> NDArray[np.int64]:
    """The place (0: the oldest transition) of the first retained step of each transition's episode."""
    places = np.arange(len(back))
    before: NDArray[np.int64] = places - back
    before[before < 0] = places[before < 0]  # its predecessor was overwritten: here the retained part begins
    while True:  # each round doubles how far back is seen
        further = before[before]
        if (further == before).all():
            return before
        before = further


def choose_episodes(
    ids: NDArray[np.int64],
    back: NDArray[Any],
    mass: NDArray[np.float64],
    replays: NDArray[Any],
    steps: int,
) -> list[NDArray[np.int64]]:
    """Episodes worth a look, as their ids, together of about so many steps.

    In turn: the one with the most mass, the most replayed, the newest, and one from along the memory's age.
    """
    if not len(ids) or steps < 1:
        return []
    first, episode, length = np.unique(first_steps(back), return_inverse=True, return_counts=True)
    by_mass = np.argsort(-np.bincount(episode, mass), kind="stable")
    by_replays = np.argsort(-np.bincount(episode, replays) / length, kind="stable")
    newest = np.argsort(-first, kind="stable")
    spread = np.random.default_rng(0).permutation(len(first))
    cost = np.minimum(length, MOST_PER_EPISODE)
    chosen: set[int] = set()
    left = steps
    for candidate in np.stack([by_mass, by_replays, newest, spread], axis=1).reshape(-1).tolist():
        if candidate not in chosen and (cost[candidate] <= left or not chosen):
            chosen.add(candidate)
            left -= cost[candidate]
        if left <= 0:
            break
    by_episode = ids[np.argsort(episode, kind="stable")]
    ends = np.cumsum(length)
    return [by_episode[ends[e] - length[e] : ends[e]] for e in sorted(chosen)]


def write_inspection(folder: Path, inspection: Inspection) -> Path:
    """Write an inspection of a run into the folder of its inspections."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{PREFIX}{inspection.frames or 0:012d}.pser"
    content = {
        "format": FORMAT,
        "frames": inspection.frames,
        "memory": inspection.memory,
        "oldest_id": inspection.oldest_id,
        "columns": {name: _packed(column) for name, column in inspection.columns.items()},
        "drawn_ids": inspection.drawn_ids,
        "drawn_td": inspection.drawn_td,
        "pictures": inspection.pictures.to_state(),
    }
    write_container(path, content)
    return path


def read_inspection(path: Path) -> Inspection:
    """Read an inspection; what is not one is an error of one line."""
    content = read_container(path)
    if content.pop("format", None) != FORMAT:
        raise PserError(f"{path} is not an inspection of format {FORMAT}: it was written by something else")
    content["columns"] = {name: _unpacked(*column) for name, column in content["columns"].items()}
    content["pictures"] = Pictures.from_state(content["pictures"])
    return Inspection(**content)


def inspection_paths(folder: Path) -> list[Path]:
    """The inspections of a run, oldest first."""
    return sorted(folder.glob(f"{PREFIX}*.pser")) if folder.is_dir() else []


def forget_inspections_after(folder: Path, frames: int) -> None:
    """Remove what an interrupted run wrote after the checkpoint it goes on from."""
    for path in inspection_paths(folder):
        if int(path.stem[len(PREFIX) :]) > frames:
            path.unlink()


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    """The same whole numbers, not negative, in as few bytes as they need."""
    return values.astype(np.min_scalar_type(int(values.max()) if len(values) else 0))


def _packed(column: NDArray[Any]) -> list[Any]:
    return [column.dtype.str, np.frombuffer(zlib.compress(column.tobytes(), 1), np.uint8)]


def _unpacked(dtype: str, data: NDArray[np.uint8]) -> NDArray[Any]:
    return np.frombuffer(zlib.decompress(data.tobytes()), np.dtype(dtype))
