"""ReaPER (Pleiss, Sutter and Schiffer 2025, arXiv 2506.18482): a TD error counts by how reliable its target is.

P(i) ∝ |δ_i|^α · R_i^ω with R_i = 1 − (Σ of |δ| later in the episode) / (Σ of |δ| over the whole episode): a target is
reliable if little surprise lies between it and the end.

What is done here where the source leaves room: a running episode is taken as it is so far; a transition never replayed
counts with the largest |δ| ever (MaxPrio), in the sums as well; of an episode partly overwritten the rest counts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.learner.agent import Agent, Floats, Ints
from pser.learner.kin.reliability import Reals, raw_priorities
from pser.learner.kin.rules import ReaPER
from pser.learner.replay import Experience, MemoryReplay
from pser.learner.settings import TrainSettings


class Episodes:
    """Which transitions belong to one episode, and their latest |δ| + ε."""

    def __init__(self, num_envs: int, capacity: int) -> None:
        self.size = np.zeros(capacity)
        self.episode = np.full(capacity, -1, dtype=np.int64)
        """Slot → number of the episode."""
        self.members: dict[int, list[int]] = {}
        self.running = list(range(num_envs))
        """Environment → number of its episode."""
        self.next_number = num_envs

    def add(self, ids: Sequence[int], size: float, ended: Sequence[bool]) -> None:
        """A step of every environment, in order."""
        capacity = len(self.size)
        for env, (id_, over) in enumerate(zip(ids, ended, strict=True)):
            slot, number = id_ % capacity, self.running[env]
            self._forget(slot, id_ - capacity)
            self.size[slot], self.episode[slot] = size, number
            self.members.setdefault(number, []).append(id_)
            if over:
                self._begin(env)

    def end(self) -> None:
        """What the environments do next belongs to new episodes."""
        for env in range(len(self.running)):
            self._begin(env)

    def _begin(self, env: int) -> None:
        self.running[env] = self.next_number
        self.next_number += 1

    def _forget(self, slot: int, id_: int) -> None:
        members = self.members.get(int(self.episode[slot]), [])
        if members and members[0] == id_:  # the oldest of its episode is overwritten first
            members.pop(0)
            if not members:
                del self.members[int(self.episode[slot])]

    def learned(self, ids: Ints, sizes: Reals, rule: ReaPER, oldest: int) -> tuple[Ints, Reals]:
        """Every transition of the episodes concerned that is still there, and its priority now."""
        capacity = len(self.size)
        self.size[ids % capacity] = sizes
        numbers = np.unique(self.episode[ids % capacity])
        whole = [np.array(self.members[int(number)], dtype=np.int64) for number in numbers]
        groups = [group[group >= oldest] for group in whole]  # frames may run out before slots do
        found = [raw_priorities(self.size[group % capacity], rule) for group in groups]
        return np.concatenate(groups), np.concatenate(found)


class ReaPERReplay(MemoryReplay):
    """The memory samples by p^α; this keeps the episodes' sums."""

    single_steps = "ReaPER"

    def __init__(self, settings: TrainSettings, game: Game, agent: Agent) -> None:
        super().__init__(settings, game, agent)
        self.rule: ReaPER = settings.replay.prioritization
        self.episodes = Episodes(game.num_envs, settings.replay.capacity)
        self.largest = 1.0

    def sampled_by(self, rule: Any) -> Any:
        """Sampling proportional to p^α."""
        return pser.PER(alpha=rule.alpha, eps=0.0)

    def add(self, step: Experience) -> None:
        """Keep one step of every environment, with the largest priority."""
        priority = np.full(len(step.reward), self.largest)
        ids = self.memory.add(*step, priority=priority)
        self.episodes.add(ids.tolist(), self.largest, (step.terminated | step.truncated).tolist())

    def end_episodes(self) -> None:
        """Nothing that follows makes earlier targets less reliable."""
        super().end_episodes()
        self.episodes.end()

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """The fresh errors change the reliability of their whole episodes."""
        sizes = np.abs(signal).astype(np.float64) + self.rule.eps
        ids, first = np.unique(batch.ids, return_inverse=True)
        largest = np.zeros(len(ids))
        np.maximum.at(largest, first, sizes)  # a transition drawn twice takes the larger of its errors
        self.largest = max(self.largest, float(sizes.max()))
        index = self.memory.index
        index.set_priorities(*self.episodes.learned(ids, largest, self.rule, index.oldest_id))

    def get_state(self) -> dict[str, Any]:
        """The errors, and which episode each transition belongs to."""
        episodes = self.episodes
        return {
            "size": episodes.size.copy(),
            "episode": episodes.episode.copy(),
            "running": list(episodes.running),
            "next_number": episodes.next_number,
            "largest": self.largest,
        }

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        super().set_state(state, memory)
        episodes, index = self.episodes, memory.index
        episodes.size[:], episodes.episode[:] = state["size"], state["episode"]
        episodes.running, episodes.next_number = list(state["running"]), int(state["next_number"])
        episodes.members = {}
        for id_ in range(index.oldest_id, index.next_id):
            number = int(episodes.episode[id_ % len(episodes.episode)])
            episodes.members.setdefault(number, []).append(id_)
        self.largest = float(state["largest"])
