"""The rows of a step as the kernel reads them: of the right shape and dtype, every number as it was given."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pser import _kernel
from pser.errors import PserError
from pser.memory.arrays import Reals, as_flags, as_reals, to_numpy
from pser.memory.index import as_rows
from pser.spec import Array, Field, Fields


def intake_of(store: _kernel.Store, fields: Fields, action: Array) -> _kernel.Intake:
    """The kernel's way in for steps that are arrays of just the right form."""
    return _kernel.Intake(
        store,
        names=list(fields),
        formats=[_buffer_format(field.dtype) for field in fields.values()],
        shapes=[list(field.row_shape) for field in fields.values()],
        action_format=_buffer_format(action.dtype),
        action_shape=list(action.shape),
    )


def _buffer_format(dtype: np.dtype[Any]) -> str:
    """The buffer protocol's name of a dtype; empty if it has none."""
    try:
        return memoryview(np.zeros(1, dtype)).format  # type: ignore[arg-type]  # arrays are buffers
    except (ValueError, BufferError):
        return ""


def rows_of(field: Field, value: Any, rows: int, what: str) -> npt.NDArray[Any]:
    """The value as a contiguous array of shape (rows, *field.row_shape) and the field's dtype."""
    shape = (rows, *field.row_shape)
    array = to_numpy(value, what)
    if array.dtype != field.dtype:
        array = _cast(array, field.dtype, hasattr(value, "dtype"), what)
    if array.shape != shape:
        if rows != 1 or array.shape != field.row_shape:
            raise PserError(f"{what} must have shape {shape}, got {array.shape}: one row per environment")
        array = array.reshape(shape)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _cast(array: npt.NDArray[Any], dtype: np.dtype[Any], typed: bool, what: str) -> npt.NDArray[Any]:
    if np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype)
    # Plain Python numbers have no dtype of their own: whatever keeps their value will do, or a float's nearest.
    if not typed and (
        array.dtype.kind in "iu" or (array.dtype.kind in "fc" and dtype.kind == array.dtype.kind)
    ):
        with np.errstate(all="ignore"):  # what does not fit is told below
            cast = array.astype(dtype)
            if dtype.kind in "fc":
                fits = np.isfinite(cast) == np.isfinite(array)
            else:
                fits = (cast == array) & ((cast < 0) == (array < 0))
        if fits.all():
            return cast
        raise PserError(
            f"{what} must fit {dtype}, got {array[~fits].flat[0]}: declare a wider dtype or correct it"
        )
    raise PserError(f"{what} must be {dtype}, got {array.dtype}: cast it, or declare that dtype")


def reals_of(value: Any, rows: int, what: str) -> Reals:
    """One real number per row, as contiguous float64."""
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.shape == (rows,)
        and value.flags.c_contiguous
    ):
        return value
    reals: Reals = as_rows(as_reals(value, what), rows, what)
    return reals


def flags_of(value: Any, rows: int, what: str) -> npt.NDArray[np.bool_]:
    """One flag per row."""
    flags: npt.NDArray[np.bool_] = as_rows(as_flags(value, what), rows, what)
    return flags
