"""What the loop asks of a replay: keep a step, give a batch, hear what was learned, end episodes. The seam for rules.

A rule of one's own is one file: settings, a class derived from `MemoryReplay`, and its line in `STRATEGIES`.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pser
from pser.env.game import Game
from pser.errors import require
from pser.learner.agent import Agent, Floats, Ints
from pser.learner.registry import load
from pser.learner.seeds import derived_seed
from pser.learner.settings import TrainSettings
from pser.learner.strategies import STRATEGIES


class Experience(NamedTuple):
    """One step of every environment, a row each, as `ReplayMemory.add` takes it."""

    observation: NDArray[Any]
    action: Ints
    reward: NDArray[np.float64]
    next_observation: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class MemoryReplay:
    """The memory's own rule: every question goes straight to it."""

    single_steps: ClassVar[str] = ""
    """What the rule is called in messages, if it works on single steps only (n_step 1)."""

    def __init__(self, settings: TrainSettings, game: Game, agent: Agent) -> None:
        self.settings, self.agent = settings, agent
        self.check(settings)
        self.memory = build_memory(settings, game, self.sampled_by(settings.replay.prioritization))

    @classmethod
    def check(cls, settings: TrainSettings) -> None:
        """Refuse settings that the rule cannot work with."""
        n_step = settings.replay.n_step
        require(not cls.single_steps or n_step == 1, f"{cls.single_steps} needs n_step 1", n_step, "set it")

    def sampled_by(self, rule: Any) -> Any:
        """The prioritization by which the memory samples, given the rule's settings."""
        return rule

    def add(self, step: Experience) -> None:
        """Keep one step of every environment."""
        td_error = None
        if self.settings.replay.starts_with_td:
            td_error = self.agent.new_priorities(*step[:5])
        self.memory.add(*step, td_error=td_error)

    def end_episodes(self) -> None:
        """Nothing follows on what the environments did last: no transition, no decay across the gap."""
        self.memory.end_episodes()

    def draw(self, batch_size: int, beta: float) -> "pser.Batch":
        """A batch to learn from. Its targets are reward + discount·Q(next_observation)."""
        return self.memory.sample(batch_size, beta)

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """What was learned from each transition of the batch."""
        self.memory.update_priorities(batch.ids, signal)

    def stats(self) -> dict[str, float]:
        """Numbers to watch while training."""
        return dict(self.memory.stats())

    def get_state(self) -> dict[str, Any]:
        """What the rule remembers besides the memory, which saves itself: JSON values and NumPy arrays."""
        return {}

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        self.memory = memory


def build_memory(settings: TrainSettings, game: Game, prioritization: Any) -> "pser.ReplayMemory":
    """The replay memory of a run, choosing by this prioritization."""
    return pser.ReplayMemory(
        capacity=settings.replay.capacity,
        observation=game.observation,
        action=pser.Array((), np.int64),
        num_envs=game.num_envs,
        prioritization=prioritization,
        n_step=settings.replay.n_step,
        gamma=settings.agent.gamma,
        seed=derived_seed(settings.run.seed, "memory"),
    )


def build_replay(settings: TrainSettings, game: Game, agent: Agent) -> MemoryReplay:
    """The replay of the strategy that the settings name."""
    return _replay_class(settings)(settings, game, agent)


def check_replay(settings: TrainSettings) -> None:
    """Refuse settings that their replay strategy cannot work with, before there is a game or an agent."""
    _replay_class(settings).check(settings)


def _replay_class(settings: TrainSettings) -> type[MemoryReplay]:
    found: type[MemoryReplay] = load(STRATEGIES[settings.replay.replay].replay)
    return found
