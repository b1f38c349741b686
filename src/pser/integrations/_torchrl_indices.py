"""TorchRL's ways to name slots of a storage, as slots of the flattened one."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torchrl.data.replay_buffers.storages import Storage

from pser.errors import PserError

Ints = NDArray[np.int64]

NOT_STORED = -1
"""The index that TorchRL's writers give to data they did not store."""


class TorchRLError(PserError, RuntimeError):
    """A rule of TorchRL's samplers was broken; they raise RuntimeError."""


def rows_shape(storage: Storage) -> tuple[int, ...]:
    """The environments of one time step: () in a storage with one dimension."""
    return tuple(storage.shape[1:]) if storage.ndim > 1 else ()


def flat_slots(index: Any, storage: Storage) -> Ints:
    """Slots of the flattened storage, from TorchRL's indices (one column per dimension)."""
    shape = rows_shape(storage)
    if isinstance(index, slice):
        index = range(*index.indices(storage.max_size))
    array = torch.as_tensor(index).cpu().numpy().astype(np.int64)
    if not shape or array.ndim == 1:  # flat already
        return array.reshape(-1)
    missing = (array == NOT_STORED).all(axis=1)
    steps, *envs = np.where(missing[:, None], 0, array).T
    wrong = steps < 0
    for env, count in zip(envs, shape, strict=True):
        wrong |= (env < 0) | (env >= count)
    if wrong.any():
        raise TorchRLError(
            f"an index must lie within the environments {shape}, got {array[wrong][0].tolist()}: "
            "pass the indices that sample returned"
        )
    slots = steps * math.prod(shape) + np.ravel_multi_index(tuple(envs), shape)
    return np.where(missing, NOT_STORED, slots).astype(np.int64)


def same_slots(one: Any, other: Any) -> bool:
    """Do two indices name the same slots?"""
    if isinstance(one, slice) or isinstance(other, slice):
        return bool(one == other)
    return torch.equal(torch.as_tensor(one).cpu(), torch.as_tensor(other).cpu())


def all_written(storage: Storage) -> torch.Tensor:
    """Flat slots of all that a storage holds, in the order of a storage that has not wrapped."""
    return torch.arange(len(storage))
