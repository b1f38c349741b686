"""One file for nested dictionaries of JSON values and NumPy arrays: checksummed, without pickle.

Layout: 8 bytes of magic, the header's length (uint64, little-endian), the header (JSON, each array in it
replaced by its dtype, shape and offset), the arrays' bytes, and the SHA-256 of all that precedes it.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from pser.errors import DamagedFileError
from pser.files.atomic import replacing

MAGIC = b"PSERBOX1"
ARRAY_KEY = "__array__"
DIGEST_BYTES = 32


def write_container(path: Path, content: dict[str, Any]) -> None:
    """Write `content` to `path`, atomically."""
    arrays: list[np.ndarray[Any, Any]] = []
    header = json.dumps(_without_arrays(content, arrays)).encode()
    parts: list[Any] = [MAGIC, len(header).to_bytes(8, "little"), header]
    parts += [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
    digest = hashlib.sha256()
    with replacing(path) as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def read_container(path: Path) -> dict[str, Any]:
    """Read what `write_container` wrote; a damaged file is refused."""
    data = path.read_bytes()
    start = len(MAGIC) + 8
    if len(data) < start + DIGEST_BYTES or data[: len(MAGIC)] != MAGIC:
        raise DamagedFileError(
            f"{path} is not a state file of pser, or is cut short: use an older checkpoint"
        )
    body = memoryview(data)[:-DIGEST_BYTES]
    if hashlib.sha256(body).digest() != data[-DIGEST_BYTES:]:
        raise DamagedFileError(f"{path} does not match its checksum: use an older checkpoint")
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    content: dict[str, Any] = _with_arrays(json.loads(data[start : start + length]), body[start + length :])
    return content


def _without_arrays(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """`value` with each array moved to `arrays` and described in its place."""
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    if isinstance(value, np.ndarray):
        offset = sum(array.nbytes for array in arrays)
        arrays.append(np.ascontiguousarray(value).reshape(value.shape))
        return {ARRAY_KEY: [value.dtype.str, list(value.shape), offset]}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _with_arrays(value: Any, data: memoryview) -> Any:
    """The inverse of `_without_arrays`; lists stay lists."""
    if isinstance(value, list):
        return [_with_arrays(item, data) for item in value]
    if isinstance(value, dict):
        if set(value) == {ARRAY_KEY}:
            dtype, shape, offset = value[ARRAY_KEY]
            count = int(np.prod(shape, dtype=np.int64))
            return np.frombuffer(data, np.dtype(dtype), count, offset).reshape(shape).copy()
        return {key: _with_arrays(item, data) for key, item in value.items()}
    return value
