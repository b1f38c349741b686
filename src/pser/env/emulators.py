"""ale-py's vector environment made exact: true final observations at a time limit, and lives watched."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pser.env.game import Bools, Floats, Ints, Observations
from pser.env.optional import need

FRAME_SKIP = 4
_NO_LIMIT = 2**31 - 1


class Played(NamedTuple):
    """What one action in each emulator led to."""

    next_observation: Observations
    """The screens after the action, before any reset."""
    reward: Floats
    over: Bools
    """The game ended."""
    cut: Bools
    """The game reached the step limit (and did not end by itself)."""
    life_lost: Bools
    """A life was lost, and the game did not end by that."""


class Emulators:
    """E emulators of one cartridge; games that end are reset within the step.

    The step limit is kept here and not by ale-py, which (in 0.12.1) returns a stale screen as the final one
    of a game that it cuts; from that observation the learner would bootstrap.
    """

    def __init__(
        self,
        rom: str,
        num_envs: int,
        *,
        max_episode_steps: int,
        noop_max: int,
        sticky_actions: float,
        full_action_set: bool,
        threads: int,
        **screen: Any,
    ) -> None:
        """Load the cartridge; `screen` are ale-py's options for size, colour and stacking of the screens."""
        ale_py = need("ale_py", "Atari games", "'pser[atari]'")
        self._env = ale_py.AtariVectorEnv(
            rom,
            num_envs,
            num_threads=threads,
            # ale-py draws below its noop_max.
            noop_max=noop_max + 1,
            repeat_action_probability=sticky_actions,
            full_action_space=full_action_set,
            max_num_frames_per_episode=_NO_LIMIT,
            frameskip=FRAME_SKIP,
            maxpool=True,
            reward_clipping=False,
            use_fire_reset=False,
            # With life_loss_info a lost life and a finished game look alike.
            life_loss_info=False,
            episodic_life=False,
            autoreset_mode="SameStep",
            **screen,
        )
        self.num_actions = int(self._env.single_action_space.n)
        self.observation: Observations = np.zeros(self._env.observation_space.shape, np.uint8)
        """[E, ...] The current screens: after a reset where a game ended."""
        self._limit = max_episode_steps or _NO_LIMIT
        self._steps = np.zeros(num_envs, np.int64)
        self._lives: npt.NDArray[np.int32] = np.zeros(num_envs, np.int32)

    def reset(self, which: Bools, seeds: list[int] | None) -> None:
        """Reset some emulators: with seeds, one for each of them, or going on with their random generators."""
        options = None if which.all() else {"reset_mask": which}
        seed = None if seeds is None else np.array(seeds)
        self.observation, info = self._env.reset(seed=seed, options=options)
        self._lives = info["lives"]
        self._steps[which] = 0

    def step(self, actions: Ints) -> Played:
        """Play one action for `FRAME_SKIP` frames in each emulator."""
        # All arrays are fresh ones of ale-py's, so none needs copying.
        self.observation, points, over, _, info = self._env.step(actions)
        next_observation = self.observation
        lives = info["lives"]
        life_lost = (lives < self._lives) & ~over
        self._lives = lives
        self._steps += 1
        cut = (self._steps >= self._limit) & ~over
        if over.any():
            next_observation = self.observation.copy()
            # In final_obs the rows of games that go on are not set.
            next_observation[over] = info["final_obs"][over]
            self._steps[over] = 0
        if cut.any():
            self.reset(cut, seeds=None)
        return Played(next_observation, points.astype(np.float64), over, cut, life_lost)

    def close(self) -> None:
        """Close the emulators."""
        self._env.close()
