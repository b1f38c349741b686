"""How each kind of field is kept: its arrays, what the kernel is told of them, and the arrays of a batch.

A new kind of storage is a spec, a class of this form with its line in `COLUMNS`, and its counterpart in the kernel
(src/kernel/column.hpp).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from pser.errors import is_real, is_whole, require
from pser.spec import Array, Fields, Frames

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sizes:
    """Of a memory, as far as they decide what is allocated."""

    capacity: int
    num_envs: int
    n_step: int


class Stored(NamedTuple):
    """One array of a column."""

    shape: tuple[int, ...]
    dtype: Any
    initial: int = 0
    used: str = "all"
    """How much of it a file holds: "all"; "rows", as many as slots were ever filled; or, named by another array of one
    number, as many as that counts. Rows and what is counted are written once, in the order of their ids, id i at place
    i modulo their number, and stay as they are until their place is taken again."""
    of_streams: bool = False
    """Does it tell where streams are? After a crash they begin anew."""
    newest: tuple[str, str] | None = None
    """Of what is written in another order, two arrays: the newest id in each entry (−1: none), the ids' counter."""
    at_worst: bool = False
    """Is it laid out for the worst case, and hardly ever filled?"""


def zeros(name: str, stored: Stored) -> Values:
    """An array whose pages the system commits when they are first written: an unfilled memory stays light."""
    array = np.zeros(stored.shape, stored.dtype)
    if stored.initial:
        array[:] = stored.initial
    return array


class BatchArrays(NamedTuple):
    """One field of a batch."""

    now: Values
    """The observations."""
    next: Values
    """The next observations."""
    filled: tuple[Values, Values | None]
    """What the kernel writes: the two above, or one array that both are views of."""


class Column(Protocol):
    """What every kind of storage tells of itself."""

    kind: ClassVar[str]
    """Its name in the kernel."""
    folder: ClassVar[str]
    """Where its arrays are kept in a file."""

    def __init__(self, field: Any, sizes: Sizes) -> None: ...

    def arrays(self) -> dict[str, Stored]:
        """Every array by its name in a file."""

    def allocate(self, name: str, stored: Stored) -> Values:
        """One of these arrays, holding its initial value."""

    def names(self) -> dict[str, str]:
        """The kernel's name of each array → its name in a file."""

    def numbers(self) -> dict[str, int]:
        """What else the kernel must know."""

    def batch(self, size: int) -> BatchArrays:
        """Arrays for a batch of this size."""


class ArrayColumn:
    """Kept whole, for every transition and for its next."""

    kind: ClassVar[str] = "array"
    folder: ClassVar[str] = "observation"

    def __init__(self, field: Array, sizes: Sizes) -> None:
        self._field, self._sizes = field, sizes

    def arrays(self) -> dict[str, Stored]:
        """Observations, next ones, where unfinished transitions began, and where each stream is."""
        field, sizes = self._field, self._sizes
        rows = Stored((sizes.capacity, *field.shape), field.dtype, used="rows")
        return {
            "now/rows": rows,
            "next/rows": rows,
            "pending": Stored((sizes.num_envs, sizes.n_step, *field.shape), field.dtype, of_streams=True),
            "newest": Stored(
                (sizes.num_envs if sizes.n_step > 1 else 1, *field.shape), field.dtype, of_streams=True
            ),
        }

    def allocate(self, name: str, stored: Stored) -> Values:
        """In memory."""
        return zeros(name, stored)

    def names(self) -> dict[str, str]:
        """As in the file, without the mark of what is kept by row."""
        return {"now": "now/rows", "next": "next/rows", "pending": "pending", "newest": "newest"}

    def numbers(self) -> dict[str, int]:
        """Bytes of one value."""
        return {"bytes": row_bytes(self._field)}

    def batch(self, size: int) -> BatchArrays:
        """Two arrays."""
        shape = (size, *self._field.shape)
        now, following = np.zeros(shape, self._field.dtype), np.zeros(shape, self._field.dtype)
        return BatchArrays(now, following, (now, following))


class FrameColumn:
    """Each frame kept once, in a ring; a transition knows the places of its frames."""

    kind: ClassVar[str] = "frames"
    folder: ClassVar[str] = "frames"

    def __init__(self, field: Frames, sizes: Sizes) -> None:
        self._field, self._sizes = field, sizes
        envs, n_step, stack = sizes.num_envs, sizes.n_step, field.stack
        # Twice what a transition's frames span when all environments step together and a few of them reset.
        self._lag = 4 * envs * (n_step + stack) + 4 * (stack + 1) + 2 * envs * field.apart
        self._ring = sizes.capacity + self._lag + math.ceil(sizes.capacity * field.spare)
        if n_step > 1:  # what all unfinished transitions may need, if no two of them share a frame
            self._ring = max(self._ring, self._lag + envs * n_step * (stack + 1) + stack + 2)

    def arrays(self) -> dict[str, Stored]:
        """The ring, the places in it, and the ids of the frames that streams and unfinished transitions show."""
        field, sizes = self._field, self._sizes
        places = field.stack + 1 if sizes.n_step == 1 else 2 * field.stack
        return {
            "stream_stack": Stored((sizes.num_envs, field.stack), np.int64, initial=-1, of_streams=True),
            "next_frame": Stored((1,), np.int64),
            "ring": Stored((self._ring, *field.shape), field.dtype, used="next_frame"),
            "places/rows": Stored((sizes.capacity, places), np.int32, used="rows"),
            "pending": Stored((sizes.num_envs, sizes.n_step, field.stack), np.int64, of_streams=True),
        }

    def allocate(self, name: str, stored: Stored) -> Values:
        """In memory."""
        return zeros(name, stored)

    def names(self) -> dict[str, str]:
        """As in the file, but for the ring and the places."""
        plain = {name: name for name in ("stream_stack", "next_frame", "pending")}
        return {"frames": "ring", "places": "places/rows", **plain}

    def numbers(self) -> dict[str, int]:
        """Sizes of the ring."""
        frame = row_bytes(Array(self._field.shape, self._field.dtype))
        return {"frame_bytes": frame, "ring": self._ring, "stack": self._field.stack, "lag": self._lag}

    def batch(self, size: int) -> BatchArrays:
        """With one step, observation and next one are views of one array of stack + 1 frames."""
        field = self._field
        if self._sizes.n_step == 1:
            both = np.zeros((size, field.stack + 1, *field.shape), field.dtype)
            return BatchArrays(both[:, :-1], both[:, 1:], (both, None))
        shape = (size, *field.row_shape)
        now, following = np.zeros(shape, field.dtype), np.zeros(shape, field.dtype)
        return BatchArrays(now, following, (now, following))


LEAST_RECORDS = 16
"""Frames that a chunk of compressed ones holds, if none of them gets smaller."""

RECORDS = "records"
"""The chunks' name in files. Those of before, in which masks lay between bytes, have another name and are refused."""

KEY_AGE = 128
"""A compressed frame refers to one of its environment's last so many, when all environments step together."""


class CompressedColumn(FrameColumn):
    """As FrameColumn; in place of the frames, records of what changed, in chunks of bytes."""

    kind: ClassVar[str] = "compressed"
    folder: ClassVar[str] = "compressed"

    def __init__(self, field: Frames, sizes: Sizes) -> None:
        super().__init__(field, sizes)
        envs, n_step = sizes.num_envs, sizes.n_step
        self._frame_bytes = row_bytes(Array(field.shape, field.dtype))
        # A record is a number and at most the frame.
        self._chunk_bytes = LEAST_RECORDS * (8 + self._frame_bytes)
        self._key_age = KEY_AGE * envs
        # Unfinished transitions may have to be moved at once, and then none of their frames may be shared.
        moved = envs * field.stack * (n_step + 1) if n_step > 1 else 0
        self._reserve = _chunks(moved) + 2
        least = _chunks(2 * moved + self._lag + self._key_age) + self._reserve + 3
        most = _chunks(self._ring + self._key_age) + self._reserve + 3
        self._limit = most
        self._is_unbounded = field.capacity_bytes is None
        if field.capacity_bytes is not None:
            require(
                field.capacity_bytes >= least * self._chunk_bytes,
                f"capacity_bytes must be at least {least * self._chunk_bytes} for these frames and environments",
                field.capacity_bytes,
                "raise it",
            )
            self._limit = min(most, field.capacity_bytes // self._chunk_bytes)

    def arrays(self) -> dict[str, Stored]:
        """As of FrameColumn, but for the ring: the chunks, what is in use of them, and the streams' key frames."""
        arrays = super().arrays()
        del arrays["ring"]
        return arrays | {
            "used_chunks": Stored((1,), np.int64),
            RECORDS: Stored(
                (self._limit + 1, self._chunk_bytes),
                np.uint8,
                used="used_chunks",
                newest=("last_frame", "next_frame"),
                at_worst=self._is_unbounded,
            ),
            "last_frame": Stored((self._limit,), np.int64, initial=-1),
            "filled": Stored((1,), np.int64),
            "at": Stored((self._ring,), np.int64, used="next_frame"),
            "keys": Stored((self._sizes.num_envs, 5), np.int64, of_streams=True),
        }

    def allocate(self, name: str, stored: Stored) -> Values:
        """In memory; no stream has a key frame yet."""
        array = zeros(name, stored)
        if name == "keys":
            array[:, 0] = -1
        return array

    def names(self) -> dict[str, str]:
        """As in the file, but for some."""
        plain = ("stream_stack", "next_frame", "pending", "last_frame", "filled", "at", "keys")
        renamed = {"places": "places/rows", "used": "used_chunks", "chunks": RECORDS}
        return renamed | {name: name for name in plain}

    def numbers(self) -> dict[str, int]:
        """Sizes of the ring and of the chunks."""
        return {
            **super().numbers(),
            "limit": self._limit,
            "chunk_bytes": self._chunk_bytes,
            "key_age": self._key_age,
            "reserve": self._reserve,
        }


def _chunks(frames: int) -> int:
    return math.ceil(frames / LEAST_RECORDS)


def frame_column(field: Frames, sizes: Sizes) -> Column:
    """As the field tells."""
    return CompressedColumn(field, sizes) if field.compress else FrameColumn(field, sizes)


COLUMNS: dict[type, Callable[[Any, Sizes], Column]] = {Array: ArrayColumn, Frames: frame_column}
"""Spec → how it is kept."""


def columns_of(fields: Fields, sizes: Sizes) -> dict[str, Column]:
    """The column of each field, by its name, in the one order that memory, batches and files share."""
    return {name: COLUMNS[type(field)](field, sizes) for name, field in fields.items()}


def row_bytes(field: Array) -> int:
    """Bytes of one value of this field."""
    return math.prod(field.shape) * field.dtype.itemsize


def check_steps(n_step: int, gamma: float) -> None:
    """Returns of so many steps, discounted so, make sense."""
    require(
        is_whole(n_step) and 1 <= n_step <= 1024,
        "n_step must be from 1 to 1024",
        n_step,
        "DQN uses 1, Rainbow 3",
    )
    require(is_real(gamma) and 0.0 <= gamma <= 1.0, "gamma must be from 0 to 1", gamma, "0.99 is usual")
