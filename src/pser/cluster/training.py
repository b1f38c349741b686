"""A run on Ray: its processes started, its trainer handed to whoever keeps the records, its processes ended."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pser.cluster.apex import ApexTrainer
from pser.cluster.calls import Calls
from pser.cluster.engine import join_ray
from pser.cluster.settings import ClusterSettings, from_json
from pser.errors import PserError
from pser.learner.games import training_game
from pser.learner.settings import TrainSettings
from pser.spec import Array, Frames


@dataclass
class Facts:
    """What the learner knows of games that others play."""

    name: str
    num_envs: int
    num_actions: int
    frames_per_step: int
    observation: Array | Frames


def facts_of(settings: TrainSettings) -> Facts:
    """Read off one copy of the game."""
    with contextlib.closing(training_game(settings.override({"num_envs": 1}))) as game:
        return Facts(
            game.name, settings.game.num_envs, game.num_actions, game.frames_per_step, game.observation
        )


@dataclass(frozen=True)
class RayEngine:
    """Carries a run out on Ray."""

    cluster: ClusterSettings
    address: str | None = None
    """The cluster to join; without it Ray starts on this machine, and ends with the run."""

    def manifest(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {"engine": self.cluster.to_json()}

    def said(self) -> str:
        """All of it in a line."""
        values = {name: value for name, value in self.cluster.to_json().items() if name != "name"}
        pairs = (f"{name.replace('_', '-')} {value}" for name, value in values.items())
        return f"ray  {'   '.join(pairs)}"

    @contextlib.contextmanager
    def open(self, settings: TrainSettings) -> Iterator[ApexTrainer]:
        """The trainer of a run; its processes end with the context."""
        self.cluster.check(settings)
        game = facts_of(settings)
        settings = settings.override({"env": game.name})
        ray, own = join_ray(self.address)
        try:
            # Here the processes share what CPUs there are; on a cluster each has one.
            calls = Calls(ray, 0.0 if self.address is None else self._checked_cpus(ray))
            with contextlib.closing(ApexTrainer(settings, self.cluster, game, calls)) as trainer:
                yield trainer
        finally:
            if own:
                ray.shutdown()

    def _checked_cpus(self, ray: Any) -> float:
        wanted = self.cluster.actors + self.cluster.shards
        there = ray.cluster_resources().get("CPU", 0.0)
        if wanted > there:
            raise PserError(
                f"{self.cluster.actors} actors and {self.cluster.shards} shards take a CPU each, the cluster has "
                f"{there:g}: lower --actors or --shards"
            )
        return 1.0


def engine_of(plain: Any) -> RayEngine:
    """The engine that a manifest names, on this machine."""
    return RayEngine(from_json(plain))
