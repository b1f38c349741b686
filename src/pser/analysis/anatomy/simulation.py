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
    """Share of the mass of transitions never replayed."""
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


def simulate(what: Set) -> Anatomy:
    """Fill the memory three times over, a batch at a time, and take it apart at the end."""
    index, ends = _lived(what)
    stats = index.stats()
    replays, near = ends
    return Anatomy(
        insertion=stats["mass_from_insertion"],
        retention=stats["mass_from_retention"],
        own=stats["mass_from_td_error"],
        decay=stats["mass_from_decay"],
        effective_samples=stats["effective_sample_size"] / len(index),
        evenness=float(replays.var() / replays.mean()),
        near_rewards=float(replays[near].mean() / replays[~near].mean()),
    )


def _lived(what: Set) -> tuple["pser.PriorityIndex", tuple[FloatArray, NDArray[np.bool_]]]:
    """The memory at the end; and of the transitions overwritten meanwhile how often each was replayed, and whether it
    led to a reward.
    """
    rng = np.random.default_rng(what.seed)
    index = pser.PriorityIndex(what.capacity, what.prioritization, seed=what.seed)
    total, steps = 3 * what.capacity, max(1, round(BATCH / what.replays))
    td, rewarded = what.surprises.draw(total, rng)
    first = np.arange(total) % EPISODE == 0
    replays = np.zeros(total, dtype=np.int64)
    for start in range(0, total, steps):
        rows = slice(start, min(start + steps, total))
        given = td[rows] if what.initial == "td" else None
        index.append(first[rows], stream=np.zeros(rows.stop - rows.start, dtype=np.int64), td_error=given)
        if rows.stop >= BATCH:
            ids = np.unique(index.sample(BATCH)[0])
            index.update(ids, td[ids] * what.surprises.shrink ** replays[ids])
            replays[ids] += 1
    whole = slice(what.capacity, 2 * what.capacity)  # lived from beginning to end in a full memory
    return index, (replays[whole].astype(np.float64), _leads_to(rewarded, first)[whole])


def _leads_to(rewarded: NDArray[np.bool_], first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Steps at most NEAR before a reward of the same episode."""
    near = np.zeros(len(rewarded), dtype=bool)
    episode = np.cumsum(first)
    for back in range(1, NEAR + 1):
        near[:-back] |= rewarded[back:] & (episode[:-back] == episode[back:])
    return near & ~rewarded
