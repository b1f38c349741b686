"""The arrays behind a memory: allocated here, written by the kernel, saved by name."""

import math
from typing import Any

import numpy as np

from pser import _kernel
from pser.spec import Array, Fields, Frames

Arrays = dict[str, np.ndarray[Any, Any]]


class Storage:
    """Every array of a memory and the kernel's store that writes them.

    np.zeros asks the system for pages that are committed when first written, so an unfilled memory stays light.
    """

    def __init__(
        self,
        index: _kernel.Index,
        fields: Fields,
        action: Array,
        capacity: int,
        num_envs: int,
        n_step: int,
        gamma: float,
        reward_dtype: np.dtype[Any],
    ) -> None:
        self.capacity = capacity
        self.arrays: Arrays = {}
        self._ring_counts: dict[str, str] = {}  # array of frames → array with the id of its next frame
        steps = self._steps(action, capacity, num_envs, n_step, reward_dtype)
        plain, rings = [], []
        for name, field in fields.items():
            if isinstance(field, Frames):
                rings.append(self._ring(f"frames/{name}", field, capacity, num_envs, n_step))
            else:
                plain.append(self._plain(f"observation/{name}", field, capacity, num_envs, n_step))
        self.kernel = _kernel.Store(index, n_step, gamma, steps, plain, rings)

    def used(self, next_id: int) -> Arrays:
        """The part of each array that holds anything, in place; `next_frame` counters must be right already."""
        rows = min(next_id, self.capacity)
        used: Arrays = {}
        for name, array in self.arrays.items():
            if name in self._ring_counts:
                used[name] = array[: min(int(self.arrays[self._ring_counts[name]][0]), len(array))]
            else:
                used[name] = array[:rows] if name.endswith("/rows") else array
        return used

    def counters(self) -> dict[str, int]:
        """How many frames each ring has taken; tells a loader how much of the ring was saved."""
        return {name: int(self.arrays[name][0]) for name in self._ring_counts.values()}

    def set_counters(self, counters: dict[str, int]) -> None:
        """Take over saved frame counters, before `used` is asked for."""
        for name, value in counters.items():
            self.arrays[name][0] = value

    def _new(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        self.arrays[name] = np.zeros(shape, dtype)
        return self.arrays[name]

    def _steps(
        self, action: Array, capacity: int, envs: int, n_step: int, real: np.dtype[Any]
    ) -> dict[str, Any]:
        at_start = self._new("at_start", (envs,), np.bool_)
        at_start[:] = True
        return {
            "action": self._new("action/rows", (capacity, *action.shape), action.dtype),
            "pending_action": self._new("pending/action", (envs, n_step, *action.shape), action.dtype),
            "action_bytes": row_bytes(action),
            "reward": self._new("reward/rows", (capacity,), real),
            "discount": self._new("discount/rows", (capacity,), real),
            "terminated": self._new("terminated/rows", (capacity,), np.bool_),
            "pending_reward": self._new("pending/reward", (envs, n_step), np.float64),
            "pending_priority": self._new("pending/priority", (envs, n_step), np.float64),
            "pending_first": self._new("pending/first", (envs, n_step), np.bool_),
            "pending_count": self._new("pending/count", (envs,), np.int64),
            "pending_start": self._new("pending/start", (envs,), np.int64),
            "at_start": at_start,
        }

    def _plain(self, name: str, field: Array, capacity: int, envs: int, n_step: int) -> dict[str, Any]:
        return {
            "now": self._new(f"{name}/now/rows", (capacity, *field.shape), field.dtype),
            "next": self._new(f"{name}/next/rows", (capacity, *field.shape), field.dtype),
            "pending": self._new(f"{name}/pending", (envs, n_step, *field.shape), field.dtype),
            "newest": self._new(f"{name}/newest", (envs if n_step > 1 else 1, *field.shape), field.dtype),
            "bytes": row_bytes(field),
        }

    def _ring(self, name: str, field: Frames, capacity: int, envs: int, n_step: int) -> dict[str, Any]:
        # Twice what a transition's frames span when all environments step together and a few of them reset.
        lag = 4 * envs * (n_step + field.stack) + 4 * (field.stack + 1)
        ring = capacity + lag + math.ceil(capacity * field.spare)
        if n_step > 1:  # what all unfinished transitions may need, if no two of them share a frame
            ring = max(ring, lag + envs * n_step * (field.stack + 1) + field.stack + 2)
        places = field.stack + 1 if n_step == 1 else 2 * field.stack
        stream_stack = self._new(f"{name}/stream_stack", (envs, field.stack), np.int64)
        stream_stack[:] = -1
        self._ring_counts[f"{name}/ring"] = f"{name}/next_frame"
        return {
            "next_frame": self._new(f"{name}/next_frame", (1,), np.int64),
            "frames": self._new(f"{name}/ring", (ring, *field.shape), field.dtype),
            "places": self._new(f"{name}/places/rows", (capacity, places), np.int32),
            "stream_stack": stream_stack,
            "pending": self._new(f"{name}/pending", (envs, n_step, field.stack), np.int64),
            "frame_bytes": row_bytes(Array(field.shape, field.dtype)),
            "ring": ring,
            "stack": field.stack,
            "lag": lag,
        }


def row_bytes(field: Array) -> int:
    """Bytes of one value of this field."""
    return math.prod(field.shape) * field.dtype.itemsize
