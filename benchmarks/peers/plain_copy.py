"""The floor of the frame batch: `np.copyto` of as many bytes, from memory too large for the cache."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.peer import Case, Scenario
from benchmarks.settings import BATCH, FRAME, STACK
from benchmarks.workload import Workload


class PlainCopy:
    """One contiguous (32, 5, 84, 84) block, at another random place each time."""

    name = "plain copy"
    distributions = ()
    notes = (
        "No memory: `np.copyto` of one contiguous (32, 5, 84, 84) block of bytes into a reused array,"
        " from a random place of a source as large as all the frames.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario != "atari":
            return {}
        frames = load.frames
        source = np.empty((load.capacity, *FRAME), np.uint8)
        for begin in range(0, load.capacity, len(frames)):
            source[begin : begin + len(frames)] = frames[: load.capacity - begin]
        target = np.empty((BATCH, STACK + 1, *FRAME), np.uint8)
        count = BATCH * (STACK + 1)
        begins = np.random.default_rng(0).integers(0, load.capacity - count, 4096)
        blocks = [source[begin : begin + count].reshape(target.shape) for begin in begins]
        return {"sample": lambda i: np.copyto(target, blocks[i % 4096])}


PEER = PlainCopy()
