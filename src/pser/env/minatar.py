"""MinAtar: five miniature Atari games on a 10×10 board (Young and Tian, arXiv 1903.03176)."""

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pser.env.checks import check_actions, check_count, check_probability, check_state
from pser.env.game import Ints, Observations, State, Step
from pser.env.names import find_name, no_such
from pser.env.optional import missing
from pser.env.seeds import spread_seed
from pser.env.tally import EpisodeTally, no_flags
from pser.spec import Array, Frames

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
ALL_ACTIONS = 6
CELL_PIXELS = 16
_FIXED = ("channels", "action_map", "random")
"""Attributes of a MinAtar game that are no part of its state (`random` is saved on its own)."""


class MinAtarGame:
    """E copies of one MinAtar game; observations are planes of 0 and 1, [channels, 10, 10].

    MinAtar's own game classes are played, with the rule for sticky actions and the order of random draws of
    its `Environment`, so equal seeds give equal games. Freeway's time limit of 2,500 frames is part of that
    game and terminates it.
    """

    frames_per_step = 1
    exact_state = True

    def __init__(
        self,
        game: str,
        *,
        num_envs: int = 1,
        seed: int = 0,
        sticky_actions: float = 0.1,
        difficulty_ramping: bool = True,
        minimal_actions: bool = False,
        max_episode_steps: int | None = None,
    ) -> None:
        """Make the game; the defaults are MinAtar's own.

        Args:
            game: one of `GAMES`.
            num_envs: how many copies are stepped together.
            seed: what `reset()` takes when it is given none.
            sticky_actions: probability that the previous action is repeated instead of the chosen one.
            difficulty_ramping: whether games grow harder as they go on.
            minimal_actions: offer only the actions that do something in this game instead of all six.
            max_episode_steps: cut games after this many steps (None: never).
        """
        found = find_name(game, GAMES)
        if found is None:
            raise no_such("MinAtar game", game, GAMES)
        self.name = f"minatar:{found}"
        self.num_envs = check_count("num_envs", num_envs, 1)
        self._seed = check_count("seed", seed, 0)
        self._sticky = check_probability("sticky_actions", sticky_actions)
        self._cap = max_episode_steps and check_count("max_episode_steps", max_episode_steps, 1)
        make_env = _game_class(found)
        self._envs = [make_env(ramping=difficulty_ramping) for _ in range(self.num_envs)]
        self._last_actions = [0] * self.num_envs
        self._tally = EpisodeTally(self.num_envs)
        self._none = no_flags(self.num_envs)
        actions: list[int] = (
            self._envs[0].minimal_action_set() if minimal_actions else list(range(ALL_ACTIONS))
        )
        self._actions = actions
        self.num_actions = len(actions)
        self._shape = (len(self._envs[0].channels), 10, 10)
        self.observation: Array | Frames = Array(self._shape, np.uint8)
        self._palette = _palette(self._shape[0])

    def reset(self, seed: int | None = None) -> Observations:
        """Start all games anew, each with its own random generator seeded from the seed."""
        self._seed = self._seed if seed is None else check_count("seed", seed, 0)
        for number, env in enumerate(self._envs):
            env.random = np.random.RandomState(spread_seed(self._seed, number))
            env.reset()
        self._last_actions = [0] * self.num_envs
        self._tally.clear()
        return self._observe()

    def step(self, actions: Ints) -> Step:
        """Play one action in each game; a finished game is reset."""
        chosen = check_actions(actions, self.num_envs, self.num_actions)
        reward = np.empty(self.num_envs)
        next_observation = np.empty((self.num_envs, *self._shape), np.uint8)
        over = []
        for number, env in enumerate(self._envs):
            # MinAtar draws for the sticky action first, even where the probability is 0.
            sticks = env.random.rand() < self._sticky
            action = self._last_actions[number] if sticks else self._actions[chosen[number]]
            self._last_actions[number] = action
            reward[number], terminal = env.act(action)
            next_observation[number] = env.state().transpose(2, 0, 1)
            if terminal:
                over.append(number)
        terminated = truncated = finished = self._none
        if over:
            finished = terminated = np.zeros(self.num_envs, np.bool_)
            terminated[over] = True
        if self._cap:
            truncated = (self._tally.length + 1 >= self._cap) & ~terminated
            finished = terminated | truncated
        observation = next_observation
        any_finished = bool(over) or (self._cap and finished.any())
        if any_finished:
            observation = next_observation.copy()
            for number in np.flatnonzero(finished).tolist():
                self._envs[number].reset()
                observation[number] = self._envs[number].state().transpose(2, 0, 1)
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
        """The board of game 0, one colour per channel; of several things in a cell the last channel shows."""
        board: npt.NDArray[np.bool_] = self._envs[0].state()
        topmost = (board * np.arange(1, board.shape[2] + 1)).max(axis=2)
        image: npt.NDArray[np.uint8] = self._palette[topmost]
        return image.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)

    def get_state(self) -> State:
        """Everything the games hold, their random generators included."""
        generators = [env.random.get_state(legacy=False) for env in self._envs]
        games = [
            {name: value for name, value in vars(env).items() if name not in _FIXED} for env in self._envs
        ]
        boards = [name for name, value in games[0].items() if isinstance(value, np.ndarray)]
        return {
            "name": self.name,
            "num_envs": self.num_envs,
            "seed": self._seed,
            "last_actions": list(self._last_actions),
            "random_key": np.stack([one["state"]["key"] for one in generators]),
            "random_pos": [int(one["state"]["pos"]) for one in generators],
            "games": [{k: _plain(v) for k, v in one.items() if k not in boards} for one in games],
            **{f"board_{name}": np.stack([one[name] for one in games]) for name in boards},
            **self._tally.get_state(),
        }

    def set_state(self, state: State) -> Observations:
        """Continue bit for bit from what `get_state` gave."""
        check_state(state, self.name, self.num_envs)
        boards = {key[len("board_") :]: value for key, value in state.items() if key.startswith("board_")}
        self._seed = int(state["seed"])
        self._last_actions = list(state["last_actions"])
        self._tally.set_state(state)
        for number, env in enumerate(self._envs):
            vars(env).update({name: _copy(value) for name, value in state["games"][number].items()})
            vars(env).update({name: np.array(value[number]) for name, value in boards.items()})
            env.random = np.random.RandomState()
            key = {
                "key": np.array(state["random_key"][number], np.uint32),
                "pos": state["random_pos"][number],
            }
            # MinAtar never draws Gaussians, so the generator holds no spare one.
            env.random.set_state({"bit_generator": "MT19937", "state": key, "has_gauss": 0, "gauss": 0.0})
        return self._observe()

    def close(self) -> None:
        """Nothing to release."""

    def _observe(self) -> Observations:
        return np.stack([env.state().transpose(2, 0, 1) for env in self._envs]).astype(np.uint8)


def _game_class(game: str) -> Any:
    """The class of one game, without `import minatar`: that imports seaborn and takes seconds."""
    package = find_spec("minatar")
    if package is None or not package.submodule_search_locations:
        raise missing("minatar", "MinAtar games", "'pser[minatar]'")
    path = Path(package.submodule_search_locations[0]) / "environments" / f"{game}.py"
    spec = spec_from_file_location(f"pser_minatar_{game}", path)
    if spec is None or spec.loader is None:
        raise missing("minatar", "MinAtar games", "'pser[minatar]'")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Env


def _plain(value: Any) -> Any:
    """The same value in JSON's types (MinAtar mixes Python and NumPy numbers)."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _copy(value: Any) -> Any:
    """A copy that shares no list with the state: the games change their lists in place."""
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _palette(channels: int) -> npt.NDArray[np.uint8]:
    """Black and one bright colour per channel, evenly spaced around the colour wheel; [channels + 1, 3]."""
    hue = np.arange(channels)[:, None] / channels * 6.0
    wheel = np.clip(np.abs((hue + np.array([0.0, 4.0, 2.0])) % 6.0 - 3.0) - 1.0, 0.0, 1.0)
    colours = np.concatenate([np.zeros((1, 3)), 0.25 + 0.75 * wheel])
    return (colours * 255).astype(np.uint8)
