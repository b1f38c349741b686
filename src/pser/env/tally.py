"""What running games have scored so far, and the flags of a step in which none of them ended."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pser.env.game import Bools, Floats, Ints, State


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


def _locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
