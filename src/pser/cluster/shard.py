"""A shard: a replay memory in a process of its own, that takes chunks and gives batches, several to a call."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pser
from pser.cluster.chunk import Chunk, observations_of
from pser.cluster.packing import Packed, Updates, pack, received
from pser.cluster.shards import least_probability
from pser.learner.allocation import keep_freed_memory
from pser.learner.seeds import derived_seed
from pser.learner.settings import TrainSettings
from pser.memory.parts import Saved
from pser.memory.prioritization import Uniform
from pser.spec import Array, Frames

LOADED = 0
"""The number of the save that a memory was loaded from."""


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

    batches: Packed
    """Nothing of an empty shard."""
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
        keep_freed_memory()  # answers of many megabytes come and go
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
        self._writer = ThreadPoolExecutor(1)
        self._written: Future[Saved] | None = None
        self._saves: dict[int, Saved] = {}
        """Number of a save → what the next but one links."""

    def add(self, updates: Updates | None, max_priority: float, streams: Sequence[int], chunk: Chunk) -> None:
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

    def serve(self, request: bytes) -> Answer:
        """Take what was learned, then draw: so many batches, or one at each of the given positions of the mass.

        An empty shard has none to give.
        """
        updates, max_priority, batch_size, beta, number, positions = received(request)
        self._learn(updates, max_priority)
        if self._refused is not None:
            raise self._refused
        memory = self.memory
        batches: Packed = ()
        if positions is None:
            if len(memory):
                drawn = (memory.sample(batch_size, beta) for _ in range(number))
                batches = pack(drawn, number * batch_size)
        elif len(memory):
            drawn = (memory.sample(len(at), beta, positions=at) for at in positions if len(at))
            batches = pack(drawn, sum(map(len, positions)))
        return Answer(batches, self.status())

    def status(self) -> Status:
        """The shard as it is now."""
        memory = self.memory
        least = least_probability(memory.index) if self._tells_least and len(memory) else 0.0
        return Status(len(memory), memory.total_mass, memory.max_priority, least, os.getpid())

    def end_episodes(self, streams: Sequence[int] | None = None) -> None:
        """Nothing follows on what these streams (or all) did last: whoever played them is gone."""
        self.memory.end_episodes(None if streams is None else np.asarray(streams, np.int64))

    def stats(self, updates: Updates | None) -> dict[str, float]:
        """The memory's numbers to watch."""
        self._learn(updates, 0.0)
        return dict(self.memory.stats())

    def begin_save(
        self, updates: Updates | None, path: str, number: int, since: tuple[int, str] | None
    ) -> None:
        """Take this moment, and begin to write it to files that all machines see, while the memory is used on.

        `since` is the number of an earlier save, and where it is now: what is in it is linked.
        """
        self._learn(updates, 0.0)
        earlier = None if since is None else self._saves.get(since[0])
        if since is not None and earlier is not None:
            earlier.path = Path(since[1])
        saving = self.memory.begin_save(path, earlier)
        self._number, self._written = number, self._writer.submit(saving.write)

    def is_saved(self) -> bool:
        """Whether the save begun last is complete; what went wrong with it is raised here."""
        assert self._written is not None
        if not self._written.done():
            return False
        newest = list(self._saves)[-1:]
        self._saves = {number: self._saves[number] for number in newest} | {
            self._number: self._written.result()
        }
        return True

    def load(self, path: str) -> Status:
        """Take the memory of a file; a damaged one is refused, and nothing changed."""
        self.memory = pser.ReplayMemory.load(Path(path))
        self._saves = {LOADED: self.memory.saved} if self.memory.saved else {}
        return self.status()

    def _learn(self, updates: Updates | None, max_priority: float) -> None:
        for ids, signal in updates.batches() if updates else ():
            self.memory.update_priorities(ids, signal)  # ids overwritten meanwhile are skipped
        if max_priority > self.memory.max_priority:
            self.memory.raise_max_priority(max_priority)
