"""stable-baselines3: replay buffers that sample by priority, and a DQN that learns from them.

A buffer keeps SB3's own layout (step, environment); the transition with id i lies at step (i // n_envs) % buffer_size
of environment i % n_envs. SB3 hands over the true last observation of an episode as its next observation and tells
time limits apart by `infos[e]["TimeLimit.truncated"]`; both ends arrive as `done`, and both stop the decay.
"""

import io
import pathlib
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN as _DQN
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecNormalize
from torch.nn.functional import smooth_l1_loss

from pser.errors import PserError, require
from pser.integrations._shared import (
    Beta,
    beta_at,
    index_from_bytes,
    index_to_bytes,
    require_prioritization,
    require_version,
)
from pser.memory.index import PriorityIndex
from pser.memory.prioritization import Prioritization, Uniform

require_version("stable-baselines3", "2.9", "3")

UNANSWERED_BATCHES = 1000
"""So many batches drawn without one priority update mean that the algorithm does not know of priorities."""

Observations = th.Tensor | dict[str, th.Tensor]


class PrioritizedSamples(NamedTuple):
    """A batch in SB3's own form, and what prioritized replay adds to it."""

    observations: Observations
    actions: th.Tensor
    next_observations: Observations
    dones: th.Tensor
    """1 where the episode terminated; 0 at a time limit, so that the target bootstraps (shape (n, 1))."""
    rewards: th.Tensor
    discounts: None
    """SB3's place for n-step discounts; its algorithms use their own gamma when it is None."""
    weights: th.Tensor
    """Importance-sampling weights for the loss (shape (n, 1))."""
    ids: NDArray[np.int64]
    """For `update_priorities`."""


class PrioritizedReplayBuffer(ReplayBuffer):
    """SB3's replay buffer, sampled by PSER, PER or uniformly. Its rules are those of `index`."""

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
        beta: Beta = 0.5,
        seed: int | None = None,
    ) -> None:
        """SB3's arguments, then how to sample; `beta` may be a schedule over transitions added (`pser.Anneal`).

        With `optimize_memory_usage` SB3 cannot keep the last observation of a truncated episode, so time limits are
        then learned as terminations; `handle_timeout_termination` follows from it unless it is given.
        """
        chosen = require_prioritization(
            prioritization, "replay_buffer_kwargs=dict(prioritization=pser.PSER())"
        )
        is_dict = isinstance(observation_space, spaces.Dict)
        if is_dict != isinstance(self, DictReplayBuffer):
            right = "PrioritizedDictReplayBuffer" if is_dict else "PrioritizedReplayBuffer"
            raise PserError(
                f"{type(self).__name__} does not fit a {type(observation_space).__name__} space: use {right}"
            )
        if handle_timeout_termination is None:
            handle_timeout_termination = not optimize_memory_usage
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs,
            optimize_memory_usage,
            handle_timeout_termination,
        )
        # Where one array holds both observations, the newest next observation lies over the oldest observation.
        steps = self.buffer_size - optimize_memory_usage
        require(
            steps >= 1,
            "with optimize_memory_usage buffer_size must be at least 2 steps of every environment",
            buffer_size,
            f"try {100 * n_envs} or more",
        )
        self.beta = beta
        self.seed = seed
        self.index = PriorityIndex(steps * n_envs, chosen, num_streams=n_envs, seed=seed)
        self._first = np.ones(n_envs, bool)
        self._unanswered = 0

    def add(
        self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]
    ) -> None:
        """One step of every environment, with the largest priority ever recorded."""
        super().add(obs, next_obs, action, reward, done, infos)
        self.index.append(self._first)
        self._first = np.array(done, bool).reshape(self.n_envs)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> PrioritizedSamples:  # type: ignore[override]
        """Draw by priority; pass the batch's `ids` and TD errors to `update_priorities`."""
        ids, weights = self.index.sample(batch_size, beta_at(self.beta, self.index.next_id))
        self._expect_updates()
        steps, envs = (ids // self.n_envs) % self.buffer_size, ids % self.n_envs
        after = (steps + 1) % self.buffer_size
        if self.optimize_memory_usage:
            next_observations = self._rows(self.observations, after, envs, env)
        else:
            next_observations = self._rows(self.next_observations, steps, envs, env)
        dones = self.dones[steps, envs] * (1.0 - self.timeouts[steps, envs])
        rewards = self._normalize_reward(self.rewards[steps, envs].reshape(-1, 1), env)
        return PrioritizedSamples(
            observations=self._rows(self.observations, steps, envs, env),
            actions=self.to_torch(self.actions[steps, envs]),
            next_observations=next_observations,
            dones=self.to_torch(dones.reshape(-1, 1)),
            rewards=self.to_torch(rewards),
            discounts=None,
            weights=self.to_torch(weights.astype(np.float32).reshape(-1, 1)),
            ids=ids,
        )

    def update_priorities(self, ids: NDArray[np.int64], td_errors: Any) -> int:
        """New priorities from TD errors (a tensor or an array), with backward decay; returns the rows applied."""
        self._unanswered = 0
        if isinstance(td_errors, th.Tensor):
            td_errors = td_errors.detach().cpu().numpy()
        return self.index.update(ids, np.asarray(td_errors, np.float64).reshape(-1))

    def end_episodes(self) -> None:
        """The environments were reset from outside: what comes next has no predecessor."""
        self._first[:] = True

    def reset(self) -> None:
        """Forget every transition."""
        super().reset()
        index = self.index
        self.index = PriorityIndex(index.capacity, index.prioritization, index.num_streams, self.seed)
        self.end_episodes()

    def _rows(self, stored: Any, steps: Any, envs: Any, env: VecNormalize | None) -> Observations:
        if isinstance(stored, dict):
            picked = {key: array[steps, envs] for key, array in stored.items()}
            normalized = self._normalize_obs(picked, env)
            assert isinstance(normalized, dict)
            return {key: self.to_torch(array) for key, array in normalized.items()}
        return self.to_torch(self._normalize_obs(stored[steps, envs], env))  # type: ignore[arg-type]

    def _expect_updates(self) -> None:
        self._unanswered += 1
        if self._unanswered == UNANSWERED_BATCHES and not isinstance(self.index.prioritization, Uniform):
            warnings.warn(
                f"{UNANSWERED_BATCHES} batches were sampled and no priority was updated, so nothing is prioritized: "
                "train with pser.integrations.sb3.DQN, or call update_priorities(batch.ids, td_errors)",
                stacklevel=3,
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "index": index_to_bytes(self.index)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.index = index_from_bytes(state["index"])


class PrioritizedDictReplayBuffer(PrioritizedReplayBuffer, DictReplayBuffer):  # type: ignore[misc]
    """The same for observations that are dicts."""


class DQN(_DQN):
    """SB3's DQN with importance-sampling weights in its Huber loss and |δ| as priority.

    It needs `replay_buffer_kwargs=dict(prioritization=...)`; `replay_buffer_class` follows from the observation space.
    """

    def _setup_model(self) -> None:
        if self.n_steps != 1:
            raise PserError(
                f"this adapter learns from one-step targets, got n_steps={self.n_steps}: leave n_steps at 1, "
                "or use pser.ReplayMemory(n_step=...) in a loop of your own"
            )
        if self.replay_buffer_class is None:
            is_dict = isinstance(self.observation_space, spaces.Dict)
            self.replay_buffer_class = PrioritizedDictReplayBuffer if is_dict else PrioritizedReplayBuffer
        if not issubclass(self.replay_buffer_class, PrioritizedReplayBuffer):
            raise PserError(
                f"this DQN needs a prioritized buffer, got {self.replay_buffer_class.__name__}: "
                "use replay_buffer_class=pser.integrations.sb3.PrioritizedReplayBuffer"
            )
        self.replay_buffer_kwargs = {"seed": self.seed, **self.replay_buffer_kwargs}
        super()._setup_model()

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if reset_num_timesteps or self._last_obs is None:  # SB3 resets the environments just then
            self._prioritized().end_episodes()
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Gradient steps on batches drawn by priority; each hands its TD errors back to the buffer."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = [self._learn_from_batch(batch_size) for _ in range(gradient_steps)]
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", float(np.mean(losses)))
        self.logger.record("train/max_priority", self._prioritized().index.max_priority)

    def _learn_from_batch(self, batch_size: int) -> float:
        buffer = self._prioritized()
        batch = buffer.sample(batch_size, env=self._vec_normalize_env)
        with th.no_grad():
            best_next = self.q_net_target(batch.next_observations).amax(dim=1, keepdim=True)
            target = batch.rewards + self.gamma * (1.0 - batch.dones) * best_next
        chosen = self.q_net(batch.observations).gather(1, batch.actions.long())
        loss = (batch.weights * smooth_l1_loss(chosen, target, reduction="none")).mean()
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        buffer.update_priorities(batch.ids, target - chosen)
        return loss.item()

    def load_replay_buffer(
        self, path: str | pathlib.Path | io.BufferedIOBase, truncate_last_traj: bool = True
    ) -> None:
        """SB3's own loading; a buffer that does not fit this model is refused and the old one stays.

        Unless `truncate_last_traj=False`, the episodes that were running when it was saved end there.
        """
        before = self._prioritized()
        super().load_replay_buffer(path, truncate_last_traj)
        loaded, self.replay_buffer = self.replay_buffer, before
        if not isinstance(loaded, PrioritizedReplayBuffer):
            raise PserError(
                f"the file holds a {type(loaded).__name__} without priorities: load it with stable_baselines3.DQN"
            )
        for what in ("n_envs", "buffer_size", "observation_space", "action_space", "optimize_memory_usage"):
            saved, ours = getattr(loaded, what), getattr(before, what)
            if saved != ours:
                raise PserError(
                    f"the saved buffer has {what}={saved}, this model {ours}: make the model with the saved settings"
                    " (SB3's buffer_size argument counts all environments, the buffer's own counts steps of each)"
                )
        if truncate_last_traj:
            loaded.end_episodes()
        self.replay_buffer = loaded

    def _prioritized(self) -> PrioritizedReplayBuffer:
        buffer = self.replay_buffer
        if not isinstance(buffer, PrioritizedReplayBuffer):
            raise PserError(
                f"this DQN needs a prioritized buffer, got {type(buffer).__name__}: leave replay_buffer as it was made"
            )
        return buffer
