"""Whole sequences for recurrent agents: windows of consecutive steps, chosen by the priority of one of them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pser import _kernel
from pser.errors import PserError, is_real, is_whole, require
from pser.memory.arrays import as_flags, as_ids, as_reals, to_numpy
from pser.memory.batch import BatchBuffers, ThreadBuffers
from pser.memory.columns import Column
from pser.memory.index import LARGEST_BATCH, PriorityIndex, check_sample
from pser.memory.tensors import TensorSequences, as_tensors
from pser.spec import Array

NO_STEP = -1
"""The id of a row beyond a window's end."""


class SequenceFields(NamedTuple):
    """The arrays of a batch of sequences: B of them, T = burn_in + length rows each."""

    observation: Any
    """(B, T, …), or a dict of such arrays; rows beyond a window's end are 0, here and below."""
    action: npt.NDArray[Any]
    """(B, T, …)."""
    reward: npt.NDArray[Any]
    """(B, T): Σ γ^k·r_k over each transition's m ≤ n steps."""
    next_observation: Any
    """(B, T, …): what was seen m steps after each row."""
    discount: npt.NDArray[Any]
    """(B, T): γ^m, or 0 if terminated."""
    terminated: npt.NDArray[np.bool_]
    """(B, T): did the episode terminate within the m steps?"""
    mask: npt.NDArray[np.bool_]
    """(B, T): is there a step? Rows beyond the window's end are not."""
    learn: npt.NDArray[np.bool_]
    """(B, T): is it a step to learn from? Those of the burn-in are not."""
    from_start: npt.NDArray[np.bool_]
    """(B,): is row 0 the first step of its episode, where a recurrent state is known?"""
    weights: npt.NDArray[np.float32]
    """(B,): importance-sampling weights of the chosen steps, for the loss."""
    ids: npt.NDArray[np.int64]
    """(B, T), for update_priorities; -1 beyond the window's end."""
    chosen: npt.NDArray[np.int64]
    """(B,): the step that was drawn by its priority; the window was laid around it."""
    probabilities: npt.NDArray[np.float64]
    """(B,): P(i) of the chosen steps."""


class SequenceBatch(SequenceFields):
    """Sampled windows, one per row.

    The arrays are reused: they hold until the next `sample_sequences` of the same shape (copy=True gives fresh ones).
    """

    _tensors: TensorSequences | None = None

    def torch(self, device: Any = None) -> TensorSequences:
        """The batch as torch tensors, as `Batch.torch` gives them; `ids` and `chosen` stay NumPy arrays."""
        if self._tensors is None:
            self._tensors = as_tensors(self, TensorSequences)
        return self._tensors if device is None else self._tensors.to(device)

    def to(self, device: Any = None, dtype: Any = None) -> TensorSequences:
        """The batch as torch tensors on a device; `dtype` is for what is a floating-point number."""
        return self.torch().to(device, dtype)


class SequenceBuffers:
    """A batch of sequences and the kernel's handles on its arrays."""

    def __init__(
        self, sequences: int, rows: int, columns: dict[str, Column], action: Array, real: np.dtype[Any]
    ) -> None:
        self._flat = BatchBuffers(sequences * rows, columns, action, real)
        self.rows = self._flat.outputs
        flat, shape = self._flat.batch, (sequences, rows)
        self.batch = SequenceBatch(
            observation=_shaped(flat.observation, shape),
            action=_shaped(flat.action, shape),
            reward=_shaped(flat.reward, shape),
            next_observation=_shaped(flat.next_observation, shape),
            discount=_shaped(flat.discount, shape),
            terminated=_shaped(flat.terminated, shape),
            mask=np.zeros(shape, np.bool_),
            learn=np.zeros(shape, np.bool_),
            from_start=np.zeros(sequences, np.bool_),
            weights=np.zeros(sequences, np.float32),
            ids=_shaped(flat.ids, shape),
            chosen=np.zeros(sequences, np.int64),
            probabilities=np.zeros(sequences),
        )
        b = self.batch
        self.sequences = _kernel.SequenceOutputs(
            b.chosen, b.weights, b.probabilities, b.from_start, b.mask, b.learn
        )

    def clear_padding(self) -> None:
        """Zeros beyond each window's end, and no id."""
        beyond = ~self.batch.mask.reshape(-1)
        flat = self._flat.batch
        for array in (*_arrays(flat.observation), *_arrays(flat.next_observation)):
            array[beyond] = 0
        for array in (flat.action, flat.reward, flat.discount, flat.terminated):
            array[beyond] = 0
        flat.ids[beyond] = NO_STEP


class Sequences:
    """Draws windows from a memory's storage, into buffers that are kept."""

    def __init__(
        self,
        store: _kernel.Store,
        index: PriorityIndex,
        columns: dict[str, Column],
        action: Array,
        real: np.dtype[Any],
    ) -> None:
        self._store = store
        self._index = index
        self._made_of = columns, action, real
        self._buffers: ThreadBuffers[tuple[int, int], SequenceBuffers] = ThreadBuffers()

    def sample(
        self, batch_size: int, length: int, burn_in: int, overlap: int | None, beta: float, copy: bool
    ) -> SequenceBatch:
        """One batch; the arguments are those of `ReplayMemory.sample_sequences`."""
        if not (
            type(batch_size) is type(length) is type(burn_in) is int
            and type(beta) is float
            and overlap is None
            and batch_size >= 1
            and length >= 1
            and burn_in >= 0
            and batch_size * (length + burn_in) <= LARGEST_BATCH
            and 0.0 <= beta <= 1.0
        ):  # all is well in one expression, or else said in full
            check_sample(batch_size, beta)
            _check_window(batch_size, length, burn_in, overlap)
        shape = int(batch_size), int(burn_in + length)
        buffers = None if copy else self._buffers.of_size.get(shape)
        if buffers is None:
            try:
                buffers = SequenceBuffers(shape[0], shape[1], *self._made_of)
            except MemoryError:
                raise PserError(
                    f"a batch of {shape[0]} × {shape[1]} steps must fit into memory: lower one"
                ) from None
            if not copy:
                self._buffers.keep(shape, buffers)
        stride = 0 if overlap is None else length - overlap
        beyond = self._store.sample_sequences(
            self._index._draws, beta, buffers.rows, buffers.sequences, length, burn_in, stride
        )
        if beyond:
            buffers.clear_padding()
        return buffers.batch


def update_windows(index: PriorityIndex, ids: Any, td_errors: Any, mask: Any, max_share: float | None) -> int:
    """Priorities from the TD errors of whole windows; only rows in the mask (else: with an id) count."""
    windows = as_ids(ids)
    errors = to_numpy(td_errors, "td_errors")
    counted = windows != NO_STEP if mask is None else as_flags(mask, "mask")
    if not windows.ndim == 2 or not windows.shape == errors.shape == counted.shape:
        raise PserError(
            "ids, td_errors and mask of sequences must have one shape (sequences, steps), got "
            f"{windows.shape}, {errors.shape} and {counted.shape}: give one TD error for each step"
        )
    if max_share is not None:
        require(
            is_real(max_share) and 0.0 <= max_share <= 1.0,
            "max_share must be from 0 to 1",
            max_share,
            "R2D2 uses 0.9",
        )
        errors = mixed_errors(as_reals(errors, "td_errors"), counted, float(max_share))
    if counted.all():
        return index.update(windows.reshape(-1), errors.reshape(-1))
    return index.update(windows[counted], errors[counted])


def mixed_errors(
    errors: npt.NDArray[np.float64], counted: npt.NDArray[np.bool_], max_share: float
) -> npt.NDArray[np.float64]:
    """η·max |δ| + (1 − η)·mean |δ| of each window, for all its steps (Kapturowski et al. 2019, Sec. 2.3)."""
    sizes = np.where(counted, np.abs(errors), 0.0)
    mean = sizes.sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
    mixed = max_share * sizes.max(axis=1, initial=0.0) + (1.0 - max_share) * mean
    return np.broadcast_to(mixed[:, None], errors.shape)


def _check_window(batch_size: int, length: int, burn_in: int, overlap: int | None) -> None:
    require(is_whole(length) and length >= 1, "length must be at least 1 step", length, "R2D2 uses 80")
    require(is_whole(burn_in) and burn_in >= 0, "burn_in must be at least 0 steps", burn_in, "R2D2 uses 40")
    require(
        overlap is None or (is_whole(overlap) and 0 <= overlap < length),
        f"overlap must be None or from 0 to {length - 1}, less than length",
        overlap,
        "R2D2 uses half of length",
    )
    require(
        batch_size * (length + burn_in) <= LARGEST_BATCH,
        f"a batch must have at most {LARGEST_BATCH} steps",
        batch_size * (length + burn_in),
        "lower batch_size or length",
    )


def _shaped(value: Any, shape: tuple[int, int]) -> Any:
    """The rows as (sequences, rows): a view, for an axis is only split."""
    if isinstance(value, dict):
        return {name: _shaped(part, shape) for name, part in value.items()}
    return value.reshape(*shape, *value.shape[1:])


def _arrays(value: Any) -> list[npt.NDArray[Any]]:
    return list(value.values()) if isinstance(value, dict) else [value]
