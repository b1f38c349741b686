"""The memory of a run as the learner sees it: shards that draw as one, asked ahead of need."""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from pser.cluster.calls import Calls, Lost
from pser.cluster.packing import Request, drawn_batch, opened, unpack
from pser.cluster.places import Places
from pser.cluster.settings import ClusterSettings
from pser.cluster.shard import Answer
from pser.cluster.shards import draw_at, shares_of
from pser.cluster.statistics import merged_stats
from pser.learner.agent import Floats
from pser.learner.seeds import generator
from pser.learner.settings import TrainSettings
from pser.memory.arrays import Ints, Reals
from pser.memory.batch import Batch
from pser.memory.prioritization import Uniform
from pser.spec import Array, Frames

BATCHES, FETCH_BYTES = 16, 16 << 20
"""A call brings so many batches, if they are not too large together."""
ADDS = 8
"""Chunks on their way to a shard; more would wait in its queue."""


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


class Ready(NamedTuple):
    """A batch that has come."""

    taken: Callable[[], Batch]
    generations: tuple[int, ...]


class ShardedReplay:
    """Draws from all shards as from one memory."""

    def __init__(
        self,
        calls: Calls,
        settings: TrainSettings,
        cluster: ClusterSettings,
        observation: Array | Frames,
        places: Places,
    ) -> None:
        self._calls, self._settings, self._cluster, self.places = calls, settings, cluster, places
        self._rng = generator(settings.run.seed, "replay")
        self._ready: deque[Ready] = deque()
        self._fetches: deque[Fetch] = deque()
        self._drawn: tuple[int, ...] = ()
        row = int(np.prod(observation.row_shape)) * observation.dtype.itemsize
        per_call = FETCH_BYTES // max(2 * row * settings.agent.batch_size, 1)
        self._per_call = 1 if cluster.synchronous else max(1, min(BATCHES, per_call))

    @property
    def memory(self) -> Places:
        """What a checkpoint saves beside the state."""
        return self.places

    def add(self, actor: int, chunk: Any, steps: int) -> None:
        """Keep a chunk that an actor played; what was learned rides along."""
        number = self._cluster.shard_of(actor)
        place = self.places[number]
        streams = list(self._cluster.streams_of(actor))
        sent = place.handle.add.remote(self.places.told(place), self.places.max_priority(), streams, chunk)
        place.adds.append(sent)
        place.steps += steps
        while len(place.adds) > ADDS:
            try:
                self._calls.get(place.adds.popleft())
            except Lost as error:
                self.places.replace(number, str(error), place.generation)
                place = self.places[number]

    def end_episodes(self, actor: int | None = None) -> None:
        """Nothing follows on what an actor's environments (or all) did last."""
        if actor is None:
            for place in self.places:
                place.handle.end_episodes.remote()
        else:
            place = self.places[self._cluster.shard_of(actor)]
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
        ready = self._ready.popleft()
        self._drawn = ready.generations
        return ready.taken()

    def learned(self, batch: Batch, signal: Floats) -> None:
        """What was learned from each transition of the batch drawn last; it is told with the next call."""
        shards = len(self.places)
        for number, place in enumerate(self.places):
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
        found = self.places.everywhere("stats", lambda number: ())
        return merged_stats(found)

    def _request(self, batch_size: int, beta: float) -> None:
        """Ask for the next batches; what was learned rides along."""
        generations = self.places.generations
        largest = self.places.max_priority()
        if len(self.places) == 1:
            (place,) = self.places
            request = Request(self.places.told(place), largest, batch_size, beta, self._per_call)
            answer = place.handle.serve.remote(request.sent())
            self._fetches.append(Fetch([answer], generations, [], np.ones(1), beta))
            return
        shares = self._shares()
        rows: list[list[Ints]] = []
        positions: list[list[Reals]] = [[] for _ in self.places]
        for _ in range(self._per_call):
            at = self._rng.random(batch_size)
            if self._settings.replay.prioritization.stratified:
                at = (np.arange(batch_size) + at) / batch_size
            draw = draw_at(at, shares)
            rows.append([np.flatnonzero(draw.shard == number) for number in range(len(self.places))])
            for number, own in enumerate(rows[-1]):
                positions[number].append(draw.position[own])
        answers = []
        for place, asked in zip(self.places, positions, strict=True):
            request = Request(self.places.told(place), largest, batch_size, beta, positions=asked)
            answers.append(place.handle.serve.remote(request.sent()))
        self._fetches.append(Fetch(answers, generations, rows, shares, beta))

    def _shares(self) -> Reals:
        """The share of every shard, as of its last answer: weights are made with the share that is drawn with."""
        known = [place.status for place in self.places if place.status]
        if len(known) < len(self.places) or not any(status.size for status in known):
            refs = [place.handle.status.remote() for place in self.places]
            known = [self.places.answer(number, ref, "status") for number, ref in enumerate(refs)]
            for place, status in zip(self.places, known, strict=True):
                place.status = status
        if not any(status.size for status in known):
            raise Empty
        masses = np.array([status.total_mass for status in known])
        return shares_of(masses, np.array([status.size for status in known]))

    def _collected(self, fetch: Fetch) -> list[Ready]:
        """The batches of a fetch; none if a shard was lost meanwhile, or was found empty."""
        answers: list[Answer] = []
        for number, ref in enumerate(fetch.answers):
            place = self.places[number]
            if place.generation != fetch.generations[number]:
                return []
            try:
                answer: Answer = self._calls.get(ref)
            except Lost as error:
                self.places.replace(number, str(error), place.generation)
                return []
            place.status = answer.status
            self.places.heard(number)
            answers.append(answer)
        if len(answers) == 1:
            return self._of_one(answers[0], fetch)
        return self._of_several(answers, fetch)

    def _of_one(self, answer: Answer, fetch: Fetch) -> list[Ready]:
        if not answer.batches:
            raise Empty
        size = self._settings.agent.batch_size
        taken = partial(unpack, opened(answer.batches))
        starts = range(0, self._per_call * size, size)
        return [Ready(partial(taken, first, first + size), fetch.generations) for first in starts]

    def _of_several(self, answers: list[Answer], fetch: Fetch) -> list[Ready]:
        ends = [[0, *accumulate(len(rows[number]) for rows in fetch.rows)] for number in range(len(answers))]
        if any(own[-1] and not answer.batches for own, answer in zip(ends, answers, strict=True)):
            return []  # its share is known to be none from here on
        least = self._least(fetch.shares)
        arrays = [opened(answer.batches) for answer in answers]

        def taken(k: int) -> Batch:
            parts = [
                unpack(array, own[k], own[k + 1]) if own[k] < own[k + 1] else None
                for own, array in zip(ends, arrays, strict=True)
            ]
            return drawn_batch(parts, fetch.rows[k], fetch.shares, least, fetch.beta)

        return [Ready(partial(taken, k), fetch.generations) for k in range(len(fetch.rows))]

    def _least(self, shares: Reals) -> float | None:
        """The smallest P(i) of all shards, where the weights are measured by it."""
        rule = self._settings.replay.prioritization
        if isinstance(rule, Uniform) or rule.weights != "memory":
            return None
        known = [place.status for place in self.places]
        return min(
            float(share) * status.least
            for share, status in zip(shares, known, strict=True)
            if share and status and status.size
        )
