"""Checkpoints: all that a run needs to go on as if it had never stopped, two deep.

A checkpoint is a folder of files, each with its own checksums: `state.pser` (networks, optimizer, random generators,
counters, game, positions in the records), `memory.pser` (the priorities, and which parts belong to it) and the parts
beside it (what was added to the memory). It is written under another name and renamed when complete, so a folder that
bears a checkpoint's name is whole.

A checkpoint links the parts of the one before the last and writes what was added since. So the two that are kept share
no file, and whatever happens to one leaves the other.
"""

import contextlib
import copy
import os
import shutil
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pser
from pser.errors import LostProcessError, PserError
from pser.files.atomic import remove_folder, sync_folder
from pser.files.container import read_container, write_container

KEPT = 2
PREFIX = "frames-"
STATE, MEMORY = "state.pser", "memory.pser"


class Written(Protocol):
    """A save that is complete."""

    path: Path
    """Where it is; corrected when the checkpoint gets its name."""


class Begun(Protocol):
    """A save whose moment is taken."""

    def write(self) -> Written:
        """Write it, in whatever thread."""

    def abandon(self) -> None:
        """Nobody has to wait for it any more."""


class Memory(Protocol):
    """What can be part of a checkpoint."""

    @property
    def saved(self) -> Any:
        """The save that it was loaded from, or the last one; None if there is none."""

    def begin_save(self, path: Path, since: Any) -> Begun:
        """Take this moment, to be written to this file and others beside it; what is in `since` may be linked."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint."""

    path: Path
    state: dict[str, Any]
    memory: Any
    """Whatever the loader made of the memory's file."""


class CheckpointWriter:
    """Writes the checkpoints of one run, one at a time, each while the training goes on."""

    def __init__(self, folder: Path, newest: Checkpoint | None = None) -> None:
        """`newest`: the checkpoint that the run went on from."""
        self._folder = folder
        self._saves: deque[Written] = deque(maxlen=KEPT)
        if newest is not None and newest.memory.saved:
            self._saves.append(newest.memory.saved)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._completed: int | None = None

    def write(
        self,
        frames: int,
        state: dict[str, Any],
        memory: Memory,
        *,
        first: Callable[[], object] = lambda: None,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """Take a snapshot of this moment, and begin to write it; then all but the newest two are forgotten.

        `first` and `then` are done before and after, in the thread that writes. It ends with the process, whatever it
        has written by then.
        """
        self.wait()
        self._folder.resolve().mkdir(exist_ok=True)  # a link to a folder will do, also to one to be made
        temporary = self._folder / f".writing-{os.getpid()}"
        remove_leftovers(self._folder)
        temporary.mkdir()
        since = self._saves[0] if len(self._saves) == KEPT else None
        state = copy.deepcopy(state)
        saving = memory.begin_save(temporary / MEMORY, since)

        def carry_out() -> None:
            try:
                with _removed_on_error(temporary):
                    first()
                    saved = saving.write()
                    target = _complete(self._folder, frames, state, temporary)
                saved.path = target / MEMORY
                self._saves.append(saved)
                then()
                self._completed = frames
            except BaseException as error:
                self._error = error
            finally:
                saving.abandon()

        self._thread = threading.Thread(target=carry_out, name="pser-checkpoint", daemon=True)
        self._thread.start()

    def is_writing(self) -> bool:
        """Is one under way?"""
        return self._thread is not None and self._thread.is_alive()

    def completed(self) -> int | None:
        """The frames of a checkpoint completed since this was asked last; what went wrong with one is raised here."""
        if self._error is not None:
            self.wait()
        frames, self._completed = self._completed, None
        return frames

    def wait(self) -> None:
        """Until none is under way; what went wrong with it is raised here, once."""
        if self._thread is not None:
            self._thread.join()
        self._thread, error, self._error = None, self._error, None
        if error is not None:
            raise error


def write_checkpoint(folder: Path, frames: int, state: dict[str, Any], memory: Memory) -> None:
    """Write the checkpoint of this moment by itself, then forget all but the newest two."""
    writer = CheckpointWriter(folder)
    writer.write(frames, state, memory)
    writer.wait()


@contextlib.contextmanager
def _removed_on_error(temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _complete(folder: Path, frames: int, state: dict[str, Any], temporary: Path) -> Path:
    """Give a checkpoint whose memory is written its state and its name."""
    target = folder / checkpoint_name(frames)
    write_container(temporary / STATE, state)
    sync_folder(temporary)
    if target.exists():  # from before a fallback to an older checkpoint
        remove_folder(target)
    os.rename(temporary, target)
    sync_folder(folder)
    for path in checkpoint_paths(folder)[KEPT:]:
        remove_folder(path)
    return target


def checkpoint_name(frames: int) -> str:
    """The folder of the checkpoint at so many frames."""
    return f"{PREFIX}{frames:012d}"


def checkpoint_paths(folder: Path) -> list[Path]:
    """Complete checkpoints, newest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.name.startswith(PREFIX)), reverse=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what an interrupted write left behind."""
    for path in folder.glob(".writing-*"):
        shutil.rmtree(path, ignore_errors=True)


def read_newest_checkpoint(
    folder: Path, load: Callable[[Path], Any] = pser.ReplayMemory.load
) -> Checkpoint | None:
    """The newest checkpoint that is whole; None if none was ever written. `load` reads the memory's file.

    A damaged one is skipped with a warning; the run replaces it when it gets there again.
    """
    paths = checkpoint_paths(folder)
    for path in paths:
        try:
            return Checkpoint(path, read_container(path / STATE), load(path / MEMORY))
        except LostProcessError:
            raise
        except (PserError, OSError) as error:
            warnings.warn(f"checkpoint {path.name} is damaged and was skipped: {error}", stacklevel=2)
    if paths:
        raise PserError(f"no checkpoint in {folder} is whole: start a new run in another folder")
    return None
