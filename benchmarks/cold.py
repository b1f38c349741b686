"""Cases that find the caches as training leaves them: a network's gradient step comes before each iteration."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache

from benchmarks.peer import Case
from benchmarks.settings import BATCH, FRAME, STACK

REPEATS = 9
"""Iterations of a repetition; the gradient steps between them are most of its time."""


@cache
def gradient_step() -> Callable[[], object]:
    """One step of the network of Mnih et al. 2015 on a batch of stacked frames, in one thread."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(STACK, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU()),
        nn.Linear(512, 6),
    )
    optimizer = torch.optim.RMSprop(network.parameters(), lr=1e-4)
    frames = torch.rand(BATCH, STACK, *FRAME)

    def step() -> None:
        optimizer.zero_grad()
        network(frames).square().mean().backward()
        optimizer.step()

    return step


class AfterNetwork:
    """A case after a gradient step, timed without it."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._network = gradient_step()

    def __call__(self, i: int) -> None:
        """One iteration, the gradient step included."""
        self._network()
        self._case(i)

    def time_ns(self, iterations: int) -> float:
        """Wall nanoseconds of the case alone, the median over the iterations: so short a time is rarely interrupted."""
        took = []
        for i in range(iterations):
            self._network()
            begin = time.perf_counter_ns()
            self._case(i)
            took.append(time.perf_counter_ns() - begin)
        return statistics.median(took)
