"""Real frames: Atari games played at random or by a partly trained policy, kept as they are and compressed."""

from __future__ import annotations

import numpy as np

import pser
from benchmarks.policies import trained
from benchmarks.settings import FRAME, STACK
from pser.env.atari import AtariGame


def played(name: str, steps: int, compress: bool, by_policy: bool) -> pser.ReplayMemory:
    """A memory full of steps of one game; the same steps, whatever way they are kept."""
    game, rng = AtariGame(name, seed=0, threads=1), np.random.default_rng(0)
    memory = pser.ReplayMemory(steps, pser.Frames(FRAME, stack=STACK, compress=compress), seed=0)
    policy = trained(name, rng) if by_policy else None
    observation = np.array(game.reset())
    for _ in range(steps):
        action = policy(observation) if policy else rng.integers(0, game.num_actions, 1)
        step = game.step(action)
        memory.add(observation, action, step.reward, step.next_observation, step.terminated, step.truncated)
        observation = np.array(step.observation)
    return memory
