"""Checkpoints: all that a run needs to go on as if it had never stopped, two deep.

A checkpoint is a folder with two files, each with its own checksum: `state.pser` (networks, optimizer, random
generators, counters, game, positions in the records) and `memory.pser` (the replay memory). It is written
under another name and renamed when complete, so a folder that bears a checkpoint's name is whole.
"""

import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pser
from pser.errors import PserError
from pser.files.atomic import remove_folder, sync_folder
from pser.files.container import read_container, write_container

KEPT = 2
PREFIX = "frames-"
STATE, MEMORY = "state.pser", "memory.pser"


class Memory(Protocol):
    """What can be part of a checkpoint."""

    def save(self, path: Path) -> None:
        """Write all of it to this file, or to this and others beside it."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint."""

    path: Path
    state: dict[str, Any]
    memory: Any
    """Whatever the loader made of the memory's file."""


def write_checkpoint(folder: Path, frames: int, state: dict[str, Any], memory: Memory) -> Path:
    """Write the checkpoint of this moment, then forget all but the newest two."""
    folder.resolve().mkdir(exist_ok=True)  # a link to a folder will do, also to one to be made
    target, temporary = folder / f"{PREFIX}{frames:012d}", folder / f".writing-{os.getpid()}"
    remove_leftovers(folder)
    temporary.mkdir()
    try:
        memory.save(temporary / MEMORY)
        write_container(temporary / STATE, state)
        sync_folder(temporary)
        if target.exists():  # from before a fallback to an older checkpoint
            remove_folder(target)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(folder)
    for path in checkpoint_paths(folder)[KEPT:]:
        remove_folder(path)
    return target


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
        except (PserError, OSError) as error:
            warnings.warn(f"checkpoint {path.name} is damaged and was skipped: {error}", stacklevel=2)
    if paths:
        raise PserError(f"no checkpoint in {folder} is whole: start a new run in another folder")
    return None
