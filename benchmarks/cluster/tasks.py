"""What is kept in the memories that are compared, and how much of it moves at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pser
from pser.cluster.chunk import Chunk, Tape, observations_of
from pser.cluster.sizing import ATARI, MINATAR, Transition
from pser.learner.presets import preset_settings
from pser.learner.settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class Task:
    """A kind of observation, and the sizes that suit it."""

    env: str
    preset: str
    transition: Transition
    batch_size: int
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
        capacity=20_000,
        torchrl_capacity=5_000,
        chunk_steps=50,
        chunks=60,
        batches=40,
        updates=64,
    ),
}
LEARNED_BATCH = 32
CHUNKS = 8
"""Of an episode."""
BETA = 0.5
OURS, LOCAL, PEER = "pser on Ray", "pser in-process", "TorchRL RayReplayBuffer"


def spec_of(task: Task) -> Any:
    if task.transition.stack > 1:
        return pser.Frames((84, 84), task.transition.stack, spare=0.05)
    return pser.Array((4, 10, 10), np.uint8)


def settings_of(task: Task, batch_size: int, num_envs: int = 1) -> TrainSettings:
    """The preset with PSER."""
    own = {"replay": "pser", "num_envs": num_envs, "capacity": task.capacity, "batch_size": batch_size}
    return preset_settings(task.preset, task.env).override({**own, "n_step": 1})


def memory_of(task: Task) -> pser.ReplayMemory:
    return pser.ReplayMemory(task.capacity, spec_of(task), prioritization=pser.PSER(), seed=0)


def chunks_of(task: Task, seed: int) -> list[Chunk]:
    """Chunks of an episode that is cut off at the end of the last of them, as an actor hands them over."""
    rng = np.random.default_rng(seed)
    steps, stack, spec = task.chunk_steps, task.transition.stack, spec_of(task)
    shape, high = ((84, 84), 255) if stack > 1 else ((4, 10, 10), 2)
    seen = rng.integers(0, high, (CHUNKS * steps + stack, *shape), dtype=np.uint8)
    if stack > 1:
        seen = np.moveaxis(np.lib.stride_tricks.sliding_window_view(seen, stack, axis=0), -1, 1)
    chunks = []
    for first in range(0, CHUNKS * steps, steps):
        tape = Tape(spec, steps, 1)
        tape.now[:, 0] = seen[first : first + steps + 1]
        tape.following[:, 0] = seen[first + 1 : first + steps + 1]
        tape.action[:, 0] = rng.integers(0, 3, steps)
        tape.reward[:, 0] = rng.random(steps)
        tape.terminated[:], tape.truncated[:] = False, False
        tape.truncated[-1] = first == (CHUNKS - 1) * steps
        chunks.append(tape.chunk(rng.standard_gamma(0.4, (steps, 1)).astype(np.float32)))
    return chunks


def add_chunk(memory: pser.ReplayMemory, task: Task, chunk: Chunk) -> None:
    """As a shard does."""
    now, following = observations_of(chunk, spec_of(task))
    memory.add(
        now,
        chunk.action.reshape(-1),
        chunk.reward.reshape(-1),
        following,
        chunk.terminated.reshape(-1),
        chunk.truncated.reshape(-1),
        td_error=chunk.td_error.reshape(-1),
        stream=np.zeros(chunk.steps, np.int64),
    )


def fill(task: Task, add: Callable[[Chunk], object]) -> None:
    """Full, and a little more."""
    chunks = chunks_of(task, 0)
    for _ in range(task.capacity // (CHUNKS * task.chunk_steps) + 1):
        for chunk in chunks:
            add(chunk)
