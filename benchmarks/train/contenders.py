"""The trainers that are compared: each trains for a number of steps when asked and says how long it took."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from pser.learner.device import configure_torch
from pser.learner.events import IntervalLogged
from pser.learner.games import training_game
from pser.learner.loop import Trainer, observation_shape
from pser.learner.presets import preset_settings
from pser.learner.replay import build_memory
from pser.learner.settings import TrainSettings


@dataclass(frozen=True)
class Task:
    """One comparison: the game, and what both sides share."""

    env: str
    preset: str
    frames_per_step: int
    segment_steps: int
    capacity: int
    fill_steps: int
    """Steps in a memory before anything is learned from it."""


TASKS = {
    "minatar": Task("minatar:breakout", "minatar", 1, 400, 100_000, 4_000),
    "atari": Task("atari:Breakout", "paper", 4, 40, 20_000, 1_000),
}
STRATEGIES = ("uniform", "per", "pser")
EPSILON = 0.1
LEARNING_RATE = 1e-4
MAX_GRAD_NORM = 10.0


def settings_of(task: Task, replay: str) -> TrainSettings:
    """One environment, batch 32, an update per 4 steps, Adam, gradients clipped: SB3's DQN, in our words."""
    return preset_settings(task.preset, task.env).override(
        {
            "replay": replay,
            "num_envs": 1,
            "capacity": task.capacity,
            "warmup_steps": task.fill_steps * len(STRATEGIES),
            "update_period_steps": 4,
            "target_period_steps": 10_000,
            "optimizer": "adam",
            "learning_rate": LEARNING_RATE,
            "optimizer_eps": 1e-8,
            "max_grad_norm": MAX_GRAD_NORM,
            "epsilon_start": EPSILON,
            "epsilon_end": EPSILON,
            "eval_period_frames": 0,
            "checkpoint_period_frames": 0,
            "budget_frames": 10**12,
            "log_period_frames": task.segment_steps * task.frames_per_step,
        }
    )


class Contender(Protocol):
    def segment(self, strategy: str) -> dict[str, float]:
        """Train for the task's segment; wall and CPU seconds, and where they went if that is known."""


class Ours:
    """This project's trainer: one agent and one game, and a memory of each strategy to train it from.

    Two processes, or two networks in one, differ by more than the strategies do (where their arrays happen to lie);
    here only the memory is exchanged between segments.
    """

    def __init__(self, task: Task) -> None:
        settings = settings_of(task, "uniform")
        self.trainer = Trainer(settings, training_game(settings), configure_torch("cpu", 1))
        self.memories = {
            name: build_memory(each := settings_of(task, name), self.trainer.game, each.replay.prioritization)
            for name in STRATEGIES
        }
        self.spent = {"network": 0.0, "game": 0.0, "memory": 0.0}
        agent = self.trainer.agent
        for owner, method, part in (
            (agent.online_path, "forward", "network"),
            (agent.online_path, "forward_saving", "network"),
            (agent.online_path, "backward", "network"),
            (agent.target_path, "forward", "network"),
            (agent.online_flat, "clip_gradients", "network"),
            (agent.optimizer, "step", "network"),
            (self.trainer.game, "step", "game"),
            *((memory, "add", "memory") for memory in self.memories.values()),
            *((memory, "sample", "memory") for memory in self.memories.values()),
            *((memory, "update_priorities", "memory") for memory in self.memories.values()),
        ):
            _time_calls(owner, method, self.spent, part)
        self.events = self.trainer.train()
        for number, strategy in enumerate(STRATEGIES, 1):
            self._take(strategy)
            while self.trainer.counters.steps < number * task.fill_steps:
                next(self.events)

    def segment(self, strategy: str) -> dict[str, float]:
        self._take(strategy)
        for part in self.spent:
            self.spent[part] = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        for event in self.events:
            if isinstance(event, IntervalLogged):
                break
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, **self.spent}

    def _take(self, strategy: str) -> None:
        self.trainer.memory.end_episodes()
        self.trainer.replay.memory = self.memories[strategy]


class StableBaselines3:
    """stable-baselines3's DQN with the same game, network, batch, update period and optimizer."""

    def __init__(self, task: Task) -> None:
        from stable_baselines3 import DQN

        from benchmarks.train.sb3_game import GameVecEnv

        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        game = training_game(settings_of(task, "uniform"))
        kwargs: dict[str, Any] = {"net_arch": []}
        if task.env.startswith("minatar"):
            kwargs |= {"features_extractor_class": _minatar_extractor(), "normalize_images": False}
        self.steps = task.segment_steps
        self.model = DQN(
            "CnnPolicy",
            GameVecEnv(game),
            learning_rate=LEARNING_RATE,
            buffer_size=task.capacity,
            learning_starts=task.fill_steps,
            batch_size=32,
            train_freq=4,
            gradient_steps=1,
            target_update_interval=10_000,
            exploration_initial_eps=EPSILON,
            exploration_final_eps=EPSILON,
            max_grad_norm=MAX_GRAD_NORM,
            optimize_memory_usage=False,
            policy_kwargs=kwargs,
            device="cpu",
            seed=0,
        )
        shape = observation_shape(game.observation)
        ours = Trainer(settings_of(task, "uniform"), game, torch.device("cpu")).agent.online
        assert _sizes(self.model.q_net) == _sizes(ours), (shape, _sizes(self.model.q_net), _sizes(ours))
        self.model.learn(task.fill_steps, log_interval=10**9)

    def segment(self, strategy: str) -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        self.model.learn(self.steps, log_interval=10**9, reset_num_timesteps=False)
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _minatar_extractor() -> Any:
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    class Extractor(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, 128)
            conv = nn.Conv2d(observation_space.shape[0], 16, 3)
            self.layers = nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU())

        def forward(self, observation: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.layers(observation)
            return result

    return Extractor


def _sizes(network: torch.nn.Module) -> list[int]:
    return sorted(parameter.numel() for parameter in network.parameters())


def _time_calls(owner: Any, name: str, spent: dict[str, float], part: str) -> None:
    """Replace a method of one object by itself with a stopwatch."""
    original = getattr(owner, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        result = original(*args, **kwargs)
        spent[part] += time.perf_counter() - start
        return result

    setattr(owner, name, timed)


CONTENDERS: dict[str, Callable[[Task], Contender]] = {"pser": Ours, "stable-baselines3": StableBaselines3}
