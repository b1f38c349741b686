"""Sparse tasks in the form a network plays them: observations as flat arrays of float32."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from pser.env.blind_cliffwalk_gym import BlindCliffwalk
from pser.errors import PserError

_LARGEST_CODES = np.array([10, 5, 2], np.float32)
"""MiniGrid's largest object, colour and state."""


class _Flat(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Observations through `encode`, as float32 from 0 to 1."""

    def __init__(self, env: gymnasium.Env[Any, Any], size: int) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0.0, 1.0, (size,), np.float32)


class _OneHot(_Flat):
    def observation(self, observation: Any) -> Any:
        """The state as a unit vector."""
        vector = np.zeros(self.observation_space.shape or (), np.float32)
        vector[int(observation)] = 1.0
        return vector


class _Codes(_Flat):
    def observation(self, observation: Any) -> Any:
        """What the walker sees: object, colour and state of 7 × 7 cells, each scaled to 1; then where it looks."""
        cells = (observation["image"] / _LARGEST_CODES).astype(np.float32).ravel()
        direction = np.zeros(4, np.float32)
        direction[int(observation["direction"])] = 1.0
        return np.concatenate([cells, direction])


def online_cliffwalk(states: int) -> gymnasium.Env[Any, Any]:
    """Blind Cliffwalk with its state as a unit vector."""
    return _OneHot(BlindCliffwalk(states), states)


def minigrid_task(task: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """A task of MiniGrid, flat."""
    try:
        import minigrid  # noqa: F401 (registers its tasks)
    except ModuleNotFoundError as error:
        raise PserError(f"{task} needs the minigrid package: pip install 'pser[minigrid]'") from error
    return _Codes(gymnasium.make(task, disable_env_checker=True, **options), 7 * 7 * 3 + 4)
