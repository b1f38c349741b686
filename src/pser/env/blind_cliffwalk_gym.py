"""Blind Cliffwalk as a Gymnasium environment, registered as `pser/BlindCliffwalk-v0` by `import pser.env`."""

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from pser.env.blind_cliffwalk import alternating_actions, check_states
from pser.errors import PserError

SQUARE_PIXELS = 16
"""Height and width of a state in a rendered picture."""


class BlindCliffwalk(gymnasium.Env[np.int64, np.int64]):
    """The chain as a Gymnasium environment: `gymnasium.make("pser/BlindCliffwalk-v0", states=16)`."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        states: int = 16,
        right_actions: Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_states(states)
        chosen = (
            alternating_actions(states) if right_actions is None else tuple(int(a) for a in right_actions)
        )
        if len(chosen) != states or not set(chosen) <= {0, 1}:
            raise PserError(
                f"right_actions names one action (0 or 1) per state; got {chosen} for {states} states: "
                "give as many as there are states, or leave it out"
            )
        self.states = states
        self.right_actions = chosen
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(states)
        self.action_space = spaces.Discrete(2)
        self._state: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Back to the start of the chain."""
        super().reset(seed=seed)
        self._state = 0
        return np.int64(0), {}

    def step(self, action: np.int64) -> tuple[np.int64, SupportsFloat, bool, bool, dict[str, Any]]:
        """One action; the episode ends by a wrong one, or by the right one at the last state (reward 1)."""
        if self._state is None:
            raise PserError("an episode starts with reset, but step was called first: call reset")
        if not self.action_space.contains(action):
            raise PserError(f"an action is 0 or 1; got {action!r}: choose one of them")
        right = int(action) == self.right_actions[self._state]
        goal = right and self._state == self.states - 1
        if right and not goal:
            self._state += 1
            return np.int64(self._state), 0.0, False, False, {}
        self._state = None
        return np.int64(0), 1.0 if goal else 0.0, True, False, {}

    def render(self) -> Any:
        """The chain as a line of text, the walker as @ and the reward as $; or as a picture of the same."""
        if self.render_mode == "rgb_array":
            return self._picture()
        if self.render_mode != "ansi":
            return None
        return "".join("@" if s == self._state else "." for s in range(self.states)) + "$"

    def _picture(self) -> NDArray[np.uint8]:
        """Squares in a row: grey states, the walker blue, the reward yellow, lines between them white."""
        colours = np.full((self.states + 1, 3), 200, np.uint8)
        colours[-1] = (240, 200, 60)
        if self._state is not None:
            colours[self._state] = (60, 110, 200)
        row = np.repeat(colours[None], SQUARE_PIXELS, axis=1)
        picture = np.repeat(row, SQUARE_PIXELS, axis=0)
        picture[[0, -1]] = 255
        picture[:, ::SQUARE_PIXELS] = picture[:, SQUARE_PIXELS - 1 :: SQUARE_PIXELS] = 255
        return picture
