"""The arrays behind a memory: laid out and allocated here, written by the kernel, saved by name."""

import math
import os
from typing import Any

import numpy as np

from pser import _kernel
from pser.errors import PserError, require
from pser.memory.columns import Column, Sizes, Stored, row_bytes, zeros
from pser.memory.disk import DiskFile
from pser.memory.saving import check_count
from pser.spec import Array

Arrays = dict[str, np.ndarray[Any, Any]]
Layout = dict[str, Stored]

STEP_NAMES = {
    "action": "action/rows",
    "pending_action": "pending/action",
    "reward": "reward/rows",
    "discount": "discount/rows",
    "terminated": "terminated/rows",
    "pending_reward": "pending/reward",
    "pending_priority": "pending/priority",
    "pending_first": "pending/first",
    "pending_count": "pending/count",
    "pending_start": "pending/start",
    "at_start": "at_start",
}
"""The kernel's name of each array of the steps → its name in a file."""


def layout_of(columns: dict[str, Column], action: Array, sizes: Sizes, real: np.dtype[Any]) -> Layout:
    """Every array of a memory by its name, in the order of a file, before anything is allocated."""
    layout = _steps_layout(action, sizes, real)
    for name, column in columns.items():
        layout |= _column_layout(f"{column.folder}/{name}", column)
    return layout


def _steps_layout(action: Array, sizes: Sizes, real: np.dtype[Any]) -> Layout:
    pending = (sizes.num_envs, sizes.n_step)
    return {
        "at_start": Stored((sizes.num_envs,), np.bool_, initial=1, of_streams=True),
        "action/rows": Stored((sizes.capacity, *action.shape), action.dtype, used="rows"),
        "pending/action": Stored((*pending, *action.shape), action.dtype, of_streams=True),
        "reward/rows": Stored((sizes.capacity,), real, used="rows"),
        "discount/rows": Stored((sizes.capacity,), real, used="rows"),
        "terminated/rows": Stored((sizes.capacity,), np.bool_, used="rows"),
        "pending/reward": Stored(pending, np.float64, of_streams=True),
        "pending/priority": Stored(pending, np.float64, of_streams=True),
        "pending/first": Stored(pending, np.bool_, of_streams=True),
        "pending/count": Stored((sizes.num_envs,), np.int64, of_streams=True),
        "pending/start": Stored((sizes.num_envs,), np.int64, of_streams=True),
    }


def _column_layout(prefix: str, column: Column) -> Layout:
    layout = {}
    for part, stored in column.arrays().items():
        if stored.used not in ("all", "rows"):
            stored = stored._replace(used=f"{prefix}/{stored.used}")
        if stored.newest is not None:
            stored = stored._replace(newest=(f"{prefix}/{stored.newest[0]}", f"{prefix}/{stored.newest[1]}"))
        layout[f"{prefix}/{part}"] = stored
    return layout


def counter_names(layout: Layout) -> list[str]:
    """The arrays of one number that tell how much of another is in use."""
    return [stored.used for stored in layout.values() if stored.used not in ("all", "rows")]


def used_lengths(layout: Layout, next_id: int, counters: dict[str, int]) -> dict[str, int]:
    """How many entries of each array hold anything, once `next_id` transitions were ever added."""
    counts = {
        name: {"all": stored.shape[0], "rows": next_id}.get(stored.used) for name, stored in layout.items()
    }
    return {
        name: min(layout[name].shape[0], counters[layout[name].used] if count is None else count)
        for name, count in counts.items()
    }


def used_bytes(layout: Layout, next_id: int, counters: dict[str, int]) -> dict[str, int]:
    """How large each array is in a file."""
    names = counter_names(layout)
    if sorted(counters) != sorted(names):
        raise PserError(f"the counters saved must be {names}, got {list(counters)}: use an older copy")
    for name in names:
        check_count(counters[name], name)
    lengths = used_lengths(layout, next_id, counters)
    sizes = {}
    for name, stored in layout.items():
        sizes[name] = lengths[name] * math.prod(stored.shape[1:]) * np.dtype(stored.dtype).itemsize
    return sizes


def machine_bytes() -> int | None:
    """How much memory this machine has; None where that cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_room(layout: Layout, index_bytes: int) -> None:
    """Refuse what this machine cannot hold: the system would give it all, and end us once it is filled."""
    arrays = sum(
        math.prod(stored.shape) * np.dtype(stored.dtype).itemsize
        for stored in layout.values()
        if not stored.at_worst
    )
    needed, here = arrays + index_bytes, machine_bytes()
    if here is not None and needed > here:
        raise PserError(
            f"{layout['reward/rows'].shape[0]} transitions must fit into memory ({here / 1e9:.3g} GB), got "
            f"{needed / 1e9:.3g} GB: lower capacity, store frames once with pser.Frames, or keep them on disk with "
            "storage='disk'"
        )


class Storage:
    """Every array of a memory and the kernel's store that writes them."""

    def __init__(
        self,
        index: _kernel.Index,
        columns: dict[str, Column],
        action: Array,
        sizes: Sizes,
        gamma: float,
        reward_dtype: np.dtype[Any],
        disk: DiskFile | None = None,
    ) -> None:
        self.layout = layout_of(columns, action, sizes, reward_dtype)
        self.columns = columns
        written = np.zeros(1, np.int64)
        if disk is None:
            require_room(self.layout, index.blocks().nbytes)
            self.arrays = {name: self.initial(name) for name in self.layout}
        else:
            self.arrays, written = disk.arrays(self.layout, self.initial)
        self.written = written
        """One more than the id of the newest row that may have been begun."""
        steps = {key: self.arrays[name] for key, name in STEP_NAMES.items()} | {"written": written}
        self.kernel = _kernel.Store(
            index,
            sizes.n_step,
            gamma,
            {**steps, "action_bytes": row_bytes(action)},
            [self._description(f"{column.folder}/{name}", column) for name, column in columns.items()],
        )

    def initial(self, name: str) -> np.ndarray[Any, Any]:
        """One of its arrays as it is in the beginning."""
        for field, column in self.columns.items():
            prefix = f"{column.folder}/{field}/"
            part = name.removeprefix(prefix)
            if name.startswith(prefix) and part in column.arrays():
                return column.allocate(part, column.arrays()[part])
        return zeros(name, self.layout[name])

    def _description(self, prefix: str, column: Column) -> dict[str, Any]:
        arrays = {key: self.arrays[f"{prefix}/{part}"] for key, part in column.names().items()}
        return {"kind": column.kind, **arrays, **column.numbers()}

    def counters(self) -> dict[str, int]:
        """How many frames each ring has taken; tells a loader how much of the ring was saved."""
        return {name: int(self.arrays[name][0]) for name in counter_names(self.layout)}

    def used(self, next_id: int, counters: dict[str, int]) -> Arrays:
        """The part of each array that holds anything, in place."""
        lengths = used_lengths(self.layout, next_id, counters)
        return {name: array[: lengths[name]] for name, array in self.arrays.items()}

    def check(self, next_id: int, counters: dict[str, int]) -> None:
        """Refuse arrays, just read from a file, that no history of a memory could have left behind."""
        require(
            self.counters() == counters, "a ring has taken as many frames as it counts", counters, "damaged"
        )
        for name, array in self.used(next_id, counters).items():
            if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
                raise PserError(f"a flag must be 0 or 1, array {name!r} has others: use an older copy")
        wrong = self.kernel.damage(min(next_id, self.layout["reward/rows"].shape[0]))
        if wrong:
            raise PserError(f"{wrong}: use an older copy")
