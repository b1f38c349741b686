"""Transition sequences (Karimpanal and Bouffanais 2018, "Experience Replay Using Transition Sequences").

A library keeps the sequences of steps that led to the largest surprises. They are replayed backward, from the surprise
to what led to it, beside ordinary replay.

What is done here where the source leaves room: half of the batches come from the library; a batch joins as many of its
sequences as fit, drawn uniformly; the size and length default to the source's order of magnitude (50 and 10); a
sequence ends at the start of its episode. The source also joins sequences at equal states, which a network's
observations hardly ever have: `pser cliffwalk` does so where states can be equal.
"""

from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.learner.agent import Agent, Floats
from pser.learner.kin.library import Library
from pser.learner.kin.rules import Sequences
from pser.learner.replay import MemoryReplay
from pser.learner.seeds import generator
from pser.learner.settings import TrainSettings


class SequencesReplay(MemoryReplay):
    """Gives out sequences of the library, or uniform batches."""

    single_steps = "replay of transition sequences"

    def __init__(self, settings: TrainSettings, game: Game, agent: Agent) -> None:
        super().__init__(settings, game, agent)
        self.rule: Sequences = settings.replay.prioritization
        self.library = Library(self.rule.library_size)
        self.rng = generator(settings.run.seed, "replay")

    def sampled_by(self, rule: Any) -> Any:
        """Ordinary replay is uniform."""
        return pser.Uniform()

    def draw(self, batch_size: int, beta: float) -> "pser.Batch":
        """Sequences of the library, each from its end to its start; or a uniform batch."""
        ends = [id_ for id_ in self.library.ends if id_ >= self.memory.index.oldest_id]
        if not ends or self.rng.random() >= self.rule.library_share:
            return self.memory.sample(batch_size, beta)
        rows: list[int] = []
        while len(rows) < batch_size:
            end = ends[int(self.rng.integers(len(ends)))]
            rows += self._sequence(end)
        return self.memory[np.array(rows[:batch_size], dtype=np.int64)]

    def _sequence(self, end: int) -> list[int]:
        """A sequence, newest first."""
        if self.rule.sequence_length == 1:
            return [end]
        before = self.memory.index.predecessors(np.array([end]), self.rule.sequence_length - 1)[0]
        return [end, *before[before >= 0].tolist()]

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """What surprised may enter the library."""
        self.library.consider(batch.ids, signal, self.memory.index.oldest_id)
        self.memory.update_priorities(batch.ids, signal)

    def get_state(self) -> dict[str, Any]:
        """The library and the draws."""
        return {
            "ends": np.array(list(self.library.ends), dtype=np.int64),
            "surprises": np.array(list(self.library.ends.values())),
            "rng": self.rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        """Continue from `get_state` and the memory saved with it."""
        super().set_state(state, memory)
        self.library.ends = dict(zip(state["ends"].tolist(), state["surprises"].tolist(), strict=True))
        self.rng.bit_generator.state = state["rng"]
