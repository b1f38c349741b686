"""stable-baselines3's own classes and ours, ready to train on a full buffer of random transitions."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.logger import configure

import pser
from benchmarks.workload import Workload
from pser.integrations import sb3

BATCHES = {"DQN": 32, "QRDQN": 32, "DDPG": 256, "TD3": 256, "SAC": 256, "TQC": 256}
"""Class → its own default."""


class Idle(gym.Env[Any, Any]):
    """Spaces, and nothing that is ever played."""

    def __init__(self, discrete: bool) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = (
            gym.spaces.Discrete(6) if discrete else gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        raise NotImplementedError


def model(name: str, load: Workload, rule: pser.Prioritization | None) -> Any:
    """A model with a full buffer; `rule` None: the library's own class."""
    library = sb3_contrib if name in ("QRDQN", "TQC") else stable_baselines3
    kind = getattr(library if rule is None else sb3, name)
    buffer = {} if rule is None else {"prioritization": rule}
    made = kind(
        "MlpPolicy",
        Idle(name in ("DQN", "QRDQN")),
        buffer_size=load.capacity,
        batch_size=BATCHES[name],
        replay_buffer_kwargs=buffer,
        seed=0,
        device="cpu",
    )
    made.set_logger(configure(None, []))
    _fill(made.replay_buffer, load)
    torch.manual_seed(0)
    return made


def _fill(buffer: ReplayBuffer, load: Workload) -> None:
    rows = load.transitions
    buffer.observations[:, 0], buffer.next_observations[:, 0] = rows.observation, rows.next_observation
    buffer.actions[:, 0] = (
        (rows.action / 6)[:, None] if buffer.actions.dtype.kind == "f" else rows.action[:, None]
    )
    buffer.rewards[:, 0], buffer.dones[:, 0] = rows.reward, rows.terminated | rows.truncated
    buffer.timeouts[:, 0], buffer.full = rows.truncated, True
    if isinstance(buffer, sb3.PrioritizedReplayBuffer):
        stream = np.zeros(load.capacity, np.int64)
        buffer.index.append(load.starts, load.fill_errors, stream=stream)
