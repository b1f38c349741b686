"""Shards as part of a checkpoint: each writes what is new in it, in its own process, while it is used on."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pser.cluster.calls import Lost
from pser.errors import PserError
from pser.records.checkpoint import checkpoint_name

if TYPE_CHECKING:
    from pser.cluster.places import Places

LOOK_SECONDS = 0.02, 0.5
"""How soon, and at the end how seldom, the shards are asked whether they are done."""


@dataclass
class SavedShards:
    """A save of all shards that is complete."""

    path: Path
    """Of the first shard's file; whoever moves the files corrects it."""
    number: int
    """What the shards call it."""
    generations: tuple[int, ...]
    """Of the shards that made it: others know nothing of it."""


class ShardsSaving:
    """One save, from its moment (taken when it is made) to its end."""

    def __init__(self, places: "Places", path: Path, since: SavedShards | None) -> None:
        self._places, self._path, self._since = places, path, since
        self._name = checkpoint_name(places.frames())
        places.saves += 1
        self._number = places.saves
        self._generations = list(places.generations)
        self._begun = [self._begin(number) for number in range(len(places))]

    def write(self) -> SavedShards:
        """Wait until every shard has written its file. One that is lost meanwhile is replaced, and begins anew."""
        for number in range(len(self._places)):
            while not self._is_written(number):
                pass
        missing = [k for k in range(len(self._places)) if not file_of(self._path, k).exists()]
        if missing:
            raise PserError(
                f"shard {missing[0]} wrote its part of {self._path.parent.parent} on another machine: "
                "use a --run-dir on storage that all machines see"
            )
        self._places.folder = self._path.parent.parent
        return SavedShards(self._path, self._number, tuple(self._generations))

    def abandon(self) -> None:
        """Nobody waits for it: a shard that still writes does so by itself."""

    def _begin(self, number: int) -> tuple[Any, Any]:
        """The moment is that of all calls made before."""
        places, since = self._places, self._since
        place = places[number]
        known = since is not None and since.generations[number] == place.generation
        earlier = (since.number, str(file_of(since.path, number))) if since is not None and known else None
        self._generations[number] = place.generation
        place.saved[self._name] = place.steps
        file = str(file_of(self._path, number))
        begun = place.handle.begin_save.remote(places.told(place), file, self._number, earlier)
        return place.handle, begun

    def _is_written(self, number: int) -> bool:
        places, generation = self._places, self._generations[number]
        pause, longest = LOOK_SECONDS
        handle, begun = self._begun[number]
        try:
            places.calls.get(begun)
            while not places.calls.get(handle.is_saved.remote()):
                time.sleep(pause)
                pause = min(2.0 * pause, longest)
        except Lost as error:
            places.replace(number, str(error), generation)
        if places[number].generation == generation:
            return True
        self._begun[number] = self._begin(number)
        return False


def file_of(path: Path, number: int) -> Path:
    """The file of a shard: that of the first is the one a run in one process would have."""
    return path if number == 0 else path.with_name(f"{path.stem}-{number}{path.suffix}")
