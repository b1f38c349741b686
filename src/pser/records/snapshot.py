"""Snapshots: the weights of an agent as it was at one moment, for evaluation and watching."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pser.errors import DamagedFileError, PserError
from pser.files.container import read_container, write_container
from pser.records.folder import RunFolder


@dataclass(frozen=True)
class Snapshot:
    """The online network's parameters, when they were taken, and how they scored."""

    frames: int
    mean_return: float | None
    weights: NDArray[np.float32]

    def to_state(self) -> dict[str, Any]:
        """As a checkpoint or container holds it."""
        return {"frames": self.frames, "mean_return": self.mean_return, "weights": self.weights}


def snapshot_path(folder: RunFolder, name: str) -> Path:
    """Where the snapshot "best" or "last" lives."""
    return folder.snapshots / f"{name}.pser"


def write_snapshot(folder: RunFolder, name: str, snapshot: Snapshot) -> None:
    """Replace the named snapshot, atomically."""
    folder.snapshots.mkdir(exist_ok=True)
    write_container(snapshot_path(folder, name), snapshot.to_state())


def read_snapshot(folder: RunFolder, name: str) -> Snapshot:
    """Read the named snapshot."""
    path = snapshot_path(folder, name)
    if not path.exists():
        raise PserError(
            f"{folder.path} has no snapshot {name!r}: let the run reach its first "
            + ("evaluation, or use --snapshot last" if name == "best" else "checkpoint")
        )
    return snapshot_of(read_container(path), path)


def snapshot_of(found: Any, source: Path) -> Snapshot:
    """The snapshot that `to_state` gave; anything else is refused."""
    wanted = {"frames": int, "mean_return": int | float | None, "weights": np.ndarray}
    if (
        not isinstance(found, dict)
        or set(found) != set(wanted)
        or not all(isinstance(found[key], kind) for key, kind in wanted.items())
        or (found["weights"].ndim, found["weights"].dtype) != (1, np.float32)
    ):
        got = ", ".join(map(str, found)) if isinstance(found, dict) else type(found).__name__
        raise DamagedFileError(f"{source} must hold {', '.join(wanted)}, got {got}: take another snapshot")
    return Snapshot(**found)
