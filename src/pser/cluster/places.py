"""The shards of a run, as the learner sees them: told, asked, saved, and replaced when lost."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pser.cluster.calls import Calls, Lost, counted_death
from pser.cluster.packing import Updates, updates_of
from pser.cluster.settings import ClusterSettings
from pser.cluster.shard import Shard, Status
from pser.errors import PserError
from pser.learner.agent import Floats
from pser.learner.settings import TrainSettings
from pser.memory.arrays import Ints
from pser.records.checkpoint import MEMORY, checkpoint_name, checkpoint_paths
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


class Places:
    """All shards; a checkpoint saves them."""

    def __init__(
        self,
        calls: Calls,
        settings: TrainSettings,
        cluster: ClusterSettings,
        observation: Array | Frames,
        lost: Callable[[int, str, int], None],
        frames: Callable[[], int],
    ) -> None:
        """`lost` is told of each shard that had to be replaced, with the steps that went with it.

        `frames` tells how far the run is, by which its checkpoints are named.
        """
        self._calls, self._settings, self._cluster, self._lost = calls, settings, cluster, lost
        self._observation, self._frames = observation, frames
        self._folder: Path | None = None
        self._places = [Place(self._new(number)) for number in range(cluster.shards)]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Place:
        return self._places[number]

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places)

    @property
    def pids(self) -> list[int | None]:
        """The processes of the shards; None for one that has not yet answered."""
        return [place.status.pid if place.status else None for place in self._places]

    def close(self) -> None:
        """End all shards."""
        for place in self._places:
            self._calls.end(place.handle)

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
            try:
                answer = self._calls.get(ref)
            except Lost as error:
                self.replace(number, str(error))
                ref = getattr(self._places[number].handle, method).remote(*arguments)
            else:
                self._places[number].deaths = 0
                return answer

    def save(self, path: Path) -> None:
        """Every shard writes its own file: the first this one, the others beside it."""
        path = path.absolute()
        self.everywhere("save", lambda number: (str(file_of(path, number)),))
        missing = [number for number in range(len(self._places)) if not file_of(path, number).exists()]
        if missing:
            raise PserError(
                f"shard {missing[0]} wrote its part of {path.parent.parent} on another machine: "
                "use a --run-dir on storage that all machines see"
            )
        self._folder = path.parent.parent
        for place in self._places:
            place.saved[checkpoint_name(self._frames())] = place.steps

    def load(self, path: Path) -> None:
        """Every shard takes its own file; a damaged one is refused."""
        path = path.absolute()
        for number, place in enumerate(self._places):
            place.status = self._calls.get(place.handle.load.remote(str(file_of(path, number))))
            place.pending, place.steps, place.saved = [], 0, {path.parent.name: 0}
        self._folder = path.parent.parent

    def replace(self, number: int, reason: str) -> None:
        """A new shard in the place of one that was lost, with what its newest whole snapshot holds."""
        old = self._places[number]
        self._calls.end(old.handle)
        deaths = counted_death(f"shard {number}", old.deaths, reason)
        place = Place(self._new(number), old.generation + 1, deaths=deaths, steps=old.steps, saved=old.saved)
        self._places[number] = place
        try:
            kept = self._restored(number)
            place.handle.end_episodes.remote()  # what follows is not what followed then
        except Lost as error:
            self.replace(number, str(error))
            return
        place.steps = kept
        self._lost(number, reason, old.steps - kept)

    def _restored(self, number: int) -> int:
        """Load the newest whole snapshot of a shard, if there is one; how many of the steps added were in it."""
        place = self._places[number]
        for path in checkpoint_paths(self._folder) if self._folder else []:
            load = place.handle.load.remote(str(file_of(path / MEMORY, number)))
            try:
                place.status = self._calls.get(load)
            except (PserError, OSError):
                continue  # the one before
            return place.saved.get(path.name, 0)
        return 0

    def _new(self, number: int) -> Any:
        cluster, replay = self._cluster, self._settings.replay
        return self._calls.start(
            Shard,
            self._settings,
            self._observation,
            cluster.capacity_of(number, replay.capacity),
            cluster.streams_in(number),
            number,
            # Others may hand over two chunks between two of an actor's own.
            0 if cluster.synchronous else 2 * cluster.chunk_steps,
        )


def file_of(path: Path, number: int) -> Path:
    """The file of a shard: that of the first is the one a run in one process would have."""
    return path if number == 0 else path.with_name(f"{path.stem}-{number}{path.suffix}")
