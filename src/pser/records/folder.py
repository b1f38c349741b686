"""A run's folder: where each file lives, and whether the run may be written there."""

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pser.errors import DamagedFileError, PserError, is_whole, require
from pser.files.atomic import write_text
from pser.files.json_text import parse_json


class RunFolder:
    """Paths inside one run's folder."""

    def __init__(self, path: Path) -> None:
        require("\0" not in str(path), "a path holds no NUL character", str(path), "choose another --run-dir")
        self.path = path
        self.manifest = path / "manifest.json"
        self.train = path / "train.jsonl"
        self.evaluations = path / "eval.jsonl"
        self.final = path / "final.json"
        self.status = path / "status.json"
        self.checkpoints = path / "checkpoints"
        self.inspections = path / "inspect"
        self.snapshots = path / "snapshots"
        self.tensorboard = path / "tensorboard"

    def create(self) -> None:
        """Make the folder for a new run; a folder that holds anything else is an error."""
        if self.manifest.exists():
            raise PserError(
                f"{self.path} already holds a run: continue it with --resume {self.path}, "
                "or choose another --run-dir"
            )
        if self.path.exists() and not self.path.is_dir():
            raise PserError(f"{self.path} is a file: choose another --run-dir")
        # Hidden files may be left of a run that was killed before it had a manifest.
        if self.path.exists() and any(not path.name.startswith(".") for path in self.path.iterdir()):
            raise PserError(f"{self.path} exists and is not empty: choose another --run-dir")
        self.path.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this folder; the lock ends with the process, however it ends."""
        with open(self.path / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PserError(
                    f"another process is training in {self.path}: wait for it, or stop it"
                ) from None
            yield

    def write_status(self, state: str, frames: int, error: str | None = None) -> None:
        """Say how the run stands: running, finished, stopped or failed."""
        write_text(self.status, json.dumps({"state": state, "frames": frames, "error": error}) + "\n")

    def read_status(self) -> dict[str, Any] | None:
        """The last status written, if any; one that cannot be read counts as none."""
        try:
            status = parse_json(self.status.read_bytes())
        except (OSError, DamagedFileError):
            return None
        if not isinstance(status, dict) or not isinstance(status.get("state"), str):
            return None
        return status if is_whole(status.get("frames")) else None
