"""Where the inspections of a page come from: a run's folder, a checkpoint, a saved memory."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pser
from pser.errors import PserError
from pser.files.container import is_container
from pser.records.checkpoint import MEMORY, STATE, checkpoint_paths
from pser.records.folder import RunFolder
from pser.records.inspection import PREFIX, Inspection, inspect_memory, inspection_paths, read_inspection
from pser.records.manifest import read_manifest

MOST_TRANSITIONS = 1_200_000
"""So many transitions, over all moments, fit on a page that stays quick and small."""


SHARD = re.compile(r"memory(?:-(\d+))?\.pser")
"""Files of a checkpoint of which each holds one shard of the memory, as Ape-X on Ray writes them."""


@dataclass(frozen=True)
class Source:
    """What a page shows."""

    path: Path
    moments: list[Inspection]
    """In the order of their frames."""
    manifest: dict[str, Any] | None
    """Of the run, if it is one."""
    notes: list[str]
    """What was left out, in sentences."""


def read_source(path: Path, *, moments: int, picture_steps: int) -> Source:
    """The inspections of a run, or the one of a memory."""
    if (path / "manifest.json").is_file():
        return _read_run(path, moments, picture_steps)
    if (path / MEMORY).is_file():
        path = path / MEMORY
    if not path.exists():
        raise PserError(f"there is no {path}: name a run folder, a checkpoint or a saved memory")
    if path.is_dir():
        raise PserError(
            f"{path} holds no run and no memory: name a run folder, a checkpoint or a saved memory"
        )
    return Source(path, [_read_file(path, None, picture_steps)], None, _said_of_shards(path))


def _read_run(path: Path, moments: int, picture_steps: int) -> Source:
    folder = RunFolder(path)
    found = {_frames(file): file for file in checkpoint_paths(folder.checkpoints)}
    found |= {
        _frames(file): file for file in inspection_paths(folder.inspections)
    }  # these know the batches too
    if not found:
        raise PserError(
            f"{path} has no checkpoint and no inspection yet: let it run on, or train with --inspect-period-frames"
        )
    notes = list[str]()
    times = sorted(found)
    if len(times) > moments:
        notes.append(f"{moments} of {len(times)} moments are shown, evenly chosen (--moments shows more)")
        times = [times[k] for k in np.linspace(0, len(times) - 1, moments).round().astype(int)]
    shown, left = list[Inspection](), MOST_TRANSITIONS
    for frames in reversed(times):
        moment = _read_file(
            found[frames] / MEMORY if found[frames].is_dir() else found[frames], frames, picture_steps
        )
        if shown and len(moment) > left:
            notes.append(
                f"moments before {shown[-1].frames:,} frames are left out: the page would grow too large"
            )
            break
        shown.append(moment)
        left -= len(moment)
    if not inspection_paths(folder.inspections):
        notes.append(
            "the moments are the run's checkpoints; train with --inspect-period-frames N for more of them"
        )
    notes += _said_of_shards(found[times[-1]] / MEMORY)
    return Source(path, shown[::-1], read_manifest(folder.manifest), notes)


def _said_of_shards(path: Path) -> list[str]:
    """That a file of a checkpoint holds one shard of the memory, and where the others are."""
    shown = SHARD.fullmatch(path.name)
    if shown is None or not (path.parent / STATE).is_file():
        return []
    count = sum(1 for file in path.parent.iterdir() if SHARD.fullmatch(file.name))
    if count == 1:
        return []
    other = path.with_name("memory-1.pser" if shown[1] is None else MEMORY)
    return [
        f"this is shard {int(shown[1] or 0) + 1} of the {count} that the memory is in, not the whole: "
        f"pser inspect {other} shows another"
    ]


def _frames(path: Path) -> int:
    return int(path.stem[len(PREFIX) :])


def _read_file(path: Path, frames: int | None, picture_steps: int) -> Inspection:
    if is_container(path):
        return read_inspection(path)
    return inspect_memory(pser.ReplayMemory.load(path), frames=frames, picture_steps=picture_steps)
