"""A batch as torch tensors. torch is imported when tensors are asked for, and not before."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pser.errors import PserError

ARRAYS = ("ids", "chosen")
"""Fields that stay NumPy arrays."""


class TensorBatch(NamedTuple):
    """A batch whose arrays are tensors, with the fields of `Batch`."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    discount: Any
    terminated: Any
    weights: Any
    ids: npt.NDArray[np.int64]
    """These stay an array: they go back to the memory, not to the network."""
    probabilities: Any

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """On another device, or (what is a floating-point number) of another dtype; pinned and not waited for."""
        return type(self)(*(_each(_moved, value, device, dtype) for value in self))


class TensorSequences(NamedTuple):
    """A batch of sequences whose arrays are tensors, with the fields of `SequenceBatch`."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    discount: Any
    terminated: Any
    mask: Any
    learn: Any
    from_start: Any
    weights: Any
    ids: npt.NDArray[np.int64]
    """An array, as in `TensorBatch`."""
    chosen: npt.NDArray[np.int64]
    """An array, too."""
    probabilities: Any

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """As `TensorBatch.to`."""
        return type(self)(*(_each(_moved, value, device, dtype) for value in self))


Tensors = TypeVar("Tensors", TensorBatch, TensorSequences)


def as_tensors(fields: Iterable[Any], kind: type[Tensors]) -> Tensors:
    """Tensors over the same numbers: nothing is copied."""
    named = zip(kind._fields, fields, strict=True)
    return kind(*(value if name in ARRAYS else _each(_shared, value) for name, value in named))


def _each(convert: Any, value: Any, *options: Any) -> Any:
    """Of a dict of arrays each one, else the array itself."""
    if isinstance(value, dict):
        return {name: convert(part, *options) for name, part in value.items()}
    return convert(value, *options)


def _shared(array: npt.NDArray[Any]) -> Any:
    import torch

    try:
        return torch.from_numpy(array)
    except TypeError:
        raise PserError(
            f"torch must know the dtype of a field, got {array.dtype}: store another one"
        ) from None


def _moved(value: Any, device: Any, dtype: Any) -> Any:
    import torch

    if isinstance(value, np.ndarray):
        return value
    if dtype is not None and value.is_floating_point():
        value = value.to(dtype)
    if device is None:
        return value
    target = torch.device(device)
    # From pinned memory a copy to the GPU runs beside the program; torch frees the pinned block after it.
    if target.type == "cuda" and value.device.type == "cpu":
        return value.pin_memory().to(target, non_blocking=True)
    return value.to(target)
