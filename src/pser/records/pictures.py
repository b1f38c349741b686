"""Observations small enough to keep beside the numbers: pictures, boards or short vectors of a few episodes."""

import math
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import pser

Kind = Literal["grey", "rgb", "board", "vector", "none"]

LARGEST_VECTOR = 64
LARGEST_SIDE = 256
MOST_PLANES = 16
SAMPLE = 64
"""So many observations tell how all of them can be shown."""
MOST_PER_EPISODE = 400
"""Of a longer episode every second, third … step is kept."""


@dataclass(frozen=True)
class Episode:
    """Pictures of one episode: of which transitions, and the compressed rows."""

    ids: NDArray[np.int64]
    data: NDArray[np.uint8]


@dataclass(frozen=True)
class Pictures:
    """What can be shown of the observations, and of which episodes it was kept."""

    kind: Kind
    """Grey or RGB picture, board of coloured cells (0: empty), vector of numbers, or nothing that could be shown."""
    shape: tuple[int, ...]
    """Of one row."""
    field: str
    """The field of a dict observation that is shown; else empty."""
    episodes: list[Episode]

    def to_state(self) -> dict[str, Any]:
        """As a container holds it."""
        episodes = [{"ids": episode.ids, "data": episode.data} for episode in self.episodes]
        return {"kind": self.kind, "shape": list(self.shape), "field": self.field, "episodes": episodes}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Pictures":
        """The inverse of `to_state`."""
        episodes = [Episode(**episode) for episode in state["episodes"]]
        return cls(state["kind"], tuple(state["shape"]), state["field"], episodes)


def take_pictures(memory: "pser.ReplayMemory", chosen: list[NDArray[np.int64]]) -> Pictures:
    """Pictures of the episodes whose transitions are given, in the order of their ids."""
    if not chosen:
        return Pictures("none", (), "", [])
    every = np.concatenate(chosen)
    sample = memory[every[:: math.ceil(len(every) / SAMPLE)]].observation
    field = _shown_field(sample) if isinstance(sample, dict) else ""
    kind = kind_of(sample[field] if field else sample)
    if kind == "none":
        return Pictures(kind, (), field, [])
    episodes, shape = list[Episode](), ()
    for steps in chosen:
        ids = steps[:: math.ceil(len(steps) / MOST_PER_EPISODE)]
        observation = memory[ids].observation
        rows = shown_rows(observation[field] if field else observation, kind)
        shape = rows.shape[1:]
        episodes.append(Episode(ids, pack(rows)))
    return Pictures(kind, shape, field, episodes)


def kind_of(observation: NDArray[Any]) -> Kind:
    """How such observations, [n, ...], can be shown."""
    if observation.ndim <= 2:
        return "vector" if math.prod(observation.shape[1:]) <= LARGEST_VECTOR else "none"
    if (
        observation.ndim > 5
        or max(observation.shape[1:]) > LARGEST_SIDE
        or observation.dtype.kind not in "biu"
    ):
        return "none"
    if observation.ndim >= 4 and observation.shape[-1] == 3:
        return "rgb"
    if observation.ndim == 4 and observation.shape[1] <= MOST_PLANES and np.isin(observation, (0, 1)).all():
        return "board"
    return "grey" if observation.ndim <= 4 or observation.shape[-1] == 1 else "none"


def shown_rows(observation: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """What is shown of each row: the newest frame, the topmost thing in each cell, or the numbers as they are."""
    if kind == "vector":
        return observation.reshape(len(observation), -1).astype(np.float32)
    if kind == "board":
        order = np.arange(1, observation.shape[1] + 1, dtype=np.uint8)
        topmost: NDArray[np.uint8] = ((observation != 0) * order[:, None, None]).max(axis=1)
        return topmost
    rows = observation[..., 0] if kind == "grey" and observation.shape[-1] == 1 else observation
    newest = rows[:, -1] if rows.ndim > (4 if kind == "rgb" else 3) else rows
    return newest.astype(np.uint8)


def pack(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """Rows of bytes as differences from the row before (most pixels stay as they were), compressed."""
    packed = np.ascontiguousarray(rows)
    if packed.dtype == np.uint8:
        packed = packed.copy()
        packed[1:] ^= rows[:-1]
    return np.frombuffer(zlib.compress(packed.tobytes(), 6), np.uint8)


def unpack(data: NDArray[np.uint8], shape: tuple[int, ...], kind: Kind) -> NDArray[Any]:
    """The rows that were packed."""
    dtype = np.float32 if kind == "vector" else np.uint8
    rows = np.frombuffer(zlib.decompress(data.tobytes()), dtype).reshape(-1, *shape)
    return rows if kind == "vector" else np.bitwise_xor.accumulate(rows, axis=0)


def _shown_field(observation: dict[str, Any]) -> str:
    """Of several fields the one with the largest rows that can be shown."""
    shown = [name for name, rows in observation.items() if kind_of(rows) != "none"]
    return max(shown or observation, key=lambda name: math.prod(observation[name].shape[1:]))
