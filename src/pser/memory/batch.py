"""What `sample` returns, and the buffers it is written to."""

import threading
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pser import _kernel
from pser.memory.columns import Column
from pser.memory.tensors import TensorBatch, as_tensors
from pser.spec import WHOLE, Array


class BatchFields(NamedTuple):
    """The arrays of a batch, one row per transition."""

    observation: Any
    """Array, or dict of arrays, as it was added."""
    action: npt.NDArray[Any]
    """As it was added."""
    reward: npt.NDArray[Any]
    """Σ γ^k·r_k over the transition's m ≤ n steps."""
    next_observation: Any
    """What was seen m steps later; at an episode's end the true final observation."""
    discount: npt.NDArray[Any]
    """γ^m, or 0 if terminated: the target is reward + discount·max Q(next_observation)."""
    terminated: npt.NDArray[np.bool_]
    """Did the episode terminate within the m steps? (Truncation does not count: it bootstraps.)"""
    weights: npt.NDArray[np.float32]
    """Importance-sampling weights, for the loss."""
    ids: npt.NDArray[np.int64]
    """For update_priorities."""
    probabilities: npt.NDArray[np.float64]
    """P(i) when sampled."""


class Batch(BatchFields):
    """Sampled transitions, one per row.

    The arrays are reused: they hold until the next `sample` of the same size (pass copy=True to keep them).
    """

    _tensors: TensorBatch | None = None

    def torch(self, device: Any = None) -> TensorBatch:
        """The batch as torch tensors: on the CPU the same memory, so they hold as long as the arrays do.

        To a GPU it is copied through pinned memory, without waiting. `ids` stay a NumPy array.
        """
        if self._tensors is None:  # made once for arrays that are filled again and again
            self._tensors = as_tensors(self, TensorBatch)
        return self._tensors if device is None else self._tensors.to(device)

    def to(self, device: Any = None, dtype: Any = None) -> TensorBatch:
        """The batch as torch tensors on a device; `dtype` is for what is a floating-point number."""
        return self.torch().to(device, dtype)


class BatchBuffers:
    """A batch and the kernel's handle on its arrays, to be filled again and again."""

    def __init__(self, size: int, columns: dict[str, Column], action: Array, real: np.dtype[Any]) -> None:
        parts = {name: column.batch(size) for name, column in columns.items()}
        self.batch = Batch(
            observation=_whole({name: part.now for name, part in parts.items()}),
            action=np.zeros((size, *action.shape), action.dtype),
            reward=np.zeros(size, real),
            next_observation=_whole({name: part.next for name, part in parts.items()}),
            discount=np.zeros(size, real),
            terminated=np.zeros(size, np.bool_),
            weights=np.zeros(size, np.float32),
            ids=np.zeros(size, np.int64),
            probabilities=np.zeros(size, np.float64),
        )
        b = self.batch
        self.outputs = _kernel.Outputs(
            ids=b.ids,
            weights=b.weights,
            probabilities=b.probabilities,
            action=b.action,
            reward=b.reward,
            discount=b.discount,
            terminated=b.terminated,
            now=[part.filled[0] for part in parts.values()],
            next=[part.filled[1] for part in parts.values()],
        )


KEPT_SIZES = 8
"""Batch sizes whose buffers a thread keeps for reuse."""


Size = TypeVar("Size")
Buffers = TypeVar("Buffers")


class ThreadBuffers(threading.local, Generic[Size, Buffers]):
    """The batches that a thread fills again and again: each thread sees its own, so none tears another's."""

    def __init__(self) -> None:
        self.of_size: dict[Size, Buffers] = {}

    def keep(self, size: Size, buffers: Buffers) -> None:
        """Use these for every batch of this size, in place of those kept longest."""
        if len(self.of_size) == KEPT_SIZES:
            self.of_size.pop(next(iter(self.of_size)))
        self.of_size[size] = buffers


def first_row(batch: Batch) -> Batch:
    """The batch's first transition, without the row axis."""
    rows: list[Any] = []
    for value in batch:
        rows.append({name: part[0] for name, part in value.items()} if isinstance(value, dict) else value[0])
    return Batch(*rows)


def _whole(parts: dict[str, Any]) -> Any:
    return parts.get(WHOLE, parts)
