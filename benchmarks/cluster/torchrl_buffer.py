"""TorchRL's `RayReplayBuffer`: a buffer in a process of its own; every call waits for its answer.

Its prioritized sampler has compiled parts that do not load with the torch used here, so it draws uniformly and updates
nothing: less work than what it is compared with.
"""

from functools import partial

import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, RayReplayBuffer

from benchmarks.cluster.tasks import Task, chunks_of, spec_of
from pser.cluster.chunk import Chunk, observations_of


class TorchRL:
    """As its users drive it: `extend` with a chunk, `sample` a batch."""

    def __init__(self, task: Task) -> None:
        self._buffer = RayReplayBuffer(
            storage=partial(LazyTensorStorage, task.torchrl_capacity),
            batch_size=task.batch_size,
            remote_config={"num_cpus": 0},
        )
        self._chunks = [_tensordict(task, chunk) for chunk in chunks_of(task, 1)]
        for number in range(-(-task.torchrl_capacity // task.chunk_steps)):
            self._buffer.extend(self._chunks[number % len(self._chunks)])

    def ingest(self, chunks: int) -> None:
        for number in range(chunks):
            self._buffer.extend(self._chunks[number % len(self._chunks)])

    def batches(self, count: int) -> None:
        for _ in range(count):
            self._buffer.sample()


def _tensordict(task: Task, chunk: Chunk) -> TensorDict:
    """The layout of TorchRL's collectors; stacks are whole."""
    now, following = (torch.from_numpy(values) for values in observations_of(chunk, spec_of(task)))
    ends = torch.from_numpy(chunk.truncated)
    return TensorDict(
        {
            "observation": now,
            "action": torch.from_numpy(chunk.action.reshape(-1)),
            "next": {
                "observation": following,
                "reward": torch.from_numpy(chunk.reward.astype(np.float32)),
                "terminated": torch.zeros_like(ends),
                "truncated": ends,
                "done": ends,
            },
        },
        batch_size=[chunk.steps],
    )
