"""Files of one JSON object per line, which can be cut back to an earlier position."""

import json
import math
import os
from pathlib import Path
from typing import Any

from pser.errors import DamagedFileError

TAIL_BYTES = 1 << 16
"""Of a record, that the newest row is looked for in."""


class JsonLines:
    """Appends rows to a file; each row is whole on disk, or (after a crash) a last line without an end."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self.path = path
        with open(path, "ab") as file:
            size = file.tell()
            if size < position:
                raise DamagedFileError(
                    f"{path} has {size} bytes, its checkpoint speaks of {position}: restore it, "
                    "or start a new run"
                )
            file.truncate(position)
        self._file = open(path, "ab")  # noqa: SIM115 - kept open for the life of the run

    def append(self, row: dict[str, Any]) -> None:
        """Write one row."""
        self._file.write((json.dumps(finite(row), allow_nan=False) + "\n").encode())
        self._file.flush()

    def position(self) -> int:
        """After the last row."""
        self._file.flush()
        return self._file.tell()

    def sync(self) -> int:
        """Force all rows to disk; returns the position after the last."""
        position = self.position()
        os.fsync(self._file.fileno())
        return position

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def finite(value: Any) -> Any:
    """`value` with NaN and infinities, which JSON has not, replaced by None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def newest_row(path: Path) -> dict[str, Any]:
    """The newest whole row of a record; empty if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            whole = [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        row = json.loads(whole[-1])
    except (OSError, IndexError, ValueError):
        return {}
    return row if isinstance(row, dict) else {}


def newest_frames(path: Path) -> int:
    """The frames that the newest whole row of a record speaks of; 0 if there is none."""
    try:
        return int(newest_row(path).get("frames", 0))
    except (ValueError, TypeError):
        return 0
