"""What every library is given: the same transitions, episodes, priorities and TD errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import BATCH, FRAME, LARGE_BATCH, POOL, SEQUENCE_STEPS, SEQUENCES, STACK


class Transitions(NamedTuple):
    """Small transitions in the order they happened, one stream."""

    observation: NDArray[np.float32]  # (n, 4)
    action: NDArray[np.int64]
    reward: NDArray[np.float32]
    next_observation: NDArray[np.float32]  # (n, 4)
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class FrameStep(NamedTuple):
    """One step of an environment that stacks frames, as its wrapper hands it out."""

    observation: NDArray[np.uint8]  # (4, 84, 84)
    action: int
    reward: float
    next_observation: NDArray[np.uint8]  # (4, 84, 84)
    terminated: bool
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The inputs of one scenario, a function of the seed and the capacity alone."""

    capacity: int
    """Transitions the memory holds; every memory is filled to it before it is timed."""
    seed: int = 0
    """Seed of everything drawn here."""

    def _rng(self, what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.capacity, what])

    @cached_property
    def starts(self) -> NDArray[np.bool_]:
        """True at the first transition of each episode; lengths are uniform in 100..300."""
        lengths = self._rng(0).integers(100, 301, size=self.capacity // 100 + 1)
        starts = np.zeros(self.capacity, bool)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        starts[offsets[offsets < self.capacity]] = True
        return starts

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """Predecessors each transition has in its own episode (0 at an episode's start)."""
        position = np.arange(self.capacity)
        return position - np.maximum.accumulate(np.where(self.starts, position, 0))

    @cached_property
    def fill_errors(self) -> NDArray[np.float64]:
        """The |TD error| each stored transition has when timing begins."""
        return self._rng(1).exponential(1.0, self.capacity)

    @cached_property
    def td_errors(self) -> NDArray[np.float32]:
        """(POOL, BATCH) signed TD errors, as a network would return them."""
        rng = self._rng(2)
        return (rng.exponential(1.0, (POOL, BATCH)) * rng.choice([-1, 1], (POOL, BATCH))).astype(np.float32)

    @cached_property
    def large_td_errors(self) -> NDArray[np.float32]:
        """(POOL, LARGE_BATCH) signed TD errors."""
        rng = self._rng(9)
        signs = rng.choice([-1, 1], (POOL, LARGE_BATCH))
        return (rng.exponential(1.0, (POOL, LARGE_BATCH)) * signs).astype(np.float32)

    @cached_property
    def sequence_errors(self) -> NDArray[np.float32]:
        """(POOL, SEQUENCES, SEQUENCE_STEPS) signed TD errors."""
        return self._rng(8).standard_normal((POOL, SEQUENCES, SEQUENCE_STEPS), np.float32)

    @cached_property
    def batches(self) -> NDArray[np.int64]:
        """(POOL, BATCH) distinct positions to update when the update is timed alone."""
        rng = self._rng(3)
        return np.stack([rng.choice(self.capacity, BATCH, replace=False) for _ in range(POOL)])

    @cached_property
    def transitions(self) -> Transitions:
        """The transitions a memory of this capacity is filled with; one episode in ten is truncated."""
        rng = self._rng(4)
        n = self.capacity
        ends = np.roll(self.starts, -1)
        truncated = ends & (rng.random(n) < 0.1)
        return Transitions(
            rng.standard_normal((n, 4), np.float32),
            rng.integers(0, 6, n),
            rng.standard_normal(n, np.float32),
            rng.standard_normal((n, 4), np.float32),
            ends & ~truncated,
            truncated,
        )

    def steps(self, environments: int) -> list[Transitions]:
        """POOL steps of a vector environment, each with `environments` rows; no episode ends among them."""
        rng = self._rng(5)
        n = environments
        return [
            Transitions(
                rng.standard_normal((n, 4), np.float32),
                rng.integers(0, 6, n),
                rng.standard_normal(n, np.float32),
                rng.standard_normal((n, 4), np.float32),
                np.zeros(n, bool),
                np.zeros(n, bool),
            )
            for _ in range(POOL)
        ]

    @cached_property
    def frames(self) -> NDArray[np.uint8]:
        """A pool of distinct frames; the k-th frame of the run is `frames[k % len(frames)]`."""
        return self._rng(6).integers(0, 256, (2048, *FRAME), np.uint8)

    def frame_steps(self) -> Iterator[FrameStep]:
        """`capacity` steps with stacked frames, episodes of 300..700 steps, padded with the reset frame."""
        rng = self._rng(7)
        pool = self.frames
        shown = done = 0
        while done < self.capacity:
            length = min(int(rng.integers(300, 701)), self.capacity - done)
            # Frame numbers of the stack at each step: the reset frame repeats until the stack is full.
            first = shown
            stack = np.full(STACK, first)
            observation = pool[stack % len(pool)]
            truncated = bool(rng.random() < 0.1)
            for step in range(length):
                shown += 1
                stack = np.append(stack[1:], shown)
                next_observation = pool[stack % len(pool)]
                last = step == length - 1
                yield FrameStep(
                    observation,
                    int(shown % 6),
                    float(shown % 3 - 1),
                    next_observation,
                    last and not truncated,
                    last and truncated,
                )
                observation = next_observation
            shown += 1
            done += length
