"""How a run is spread over processes: what the command line says of it, and the manifest."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pser.errors import PserError, is_whole, require
from pser.learner.settings import TrainSettings
from pser.memory.prioritization import PER

STRATEGIES = ("pser", "per", "uniform")
"""The replay strategies that are the memory's own: the others have rules that need the memory beside the learner."""


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """The actors and shards of one run (Horgan et al. 2018, Figure 1)."""

    actors: int = 2
    """Processes that play."""
    envs_per_actor: int = 1
    """Environments that each of them steps together."""
    shards: int = 1
    """Processes that hold the memory; those of one actor's environments share one."""
    chunk_steps: int = 50
    """Steps of every environment that an actor hands over at a time."""
    synchronous: bool = False
    """One actor, one shard, step by step: the very run of one process."""

    def __post_init__(self) -> None:
        for name in ("actors", "envs_per_actor", "shards", "chunk_steps"):
            value = getattr(self, name)
            require(is_whole(value) and value >= 1, f"{name} must be at least 1", value, "raise it")
        require(
            self.shards <= self.actors,
            f"an actor's steps stay in one shard, so {self.actors} actors fill at most as many",
            self.shards,
            "lower --shards or raise --actors",
        )
        if self.synchronous and (self.actors, self.shards) != (1, 1):
            raise PserError(
                f"--synchronous means one actor and one shard, got {self.actors} and {self.shards}: leave them out"
            )

    @property
    def num_envs(self) -> int:
        """Environments of all actors."""
        return self.actors * self.envs_per_actor

    def shard_of(self, actor: int) -> int:
        """Where an actor's steps are kept."""
        return actor % self.shards

    def streams_of(self, actor: int) -> range:
        """What the shard calls the environments of an actor."""
        first = actor // self.shards * self.envs_per_actor
        return range(first, first + self.envs_per_actor)

    def streams_in(self, shard: int) -> int:
        """Environments whose steps a shard keeps."""
        return len(range(shard, self.actors, self.shards)) * self.envs_per_actor

    def capacity_of(self, shard: int, capacity: int) -> int:
        """What a shard holds of a memory of this capacity."""
        return capacity // self.shards + (shard < capacity % self.shards)

    def check(self, run: TrainSettings) -> None:
        """Refuse a run that cannot be spread so."""
        require(
            run.game.num_envs == self.num_envs,
            f"num_envs is actors · envs_per_actor, {self.actors} · {self.envs_per_actor}",
            run.game.num_envs,
            "leave --num-envs out",
        )
        require(
            run.replay.replay in STRATEGIES,
            f"--engine ray carries out --replay {', '.join(STRATEGIES)}",
            run.replay.replay,
            "choose one of them, or train in one process",
        )
        rule = run.replay.prioritization
        if self.shards > 1 and isinstance(rule, PER) and rule.variant == "rank":
            raise PserError(
                f"ranks are known within one shard only, got {self.shards} shards: use --variant proportional"
            )
        require(
            not run.run.inspect_period_frames,
            "the memory of a run on Ray cannot be inspected while it trains",
            run.run.inspect_period_frames,
            "leave --inspect-period-frames out",
        )
        least = run.replay.n_step + 1
        for shard in range(self.shards):
            capacity, streams = self.capacity_of(shard, run.replay.capacity), self.streams_in(shard)
            require(
                capacity >= streams * least,
                f"a shard must hold {least} steps (n_step + 1) of each of its {streams} environments",
                capacity,
                "raise --capacity",
            )

    def to_json(self) -> dict[str, Any]:
        """As the manifest holds it."""
        return {"name": "ray", **asdict(self)}


def from_json(plain: Any) -> ClusterSettings:
    """What `to_json` wrote; anything else is refused."""
    known = {item.name: item.type for item in fields(ClusterSettings)}
    if not isinstance(plain, Mapping) or plain.get("name") != "ray" or set(plain) - {"name", *known}:
        raise PserError(
            f"the engine of a run must be ray with its settings, got {plain!r}: restore the manifest"
        )
    values = {name: value for name, value in plain.items() if name != "name"}
    if not isinstance(values.get("synchronous", False), bool):
        raise PserError(
            f"synchronous must be true or false, got {values['synchronous']!r}: restore the manifest"
        )
    return ClusterSettings(**values)
