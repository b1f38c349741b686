"""A memory in a process of its own, and how a learner drives it: chunks in, batches out with updates riding along."""

from collections import deque
from typing import Any

import numpy as np
import ray

from benchmarks.cluster.tasks import BETA, Task, add_chunk, chunks_of, fill, memory_of
from pser.memory.batch import Batch

IN_FLIGHT = 2
"""Calls under way at a time."""


class Shard:
    """Around a `ReplayMemory`."""

    def __init__(self, task: Task) -> None:
        self._task, self._memory = task, memory_of(task)
        fill(self._memory, task)

    def add(self, chunk: dict[str, Any]) -> None:
        add_chunk(self._memory, self._task, chunk)

    def serve(self, updates: list[tuple[Any, Any]], batches: int, size: int) -> list[tuple[Any, ...]]:
        """Take the updates of earlier batches, and give new ones."""
        for ids, td_errors in updates:
            self._memory.update_priorities(ids, td_errors)
        return [self._packed(self._memory.sample(size, BETA, copy=True)) for _ in range(batches)]

    def _packed(self, batch: Batch) -> tuple[Any, ...]:
        """Stacks that share frames travel as one array."""
        both = batch.observation.base if self._task.transition.stack > 1 else None
        seen = (both, None) if both is not None else (batch.observation, batch.next_observation)
        return *seen, batch.action, batch.reward, batch.discount, batch.terminated, batch.weights, batch.ids


def unpacked(packed: tuple[Any, ...]) -> Batch:
    now, following, action, reward, discount, terminated, weights, ids = packed
    if following is None:
        now, following = now[:, :-1], now[:, 1:]
    return Batch(now, action, reward, following, discount, terminated, weights, ids, weights)


class Driver:
    """The learner's side of a shard: calls are sent ahead."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.shard = ray.remote(num_cpus=0)(Shard).remote(task)
        self._chunks = chunks_of(task, 1)
        self._errors = np.random.default_rng(1).random(task.batch_size)
        self._calls: deque[Any] = deque()

    def ingest(self, chunks: int) -> None:
        pending: deque[Any] = deque()
        for number in range(chunks):
            if len(pending) == IN_FLIGHT:
                ray.get(pending.popleft())
            pending.append(self.shard.add.remote(self._chunks[number % len(self._chunks)]))
        ray.get(list(pending))

    def batches(self, count: int) -> None:
        """Batches with a PSER update of each."""
        stream = BatchStream(self.shard, self._task.batch_size, self._task.batches_per_call)
        for _ in range(count):
            stream.learned(stream.next(), self._errors)
        stream.close()


class BatchStream:
    """Batches of a shard, several to a call and fetched ahead; what was learned goes with the next call."""

    def __init__(self, shard: Any, size: int, per_call: int) -> None:
        self._shard, self._size, self._per_call = shard, size, per_call
        self._updates: list[tuple[Any, Any]] = []
        self._here: deque[Batch] = deque()
        self._calls = deque(self._call() for _ in range(IN_FLIGHT))

    def _call(self) -> Any:
        updates, self._updates = self._updates, []
        return self._shard.serve.remote(updates, self._per_call, self._size)

    def next(self) -> Batch:
        if not self._here:
            self._calls.append(self._call())
            self._here.extend(unpacked(each) for each in ray.get(self._calls.popleft()))
        return self._here.popleft()

    def learned(self, batch: Batch, td_errors: Any) -> None:
        self._updates.append((batch.ids, td_errors))

    def close(self) -> None:
        """Hand over the last updates, and wait for the calls under way."""
        self._calls.append(self._shard.serve.remote(self._updates, 0, 1))
        ray.get(list(self._calls))
