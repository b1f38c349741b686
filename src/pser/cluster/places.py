"""The shards of a run, as the learner sees them: told, asked, and replaced when lost."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pser.cluster.calls import Calls, Lost, counted_death
from pser.cluster.packing import Updates, updates_of
from pser.cluster.saving import SavedShards, ShardsSaving, file_of
from pser.cluster.settings import ClusterSettings
from pser.cluster.shard import LOADED, Shard, Status
from pser.errors import PserError
from pser.learner.agent import Floats
from pser.learner.settings import TrainSettings
from pser.memory.arrays import Ints
from pser.records.checkpoint import MEMORY, checkpoint_paths
from pser.spec import Array, Frames


@dataclass
class Place:
    """A shard's place, whoever holds it."""

    handle: Any
    generation: int = 0
    """How often it was replaced: ids of an earlier life mean nothing in a later one."""
    pending: list[tuple[Ints, Floats]] = field(default_factory=list)
    """What was learned of its transitions and not yet told."""
    status: Status | None = None
    adds: deque[Any] = field(default_factory=deque)
    steps: int = 0
    """Added so far."""
    saved: dict[str, int] = field(default_factory=dict)
    """Name of a checkpoint → the steps that are in it."""
    deaths: int = 0
    noticed: float | None = None
    """When the loss of who held it before was noticed, as long as nothing was heard since."""


class Places:
    """All shards; a checkpoint saves them (`saving.py`)."""

    def __init__(
        self,
        calls: Calls,
        settings: TrainSettings,
        cluster: ClusterSettings,
        observation: Array | Frames,
        lost: Callable[[int, str, int], None],
        back: Callable[[int, float], None],
        frames: Callable[[], int],
    ) -> None:
        """`lost` is told of each shard that had to be replaced, with the steps that went with it.

        `back` is told when its place answers again, how long after the notice. `frames` tells how far the run is, by
        which its checkpoints are named.
        """
        self.calls, self._settings, self._cluster, self._lost = calls, settings, cluster, lost
        self._observation, self.frames, self._back = observation, frames, back
        self.folder: Path | None = None
        """Of the checkpoints."""
        self.saved: SavedShards | None = None
        """The save that they were loaded from."""
        self.saves = LOADED
        """How many saves were begun since."""
        self._replacing = threading.RLock()  # whoever writes a checkpoint may notice a loss, too
        self._places = [Place(self._new(number)) for number in range(cluster.shards)]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Place:
        return self._places[number]

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places)

    @property
    def generations(self) -> tuple[int, ...]:
        """How often each shard was replaced."""
        return tuple(place.generation for place in self._places)

    @property
    def pids(self) -> list[int | None]:
        """The processes of the shards; None for one that has not yet answered."""
        return [place.status.pid if place.status else None for place in self._places]

    def close(self) -> None:
        """End all shards."""
        for place in self._places:
            self.calls.end(place.handle)

    def told(self, place: Place) -> Updates | None:
        """What is to be told with the next call."""
        pending, place.pending = place.pending, []
        return updates_of(pending)

    def max_priority(self) -> float:
        """The largest priority ever recorded, as far as it was heard of."""
        return max((place.status.max_priority for place in self._places if place.status), default=0.0)

    def everywhere(self, method: str, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """What every shard answers; one that is lost meanwhile is replaced and asked again."""
        refs = [
            getattr(place.handle, method).remote(self.told(place), *arguments(number))
            for number, place in enumerate(self._places)
        ]
        return [self.answer(number, ref, method, None, *arguments(number)) for number, ref in enumerate(refs)]

    def answer(self, number: int, ref: Any, method: str, *arguments: Any) -> Any:
        """What one shard answers to a call; if it is lost meanwhile it is replaced, and called again."""
        while True:
            generation = self._places[number].generation
            try:
                answer = self.calls.get(ref)
            except Lost as error:
                self.replace(number, str(error), generation)
                ref = getattr(self._places[number].handle, method).remote(*arguments)
            else:
                self.heard(number)
                return answer

    def heard(self, number: int) -> None:
        """A shard has answered."""
        place = self._places[number]
        place.deaths = 0
        if place.noticed is not None:
            self._back(number, time.monotonic() - place.noticed)
            place.noticed = None

    def begin_save(self, path: Path, since: SavedShards | None) -> ShardsSaving:
        """Every shard takes this moment, to be written to its own file: the first to this one, the others beside it."""
        return ShardsSaving(self, path.absolute(), since)

    def load(self, path: Path) -> None:
        """Every shard takes its own file; a damaged one is refused. One that is lost meanwhile is replaced."""
        path = path.absolute()
        for number in range(len(self)):
            status = self._loaded(number, str(file_of(path, number)))
            self.heard(number)
            place = self._places[number]
            place.status, place.pending, place.steps, place.saved = status, [], 0, {path.parent.name: 0}
        self.folder = path.parent.parent
        self.saved = SavedShards(path, LOADED, self.generations)

    def _loaded(self, number: int, file: str) -> Status:
        """Load the file of a shard; nothing is lost with one that dies of it, or before."""
        while True:
            place = self._places[number]
            try:
                status: Status = self.calls.get(place.handle.load.remote(file))
            except Lost as error:
                self.calls.end(place.handle)
                deaths = counted_death(f"shard {number}", place.deaths, str(error))
                self._places[number] = Place(self._new(number), place.generation + 1, deaths=deaths)
            else:
                return status

    def replace(self, number: int, reason: str, generation: int) -> None:
        """A new shard in the place of one that was lost, with what its newest whole snapshot holds.

        Nothing if it was the one of an earlier generation: that one is replaced already.
        """
        with self._replacing:
            if generation == self._places[number].generation:
                self._replace(number, reason)

    def _replace(self, number: int, reason: str) -> None:
        old = self._places[number]
        noticed = time.monotonic() if old.noticed is None else old.noticed
        self.calls.end(old.handle)
        deaths = counted_death(f"shard {number}", old.deaths, reason)
        place = Place(
            self._new(number),
            old.generation + 1,
            deaths=deaths,
            steps=old.steps,
            saved=old.saved,
            noticed=noticed,
        )
        self._places[number] = place
        try:
            kept = self._restored(number)
            place.handle.end_episodes.remote()  # what follows is not what followed then
        except Lost as error:
            self._replace(number, str(error))
            return
        place.steps = kept
        self._lost(number, reason, old.steps - kept)

    def _restored(self, number: int) -> int:
        """Load the newest whole snapshot of a shard, if there is one; how many of the steps added were in it."""
        place = self._places[number]
        for path in checkpoint_paths(self.folder) if self.folder else []:
            if path.name not in place.saved:
                continue  # of a part of the run that was taken back
            load = place.handle.load.remote(str(file_of(path / MEMORY, number)))
            try:
                place.status = self.calls.get(load)
            except (PserError, OSError):
                continue  # the one before
            return place.saved[path.name]
        return 0

    def _new(self, number: int) -> Any:
        cluster, replay = self._cluster, self._settings.replay
        return self.calls.start(
            Shard,
            self._settings,
            self._observation,
            cluster.capacity_of(number, replay.capacity),
            cluster.streams_in(number),
            number,
            # Others may hand over two chunks between two of an actor's own.
            0 if cluster.synchronous else 2 * cluster.chunk_steps,
        )
