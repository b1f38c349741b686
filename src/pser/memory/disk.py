"""The folder of a memory on disk: its arrays in one file that is mapped into memory.

columns.bin   every array, at a page of its own; the first page tells whose they are
memory.pser   settings, priorities and all that is small, as of the last flush
open.json     there while the memory is open: in which run of the machine
crashed.pser  there while a memory is opened that was not closed: what of it may have been overwritten
"""

import contextlib
import json
import mmap
import os
import re
import secrets
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pser.errors import DamagedFileError, PserError, require
from pser.files.archive import as_path, reading
from pser.files.atomic import sync_folder, write_text
from pser.files.json_text import parse_json
from pser.memory import saving
from pser.memory.columns import Stored
from pser.spec import Fields, Frames

COLUMNS, HEAD, OPEN, CRASHED, LOCK = "columns.bin", "memory.pser", "open.json", "crashed.pser", ".lock"
MAGIC = b"PSERMAP1"
PAGE = 4096
WRITTEN_AT = 64
"""Where the first page tells how many rows were begun."""

Values = np.ndarray[Any, Any]


class DiskFile:
    """The mapped file, open in this process alone."""

    def __init__(self, folder: Path, identity: str | None = None) -> None:
        """A new one, unless an existing one is named by its identity."""
        self.folder, self.head = folder, folder / HEAD
        self.is_new = identity is None
        self.identity = secrets.token_hex(16) if identity is None else identity
        self._map: np.memmap[Any, Any] | None = None
        if self.is_new:
            _make(folder)
        self.release = weakref.finalize(self, os.close, _locked(folder))
        """Let others open it; done at the latest when nobody has it any more."""

    def arrays(
        self, layout: Mapping[str, Stored], initial: Callable[[str], Values]
    ) -> tuple[dict[str, Values], Values]:
        """Every array in its place, and the number of rows begun."""
        places, size = _places(layout)
        path = self.folder / COLUMNS
        if self.is_new:
            _reserve(path, size)
        elif path.stat().st_size != size:
            raise DamagedFileError(
                f"{path} has {path.stat().st_size} bytes instead of {size}: use a saved copy"
            )
        self._map = np.memmap(path, np.uint8, "r+", shape=(size,))
        with contextlib.suppress(AttributeError, OSError):  # neighbours of what is sampled are not read ahead
            self._map._mmap.madvise(mmap.MADV_RANDOM)  # type: ignore[attr-defined]
        title = np.frombuffer(MAGIC + bytes.fromhex(self.identity), np.uint8)
        if self.is_new:
            self._map[: title.size] = title
        elif not np.array_equal(self._map[: title.size], title):
            raise DamagedFileError(f"{path} belongs to another memory than {HEAD}: use a saved copy")
        made = {}
        for name, stored in layout.items():
            start, bytes_ = places[name]
            made[name] = self._map[start : start + bytes_].view(stored.dtype).reshape(stored.shape)
            if self.is_new and stored.used == "all":
                made[name][...] = initial(name)
        self.mark_open()
        return made, self._map[WRITTEN_AT : WRITTEN_AT + 8].view(np.int64)

    def sync(self) -> None:
        """Force to disk what was written to the arrays."""
        if self._map is not None:
            self._map.flush()

    def mark_open(self) -> None:
        """From here on a crash of the machine leaves what nobody can tell."""
        write_text(self.folder / OPEN, json.dumps({"boot": _boot()}) + "\n")

    def refuse_after_a_crash_of_the_machine(self) -> None:
        """What a process wrote before it died is there for the next one; what the machine had in hand is not."""
        path = self.folder / OPEN
        if not path.exists():
            return
        found = parse_json(path.read_bytes())
        boot = found.get("boot") if isinstance(found, dict) else None
        if boot is None or boot != _boot():
            self.release()
            raise DamagedFileError(
                f"{self.folder} was open when the machine went down, and may hold anything: load a saved copy"
            )

    def close(self) -> None:
        """It is as it was flushed, also if the machine goes down."""
        (self.folder / OPEN).unlink(missing_ok=True)
        sync_folder(self.folder)
        self.release()


def disk_of(storage: Any, path: Any, fields: Fields) -> DiskFile | None:
    """Where a new memory keeps its arrays; None for in memory."""
    require(storage in ("memory", "disk"), "storage must be 'memory' or 'disk'", storage, "choose one")
    if storage == "memory":
        require(
            path is None, "path belongs to storage='disk'", path, "leave it out, or keep the memory on disk"
        )
        return None
    for name, field in fields.items():
        if isinstance(field, Frames) and field.compress and field.capacity_bytes is None:
            raise PserError(
                f"compressed frames on disk need capacity_bytes, got None of {name!r}: try 1000 bytes a transition"
            )
    require(path is not None, "storage='disk' needs a path", path, "name a new folder")
    return path if isinstance(path, DiskFile) else DiskFile(as_path(path))


def opened_folder(path: Any) -> DiskFile | None:
    """The memory on disk that lives in a folder, locked; None if the path is not of a folder."""
    if not isinstance(path, str | os.PathLike) or not Path(path).is_dir():
        return None
    folder = Path(path)
    head = folder / HEAD
    if not head.exists():
        raise PserError(f"{folder} holds no memory on disk: name its folder, or the file of a saved one")
    with reading(head, saving.KIND) as file:
        identity = file.content["disk"]
        if not isinstance(identity, str) or not re.fullmatch("[0-9a-f]{32}", identity):
            raise ValueError("it is not the head of a memory on disk")
    disk = DiskFile(folder, identity)
    disk.refuse_after_a_crash_of_the_machine()
    return disk


class Closed:
    """In place of the parts of a memory that was closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        raise PserError(
            f"this memory was closed: open it again with pser.ReplayMemory.load({str(self._folder)!r})"
        )


def _make(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir())):
        remedy = "open it with pser.ReplayMemory.load" if (folder / HEAD).exists() else "choose another"
        raise PserError(f"a memory on disk needs a new or empty folder, got {str(folder)!r}: {remedy}")
    folder.mkdir(parents=True, exist_ok=True)


def _locked(folder: Path) -> int:
    """A lock that is held as long as this file is open, and ends with the process, however it ends."""
    file = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT, 0o644)
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise PserError(f"{folder} is open already, here or in another process: close it there") from None
    return file


def _places(layout: Mapping[str, Stored]) -> tuple[dict[str, tuple[int, int]], int]:
    """Where each array begins and how many bytes it has; and the size of the file."""
    places, at = {}, PAGE
    for name, stored in layout.items():
        size = int(np.prod(stored.shape, dtype=object)) * np.dtype(stored.dtype).itemsize
        places[name] = (at, size)
        at += -(-size // PAGE) * PAGE
    return places, at


def _reserve(path: Path, size: int) -> None:
    """A file of zeros whose room on the disk is taken: writing to it never fails for want of room."""
    try:
        with open(path, "xb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise PserError(
            f"a memory on disk needs {size / 1e9:.3g} GB in {path.parent} ({error.strerror}): free some, lower "
            "capacity, or compress frames"
        ) from None


def _boot() -> str | None:
    """Which run of the machine this is; None where that cannot be told."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
