"""What it costs to bring transitions into a memory in another process, and batches out of it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cluster.fed import Fed
from benchmarks.cluster.spent import interleaved, measured, median, ratio
from benchmarks.cluster.tasks import BETA, LOCAL, OURS, PEER, Task, add_chunk, chunks_of, fill, memory_of
from benchmarks.cluster.torchrl_buffer import TorchRL
from pser.learner.allocation import keep_freed_memory


class Local:
    """The memory in this process."""

    def __init__(self, task: Task) -> None:
        self._task, self._memory = task, memory_of(task)
        fill(task, lambda chunk: add_chunk(self._memory, task, chunk))
        self._chunks = chunks_of(task, 1)
        self._errors = np.random.default_rng(1).random(task.batch_size)

    def ingest(self, chunks: int) -> None:
        for number in range(chunks):
            add_chunk(self._memory, self._task, self._chunks[number % len(self._chunks)])

    def batches(self, count: int) -> None:
        for _ in range(count):
            batch = self._memory.sample(self._task.batch_size, BETA)
            self._memory.update_priorities(batch.ids, self._errors)


class Remote:
    """The memory in a shard."""

    def __init__(self, task: Task) -> None:
        self.fed = Fed(task, task.batch_size)
        self.ingest = self.fed.ingest
        self._errors = np.random.default_rng(1).random(task.batch_size, np.float32)

    def batches(self, count: int) -> None:
        for _ in range(count):
            self.fed.learned(self.fed.draw(), self._errors)
        self.fed.settle()


def measure(task: Task, rounds: int, scale: float) -> dict[str, Any]:
    """Seconds of a transition in and of a batch out, and ratios; `scale` shortens the segments."""
    keep_freed_memory()  # as the learner of a run does
    ours = Remote(task)
    chunks = max(2, int(scale * task.chunks))
    calls = max(2, int(scale * task.batches / ours.fed.per_call))  # whole ones: what is fetched is used
    batches = calls * ours.fed.per_call
    turns: dict[str, Callable[[], dict[str, float]]] = {}
    for name, contender in ((OURS, ours), (LOCAL, Local(task)), (PEER, TorchRL(task))):
        turns[f"{name}: add"] = lambda it=contender: measured(
            lambda: it.ingest(chunks), chunks * task.chunk_steps
        )
        turns[f"{name}: batch"] = lambda it=contender: measured(lambda: it.batches(batches), batches)
    found = interleaved(turns, rounds)
    return {
        "batch_size": task.batch_size,
        "chunk_steps": task.chunk_steps,
        "batches_per_call": ours.fed.per_call,
        "rounds": rounds,
        "seconds": {
            name: {key: median(segments, key) for key in ("wall", "own", "cpu")}
            for name, segments in found.items()
        },
        "times_torchrl": {
            what: {
                key: ratio(found[f"{PEER}: {what}"], found[f"{OURS}: {what}"], key) for key in ("wall", "cpu")
            }
            for what in ("add", "batch")
        },
    }
