"""Any Gymnasium environment with discrete actions: classic control and whatever else is registered."""

import re
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from pser.env.checks import check_actions, check_count, check_state
from pser.env.game import Ints, Observations, State, Step
from pser.env.names import find_name, no_such
from pser.env.optional import need
from pser.env.seeds import spread_seed
from pser.env.tally import EpisodeTally
from pser.errors import PserError
from pser.spec import Array, Frames

_STATE_IS_ONE_VECTOR = ("CartPoleEnv", "MountainCarEnv", "AcrobotEnv")
"""Gymnasium's classes whose running episode is the vector `state` and nothing else."""
_KNOWN_WRAPPERS = ("TimeLimit", "OrderEnforcing")
"""Wrappers that hold no state but the steps `TimeLimit` has counted."""


class GymGame:
    """E copies of one Gymnasium environment, stepped one after the other."""

    frames_per_step = 1

    def __init__(
        self, env_id: str, *, num_envs: int = 1, seed: int = 0, max_episode_steps: int | None = None
    ) -> None:
        """Make the environments.

        Args:
            env_id: a registered Gymnasium id, such as `CartPole-v1`.
            num_envs: how many copies are stepped together.
            seed: what `reset()` takes when it is given none.
            max_episode_steps: cut episodes after this many steps (None: the environment's own limit).
        """
        gymnasium = need("gymnasium", "Gymnasium environments", "gymnasium")
        self.num_envs = check_count("num_envs", num_envs, 1)
        self._seed = check_count("seed", seed, 0)
        options = {}
        if max_episode_steps:
            options["max_episode_steps"] = check_count("max_episode_steps", max_episode_steps, 1)
        spec = _find_spec(gymnasium, env_id)
        self.name = f"gym:{env_id}"
        self._envs: list[Any] = []
        for number in range(self.num_envs):
            # Only environment 0 is ever shown.
            shown = {"render_mode": "rgb_array"} if number == 0 and _can_render(gymnasium, spec) else {}
            self._envs.append(_make(gymnasium, spec.id, **options, **shown))
        actions = self._envs[0].action_space
        if not isinstance(actions, gymnasium.spaces.Discrete):
            raise PserError(f"DQN needs discrete actions, but {self.name} has {actions}: choose another game")
        space = self._envs[0].observation_space
        if not isinstance(space, gymnasium.spaces.Box) or space.dtype not in (np.float32, np.uint8):
            raise PserError(
                f"observations must be a Box of float32 or uint8, but {self.name} has {space}: choose "
                "another game or register one wrapped with gymnasium.wrappers"
            )
        self.num_actions = int(actions.n)
        self._first_action = int(actions.start)
        self.observation: Array | Frames = Array(space.shape, space.dtype)
        self._shape, self._dtype = (self.num_envs, *space.shape), space.dtype
        self._tally = EpisodeTally(self.num_envs)
        self._observation: Observations = np.zeros(self._shape, self._dtype)
        self._steps = 0
        self.exact_state = _is_known(self._envs[0])

    def reset(self, seed: int | None = None) -> Observations:
        """Start all environments anew, each with its own random generator seeded from the seed."""
        self._seed = self._seed if seed is None else check_count("seed", seed, 0)
        self._steps = 0
        return self._restart()

    def step(self, actions: Ints) -> Step:
        """Play one action in each environment; a finished episode is reset."""
        chosen = check_actions(actions, self.num_envs, self.num_actions)
        reward = np.empty(self.num_envs)
        terminated = np.empty(self.num_envs, np.bool_)
        truncated = np.empty(self.num_envs, np.bool_)
        next_observation = np.empty(self._shape, self._dtype)
        for number, env in enumerate(self._envs):
            observed, reward[number], over, cut, _ = env.step(chosen[number] + self._first_action)
            next_observation[number] = observed
            terminated[number] = over
            truncated[number] = cut and not over
        finished = terminated | truncated
        any_finished = finished.any()
        observation = next_observation
        if any_finished:
            observation = next_observation.copy()
            for number in np.flatnonzero(finished).tolist():
                observation[number], _ = self._envs[number].reset()
        self._observation = observation
        self._steps += 1
        episode_return, episode_length = self._tally.add(reward, finished if any_finished else None)
        return Step(
            reward=reward,
            next_observation=next_observation,
            terminated=terminated,
            truncated=truncated,
            observation=observation,
            finished=finished,
            episode_return=episode_return,
            episode_length=episode_length,
        )

    def render(self) -> npt.NDArray[np.uint8]:
        """The screen of environment 0."""
        import gymnasium

        if self._envs[0].render_mode != "rgb_array":
            raise PserError(
                f"{self.name} cannot draw its screen (no rgb_array mode): choose another game for videos"
            )
        try:
            screen = self._envs[0].render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise PserError(f"{self.name} cannot draw its screen: {_one_line(error)}") from error
        return np.asarray(screen, np.uint8)

    def get_state(self) -> State:
        """The episodes and random generators, or, where they cannot be read, only when they were left."""
        state = {
            "name": self.name,
            "num_envs": self.num_envs,
            "seed": self._seed,
            "steps": self._steps,
            "exact": self.exact_state,
        }
        if not self.exact_state:
            return state
        inner = [env.unwrapped for env in self._envs]
        return {
            **state,
            # float64 holds every state these environments use (Acrobot's first one is float32) without loss.
            "state": np.stack([np.asarray(env.state, np.float64) for env in inner]),
            "random": [env.np_random.bit_generator.state for env in inner],
            "observation": self._observation.copy(),
            **self._tally.get_state(),
        }

    def set_state(self, state: State) -> Observations:
        """Continue bit for bit where `exact_state`; else start fresh episodes, with seeds not used before."""
        check_state(state, self.name, self.num_envs)
        self._seed, self._steps = int(state["seed"]), int(state["steps"])
        observation = self._restart()
        if not (self.exact_state and state["exact"]):
            return observation
        for number, env in enumerate(self._envs):
            env.unwrapped.state = np.array(state["state"][number])
            env.unwrapped.np_random.bit_generator.state = state["random"][number]
            limit = _time_limit(env)
            if limit is not None:
                limit._elapsed_steps = int(state["tally_length"][number])
        self._tally.set_state(state)
        self._observation = np.array(state["observation"])
        return self._observation

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()

    def _restart(self) -> Observations:
        self._observation = np.empty(self._shape, self._dtype)
        for number, env in enumerate(self._envs):
            seed = spread_seed(self._seed, number, self._steps)
            self._observation[number], _ = env.reset(seed=seed)
        self._tally.clear()
        return self._observation


def _find_spec(gymnasium: Any, env_id: str) -> Any:
    """The registered environment; MODULE:ID imports the module that registers it first."""
    module, _, bare_id = env_id.rpartition(":")
    try:
        if module:
            import_module(module)
        return gymnasium.spec(bare_id)
    except ImportError as error:
        raise PserError(f"{env_id!r} names a module that cannot be imported: {_one_line(error)}") from error
    except gymnasium.error.Error as error:
        atari = _atari_name(bare_id)
        if atari is not None:
            raise PserError(f"Gymnasium's {env_id!r} is an Atari game: write atari:{atari}") from error
        raise no_such("Gymnasium id", env_id, gymnasium.registry) from error


def _atari_name(env_id: str) -> str | None:
    """The Atari game that an id such as ALE/Pong-v5 or PongNoFrameskip-v4 means, if one can tell."""
    from pser.env.atari import game_names

    game = re.sub(r"^ALE/|(?:Deterministic|NoFrameskip)?-v\d+$", "", env_id)
    try:
        return find_name(game, game_names())
    except PserError:
        return None  # without ale-py there are no names


def _make(gymnasium: Any, env_id: str, **options: Any) -> Any:
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **options)
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise PserError(f"Gymnasium cannot make {env_id!r}: {_one_line(error)}") from error


def _can_render(gymnasium: Any, spec: Any) -> bool:
    from gymnasium.envs.registration import load_env_creator

    try:
        creator = (
            load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
        )
    except (ImportError, gymnasium.error.DependencyNotInstalled):
        return False  # gymnasium.make says more clearly what is missing.
    return "rgb_array" in getattr(creator, "metadata", {}).get("render_modes", ())


def _is_known(env: Any) -> bool:
    """Whether the whole state of the wrapped environment can be read and written."""
    while env is not env.unwrapped:
        if type(env).__name__ not in _KNOWN_WRAPPERS or not type(env).__module__.startswith(
            "gymnasium.wrappers"
        ):
            return False
        env = env.env
    inner = type(env)
    return inner.__name__ in _STATE_IS_ONE_VECTOR and inner.__module__.startswith(
        "gymnasium.envs.classic_control"
    )


def _time_limit(env: Any) -> Any:
    while env is not env.unwrapped:
        if type(env).__name__ == "TimeLimit":
            return env
        env = env.env
    return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
