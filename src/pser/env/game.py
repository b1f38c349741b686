"""What a game is to the rest of the package: copies of it stepped together, with exact episode ends.

Every family (Atari, MinAtar, Gymnasium) gives the same `Step`. An episode's end and the reset after it happen
in one step: `next_observation` is then the true final observation, which belongs into the memory, and
`observation` is the first of the new episode, which the agent acts on. No transition ever spans a reset.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

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


class GameFacts(Protocol):
    """What is known of E copies of one game, wherever they are played."""

    name: str
    """The full name, such as `atari:Pong`: `make_game(name)` makes this game again."""
    num_envs: int
    num_actions: int
    frames_per_step: int
    """Frames of the game per step of the agent: 4 on Atari, 1 elsewhere."""
    observation: Array | Frames
    """One environment's observation, as `pser.ReplayMemory` wants it described."""


class Game(GameFacts, Protocol):
    """E copies of one game, stepped together."""

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
