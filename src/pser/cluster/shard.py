"""A shard: a replay memory in a process of its own, that takes chunks and gives batches, several to a call."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pser
from pser.cluster.chunk import Chunk, observations_of
from pser.cluster.packing import Packed, pack
from pser.cluster.shards import least_probability
from pser.learner.seeds import derived_seed
from pser.learner.settings import TrainSettings
from pser.memory.arrays import Ints, Reals
from pser.memory.prioritization import Uniform
from pser.spec import Array, Frames

Updates = Sequence[tuple[Ints, Any]]
"""Ids, and what was learned from each."""


class Status(NamedTuple):
    """What others must know of a shard to draw from all of them as from one."""

    size: int
    total_mass: float
    max_priority: float
    least: float
    """The smallest P(i) within it, where the weights need it; else 0."""
    pid: int
    """The process it lives in."""


class Answer(NamedTuple):
    """Batches, and the shard after they were drawn."""

    batches: list[Packed]
    status: Status


class Shard:
    """A replay memory for some of the run's environments."""

    def __init__(
        self,
        settings: TrainSettings,
        observation: Array | Frames,
        capacity: int,
        streams: int,
        number: int,
        apart: int = 0,
    ) -> None:
        """`apart`: steps that the streams of one actor may be behind those of the others."""
        if isinstance(observation, Frames) and apart:
            observation = Frames(
                observation.shape,
                observation.stack,
                observation.dtype,
                observation.spare,
                compress=observation.compress,
                capacity_bytes=observation.capacity_bytes,
                apart=apart,
            )
        self._spec = observation
        rule = settings.replay.prioritization
        self.memory = pser.ReplayMemory(
            capacity=capacity,
            observation=observation,
            action=pser.Array((), np.int64),
            num_envs=streams,
            prioritization=rule,
            n_step=settings.replay.n_step,
            gamma=settings.agent.gamma,
            seed=derived_seed(settings.run.seed, "memory", number),
        )
        self._tells_least = not isinstance(rule, Uniform) and rule.weights == "memory"
        self._refused: Exception | None = None

    def add(self, updates: Updates, max_priority: float, streams: Sequence[int], chunk: Chunk) -> None:
        """Keep a chunk of these streams. Nobody waits for it: what it refuses is raised by the next answer."""
        try:
            self._learn(updates, max_priority)
            steps = len(chunk.action)
            now, following = observations_of(chunk, self._spec)
            self.memory.add(
                now,
                chunk.action.reshape(-1),
                chunk.reward.reshape(-1),
                following,
                chunk.terminated.reshape(-1),
                chunk.truncated.reshape(-1),
                td_error=None if chunk.td_error is None else chunk.td_error.reshape(-1),
                stream=np.tile(np.asarray(streams, np.int64), steps),
            )
        except Exception as error:
            self._refused = self._refused or error

    def serve(
        self,
        updates: Updates,
        max_priority: float,
        batch_size: int,
        beta: float,
        number: int = 0,
        positions: Sequence[Reals] | None = None,
    ) -> Answer:
        """Take what was learned, then draw: `number` batches, or one at each of these positions of the mass.

        An empty shard has none to give.
        """
        self._learn(updates, max_priority)
        if self._refused is not None:
            raise self._refused
        batches: list[Packed] = []
        if positions is None:
            if len(self.memory):
                batches = [pack(self.memory.sample(batch_size, beta, copy=True)) for _ in range(number)]
        elif len(self.memory) or not any(map(len, positions)):
            batches = [
                pack(self.memory.sample(len(at), beta, copy=True, positions=at)) if len(at) else ()
                for at in positions
            ]
        return Answer(batches, self.status())

    def status(self) -> Status:
        """The shard as it is now."""
        memory = self.memory
        least = least_probability(memory.index) if self._tells_least and len(memory) else 0.0
        return Status(len(memory), memory.total_mass, memory.max_priority, least, os.getpid())

    def end_episodes(self, streams: Sequence[int] | None = None) -> None:
        """Nothing follows on what these streams (or all) did last: whoever played them is gone."""
        self.memory.end_episodes(None if streams is None else np.asarray(streams, np.int64))

    def stats(self, updates: Updates) -> dict[str, float]:
        """The memory's numbers to watch."""
        self._learn(updates, 0.0)
        return dict(self.memory.stats())

    def save(self, updates: Updates, path: str) -> None:
        """Write the memory to a file that all machines see."""
        self._learn(updates, 0.0)
        self.memory.save(Path(path))

    def load(self, path: str) -> Status:
        """Take the memory of a file; a damaged one is refused, and nothing changed."""
        self.memory = pser.ReplayMemory.load(Path(path))
        return self.status()

    def _learn(self, updates: Updates, max_priority: float) -> None:
        for ids, signal in updates:
            self.memory.update_priorities(ids, signal)  # ids overwritten meanwhile are skipped
        if max_priority > self.memory.max_priority:
            self.memory.raise_max_priority(max_priority)
