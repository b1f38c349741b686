"""What makes an off-policy algorithm of SB3 prioritized: the buffer, the losses' weights, the TD errors back.

SB3 leaves no seam between a loss and its batch. But each `train` calls its loss by a name of its module, so the
library's own `train` is run, unchanged, with weighted losses under those names (`WeightedLosses`).
"""

import functools
import io
import pathlib
import types
import warnings
import weakref
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DDPG as _DDPG
from stable_baselines3 import DQN as _DQN
from stable_baselines3 import SAC as _SAC
from stable_baselines3 import TD3 as _TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import MaybeCallback

from pser.errors import PserError
from pser.integrations.sb3 import values
from pser.integrations.sb3.buffers import PrioritizedDictReplayBuffer, PrioritizedReplayBuffer, Samples
from pser.integrations.sb3.losses import WeightedLosses
from pser.integrations.sb3.values import Values

LOSSES = ("F", "quantile_huber_loss")
"""The names under which SB3's modules know their losses: torch.nn.functional, or the function itself."""

TRAINS: "weakref.WeakKeyDictionary[Prioritized, tuple[types.FunctionType, WeightedLosses]]" = (
    weakref.WeakKeyDictionary()
)
"""Each model's `train`, made once. Not an attribute of the model: SB3 would save it."""


class Prioritized(OffPolicyAlgorithm):
    """An algorithm of SB3 whose critic losses take the importance-sampling weights and whose TD errors go back.

    It needs `replay_buffer_kwargs=dict(prioritization=...)`; `replay_buffer_class` follows from the observation space.
    """

    def _setup_model(self) -> None:
        library_train(type(self))  # said now rather than at the first gradient step
        if self.replay_buffer_class is None:
            is_dict = isinstance(self.observation_space, spaces.Dict)
            self.replay_buffer_class = PrioritizedDictReplayBuffer if is_dict else PrioritizedReplayBuffer
        if not issubclass(self.replay_buffer_class, PrioritizedReplayBuffer):
            raise PserError(
                f"this {type(self).__name__} needs a prioritized buffer, got {self.replay_buffer_class.__name__}: "
                "use replay_buffer_class=pser.integrations.sb3.PrioritizedReplayBuffer"
            )
        returns = {"n_steps": self.n_steps, "gamma": self.gamma} if self.n_steps > 1 else {}
        self.replay_buffer_kwargs = {"seed": self.seed, **returns, **self.replay_buffer_kwargs}
        with warnings.catch_warnings():
            # SB3 does not know that this buffer class takes n_steps.
            warnings.filterwarnings("ignore", message="`n_steps=.*is ignored", category=UserWarning)
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
        self._tell_td_errors(self._prioritized())
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

    def values_of(self, batch: Samples) -> Values:
        """V(s') and each critic's Q(s, a), as the networks are now."""
        raise NotImplementedError

    def td_errors(self, batch: Samples) -> NDArray[np.float32]:
        """|r + γ^m·V(s') − Q(s, a)| of each row, averaged over the critics."""
        with th.no_grad():
            following, current = self.values_of(batch)
            discounts = self.gamma if batch.discounts is None else batch.discounts
            target = batch.rewards + (1 - batch.dones) * discounts * following
            errors: NDArray[np.float32] = (target - current).abs().mean(dim=1).cpu().numpy()
        return errors

    def _tell_td_errors(self, buffer: PrioritizedReplayBuffer) -> None:
        """Let the buffer ask for the TD errors of new transitions, if it needs them."""
        if buffer.initial != "td":
            return
        if type(self).values_of is Prioritized.values_of:
            raise PserError(
                f'initial="td" asks the networks for the values of a batch, but {type(self).__name__} has no such '
                'method: define values_of(batch) (see pser.integrations.sb3.values), or leave initial at "max"'
            )
        buffer.rate = lambda held: self.td_errors(held.newest(self._vec_normalize_env))

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed everything that SB3 seeds, and the buffer's draws."""
        super().set_random_seed(seed)
        if seed is not None and isinstance(self.replay_buffer, PrioritizedReplayBuffer):
            self.replay_buffer.set_random_seed(seed)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """The library's own gradient steps, on batches drawn by priority; each hands its TD errors back."""
        if self not in TRAINS:
            TRAINS[self] = weighted_train(library_train(type(self)))
        train, losses = TRAINS[self]
        critics = len(getattr(getattr(self, "critic", None), "q_networks", [None]))
        with losses.training(self._prioritized(), critics):
            train(self, gradient_steps, batch_size)
        self.logger.record("train/max_priority", self._prioritized().index.max_priority)

    def load_replay_buffer(
        self, path: str | pathlib.Path | io.BufferedIOBase, truncate_last_traj: bool = True
    ) -> None:
        """SB3's own loading; a buffer that does not fit this model is refused and the old one stays.

        Unless `truncate_last_traj=False`, the episodes that were running when it was saved end there.
        """
        before = self.replay_buffer
        super().load_replay_buffer(path, truncate_last_traj)
        loaded, self.replay_buffer = self.replay_buffer, before
        if not isinstance(loaded, PrioritizedReplayBuffer):
            raise PserError(
                f"the file holds a {type(loaded).__name__} without priorities: "
                f"load it with stable_baselines3.{type(self).__name__}"
            )
        for what in ("n_envs", "observation_space", "action_space", "buffer_size", "optimize_memory_usage"):
            if before is None and what == "buffer_size":
                continue
            saved, ours = getattr(loaded, what), getattr(self if before is None else before, what)
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
                f"this {type(self).__name__} needs a prioritized buffer, got {type(buffer).__name__}: "
                "leave replay_buffer as it was made, or load one"
            )
        return buffer


@functools.cache
def library_train(model: type[Prioritized]) -> types.FunctionType:
    """The `train` of the SB3 class that a prioritized class stands for; it must call a loss that can be weighted."""
    after = model.__mro__[model.__mro__.index(Prioritized) + 1 :]
    for kind in after:
        train: Any = kind.__dict__.get("train")
        if train is not None:
            if not isinstance(train, types.FunctionType) or not names_in(train.__code__) & set(LOSSES):
                break
            return train
    raise PserError(
        f"{model.__name__} must derive from pser.integrations.sb3.Prioritized and then from an SB3 class whose train "
        f"calls one of {LOSSES}, got {[kind.__name__ for kind in after[:2]]}: weigh the loss in a train of your own"
    )


def weighted_train(stock: types.FunctionType) -> tuple[types.FunctionType, WeightedLosses]:
    """The same function with weighted losses under the names it calls, and these losses."""
    losses = WeightedLosses(stock.__globals__.get("quantile_huber_loss"))
    names = {**stock.__globals__, "F": losses, "quantile_huber_loss": losses.quantile_huber_loss}
    train = types.FunctionType(stock.__code__, names, stock.__name__, stock.__defaults__, stock.__closure__)
    return train, losses


def names_in(code: types.CodeType) -> set[str]:
    """The global names (among others) that a function uses, in what it nests as well."""
    nested = (names_in(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*nested)


class DQN(Prioritized, _DQN):
    """SB3's DQN, prioritized."""

    values_of = values.of_dqn


class DDPG(Prioritized, _DDPG):
    """SB3's DDPG, prioritized."""

    values_of = values.of_td3


class TD3(Prioritized, _TD3):
    """SB3's TD3, prioritized."""

    values_of = values.of_td3


class SAC(Prioritized, _SAC):
    """SB3's SAC, prioritized."""

    values_of = values.of_sac
