"""A shard as the learner of a run on Ray drives it: chunks in, batches out with updates riding along."""

from typing import Any

import ray

from benchmarks.cluster.tasks import BETA, Task, chunks_of, fill, settings_of, spec_of
from pser.cluster.calls import Calls
from pser.cluster.chunk import Chunk
from pser.cluster.places import Places
from pser.cluster.replay import ShardedReplay
from pser.cluster.settings import ClusterSettings
from pser.memory.batch import Batch


class Fed:
    """One shard, full."""

    def __init__(self, task: Task, batch_size: int, *, per_call: int | None = None) -> None:
        settings, cluster = settings_of(task, batch_size), ClusterSettings(actors=1)
        calls, spec = Calls(ray, 0.0), spec_of(task)
        places = Places(calls, settings, cluster, spec, _lost, lambda *_: None, lambda: 0)
        self._replay = ShardedReplay(calls, settings, cluster, spec, places)
        if per_call is not None:
            self._replay._per_call = per_call
        self.per_call = self._replay._per_call
        self._batch_size = batch_size
        self._chunks = chunks_of(task, 1)
        fill(task, self._add)
        self._replay.stats()  # waits until all of it is there

    def _add(self, chunk: Chunk) -> None:
        self._replay.add(0, chunk, chunk.steps)

    def ingest(self, chunks: int) -> None:
        for number in range(chunks):
            self._add(self._chunks[number % len(self._chunks)])
        self.settle()

    def draw(self) -> Batch:
        return self._replay.draw(self._batch_size, BETA)

    def learned(self, batch: Batch, td_errors: Any) -> None:
        self._replay.learned(batch, td_errors)

    def close(self) -> None:
        self._replay.places.close()

    def settle(self) -> None:
        """Wait for the calls under way, so that no other's time is spent on them."""
        ray.get(
            [*self._replay.places[0].adds, *(ref for fetch in self._replay._fetches for ref in fetch.answers)]
        )


def _lost(shard: int, reason: str, steps: int) -> None:
    raise RuntimeError(f"shard {shard} was lost: {reason}")
