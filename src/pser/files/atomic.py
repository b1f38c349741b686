"""Writing files so that a crash leaves the old or the new one, whole."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pser.errors import PserError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; on success it is synced and takes the place of `path`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text`, atomically."""
    with replacing(path) as file:
        file.write(text.encode())


def require_space(folder: Path, needed_bytes: int, purpose: str) -> None:
    """Refuse to start what the disk cannot hold."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise PserError(
            f"no disk space: {purpose} needs about {_size(needed_bytes)}, {folder} has {_size(free)} free: "
            "free some, choose another folder, or lower --capacity"
        )


def explain_disk_error(error: OSError, folder: Path) -> OSError | PserError:
    """A full disk as one clear line; any other error as it is."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return PserError(
            f"no disk space left while writing to {folder} ({error.strerror}): free some, "
            "then continue with --resume"
        )
    return error


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
