"""State files of the first version (header, arrays, SHA-256 of both): read, no longer written."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pser.errors import DamagedFileError

MAGIC = b"PSERBOX1"
DIGEST_BYTES = 32
ArrayOf = Callable[[Any, Any], tuple[np.dtype[Any], tuple[int, ...]]]


def is_box(path: Path) -> bool:
    """Does the file begin like one of these?"""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_box(path: Path, array_of: ArrayOf) -> dict[str, Any]:
    """The nested dictionaries it holds; a damaged file is refused."""
    data = path.read_bytes()
    start = len(MAGIC) + 8
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    body = memoryview(data)[:-DIGEST_BYTES]
    try:
        if hashlib.sha256(body).digest() != data[-DIGEST_BYTES:]:
            raise ValueError("it does not match its checksum")
        header = json.loads(data[start : start + length])
        content: dict[str, Any] = _Arrays(body[start + length :], array_of).put_into(header)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise DamagedFileError(f"{path} is damaged ({error}): use an older checkpoint") from error
    return content


class _Arrays:
    """The arrays' bytes, given out once."""

    def __init__(self, data: memoryview, array_of: ArrayOf) -> None:
        self._data, self._array_of = data, array_of
        self._left = len(data)

    def put_into(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.put_into(item) for item in value]
        if isinstance(value, dict):
            if set(value) == {"__array__"}:
                return self._array(*value["__array__"])
            return {key: self.put_into(item) for key, item in value.items()}
        return value

    def _array(self, dtype: Any, shape: Any, offset: Any) -> np.ndarray[Any, Any]:
        kind, sizes = self._array_of(dtype, shape)
        count = math.prod(sizes)
        self._left -= count * kind.itemsize
        if self._left < 0:
            raise ValueError("it holds less than its header says")
        return np.frombuffer(self._data, kind, count, offset).reshape(sizes).copy()
