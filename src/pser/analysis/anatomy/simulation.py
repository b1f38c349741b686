"""A memory driven with made-up TD errors: what its priorities really are made of."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import pser
from pser.analysis.anatomy.arithmetic import Surprises
from pser.memory.prioritization import Prioritization

BATCH = 32
EPISODE = 100
NEAR = 5
"""So many steps before a reward count as leading to it."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """The mass by its source, and how the replays were spread."""

    insertion: float
    """Share of the mass of transitions whose priority stems from insertion and was never replayed."""
    retention: float
    """… whose priority η kept when their own TD error was smaller."""
    own: float
    """… whose priority is their own TD error (with ε)."""
    decay: float
    """… whose priority was handed down from a later step."""
    effective_samples: float
    """Effective sample size over the size of the memory."""
    evenness: float
    """Variance over mean of the replay counts of whole lives: 1 is chance, below it a rota."""
    near_rewards: float
    """Replays of the steps before a reward over those of all others."""

    @property
    def from_insertion(self) -> float:
        """Insertion and what η kept of it."""
        return self.insertion + self.retention


@dataclass(frozen=True, kw_only=True)
class Set:
    """What is simulated."""

    prioritization: Prioritization
    initial: str = "max"
    """Priorities of new transitions: max (MaxPrio) or td (CurrentTD)."""
    replays: float = 8.0
    """Replays a life, K."""
    capacity: int = 20_000
    surprises: Surprises = field(default_factory=Surprises)
    seed: int = 0


class _Life:
    """What the simulation remembers of each slot: it decides the sources without asking the memory."""

    def __init__(self, capacity: int) -> None:
        self.td = np.zeros(capacity)
        self.replays = np.zeros(capacity, dtype=np.int64)
        self.held = np.zeros(capacity)
        """Priority after the last own event (insertion or update)."""
        self.retained = np.zeros(capacity, dtype=bool)
        self.near = np.zeros(capacity, dtype=bool)


def simulate(what: Set) -> Anatomy:
    """Fill the memory three times over, a batch at a time, and take it apart at the end."""
    rng = np.random.default_rng(what.seed)
    index = pser.PriorityIndex(what.capacity, what.prioritization, seed=what.seed)
    life = _Life(what.capacity)
    ended_near: list[FloatArray] = []
    ended_far: list[FloatArray] = []
    steps = round(BATCH / what.replays)
    total = 3 * what.capacity
    td, rewarded = what.surprises.draw(total, rng)
    first = np.arange(total) % EPISODE == 0
    near = _leads_to(rewarded, first)
    for start in range(0, total, steps):
        rows = slice(start, min(start + steps, total))
        if start >= 2 * what.capacity:  # whole lives, lived in a full memory
            slots = np.arange(rows.start, rows.stop) % what.capacity
            counts = life.replays[slots].astype(np.float64)
            ended_near.append(counts[life.near[slots]])
            ended_far.append(counts[~life.near[slots]])
        _insert(index, life, what, rows, td, first, near)
        if rows.stop >= BATCH:
            _replay(index, life, what)
    ends_near, ends_far = np.concatenate(ended_near), np.concatenate(ended_far)
    ends = np.concatenate([ends_near, ends_far])
    shares = _shares(index, life, what)
    return Anatomy(
        **shares,
        effective_samples=index.stats()["effective_sample_size"] / len(index),
        evenness=float(ends.var() / ends.mean()),
        near_rewards=float(ends_near.mean() / ends_far.mean()),
    )


def _leads_to(rewarded: NDArray[np.bool_], first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Steps at most NEAR before a reward of the same episode."""
    near = np.zeros(len(rewarded), dtype=bool)
    episode = np.cumsum(first)
    for back in range(1, NEAR + 1):
        near[:-back] |= rewarded[back:] & (episode[:-back] == episode[back:])
    return near & ~rewarded


def _insert(
    index: "pser.PriorityIndex",
    life: _Life,
    what: Set,
    rows: slice,
    td: FloatArray,
    first: NDArray[np.bool_],
    near: NDArray[np.bool_],
) -> None:
    count = rows.stop - rows.start
    given = td[rows] if what.initial == "td" else None
    ids = index.append(first[rows], stream=np.zeros(count, dtype=np.int64), td_error=given)
    slots = ids % what.capacity
    life.td[slots], life.near[slots] = td[rows], near[rows]
    life.replays[slots], life.retained[slots] = 0, False
    # What a later row of the same call handed down is not the row's own.
    life.held[slots] = index.max_priority if given is None else given + _eps(what)


def _replay(index: "pser.PriorityIndex", life: _Life, what: Set) -> None:
    ids, _ = index.sample(BATCH)
    ids = np.unique(ids)
    slots = ids % what.capacity
    shrunk = life.td[slots] * what.surprises.shrink ** life.replays[slots]
    before = index.priority(ids)
    index.update(ids, shrunk)
    own, kept = shrunk + _eps(what), getattr(what.prioritization, "eta", 0.0) * before
    life.held[slots], life.retained[slots] = np.maximum(own, kept), kept > own
    life.replays[slots] += 1


def _shares(index: "pser.PriorityIndex", life: _Life, what: Set) -> dict[str, float]:
    ids = np.arange(index.oldest_id, index.next_id)
    slots = ids % what.capacity
    mass = index.probabilities(ids)
    decayed = index.priority(ids) > life.held[slots] * (1 + 1e-9)
    new = life.replays[slots] == 0
    # A new transition with a priority of its own (CurrentTD) has it from its TD error.
    own = ~decayed & ((new & (what.initial == "td")) | (~new & ~life.retained[slots]))
    return {
        "insertion": float(mass[~decayed & new & ~own].sum()),
        "retention": float(mass[~decayed & ~new & life.retained[slots]].sum()),
        "own": float(mass[own].sum()),
        "decay": float(mass[decayed].sum()),
    }


def _eps(what: Set) -> float:
    return getattr(what.prioritization, "eps", 0.0)
