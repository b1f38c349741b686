"""Batches on their way from a shard to the learner: overlapping stacks once, and arrays that may be written."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pser.cluster.merging import merged_batch
from pser.cluster.shards import merged_weights
from pser.memory.arrays import Ints, Reals
from pser.memory.batch import Batch

Packed = tuple[Any, ...]


def pack(batch: Batch) -> Packed:
    """The arrays of a batch; where observation and next one overlap in memory, what they are views of."""
    now, following = batch.observation, batch.next_observation
    if isinstance(now, np.ndarray) and now.base is not None and now.base is following.base:
        return (now.base, *batch._replace(observation=None, next_observation=None))
    return (None, *batch)


def unpack(packed: Packed) -> Batch:
    """The batch that was packed. What came through Ray is read-only, which torch does not like: it is copied."""
    both, *values = packed
    batch = Batch(*map(_writeable, values))
    if both is None:
        return batch
    both = _writeable(both)
    return batch._replace(observation=both[:, :-1], next_observation=both[:, 1:])


def drawn_batch(
    packed: Sequence[Packed], rows: Sequence[Ints], shares: Reals, least: float | None, beta: float
) -> Batch:
    """One batch of what each shard gave for its rows, with weights over all of it.

    P(i) is the share a shard was drawn with times P(i) within it; `least` is the smallest that any transition has, or
    None where weights are measured by the smallest of the batch.
    """
    parts = []
    for number, own in enumerate(rows):
        if len(own):
            part = unpack(packed[number])
            ids, probabilities = part.ids * len(rows) + number, shares[number] * part.probabilities
            parts.append((own, part._replace(ids=ids, probabilities=probabilities)))
    batch = merged_batch(parts, sum(map(len, rows)))
    smallest = float(batch.probabilities.min()) if least is None else least
    weights = merged_weights(batch.probabilities, smallest, beta)
    return batch._replace(weights=weights.astype(np.float32))


def _writeable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _writeable(part) for name, part in value.items()}
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value
