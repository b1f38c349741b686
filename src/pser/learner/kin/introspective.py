"""Introspective experience replay (Kumar and Nagaraj 2022, arXiv 2206.03171): look back when surprised.

A batch is a run of consecutive steps that goes backward in time from a pivot. The pivots are the G transitions with the
largest |δ| of all in memory, in turn; then it is looked anew. No importance weights.

What is done here where the source leaves room: the |δ| of a transition is what the network found when it came, and then
what was found whenever it was replayed; of equals the newest comes first; the steps are those of one environment,
across the starts of its episodes; a run that reaches the oldest transition is shorter.
"""

from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.learner.agent import Agent, Floats, Ints
from pser.learner.kin.rules import Introspective
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
        self.rule: Introspective = settings.replay.prioritization
        self.num_envs = game.num_envs
        self.surprise = np.zeros(settings.replay.capacity)
        """Slot → latest |δ|."""
        self.pivots: list[int] = []
        """Those of the last look that are still to come, the most surprising first."""

    def sampled_by(self, rule: Any) -> Any:
        """The memory stores; it does not choose."""
        return pser.Uniform()

    def add(self, step: Experience) -> None:
        """Keep one step of every environment, as surprising as the network finds it now."""
        found = self.agent.new_priorities(*step[:5])
        ids = self.memory.add(*step)
        self.surprise[ids % len(self.surprise)] = np.abs(found)

    def look(self) -> list[int]:
        """The most surprising transitions, of equals the newest first."""
        next_id = self.memory.index.next_id
        newest_first = np.roll(self.surprise, -next_id % len(self.surprise))[::-1]
        held = newest_first[: len(self.memory)]  # frames may run out before slots do
        number = min(self.rule.pivots, len(held))
        least = np.partition(held, len(held) - number)[len(held) - number]
        found = np.flatnonzero(held >= least)
        order = np.argsort(-held[found], kind="stable")[:number]
        pivots: list[int] = (next_id - 1 - found[order]).tolist()
        return pivots

    def draw(self, batch_size: int, beta: float) -> "pser.Batch":
        """The steps that led to the next pivot."""
        oldest = self.memory.index.oldest_id
        self.pivots = [id_ for id_ in self.pivots if id_ >= oldest] or self.look()
        return self.memory[run_back(self.pivots.pop(0), batch_size, self.num_envs, oldest)]

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """The surprises are known now."""
        self.surprise[batch.ids % len(self.surprise)] = np.abs(signal)
        self.memory.update_priorities(batch.ids, signal)

    def get_state(self) -> dict[str, Any]:
        """The surprises, and the pivots to come."""
        return {"surprise": self.surprise.copy(), "pivots": np.array(self.pivots, dtype=np.int64)}

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        super().set_state(state, memory)
        self.surprise[:] = state["surprise"]
        self.pivots = [int(id_) for id_ in state.get("pivots", ())]  # earlier checkpoints have none
