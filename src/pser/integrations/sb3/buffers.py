"""Replay buffers of stable-baselines3 that sample by priority.

A buffer keeps SB3's own layout (step, environment); the transition with id i lies at step (i // n_envs) % buffer_size
of environment i % n_envs. SB3 hands over the true last observation of an episode as its next observation and tells
time limits apart by `infos[e]["TimeLimit.truncated"]`; both ends arrive as `done`, and both stop the decay.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from pser.errors import PserError, require
from pser.integrations._shared import (
    Beta,
    beta_at,
    index_from_bytes,
    index_to_bytes,
    require_prioritization,
)
from pser.memory.index import PriorityIndex
from pser.memory.prioritization import Prioritization, Uniform

Ints = NDArray[np.int64]
NOT_GIVEN: Any = object()


class PrioritizedSamples(ReplayBufferSamples):
    """A batch in SB3's own form, and what prioritized replay adds to it.

    `dones` is 1 where the episode terminated and 0 at a time limit, so that the target bootstraps; `discounts` is None,
    and SB3's algorithms then use their own gamma, unless the buffer has n-step returns.
    """

    weights: th.Tensor
    """Importance-sampling weights for the loss (shape (n, 1))."""
    ids: Ints
    """For `update_priorities`."""


class PrioritizedDictSamples(DictReplayBufferSamples):
    """The same for observations that are dicts."""

    weights: th.Tensor
    ids: Ints


Samples = PrioritizedSamples | PrioritizedDictSamples


class PrioritizedReplayBuffer(ReplayBuffer):
    """SB3's replay buffer, sampled by PSER, PER or uniformly. Its rules are those of `index`."""

    drawn: Samples | None
    """The batch that was drawn last."""
    rate: "Callable[[PrioritizedReplayBuffer], Any] | None"
    """With `initial="td"`, what tells the TD errors of the newest step (`newest`); a training algorithm sets it."""

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool | None = None,
        *,
        prioritization: Prioritization | None = None,
        initial: Literal["max", "td"] = "max",
        beta: Beta = 0.5,
        seed: int | None = None,
        n_steps: int = 1,
        gamma: float = 0.99,
        **more: Any,
    ) -> None:
        """SB3's arguments, then how to sample; `beta` may be a schedule over transitions added (`pser.Anneal`).

        New transitions enter with the largest priority ever recorded (`initial="max"`), or with their own TD error over
        one step, which decays at once (`"td"`: CurrentTD).

        With `optimize_memory_usage` SB3 cannot keep the last observation of a truncated episode, so time limits are
        then learned as terminations; `handle_timeout_termination` follows from it unless it is given. `n_steps` rewards
        are summed, discounted by `gamma`. Without a `seed` one is drawn from NumPy's global generator, which SB3 seeds.
        """
        chosen = require_prioritization(
            prioritization, "replay_buffer_kwargs=dict(prioritization=pser.PSER())"
        )
        require(initial in ("max", "td"), 'initial must be "max" or "td"', initial, '"max" is usual')
        require(
            initial == "max" or not isinstance(chosen, Uniform),
            'initial="td" needs priorities',
            chosen,
            "use pser.PSER() or pser.PER()",
        )
        is_dict = isinstance(observation_space, spaces.Dict)
        if is_dict != isinstance(self, DictReplayBuffer):
            right = "PrioritizedDictReplayBuffer" if is_dict else "PrioritizedReplayBuffer"
            raise PserError(
                f"{type(self).__name__} does not fit a {type(observation_space).__name__} space: use {right}"
            )
        require(n_steps >= 1, "n_steps must be at least 1", n_steps, "3 is usual")
        if n_steps > 1 and optimize_memory_usage:
            raise PserError(
                f"n-step returns need both observations, got n_steps={n_steps} with optimize_memory_usage=True: "
                "leave one out"
            )
        if handle_timeout_termination is None:
            handle_timeout_termination = not optimize_memory_usage
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device=device,
            n_envs=n_envs,
            optimize_memory_usage=optimize_memory_usage,
            handle_timeout_termination=handle_timeout_termination,
            **more,
        )
        # Where one array holds both observations, the newest next observation lies over the oldest observation.
        steps = self.buffer_size - optimize_memory_usage
        require(
            steps >= 1,
            "with optimize_memory_usage buffer_size must be at least 2 steps of every environment",
            buffer_size,
            f"try {100 * n_envs} or more",
        )
        self.initial, self.rate = initial, None
        self.beta = beta
        self.n_steps = n_steps
        self.gamma = gamma
        self.seed = int(np.random.randint(2**31)) if seed is None else seed  # noqa: NPY002  # SB3 seeds this one
        self.index = PriorityIndex(steps * n_envs, chosen, num_streams=n_envs, seed=self.seed)
        self.starts = np.ones((self.buffer_size, n_envs), bool)
        self._first = np.ones(n_envs, bool)
        self._unanswered = 0
        self.drawn = None

    def add(
        self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]
    ) -> None:
        """One step of every environment, with the largest priority ever recorded, or its own (`initial`)."""
        rate = self.rate if self.initial == "td" else None
        if self.initial == "td" and rate is None:
            raise PserError(
                'initial="td" needs the TD errors of new transitions, got nobody who tells them: train with a class of '
                "pser.integrations.sb3, or set the buffer's rate"
            )
        self.starts[self.pos] = self._first
        super().add(obs, next_obs, action, reward, done, infos)
        self.index.append(self._first, td_error=None if rate is None else rate(self))
        self._first = np.array(done, bool).reshape(self.n_envs)

    def sample(self, batch_size: int, env: VecNormalize | None = NOT_GIVEN) -> Samples:  # type: ignore[override]
        """Draw by priority; pass the batch's `ids` and TD errors to `update_priorities`."""
        ids, weights = self.index.sample(batch_size, beta_at(self.beta, self.index.next_id))
        if (
            env is not NOT_GIVEN
        ):  # SB3's algorithms name it, always; somebody who looks into a buffer does not
            self._expect_updates()
        return self._handed_out(
            self._read(ids, None if env is NOT_GIVEN else env, self.n_steps), ids, weights
        )

    def newest(self, env: VecNormalize | None = None) -> Samples:
        """The step added last, of every environment, with its reward alone."""
        steps = (self.pos - 1) % self.buffer_size * self.n_envs + np.arange(self.n_envs)
        kind = PrioritizedDictSamples if isinstance(self.observations, dict) else PrioritizedSamples
        return kind(*self._read(steps, env, n_steps=1))

    def update_priorities(self, ids: Ints, td_errors: Any) -> int:
        """New priorities from TD errors (a tensor or an array), with backward decay; returns the rows applied."""
        self._unanswered = 0
        if isinstance(td_errors, th.Tensor):
            td_errors = td_errors.detach().cpu().numpy()
        return self.index.update(ids, np.asarray(td_errors).reshape(-1))

    def set_random_seed(self, seed: int) -> None:
        """Draw as a new buffer with this seed would."""
        self.seed = seed
        self.index.reseed(seed)

    def end_episodes(self) -> None:
        """The environments were reset from outside: what comes next has no predecessor."""
        self._first[:] = True

    def reset(self) -> None:
        """Forget every transition."""
        super().reset()
        index = self.index
        self.index = PriorityIndex(index.capacity, index.prioritization, index.num_streams, self.seed)
        self.end_episodes()

    def places(self, ids: Ints) -> tuple[Ints, Ints]:
        """Step and environment where these transitions lie."""
        return (ids // self.n_envs) % self.buffer_size, ids % self.n_envs

    def _read(self, ids: Ints, env: VecNormalize | None, n_steps: int) -> tuple[Any, ...]:
        """The fields of SB3's samples, of these transitions."""
        slots = ids % (self.buffer_size * self.n_envs)
        if n_steps > 1:
            rewards, last, discounts = self._n_step_returns(ids, env)
        else:
            rewards, last, discounts = (
                self._normalize_reward(_at(self.rewards, slots).reshape(-1, 1), env),
                slots,
                None,
            )
        if self.optimize_memory_usage:
            after = (last + self.n_envs) % (self.buffer_size * self.n_envs)
            following = self._rows(self.observations, after, env)
        else:
            following = self._rows(self.next_observations, last, env)
        dones = _at(self.dones, last) * (1 - _at(self.timeouts, last))
        return (
            self._rows(self.observations, slots, env),
            self._tensor(_at(self.actions, slots)),
            following,
            self._tensor(dones.reshape(-1, 1)),
            self._tensor(rewards),
            None if discounts is None else self._tensor(discounts),
        )

    def _n_step_returns(self, ids: Ints, env: VecNormalize | None) -> tuple[Any, Ints, Any]:
        """Σ γ^k·r_k over the m ≤ n steps to the episode's end or the newest one, the last of them, and γ^m."""
        ahead = np.arange(self.n_steps)
        later = ids[:, None] + self.n_envs * ahead  # (batch, n_steps)
        slots = later % (self.buffer_size * self.n_envs)
        # The first is always within; a later one unless an episode starts there or before, or it has not happened yet.
        beyond = (_at(self.starts, slots) & (ahead > 0)) | (later >= self.index.next_id)
        within = ~np.logical_or.accumulate(beyond, axis=1)
        powers = self.gamma ** ahead.astype(np.float32).reshape(1, -1)
        rewards = self._normalize_reward(_at(self.rewards, slots), env)
        taken = within.sum(axis=1, keepdims=True)
        last: Ints = slots[np.arange(len(ids)), taken[:, 0] - 1]
        return (
            (rewards * powers * within).sum(axis=1, keepdims=True),
            last,
            self.gamma ** taken.astype(np.float32),
        )

    def _handed_out(self, fields: tuple[Any, ...], ids: Ints, weights: NDArray[np.float64]) -> Samples:
        kind = PrioritizedDictSamples if isinstance(fields[0], dict) else PrioritizedSamples
        batch: Samples = kind(*fields)
        batch.weights = self._tensor(weights.astype(np.float32).reshape(-1, 1))
        batch.ids = ids
        self.drawn = batch
        return batch

    def _rows(self, stored: Any, slots: Ints, env: VecNormalize | None) -> Any:
        if isinstance(stored, dict):
            normalized = self._normalize_obs({key: _at(array, slots) for key, array in stored.items()}, env)
            assert isinstance(normalized, dict)
            return {key: self._tensor(array) for key, array in normalized.items()}
        return self._tensor(self._normalize_obs(_at(stored, slots), env))  # type: ignore[arg-type]

    def _tensor(self, fresh: NDArray[Any]) -> th.Tensor:
        """What `to_torch` gives, of an array that nobody else holds: on the CPU without a second copy."""
        return th.from_numpy(fresh) if self.device.type == "cpu" else self.to_torch(fresh)

    def _expect_updates(self) -> None:
        self._unanswered += 1
        if self._unanswered == 2 and not isinstance(self.index.prioritization, Uniform):
            warnings.warn(
                "a second batch was sampled and no priority was updated, so nothing is prioritized: train with the "
                "class of the same name in pser.integrations.sb3, or call update_priorities(batch.ids, td_errors)",
                stacklevel=3,
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "index": index_to_bytes(self.index), "drawn": None, "rate": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"initial": "max", "rate": None, **state})  # buffers of before have neither
        self.index = index_from_bytes(state["index"])


class PrioritizedDictReplayBuffer(PrioritizedReplayBuffer, DictReplayBuffer):  # type: ignore[misc]
    """The same for observations that are dicts."""


def _at(array: NDArray[Any], slots: Ints) -> NDArray[Any]:
    """Rows of an array (step, environment, …), by slot of its first two axes as one."""
    return array.reshape(-1, *array.shape[2:]).take(slots, axis=0)
