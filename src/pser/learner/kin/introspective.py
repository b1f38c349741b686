"""Introspective experience replay (Kumar and Nagaraj 2022, arXiv 2206.03171): look back when surprised.

A batch is a run of consecutive steps that goes backward in time from the most surprising transition in memory (the
pivot). No importance weights.

What is done here where the source leaves room: the steps are those of one environment, across the starts of its
episodes; a transition never replayed counts as the most surprising of all, the newest first; a run that reaches the
oldest transition is shorter.
"""

from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.learner.agent import Agent, Floats, Ints
from pser.learner.replay import Experience, MemoryReplay
from pser.learner.settings import TrainSettings


def run_back(pivot: int, steps: int, num_envs: int, oldest: int) -> Ints:
    """The pivot and the steps of its environment before it, newest first; environments add in turn."""
    ids = pivot - num_envs * np.arange(steps)
    return np.asarray(ids[ids >= oldest])


class IntrospectiveReplay(MemoryReplay):
    """Keeps the latest |δ| of every slot, and gives out runs of steps."""

    single_steps = "introspective replay"

    def __init__(self, settings: TrainSettings, game: Game, agent: Agent) -> None:
        super().__init__(settings, game, agent)
        self.num_envs = game.num_envs
        self.surprise = np.full(settings.replay.capacity, -1.0)
        """Slot → latest |δ|; infinite if never replayed, −1 if empty."""

    def sampled_by(self, rule: Any) -> Any:
        """The memory stores; it does not choose."""
        return pser.Uniform()

    def add(self, step: Experience) -> None:
        """Keep one step of every environment: nobody knows yet how surprising it is."""
        ids = self.memory.add(*step)
        self.surprise[ids % len(self.surprise)] = np.inf

    def pivot(self) -> int:
        """The most surprising transition; the newest of equals."""
        newest = self.memory.index.next_id - 1
        by_age = np.roll(self.surprise, -(newest + 1) % len(self.surprise))[::-1]  # newest first
        return newest - int(by_age.argmax())

    def draw(self, batch_size: int, beta: float) -> "pser.Batch":
        """The steps that led to the pivot."""
        return self.memory[run_back(self.pivot(), batch_size, self.num_envs, self.memory.index.oldest_id)]

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """The surprises are known now."""
        self.surprise[batch.ids % len(self.surprise)] = np.abs(signal)
        self.memory.update_priorities(batch.ids, signal)

    def get_state(self) -> dict[str, Any]:
        """The surprises."""
        return {"surprise": self.surprise.copy()}

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        super().set_state(state, memory)
        self.surprise[:] = state["surprise"]
