"""The file format of saved memories: one file, checksummed, written atomically, streamed, and without pickle.

Layout: magic, length of the header, header (JSON), its CRC-32; then each array's bytes followed by their CRC-32;
then an end mark. Numbers are little-endian. Arrays go from and to memory in slices, so saving needs no second copy.
"""

import contextlib
import json
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pser.errors import DamagedFileError, PserError
from pser.memory.prioritization import PER, PSER, AdaptiveWindow, Prioritization, Uniform
from pser.spec import Array, Field, Frames

MAGIC = b"PSERSAV1"
END = b"PSEREND1"
SLICE_BYTES = 16 << 20

Arrays = dict[str, np.ndarray[Any, Any]]


def write(
    path: str | PathLike[str], kind: str, settings: dict[str, Any], state: dict[str, Any], arrays: Arrays
) -> None:
    """Write a whole snapshot beside `path`, then put it in its place: a crash leaves the old file or the new one."""
    target = Path(path)
    header: dict[str, Any] = {"kind": kind, "byteorder": sys.byteorder, "settings": settings, "state": state}
    header["arrays"] = [[name, array.nbytes] for name, array in arrays.items()]
    encoded = json.dumps(header, allow_nan=False).encode()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            start = MAGIC + struct.pack("<Q", len(encoded)) + encoded
            file.write(start + struct.pack("<I", zlib.crc32(start)))
            for array in arrays.values():
                checksum = 0
                for part in _slices(array):
                    file.write(part)
                    checksum = zlib.crc32(part, checksum)
                file.write(struct.pack("<I", checksum))
            file.write(END)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


class Reader:
    """An open snapshot: its header was verified, its arrays are verified as they are read."""

    def __init__(self, file: BinaryIO, path: Path, kind: str) -> None:
        self._file = file
        self._path = path
        size = os.fstat(file.fileno()).st_size
        start = self._exactly(len(MAGIC) + 8)
        if start[: len(MAGIC)] != MAGIC:
            raise self._damaged("it does not begin like a saved memory")
        (length,) = struct.unpack("<Q", start[len(MAGIC) :])
        if length > size:
            raise self._damaged("it is shorter than its header says")
        encoded = self._exactly(length)
        self._check(zlib.crc32(start + encoded), "its header")
        header = json.loads(encoded)
        sizes = [size for _, size in header["arrays"]]
        expected = len(start) + length + 4 + sum(sizes) + 4 * len(sizes) + len(END)
        if size != expected:
            raise self._damaged(f"it has {size} bytes instead of {expected}")
        if header["kind"] != kind:
            raise PserError(
                f"{path} holds a {header['kind']}, not a {kind}: load it with pser.{header['kind']}.load"
            )
        if header["byteorder"] != sys.byteorder:
            raise PserError(
                f"{path} was saved on a {header['byteorder']}-endian machine: load it on one of that kind"
            )
        self.settings: dict[str, Any] = header["settings"]
        self.state: dict[str, Any] = header["state"]
        self._arrays: list[list[Any]] = header["arrays"]

    def fill(self, arrays: Arrays) -> None:
        """Read every array's bytes into place; the names and sizes must be those that were saved."""
        if [[name, array.nbytes] for name, array in arrays.items()] != self._arrays:
            raise self._damaged("its arrays do not fit its settings")
        for name, array in arrays.items():
            checksum = 0
            for part in _slices(array):
                if self._file.readinto(part) != len(part):  # type: ignore[attr-defined]
                    raise self._damaged("it ends too early")
                checksum = zlib.crc32(part, checksum)
            self._check(checksum, f"array {name!r}")
        if self._exactly(len(END)) != END:
            raise self._damaged("its end mark is missing")

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:
            raise self._damaged("it ends too early")
        return data

    def _check(self, checksum: int, what: str) -> None:
        if struct.unpack("<I", self._exactly(4))[0] != checksum:
            raise self._damaged(f"the checksum of {what} is wrong")

    def _damaged(self, why: str) -> DamagedFileError:
        return DamagedFileError(f"{self._path} is damaged ({why}): nothing was loaded, use an older copy")


@contextlib.contextmanager
def open_reader(path: str | PathLike[str], kind: str) -> Iterator[Reader]:
    """Open a snapshot of this kind for loading."""
    with open(path, "rb") as file:
        yield Reader(file, Path(path), kind)


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """A generator's state, ready for JSON."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise PserError(
            f"only NumPy's default generator can be saved, got {state['bit_generator']}: seed with a number"
        )
    return dict(state)


def rng_from_state(state: dict[str, Any]) -> np.random.Generator:
    """The generator that was saved."""
    bits = np.random.PCG64()
    bits.state = state  # type: ignore[assignment]  # a dict of just this form, as JSON gave it back
    return np.random.Generator(bits)


def to_json(settings: Prioritization | Field) -> dict[str, Any]:
    """Settings or a spec as JSON, with the name of their class."""
    if isinstance(settings, Array | Frames):
        stack = {"stack": settings.stack, "spare": settings.spare} if isinstance(settings, Frames) else {}
        return {
            "type": type(settings).__name__,
            "shape": list(settings.shape),
            "dtype": settings.dtype.str,
            **stack,
        }
    return {"type": type(settings).__name__, **asdict(settings)}


def prioritization_from_json(data: dict[str, Any]) -> Prioritization:
    """The settings that were saved."""
    values = {key: value for key, value in data.items() if key != "type"}
    if isinstance(values.get("window"), dict):
        values["window"] = AdaptiveWindow(**values["window"])
    kinds: dict[str, type[Prioritization]] = {"PSER": PSER, "PER": PER, "Uniform": Uniform}
    return kinds[data["type"]](**values)


def field_from_json(data: dict[str, Any]) -> Field:
    """The spec that was saved."""
    shape, dtype = tuple(data["shape"]), np.dtype(data["dtype"])
    if data["type"] == "Frames":
        return Frames(shape, stack=data["stack"], dtype=dtype, spare=data["spare"])
    return Array(shape, dtype)


def _slices(array: np.ndarray[Any, Any]) -> Iterator[memoryview]:
    if array.nbytes == 0:
        return
    view = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # arrays are buffers
    for start in range(0, array.nbytes, SLICE_BYTES):
        yield view[start : start + SLICE_BYTES]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
