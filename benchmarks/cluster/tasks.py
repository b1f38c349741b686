"""What is kept in the memories that are compared, and how much of it moves at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import pser
from pser.cluster.sizing import ATARI, MINATAR, Transition


@dataclass(frozen=True, kw_only=True)
class Task:
    """A kind of observation, and the sizes that suit it."""

    env: str
    preset: str
    transition: Transition
    batch_size: int
    batches_per_call: int
    capacity: int
    torchrl_capacity: int
    """It keeps whole stacks."""
    chunk_steps: int
    chunks: int
    """Of a segment."""
    batches: int
    """Of a segment."""
    updates: int
    """Of a segment of learning, with batches of 32."""


TASKS = {
    "minatar": Task(
        env="minatar:breakout",
        preset="minatar",
        transition=MINATAR,
        batch_size=32,
        batches_per_call=16,
        capacity=100_000,
        torchrl_capacity=100_000,
        chunk_steps=50,
        chunks=400,
        batches=1_600,
        updates=480,
    ),
    "atari": Task(
        env="atari:Breakout",
        preset="paper",
        transition=ATARI,
        batch_size=512,
        batches_per_call=1,
        capacity=20_000,
        torchrl_capacity=5_000,
        chunk_steps=50,
        chunks=60,
        batches=40,
        updates=64,
    ),
}
LEARNED_BATCH = 32
PER_CALL = {"minatar": 16, "atari": 4}
"""Batches of 32 to a call, for the learner."""
CHUNKS = 8
"""Of an episode."""
BETA = 0.5
OURS, LOCAL, PEER = "pser on Ray", "pser in-process", "TorchRL RayReplayBuffer"


def spec_of(task: Task) -> Any:
    if task.transition.stack > 1:
        return pser.Frames((84, 84), task.transition.stack, spare=0.05)
    return pser.Array((4, 10, 10), np.uint8)


def memory_of(task: Task) -> pser.ReplayMemory:
    return pser.ReplayMemory(task.capacity, spec_of(task), prioritization=pser.PSER(), seed=0)


def chunks_of(task: Task, seed: int) -> list[dict[str, Any]]:
    """Chunks of an episode that ends with the last of them; each frame or observation comes once, but for borders."""
    rng = np.random.default_rng(seed)
    steps, stack = task.chunk_steps, task.transition.stack
    shape, high = ((84, 84), 255) if stack > 1 else ((4, 10, 10), 2)
    seen = rng.integers(0, high, (CHUNKS * steps + stack, *shape), dtype=np.uint8)
    chunks = []
    for number in range(CHUNKS):
        truncated = np.zeros(steps, bool)
        truncated[-1] = number == CHUNKS - 1
        chunks.append(
            {
                "seen": seen[number * steps : (number + 1) * steps + stack].copy(),
                "action": rng.integers(0, 3, steps),
                "reward": rng.random(steps),
                "truncated": truncated,
                "td_error": rng.standard_gamma(0.4, steps),
            }
        )
    return chunks


def add_chunk(memory: pser.ReplayMemory, task: Task, chunk: dict[str, Any]) -> None:
    """Stacks are made of the frames here, where nothing has to travel any more."""
    seen, steps = chunk["seen"], len(chunk["action"])
    if task.transition.stack > 1:
        windows = np.lib.stride_tricks.sliding_window_view(seen, task.transition.stack, axis=0)
        seen = np.ascontiguousarray(np.moveaxis(windows, -1, 1))
    memory.add(
        seen[:-1],
        chunk["action"],
        chunk["reward"],
        seen[1:],
        np.zeros(steps, bool),
        chunk["truncated"],
        td_error=chunk["td_error"],
        stream=np.zeros(steps, np.int64),
    )


def fill(memory: pser.ReplayMemory, task: Task) -> None:
    """Full, and a little more."""
    chunks = chunks_of(task, 0)
    for _ in range(memory.capacity // (CHUNKS * task.chunk_steps) + 1):
        for chunk in chunks:
            add_chunk(memory, task, chunk)
