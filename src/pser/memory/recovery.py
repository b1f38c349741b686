"""What is left of a memory on disk whose process died: the state of its last flush, without what was overwritten since.

Rows and frames go into their places as they come, so those added after the flush lie where the oldest ones were. How
far that had gone is told by counters in the same file. Transitions added after the flush are lost, and as many of the
oldest; the rest is as it was. Episodes that were running have ended.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pser.files.container import read_container, write_container
from pser.memory.columns import LEAST_RECORDS
from pser.memory.disk import CRASHED, DiskFile
from pser.memory.parts import ROWS, clock_lengths
from pser.memory.saving import check_count
from pser.memory.storage import Arrays, Layout, Storage


@dataclass
class Overwritten:
    """How far a process had gone after the flush."""

    times: dict[str, int]
    """Of each clock: every id before this one may have been written."""
    gone: dict[str, int] = field(default_factory=dict)
    """Of each array that is written in another order: no frame up to this one can be read any more."""

    def joined(self, other: "Overwritten") -> "Overwritten":
        """Of two crashes after one flush."""
        return Overwritten(
            {clock: max(time, other.times[clock]) for clock, time in self.times.items()},
            {name: max(frame, other.gone[name]) for name, frame in self.gone.items()},
        )

    def write(self, path: Path) -> None:
        """Keep it until all is put right."""
        write_container(path, {"times": self.times, "gone": self.gone})


def reopen(memory: Any, disk: DiskFile, flushed: Arrays, state: dict[str, Any], in_slots: bool) -> None:
    """A memory over the arrays of its file: as it was flushed, without what was overwritten since."""
    storage: Storage = memory._storage
    next_id, counters = state["next_id"], state["frames"]
    lost, noted = found(storage, flushed, next_id), disk.folder / CRASHED
    if noted.exists():  # that crash was not put right yet
        before = read_overwritten(noted, storage.layout)
        lost = before if lost is None else lost.joined(before)
    if lost is not None:
        lost.write(noted)  # from here on the file tells no longer how far it had gone
        clear_rows(storage, lost, next_id)
    for name, array in flushed.items():
        storage.arrays[name][...] = array
    storage.written[0] = next_id
    storage.check(next_id, counters)
    memory._index.set_state(state, in_slots)
    if lost is not None:
        recover(memory, lost)
        begin_streams_anew(memory)
        memory.flush()
        noted.unlink()


def read_overwritten(path: Path, layout: Layout) -> Overwritten:
    """What was kept; a damaged file is refused."""
    content = read_container(path)
    return Overwritten(
        {clock: check_count(content["times"][clock], clock) for clock in clock_lengths(layout)},
        {
            name: check_count(content["gone"][name] + 1, name) - 1
            for name, stored in layout.items()
            if stored.newest is not None
        },
    )


def found(storage: Storage, flushed: Arrays, next_id: int) -> Overwritten | None:
    """What the file tells beyond the flush; None if nothing was added since."""
    layout, live = storage.layout, storage.arrays
    times = {
        clock: int(storage.written[0]) if clock == ROWS else int(live[clock][0])
        for clock in clock_lengths(layout)
    }
    before = {clock: next_id if clock == ROWS else int(flushed[clock][0]) for clock in times}
    if times == before:
        return None
    result = Overwritten({clock: max(time, before[clock]) for clock, time in times.items()})
    for name, stored in layout.items():
        if stored.newest is None:
            continue
        newest, clock = stored.newest
        column = next(
            column
            for field_, column in storage.columns.items()
            if name.startswith(f"{column.folder}/{field_}/")
        )
        numbers = column.numbers()
        then, now = flushed[newest], live[newest]
        last = int(then.argmax())  # it was written to further
        freed = np.flatnonzero((then >= 0) & (then != now))
        freed = freed[freed != last]
        gone = int(then[freed].max(initial=-1))
        spare = int((then < 0).sum()) - numbers["reserve"] - 1
        since = times[clock] - before[clock]
        if now[last] < 0 or (then[last] >= 0 and since >= min(numbers["ring"], LEAST_RECORDS * spare)):
            gone = int(then[last]) if len(freed) == int((then >= 0).sum()) - 1 else gone
        result.gone[name] = gone + numbers["key_age"] if gone >= 0 else -1
    return result


def recover(memory: Any, lost: Overwritten) -> None:
    """Take out of a memory, just restored to its flush, what was overwritten since."""
    storage: Storage = memory._storage
    lengths = clock_lengths(storage.layout)
    shown = []
    for field_, column in storage.columns.items():
        prefix = f"{column.folder}/{field_}/"
        frames = [
            lost.times[clock] - lengths[clock]
            for clock in lengths
            if clock != ROWS and clock.startswith(prefix)
        ]
        frames += [frame for name, frame in lost.gone.items() if name.startswith(prefix)]
        shown.append(max(frames, default=-1))
    storage.kernel.forget(lost.times[ROWS] - lengths[ROWS], np.array(shown, np.int64))


def clear_rows(storage: Storage, lost: Overwritten, next_id: int) -> None:
    """Rows begun after the flush are nobody's: they need not make sense."""
    length = clock_lengths(storage.layout)[ROWS]
    slots = np.arange(max(next_id, lost.times[ROWS] - length), lost.times[ROWS]) % length
    for name, stored in storage.layout.items():
        if stored.used == ROWS:
            storage.arrays[name][slots] = 0


def begin_streams_anew(memory: Any) -> None:
    """No environment goes on where it was."""
    storage: Storage = memory._storage
    for name, stored in storage.layout.items():
        if stored.of_streams:
            storage.arrays[name][...] = storage.initial(name)
    for stream in range(memory.num_envs):
        memory._index.cut(stream)
