"""How large a cluster has to be: a model of what a load asks of cores, network and memory.

Costs are CPU seconds of all processes, as `make bench-ray` measures them (docs/benchmarks-ray.md); the rest is
arithmetic. A shard is one process that does one thing at a time, so it has one core at most.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from pser.errors import PserError, require

USABLE = 0.7
"""The share of a core or a link that a plan may fill: beyond it, waiting times grow."""
STEP_BYTES = 34
"""Of a step besides what was seen: action, reward, ends, TD error, stream."""
ROW_BYTES = 37
"""Of a sampled row besides what was seen: action, reward, discount, end, weight, id, probability."""
UPDATE_BYTES = 16
"""Of a priority update: id and TD error."""
KEPT_BYTES = 90
"""Of a transition in memory besides what was seen: its step, its priority and its part of the tree."""
GIGABIT = 125e6
"""Bytes a second."""


@dataclass(frozen=True, kw_only=True)
class Transition:
    """What a transition weighs."""

    observation_bytes: int
    """Of one observation, or of one frame if they are stacked."""
    stack: int = 1
    """Frames of an observation; each travels and is kept once."""

    def __post_init__(self) -> None:
        for name in ("observation_bytes", "stack"):
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1", value, "count what a step shows")

    @property
    def added_bytes(self) -> int:
        """On the way into a shard: what was seen, once."""
        return self.observation_bytes + STEP_BYTES

    @property
    def sampled_bytes(self) -> int:
        """On the way to the learner and back: both observations, whose stacks share frames; then the TD error."""
        return (self.stack + 1) * self.observation_bytes + ROW_BYTES + UPDATE_BYTES

    @property
    def kept_bytes(self) -> int:
        """In memory: stacked frames once, other observations with their next ones."""
        copies = 1 if self.stack > 1 else 2
        return copies * self.observation_bytes + KEPT_BYTES


MINATAR = Transition(observation_bytes=400)
"""Breakout: four planes of 10×10."""
ATARI = Transition(observation_bytes=84 * 84, stack=4)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a run asks of its memory."""

    transitions_per_second: float
    batches_per_second: float
    batch_size: int
    capacity: int

    def __post_init__(self) -> None:
        for name in ("transitions_per_second", "batches_per_second"):
            value = getattr(self, name)
            require(0.0 <= value < math.inf, f"{name} must be at least 0", value, "count again")
        for name in ("batch_size", "capacity"):
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1", value, "raise it")


HORGAN = Load(transitions_per_second=12_500, batches_per_second=19, batch_size=512, capacity=2_000_000)
"""Ape-X as published, 360 actors (Horgan et al. 2018)."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """CPU seconds of all processes, measured."""

    add_seconds: float
    """Of a transition on its way into a shard."""
    batch_seconds: float
    """Of a batch and its priority update, from a shard to the learner's arrays."""

    def __post_init__(self) -> None:
        for name in ("add_seconds", "batch_seconds"):
            value = getattr(self, name)
            require(0.0 < value < math.inf, f"{name} must be above 0", value, "measure it")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a shard may use."""

    link_bytes_per_second: float = 10 * GIGABIT
    memory_bytes: float = 64e9


class Demand(NamedTuple):
    """What a load asks for, in all shards together."""

    ingest_cores: float
    batch_cores: float
    in_bytes_per_second: float
    """From the actors to the shards."""
    out_bytes_per_second: float
    """From the shards to the learner and back."""
    memory_bytes: float


class Plan(NamedTuple):
    """How many shards, and for want of what."""

    shards: int
    limit: str
    """`one is enough`, or what the number of shards follows from: `cores`, `network` or `memory`."""


def demand(load: Load, transition: Transition, costs: Costs) -> Demand:
    """Rates times costs."""
    return Demand(
        load.transitions_per_second * costs.add_seconds,
        load.batches_per_second * costs.batch_seconds,
        load.transitions_per_second * transition.added_bytes,
        load.batches_per_second * load.batch_size * transition.sampled_bytes,
        float(load.capacity) * transition.kept_bytes,
    )


def plan(asked: Demand, machine: Machine | None = None) -> Plan:
    """As many shards as the scarcest of cores, network (each way for itself) and memory asks for."""
    machine = machine or Machine()
    link = USABLE * machine.link_bytes_per_second
    shares = {
        "cores": (asked.ingest_cores + asked.batch_cores) / USABLE,
        "network": max(asked.in_bytes_per_second, asked.out_bytes_per_second) / link,
        "memory": asked.memory_bytes / machine.memory_bytes,
    }
    limit = max(shares, key=lambda name: shares[name])
    shards = max(1, math.ceil(shares[limit]))
    return Plan(shards, limit if shards > 1 else "one is enough")


def most_transitions_per_second(
    transition: Transition, costs: Costs, machine: Machine | None = None
) -> float:
    """What one shard takes in if nothing is sampled."""
    machine = machine or Machine()
    return USABLE * min(1.0 / costs.add_seconds, machine.link_bytes_per_second / transition.added_bytes)


def most_batches_per_second(
    batch_size: int, transition: Transition, costs: Costs, machine: Machine | None = None
) -> float:
    """What one shard gives out if nothing is added."""
    machine = machine or Machine()
    batch_bytes = batch_size * transition.sampled_bytes
    return USABLE * min(1.0 / costs.batch_seconds, machine.link_bytes_per_second / batch_bytes)


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast the parts of a run are, each alone on a core."""

    step_seconds: float
    """CPU of an actor for a transition: game, network, priorities, sending."""
    update_seconds: float
    """CPU of the learner for an update."""
    samples_per_insert: float
    """Rows learned from for each transition added; the limiter holds this ratio."""
    batch_size: int

    def __post_init__(self) -> None:
        for name in ("step_seconds", "update_seconds", "samples_per_insert", "batch_size"):
            value = getattr(self, name)
            require(0.0 < value < math.inf, f"{name} must be above 0", value, "measure it")


class Rate(NamedTuple):
    """How fast a run is, and what keeps it from being faster."""

    steps_per_second: float
    limit: str
    """`actors`, `shards` or `learner`."""


def steps_per_second(actors: int, pace: Pace, costs: Costs, shards: int = 1) -> Rate:
    """A run whose every process has a core of its own: as fast as its actors, until shards or learner are busy."""
    if actors < 1 or shards < 1:
        raise PserError(f"there must be at least 1 actor and 1 shard, got {actors} and {shards}: raise them")
    batches_per_step = pace.samples_per_insert / pace.batch_size
    rates = {
        "actors": actors / pace.step_seconds,
        "shards": USABLE * shards / (costs.add_seconds + batches_per_step * costs.batch_seconds),
        "learner": 1.0 / (batches_per_step * pace.update_seconds),
    }
    limit = min(rates, key=lambda name: rates[name])
    return Rate(rates[limit], limit)


def steps_per_second_on(cores: int, pace: Pace, costs: Costs) -> float:
    """The same run when all its processes share these cores: whatever the number of actors, the CPU is spent."""
    batches_per_step = pace.samples_per_insert / pace.batch_size
    spent = pace.step_seconds + costs.add_seconds
    spent += batches_per_step * (pace.update_seconds + costs.batch_seconds)
    return cores / spent
