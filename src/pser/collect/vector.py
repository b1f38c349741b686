"""Gymnasium's vector environments: each of their three ways to reset hides the end of an episode elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pser.errors import PserError
from pser.memory.arrays import Ints
from pser.memory.replay import ReplayMemory

MODES = ("NEXT_STEP", "SAME_STEP", "DISABLED")
Bools = npt.NDArray[np.bool_]
Stepped = tuple[Any, npt.NDArray[Any], Bools, Bools, dict[str, Any]]
TDErrors = Callable[[Any, Any, Any, Any, Any], Any]
"""(observation, action, reward, next_observation, terminated) → a TD error for each row."""


class VectorRecorder:
    """Steps a vector environment and adds what was played to a memory, whatever its autoreset mode.

    NEXT_STEP: the step after an end is a reset in disguise, and is left out. SAME_STEP: the true last observation is
    taken from `infos["final_obs"]`. DISABLED: ended environments are reset here, by a mask.
    """

    def __init__(self, env: Any, memory: ReplayMemory, *, autoreset: str | None = None) -> None:
        """A `gymnasium.vector.VectorEnv` and a memory for as many environments.

        `autoreset` (NEXT_STEP, SAME_STEP or DISABLED) is for an environment whose metadata does not tell.
        """
        if not hasattr(env, "num_envs"):
            raise PserError(
                f"the environment must be a vector environment, got {env!r}: make it with gymnasium.make_vec, or add "
                "its steps with memory.add"
            )
        if memory.num_envs != env.num_envs:
            raise PserError(
                f"the memory must have num_envs={env.num_envs} as the environment has, got {memory.num_envs}: "
                "make it for as many"
            )
        mode = (
            (getattr(env, "metadata", None) or {}).get("autoreset_mode") if autoreset is None else autoreset
        )
        self.autoreset = str(getattr(mode, "name", mode)).upper()
        if self.autoreset not in MODES:
            raise PserError(
                f"an environment's autoreset mode must be one of {MODES}, got {mode!r}: give autoreset="
            )
        self.env = env
        self.memory = memory
        self.observation: Any = None
        """What the next action answers to; None before `reset`."""
        self.ids: Ints = np.zeros(0, np.int64)
        """Of the transitions that the last step completed."""
        self.played: Bools = np.zeros(env.num_envs, bool)
        """Which environments the last step played; the others were reset by it."""
        self._ended: Bools = np.zeros(env.num_envs, bool)
        self._keeps = bool(getattr(getattr(env, "unwrapped", env), "copy", False))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes in all environments; those that were running end in the memory as truncated."""
        if self.observation is not None:
            self.ids = self.memory.end_episodes()
        observation, info = self.env.reset(seed=seed, options=options)
        self._ended[:] = False
        self.observation = self._kept(observation)
        return observation, info

    def step(self, action: Any, *, priority: Any = None, td_error: Any | TDErrors = None) -> Stepped:
        """One step of all environments, added to the memory; returns what the environment returned.

        The observation is the one to act on next: where it was not reset by itself, an ended environment was reset
        here. `priority` and `td_error` are as for `ReplayMemory.add`, one for each environment. `td_error` may also be
        a function of (observation, action, reward, next_observation, terminated): it is called once the step is played,
        with the true next observations and only the rows that are added, and gives one TD error for each of them.
        If the memory refuses the step, the environments have moved on nevertheless: the step is missing, the running
        episodes end in the memory as truncated, and the next step begins new ones there.
        """
        if self.observation is None:
            raise PserError(
                "an episode must begin before a step is played, got no observation yet: call reset"
            )
        following, reward, terminated, truncated, info = self.env.step(action)
        ended = np.logical_or(terminated, truncated)
        self.played = ~self._ended if self.autoreset == "NEXT_STEP" else np.ones(self.env.num_envs, bool)
        try:
            next_observation = following
            if self.autoreset == "SAME_STEP" and ended.any():
                next_observation = _with_final(following, ended, info)
            step = (self.observation, action, reward, next_observation, terminated, truncated)
            self.ids = self._added(step, priority, td_error)
        except BaseException:
            # Nothing may follow on a step that is missing.
            self.ids = self.memory.end_episodes(np.flatnonzero(self.played))
            raise
        finally:
            if self.autoreset == "DISABLED" and ended.any():
                following, fresh = self.env.reset(options={"reset_mask": ended})
                info = {**info, **fresh}
            self._ended = ended
            self.observation = self._kept(following)
        return following, reward, terminated, truncated, info

    def _added(self, step: tuple[Any, ...], priority: Any, td_error: Any) -> Ints:
        """The ids of the transitions completed by the rows that were played."""
        rows = None if self.played.all() else np.flatnonzero(self.played)
        if rows is not None:
            if not rows.size:
                return np.zeros(0, np.int64)
            step = tuple(_rows(part, rows) for part in step)
            priority = None if priority is None else _rows(priority, rows)
        if callable(td_error):
            td_error = td_error(*step[:5])
        elif td_error is not None and rows is not None:
            td_error = _rows(td_error, rows)
        given = {"priority": priority, "td_error": td_error, "stream": rows}
        return self.memory.add(*step, **given)

    def _kept(self, observation: Any) -> Any:
        """The observation, safe from an environment that writes the next one into the same arrays."""
        if self._keeps:
            return observation
        if isinstance(observation, dict):
            return {name: np.array(part) for name, part in observation.items()}
        return np.array(observation)


def _with_final(following: Any, ended: Bools, info: dict[str, Any]) -> Any:
    """The next observations, at an episode's end the true final one instead of the first after the reset."""
    if "final_obs" not in info:
        raise PserError(
            f"infos must have 'final_obs' where an episode ended (SAME_STEP), got {sorted(info)}: "
            "give the right autoreset= mode"
        )
    final = info["final_obs"]
    if isinstance(following, dict):
        return {
            name: _replaced(part, ended, [_part(final, name, int(env)) for env in np.flatnonzero(ended)])
            for name, part in following.items()
        }
    return _replaced(following, ended, [final[env] for env in np.flatnonzero(ended)])


def _part(final: Any, name: str, env: int) -> Any:
    """One field of one environment's final observation; Gymnasium keeps a dict of arrays or an array of dicts."""
    return final[name][env] if isinstance(final, dict) else final[env][name]


def _replaced(array: Any, where: Bools, rows: list[Any]) -> npt.NDArray[Any]:
    changed = np.array(array)
    changed[where] = np.stack([np.asarray(row) for row in rows])
    return changed


def _rows(value: Any, rows: Ints) -> Any:
    if isinstance(value, dict):
        return {name: np.asarray(part)[rows] for name, part in value.items()}
    return np.asarray(value)[rows]
