"""The memory of a run as the learner sees it: shards that draw as one, asked ahead of need."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pser.cluster.calls import Calls, Lost
from pser.cluster.packing import drawn_batch, unpack
from pser.cluster.settings import ClusterSettings
from pser.cluster.shard import Answer, Shard, Status
from pser.cluster.shards import draw_at, shares_of
from pser.cluster.statistics import merged_stats
from pser.errors import PserError
from pser.learner.agent import Floats
from pser.learner.seeds import generator
from pser.learner.settings import TrainSettings
from pser.memory.arrays import Ints, Reals
from pser.memory.batch import Batch
from pser.memory.prioritization import Uniform
from pser.records.checkpoint import MEMORY, checkpoint_paths
from pser.spec import Array, Frames

BATCHES, FETCH_BYTES = 16, 16 << 20
"""A call brings so many batches, if they are not too large together."""
ADDS = 8
"""Chunks on their way to a shard; more would wait in its queue."""
DEATHS = 4
"""A shard that is lost so often without an answer will not get better."""


class Empty(Exception):
    """No shard holds a transition."""


class Fetch(NamedTuple):
    """Batches that were asked for."""

    answers: list[Any]
    generations: tuple[int, ...]
    rows: list[list[Ints]]
    """Of every batch, the rows that each shard fills (several shards only)."""
    shares: Reals
    beta: float


@dataclass
class _Place:
    """A shard's place, whoever holds it."""

    handle: Any
    generation: int = 0
    """How often it was replaced: ids of an earlier life mean nothing in a later one."""
    pending: list[tuple[Ints, Floats]] = field(default_factory=list)
    """What was learned of its transitions and not yet told."""
    status: Status | None = None
    adds: deque[Any] = field(default_factory=deque)
    steps: int = 0
    """Added since its last snapshot."""
    deaths: int = 0


class ShardedReplay:
    """All shards."""

    def __init__(
        self,
        calls: Calls,
        settings: TrainSettings,
        cluster: ClusterSettings,
        observation: Array | Frames,
        lost: Callable[[int, str, int], None],
    ) -> None:
        """`lost` is told of each shard that had to be replaced, with the steps that went with it."""
        self._calls, self._settings, self._cluster, self._lost = calls, settings, cluster, lost
        self._observation = observation
        self._rng = generator(settings.run.seed, "replay")
        self._folder: Path | None = None
        self._ready: deque[tuple[Batch, tuple[int, ...]]] = deque()
        self._fetches: deque[Fetch] = deque()
        self._drawn: tuple[int, ...] = ()
        row = int(np.prod(observation.row_shape)) * observation.dtype.itemsize
        per_call = FETCH_BYTES // max(2 * row * settings.agent.batch_size, 1)
        self._per_call = 1 if cluster.synchronous else max(1, min(BATCHES, per_call))
        self._places = [_Place(self._new(number)) for number in range(cluster.shards)]

    @property
    def memory(self) -> "ShardedReplay":
        """What a checkpoint saves beside the state."""
        return self

    @property
    def pids(self) -> list[int | None]:
        """The processes of the shards; None for one that has not yet answered."""
        return [place.status.pid if place.status else None for place in self._places]

    def close(self) -> None:
        """End all shards."""
        for place in self._places:
            self._calls.end(place.handle)

    def add(self, actor: int, chunk: Any, steps: int) -> None:
        """Keep a chunk that an actor played; what was learned rides along."""
        number = self._cluster.shard_of(actor)
        place = self._places[number]
        streams = list(self._cluster.streams_of(actor))
        sent = place.handle.add.remote(self._told(place), self._max_priority(), streams, chunk)
        place.adds.append(sent)
        place.steps += steps
        while len(place.adds) > ADDS:
            try:
                self._calls.get(place.adds.popleft())
            except Lost as error:
                self._replace(number, str(error))
                place = self._places[number]

    def end_episodes(self, actor: int | None = None) -> None:
        """Nothing follows on what an actor's environments (or all) did last."""
        if actor is None:
            for place in self._places:
                place.handle.end_episodes.remote()
        else:
            place = self._places[self._cluster.shard_of(actor)]
            place.handle.end_episodes.remote(list(self._cluster.streams_of(actor)))

    def draw(self, batch_size: int, beta: float) -> Batch:
        """A batch to learn from; unless all is synchronous, the next ones are asked for meanwhile.

        `Empty` if there is nothing to draw: all that was kept has been lost.
        """
        while not self._ready:
            if not self._fetches:
                self._request(batch_size, beta)
            self._ready.extend(self._collected(self._fetches.popleft()))
            if not self._cluster.synchronous:
                self._request(batch_size, beta)
        batch, self._drawn = self._ready.popleft()
        return batch

    def learned(self, batch: Batch, signal: Floats) -> None:
        """What was learned from each transition of the batch drawn last; it is told with the next call."""
        shards = len(self._places)
        for number, place in enumerate(self._places):
            if place.generation != self._drawn[number]:
                continue
            if shards == 1:
                place.pending.append((batch.ids, signal.copy()))
            else:
                rows = np.flatnonzero(batch.ids % shards == number)
                if len(rows):
                    place.pending.append((batch.ids[rows] // shards, signal[rows]))

    def stats(self) -> dict[str, float]:
        """Numbers to watch while training, over all shards."""
        found = self._everywhere("stats", lambda number: ())
        return merged_stats(found)

    def save(self, path: Path) -> None:
        """Every shard writes its own file: the first this one, the others beside it."""
        path = path.absolute()
        self._everywhere("save", lambda number: (str(file_of(path, number)),))
        missing = [number for number in range(len(self._places)) if not file_of(path, number).exists()]
        if missing:
            raise PserError(
                f"shard {missing[0]} wrote its part of {path.parent.parent} on another machine: "
                "use a --run-dir on storage that all machines see"
            )
        self._folder = path.parent.parent
        for place in self._places:
            place.steps = 0

    def load(self, path: Path) -> None:
        """Every shard takes its own file; a damaged one is refused."""
        path = path.absolute()
        for number, place in enumerate(self._places):
            place.status = self._calls.get(place.handle.load.remote(str(file_of(path, number))))
            place.pending, place.steps = [], 0
        self._folder = path.parent.parent

    def _new(self, number: int) -> Any:
        cluster, replay = self._cluster, self._settings.replay
        return self._calls.start(
            Shard,
            self._settings,
            self._observation,
            cluster.capacity_of(number, replay.capacity),
            cluster.streams_in(number),
            number,
        )

    def _told(self, place: _Place) -> list[tuple[Ints, Floats]]:
        """What is to be told with the next call."""
        pending, place.pending = place.pending, []
        return pending

    def _max_priority(self) -> float:
        """The largest priority ever recorded, as far as it was heard of."""
        return max((place.status.max_priority for place in self._places if place.status), default=0.0)

    def _request(self, batch_size: int, beta: float) -> None:
        """Ask for the next batches; what was learned rides along."""
        generations = tuple(place.generation for place in self._places)
        largest = self._max_priority()
        if len(self._places) == 1:
            (place,) = self._places
            told = self._told(place)
            answer = place.handle.serve.remote(told, largest, batch_size, beta, self._per_call)
            self._fetches.append(Fetch([answer], generations, [], np.ones(1), beta))
            return
        shares = self._shares()
        rows: list[list[Ints]] = []
        positions: list[list[Reals]] = [[] for _ in self._places]
        for _ in range(self._per_call):
            at = self._rng.random(batch_size)
            if self._settings.replay.prioritization.stratified:
                at = (np.arange(batch_size) + at) / batch_size
            draw = draw_at(at, shares)
            rows.append([np.flatnonzero(draw.shard == number) for number in range(len(self._places))])
            for number, own in enumerate(rows[-1]):
                positions[number].append(draw.position[own])
        answers = [
            place.handle.serve.remote(self._told(place), largest, batch_size, beta, 0, positions[number])
            for number, place in enumerate(self._places)
        ]
        self._fetches.append(Fetch(answers, generations, rows, shares, beta))

    def _shares(self) -> Reals:
        """The share of every shard, as of its last answer: weights are made with the share that is drawn with."""
        known = [place.status for place in self._places if place.status]
        if len(known) < len(self._places) or not any(status.size for status in known):
            refs = [place.handle.status.remote() for place in self._places]
            known = [self._answer(number, ref, "status") for number, ref in enumerate(refs)]
            for place, status in zip(self._places, known, strict=True):
                place.status = status
        if not any(status.size for status in known):
            raise Empty
        masses = np.array([status.total_mass for status in known])
        return shares_of(masses, np.array([status.size for status in known]))

    def _collected(self, fetch: Fetch) -> list[tuple[Batch, tuple[int, ...]]]:
        """The batches of a fetch; none if a shard was lost meanwhile, or was found empty."""
        answers: list[Answer] = []
        for number, ref in enumerate(fetch.answers):
            place = self._places[number]
            if place.generation != fetch.generations[number]:
                return []
            try:
                answer: Answer = self._calls.get(ref)
            except Lost as error:
                self._replace(number, str(error))
                return []
            place.status, place.deaths = answer.status, 0
            answers.append(answer)
        if len(answers) == 1:
            if not answers[0].batches:
                raise Empty
            return [(unpack(packed), fetch.generations) for packed in answers[0].batches]
        if not all(answer.batches for answer in answers):  # its share is known to be none from here on
            return []
        least = self._least(fetch.shares)
        batches = zip(*(answer.batches for answer in answers), strict=True)
        return [
            (drawn_batch(packed, rows, fetch.shares, least, fetch.beta), fetch.generations)
            for packed, rows in zip(batches, fetch.rows, strict=True)
        ]

    def _least(self, shares: Reals) -> float | None:
        """The smallest P(i) of all shards, where the weights are measured by it."""
        rule = self._settings.replay.prioritization
        if isinstance(rule, Uniform) or rule.weights != "memory":
            return None
        known = [place.status for place in self._places]
        return min(
            float(share) * status.least
            for share, status in zip(shares, known, strict=True)
            if share and status and status.size
        )

    def _everywhere(self, method: str, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """What every shard answers; one that is lost meanwhile is replaced and asked again."""
        refs = [
            getattr(place.handle, method).remote(self._told(place), *arguments(number))
            for number, place in enumerate(self._places)
        ]
        return [self._answer(number, ref, method, [], *arguments(number)) for number, ref in enumerate(refs)]

    def _answer(self, number: int, ref: Any, method: str, *arguments: Any) -> Any:
        """What one shard answers to a call; if it is lost meanwhile it is replaced, and called again."""
        while True:
            try:
                answer = self._calls.get(ref)
            except Lost as error:
                self._replace(number, str(error))
                ref = getattr(self._places[number].handle, method).remote(*arguments)
            else:
                self._places[number].deaths = 0
                return answer

    def _replace(self, number: int, reason: str) -> None:
        """A new shard in the place of one that was lost, with what its newest whole snapshot holds."""
        old = self._places[number]
        self._calls.end(old.handle)
        deaths = old.deaths + 1
        if deaths == DEATHS:
            raise PserError(
                f"shard {number} was lost {deaths} times without an answer ({reason}): see the logs of Ray"
            )
        if deaths > 1:
            time.sleep(2.0 ** (deaths - 2))
        place = _Place(self._new(number), old.generation + 1, deaths=deaths)
        self._places[number] = place
        steps = old.steps
        try:
            for path in checkpoint_paths(self._folder) if self._folder else []:
                try:
                    place.status = self._calls.get(
                        place.handle.load.remote(str(file_of(path / MEMORY, number)))
                    )
                    break
                except (PserError, OSError):
                    continue  # the one before
            place.handle.end_episodes.remote()  # what follows is not what followed then
        except Lost as error:
            place.steps = steps
            self._replace(number, str(error))
            return
        self._lost(number, reason, steps)


def file_of(path: Path, number: int) -> Path:
    """The file of a shard: that of the first is the one a run in one process would have."""
    return path if number == 0 else path.with_name(f"{path.stem}-{number}{path.suffix}")
