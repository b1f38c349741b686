"""Real frames: Atari games played at random or by a partly trained policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import pser
from benchmarks.policies import trained
from benchmarks.settings import FRAME, STACK
from pser.env.atari import AtariGame
from pser.env.game import Step

TRAINED = " trained"
"""What follows a game's name if its policy plays it."""


class Played(NamedTuple):
    """One step of a game."""

    observation: NDArray[np.uint8]  # (1, 4, 84, 84)
    action: NDArray[np.int64]
    step: Step


def played(name: str, steps: int) -> Iterator[Played]:
    """So many steps of a game; the same ones each time."""
    by_policy, name = name.endswith(TRAINED), name.removesuffix(TRAINED)
    game, rng = AtariGame(name, seed=0, threads=1), np.random.default_rng(0)
    policy = trained(name, rng) if by_policy else None
    observation = np.array(game.reset())
    for _ in range(steps):
        action = policy(observation) if policy else rng.integers(0, game.num_actions, 1)
        step = game.step(action)
        yield Played(observation, action, step)
        observation = np.array(step.observation)


def memory_of(name: str, steps: int, compress: bool) -> pser.ReplayMemory:
    """A memory full of steps of one game, kept as they are or compressed."""
    memory = pser.ReplayMemory(steps, pser.Frames(FRAME, stack=STACK, compress=compress), seed=0)
    for observation, action, step in played(name, steps):
        memory.add(observation, action, step.reward, step.next_observation, step.terminated, step.truncated)
    return memory
