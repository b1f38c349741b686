"""The flags of `pser train` that say who carries a run out, and the engine they mean."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pser.cli.parsing import UNSET, as_flag
from pser.cluster.settings import ClusterSettings, from_json
from pser.errors import PserError, require
from pser.learner.settings import TrainSettings

if TYPE_CHECKING:
    from pser.cluster.training import RayEngine


@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """Who carries the run out."""

    engine: Literal["local", "ray"] = "local"
    """Who carries the run out: this process, or actors and shards on Ray (Ape-X; docs/cluster.md)."""
    actors: Annotated[int | None, UNSET] = None
    """Ray: processes that play; 2 unless given."""
    envs_per_actor: Annotated[int | None, UNSET] = None
    """Ray: environments of each actor; unless given, its share of --num-envs."""
    shards: Annotated[int | None, UNSET] = None
    """Ray: processes that hold the memory; 1 unless given."""
    chunk_steps: Annotated[int | None, UNSET] = None
    """Ray: steps of every environment that an actor hands over at a time; 50 unless given."""
    samples_per_insert: Annotated[float | None, UNSET] = None
    """Ray: transitions learned from per step played; sets --update-period-steps to --batch-size divided by it."""
    ray_address: Annotated[str | None, UNSET] = None
    """The Ray cluster to join ('auto': the one this machine is part of); without it Ray starts on this machine."""
    synchronous: bool = False
    """Ray: one actor and one shard, step by step: the same run as in this process, to the bit."""


ENGINE_FLAGS = tuple(item.name for item in fields(EngineFlags))
DEFAULTS = {item.name: item.default for item in fields(EngineFlags)}


def is_given(flags: Any, name: str) -> bool:
    """Whether the command line has this flag."""
    return bool(getattr(flags, name) != DEFAULTS[name])


def engine_of(
    flags: Any, train: TrainSettings, given: Mapping[str, Any]
) -> tuple[TrainSettings, "RayEngine | None"]:
    """The run's settings with what the flags make of them, and who carries it out; None is this process."""
    if flags.engine == "local":
        for name in ENGINE_FLAGS:
            if is_given(flags, name):
                raise PserError(f"{as_flag(name)} is for Ray, got {getattr(flags, name)!r}: add --engine ray")
        return train, None
    if flags.samples_per_insert is not None:
        train = train.override({"update_period_steps": _update_period(flags, train, given)})
    actors = flags.actors
    if actors is None:
        actors = 1 if flags.synchronous else ClusterSettings.actors
    values = {"actors": actors, "envs_per_actor": -(-train.game.num_envs // max(actors, 1))}
    for name in ("envs_per_actor", "shards", "chunk_steps", "synchronous"):
        if is_given(flags, name):
            values[name] = getattr(flags, name)
    cluster = ClusterSettings(**values)
    if "num_envs" not in given:
        train = train.override({"num_envs": cluster.num_envs})
    cluster.check(train)
    return train, _ray_engine(cluster, flags.ray_address)


def resumed_engine(flags: Any, manifest: Mapping[str, Any]) -> "RayEngine | None":
    """Who carries out the run of a manifest; the cluster may be another than last time."""
    if "engine" in manifest:
        return _ray_engine(from_json(manifest["engine"]), flags.ray_address)
    if flags.ray_address is not None:
        raise PserError(
            f"the run was started without Ray, got --ray-address {flags.ray_address!r}: leave it out"
        )
    return None


def _ray_engine(cluster: ClusterSettings, address: str | None) -> "RayEngine":
    from pser.cluster.engine import find_ray

    find_ray()  # before seconds go by for torch
    from pser.cluster.training import RayEngine

    return RayEngine(cluster, address)


def _update_period(flags: Any, train: TrainSettings, given: Mapping[str, Any]) -> int:
    """Steps per update that make so many samples per step."""
    wanted, batch = flags.samples_per_insert, train.agent.batch_size
    if "update_period_steps" in given:
        raise PserError("--samples-per-insert and --update-period-steps say the same: give one of them")
    require(wanted > 0, "--samples-per-insert must be positive", wanted, "8 is usual")
    period = float(batch / wanted)
    whole = max(round(period), 1)
    require(
        abs(period - whole) < 1e-9 * whole,
        f"an update of {batch} samples comes after a whole number of steps",
        wanted,
        f"for instance {batch / whole:g}",
    )
    return whole
