"""Measuring an agent: whole episodes, few random actions, nothing learned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pser.env.game import Game
from pser.learner.agent import Agent


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one evaluation."""

    returns: list[float]
    lengths: list[int]

    def summary(self) -> dict[str, Any]:
        """The statistics of one line of eval.jsonl."""
        returns = np.asarray(self.returns)
        return {
            "episodes": len(returns),
            "mean_return": float(returns.mean()),
            "median_return": float(np.median(returns)),
            "std_return": float(returns.std()),
            "min_return": float(returns.min()),
            "max_return": float(returns.max()),
            "mean_length": float(np.mean(self.lengths)),
        }


def evaluate(
    agent: Agent,
    game: Game,
    *,
    epsilon: float,
    seed: int,
    episodes: int = 0,
    frames: int = 0,
    on_episode: Callable[[], None] = lambda: None,
    on_step: Callable[[int], None] = lambda frames: None,
) -> Evaluation:
    """Play `episodes` episodes, or, if that is 0, until `frames` are spent and the running episodes over.

    Every environment gets its share beforehand: taking the first episodes to finish would favour short ones.
    `on_episode` is called as each of them ends, `on_step` after each step with the frames played so far.
    """
    envs = game.num_envs
    quota = np.array([episodes // envs + (env < episodes % envs) for env in range(envs)])
    budget = -(-frames // (game.frames_per_step * envs))
    rng = np.random.default_rng(seed)
    observation = game.reset(seed)
    count = np.zeros(envs, np.int64)
    returns: list[list[float]] = [[] for _ in range(envs)]
    lengths: list[list[int]] = [[] for _ in range(envs)]
    running = quota > 0 if episodes else np.ones(envs, bool)
    steps = 0
    while running.any():
        step = game.step(agent.act(observation, epsilon, rng))
        observation = step.observation
        steps += 1
        on_step(steps * envs * game.frames_per_step)
        for env in np.flatnonzero(step.finished & running):
            returns[env].append(float(step.episode_return[env]))
            lengths[env].append(int(step.episode_length[env]))
            count[env] += 1
            on_episode()
            running[env] = count[env] < quota[env] if episodes else steps < budget
    return Evaluation([r for env in returns for r in env], [n for env in lengths for n in env])
