"""Ape-X (Horgan et al. 2018) with the paper's sequences: many actors, a memory in shards, one learner.

The learner's loop is that of one process. A step of it takes a chunk that an actor has played meanwhile: the updates
that are due for it follow, so the samples learned per step inserted are those of the settings, whoever is faster. An
actor may be ahead of the learner by two chunks, and then waits.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pser.cluster.calls import Calls
from pser.cluster.crew import Crew
from pser.cluster.places import Places
from pser.cluster.replay import Empty, ShardedReplay
from pser.cluster.settings import ClusterSettings
from pser.env.game import GameFacts
from pser.errors import PserError
from pser.learner.agent import make_agent
from pser.learner.course import Counters, Course
from pser.learner.device import configure_torch
from pser.learner.events import Event, Remark
from pser.learner.loop import observation_shape
from pser.learner.seeds import derived_seed
from pser.learner.settings import TrainSettings

CHUNKS_AHEAD = 2
"""Chunks of an actor that the learner has not learned from: one that is played while the other waits."""
WEIGHTS_PERIOD_UPDATES = 16
"""Actors get new weights with their next chunk after so many updates."""
LISTEN_SECONDS = 0.5
"""How long nothing may happen before it is asked whether the run is to stop."""

SILENT_SECONDS = 60.0
"""After so long without a chunk it is said: a cluster may have lost the machines that actors need."""


@dataclass
class Losses:
    """What went wrong so far, and what it took with it."""

    actors: int = 0
    """Actors replaced."""
    shards: int = 0
    """Shards replaced."""
    steps: int = 0
    """Steps that were in a shard and not in its snapshot."""
    longest_seconds: float = 0.0
    """From the notice of a loss until the place of what was lost did its work again, at most."""


class ApexTrainer(Course):
    """The learner, and what it knows of actors and shards."""

    replay: ShardedReplay

    def __init__(
        self, settings: TrainSettings, cluster: ClusterSettings, game: GameFacts, calls: Calls
    ) -> None:
        """A run at its start."""
        super().__init__(settings, game)
        self.cluster, self._calls = cluster, calls
        self.agent = make_agent(
            settings,
            observation_shape(game.observation),
            game.num_actions,
            seed=derived_seed(settings.run.seed, "network"),
            device=configure_torch(settings.run.device, settings.run.threads),
        )
        self.losses = Losses()
        self._remarks: list[str] = []
        self._weights: Any = None
        self._version = -1
        """The updates that the weights given to actors had seen."""
        places = Places(
            calls,
            settings,
            cluster,
            game.observation,
            self._shard_lost,
            partial(self._back, "shard"),
            lambda: self.frames,
        )
        self.replay = ShardedReplay(calls, settings, cluster, game.observation, places)
        self._silent_seconds = 0.0
        self.crew = Crew(calls, settings, cluster, self._actor_lost, partial(self._back, "actor"))

    def close(self) -> None:
        """End all processes of the run."""
        self.crew.close()
        self.replay.places.close()

    def _step_games(self) -> Iterator[Event]:
        """Take the next chunk into the memory; the actors go on playing."""
        self.crew.start()
        self._ask()
        played = self.crew.hear(LISTEN_SECONDS)
        self.last_steps = 0
        self._silent_seconds = 0.0 if played else self._silent_seconds + LISTEN_SECONDS
        if self._silent_seconds == SILENT_SECONDS:
            self._remarks.append(f"no actor has played for {SILENT_SECONDS:g} s: is there room for them?")
        if played is not None:
            if played.report.noise is not None:
                self.agent.set_noise_stream(played.report.noise)
            self.replay.add(played.actor, played.chunk, played.steps)
            self.last_steps = played.steps
            self.counters.steps += played.steps
            for episode_return, length in played.report.episodes:
                yield self._count_episode(episode_return, length)
        yield from self._remarked()

    def _update(self) -> None:
        """One update; none as long as all that was kept to learn from is lost."""
        with contextlib.suppress(Empty):
            super()._update()

    def _ask(self) -> None:
        """Let actors play, as far ahead as they may; no step beyond the budget."""
        cluster, budget = self.cluster, -(-self.until_frames // self.game.frames_per_step)
        chunk, ahead = (1, 1) if cluster.synchronous else (cluster.chunk_steps, CHUNKS_AHEAD)
        left = budget - self.counters.steps - self.crew.steps_asked
        epsilons = self.epsilons()
        for _ in range(ahead):
            for actor in range(cluster.actors):
                if left <= 0 or self.crew.chunks_asked(actor) >= ahead:
                    continue
                steps = min(chunk, -(-left // cluster.envs_per_actor))
                self.crew.ask(
                    actor, steps, self._share(epsilons, actor), *self._newest_weights(), self._noise()
                )
                left -= steps * cluster.envs_per_actor

    def _share(self, epsilons: Any, actor: int) -> Any:
        """ε of the environments of an actor, among those of all."""
        if isinstance(epsilons, float):
            return epsilons
        envs = self.cluster.envs_per_actor
        return np.asarray(epsilons[actor * envs : (actor + 1) * envs])

    def _newest_weights(self) -> tuple[int, Any]:
        """The version to play by, and where its weights are."""
        period = 1 if self.cluster.synchronous else WEIGHTS_PERIOD_UPDATES
        if self._weights is None or self.counters.updates >= self._version + period:
            self._weights, self._version = self._calls.put(self.agent.get_weights()), self.counters.updates
        return self._version, self._weights

    def _noise(self) -> Any:
        """Where the one stream of noise is that learner and actor draw from in turn, where all is synchronous."""
        shared = self.cluster.synchronous and self.settings.agent.noisy
        return self.agent.noise_stream() if shared else None

    def _actor_lost(self, actor: int, reason: str) -> None:
        self._refuse_if_synchronous(f"actor {actor}", reason)
        self.losses.actors += 1
        self.replay.end_episodes(actor)
        self._remarks.append(f"actor {actor} was lost ({reason}): another plays on, in new episodes")

    def _refuse_if_synchronous(self, who: str, reason: str) -> None:
        if self.cluster.synchronous:
            raise PserError(f"{who} of a synchronous run was lost ({reason}): continue with --resume")

    def _shard_lost(self, shard: int, reason: str, steps: int) -> None:
        self._refuse_if_synchronous(f"shard {shard}", reason)
        self.losses.shards += 1
        self.losses.steps += steps
        self._remarks.append(
            f"shard {shard} was lost ({reason}), and {steps:,} steps with it: it goes on from its last snapshot"
        )

    def _back(self, role: str, number: int, seconds: float) -> None:
        self.losses.longest_seconds = max(self.losses.longest_seconds, seconds)
        self._remarks.append(f"{role} {number} works again, {seconds:.1f} s after its loss was noticed")

    def _remarked(self) -> Iterator[Event]:
        while self._remarks:
            yield Remark(self.frames, self._remarks.pop(0))

    def _log_row(self) -> dict[str, Any]:
        row = super()._log_row()
        if self.cluster.synchronous:
            return row
        lost = self.losses
        return row | {
            "cluster": {
                "actors_lost": lost.actors,
                "shards_lost": lost.shards,
                "steps_lost": lost.steps,
                "longest_recovery_seconds": round(lost.longest_seconds, 2),
            }
        }

    def load_memory(self, path: Path) -> Places:
        """Let the shards take their files of a checkpoint; a damaged one is refused."""
        self.replay.places.load(path)
        return self.replay.places

    def get_state(self) -> dict[str, Any]:
        """All but the memory, which saves itself. Of synchronous games that of a run in one process."""
        state: dict[str, Any] = {
            "agent": self.agent.get_state(),
            "replay": {},
            "counters": asdict(self.counters),
            "interval": self.interval.get_state(),
        }
        if self.cluster.synchronous:
            self.crew.start()
            state |= self.crew.call(0, "get_state")
            return state
        return state | {"cluster": {"serial": self.crew.serial, "losses": asdict(self.losses)}}

    def _set_state(self, state: dict[str, Any], memory: Places) -> None:
        self.agent.set_state(state["agent"])
        self.counters = Counters(**state["counters"])
        self.interval.set_state(state["interval"])
        self._weights = None
        if self.cluster.synchronous:
            self.crew.start()
            if not self.crew.call(0, "set_state", {key: state[key] for key in ("exploration", "game")}):
                self.replay.end_episodes()
            return
        self.losses = Losses(**state["cluster"]["losses"])
        self.crew.serial = int(state["cluster"]["serial"])  # new players have random numbers of their own
        self.replay.end_episodes()  # their games start afresh: no transition, no decay across the gap
