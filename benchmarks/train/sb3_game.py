"""A game of this project as a stable-baselines3 vector environment: both trainers then play the same thing."""

from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from pser.env.game import Game
from pser.learner.loop import observation_shape


class GameVecEnv(VecEnv):
    """Steps a Game; at an episode's end the final observation goes into the info, as SB3 wants it."""

    def __init__(self, game: Game) -> None:
        shape = observation_shape(game.observation)
        space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        super().__init__(game.num_envs, space, gymnasium.spaces.Discrete(game.num_actions))
        self.game = game
        self.render_mode = None

    def reset(self) -> Any:
        return self.game.reset(0)

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        step = self.game.step(self._actions)
        done = step.terminated | step.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(done):
            infos[env]["terminal_observation"] = step.next_observation[env]
            infos[env]["TimeLimit.truncated"] = bool(step.truncated[env])
        return step.observation, step.reward.astype(np.float32), done, infos

    def close(self) -> None:
        self.game.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
        return [False] * self.num_envs
