"""TorchRL's `CompressedListStorage`, full of frames of real games. It needs none of TorchRL's compiled part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import ReplayBuffer
from torchrl.data.replay_buffers.storages import CompressedListStorage

from benchmarks.peer import Case, Scenario
from benchmarks.settings import BATCH, COMPRESSED_BESIDE
from benchmarks.workload import Workload

torch.set_num_threads(1)


def _filled(game: str, steps: int) -> ReplayBuffer:
    from benchmarks.games import played

    buffer = ReplayBuffer(storage=CompressedListStorage(steps), batch_size=BATCH)
    for observation, action, step in played(game, steps):
        columns = {
            "observation": observation,
            "action": action,
            "reward": step.reward,
            "next_observation": step.next_observation,
            "terminated": step.terminated,
        }
        rows = {name: torch.from_numpy(np.array(values)) for name, values in columns.items()}
        buffer.extend(TensorDict(rows, batch_size=[1]))
    return buffer


class TorchRLCompressed:
    """Its storage as its documentation shows it, drawn from uniformly."""

    name = "torchrl, compressed"
    distributions = ("torchrl", "tensordict", "torch")
    notes = (
        "`CompressedListStorage` as it comes (level 3; on this Python its codec is zlib, documented is zstd), uniform "
        "draws; observation and next observation are compressed apart, each a stack of four frames.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        way, _, game = scenario.partition(" ")
        if way != "compressed" or game not in COMPRESSED_BESIDE:
            return {}
        buffer = _filled(game, load.capacity)
        return {"sample": lambda i: buffer.sample()}


PEER = TorchRLCompressed()
