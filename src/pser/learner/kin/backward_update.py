"""Episodic backward update (Lee, Choi and Chung 2019, arXiv 1805.12375): a whole episode, its targets built backward.

From the end of an episode to its start, y_t = r_t + γ·max_a Q̃(s_{t+1}, a), where the value of the action really taken
next is first moved towards what was just found: Q̃(s_{t+1}, a_{t+1}) = β·y_{t+1} + (1 − β)·Q(s_{t+1}, a_{t+1}).

What is done here where the source leaves room: episodes are drawn uniformly among those complete in memory; a truncated
one starts from the target network's value of its last state; the transitions of an episode are learned in batches of
the usual size, from its end to its start, with the targets computed once (the network changes meanwhile).
"""

from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.learner.agent import Agent, Floats, Ints
from pser.learner.kin.rules import BackwardUpdate
from pser.learner.kin.targets import backward_targets
from pser.learner.replay import Experience, MemoryReplay
from pser.learner.seeds import generator
from pser.learner.settings import TrainSettings


class BackwardUpdateReplay(MemoryReplay):
    """Draws an episode, builds its targets, and gives it out from its end to its start."""

    single_steps = "the backward update"

    def __init__(self, settings: TrainSettings, game: Game, agent: Agent) -> None:
        super().__init__(settings, game, agent)
        self.rule: BackwardUpdate = settings.replay.prioritization
        self.rng = generator(settings.run.seed, "replay")
        self.lasts: list[int] = []
        """The last transition of every finished episode, oldest first."""
        self.ids = np.empty(0, dtype=np.int64)
        self.targets = np.empty(0, dtype=np.float32)
        """What is left of the episode in hand: its transitions in order of time, and their targets."""

    def sampled_by(self, rule: Any) -> Any:
        """Nothing is prioritized."""
        return pser.Uniform()

    def add(self, step: Experience) -> None:
        """Keep one step of every environment, and note the episodes that ended."""
        ids = self.memory.add(*step)
        self.lasts.extend(ids[step.terminated | step.truncated].tolist())

    def draw(self, batch_size: int, beta: float) -> "pser.Batch":
        """The next part of an episode, as transitions whose reward is their target; uniform until one has ended."""
        if not len(self.ids) or self.ids[0] < self.memory.index.oldest_id:
            self._take_up()
        if not len(self.ids):
            return self.memory.sample(batch_size, beta)
        batch = self.memory[self.ids[-batch_size:]]
        batch.reward[:] = self.targets[-batch_size:]
        batch.discount[:] = 0.0
        self.ids, self.targets = self.ids[:-batch_size], self.targets[:-batch_size]
        return batch

    def _take_up(self) -> None:
        """Choose an episode and build its targets."""
        oldest = self.memory.index.oldest_id
        self.ids = np.empty(0, dtype=np.int64)
        while self.lasts and not len(self.ids):
            chosen = int(self.rng.integers(len(self.lasts)))
            if self.lasts[chosen] < oldest:
                del self.lasts[: chosen + 1]  # older ones are overwritten as well
                continue
            self.ids = self._episode(self.lasts[chosen])
        if len(self.ids):
            whole = self.memory[self.ids]
            q_next = self.agent.target_q_values(whole.next_observation)
            self.targets = backward_targets(
                whole.reward, whole.discount, whole.action, q_next, self.rule.diffusion
            )

    def _episode(self, last: int) -> Ints:
        """The episode that ends with `last`, in order of time."""
        index, parts = self.memory.index, [np.array([last], dtype=np.int64)]
        while True:
            before = index.predecessors(parts[-1][-1:], 64)[0]
            parts.append(before[before >= 0])
            if len(parts[-1]) < 64:
                return np.concatenate(parts)[::-1].copy()

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """Counted, and nothing else."""
        self.memory.update_priorities(batch.ids, signal)

    def get_state(self) -> dict[str, Any]:
        """The episode in hand, the ends of the others, and the draws."""
        return {
            "lasts": np.array(self.lasts, dtype=np.int64),
            "ids": self.ids.copy(),
            "targets": self.targets.copy(),
            "rng": self.rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        super().set_state(state, memory)
        self.lasts = state["lasts"].tolist()
        self.ids, self.targets = state["ids"].copy(), state["targets"].copy()
        self.rng.bit_generator.state = state["rng"]
