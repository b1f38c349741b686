"""The one file format: a header of JSON and arrays of bytes; checksummed, streamed, and without pickle.

Layout: magic, length of the header, header (JSON), its CRC-32; then each array's bytes followed by their CRC-32;
then an end mark. Numbers are little-endian. Arrays go from and to memory in slices, so saving needs no second copy.
Nothing of a file is believed: its sizes are compared with its length before anything is allocated, and whatever is
wrong with it is a DamagedFileError.
"""

import contextlib
import io
import json
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pser.errors import DamagedFileError, PserError
from pser.files.atomic import replacing

MAGIC = b"PSERSAV1"
END = b"PSEREND1"
SLICE_BYTES = 16 << 20

Arrays = dict[str, np.ndarray[Any, Any]]
Place = str | PathLike[str] | BinaryIO
"""A path, or a stream of bytes (open for writing; for reading one that can seek)."""

# What numbers and names that make no sense may raise: in the kernel a RuntimeError, for huge sizes a MemoryError.
NONSENSE = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


def write(place: Place, kind: str, content: dict[str, Any], arrays: Arrays) -> int:
    """Write a whole file: to a path atomically (a crash leaves the old one or the new one), to a stream as it comes.

    Returns the checksum of all its checksums, by which another file may refer to it.
    """
    header = {"kind": kind, "byteorder": sys.byteorder, **content}
    header["arrays"] = [[name, array.nbytes] for name, array in arrays.items()]
    encoded = json.dumps(header).encode()
    with _writing(place) as file:
        start = MAGIC + struct.pack("<Q", len(encoded)) + encoded
        sealed = struct.pack("<I", zlib.crc32(start))
        file.write(start + sealed)
        digest = zlib.crc32(sealed)
        for array in arrays.values():
            checksum = 0
            for part in _slices(array):
                file.write(part)
                checksum = zlib.crc32(part, checksum)
            sealed = struct.pack("<I", checksum)
            file.write(sealed)
            digest = zlib.crc32(sealed, digest)
        file.write(END)
    return digest


class Reader:
    """An open file: its header was verified, its arrays are verified as they are read."""

    def __init__(self, file: BinaryIO, name: str, size: int, whole: bool) -> None:
        self._file, self.name = file, name
        self.digest = 0
        """The checksum of the checksums read so far; of a whole file what `write` returned."""
        start = self._exactly(len(MAGIC) + 8)
        if start[: len(MAGIC)] != MAGIC:
            raise self.damaged("it does not begin like a file of pser")
        (length,) = struct.unpack("<Q", start[len(MAGIC) :])
        if length > size:
            raise self.damaged("it is shorter than its header says")
        encoded = self._exactly(length)
        self._check(zlib.crc32(start + encoded), "its header")
        self.content: dict[str, Any] = json.loads(encoded)
        self.arrays = [
            (str(name), int(count)) for name, count in self.content["arrays"] if type(count) is int
        ]
        if len(self.arrays) != len(self.content["arrays"]) or any(count < 0 for _, count in self.arrays):
            raise self.damaged("the size of an array is not a size")
        expected = len(start) + length + 4 + sum(count + 4 for _, count in self.arrays) + len(END)
        if size < expected or (whole and size != expected):
            raise self.damaged(f"it has {size} bytes instead of {expected}")

    def require(self, arrays: dict[str, int]) -> None:
        """The arrays that were saved have these names and sizes in bytes, in this order."""
        if self.arrays != list(arrays.items()):
            raise self.damaged("its arrays do not fit its settings")

    def fill(self, arrays: Arrays) -> None:
        """Read every array's bytes into place."""
        self.require({name: array.nbytes for name, array in arrays.items()})
        for name, array in arrays.items():
            checksum = 0
            for part in _slices(array):
                self._read_into(part)
                checksum = zlib.crc32(part, checksum)
            self._check(checksum, f"array {name!r}")
        if self._exactly(len(END)) != END:
            raise self.damaged("its end mark is missing")

    def damaged(self, why: str) -> DamagedFileError:
        """The error that says so."""
        return DamagedFileError(f"{self.name} is damaged ({why}): nothing was loaded, use an older copy")

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:
            raise self.damaged("it ends too early")
        return data

    def _read_into(self, part: memoryview) -> None:
        done = 0
        while done < len(part):
            count = self._file.readinto(part[done:])  # type: ignore[attr-defined]  # every stream of bytes has it
            if not count:
                raise self.damaged("it ends too early")
            done += count

    def _check(self, checksum: int, what: str) -> None:
        sealed = self._exactly(4)
        if struct.unpack("<I", sealed)[0] != checksum:
            raise self.damaged(f"the checksum of {what} is wrong")
        self.digest = zlib.crc32(sealed, self.digest)


@contextlib.contextmanager
def reading(place: Place, kind: str) -> Iterator[Reader]:
    """Open a file of this kind. Whatever turns out to make no sense, here or in the block, is a DamagedFileError."""
    with _opened(place) as (file, name, size, whole):
        with _nonsense_is_damage(name):
            reader = Reader(file, name, size, whole)
            held, byteorder = str(reader.content["kind"]), str(reader.content["byteorder"])
        if held != kind:
            raise PserError(f"{name} holds a {held}, not a {kind}: load it with pser.{held}.load")
        if byteorder != sys.byteorder:
            raise PserError(f"{name} was saved on a {byteorder}-endian machine: load it on one of that kind")
        with _nonsense_is_damage(name):
            yield reader


def kind_of(place: Place) -> str | None:
    """What a file says it holds; None if it is not one of ours, or damaged."""
    try:
        with _opened(place) as (file, name, size, whole), _nonsense_is_damage(name):
            return str(Reader(file, name, size, whole).content["kind"])
    except DamagedFileError:
        return None


@contextlib.contextmanager
def _nonsense_is_damage(name: str) -> Iterator[None]:
    try:
        yield
    except DamagedFileError:
        raise
    except NONSENSE as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise DamagedFileError(f"{name} is damaged ({why}): nothing was loaded, use an older copy") from error


@contextlib.contextmanager
def _writing(place: Place) -> Iterator[BinaryIO]:
    stream = as_stream(place, "write")
    if stream is not None:
        yield stream
        return
    path = as_path(place)
    if path.name in ("", ".."):
        raise PserError(f"a file must have a name, got {str(path)!r}: name one in that folder")
    with replacing(path) as file:
        yield file


@contextlib.contextmanager
def _opened(place: Place) -> Iterator[tuple[BinaryIO, str, int, bool]]:
    """The stream, what to call it, how many bytes are left in it, and whether they must all belong to this file."""
    stream = as_stream(place, "read")
    if stream is not None:
        if not stream.seekable():
            raise PserError(
                f"a stream to load from must be able to seek, got {stream!r}: put it into io.BytesIO"
            )
        here = stream.tell()
        size = stream.seek(0, os.SEEK_END) - here
        stream.seek(here)
        yield stream, str(getattr(stream, "name", "the stream")), size, False
        return
    path = as_path(place)
    with open(path, "rb") as file:
        yield file, str(path), os.fstat(file.fileno()).st_size, True


def as_stream(place: Any, method: str) -> BinaryIO | None:
    """The stream that was given, None if it is a path."""
    if isinstance(place, io.TextIOBase):
        raise PserError(f"a stream must take bytes, got {place!r}: open it in binary mode")
    return place if hasattr(place, method) and not isinstance(place, PathLike) else None


def as_path(place: Any) -> Path:
    """The path that was given."""
    if not isinstance(place, str | PathLike) or "\0" in os.fsdecode(place):
        raise PserError(f"a file must be named by a path or be a binary stream, got {place!r}: give one")
    return Path(place)


def _slices(array: np.ndarray[Any, Any]) -> Iterator[memoryview]:
    if array.nbytes == 0:
        return
    view = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # arrays are buffers
    for start in range(0, array.nbytes, SLICE_BYTES):
        yield view[start : start + SLICE_BYTES]
