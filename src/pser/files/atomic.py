"""Writing files so that a crash leaves the old or the new one, whole."""

import contextlib
import errno
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pser.errors import PserError

_count = itertools.count()  # two threads may write to one name


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; on success it is synced and takes the place of `path`."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{next(_count)}.part")
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


def remove_leftovers(path: Path) -> None:
    """Delete what killed processes left of writing to `path`."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)(-\d+)?\.(part|tmp)")
    with contextlib.suppress(OSError):  # a folder that cannot be read is told of when it is written to
        for entry in list(os.scandir(path.parent)):
            match = pattern.fullmatch(entry.name)
            if match and not is_running(int(match[1])):
                Path(entry.path).unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Is there a process of this number? Where that cannot be asked, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def remove_folder(path: Path) -> None:
    """Delete a folder with all it holds; of a link to one, the link."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)


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


def require_writable(path: Path) -> None:
    """Refuse to begin what could not be written to `path` in the end."""
    if path.is_dir():
        raise PserError(f"a file is to be written, and {path} is a folder: name a file in it")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise PserError(
            f"nothing can be written to {path.parent} ({error.strerror}): choose another folder"
        ) from None


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
