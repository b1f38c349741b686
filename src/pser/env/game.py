"""What a game is to the rest of the package: environments stepped together, with exact episode ends.

Every family (Atari, MinAtar, Gymnasium) gives the same `Step`. An episode's end and the reset after it happen
in one step: `next_observation` is then the true final observation, which belongs into the memory, and
`observation` is the first of the new episode, which the agent acts on. No transition ever spans a reset.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pser.errors import PserError
from pser.spec import Array, Frames

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Observations = npt.NDArray[Any]
State = dict[str, Any]
"""Each value is either a NumPy array or pure JSON (numbers, strings, lists, dictionaries of them)."""


@dataclass(frozen=True)
class Step:
    """One step of all E environments. Its arrays are read-only and valid until the game's next call."""

    reward: Floats
    """[E] The game's own reward, never clipped."""
    next_observation: Observations
    """[E, ...] What followed the action; at an episode's end the true final observation."""
    terminated: Bools
    """[E] The learning episode ended: the game is over, or a life was lost where that rule is on."""
    truncated: Bools
    """[E] The game was cut by a time limit. Never together with `terminated`, which wins."""
    observation: Observations
    """[E, ...] What the agent acts on next: `next_observation`, or the first observation after a reset."""
    finished: Bools
    """[E] The game itself ended and was reset (game over or time limit, but not a mere lost life)."""
    episode_return: Floats
    """[E] Sum of the finished game's rewards; NaN where no game finished."""
    episode_length: Ints
    """[E] Steps of the finished game; 0 where no game finished."""


class Game(Protocol):
    """E copies of one game, stepped together."""

    name: str
    """The full name, such as `atari:Pong`: `make_game(name)` makes this game again."""
    num_envs: int
    num_actions: int
    frames_per_step: int
    """Frames of the game per step of the agent: 4 on Atari, 1 elsewhere."""
    observation: Array | Frames
    """One environment's observation, as `pser.ReplayMemory` wants it described."""
    exact_state: bool
    """Whether `set_state` continues bit for bit. Otherwise it starts fresh episodes."""

    def reset(self, seed: int | None = None) -> Observations:
        """Start all environments anew, [E, ...]. The seed decides everything random from here on.

        None takes the seed the game was made with.
        """
        ...

    def step(self, actions: Ints) -> Step:
        """Play one action in each environment; finished games are reset within the step."""
        ...

    def render(self) -> npt.NDArray[np.uint8]:
        """The screen of environment 0, [height, width, 3]."""
        ...

    def get_state(self) -> State:
        """All that `set_state` needs to go on from here, without pickle."""
        ...

    def set_state(self, state: State) -> Observations:
        """Go on from a state and return the current observations, [E, ...]."""
        ...

    def close(self) -> None:
        """Release the environments."""
        ...


class EpisodeTally:
    """Return and length of the running games."""

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)
        self._no_return = _locked(np.full(num_envs, np.nan))
        self._no_length = _locked(np.zeros(num_envs, np.int64))

    def clear(self) -> None:
        """Forget the running games."""
        self._return[:] = 0.0
        self._length[:] = 0

    @property
    def length(self) -> Ints:
        """Steps of the running games; not to be written."""
        return self._length

    def add(self, reward: Floats, finished: Bools | None) -> tuple[Floats, Ints]:
        """Count one step; `episode_return` and `episode_length` of the games it finished (None: no game)."""
        self._return += reward
        self._length += 1
        if finished is None:
            return self._no_return, self._no_length
        episode_return = np.where(finished, self._return, np.nan)
        episode_length = np.where(finished, self._length, 0)
        self._return[finished] = 0.0
        self._length[finished] = 0
        return episode_return, episode_length

    def get_state(self) -> State:
        """The running games' returns and lengths."""
        return {"tally_return": self._return.copy(), "tally_length": self._length.copy()}

    def set_state(self, state: State) -> None:
        """Take back what `get_state` gave."""
        self._return[:] = state["tally_return"]
        self._length[:] = state["tally_length"]


def no_flags(num_envs: int) -> Bools:
    """All false: what nearly every step reports of ends, made once and hence locked against writing."""
    return _locked(np.zeros(num_envs, np.bool_))


def spread_seed(seed: int, *path: int) -> int:
    """A 31-bit seed that depends on all its arguments, so that runs and environments do not share streams."""
    return int(np.random.SeedSequence((seed, *path)).generate_state(1)[0]) >> 1


def check_actions(actions: Ints, num_envs: int, num_actions: int) -> list[int]:
    """The actions as Python integers, or a PserError (some environments take a wrong one silently)."""
    if actions.shape != (num_envs,) or actions.dtype.kind not in "iu":
        raise PserError(
            f"a step takes one whole-number action per environment, shape ({num_envs},), "
            f"got {actions.dtype} of shape {actions.shape}: pass an int64 array"
        )
    values: list[int] = actions.tolist()
    if min(values) < 0 or max(values) >= num_actions:
        raise PserError(f"actions are 0 to {num_actions - 1} in this game, got {values}: choose among them")
    return values


def check_count(name: str, value: int, least: int) -> int:
    """`value` as an int of at least `least`, or a PserError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PserError(f"{name} must be a whole number of at least {least}, got {value!r}: raise it")
    return int(value)


def check_probability(name: str, value: float) -> float:
    """`value` as a float in [0, 1], or a PserError."""
    if not 0.0 <= value <= 1.0:
        raise PserError(
            f"{name} must be a probability between 0 and 1, got {value!r}: choose one in that range"
        )
    return float(value)


def check_state(state: State, name: str, num_envs: int) -> None:
    """Refuse a state that another game or another number of environments left."""
    saved = state.get("name"), state.get("num_envs")
    if saved != (name, num_envs):
        raise PserError(
            f"a state fits only the game that gave it, got one of {saved[0]} with {saved[1]} environments "
            f"for {name} with {num_envs}: make the game with the saved settings"
        )


FEW_NAMES = 12
"""An error lists up to this many names."""


def no_such(what: str, wanted: str, known: Iterable[str]) -> PserError:
    """The error for an unknown name, with the nearest known ones."""
    names = list(known)
    folded = {_fold(name): name for name in names}
    near = [folded[name] for name in difflib.get_close_matches(_fold(wanted), folded, n=3, cutoff=0.5)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif len(names) <= FEW_NAMES:
        hint = f"choose one of {', '.join(names)}"
    else:
        hint = f"choose one of the {len(names)}, such as {', '.join(names[:3])}"
    return PserError(f"there is no {what} {wanted!r}: {hint}")


def find_name(wanted: str, known: Iterable[str]) -> str | None:
    """The known name that equals `wanted` but for case and separators (SpaceInvaders, space_invaders)."""
    return next((name for name in known if _fold(name) == _fold(wanted)), None)


def need(module: str, what: str, install: str) -> Any:
    """Import an optional dependency, or say in one line how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(module, what, install) from error


def missing(module: str, what: str, install: str) -> PserError:
    """The error for an optional dependency that is not installed."""
    return PserError(f"{what} need {module}, which is not installed: pip install {install}")


def _locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _fold(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
