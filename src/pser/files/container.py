"""Nested dictionaries of JSON values and NumPy arrays in one file: checkpoints, snapshots, records."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from pser.errors import PserError
from pser.files import earlier
from pser.files.archive import Arrays, Place, Reader, as_path, as_stream, kind_of, reading, write

KIND = "State"
ARRAY_KEY = "__array__"


def write_container(place: Place, content: dict[str, Any]) -> None:
    """Write `content`: to a path atomically, to a stream as it comes."""
    arrays: Arrays = {}
    nested = _without_arrays(content, arrays)
    write(place, KIND, {"content": nested}, arrays)


def read_container(place: Place) -> dict[str, Any]:
    """Read what `write_container` wrote; a damaged file is refused. Lists stay lists, tuples have become lists."""
    if as_stream(place, "read") is None and earlier.is_box(as_path(place)):
        return earlier.read_box(as_path(place), array_of)
    with reading(place, KIND) as file:
        arrays = _Unread(file)
        content: dict[str, Any] = _with_arrays(file.content["content"], arrays)
        arrays.read()
    return content


def is_container(path: Path) -> bool:
    """Does this file hold what `write_container` wrote?"""
    return earlier.is_box(path) or kind_of(path) == KIND


class _Unread:
    """The arrays of a file, each allocated where the content names it and filled in the end."""

    def __init__(self, file: Reader) -> None:
        self._file = file
        self._sizes = dict(file.arrays)
        self._made: Arrays = {}

    def __call__(self, dtype: Any, shape: Any, name: Any) -> np.ndarray[Any, Any]:
        kind, sizes = array_of(dtype, shape)
        if name in self._made or self._sizes[name] != kind.itemsize * math.prod(sizes):
            raise ValueError(f"array {name!r} is not what the header says")
        self._made[name] = np.empty(sizes, kind)
        return self._made[name]

    def read(self) -> None:
        self._file.fill({name: self._made[name] for name, _ in self._file.arrays})


def array_of(dtype: Any, shape: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and shape that a file names, if they are of plain numbers and sizes."""
    if not isinstance(dtype, str) or not re.fullmatch(r"[<>|=]?[?biufc][0-9]{0,2}", dtype):
        raise ValueError(f"{dtype!r} is not a dtype of numbers")
    if not isinstance(shape, list) or len(shape) > 32 or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("a shape is not a shape")
    return np.dtype(dtype), tuple(shape)


def _without_arrays(value: Any, arrays: Arrays) -> Any:
    """`value` with each array moved to `arrays` and described in its place."""
    if isinstance(value, dict):
        if ARRAY_KEY in value:
            raise PserError(f"a key must not be {ARRAY_KEY!r}, which marks arrays: choose another")
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "?biufc":
            raise TypeError(f"an array must be of plain numbers, got {value.dtype}")
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
        return {ARRAY_KEY: [value.dtype.str, list(value.shape), name]}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _with_arrays(value: Any, make: Any) -> Any:
    """The inverse of `_without_arrays`; make(dtype, shape, name) gives the array."""
    if isinstance(value, list):
        return [_with_arrays(item, make) for item in value]
    if isinstance(value, dict):
        if set(value) == {ARRAY_KEY}:
            dtype, shape, name = value[ARRAY_KEY]
            return make(dtype, shape, name)
        return {key: _with_arrays(item, make) for key, item in value.items()}
    return value
