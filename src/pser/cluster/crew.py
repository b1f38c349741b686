"""The actors of a run, as the learner sees them: asked for steps, heard, and replaced when lost."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pser.cluster.calls import Calls, Lost, counted_death
from pser.cluster.player import Epsilon, Player, Report
from pser.cluster.settings import ClusterSettings
from pser.errors import PserError
from pser.learner.settings import TrainSettings


class Asked(NamedTuple):
    """Steps that an actor is to play."""

    report: Any
    chunk: Any
    steps: int


class Played(NamedTuple):
    """Steps that an actor has played."""

    actor: int
    report: Report
    chunk: Any
    """Where the chunk is: the learner has no use for it."""
    steps: int


@dataclass
class _Seat:
    """An actor's place, whoever holds it."""

    handle: Any
    asked: deque[Asked] = field(default_factory=deque)
    deaths: int = 0
    pid: int | None = None
    noticed: float | None = None
    """When the loss of who held it before was noticed, as long as nothing was heard since."""


class Crew:
    """All actors."""

    def __init__(
        self,
        calls: Calls,
        settings: TrainSettings,
        cluster: ClusterSettings,
        lost: Callable[[int, str], None],
        back: Callable[[int, float], None],
    ) -> None:
        """`lost` is told of each actor that had to be replaced, `back` when it plays: how long after the notice."""
        self._calls, self._settings, self._cluster, self._lost = calls, settings, cluster, lost
        self._back = back
        self.serial = 0
        """How many players there were so far: the next one's number."""
        self._seats: list[_Seat] = []
        self._turn = 0

    def start(self) -> None:
        """Start all players, if they are not there yet."""
        self._seats = self._seats or [_Seat(self._new()) for _ in range(self._cluster.actors)]

    def close(self) -> None:
        """End all players."""
        for seat in self._seats:
            self._calls.end(seat.handle)
        self._seats = []

    @property
    def steps_asked(self) -> int:
        """Steps asked for and not yet heard of, of all environments."""
        return sum(asked.steps for seat in self._seats for asked in seat.asked)

    @property
    def pids(self) -> list[int | None]:
        """The processes that last played, by actor; None for one that has not yet."""
        return [seat.pid for seat in self._seats]

    def chunks_asked(self, actor: int) -> int:
        """Chunks asked of an actor and not yet heard of."""
        return len(self._seats[actor].asked)

    def ask(
        self, actor: int, steps: int, epsilon: Epsilon, version: int, weights: Any, noise: Any = None
    ) -> None:
        """Let an actor play so many steps of each of its environments."""
        seat = self._seats[actor]
        play = seat.handle.play.options(num_returns=2)
        report, chunk = play.remote(steps, epsilon, version, weights, noise)
        seat.asked.append(Asked(report, chunk, steps * self._cluster.envs_per_actor))

    def hear(self, seconds: float) -> Played | None:
        """The next chunk that is ready, each actor in its turn; None if there is none in time, or one was lost."""
        order = [(self._turn + k) % len(self._seats) for k in range(len(self._seats))]
        waiting = {self._seats[actor].asked[0].report: actor for actor in order if self._seats[actor].asked}
        ready = self._calls.first(list(waiting), seconds) if waiting else None
        if ready is None:
            return None
        actor = waiting[ready]
        seat = self._seats[actor]
        try:
            report: Report = self._calls.get(ready)
        except Lost as error:
            self._replace(actor, str(error))
            return None
        self._turn = actor + 1
        _, chunk, steps = seat.asked.popleft()
        seat.deaths, seat.pid = 0, report.pid
        if seat.noticed is not None:
            self._back(actor, time.monotonic() - seat.noticed)
            seat.noticed = None
        return Played(actor, report, chunk, steps)

    def call(self, actor: int, method: str, *arguments: Any) -> Any:
        """Ask an actor something else, and wait for it."""
        try:
            return self._calls.get(getattr(self._seats[actor].handle, method).remote(*arguments))
        except Lost as error:
            raise PserError(
                f"actor {actor} was lost ({error}), and with it its games: continue with --resume"
            ) from None

    def _new(self) -> Any:
        cluster = self._cluster
        handle = self._calls.start(
            Player, self._settings, cluster.envs_per_actor, self.serial, cluster.synchronous
        )
        self.serial += 1
        return handle

    def _replace(self, actor: int, reason: str) -> None:
        """A new player in the place of one that was lost, with games and random actions of its own."""
        seat = self._seats[actor]
        noticed = time.monotonic() if seat.noticed is None else seat.noticed
        self._calls.end(seat.handle)
        deaths = counted_death(f"actor {actor}", seat.deaths, reason)
        self._seats[actor] = _Seat(self._new(), deaths=deaths, noticed=noticed)
        self._lost(actor, reason)
