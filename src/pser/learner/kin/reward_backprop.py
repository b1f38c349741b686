"""Reward back-propagation (Zhong, Wang and Wang 2017, "Reward Backpropagation Prioritized Experience Replay").

A transition with a reward has a high priority. Once it is replayed, the high priority moves to the transition before,
and so on to the start of the episode; there it starts again at the reward.

What the source leaves open, and what is done here: how high is high (100 to 1); several priorities
that meet go on as one, that of the latest reward; one whose next transition was overwritten starts again, one whose
reward was overwritten ends.
"""

from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.learner.agent import Agent, Floats
from pser.learner.kin.rules import RewardBackprop
from pser.learner.kin.walkers import Walkers
from pser.learner.replay import Experience, MemoryReplay
from pser.learner.settings import TrainSettings


class RewardBackpropReplay(MemoryReplay):
    """The memory samples by the priorities; this moves them."""

    single_steps = "reward back-propagation"

    def __init__(self, settings: TrainSettings, game: Game, agent: Agent) -> None:
        super().__init__(settings, game, agent)
        self.rule: RewardBackprop = settings.replay.prioritization
        self.walkers = Walkers()

    def sampled_by(self, rule: Any) -> Any:
        """Sampling proportional to the priority as it is."""
        return pser.PER(alpha=1.0, eps=0.0)

    def add(self, step: Experience) -> None:
        """Keep one step of every environment; a reward starts a walker."""
        rewarded = step.reward != 0.0
        priority = np.where(rewarded, self.rule.high_priority, self.rule.low_priority)
        ids = self.memory.add(*step, priority=priority)
        self.walkers.start(ids[rewarded])
        if len(self.walkers.origin) > 2 * len(self.memory):
            self.walkers.forget(self.memory.index.oldest_id)

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """What was replayed hands its priority to what came before; the TD error says nothing here."""
        index = self.memory.index
        drawn = np.unique(batch.ids)
        before = index.predecessors(drawn, 1)[:, 0]
        fallen, risen = self.walkers.move(drawn, before, index.oldest_id)
        index.set_priorities(
            np.array(fallen + risen, dtype=np.int64),
            np.repeat([self.rule.low_priority, self.rule.high_priority], [len(fallen), len(risen)]),
        )

    def get_state(self) -> dict[str, Any]:
        """The walkers."""
        self.walkers.forget(self.memory.index.oldest_id)
        at, origin = list(self.walkers.origin), list(self.walkers.origin.values())
        return {"at": np.array(at, dtype=np.int64), "origin": np.array(origin, dtype=np.int64)}

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        super().set_state(state, memory)
        self.walkers.origin = dict(zip(state["at"].tolist(), state["origin"].tolist(), strict=True))
