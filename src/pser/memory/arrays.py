"""Turning what callers pass (NumPy, torch, JAX, lists) into the contiguous arrays the kernel reads."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pser.errors import PserError

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

INT64 = np.dtype(np.int64)
"""Made once: the class would be looked up and turned into this at each call."""


def to_numpy(value: Any, what: str) -> npt.NDArray[Any]:
    """Any array as NumPy: by the array protocol or DLPack; neither torch nor JAX is imported."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "detach"):  # a torch tensor may track gradients or live on another device
            value = value.detach()
            value = value.cpu() if hasattr(value, "cpu") else value
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return _widened(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise PserError(
            f"{what} must be an array, got {type(value).__name__} ({error}): convert it first"
        ) from None


def _widened(value: Any) -> npt.NDArray[Any]:
    """As NumPy; floats that it does not know (torch's bfloat16) as float32, which holds every one of them."""
    try:
        return np.asarray(value)
    except TypeError:
        if not (hasattr(value, "is_floating_point") and value.is_floating_point()):
            raise
        return np.asarray(value.float())


def as_ids(value: Any, what: str = "ids", remedy: str = "pass the ids that sample returned") -> Ints:
    """Transition ids, or what else is counted, as contiguous int64."""
    ids = to_numpy(value, what)
    if ids.size == 0:
        return np.zeros(0, np.int64)
    if ids.dtype.kind not in "iu" or (
        ids.dtype.kind == "u" and ids.dtype.itemsize == 8 and ids.max() > 2**63 - 1
    ):
        raise PserError(f"{what} must be whole numbers, got dtype {ids.dtype}: {remedy}")
    return np.ascontiguousarray(ids, dtype=np.int64)


def as_streams(value: Any) -> Ints:
    """The streams that rows belong to, in one row."""
    return as_ids(value, "stream", "give each row's environment, numbered from 0").reshape(-1)


def as_reals(value: Any, what: str) -> Reals:
    """Real numbers as contiguous float64."""
    reals = to_numpy(value, what)
    if reals.size == 0:
        return np.zeros(0, np.float64)
    if reals.dtype.kind not in "fiu":
        raise PserError(f"{what} must be real numbers, got dtype {reals.dtype}: convert them to floats")
    with np.errstate(
        over="ignore"
    ):  # a long double beyond float64 becomes inf, which is refused where it is used
        return np.ascontiguousarray(reals, dtype=np.float64)


def as_flags(value: Any, what: str) -> Bools:
    """Flags as contiguous bool."""
    flags = to_numpy(value, what)
    if flags.size == 0:
        return np.zeros(0, np.bool_)
    if flags.dtype.kind != "b":
        raise PserError(f"{what} must be bool, got dtype {flags.dtype}: convert with .astype(bool)")
    return np.ascontiguousarray(flags)
