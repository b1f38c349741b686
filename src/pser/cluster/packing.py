"""What travels between a shard and the learner: batches there, what was learned back, each in few arrays a call.

Many small arrays cost both ends more than the bytes in them.
"""

import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pser.cluster.merging import merged_batch
from pser.cluster.shards import merged_weights
from pser.memory.arrays import Ints, Reals
from pser.memory.batch import Batch


class Bits(NamedTuple):
    """An array of zeros and ones."""

    rows: npt.NDArray[np.uint8]
    """[rows, bytes]"""
    like: npt.NDArray[Any]
    """[0, ...] The shape and type of a row."""

    def opened(self) -> npt.NDArray[Any]:
        """The array as it was."""
        shape = self.like.shape[1:]
        width = math.prod(shape)
        # Row by row takes several times as long; it is for rows that are no whole bytes.
        bits = np.unpackbits(self.rows, axis=1, count=width) if width % 8 else np.unpackbits(self.rows)
        return bits.view(self.like.dtype).reshape(-1, *shape)


Packed = tuple[npt.NDArray[Any] | Bits | None, ...]
"""The fields of a batch, each with the rows of all batches of a call; first what the observations are views of."""


Opened = tuple[npt.NDArray[Any] | None, ...]
"""The same as they are used."""


class Updates(NamedTuple):
    """What was learned from batches, one after another."""

    ids: Ints
    signals: npt.NDArray[np.floating[Any]]
    rows: list[int]
    """Of each batch: updates of two batches are not those of one."""

    def batches(self) -> Iterator[tuple[Ints, npt.NDArray[np.floating[Any]]]]:
        """Ids and signals of each batch."""
        first = 0
        for rows in self.rows:
            yield self.ids[first : first + rows], self.signals[first : first + rows]
            first += rows


def updates_of(learned: Sequence[tuple[Ints, npt.NDArray[np.floating[Any]]]]) -> Updates | None:
    """All that was learned, as it is sent; None if nothing was."""
    if not learned:
        return None
    ids, signals = zip(*learned, strict=True)
    return Updates(np.concatenate(ids), np.concatenate(signals), list(map(len, ids)))


class Request(NamedTuple):
    """Batches that are asked for; what was learned rides along."""

    updates: Updates | None
    max_priority: float
    batch_size: int
    beta: float
    number: int = 0
    """How many batches."""
    positions: Sequence[Reals] | None = None
    """Where they are drawn, if that is decided: of each the positions in the shard's mass."""

    def sent(self) -> bytes:
        """As it travels: for Ray bytes are less work than anything else."""
        return pickle.dumps(tuple(self), pickle.HIGHEST_PROTOCOL)


def received(request: bytes) -> Request:
    """The request that was sent."""
    return Request(*pickle.loads(request))


def pack(batches: Iterable[Batch], rows: int) -> Packed:
    """The rows of some batches, `rows` together; a batch may be overwritten when the next is asked for.

    Where an observation and the next one overlap in memory, what they are views of travels in their place; zeros and
    ones travel as bits. A batch that is all there is travels as it lies: nobody overwrites it before it is sent.
    """
    whole: Opened = ()
    first = 0
    for batch in batches:
        arrays = _arrays(batch)
        if len(batch.ids) == rows:
            return tuple(map(_shortened, arrays))
        whole = whole or _room(arrays, rows)
        last = first + len(batch.ids)
        for target, source in zip(whole, arrays, strict=True):
            if target is not None:
                target[first:last] = source
        first = last
    return tuple(map(_shortened, whole))


def opened(packed: Packed) -> Opened:
    """What came, in arrays that may be written, as torch wants them: what comes through Ray is read-only."""
    return tuple(map(_opened, packed))


def unpack(arrays: Opened, first: int, last: int) -> Batch:
    """The batch of these rows."""
    rows: list[Any] = [None if array is None else array[first:last] for array in arrays]
    both = rows[0]
    batch = Batch(*rows[1:])
    if both is None:
        return batch
    return batch._replace(observation=both[:, :-1], next_observation=both[:, 1:])


def drawn_batch(
    parts: Sequence[Batch | None], rows: Sequence[Ints], shares: Reals, least: float | None, beta: float
) -> Batch:
    """One batch of what each shard gave for its rows, with weights over all of it.

    P(i) is the share a shard was drawn with times P(i) within it; `least` is the smallest that any transition has, or
    None where weights are measured by the smallest of the batch.
    """
    own = []
    for number, part in enumerate(parts):
        if part is not None:
            ids, probabilities = part.ids * len(rows) + number, shares[number] * part.probabilities
            own.append((rows[number], part._replace(ids=ids, probabilities=probabilities)))
    batch = merged_batch(own, sum(map(len, rows)))
    smallest = float(batch.probabilities.min()) if least is None else least
    weights = merged_weights(batch.probabilities, smallest, beta)
    return batch._replace(weights=weights.astype(np.float32))


def _arrays(batch: Batch) -> Opened:
    now, following = batch.observation, batch.next_observation
    if now.base is not None and now.base is following.base:
        return (now.base, *batch._replace(observation=None, next_observation=None))
    return (None, *batch)


def _room(arrays: Opened, rows: int) -> Opened:
    """Arrays like these, with so many rows."""
    return tuple(
        None if array is None else np.empty((rows, *array.shape[1:]), array.dtype) for array in arrays
    )


def _shortened(array: npt.NDArray[Any] | None) -> npt.NDArray[Any] | Bits | None:
    """Bytes that are all zeros and ones as bits: so MinAtar's batches fit into a reply, which costs Ray the least."""
    if array is None or array.ndim < 2 or array.dtype != np.uint8:
        return array
    if array[:1].max(initial=0) > 1 or array.max(initial=0) > 1:  # pictures show it in their first row
        return array
    return Bits(np.packbits(array.reshape(len(array), -1), axis=1), array[:0].copy())


def _opened(array: npt.NDArray[Any] | Bits | None) -> npt.NDArray[Any] | None:
    if isinstance(array, Bits):
        return array.opened()
    return array if array is None or array.flags.writeable else array.copy()
